"""Whether the bytes of a message keep to what every relay takes, and its subject to what readers see of it."""

import re
from collections.abc import Iterator

from app.core.errors import Fault
from app.issues.document import SUBJECT_WIDTH, width

LINE_MOST = 998  # octets, RFC 5322 §2.1.1
WORD_MOST = 75  # octets of an encoded-word, RFC 2047 §2
_WORD = re.compile(rb"=\?[^?\s]+\?[bBqQ]\?[^?\s]*\?=")
_SHOUTING = re.compile(r"[^a-z]*[A-Z][^a-z]*\s[^a-z]*")


def findings(message: bytes, subject: str) -> list[Fault]:
    """Errors in the message as it would be handed to a relay."""
    return [Fault(text, field="headers") for text in _faults(message)] + [
        Fault(text, field="subject") for text in _faults_of_subject(subject)
    ]


def warnings(subject: str, last: str | None) -> list[Fault]:
    """What is worth a look in a subject; `last` is that of the issue before."""
    return [Fault(text, field="subject") for text in _doubts(subject, last)]


def _faults(message: bytes) -> Iterator[str]:
    head = message.partition(b"\r\n\r\n")[0]
    if re.search(rb"(?<!\r)\n|\r(?!\n)", message):
        yield "A line ends in a bare LF or CR, which relays refuse or mend; this is a fault of the program."
    if any(len(line) > LINE_MOST for line in message.split(b"\r\n")):
        yield f"A line has more than {LINE_MOST} octets, which relays refuse; this is a fault of the program."
    if any(len(word) > WORD_MOST for word in _WORD.findall(head)):
        yield f"An encoded word has more than {WORD_MOST} octets; this is a fault of the program."
    unsubscribe = re.search(rb"^List-Unsubscribe:(.*(?:\r\n[ \t].*)*)", head, re.MULTILINE | re.IGNORECASE)
    if unsubscribe is None or b"=?" in unsubscribe[1]:
        yield "List-Unsubscribe is missing or encoded, so no mail program offers it; check BASE_URL."


def _faults_of_subject(subject: str) -> Iterator[str]:
    if not subject.strip() or re.search(r"[\r\n]", subject):
        yield "The subject is empty or has several lines; write another one."


def _doubts(subject: str, last: str | None) -> Iterator[str]:
    if width(subject) > SUBJECT_WIDTH:
        yield f"The subject is {width(subject):.0f} characters wide; phones show {SUBJECT_WIDTH}, so shorten it."
    if subject == last:
        yield "The last issue has the same subject, and mail programs put both into one thread; write another one."
    if _SHOUTING.fullmatch(subject):
        yield "All Latin letters of the subject are capitals, which spam filters count; write a small one."
    if re.match(r"(?:re|fwd?|回复|转发)\s*[:：]", subject, re.IGNORECASE):
        yield "The subject starts like an answer or a forwarded mail; delete that."
