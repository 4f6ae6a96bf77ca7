"""The fields of a delivery status (RFC 3464 §2), wherever in a mail they stand and however they are ordered."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

RECIPIENTS = 50  # one mail may name; we write one to each reader, so this is plenty
_FIELD = re.compile(r"[>*|\s]{0,4}([A-Za-z][A-Za-z-]{3,40}):[ \t]{0,9}(.{0,2000})")
_SIGNS = (
    r"\s<>()\[\];,:\"'@：；，、。（）《》＜＞【】“”‘’「」"  # that part an address from the words around it
)
_ADDRESS = re.compile(rf"<?([^{_SIGNS}]{{1,64}}@[^{_SIGNS}]{{1,255}}[^{_SIGNS}.])>?")
_QUOTED = re.compile(r"(\"[^\"\r\n]{1,62}\"@[A-Za-z0-9.-]{1,253})")
_TYPED = re.compile(r"[A-Za-z0-9-]{1,20} {0,2}; {0,9}")
_OF_A_RECIPIENT = frozenset(
    {
        "original-recipient",
        "final-recipient",
        "x-actual-recipient",
        "action",
        "status",
        "diagnostic-code",
        "remote-mta",
        "last-attempt-date",
        "will-retry-until",
    }
)
_OF_THE_MAIL = frozenset(
    {"reporting-mta", "arrival-date", "x-postfix-queue-id", "x-postfix-sender", "original-envelope-id"}
)


@dataclass(frozen=True, slots=True)
class Group:
    """What a delivery status says of one recipient; words as they stand, empty where it says nothing."""

    address: str | None
    action: str
    status: str
    diagnostic: str
    remote: str
    when: str


@dataclass(frozen=True, slots=True)
class Status:
    """A delivery status: what it says of the mail, and of each recipient."""

    mail: Mapping[str, str]
    groups: tuple[Group, ...]


def read(text: str) -> Status:
    """The status in a text. Blank lines part recipients where a recipient is complete, else fields that repeat."""
    mail: dict[str, str] = {}
    groups: list[dict[str, str]] = [{}]
    for name, value in _fields(text):
        last = groups[-1]
        if not name:
            if {"original-recipient", "final-recipient"} & set(last) and {"action", "status"} & set(last):
                groups.append({})
        elif name in _OF_THE_MAIL:
            mail.setdefault(name, value)
        elif name in last and name in ("final-recipient", "original-recipient", "action", "status"):
            groups.append({name: value})
        else:
            last.setdefault(name, value)
        if len(groups) > RECIPIENTS:
            break
    return Status(mail, tuple(_group(one) for one in groups[:RECIPIENTS] if _is_whole(one)))


def address_in(words: str) -> str | None:
    """The first mail address in the words; None without one. At most 64 characters stand before its @."""
    found = _QUOTED.search(words[:2000]) if '"@' in words else None
    found = found or _ADDRESS.search(words[:2000])
    return found[1] if found else None


def _fields(text: str) -> Iterator[tuple[str, str]]:
    """Names in lower case with their unfolded values; ("", "") where a blank line parts two groups."""
    name, value = "", ""
    for line in text.splitlines():
        found = _FIELD.match(line)
        known = found is not None and found[1].lower() in _OF_A_RECIPIENT | _OF_THE_MAIL
        if found is not None and known:
            if name:
                yield name, value
            name, value = found[1].lower(), found[2].strip()
        elif name and line[:1] in (" ", "\t") and line.strip():
            value = f"{value} {line.strip()}"[:2000]
        else:
            if name:
                yield name, value
                name = ""
            if not line.strip():
                yield "", ""
    if name:
        yield name, value


def _is_whole(fields: Mapping[str, str]) -> bool:
    named = {"original-recipient", "final-recipient", "x-actual-recipient"} & set(fields)
    return bool(named and {"action", "status", "diagnostic-code"} & set(fields))


def _group(fields: Mapping[str, str]) -> Group:
    named = (fields.get(one, "") for one in ("final-recipient", "original-recipient", "x-actual-recipient"))
    return Group(
        address=next(filter(None, map(address_in, named)), None),
        action=fields.get("action", "").partition(" ")[0].strip("(); ").lower(),
        status=fields.get("status", ""),
        diagnostic=_TYPED.sub("", fields.get("diagnostic-code", ""), count=1),
        remote=_TYPED.sub("", fields.get("remote-mta", ""), count=1).partition(" ")[0],
        when=fields.get("last-attempt-date", ""),
    )
