"""Where the templates and migrations lie: beside the package in a checkout, inside it once installed."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def templates() -> Path:
    """Return the folder that holds `email/` and `web/`."""
    return _folder("templates")


def migrations() -> Path:
    """Return the folder of the database migrations."""
    return _folder("alembic")


def _folder(name: str) -> Path:
    installed = _PACKAGE / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
