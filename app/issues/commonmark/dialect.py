"""The CommonMark that is read here: a parser with two rules of its own, for Chinese text and for bare URLs."""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Delimiter
from markdown_it.token import Token

# RFC 3986 §2 without the brackets, which belong to the text around a bare URL.
_URL = re.compile(r"://[A-Za-z0-9\-._~:/?#@!$&'()*+,;=%]+")
_SCHEME = re.compile(r"(?<![A-Za-z0-9.+-])https?$", re.IGNORECASE)


class _Dialect(MarkdownIt):
    """Leaves URLs as they are written: what is wrong with one is said, not mended."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802
        return url

    def normalizeLinkText(self, link: str) -> str:  # noqa: N802
        return link

    def validateLink(self, url: str) -> bool:  # noqa: ARG002, N802
        return True


def tokens_of(text: str) -> tuple[Sequence[Token], dict[str, Any]]:
    """The tokens of a text, and its link definitions: `references` by label, and `duplicate_refs`."""
    environment: dict[str, Any] = {}
    return _parser().parse(text, environment), environment


@cache
def _parser() -> MarkdownIt:
    # Tables, strikethrough and HTML are recognised in order to be refused with a word of their own.
    parser = _Dialect("commonmark").enable(["table", "strikethrough"])
    parser.inline.ruler.at("emphasis", _emphasis)
    parser.inline.ruler.before("autolink", "bare_url", _bare_url)
    return parser


def flanking(before: str, after: str, marker: str) -> tuple[bool, bool]:
    """Whether a run of `*` or `_` between two characters can open, and can close, emphasis.

    CommonMark 0.31 §6.2 asks for a space outside `**重点。**`, which Chinese does not write. So, as the draft
    “CommonMark CJK-friendly” has it, punctuation bars a side only where it is not East Asian, and a wide character
    counts as punctuation where that helps. The start and the end of a line are spaces.
    """
    spaces = before.isspace(), after.isspace()
    marks = _is_mark(before), _is_mark(after)
    wide = _is_wide(before), _is_wide(after)
    left = not spaces[1] and (not marks[1] or wide[1] or spaces[0] or marks[0] or wide[0])
    right = not spaces[0] and (not marks[0] or wide[0] or spaces[1] or marks[1] or wide[1])
    if marker == "*":
        return left, right
    return left and (not right or marks[0]), right and (not left or marks[1])


def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] in "PS"


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"


def _emphasis(state: StateInline, silent: bool) -> bool:
    """Take a run of * or _ as delimiters, each by itself, as markdown-it pairs them later."""
    marker, end = state.src[state.pos], state.pos
    if silent or marker not in "*_":
        return False
    while end < state.posMax and state.src[end] == marker:
        end += 1
    before = state.src[state.pos - 1] if state.pos else " "
    after = state.src[end] if end < state.posMax else " "
    opens, closes = flanking(before, after, marker)
    length = end - state.pos
    for _ in range(length):
        state.push("text", "", 0).content = marker
        state.delimiters.append(
            Delimiter(
                marker=ord(marker),
                length=length,
                token=len(state.tokens) - 1,
                end=-1,
                open=opens,
                close=closes,
            )
        )
    state.pos = end
    return True


def _bare_url(state: StateInline, silent: bool) -> bool:
    """Take `https://…` as a link: up to what no URL holds, less the punctuation and brackets of the sentence."""
    if silent or state.linkLevel or state.src[state.pos] != ":":
        return False
    scheme = _SCHEME.search(state.src[max(0, state.pos - 6) : state.pos])
    rest = _URL.match(state.src, state.pos, state.posMax)
    if not scheme or not rest or not state.pending.endswith(scheme[0]):
        return False
    url = _trimmed(scheme[0] + rest[0])
    if len(url) <= len(scheme[0] + "://"):
        return False
    state.pending = state.pending[: -len(scheme[0])]
    state.push("link_open", "a", 1).attrs = {"href": url}
    state.push("text", "", 0).content = url
    state.push("link_close", "a", -1)
    state.pos += len(url) - len(scheme[0])
    return True


def _trimmed(url: str) -> str:
    end = len(url)
    surplus = url.count(")") - url.count("(")
    while url[end - 1] in ".,;:!?'*_" or (url[end - 1] == ")" and surplus > 0):
        surplus -= url[end - 1] == ")"
        end -= 1
    return url[:end]
