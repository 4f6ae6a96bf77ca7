"""Strangers who check our signatures find them good, and bad once anything that a reader sees is changed."""

import re
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Any

import dkim as dkimpy  # type: ignore[import-untyped]
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import example, given
from hypothesis import strategies as st

from app.core import config
from app.flows.compose import Composer, Reader
from app.issues import sources
from app.issues.document import subject_of
from app.issues.models import Edition, IssueText
from app.mail import dkim, headers
from tests import needs
from tests.issues import samples

DOMAIN = "news.example.com"
STARTED = datetime(2026, 10, 26, 7, 0, 0, 250_000, tzinfo=UTC)
READER = Reader(7, "reader@example.org")
LONG = "缓存、网络、编译器、日志：" + "一个很长的标题，读到这里还没有完，" * 6
MAILS = ("daily", "weekly", "english", "long subject", "seed daily", "seed weekly", "confirm", "own letter")
SIGNED_ONCE = {"content-language", "precedence", "x-auto-response-suppress", "feedback-id", "auto-submitted"}
LOOK = {"accent": "#b4371e", "accent_dark": "#f08a6e"}
BODY = b"aGVsbG8=\r\n"


SIGNER = dkim.Signer(rsa.generate_private_key(65537, 1024), "s2026", DOMAIN)


def composer() -> Composer:
    given: dict[str, object] = {
        "base_url": f"https://{DOMAIN}",
        "secret_key": "s" * 32,
        "suppression_key": "p" * 32,
        "relays": "smtp+plain://127.0.0.1:2525",
        "bounce_domain": "bounce.example.com",
        "contact": f"desk@{DOMAIN}",
        "postal_address": "海滨路 1 号",
        "_env_file": None,
    }
    return Composer(config.load(**given))


def edition(language: str) -> Edition:
    look: dict[str, Any] = LOOK | {"timezone": "Asia/Shanghai", "cadence": {}}
    pace: dict[str, Any] = {"max_lateness": 3600, "time_to_live": 86400}
    return Edition(id=1, slug="daily", name="技术日报", label="日报", language=language, **look, **pace)


def issue(text: str, language: str, subject: str = "") -> bytes:
    subject = subject or subject_of(sources.parse(text))
    one = IssueText(issue_id=3, language=language, format="text", source=text, subject=subject)
    house, series, day = composer(), edition(language), date(2026, 10, 26)
    rendered = house.render_issue(series, day, one)
    press = house.press(series, 3, day, language, STARTED, rendered)
    return house.issue_message(press, READER).message


def letter(data: dict[str, object]) -> bytes:
    about = {"id": 5, "subscriber_id": 7, "address": READER.address, "language": "zh", "kind": "confirm"}
    return composer().letter_message(about | {"created_at": STARTED, "data": data}).message


@cache
def mail(name: str) -> bytes:
    match name:
        case "confirm":
            return letter({"editions": ["技术日报"], "action": "confirm", **LOOK})
        case "own letter":
            return letter({"html": "<p>早</p>", "text": "早 __BS_MANAGE__", "subject": "早"})
        case "long subject":
            return issue(samples.DAILY, "zh", LONG)
        case "english":
            return issue(samples.ENGLISH, "en")
    text = samples.seed(name[5:]).decode() if name.startswith("seed") else getattr(samples, name.upper())
    return issue(text, "zh")


def signed(message: bytes) -> bytes:
    return SIGNER.sign(message, STARTED) + message


def is_good(message: bytes) -> bool:
    def record(name: bytes, timeout: int = 5) -> bytes:  # noqa: ARG001
        assert name.decode().rstrip(".") == SIGNER.record_name
        return dkim.public_record(SIGNER).encode()

    return bool(dkimpy.verify(message, dnsfunc=record))


def tags(signature: bytes) -> dict[str, str]:
    value = re.sub(r"\s+", "", signature.decode("ascii").partition(":")[2])
    return dict(tag.split("=", 1) for tag in value.split(";"))


def names(message: bytes) -> list[str]:
    return [
        name.decode().lower() for name in re.findall(rb"(?m)^([A-Za-z-]+):", message.split(b"\r\n\r\n")[0])
    ]


def small(**more: bytes) -> bytes:
    lines = {"From": b"a@example.com", "To": b"b@example.org", "Subject": b"one"} | more
    return b"".join(name.encode() + b": " + value + b"\r\n" for name, value in lines.items()) + b"\r\n" + BODY


@pytest.mark.parametrize("name", MAILS)
def test_dkimpy_finds_every_mail_of_ours_good(name: str) -> None:
    assert is_good(signed(mail(name)))
    assert not is_good(mail(name))


def test_opendkim_finds_every_mail_of_ours_good(tmp_path: Path) -> None:
    command = shutil.which("opendkim") or shutil.which("opendkim", path="/usr/sbin")
    if command is None:
        needs.give_up("There is no opendkim here to check our signatures.")
    for name in MAILS:
        (tmp_path / f"{name.replace(' ', '-')}.eml").write_bytes(signed(mail(name)))
    (tmp_path / "changed.eml").write_bytes(signed(mail("daily")).replace(b"zh-CN", b"zh-TW"))
    (tmp_path / "keys").write_text(f"{SIGNER.record_name} {dkim.public_record(SIGNER)}\n", encoding="ascii")
    (tmp_path / "conf").write_text(f"Mode v\nTestPublicKeys {tmp_path}/keys\n", encoding="utf-8")
    mails = ",".join(map(str, sorted(tmp_path.glob("*.eml"))))
    run = subprocess.run([command, "-x", tmp_path / "conf", "-t", mails], capture_output=True, check=True)
    verdicts = re.findall(rb"([\w-]+)\.eml: verification .*? (succeeded|failed)", run.stdout)
    assert dict(verdicts) == {p.stem.encode(): b"succeeded" for p in tmp_path.glob("*.eml")} | {
        b"changed": b"failed"
    }


@pytest.mark.parametrize("name", MAILS)
def test_every_header_is_named_and_those_that_count_once_more(name: str) -> None:
    found = tags(SIGNER.sign(mail(name), STARTED))
    present, listed = names(mail(name)), found["h"].split(":")
    for header in present:
        assert listed.count(header) == (1 if header in SIGNED_ONCE else 2), header
    assert listed.count("cc") == 1
    assert set(listed) == {*present, "cc"}
    assert {header for header in present if header.startswith("list-")} <= set(listed)
    assert "from" in listed


def test_an_issue_covers_what_one_click_needs() -> None:
    listed = tags(SIGNER.sign(mail("daily"), STARTED))["h"].split(":")
    lists = {"id", "help", "subscribe", "owner", "archive", "post", "unsubscribe", "unsubscribe-post"}
    assert {name.removeprefix("list-") for name in listed if name.startswith("list-")} == lists


@pytest.mark.parametrize("name", MAILS)
def test_the_header_is_short_lines_of_ascii_with_the_tags_of_the_rfc(name: str) -> None:
    line = SIGNER.sign(mail(name), STARTED)
    assert line.isascii()
    assert line.endswith(b"\r\n")
    assert line.startswith(b"DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;")
    first, *folded = line[:-2].split(b"\r\n")
    assert all(re.fullmatch(rb" [!-~][ -~]*[!-~]", each) for each in folded)
    assert max(map(len, (first, *folded))) <= 78
    found = tags(line)
    assert list(found) == ["v", "a", "c", "d", "s", "t", "bh", "h", "b"]
    assert (found["d"], found["s"], found["t"]) == (DOMAIN, "s2026", str(int(STARTED.timestamp())))


@pytest.mark.parametrize("name", ["daily", "confirm"])
def test_changing_any_header_breaks_it(name: str) -> None:
    whole = signed(mail(name))
    for header in names(mail(name)):
        start = re.compile(rb"(?mi)^(" + header.encode() + rb": *)([!-~])")
        changed, count = start.subn(lambda at: at[1] + (b"x" if at[2] != b"x" else b"y"), whole, count=1)
        assert count == 1
        assert not is_good(changed), header
        without = re.sub(rb"(?mi)^" + header.encode() + rb":.*\r\n(?:[ \t].*\r\n)*", b"", whole, count=1)
        assert not is_good(without), header


@pytest.mark.parametrize("place", [0, 0.2, 0.5, 0.8, 0.999])
def test_changing_a_byte_of_the_body_breaks_it(place: float) -> None:
    whole = signed(mail("daily"))
    body = whole.index(b"\r\n\r\n") + 4
    at = body + int((len(whole) - body) * place)
    while not chr(whole[at]).isalnum():
        at -= 1
    other = b"A" if whole[at : at + 1] != b"A" else b"B"
    assert not is_good(whole[:at] + other + whole[at + 1 :])


def test_nothing_can_be_written_under_the_body() -> None:
    assert not is_good(signed(mail("daily")) + b"more\r\n")
    assert "l" not in tags(SIGNER.sign(mail("daily"), STARTED))


@pytest.mark.parametrize("name", ["daily", "confirm"])
def test_a_second_header_that_a_reader_would_see_breaks_it(name: str) -> None:
    signature, message = SIGNER.sign(mail(name), STARTED), mail(name)
    head, _, body = message.partition(b"\r\n\r\n")
    for header in {*names(message), "from", "cc"} - SIGNED_ONCE:
        more = header.encode() + b": evil@example.org"
        assert not is_good(more + b"\r\n" + signature + message), header
        assert not is_good(signature + head + b"\r\n" + more + b"\r\n\r\n" + body), header


def test_what_relays_add_on_top_does_not_break_it() -> None:
    added = b"Return-Path: <b@example.com>\r\nReceived: from x\r\n\tby y; now\r\nFeedback-ID: 1:relay\r\n"
    assert is_good(added + signed(mail("daily")))


def test_a_message_that_is_signed_already_is_signed_by_what_it_says() -> None:
    assert is_good(signed(b"Return-Path: <b@example.com>\r\n" + signed(mail("daily"))))


HOPS: dict[str, Callable[[bytes], bytes]] = {
    "folds moved": lambda head: head.replace(b"\r\n ", b"\r\n\t \t").replace(b", ", b",\r\n  "),
    "unfolded": lambda head: head.replace(b"\r\n ", b" "),
    "names in capitals": lambda head: re.sub(rb"(?m)^[A-Za-z-]+:", lambda at: at[0].upper(), head),
    "blanks at the ends": lambda head: head.replace(b"\r\n", b" \t\r\n"),
    "blanks doubled": lambda head: head.replace(b": ", b":  "),
}


@pytest.mark.parametrize("hop", HOPS)
@pytest.mark.parametrize("name", ["long subject", "confirm"])
def test_blanks_and_folds_that_hops_change_do_not_break_it(hop: str, name: str) -> None:
    head, _, body = signed(mail(name)).partition(b"\r\n\r\n")
    assert (changed := HOPS[hop](head)) != head
    assert is_good(changed + b"\r\n\r\n" + body)


@given(st.text(), st.text())
@example(LONG, "")
@example("a  b   c ", "x\ty")
@example("=?utf-8?q?b=3D?= ; b=1; h=from", '"; b=')
def test_whatever_an_editor_writes_the_signature_is_good(subject: str, name: str) -> None:
    top = headers.mailbox("From", name, "a@example.com") + headers.unstructured("Subject", subject)
    assert is_good(signed(top + headers.date(STARTED) + b"\r\n" + BODY))


@given(st.lists(st.text("ab=?;:, \t", min_size=1), min_size=1), st.integers(1, 3))
@example([" \t", "a", "\t "], 2)
def test_however_a_header_is_blanked_folded_and_repeated_the_signature_is_good(
    lines: list[str], times: int
) -> None:
    field = b"X-Note:" + "\r\n ".join(lines).encode() + b"\r\n"
    numbered = b"".join(field.replace(b":", b":%d" % number, 1) for number in range(times))
    assert is_good(signed(numbered + small()))


def test_a_retry_has_the_same_bytes() -> None:
    assert mail("daily") == issue(samples.DAILY, "zh")
    assert SIGNER.sign(issue(samples.DAILY, "zh"), STARTED) == SIGNER.sign(mail("daily"), STARTED)
    elsewhere = STARTED.astimezone(timezone(timedelta(hours=8)))
    assert SIGNER.sign(mail("daily"), elsewhere) == SIGNER.sign(mail("daily"), STARTED)
    assert SIGNER.sign(mail("daily"), STARTED + timedelta(1)) != SIGNER.sign(mail("daily"), STARTED)


@pytest.mark.parametrize(
    ("message", "wrong"),
    [
        (small().replace(b"From", b"Fram"), "exactly one From"),
        (b"From: c@example.com\r\n" + small(), "exactly one From"),
        (small(Subject="早".encode()), "only ASCII"),
        (small()[:-2], "exactly one CRLF"),
        (small() + b"\r\n", "exactly one CRLF"),
        (small().removesuffix(BODY), "exactly one CRLF"),
        (small() + b"a  b\r\n", "spaces"),
        (small() + b"a \r\n", "spaces"),
        (small() + b"a\tb\r\n", "spaces"),
        (b"Oh;dear: 1\r\n" + small(), "a name and a value"),
        (b"nothing\r\n" + small(), "a name and a value"),
        (b" folded: 1\r\n" + small(), "a name and a value"),
        (small(Subject=b"one\ntwo"), "a name and a value"),
    ],
)
def test_what_we_would_not_have_written_is_not_signed(message: bytes, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        SIGNER.sign(message, STARTED)


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        SIGNER.sign(small(), STARTED.replace(tzinfo=None))
