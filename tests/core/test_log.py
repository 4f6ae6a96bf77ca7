"""Logs hold no address, token, key or password, whoever wrote the line."""

import io
import logging

import pytest

from app.core import log
from app.core.tokens import Purpose, Signer

TOKEN = Signer(["k" * 40]).sign(Purpose.PREFERENCES, 4711)


def logged(message: str, *values: object, error: Exception | None = None) -> str:
    """Return a line as the log has it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(log.Masking("%(levelname)s %(name)s: %(message)s"))
    logger = logging.Logger("test")
    logger.addHandler(handler)
    logger.error(message, *values, exc_info=error)
    return stream.getvalue()


@pytest.mark.parametrize(
    "address",
    [
        "reader@example.com",
        "Reader.Name+tag@mail.example.co.uk",
        "_reader@example.com",
        "o'reader@example.com",
        "-reader=x@example.com",
        "reader@xn--bcher-kva.example",
        "reader@bücher.example",
        "读者reader@例子.测试",
        "reader%40example.com",
        "{reader}@example.com",
        "reader/unit@example.com",
    ],
)
@pytest.mark.parametrize(
    "around", ["%s", "<%s>", "to=%s,", "('%s',)", "mailto:%s?x", "http://h/?q=%s&x", "“%s”"]
)
def test_an_address_is_masked_whatever_stands_around_it(address: str, around: str) -> None:
    line = logged(around, address)
    assert "reader" not in line.lower()
    assert "***@" in line


def test_enough_is_left_of_an_address_to_tell_the_provider() -> None:
    assert logged("to %s", "reader@example.com") == "ERROR test: to r***@example.com\n"


@pytest.mark.parametrize("page", ["c", "p", "u"])
@pytest.mark.parametrize("base", ["", "https://news.example.com", "https://news.example.com/letters"])
def test_the_token_of_a_link_is_masked(base: str, page: str) -> None:
    line = logged("GET %s", f"{base}/{page}/{TOKEN}?saved=1")
    assert TOKEN not in line
    assert f"/{page}/***?saved=1" in line


@pytest.mark.parametrize(
    "written",
    [
        f"<daily-20261026.{TOKEN}@example.com>",
        f"unsubscribe+{TOKEN}@bounce.example.com",
        f"<letter-3.{TOKEN}@d.example>",
    ],
)
def test_the_token_of_a_message_is_masked(written: str) -> None:
    assert TOKEN not in logged("250 queued %s", written)


def test_an_api_key_is_masked_without_its_handle() -> None:
    line = logged("Bearer %s", "bs_0123456789ab_" + "S" * 43)
    assert "SSS" not in line
    assert "0123456789ab" not in line


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://app:hunter2@db.internal:5432/news",
        "postgresql+psycopg://app:hunt@er2@db.internal/news",
        "smtp://user:hunter2@relay.example?rate=10/s",
        "SMTPS://user:hunter2%40@relay.example",
        "imaps://user:hunter2@mail.example",
    ],
)
def test_the_password_of_a_url_is_masked(url: str) -> None:
    line = logged("cannot reach %s", url)
    assert "hunter2" not in line
    assert "er2@" not in line
    assert "://***@" in line


def test_a_trace_is_masked_too() -> None:
    def fail() -> None:
        raise RuntimeError(f"postgresql://app:hunter2@db/d for reader@example.com at /p/{TOKEN}")

    with pytest.raises(RuntimeError) as failed:
        fail()
    line = logged("error %s", "1a2b", error=failed.value)
    assert "Traceback" in line
    assert "hunter2" not in line
    assert "reader@" not in line
    assert TOKEN not in line


@pytest.mark.parametrize(
    "harmless",
    [
        "mailing 3 is finished",
        "GET /archive/daily/2026-10-26 200",
        "https://medium.com/@someone/a-post",
        "cannot reach http://127.0.0.1:8000/archive",
        "a @ b",
        "/c/short",
    ],
)
def test_what_is_harmless_is_left_alone(harmless: str) -> None:
    assert logged("%s", harmless) == f"ERROR test: {harmless}\n"


def test_one_line_stays_one_line_whatever_is_logged() -> None:
    line = logged("reply %s", "250 ok\r\nERROR app: forged\x1b[31m\x00\u2028x")
    assert line.count("\n") == 1
    assert "\r" not in line
    assert "\x1b" not in line
    assert "\u2028" not in line


def test_the_programs_log_is_masked_and_libraries_whisper(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before, level, ours = root.handlers[:], root.level, logging.getLogger("app").level
    try:
        log.configure()
        logging.getLogger("app.worker").info("to %s", "reader@example.com")
        logging.getLogger("httpx").info("a library's chatter")
        logging.getLogger("httpx").warning("to %s", "reader@example.com")
    finally:
        root.handlers[:] = before
        root.setLevel(level)
        logging.getLogger("app").setLevel(ours)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" ", 2)[2] for line in lines] == [
        "INFO    app.worker: to r***@example.com",
        "WARNING httpx: to r***@example.com",
    ]
