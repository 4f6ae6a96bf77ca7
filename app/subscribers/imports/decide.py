"""What becomes of each row, decided from what is known: nobody who left comes back, nothing is taken twice."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from app.core.errors import Fault, Invalid
from app.subscribers.addresses import Address
from app.subscribers.consent import Reason, State
from app.subscribers.imports import quick
from app.subscribers.imports.candidate import Candidate, Plan

LASTING = (Reason.BOUNCED, Reason.COMPLAINED, Reason.ERASED, Reason.EDITOR)
MESSAGE_LIMIT = 300


@dataclass(frozen=True, slots=True)
class Ready:
    """A row whose address can be mailed: its keyed hash, and the editions it names (None: it names none)."""

    row: Candidate
    address: Address
    hashed: bytes
    slugs: tuple[str, ...] | None

    @property
    def digest(self) -> int:
        """A number of 64 bits, signed, that stands for the address within a file."""
        return int.from_bytes(self.hashed[:8], signed=True)


@dataclass(frozen=True, slots=True)
class Known:
    """A reader who is here already."""

    id: int
    state: str
    reason: str | None


@dataclass(slots=True)
class Decisions:
    """What to do with the rows of a batch, its counts, and the cases to report as (line, kind, message)."""

    fresh: list[Ready] = field(default_factory=list)
    changes: list[tuple[Known, Ready]] = field(default_factory=list)
    erased: list[bytes] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    cases: list[tuple[int, str, str]] = field(default_factory=list)

    def report(self, line: int, kind: str, message: str) -> None:
        """Count a row that is not taken, and say why."""
        self.counts[kind] += 1
        self.cases.append((line, kind, message[:MESSAGE_LIMIT].replace("\0", "")))


@dataclass(frozen=True, slots=True)
class Checker:
    """What rows are held against: the languages there are, every word for an edition, and the key of the hashes."""

    plan: Plan
    languages: Sequence[str]
    editions: Mapping[str, str]
    suppression_key: str

    def check(self, rows: Iterable[Candidate | Fault]) -> list[Ready | Fault]:
        """Return each row with its address, or what is wrong with it."""
        return [row if isinstance(row, Fault) else self._checked(row) for row in rows]

    def _checked(self, row: Candidate) -> Ready | Fault:
        try:
            address = quick.accept(row.email)
            slugs = self._slugs(row)
        except Invalid as error:
            return Fault(error.faults[0].message if error.faults else error.detail, row.line)
        if row.language is not None and row.language not in self.languages:
            return Fault(
                f"“{row.language[:20]}” is no language here; there are: {', '.join(self.languages)}.",
                row.line,
            )
        return Ready(row, address, address.hashed(self.suppression_key), slugs)

    def _slugs(self, row: Candidate) -> tuple[str, ...] | None:
        if row.editions is None:
            return None
        found = [self.editions.get(word.casefold()) for word in row.editions]
        if None in found:
            unknown = row.editions[found.index(None)]
            known = ", ".join(dict.fromkeys(self.editions.values()))
            raise Invalid(f"There is no edition “{unknown[:32]}”; there are: {known}.")
        return tuple(dict.fromkeys(slug for slug in found if slug))


def decide(
    rows: Sequence[Ready | Fault], plan: Plan, seen: Set[int], barred: Set[bytes], known: Mapping[str, Known]
) -> Decisions:
    """Decide a batch: `seen` are digests of earlier rows, `barred` suppressed hashes, `known` readers by key."""
    done, met = Decisions(), set(seen)
    for one in rows:
        if isinstance(one, Fault):
            done.report(one.line or 0, "invalid", one.message)
        elif one.digest in met:
            done.report(
                one.row.line, "doubled", "The address stands in the file twice; the first row counts."
            )
        else:
            met.add(one.digest)
            _one(done, one, plan, known.get(one.address.key), one.hashed in barred)
    return done


def _one(done: Decisions, one: Ready, plan: Plan, who: Known | None, is_barred: bool) -> None:
    row = one.row
    if is_barred and (who is None or who.reason is None):
        done.report(row.line, "suppressed", "The address must not be mailed; see `suppressions list`.")
    elif who is not None:
        _met(done, one, plan, who)
    elif row.reason == Reason.ERASED:
        done.erased.append(one.hashed)
        done.report(
            row.line, "suppressed", "The reader was erased; only a keyed hash of the address is kept."
        )
    elif row.status == State.ENDED:
        done.fresh.append(one)
        done.counts["ended"] += 1
    elif not (plan.editions if one.slugs is None else one.slugs):
        done.report(row.line, "invalid", "The row names no edition; add an `editions` column, or --editions.")
    else:
        done.fresh.append(one)
        done.counts["new"] += 1


def _met(done: Decisions, one: Ready, plan: Plan, who: Known) -> None:
    """Leave alone who left, and an active reader's choice too, unless the plan says to update it."""
    if who.reason is not None:
        said = f"The reader is here already, and has ended ({who.reason}); only they can come back."
        done.report(one.row.line, "left", said)
    elif plan.update and (one.row.status == State.ENDED or who.state in (State.ACTIVE, State.PAUSED)):
        done.changes.append((who, one))
        done.counts["updated"] += 1
    else:
        done.report(one.row.line, "known", _as_they_are(one, who))


def _as_they_are(one: Ready, who: Known) -> str:
    if one.row.status == State.ENDED:
        return (
            f"The reader is {who.state} here, and {one.row.reason} there; --update would end them here, too."
        )
    if who.state == State.PENDING:
        return "The reader is here already and has not confirmed; only they can."
    return f"The reader is here already ({who.state}); --update would change them."
