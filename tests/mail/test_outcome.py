"""What a reply says: its enhanced code and the relay's own name for the mail."""

import pytest

from app.mail.outcome import Reply


@pytest.mark.parametrize(
    ("text", "enhanced"),
    [
        ("5.1.1 No such user", "5.1.1"),
        ("4.7.28", "4.7.28"),
        ("#5.1.0 Address rejected.", "5.1.0"),
        ("sorry, no mailbox here by that name. (#5.1.1)", "5.1.1"),
        ("Mailbox 5.1.1 unknown", None),
        ("5.1.1.9 is an address", None),
        ("Ok", None),
    ],
)
def test_an_enhanced_code_is_found_where_it_stands(text: str, enhanced: str | None) -> None:
    assert Reply(550, text).enhanced == enhanced


@pytest.mark.parametrize(
    ("text", "queue_id"),
    [
        ("2.0.0 Ok: queued as 4Bx12345YzZ9", "4Bx12345YzZ9"),
        ("2.0.0 from MTA(smtp:[127.0.0.1]:10025): 250 2.0.0 Ok: queued as 9A8B7C", "9A8B7C"),
        ("Mail OK queued as gzsmtp1,PikvCgD3n8", "gzsmtp1,PikvCgD3n8"),
        ("Data Ok: queued as freedom ###envid=148316944", "148316944"),
        ("OK: queued as.", None),
        ("OK id=1rXyZz-0001Ab-2C", "1rXyZz-0001Ab-2C"),
        (
            "Ok 0100018f3b2a7c11-4a5b6c7d-8e9f-4a1b-9c2d-3e4f5a6b7c8d-000000",
            "0100018f3b2a7c11-4a5b6c7d-8e9f-4a1b-9c2d-3e4f5a6b7c8d-000000",
        ),
        ("2.0.0 OK  1717171717 a1b2c3d4-e5f6si7890.12 - gsmtp", "a1b2c3d4-e5f6si7890.12"),
        ("2.0.0 45A1B2c3012345 Message accepted for delivery", "45A1B2c3012345"),
        ("2.6.0 <x@y> [InternalId=123456, Hostname=a.example] Queued mail for delivery", "123456"),
        ("ok 1717171717 qp 4242", "1717171717 qp 4242"),
        ("2.0.0 Ok", None),
        ("Message accepted", None),
        ("2.0.0 Ok: queued as " + "a1" * 100, None),
    ],
)
def test_the_relays_own_name_for_a_mail_is_read_where_it_gives_one(text: str, queue_id: str | None) -> None:
    assert Reply(250, text).queue_id == queue_id
