"""What a test needs of the machine: without it the test is skipped, or fails where nothing may skip."""

import os
from typing import NoReturn

import pytest

STRICT = "BROADSHEET_TEST_NO_SKIP"


def give_up(sentence: str) -> NoReturn:
    """Skip the test with a sentence, or fail it where the environment says that all of them must run."""
    if os.environ.get(STRICT, "0") not in ("", "0"):
        pytest.fail(f"{sentence} ({STRICT} is set, so this must not be skipped.)", pytrace=False)
    pytest.skip(sentence)
