"""A returned mail is understood, whoever wrote it: dead mailboxes are found, and nobody is lost over our own faults."""

import csv
import random
import resource
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.feedback import dsn
from app.feedback.mime import DEPTH, MAIL, PARTS, take_apart
from app.feedback.report import TEXT, Action, Kind, Report
from app.mail import verp
from tests import needs

HERE = Path(__file__).parent
SAMPLES = HERE / "mails"
CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "bounces" / "open"
KEY = b"a key of sixteen octets or more"
PATH = verp.return_path(KEY, 12, 345, "bounce.ours.example")
TOKEN = "AbCdEfGhIjKlMnOpQrStUvWxYz012345"


def sample(name: str) -> bytes:
    return (SAMPLES / f"{name}.eml").read_bytes()


def expected() -> list[dict[str, str]]:
    with (HERE / "mails.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def about(reports: list[Report], address: str) -> Report | None:
    """The report on an address; the only one where the mail names nobody."""
    named = [one for one in reports if (one.address or "").lower() == address.lower()]
    return next(iter(named), reports[0] if len(reports) == 1 and not address else None)


# -- what mail systems write: samples of our own, one for each way of saying it


@pytest.mark.parametrize("row", expected(), ids=lambda row: f"{row['mail']} {row['address']}")
def test_a_returned_mail_is_understood(row: dict[str, str]) -> None:
    found = about(dsn.read(sample(row["mail"]), None), row["address"])
    assert found is not None
    assert found.kind in row["kind"].split("|")
    assert found.action in row["action"].split("|")
    assert found.meaning == row["meaning"] or not row["meaning"]
    assert found.address == (row["address"] or found.address)


def test_every_sample_has_its_expectation() -> None:
    assert {one.stem for one in SAMPLES.glob("*.eml")} == {row["mail"] for row in expected()}


def test_line_ends_do_not_matter() -> None:
    for row in expected():
        plain = sample(row["mail"])
        on_the_wire = plain.replace(b"\n", b"\r\n")
        assert [one.action for one in dsn.read(plain, None)] == [
            one.action for one in dsn.read(on_the_wire, None)
        ], row["mail"]


def test_a_report_keeps_what_the_server_said() -> None:
    (found,) = dsn.read(sample("postfix-user"), None)
    assert (found.code, found.status, found.relay_id) == (550, "5.1.1", "9F11C2")
    assert found.text.startswith("550 5.1.1 <reader@there.example>: Recipient address rejected: User unknown")
    assert found.message_id == "20261103.1.77@ours.example"
    assert found.origin == "mail"
    assert found.happened_at is not None
    assert found.happened_at.isoformat() == "2026-11-03T09:00:00+01:00"


def test_what_is_said_of_our_own_domain_is_not_held_against_the_reader() -> None:
    gone = sample("exim-user").replace(
        b"550 5.1.1 <reader@there.example>: Recipient", b"550 ours.example does not exist #"
    )
    (found,) = dsn.read(gone, None)
    assert (found.action, found.meaning) == (Action.NONE, "our-sender")


def test_a_notice_of_delay_that_blames_our_pace_does_not_count() -> None:
    (found,) = dsn.read(sample("postfix-delayed-by-rate"), None)
    assert (found.action, found.meaning) == (Action.NONE, "rate")


# -- the real ones, which lie beside this repository


def corpus() -> list[tuple[dict[str, str], Report | None]]:
    if not CORPUS.exists():
        needs.give_up("The corpus of returned mails does not lie beside this repository.")
    with (CORPUS / "expected.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        (row, about(dsn.read((CORPUS / row["file"]).read_bytes(), None), row["recipient"])) for row in rows
    ]


def test_real_mails_are_understood_and_nobody_is_suppressed_over_a_policy() -> None:
    judged = corpus()
    accepted = [
        row["accept"].replace("never-suppress", "none").split("|").count(found.action) if found else 0
        for row, found in judged
    ]
    assert sum(accepted) >= 0.97 * len(judged)
    hard = [
        found is not None and found.action is Action.SUPPRESS
        for row, found in judged
        if row["class"] == "hard"
    ]
    assert sum(hard) >= 0.95 * len(hard)
    spared = [row["file"] for row, found in judged if row["action"] in ("never-suppress", "none") and found
              and found.action is Action.SUPPRESS]  # fmt: skip
    assert spared == []


def test_real_complaints_are_all_heard() -> None:
    assert [row["file"] for row, found in corpus() if row["class"] == "complaint"
            and (found is None or found.kind is not Kind.COMPLAINT)] == []  # fmt: skip


# -- whose mail it was


@pytest.mark.parametrize("envelope_to", [PATH, f"<{PATH.upper()}>"])
def test_the_return_path_it_came_to_is_its_token(envelope_to: str) -> None:
    (found,) = dsn.read(sample("exim-user"), envelope_to)
    assert found.token is not None
    assert verp.read([KEY], found.token) == verp.Claimed(verp.Kind.DELIVERY, 12, 345)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("exim-user", "To: news@ours.example", f"To: <{PATH}>"),
        ("postfix-user", "X-Postfix-Sender: rfc822; news@ours.example", f"X-Postfix-Sender: rfc822; {PATH}"),
        ("arf-abuse", "Original-Mail-From: <news@ours.example>", f"Original-Mail-From: <{PATH}>"),
        ("arf-no-address", "Return-Path: <news@ours.example>", f"Return-Path: <{PATH}>"),
    ],
)
def test_a_token_is_found_in_what_the_mail_repeats(name: str, before: str, after: str) -> None:
    raw = sample(name)
    assert before.encode() in raw
    found = dsn.read(raw.replace(before.encode(), after.encode()), None)[0]
    assert found.token == PATH


def test_the_address_it_came_to_is_believed_before_all_others() -> None:
    other = verp.return_path(KEY, 99, 99, "bounce.ours.example")
    raw = sample("exim-user").replace(b"To: news@ours.example", b"To: " + other.encode())
    assert dsn.read(raw, PATH)[0].token == PATH


def test_a_mail_without_a_token_has_none() -> None:
    assert dsn.read(sample("exim-user"), "news@ours.example")[0].token is None


# -- who leaves by mail


@pytest.mark.parametrize("envelope_to", [f"unsubscribe+{TOKEN}@bounce.ours.example", None])
def test_a_mail_to_the_leaving_address_is_a_wish_to_leave(envelope_to: str | None) -> None:
    raw = f"From: Reader <reader@there.example>\nTo: <unsubscribe+{TOKEN}@bounce.ours.example>\n\n".encode()
    (found,) = dsn.read(raw, envelope_to)
    assert (found.kind, found.action, found.token) == (Kind.UNSUBSCRIBE, Action.SUPPRESS, TOKEN)
    assert found.address == "reader@there.example"


def test_a_wish_to_leave_may_stand_in_the_subject() -> None:
    (found,) = dsn.read(b"From: reader@there.example\nSubject: Unsubscribe\n\n", PATH)
    assert (found.kind, found.token) == (Kind.UNSUBSCRIBE, PATH)


# -- hostile mail

HEAD = b"From: MAILER-DAEMON@there.example\nTo: news@ours.example\nSubject: Undelivered Mail\n"
MANY = HEAD + b"Content-Type: multipart/report; boundary=q\n\n"
NESTED = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(1500))
STATUS = b"Final-Recipient: rfc822;u%d@there.example\nAction: failed\nStatus: 5.0.0\n\n"
HOSTILE = {
    "100,000 parts": MANY + b"--q\n\nx\n" * 100_000,
    "nested 1,500 deep": HEAD + NESTED,
    "one boundary for all": MANY + b"--q\nContent-Type: multipart/mixed; boundary=q\n\n" * 1500,
    "an endless line": HEAD + b"\n" + b"a" * 3_000_000,
    "an endless address": HEAD + b"\n" + b"a@" * 1_500_000,
    "an endless header": b"To: a\n" + b" b@there.example,\n" * 100_000 + HEAD + b"\n",
    "endless headers": b"X-A: b\n" * 200_000 + HEAD + b"\n",
    "endless encoded-words": b"Subject: " + b"=?utf-8?q?a?=" * 100_000 + b"\n" + HEAD + b"\n",
    "an unknown charset": b"Subject: =?nonsense?b?AAAA?=\n" + HEAD + b"Content-Type: text/plain; charset=x\n\nhello",
    "a costly charset": HEAD + b"Content-Type: text/plain; charset=punycode\n\n" + b"-a9" * 100_000,
    "open tags": HEAD + b"Content-Type: text/html\n\n" + b"<style " * 60_000,
    "many recipients": MANY + b"--q\nContent-Type: message/delivery-status\n\n"
    + b"".join(STATUS % n for n in range(5000)),
    "many recipients in prose": HEAD + b"\n" + b"".join(b"u%d@there.example: 550 hm\n\n" % n for n in range(9000)),
    "many replies": HEAD + b"\n" + b">>> DATA\n<<< 550 x\n" * 50_000,
    "endless chatter": HEAD + b"\n" + b"a message that you sent " * 20_000,
    "deep JSON": HEAD + b"\n" + b'{"a":' * 100_000,
    "many complainers": HEAD + b"Content-Type: multipart/report; report-type=feedback-report; boundary=q\n\n--q\n"
    b"Content-Type: message/feedback-report\n\nFeedback-Type: abuse\n" + b"Original-Rcpt-To: <u@x.example>\n" * 90_000,
    "noise": random.Random(7).randbytes(1_000_000),
}  # fmt: skip


@pytest.mark.parametrize("mail", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_mail_costs_neither_time_nor_memory(mail: bytes) -> None:
    # Seconds of this process alone, ten times what it needs: a busy machine does not count.
    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = dsn.read(mail, None)
    assert time.process_time() - began < 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024
    assert 1 <= len(found) <= 100


def test_only_so_many_parts_and_levels_are_read() -> None:
    assert len(take_apart(HOSTILE["100,000 parts"]).parts) == PARTS
    inside = HOSTILE["nested 1,500 deep"].replace(
        b"--b1499\n", b"--b1499\n\n550 5.1.1 user unknown, too deep to matter"
    )
    assert all(len(part.text) < MAIL for part in take_apart(inside).parts)
    assert DEPTH == 20


# -- anything at all

with (HERE.parent / "mail" / "reported_words.csv").open("rb") as words:
    SAID = words.read().splitlines()[1:]

LINES = st.sampled_from(
    rb"""From: MAILER-DAEMON@there.example|To: a@b.example|Subject: Undelivered|Subject: =?x?y?z?=|Date: yesterday
    Content-Type: multipart/report; boundary=q|Content-Type: multipart/mixed; boundary="r|Content-Type: message/rfc822
    Content-Type: message/delivery-status|Content-Type: message/feedback-report|Content-Type: text/html; charset=idna
    Content-Transfer-Encoding: base64|Content-Transfer-Encoding: quoted-printable|--q|--q--|--r|--r--||
    Final-Recipient: rfc822; a@b.example|Action: failed|Action: delayed|Status: 5.1.1|Status: 9.9.9|<<< 550 no
    Diagnostic-Code: smtp; 550 no such user|<a@b.example>: 550 5.1.1 no|>>> DATA|X-Failed-Recipients: a@b.c, ,
    --- Below this line is a copy of the message.|{"notificationType":"Bounce","bounce":[]}|Original-Rcpt-To: x
    Feedback-Type: abuse""".replace(b"\n    ", b"|").split(b"|")
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.one_of(LINES, st.binary(max_size=60)), max_size=40),
    st.one_of(st.none(), st.text(max_size=90)),
)
def test_no_mail_at_all_raises_and_every_report_keeps_its_form(
    lines: list[bytes], envelope_to: str | None
) -> None:
    for found in dsn.read(b"\n".join(lines), envelope_to):
        assert len(found.text) <= TEXT
        assert found.text.isprintable()
        assert found.address is None or "@" in found.address
        assert found.code is None or 400 <= found.code <= 599
        assert found.happened_at is None or found.happened_at.tzinfo is not None
        assert found.kind in (Kind.BOUNCE, Kind.COMPLAINT, Kind.UNSUBSCRIBE) or found.action is Action.NONE


ENCODINGS = st.sampled_from(["7bit", "8bit", "base64", "quoted-printable", "x-uuencode", ""])
CHARSETS = st.sampled_from(
    ["utf-8", "gb18030", "iso-2022-jp", "koi8-r", "utf-7", "utf-16", "rot13", "idna", "?"]
)
TYPES = st.sampled_from(
    [
        "text/plain",
        "text/html",
        "message/delivery-status",
        "message/feedback-report",
        "text/rfc822-headers",
        "application/octet-stream",
        "message/disposition-notification",
        "multipart/report",
        "",
    ]
)


def leaf(kind: str, charset: str, encoding: str, body: list[bytes]) -> bytes:
    head = f"Content-Type: {kind}; charset={charset}\nContent-Transfer-Encoding: {encoding}\n\n"
    return head.encode() + b"\n".join(body)


def branch(kind: str, boundary: str, parts: list[bytes]) -> bytes:
    if kind == "message/rfc822":
        return b"Content-Type: message/rfc822\n\n" + b"\n".join(parts)
    inside = b"".join(b"\n--" + boundary.encode() + b"\n" + part for part in parts)
    return f'Content-Type: {kind}; boundary="{boundary}"\n\n'.encode() + inside


WORDS = st.lists(st.one_of(LINES, st.sampled_from(SAID), st.binary(max_size=40)), max_size=12)
TREES = st.recursive(
    st.builds(leaf, TYPES, CHARSETS, ENCODINGS, WORDS),
    lambda inner: st.builds(
        branch,
        st.sampled_from(["multipart/mixed", "multipart/report", "multipart/alternative", "message/rfc822"]),
        st.sampled_from(["a", "b", "=_x'y", "a b", "--"]),
        st.lists(inner, max_size=5),
    ),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(st.lists(LINES, max_size=6), TREES, st.integers(1, 400))
def test_no_tree_of_parts_raises_or_takes_long(head: list[bytes], tree: bytes, times: int) -> None:
    began = time.process_time()
    found = dsn.read(b"\n".join([*head, b"MIME-Version: 1.0"]) + b"\n" + tree * times, None)
    assert time.process_time() - began < 1
    assert 1 <= len(found) <= 100


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(one.stem for one in SAMPLES.glob("*.eml"))), st.data())
def test_a_damaged_bounce_does_not_raise(name: str, data: st.DataObject) -> None:
    raw = bytearray(sample(name))
    for _ in range(data.draw(st.integers(1, 20))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
        if not raw:
            break
    assert dsn.read(bytes(raw), None)
