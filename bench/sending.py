"""One worker's sending: on either database, signed and unsigned, beside Postfix's own load generator."""

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bench import postfix, watch
from bench.sizes import Sizes
from bench.stock import POSTGRES, SQLITE, Stock
from bench.table import Figure, Target, beside

LEAST = {SQLITE: 0.7, POSTGRES: 0.35}  # of what smtp-source does


def sending(sizes: Sizes, stock: Stock) -> list[Figure]:
    """Mails a second of one `broadsheet worker` and of smtp-source, in turn, into one smtp-sink."""
    found: list[Figure] = []
    for database in stock.databases:
        rates, costs, peers = _rounds(sizes, stock, database, {})
        ratio = Target(LEAST[database], at_least=True, of_ratio=True)
        most = Target(200) if database == SQLITE else None
        found += [
            Figure(f"{database}, mails/s", rates, beside(rates, peers), ratio),
            Figure("  the worker's processor time, µs/mail", costs, target=most),
            Figure("  smtp-source beside it, mails/s", peers),
        ]
    if SQLITE in stock.databases:
        signing = {"dkim_key": str(_key(stock.folder)), "dkim_selector": "s1"}
        rates, costs, peers = _rounds(sizes, stock, SQLITE, signing)
        found += [
            Figure("SQLite, with DKIM, mails/s", rates, beside(rates, peers)),
            Figure(
                "  mails per second of processor time",
                [1e6 / cost for cost in costs],
                target=Target(1000, True),
            ),
            Figure("  smtp-source beside it, mails/s", peers),
        ]
    return found


def _rounds(
    sizes: Sizes, stock: Stock, database: str, settings: dict[str, str]
) -> tuple[list[float], list[float], list[float]]:
    """Return mails a second, microseconds a mail, and mails a second of the peer, who is first and last."""
    rates, costs, peers = list[float](), list[float](), list[float]()
    with postfix.sink() as sink:
        relay = f"smtp+plain://127.0.0.1:{sink.port}?connections={sizes.connections}"
        with stock.place(database, sizes.mails, relay, **settings) as here:
            issues = [here.hand_in(number) for number in range(sizes.rounds)]
            size = here.size_of(issues[0])
            with here.running("worker") as pid:
                peers.append(postfix.source(sink.port, sizes.connections, sizes.mails, size))
                for issue in issues:
                    seen = watch.mailing(here, sink, issue, sizes.mails, [pid])
                    rates.append(watch.rate(seen))
                    costs.append(watch.cost(seen))
                    peers.append(postfix.source(sink.port, sizes.connections, sizes.mails, size))
    return rates, costs, peers


def _key(folder: Path) -> Path:
    """Write an RSA key of 2048 bits and return its path."""
    path = folder / "dkim.pem"
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path.write_bytes(made.private_bytes(serialization.Encoding.PEM, form, none))
    path.chmod(0o600)
    return path
