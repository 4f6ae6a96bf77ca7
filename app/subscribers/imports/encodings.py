"""Bytes that become UTF-8: a byte order mark decides, then what the whole file can be; else it is refused."""

import codecs
from collections.abc import Iterator
from typing import BinaryIO

from app.core.errors import Fault
from app.subscribers.imports.candidate import Unreadable

CHUNK = 1 << 20
MOST_LINES = 5_000_000
LONGEST_LINE = 262_144  # bytes of UTF-8, the header's too

MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
ARCHIVES = (b"PK\x03\x04", b"\x1f\x8b", b"\xd0\xcf\x11\xe0", b"Rar!", b"7z\xbc\xaf")


def sniff(file: BinaryIO) -> str:
    """Return the name of the codec that reads the whole file, which is left at its start.

    Raises Unreadable for an archive or spreadsheet, and for bytes that are neither UTF-8, UTF-16 nor GB18030.
    """
    file.seek(0)
    start = file.read(4096)
    if start.startswith(ARCHIVES):
        raise Unreadable("This is an archive or a spreadsheet; export CSV from it, and hand that in.")
    encoding = next((name for mark, name in MARKS if start.startswith(mark)), None) or _without_mark(start)
    candidates = (encoding,) if encoding else ("utf-8", "gb18030")
    faults = [_first_fault(file, name) for name in candidates]
    for name, line in zip(candidates, faults, strict=True):
        if line is None:
            file.seek(0)
            return name
    message = f"these bytes are not {'UTF-16' if encoding else 'UTF-8 nor GB18030'}"
    raise Unreadable("The encoding is not clear; save the file as UTF-8.", [Fault(message, faults[0])])


def recoded(file: BinaryIO) -> Iterator[bytes]:
    """Yield the file in UTF-8, without a mark, its lines ended by LF; raises Unreadable, also half-way.

    A line over 262,144 bytes and a file over 5,000,000 lines are refused.
    """
    encoding = sniff(file)
    decoder = codecs.getincrementaldecoder(encoding)()
    is_old = _has_only_returns(file, encoding)
    lines, length = 1, 0
    for chunk in _chunks(file):
        text = decoder.decode(chunk)
        data = (text.replace("\r", "\n") if is_old else text).encode()
        first, *others = data.split(b"\n")
        longest = max([length + len(first), *map(len, others)])
        lines += len(others)
        length = len(others[-1]) if others else length + len(first)
        if longest > LONGEST_LINE:
            raise Unreadable(f"A line is longer than {LONGEST_LINE:,} bytes; this is no table of readers.")
        if lines > MOST_LINES:
            raise Unreadable(f"The file has more than {MOST_LINES:,} lines; hand it in in parts.")
        yield data
    file.seek(0)


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    while chunk := file.read(CHUNK):
        yield chunk


def _without_mark(start: bytes) -> str | None:
    """Tell UTF-16 by its zeros: Latin letters and commas have one each, always on the same side."""
    half = max(len(start) // 2, 1)
    for side, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        if start[side::2].count(0) > half * 0.3 and start[1 - side :: 2].count(0) <= half * 0.05:
            return name
    return None


def _first_fault(file: BinaryIO, encoding: str) -> int | None:
    """Return the line near which the file cannot be decoded, or None when all of it can."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    try:
        for chunk in _chunks(file):
            line += decoder.decode(chunk).count("\n")
        decoder.decode(b"", True)
    except UnicodeDecodeError as error:
        before = error.object[: error.start] if isinstance(error.object, bytes) else b""
        return line + before.count(b"\n")
    return None


def _has_only_returns(file: BinaryIO, encoding: str) -> bool:
    """Tell whether lines end as they did on old Macs: CR, and no LF anywhere near the start."""
    file.seek(0)
    start = codecs.getincrementaldecoder(encoding)().decode(file.read(65_536))
    return "\r" in start and "\n" not in start
