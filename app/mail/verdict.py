"""What a reply, a report or a webhook's reason means, and what to do about it, from one table of rules."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from app.mail.outcome import Reply

_Row = Mapping[str, Any]  # as TOML gives it

TABLE = Path(__file__).with_name("verdicts.toml")
REPORT = "report"
OTHER = "other"
LIMIT = 2000  # characters of a reply that are read

# Nothing a server says before RCPT can be about the reader, who was not named yet.
_BEFORE_THE_READER = frozenset({"connect", "ehlo", "auth", "mail"})
_ADDRESS = re.compile(r"[^\s<>()\[\]\"',;:]{1,64}@[^\s<>()\[\]\"',;:]{1,255}")
_URL = re.compile(r"(https?://[^\s/?#<>\"']{1,253})[^\s<>\"']{0,500}", re.IGNORECASE)
_STATUS = re.compile(r"[245]\.[0-9]{1,3}\.[0-9]{1,3}(?![0-9.])")
_WITH_STATUS = re.compile(r"(?<![0-9.])([45][0-9]{2})[ -]{1,4}#?(?=[45]\.[0-9]{1,3}\.[0-9]{1,3}(?![0-9.]))")
_ALONE = re.compile(r"(?:^|[;:] {0,2})'?([45][0-9]{2})(?:[ -]{1,4}|: |$)")
_REPEATED = re.compile(r" [45][0-9]{2}-(?:[45]\.[0-9]{1,3}\.[0-9]{1,3} )?")
_STAGES = (
    ("dot", re.compile(r"end of data|DATA\W{1,3}command|after DATA|eom", re.IGNORECASE)),
    ("rcpt", re.compile(r"RCPT TO", re.IGNORECASE)),
    ("mail", re.compile(r"MAIL FROM(?: command|:<)", re.IGNORECASE)),
)
_COUNTRIES = re.compile(r"(?:com|(?:com?\.)?[a-z]{2})")
_WORD = re.compile(r"\{[a-z]+\}")
_LISTS = ("provider", "code", "enhanced", "stage", "says", "unless")
_KNOWN_STAGES = _BEFORE_THE_READER | {"rcpt", "data", "body", "dot", "smtp", REPORT}
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
_FINAL = AGAINST_THE_ADDRESS | {Action.FAIL_MESSAGE}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reply means, in a word of the table, and what to do; `rule` is the rule that said so.

    `counts`: where it is the last word on a mail (a report of failure, tries used up), it may count as
    one soft bounce. It is False for all that is about us, our pace, our reputation or our text.
    """

    meaning: str
    action: Action
    rule: str
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Provider:
    """Who runs a group of mailboxes. `connections` at once and mails `per_connection`; None is not known."""

    name: str
    connections: int | None = None
    per_connection: int | None = None
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

    def fits(self, case: "_Case") -> bool:
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


@dataclass(frozen=True, slots=True)
class _Case:
    code: str
    kind: str
    enhanced: str
    stages: frozenset[str]
    provider: str
    words: str


def judge(reply: Reply, stage: str, provider: str = "", status: str = "") -> Verdict:
    """What a reply means and what to do; the first rule that fits decides.

    `stage` is connect, ehlo, auth, mail, rcpt, data, body or dot, or "report" (also "") for what came back
    later by mail or webhook. `provider` is a name from `provider_of`. `status` is a report's own status code,
    used where the reply has none or only x.0.0. A report without a reply is Reply(0, its words).
    A temporary reply (4xx, RFC 5321 §4.2.1) never fails, counts or suppresses by itself: it is tried again.
    """
    case = _case(reply, stage, provider, status)
    rule = next(one for one in table().rules if one.fits(case))
    action = Action.RETRY if case.kind == "4xx" and rule.action in _FINAL else rule.action
    return Verdict(rule.meaning, action, rule.name, rule.counts)


def reply_in(words: str) -> Reply:
    """The SMTP reply in a Diagnostic-Code or a webhook's reason ("smtp; 550 5.1.1 …", "host x said: 550 …").

    Code 0 where there is none: then the words are all there is (RFC 3464 §2.3.6).
    """
    line = " ".join(words[:LIMIT].split())
    found = _WITH_STATUS.search(line) or _ALONE.search(line)
    if found is None:
        return Reply(0, line)
    return Reply(int(found[1]), _REPEATED.sub(" ", line[found.end() :]))


def stage_in(words: str) -> str:
    """The stage a report names in words, such as "in reply to end of DATA command"; "report" without one."""
    return next((stage for stage, pattern in _STAGES if pattern.search(words[:LIMIT])), REPORT)


def provider_of(domain_or_mx: str) -> str:
    """The provider of an address, its domain or its MX host, as the presets know it; else "other".

    The longest MX suffix wins, so a provider's part with a door of its own can have its own name.
    """
    host = domain_or_mx.rpartition("@")[2].strip().rstrip(".").lower()
    known = table().providers.values()
    for one in known:
        if any(_is_domain(host, domain) for domain in one.domains):
            return one.name
    ends = [(len(mx), one.name) for one in known for mx in one.mx if f".{host}".endswith(f".{mx}")]
    return max(ends, default=(0, OTHER))[1]


def provider(name: str) -> Provider:
    """The limits of a provider; nothing is known of one that the presets do not hold."""
    return table().providers.get(name) or Provider(name)


@cache
def table() -> Table:
    """The table that comes with the program. Raises ValueError, naming the rule, where it is not sound."""
    return read_table(TABLE.read_text(encoding="utf-8"))


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


def _case(reply: Reply, stage: str, provider: str, status: str) -> _Case:
    stated = _STATUS.match(status.strip())
    enhanced = reply.enhanced or ""
    if stated and (not enhanced or enhanced.endswith(".0.0")):
        enhanced = stated[0]
    first = str(reply.code)[0] if 400 <= reply.code <= 599 else enhanced[:1]
    stages = frozenset({stage, "smtp"} if stage not in ("", REPORT) else {REPORT})
    return _Case(str(reply.code), f"{first}xx", enhanced, stages, provider, _words(reply.text))


def _words(text: str) -> str:
    """The text to be judged: without addresses and paths, which others have chosen the words of."""
    line = " ".join(text[:LIMIT].replace("’", "'").split())
    return _ADDRESS.sub("@", _URL.sub(r"\1", line))


def _is_domain(host: str, known: str) -> bool:
    stem, star, _ = known.partition("*")
    return host == known or (
        star != "" and host.startswith(stem) and bool(_COUNTRIES.fullmatch(host, len(stem)))
    )


def _provider(name: str, row: _Row) -> Provider:
    if set(row) - {"connections", "per_connection", "domains", "mx"}:
        raise ValueError(
            f"Provider {name}: it has connections, per_connection, domains and mx, and nothing else."
        )
    limits = (row.get("connections"), row.get("per_connection"))
    if any(limit is not None and (not isinstance(limit, int) or limit < 1) for limit in limits):
        raise ValueError(f"Provider {name}: a limit is a number above 0.")
    return Provider(name, *limits, tuple(row.get("domains", ())), tuple(row.get("mx", ())))


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
