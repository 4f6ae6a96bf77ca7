"""Texts that become issues: one module a format, with `parse` to read a Document and `write` to keep it."""

from typing import Protocol

from app.core.errors import Fault, Invalid
from app.issues.document import Document, SourceError
from app.issues.sources import markdown, plaintext

__all__ = ["SOURCES", "Source", "SourceError", "parse"]


class Source(Protocol):
    """What a format's module offers; `parse` raises SourceError, `parse(write(document)) == document`."""

    def parse(self, source: str | bytes) -> Document: ...

    def write(self, document: Document) -> str: ...


SOURCES: dict[str, Source] = {"text": plaintext, "markdown": markdown}

SUFFIXES = {".md": "markdown", ".markdown": "markdown"}


def format_of(name: str) -> str:
    """The format of a file by its name."""
    return next((format for suffix, format in SUFFIXES.items() if name.lower().endswith(suffix)), "text")


def parse(source: str | bytes, format: str = "text") -> Document:
    """Read a text in a format of SOURCES; raises SourceError for the text, Invalid for an unknown format."""
    if format not in SOURCES:
        known = ", ".join(SOURCES)
        message = f"“{format[:20]}” is no source format; use {known}"
        raise Invalid(message, [Fault(message, field="format")])
    return SOURCES[format].parse(source)
