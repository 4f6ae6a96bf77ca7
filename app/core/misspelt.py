"""Settings that nobody reads: a misspelt name would otherwise pass in silence."""

import os
import tomllib
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from pydantic_settings import DotEnvSettingsSource

from app.core.config import PREFIX, SECRETS, Settings

TESTS = "TEST_"  # what our own tests are told by the environment


def doubts() -> list[str]:
    """Return a sentence for each setting that there is not, with the name that was probably meant."""
    known = {name.upper() for name in Settings.model_fields} | {f"{name.upper()}_FILE" for name in SECRETS}
    found = []
    for where, shown, name in sorted(_given()):
        if name not in known and not name.startswith(TESTS):
            near = get_close_matches(name, known, 1)
            meant = shown.replace(name, near[0]).replace(name.lower(), near[0].lower()) if near else ""
            hint = f"did you mean {meant}?" if near else "docs/settings.md has all names."
            found.append(f"{shown}, in {where}, is no setting and changes nothing; {hint}")
    return found


def _given() -> Iterator[tuple[str, str, str]]:
    """Yield what is set: in which place, how it is written there, and its name without the prefix, in capitals."""
    for where, names in (("the environment", os.environ), (".env", DotEnvSettingsSource(Settings).env_vars)):
        for name in map(str.upper, names):
            if name.startswith(PREFIX):
                yield where, name, name.removeprefix(PREFIX)
    file = Path("broadsheet.toml")
    if file.is_file():
        for name in tomllib.loads(file.read_text(encoding="utf-8")):
            yield file.name, name, name.upper()
