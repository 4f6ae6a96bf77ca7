"""Each system's export is known by its header row, and who must not be mailed there is not mailed here."""

import json
from pathlib import Path

import pytest

from app.subscribers.imports import PRESETS
from app.subscribers.imports.candidate import Candidate
from tests.needs import give_up
from tests.subscribers.test_imports import opened

HEADERS = Path(__file__).resolve().parents[2] / "../shared/corpus/import_headers.json"
MAILCHIMP = "Email Address,First Name,Last Name,MEMBER_RATING,OPTIN_TIME,CONFIRM_TIME,TIMEZONE"

# By preset: a file, and what its rows become: (address, name, status, reason).
SAMPLES: dict[str, tuple[str, list[tuple[str, str, str, str | None]]]] = {
    "substack": (
        "email,active_subscription,expiry,plan,email_disabled,created_at,first_payment_at\n"
        "a@example.com,false,,other,false,2023-05-01T12:34:56.789Z,\n"
        "b@example.com,true,2026-01-01T00:00:00.000Z,yearly_5000,true,2023-05-01T12:34:56.789Z,\n",
        [("a@example.com", "", "active", None), ("b@example.com", "", "ended", "left")],
    ),
    "substack-paid": (
        "email,expiry,email_disabled,stripe_connected_customer_id,type\n"
        "a@example.com,,false,cus_1,comp\nb@example.com,,true,cus_2,comp\n",
        [("a@example.com", "", "active", None), ("b@example.com", "", "ended", "left")],
    ),
    "mailchimp": (
        f"{MAILCHIMP},LEID,EUID,NOTES,TAGS\n"
        'a@example.com,Ann,Lee,2,2023-01-15 10:22:33,2023-01-15 10:23:00,Europe/Paris,1,e1,,"""vip"""\n',
        [("a@example.com", "Ann Lee", "active", None)],
    ),
    "mailchimp-unsubscribed": (
        f"{MAILCHIMP},UNSUB_TIME,UNSUB_CAMPAIGN_TITLE,UNSUB_REASON,LEID,EUID\n"
        "a@example.com,Ann,Lee,2,2023-01-15 10:22:33,,,2024-01-15 10:22:33,News,NORMAL,1,e1\n"
        "b@example.com,Bo,Lee,2,2023-01-15 10:22:33,,,,,,2,e2\n"
        "c@example.com,Cy,Lee,2,2023-01-15 10:22:33,,,2024-01-15 10:22:33,News,ABUSE: spam,3,e3\n",
        [
            ("a@example.com", "Ann Lee", "ended", "left"),
            ("b@example.com", "Bo Lee", "ended", "left"),
            ("c@example.com", "Cy Lee", "ended", "complained"),
        ],
    ),
    "mailchimp-cleaned": (
        f"{MAILCHIMP},CLEAN_TIME,CLEAN_CAMPAIGN_TITLE,LEID,EUID\n"
        "a@example.com,Ann,Lee,1,2023-01-15 10:22:33,,,2024-01-15 10:22:33,News,1,e1\n"
        "b@example.com,Bo,Lee,1,2023-01-15 10:22:33,,,,,2,e2\n",
        [
            ("a@example.com", "Ann Lee", "ended", "bounced"),
            ("b@example.com", "Bo Lee", "ended", "bounced"),
        ],
    ),
    "ghost": (
        "id,email,name,note,subscribed_to_emails,complimentary_plan,stripe_customer_id,created_at,deleted_at,labels,tiers\n"
        "1,a@example.com,Ann,,true,false,,2023-05-01T12:34:56.000Z,,,\n"
        "2,b@example.com,Bo,,false,false,,2023-05-01T12:34:56.000Z,,,\n"
        "3,c@example.com,Cy,,true,false,,2023-05-01T12:34:56.000Z,2024-05-01T12:34:56.000Z,,\n",
        [
            ("a@example.com", "Ann", "active", None),
            ("b@example.com", "Bo", "ended", "left"),
            ("c@example.com", "Cy", "ended", "left"),
        ],
    ),
    "buttondown": (
        "email,notes,tags,metadata,subscriber_type,secondary_id,creation_date,unsubscription_date\n"
        "a@example.com,,,{},regular,1,2023-05-01T12:34:56Z,\n"
        "b@example.com,,,{},unactivated,2,2023-05-01T12:34:56Z,\n"
        "c@example.com,,,{},unsubscribed,3,2023-05-01T12:34:56Z,2024-01-01T00:00:00Z\n"
        "d@example.com,,,{},undeliverable,4,2023-05-01T12:34:56Z,\n"
        "e@example.com,,,{},complained,5,2023-05-01T12:34:56Z,\n"
        "f@example.com,,,{},blocked,6,2023-05-01T12:34:56Z,\n",
        [
            ("a@example.com", "", "active", None),
            ("b@example.com", "", "pending", None),
            ("c@example.com", "", "ended", "left"),
            ("d@example.com", "", "ended", "bounced"),
            ("e@example.com", "", "ended", "complained"),
            ("f@example.com", "", "ended", "editor"),
        ],
    ),
    "beehiiv": (
        "id,email,status,tier,utm_source,created_at\n"
        "1,a@example.com,active,free,,2023-01-15 10:22:33 UTC\n"
        "2,b@example.com,inactive,free,,2023-01-15 10:22:33 UTC\n"
        "3,c@example.com,invalid,free,,2023-01-15 10:22:33 UTC\n",
        [
            ("a@example.com", "", "active", None),
            ("b@example.com", "", "ended", "left"),
            ("c@example.com", "", "ended", "bounced"),
        ],
    ),
    "beehiiv-custom": (
        "Email,First Name,Status,Created At,Subscription Tier\n"
        "a@example.com,Ann,Active,2023-01-15 10:22:33,Free\nb@example.com,Bo,Inactive,2023-01-15 10:22:33,Free\n",
        [("a@example.com", "Ann", "active", None), ("b@example.com", "Bo", "ended", "left")],
    ),
    "keila": (
        "Email,First name,Last name,Data,Status,External ID\n"
        'a@example.com,Ann,Lee,"{""x"": 1}",active,\n'
        "b@example.com,,,,unsubscribed,\nc@example.com,,,,unreachable,\n",
        [
            ("a@example.com", "Ann Lee", "active", None),
            ("b@example.com", "", "ended", "left"),
            ("c@example.com", "", "ended", "bounced"),
        ],
    ),
    "listmonk": (
        "uuid,email,name,attributes,status,created_at,updated_at\n"
        'u1,a@example.com,Ann,"{""city"": ""Xi\'an""}",enabled,2024-01-15 10:22:33.123456 +0000 UTC,\n'
        "u2,b@example.com,Bo,{},disabled,2024-01-15 10:22:33.123456 +0000 UTC,\n"
        "u3,c@example.com,Cy,{},blocklisted,2024-01-15 10:22:33.123456 +0000 UTC,\n",
        [
            ("a@example.com", "Ann", "active", None),
            ("b@example.com", "Bo", "paused", None),
            ("c@example.com", "Cy", "ended", "left"),
        ],
    ),
    "brevo": (
        "CONTACT ID;EMAIL;FIRSTNAME;LASTNAME;EMAIL_BLACKLISTED;ADDED_TIME\n"
        "1;a@example.com;Ann;Lee;No;15-01-2024 10:22:33\n2;b@example.com;Bo;Lee;Yes;15-01-2024 10:22:33\n",
        [("a@example.com", "Ann Lee", "active", None), ("b@example.com", "Bo Lee", "ended", "left")],
    ),
    "kit": (
        "id,first_name,email,state,created_at,tags\n"
        "1,Ann,a@example.com,active,2023-01-15 10:22:33 UTC,\n"
        "2,Bo,b@example.com,cancelled,2023-01-15 10:22:33 UTC,\n"
        "3,Cy,c@example.com,inactive,2023-01-15 10:22:33 UTC,\n"
        "4,Di,d@example.com,complained,2023-01-15 10:22:33 UTC,\n",
        [
            ("a@example.com", "Ann", "active", None),
            ("b@example.com", "Bo", "ended", "left"),
            ("c@example.com", "Cy", "pending", None),
            ("d@example.com", "Di", "ended", "complained"),
        ],
    ),
}


@pytest.mark.parametrize("name", PRESETS)
def test_a_systems_export_is_known_and_read(name: str) -> None:
    text, wanted = SAMPLES[name]
    for data in (text.encode(), text.replace("\n", "\r\n").encode("utf-8-sig")):
        table, rows = opened(data)
        assert table.preset == name
        assert not table.is_ours
        found = [(row.email, row.name, row.status, row.reason) for row in rows if isinstance(row, Candidate)]
        assert found == wanted


@pytest.mark.parametrize(
    "name", ["substack", "mailchimp", "ghost", "buttondown", "beehiiv", "kit", "listmonk"]
)
def test_the_day_they_subscribed_there_is_kept(name: str) -> None:
    first = opened(SAMPLES[name][0].encode())[1][0]
    assert isinstance(first, Candidate)
    assert first.created_at is not None
    assert first.created_at.year in (2023, 2024)


def test_a_column_of_ours_may_be_written_beside_theirs() -> None:
    header, row = SAMPLES["substack"][0].splitlines()[:2]
    _, rows = opened(f"{header},editions,语言,language\n{row},daily weekly,x,en\n".encode())
    assert isinstance(rows[0], Candidate)
    assert (rows[0].editions, rows[0].language) == (("daily", "weekly"), "en")


def test_the_header_rows_that_were_collected_are_known() -> None:
    if not HEADERS.is_file():
        give_up("The collection of header rows does not lie beside the checkout.")
    for preset in json.loads(HEADERS.read_text(encoding="utf-8"))["presets"]:
        wanted = preset["name"].replace("_old", "").replace("_", "-")
        for key in ("signature", "alt_signature"):
            if key not in preset or wanted == "curated":
                continue
            names = [*preset[key], *(group[0] for group in preset.get("any", []))]
            table, _ = opened(f"{preset.get('delimiter', ',').join(names)}\n".encode())
            assert (table.preset or "").startswith(wanted)
