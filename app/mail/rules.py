"""The rules that judge what servers say: their shape, and how their table is read and checked."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

_Row = Mapping[str, Any]  # as TOML gives it

REPORT = "report"
LATE = "report-dot"  # what a report says was answered after the text was seen
ALONE = "report-alone"  # a report that does not tell the stage

# Nothing a server says before RCPT can be about the reader, who was not named yet.
_BEFORE_THE_READER = frozenset({"connect", "ehlo", "auth", "mail"})
_WORD = re.compile(r"\{[a-z]+\}")
_LISTS = ("provider", "code", "enhanced", "stage", "says", "unless")
SMTP_STAGES = ("connect", "ehlo", "auth", "mail", "rcpt", "data", "body", "dot")
_KNOWN_STAGES = {*SMTP_STAGES, "smtp", REPORT, LATE, ALONE}
_ESCAPED = re.compile(r"\\.|\[[^\]]*\]")
_UNBOUNDED = re.compile(r"[*+]|\{[0-9]*,\}|\)\{|\{[0-9,]*(?:[0-9]{3}|[89][0-9])\}")


class Action(StrEnum):
    """What is done after a reply; only `suppress` and `count` ever speak against an address."""

    RETRY = "retry"
    SLOW_PROVIDER = "slow-provider"
    PAUSE_PROVIDER = "pause-provider"
    PAUSE_MAILING = "pause-mailing"
    FAIL_MESSAGE = "fail-message"
    COUNT = "count"
    SUPPRESS = "suppress"


AGAINST_THE_ADDRESS = frozenset({Action.COUNT, Action.SUPPRESS})
FINAL = AGAINST_THE_ADDRESS | {Action.FAIL_MESSAGE}


@dataclass(frozen=True, slots=True)
class Case:
    """What is to be judged: a reply or a report, taken apart."""

    code: str
    kind: str
    enhanced: str
    stages: frozenset[str]
    provider: str
    words: str


@dataclass(frozen=True, slots=True)
class Provider:
    """Who runs a group of mailboxes, by the domains of their addresses and by their MX hosts."""

    name: str
    domains: tuple[str, ...] = ()
    mx: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table: all that it names must fit, and what it leaves out fits anything."""

    name: str
    meaning: str
    action: Action
    counts: bool
    providers: tuple[str, ...]
    codes: tuple[str, ...]
    enhanced: tuple[str, ...]
    stages: tuple[str, ...]
    says: re.Pattern[str] | None
    unless: re.Pattern[str] | None

    def fits(self, case: Case) -> bool:
        """Whether the rule is about this reply."""
        if self.action in AGAINST_THE_ADDRESS and case.stages & _BEFORE_THE_READER:
            return False
        return (
            (not self.providers or case.provider in self.providers)
            and (not self.codes or case.code in self.codes or case.kind in self.codes)
            and (not self.enhanced or any(fnmatchcase(case.enhanced, one) for one in self.enhanced))
            and (not self.stages or not case.stages.isdisjoint(self.stages))
            and (self.says is None or self.says.search(case.words) is not None)
            and (self.unless is None or self.unless.search(case.words) is None)
        )


@dataclass(frozen=True, slots=True)
class Table:
    """The rules in their order, the words they use with a sentence each, and the providers by name."""

    rules: tuple[Rule, ...]
    meanings: Mapping[str, str]
    providers: Mapping[str, Provider]


def read_table(source: str) -> Table:
    """Reads a table in TOML. Raises ValueError, naming the rule and what is wrong with it."""
    raw = tomllib.loads(source)
    meanings: Mapping[str, _Row] = raw.get("meaning", {})
    providers = {name: _provider(name, row) for name, row in raw.get("provider", {}).items()}
    words = {f"{{{name}}}": pattern for name, pattern in raw.get("words", {}).items()}
    rules = tuple(_rule(_spelt_out(row, words), meanings, providers) for row in raw.get("rule", []))
    names = [rule.name for rule in rules]
    if len(set(names)) < len(names):
        raise ValueError(f"Two rules are named {next(name for name in names if names.count(name) > 1)}.")
    if not rules or set(_LISTS) & set(raw["rule"][-1]):
        raise ValueError("The last rule has to fit whatever no other does.")
    return Table(rules, {name: row["says"] for name, row in meanings.items()}, providers)


def _provider(name: str, row: _Row) -> Provider:
    if set(row) - {"domains", "mx"}:
        raise ValueError(f"Provider {name}: it has domains and mx, and nothing else.")
    return Provider(name, tuple(row.get("domains", ())), tuple(row.get("mx", ())))


def _spelt_out(row: _Row, words: Mapping[str, str]) -> dict[str, Any]:
    """The row with the words in braces put in full; what is no list is found later."""
    lists = {key: row[key] for key in ("says", "unless") if isinstance(row.get(key), list)}
    full = {
        key: [_WORD.sub(lambda word: words.get(word[0], word[0]), one) for one in lists[key]] for key in lists
    }
    return {**row, **full}


def _rule(row: _Row, meanings: Mapping[str, _Row], providers: Mapping[str, Provider]) -> Rule:
    for fault in _faults(row, meanings, providers):
        raise ValueError(f"Rule {row.get('name', 'without a name')}: {fault}.")
    return Rule(
        name=row["name"],
        meaning=row["meaning"],
        action=Action(row["action"]),
        counts=bool(meanings[row["meaning"]].get("counts", False)),
        providers=tuple(row.get("provider", ())),
        codes=tuple(str(code) for code in row.get("code", ())),
        enhanced=tuple(row.get("enhanced", ())),
        stages=tuple(row.get("stage", ())),
        says=_pattern(row.get("says", ())),
        unless=_pattern(row.get("unless", ())),
    )


def _pattern(alternatives: list[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(f"(?:{one})" for one in alternatives), re.IGNORECASE) if alternatives else None


def _faults(row: _Row, meanings: Mapping[str, _Row], providers: Mapping[str, Provider]) -> Iterator[str]:
    if not row.get("name") or set(row) - {"name", "meaning", "action", *_LISTS}:
        yield f"a rule has a name and, of {', '.join(_LISTS)}, what it needs, with a meaning and an action"
    if any(not isinstance(row.get(key, []), list) for key in _LISTS):
        yield f"{', '.join(_LISTS)} are lists"
    if row.get("meaning") not in meanings:
        yield f"the meaning {row.get('meaning')!r} is not in the list of meanings"
    if row.get("action") not in list(Action):
        yield f"{row.get('action')!r} is not an action"
    if row.get("action") in AGAINST_THE_ADDRESS and not meanings[row["meaning"]].get("counts"):
        yield f"{row['meaning']} is not about the mailbox, so it must not {row['action']}"
    if row.get("action") == Action.SUPPRESS and not {"enhanced", "says"} & set(row):
        yield "without a text or a status there is no evidence to suppress an address"
    for key, known in (("provider", set(providers)), ("stage", _KNOWN_STAGES)):
        yield from (f"{one!r} is not a {key}" for one in row.get(key, []) if one not in known)
    yield from (
        f"{one!r} is not a code such as 550 or 5xx"
        for one in row.get("code", [])
        if not re.fullmatch(r"[45](?:[0-9]{2}|xx)", str(one))
    )
    yield from (_fault_of(one) for one in (*row.get("says", []), *row.get("unless", [])) if _fault_of(one))


def _fault_of(pattern: str) -> str:
    """Why a pattern cannot be used: a reply comes from a stranger and must not cost time without end."""
    try:
        re.compile(pattern)
    except re.error as error:
        return f"the pattern {pattern!r} is not valid: {error}"
    if _WORD.search(pattern):
        return f"the pattern {pattern!r} names a list that is not among the words"
    if _UNBOUNDED.search(_ESCAPED.sub("x", pattern)):
        return f"the pattern {pattern!r} repeats without a bound of at most 79, or repeats a group"
    return ""
