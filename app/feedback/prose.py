"""Bounces told in prose: who is meant, and what the server said, for mail systems that follow no standard."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.feedback.fields import address_in

LINES = 600
STATEMENTS = 24
_LONG = 1_000  # characters of a line that are read
_ADDRESSES = 20

# Where a bounce stops speaking and the mail that came back begins.
_COPY = re.compile(
    r"[\W_]{0,80}(?:"
    r"(?:below )?this (?:line )?is (?:a|the) (?:copy|header|first part)|(?:below|here) is (?:a |the )?(?:copy|original)"
    r"|(?:the )?(?:original|returned|unsent|bounced|rejected|undelivered) (?:message|mail|e-?mail)\W{0,80}$"
    r"|(?:the )?(?:original|returned|unsent|bounced|undelivered|your) (?:message|mail|e-?mail)"
    r"(?: text| headers?| body)? ?(?:follows?|is (?:below|attached|included)|below|headers?)"
    r"|(?:message|mail) (?:text|headers?|body) ?(?:follows?)?\W{0,80}$"
    r"|(?:a )?copy of (?:the|your) (?:original |message)"
    r"|(?:first|start) .{0,20}of (?:the )?(?:original )?(?:message|mail) "
    r"|(?:received: (?:from|by|\()|return-path: ?<))",
    re.IGNORECASE,
)
_LEADS = re.compile(r"[\s>*\"'(\[<_-]{0,20}(?:smtp:|rfc822;|to:)? {0,3}<?[^\s<>()\[\];,:\"']{1,64}@")
_TELLS = re.compile(
    r"deliver|unknown|recipient|rcpt|fail|mail ?box|reach|reject|quota|full\b|not found|addressed|exceed|user|could"
    r"|wasn.t|does ?n.t|error|invalid|time|name server|defer|refused|\bTo\W|宛|ユーザ"
    r"|无法|無法|失败|失敗|退|收\s?件\s?(?:人|者)|수신|받는",
    re.IGNORECASE,
)
_OFFICE = re.compile(
    r"(?:mailer.?daemon|post ?master|abuse|support|help ?desk|no.?reply|do.?not.?reply|info|admin)@",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"\b(?:try|forward to|use|write to|mail to|contact|moved to|changed to):? {0,2}<?$", re.IGNORECASE
)
# A talk with a server, as it stands in a bounce: at times each line begins with its date and time.
_WHEN = r"\s{0,8}(?:[\w:., /\[\]+-]{0,40}: {1,3})?"
_COMMAND = re.compile(rf"{_WHEN}(?:>>>|-->|Sent (?:<<<|>>>)) {{0,3}}(.{{1,200}})", re.IGNORECASE)
_ANSWER = re.compile(
    rf"{_WHEN}(?:<<<|<--|Received (?:<<<|>>>)) {{0,3}}([245][0-9]{{2}}[ -].{{0,900}})", re.IGNORECASE
)
_TALK = re.compile(r"\W{0,8}while talking to ")
_NEW_REPLY = re.compile(r"\s{0,8}[45][0-9]{2}[ -]")
_REASON = re.compile(r"\(reason: (.{1,900})\)?", re.IGNORECASE)
_CODE = re.compile(r"(?<![0-9.])[45][0-9]{2}(?![0-9.])")
# Sendmail's own words after any refusal of that kind: what the server answered stands above them.
_SUMMARY = re.compile(
    r"[45][0-9]{2} (?:[45]\.[0-9]{1,3}\.[0-9]{1,3} )?<?[^\s<>]{1,320}>?\.\.\. (?:user unknown|service unavailable"
    r"|remote protocol error|data format error)$",
    re.IGNORECASE,
)
# What mail systems say on every bounce. It would be mistaken for the reason.
_CHATTER = re.compile(
    r"this (?:message|is an? (?:message|e-?mail|auto\w{1,12}))[^.:]{0,60}(?:auto|generated|warning)[^.:]{0,90}[.:]?"
    r"|(?:a|the|your) (?:message|mail)(?: that)? (?:you(?: have)? sent )?[^.:]{0,60}"
    r"(?:to (?:one or more|all|any) of its recipients|following (?:recipient|address)[^.:]{0,30})[.:]?"
    r"|this is a permanent (?:error|failure)|(?:i'm|i am) (?:afraid|sorry)[^.:]{0,120}[.:]|i.ve given up"
    r"|sorry it did ?n.t work out|the following address[^.:]{0,60}[.:]"
    r"|no further (?:delivery )?attempts will be made|for further assistance[^.]{0,80}\."
    r"|delivery to the following recipients?[^.:]{0,40}[.:]|technical details of [a-z]{1,12} failure"
    r"|hi\. this is the [^.]{0,200}program at [^\s]{0,100}\.|mail delivery (?:system|subsystem)"
    r"|giving up on [0-9a-f.:\[\]]{3,60}"
    r"|google tried to deliver your message, but it was rejected by (?:the server for )?the recipient domain"
    r"|please (?:do not|don.t) reply[^.]{0,80}\.?|if you do so, please[^.]{0,80}\.|content filter at",
    re.IGNORECASE,
)


def parted(text: str) -> tuple[str, str]:
    """What is said about the mail, and what follows it: the mail that came back, if the text holds it."""
    lines = text.split("\n")
    for number, line in enumerate(lines[:LINES]):
        if line.strip() and _COPY.match(line[:_LONG]):
            return "\n".join(lines[:number]), "\n".join(lines[number:])
    return "\n".join(lines[:LINES]), ""


def recipients(said: str, not_these: frozenset[str]) -> list[str]:
    """The addresses the text speaks of: those that lead a line, else those in a line of failure, else all."""
    leading: list[str] = []
    telling: list[str] = []
    others: list[str] = []
    for line in said.split("\n"):
        found = address_in(line[:_LONG]) if "@" in line[:_LONG] else None
        if found is None or found.lower() in not_these or _OFFICE.match(found):
            continue
        if _ELSEWHERE.search(line[: line.find(found)][-60:]):
            continue
        if _LEADS.match(line):
            leading.append(found)
        elif _TELLS.search(line[:_LONG]):
            telling.append(found)
        else:
            others.append(found)
    chosen = {one.lower(): one for one in reversed(leading or telling or others)}
    return list(reversed(chosen.values()))[:_ADDRESSES]


def statements(said: str, address: str | None, others: Sequence[str] = ()) -> list[str]:
    """What is said of one recipient, the most telling first: a server's replies, lines with a code, other words.

    A line that names another recipient ends what is said of this one. Where too little is said beside the
    address itself (a list of addresses, then the reasons), what is said of nobody else follows.
    """
    lines = said.split("\n")
    rest = [one.lower() for one in others if address and one.lower() != address.lower()]
    own = _told(_about(lines, address.lower(), rest), address) if address else _Told([], [])
    if rest and (own.coded or own.plain):
        return [*own.coded, *own.plain][:STATEMENTS]
    shared = _told(lines, address)
    return list(dict.fromkeys([*own.coded, *shared.coded, *own.plain, *shared.plain]))[:STATEMENTS]


@dataclass(frozen=True, slots=True)
class _Told:
    coded: list[str]
    plain: list[str]


def _told(lines: Sequence[str], address: str | None) -> _Told:
    paragraphs = [_calm(one) for one in _paragraphs(lines)]
    paragraphs = [one for one in paragraphs if _has_words(one, address)]
    answers = list(_answers(lines))
    paragraphs = [one for one in paragraphs if not (answers and _SUMMARY.match(one))]
    coded = [one for one in paragraphs if _CODE.search(one)]
    return _Told([*answers, *coded], list(_joined([one for one in paragraphs if one not in coded])))


def _about(lines: Sequence[str], meant: str, rest: Sequence[str]) -> list[str]:
    """The lines on one recipient. A talk with a server is about whom it names next."""
    own: list[str] = []
    talk: list[str] = []
    inside = False
    for line in lines:
        low = line[:_LONG].lower()
        if rest and _TALK.match(low):
            inside, talk = False, [line]
            continue
        if meant in low and not inside:
            inside, own, talk = True, [*own, "", *talk], []
        elif meant not in low and any(other in low for other in rest):
            inside, talk = False, []
        if inside:
            own.append(line)
        elif talk:
            talk.append(line)
    return own


def _answers(lines: Sequence[str]) -> Iterator[str]:
    """The replies in a transcript, each with the command it answers."""
    command, answer = "", ""
    for line in [*lines, ""]:
        reason, said, asked = _REASON.search(line[:_LONG]), _ANSWER.match(line), _COMMAND.match(line)
        if said is not None and said[1][0] != "2":
            answer = f"{answer} {said[1]}".strip()
            continue
        if answer:
            yield f"{answer} (in reply to {command} command)" if command else answer
            answer = ""
        if asked is not None:
            command = " ".join(asked[1].split(":")[0].split()[:2])
        if reason is not None:
            yield reason[1].rstrip(") ")


def _paragraphs(lines: Sequence[str]) -> Iterator[str]:
    gathered: list[str] = []
    for line in [*lines, ""]:
        if gathered and _NEW_REPLY.match(line) and f"{line.strip()[:3]}-" != gathered[-1][:4]:
            yield " ".join(gathered)
            gathered = []
        if line.strip() and not _ANSWER.match(line) and not _COMMAND.match(line):
            gathered.append(line.strip()[:_LONG])
        elif gathered:
            yield " ".join(gathered)
            gathered = []


def _joined(paragraphs: Sequence[str]) -> Iterator[str]:
    """Each paragraph by itself, and the one that ends with a colon together with the next."""
    held = ""
    for paragraph in paragraphs:
        yield f"{held} {paragraph}".strip() if held else paragraph
        held = paragraph if paragraph.endswith(":") else ""


def _calm(words: str) -> str:
    return " ".join(_CHATTER.sub(" ", words).split())


def _has_words(words: str, address: str | None) -> bool:
    """Whether there is more than the address and its brackets."""
    left = words.replace(address or "\0", "")
    return bool(re.search(r"[^\W_]{3}", left))
