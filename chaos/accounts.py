"""What is counted when a fault is over: the relay's mails against the rows, and the rows against the tallies."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from email import message_from_bytes

from chaos.place import Place
from tests.sink import Mail

STATES = (
    "owed", "in_flight", "sent", "deferred", "refused", "failed", "uncertain", "withdrawn", "suppressed", "expired",
)  # fmt: skip
# Who is in one of these states is not lost: the books say, with a reason, why there was no mail.
TOLD = {"open", "refused", "failed", "uncertain", "withdrawn", "suppressed", "expired"}


@dataclass
class Accounts:
    """What became of everybody, and each way in which it is not as promised."""

    mails: int = 0
    lost: int = 0
    foreign: int = 0
    unfounded: int = 0
    doubled: int = 0
    faults: list[str] = field(default_factory=list)


def drawn_up(place: Place, mails: Iterable[Mail], readers: Mapping[int, str]) -> Accounts:
    """Count a run: who was owed what, what is at the relay, and whether the books say the same.

    `readers` are the addresses by id, as they were before the fault.
    """
    ids, copies, found = by_reader(mails), Counter[str](), Accounts()
    bytes_of: dict[str, set[bytes]] = defaultdict(set)
    for mail, message_id in ids:
        copies[message_id] += 1
        bytes_of[message_id].add(mail.data)
    at_relay: dict[str, set[str]] = defaultdict(set)
    for mail, message_id in ids:
        at_relay[mail.recipient].add(message_id)
    due = states_by_address(place, readers)
    found.mails = len(ids)
    found.doubled = sum(copies.values()) - len(copies)
    for address in {*readers.values(), *at_relay}:
        states, has = due.get(address, Counter()), len(at_relay.get(address, ()))
        owed = sum(many for state, many in states.items() if state not in TOLD)
        found.lost += max(0, owed - has)
        found.unfounded += max(0, states["sent"] - has)
        found.foreign += max(0, has - sum(states.values()))
    if unlike := sum(len(those) > 1 for those in bytes_of.values()):
        found.faults.append(f"{unlike} doubles differ from their first")
    if still := sum(states["open"] for states in due.values()):
        found.faults.append(f"{still} are still to be sent")
    found.faults += unbalanced(place)
    return found


def by_reader(mails: Iterable[Mail]) -> list[tuple[Mail, str]]:
    """Return the mails of mailings with their Message-IDs; letters are in no mailing's books."""
    told = [(mail, str(message_from_bytes(mail.data)["Message-ID"])) for mail in mails]
    return [(mail, message_id) for mail, message_id in told if not message_id.startswith("<letter-")]


def states_by_address(place: Place, readers: Mapping[int, str]) -> dict[str, Counter[str]]:
    """Return how many rows each reader has in each state, those who were erased meanwhile too."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    is_open = "d.state IN ('owed', 'deferred', 'in_flight') AND m.state <> 'finished'"
    names = f"CASE WHEN {is_open} THEN 'open' ELSE d.state END"
    for who, state in place.rows(
        f"SELECT d.subscriber_id, {names} FROM delivery AS d JOIN mailing AS m ON m.id = d.mailing_id"
    ):
        found[readers.get(who, f"reader {who}")][state] += 1
    return found


def unbalanced(place: Place) -> list[str]:
    """Say each way in which rows, tallies, audience and `reconcile` disagree."""
    faults: list[str] = []
    sums = ", ".join(f"sum({state})" for state in STATES)
    for number, state, audience in place.rows("SELECT id, state, audience FROM mailing ORDER BY id"):
        tallies = dict(
            zip(STATES, place.rows(f"SELECT {sums} FROM tally WHERE mailing_id = {number}")[0], strict=True)
        )
        counted = dict(
            place.rows(f"SELECT state, count(*) FROM delivery WHERE mailing_id = {number} GROUP BY state")
        )
        differ = [name for name in STATES if (tallies[name] or 0) != counted.get(name, 0)]
        faults += [
            f"mailing {number}: {name} is {tallies[name]}, not {counted.get(name, 0)}" for name in differ
        ]
        if audience != sum(counted.values()):
            faults.append(f"mailing {number}: audience is {audience}, rows are {sum(counted.values())}")
        if state == "finished" and any(counted.get(name) for name in ("owed", "deferred", "in_flight")):
            faults.append(f"mailing {number} is finished with open rows")
    return faults


def reconciled(place: Place) -> list[str]:
    """Say what `broadsheet mailings reconcile` finds."""
    told = [
        place.run("mailings", "reconcile", str(number), "--json").strip()
        for (number,) in place.rows("SELECT id FROM mailing")
    ]
    return [f"reconcile: {each[:100]}" for each in told if each]
