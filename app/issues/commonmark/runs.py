"""The inside of a paragraph: its tokens become runs of words, and what cannot be one is named with its line."""

import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from markdown_it.token import Token

from app.core.errors import Fault
from app.issues import prose
from app.issues.blocks import Image, Mark, Passage, Run, paragraph
from app.issues.lines import LINE, PADDING, URL, short

_MARKS = {
    "strong_open": Mark.STRONG,
    "strong_close": Mark.STRONG,
    "em_open": Mark.EM,
    "em_close": Mark.EM,
}
_REFUSED = {
    "hardbreak": "a forced line break; begin a new paragraph, or join the lines",
    "html_inline": "raw HTML, “{content}”; write Markdown, or `code` to show it",
    "s_open": "struck-out words; delete them",
}
_PICTURES = (".png", ".jpg", ".jpeg", ".gif")


class _Runs:
    """Gathers the runs of one paragraph while its tokens go by."""

    def __init__(self, line: int, faults: list[Fault]) -> None:
        self.line, self.faults = line, faults
        self.found: list[Run] = []
        self.marks: list[Mark] = []
        self.url: str | None = None
        self.broken = False  # a line has ended, and whether a space belongs there is not known yet

    def complain(self, message: str) -> None:
        """Note a fault on the line that is read."""
        self.faults.append(Fault(message, line=self.line))

    def take(self, token: Token) -> None:
        """Take the next token."""
        match token.type:
            case "text" | "code_inline":
                self._add(token.content, [Mark.CODE] if token.type == "code_inline" else [])
            case "softbreak":
                self.broken, self.line = True, self.line + 1
            case "strong_open" | "em_open":
                self.marks.append(_MARKS[token.type])
            case "strong_close" | "em_close":
                self.marks.remove(_MARKS[token.type])
            case "link_open":
                self._open(token)
            case "link_close":
                self._close()
            case "image":
                self.complain("an image within a paragraph; put it in a paragraph of its own")
            case other if other in _REFUSED:
                self.complain(_REFUSED[other].format(content=short(token.content)))
                self.line += other == "hardbreak"

    def _add(self, text: str, marks: Sequence[Mark]) -> None:
        if not text:
            return
        if self.broken and self.found and not _joins(self.found[-1].text[-1:] + text[0]):
            before = self.found[-1]
            shared = self.url if self.url == before.url else None
            self.found.append(Run(" ", before.marks & frozenset(self.marks), shared))
        self.broken = False
        self.found.append(Run(text, frozenset([*self.marks, *marks]), self.url))

    def _open(self, token: Token) -> None:
        self.url = str(token.attrs.get("href", ""))
        self.start = len(self.found)
        if complaint := complaint_about_link(self.url):
            self.complain(complaint)
        if token.attrs.get("title"):
            self.complain(f"the link “{short(self.url)}” has a title, which no mail shows; delete it")

    def _close(self) -> None:
        if not "".join(run.text for run in self.found[self.start :]).strip(PADDING):
            self.complain(f"the link to “{short(self.url or '')}” has no words; write some between [ and ]")
        self.url = None


def read(token: Token, line: int, faults: list[Fault]) -> str | Passage | Image:
    """The paragraph of an inline token that starts on a line; faults are added to the list."""
    children = token.children or []
    if len(children) == 1 and children[0].type == "image":
        return _image(children[0], line, faults)
    gathered, before = _Runs(line, faults), len(faults)
    for child in children:
        gathered.take(child)
    read = paragraph(_stripped([replace(run, text=_normal(run.text)) for run in gathered.found]))
    words = read.text if isinstance(read, Passage) else read
    if len(faults) == before and (complaint := complaint_about_words(words)):
        faults.append(Fault(complaint, line=line))
    return read


def complaint_about_words(text: str) -> str | None:
    """What is wrong with the words of a paragraph or a title; None if nothing is."""
    if len(text) > LINE:
        return f"the paragraph has {len(text):,} characters; {LINE:,} are the most, so divide it"
    if complaint := prose.complaint_about_characters(text) or prose.complaint_about_dates(text):
        return complaint
    return None if prose.has_word(text) else f"“{short(text)}” holds no word; delete it or write one"


def complaint_about_link(url: str) -> str | None:
    """What keeps a URL from being a link; None if a reader can follow it."""
    if not url.lower().startswith(("http://", "https://")):
        return f"“{short(url)}” is no web address; write the whole URL with its https://"
    if len(url) > URL:
        return f"the URL has {len(url):,} characters; {URL:,} are the most"
    return prose.complaint_about_source(url)


def _image(token: Token, line: int, faults: list[Fault]) -> Image:
    url = str(token.attrs.get("src", ""))
    alt = _normal(" ".join(child.content for child in token.children or [] if child.content)).strip(PADDING)
    path = url.partition("?")[0].partition("#")[0].lower()
    complaints = [
        complaint_about_link(url),
        None if url.lower().startswith("https://") else "an image is fetched over https://; correct its URL",
        None if path.endswith(_PICTURES) else "mail shows PNG, JPEG and GIF; the URL ends in another name",
        complaint_about_words(alt) if alt else "an image without words; say between [ and ] what it shows",
        "the image has a title, which no mail shows; delete it" if token.attrs.get("title") else None,
    ]
    faults += [Fault(complaint, line=line) for complaint in complaints if complaint]
    return Image(url, alt)


def _stripped(runs: list[Run]) -> list[Run]:
    """The runs without the blanks that the paragraph starts and ends with."""
    while runs and not (text := runs[0].text.lstrip(PADDING)):
        del runs[0]
    if runs:
        runs[0] = replace(runs[0], text=text)
    while runs and not (text := runs[-1].text.rstrip(PADDING)):
        del runs[-1]
    if runs:
        runs[-1] = replace(runs[-1], text=text)
    return runs


def _normal(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _joins(pair: str) -> bool:
    """Whether two characters around a line's end stand side by side: Chinese is written without spaces."""
    return all(unicodedata.east_asian_width(char) in "WF" for char in pair)
