"""Logs on standard error, with addresses, tokens, keys and passwords masked whoever wrote them."""

import logging
import re

_MASKS = (
    (re.compile(r"bs_[0-9a-f]{12}_[A-Za-z0-9_-]{20,}"), "bs_***"),
    (re.compile(r"(/[cpu]/)[A-Za-z0-9_-]{16,}"), r"\1***"),
    (re.compile(r"([a-z+]+://)[^/@\s]+@"), r"\1***@"),
    (re.compile(r"\b([A-Za-z0-9])[A-Za-z0-9._%+-]*@([A-Za-z0-9.-]+\.[A-Za-z]{2,})"), r"\1***@\2"),
)


class Masking(logging.Formatter):
    """Formats a record and masks what must not be kept, in the trace too."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's line without secrets and addresses."""
        return masked(super().format(record))


def masked(text: str) -> str:
    """Return a text with every key, token, password and address masked."""
    for pattern, instead in _MASKS:
        text = pattern.sub(instead, text)
    return text


def configure() -> None:
    """Send the logs of this process to standard error, masked; libraries speak from warnings up."""
    handler = logging.StreamHandler()
    handler.setFormatter(Masking("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("app").setLevel(logging.INFO)
