"""How much memory a worker takes for a small mailing and for a large one."""

from bench import postfix, watch
from bench.place import Place
from bench.sizes import Sizes
from bench.stock import Stock
from bench.table import Figure, Target, beside

MOST, SAME = 150, 1.1  # MB, and how far the large mailing may be above the small one


def memory(sizes: Sizes, stock: Stock) -> list[Figure]:
    """The most MB resident while the audience is frozen and the first mails go out: few readers, many, few again."""
    found: list[Figure] = []
    for database in stock.databases:
        small = [_most(sizes, stock, database, sizes.few)]
        large = [_most(sizes, stock, database, sizes.many)]
        small.append(_most(sizes, stock, database, sizes.few))
        found += [
            Figure(f"{database}, {sizes.many:,} recipients, MB", large, target=Target(MOST)),
            Figure("  beside the few", large, beside(large, small), Target(SAME, of_ratio=True)),
            Figure(f"  {sizes.few:,} recipients, MB", small, target=Target(MOST)),
        ]
    return found


def _most(sizes: Sizes, stock: Stock, database: str, recipients: int) -> float:
    with postfix.sink() as sink:
        relay = f"smtp+plain://127.0.0.1:{sink.port}?connections={sizes.connections}"
        with stock.place(database, recipients, relay) as here:
            issue = here.hand_in(0)
            with here.running("worker") as pid:
                mails = min(sizes.watched, recipients)
                seen = watch.samples(sink, mails, lambda: _frozen(here, issue), [pid])
    return max(one.resident for one in seen)


def _frozen(here: Place, issue: int) -> None:
    """Order an issue to be sent and wait until its audience is complete."""
    here.run("send", str(issue), "--detach")
    watch.complete(here, issue)
