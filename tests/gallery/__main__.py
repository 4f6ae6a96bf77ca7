"""Takes the pictures: python -m tests.gallery [FOLDER FOR PICTURES [FOLDER WITH OTHER CHINESE TEXTS]]."""

import asyncio
import sys
import tempfile
from pathlib import Path

from tests.gallery import mails, place, sheets


def main(words: list[str]) -> None:
    """Take every picture; one that is too large for a page of documentation ends the run."""
    into = Path(words[0]) if words else mails.ROOT / "docs" / "gallery"
    texts = Path(words[1]) if words[1:] else None
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        taken = asyncio.run(
            place.opened(Path(folder), texts, lambda base, visits: sheets.take(base, visits, texts, into))
        )
    for name, size in taken.items():
        sys.stdout.write(f"{name:<28} {size:>9,} bytes\n")
    if sum(taken.values()) > sheets.LARGEST:
        sys.exit(f"{sum(taken.values()):,} bytes are more than {sheets.LARGEST:,}")


if __name__ == "__main__":
    main(sys.argv[1:])
