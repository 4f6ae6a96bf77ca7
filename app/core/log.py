"""Logs on standard error, with addresses, tokens, keys and passwords masked whoever wrote them."""

import logging
import re

_ATEXT = r"[\w!#$%&'*+/=?^`{|}~.-]"  # RFC 5322 §3.2.3, letters of any script besides
_MASKS = (
    (re.compile(r"bs_[0-9a-f]{12}_[A-Za-z0-9_-]{20,}"), "bs_***"),
    (re.compile(r"(/[cpu]/)[A-Za-z0-9_-]{16,}"), r"\1***"),
    # Rather too much of what stands before an @ than too little; its first character is left.
    (re.compile(rf"(?<!{_ATEXT})({_ATEXT}){_ATEXT}*(?:@|%40)([\w-]+(?:\.[\w-]+)+)"), r"\1***@\2"),
    (re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)[^\s/]*@"), r"\1***@"),
)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class Masking(logging.Formatter):
    """Formats a record on one line and masks what must not be kept, in the trace too."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's line, and its trace, without secrets and addresses."""
        return masked(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (logging's name)
        """Return the line without control characters, so that no value can forge another line."""
        return _CONTROLS.sub(" ", super().formatMessage(record))


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
