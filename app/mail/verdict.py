"""What a reply, a report or a webhook's reason means, and what to do about it, from one table of rules."""

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from app.mail.outcome import Reply
from app.mail.rules import (
    AGAINST_THE_ADDRESS,
    ALONE,
    FINAL,
    REPORT,
    Action,
    Case,
    Table,
    read_table,
)

__all__ = [
    "AGAINST_THE_ADDRESS",
    "ENOUGH",
    "REPORT",
    "VAGUE",
    "Action",
    "Verdict",
    "judge",
    "judge_report",
    "provider_of",
    "read_table",
    "reply_in",
    "stage_in",
    "table",
]

TABLE = Path(__file__).with_name("verdicts.toml")
OTHER = "other"
ENOUGH = "per-connection-limit"  # the meaning that is about a connection, and not about this mail
VAGUE = frozenset({"refused", "no-reason", "temporary"})  # meanings that give no reason
LIMIT = 2000  # characters of a reply that are read

_ADDRESS = re.compile(r"[^\s<>()\[\]\"',;:]{1,64}@[^\s<>()\[\]\"',;:]{1,255}")
_URL = re.compile(r"(https?://[^\s/?#<>\"']{1,253})[^\s<>\"']{0,500}", re.IGNORECASE)
_STATUS = re.compile(r"[245]\.[0-9]{1,3}\.[0-9]{1,3}(?![0-9.])")
_WITH_STATUS = re.compile(r"(?<![0-9.])([45][0-9]{2})[ -]{1,4}#?(?=[45]\.[0-9]{1,3}\.[0-9]{1,3}(?![0-9.]))")
_ALONE = re.compile(
    r"(?:^|[;:=\[({\"'] {0,2}|[\])>],? |<<< |\b(?:said|error|code|status|returned|with) {1,2}:?)"
    r"['\"]?([45][0-9]{2})(?:[ -]{1,4}|[:,;\])] ?|$)",
    re.IGNORECASE,
)
_CODED = re.compile(
    r"error.?code ?[:=] ?([45][0-9]{2}),? {1,2}error.?code ?[:=] ?(?=[45]\.[0-9]\.)", re.IGNORECASE
)
_REPEATED = re.compile(r" [45][0-9]{2}-(?:[45]\.[0-9]{1,3}\.[0-9]{1,3} )?")
_STAGES = tuple(
    (stage, re.compile(pattern, re.IGNORECASE))
    for stage, pattern in (
        (
            "dot",
            r"end of data|DATA\W{1,3}command|after DATA|>>> DATA|\beom\b|after I sent the message|\[BODY\]",
        ),
        ("rcpt", r"RCPT.?TO|RCPT\W{1,3}command|after RCPT|does not like recipient"),
        (
            "mail",
            r"MAIL FROM(?: command|:<)|(?:after|our) MAIL(?: FROM|\W{1,3}command)|\[MAIL_FROM|sender was rejected",
        ),
        ("ehlo", r"(?:reply to|response to|after|our) (?:EHLO|HELO)|\[[EH][HE]LO\]"),
        ("connect", r"after initial connection|while receiving the initial|greeting failed|\[CONNECT\]"),
    )
)
_COUNTRIES = re.compile(r"(?:com|(?:com?\.)?[a-z]{2})")


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


def judge(reply: Reply, stage: str, provider: str = "", status: str = "") -> Verdict:
    """What a reply means and what to do; the first rule that fits decides.

    `stage` is connect, ehlo, auth, mail, rcpt, data, body or dot, or "report" (also "") for what came back
    later by mail or webhook. `provider` is a name from `provider_of`. `status` is a report's own status code,
    used where the reply has none or only x.0.0. A report without a reply is Reply(0, its words).
    A temporary reply (4xx, RFC 5321 §4.2.1) never fails, counts or suppresses by itself: it is tried again.
    """
    stages = {REPORT, ALONE} if stage in ("", REPORT) else {stage, "smtp"}
    return _judged(_case(reply, frozenset(stages), provider, status))


def judge_report(words: str, provider: str = "", status: str = "") -> Verdict:
    """What a Diagnostic-Code, a webhook's reason or other words of a report mean, and what to do.

    The reply and the stage are looked for in the words. `status` is the report's own, as for `judge`. Where a
    connection was lost before a word was said, no server has spoken of us. Where the reply gives no reason, the
    words before it may.
    """
    reply, stage = reply_in(words), stage_in(words)
    if not reply.code and stage in ("connect", "ehlo"):
        stage = REPORT
    stages = frozenset({REPORT, ALONE} if stage == REPORT else {REPORT, stage, f"{REPORT}-{stage}"})
    found = _judged(_case(reply, stages, provider, status))
    if found.meaning not in VAGUE or not reply.code:
        return found
    before = _judged(_case(Reply(0, _before_the_reply(words)), stages, provider, status))
    return found if before.meaning in VAGUE else before


def _judged(case: Case) -> Verdict:
    rule = next(one for one in table().rules if one.fits(case))
    action = Action.RETRY if case.kind == "4xx" and rule.action in FINAL else rule.action
    return Verdict(rule.meaning, action, rule.name, rule.counts)


def reply_in(words: str) -> Reply:
    """The SMTP reply in a Diagnostic-Code or a webhook's reason ("smtp; 550 5.1.1 …", "host x said: 550 …").

    Code 0 where there is none: then the words are all there is (RFC 3464 §2.3.6).
    """
    line = " ".join(words[:LIMIT].split())
    found = _code_in(line)
    if found is None:
        return Reply(0, line)
    text = _REPEATED.sub(" ", line[found.end() :])
    return Reply(int(found[1]), text.removeprefix(f"{found[1]} "))


def _code_in(line: str) -> re.Match[str] | None:
    return _WITH_STATUS.search(line) or _CODED.search(line) or _ALONE.search(line)


def _before_the_reply(words: str) -> str:
    line = " ".join(words[:LIMIT].split())
    found = _code_in(line)
    return line[: found.start()] if found else ""


def stage_in(words: str) -> str:
    """The stage a report names in words, such as "in reply to end of DATA command"; "report" without one."""
    return next((stage for stage, pattern in _STAGES if pattern.search(words[:LIMIT])), REPORT)


def provider_of(domain_or_mx: str, unknown: str = OTHER) -> str:
    """The provider of an address, its domain or its MX host, as the presets know it; else `unknown`.

    The longest MX suffix wins, so a provider's part with a door of its own can have its own name.
    """
    return _provider_of(domain_or_mx.rpartition("@")[2].strip().rstrip(".").lower()) or unknown


@lru_cache(maxsize=4096)
def _provider_of(host: str) -> str:
    known = table().providers.values()
    for one in known:
        if any(_is_domain(host, domain) for domain in one.domains):
            return one.name
    ends = [(len(mx), one.name) for one in known for mx in one.mx if f".{host}".endswith(f".{mx}")]
    return max(ends, default=(0, ""))[1]


@cache
def table() -> Table:
    """The table that comes with the program. Raises ValueError, naming the rule, where it is not sound."""
    return read_table(TABLE.read_text(encoding="utf-8"))


def _case(reply: Reply, stages: frozenset[str], provider: str, status: str) -> Case:
    stated = _STATUS.search(status[:LIMIT])
    enhanced = reply.enhanced or ""
    if stated and (not enhanced or enhanced.endswith(".0.0")):
        enhanced = stated[0]
    first = str(reply.code)[0] if 400 <= reply.code <= 599 else enhanced[:1]
    return Case(str(reply.code), f"{first}xx", enhanced, stages, provider, _words(reply.text))


def _words(text: str) -> str:
    """The text to be judged: without addresses and paths, which others have chosen the words of."""
    line = " ".join(text[:LIMIT].replace("’", "'").split())
    return _ADDRESS.sub("@", _URL.sub(r"\1", line))


def _is_domain(host: str, known: str) -> bool:
    stem, star, _ = known.partition("*")
    return host == known or (
        star != "" and host.startswith(stem) and bool(_COUNTRIES.fullmatch(host, len(stem)))
    )
