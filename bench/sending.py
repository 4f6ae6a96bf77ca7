"""One worker's sending: on either database, signed and unsigned, beside Postfix's own load generator."""

import time
from pathlib import Path
from statistics import mean

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from bench import postfix, watch
from bench.sizes import Sizes
from bench.stock import POSTGRES, SQLITE, Stock
from bench.table import Figure, Target, beside

LEAST = {SQLITE: 0.7, POSTGRES: 0.35}  # of what smtp-source does
SIGNATURES = 2_000


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
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        signing = {"dkim_key": str(_kept(key, stock.folder)), "dkim_selector": "s1"}
        bare = [_signatures(key)]
        rates, costs, peers = _rounds(sizes, stock, SQLITE, signing)
        bare.append(_signatures(key))
        signed = [1e6 / cost for cost in costs]
        found += [
            Figure("SQLite, with DKIM, mails/s", rates, beside(rates, peers)),
            Figure(
                "  mails per second of processor time",
                signed,
                [one / mean(bare) for one in signed],
                Target(1000, True),
            ),
            Figure("  RSA signatures alone beside it, per second of processor time", bare),
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


def _kept(key: rsa.RSAPrivateKey, folder: Path) -> Path:
    """Write a key down and return its path."""
    path = folder / "dkim.pem"
    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, none))
    path.chmod(0o600)
    return path


def _signatures(key: rsa.RSAPrivateKey) -> float:
    """Return how many signatures a key makes in a second of processor time: no mail can be cheaper."""
    began = time.process_time()
    for _ in range(SIGNATURES):
        key.sign(b"", padding.PKCS1v15(), hashes.SHA256())
    return SIGNATURES / (time.process_time() - began)
