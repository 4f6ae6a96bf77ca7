"""Words of many systems, in many languages, as reports quote them: each means what its writer meant."""

import csv
from pathlib import Path

import pytest

from app.feedback.report import action_of
from app.mail import verdict

# Action and meaning, the report's own status, and its words.
SAID = """
suppress bad-mailbox|5.4.1|550 5.4.1 All recipient addresses rejected : Access denied. [AM0EUR02FT035.eop-EUR02.prod.protection.outlook.example 2026-11-03T08:12:42.123Z 08DD]
suppress bad-mailbox|5.1.1|550 5.1.1 <reader@there.example> User doesn't exist: reader@there.example
suppress bad-mailbox|5.1.1|unknown user: "reader"
suppress bad-domain|5.4.4|Host or domain name not found. Name service error for name=there.example type=A: Host not found
suppress bad-domain|5.4.4|Host or domain name not found. Name service error for name=there.example type=MX: Host not found
count unreachable|4.4.3|Host or domain name not found. Name service error for name=there.example type=MX: Host not found, try again
suppress bad-mailbox|5.0.350|550 5.0.350 Remote server returned an error -> 550 User unknown
none content|5.0.350|550 5.0.350 Remote server returned an error -> 554 5.7.1 The message was rejected as spam
none our-authentication|5.7.509|550 5.7.509 Access denied, sending domain ours.example does not pass DMARC verification and has a DMARC policy of reject.
none policy|5.7.520|550 5.7.520 Access denied, Your organization does not allow external forwarding. Please contact your administrator for further assistance. AS(7555)
none rate|5.0.0|Domain ours.example has exceeded the max emails per hour (100/100 (100%)) allowed.  Message discarded.
none our-sender|5.1.8|450 4.1.8 <news@ours.example>: Sender address rejected: Domain not found
none our-sender|5.0.0|550 Sender verify failed
none policy|5.0.0|550 Administrative prohibition
none block-list|5.0.0|550 JunkMail rejected - out.ours.example [192.0.2.10]:25 is in an RBL: https://www.spamhaus.example/query/ip/192.0.2.10
none block-list|5.1.1|550 5.1.1 <reader@there.example>: Recipient address rejected: undeliverable address: host mx.else.example[198.51.100.9] said: 554 5.7.1 Service unavailable; Client host [192.0.2.10] blocked using zen.spamhaus.org
none content|5.7.0|554 5.7.0 Reject, id=12345-06 - SPAM
none policy|5.7.0|554 5.7.0 Reject, id=12345-07 - BANNED: application/octet-stream,.zip
none too-large|5.3.4|552 5.3.4 Message size exceeds fixed maximum message size (10485760)
count mailbox-full|5.2.2|552 sorry, recipient mailbox is over quota (#5.2.2 - chkuser)
count mailbox-full|5.0.0|552 Mailbox has exceeded the limit
count mailbox-full|4.2.2|452-4.2.2 The recipient's inbox is out of storage space. Please direct the recipient to 452 4.2.2 https://support.google.com/mail/?p=OverQuotaTemp - gsmtp
none recipient-rate|4.2.1|450-4.2.1 The user you are trying to contact is receiving email at a rate that prevents additional messages from being delivered.
none reputation|4.7.0|421 4.7.0 [TSS04] Messages from 192.0.2.10 temporarily deferred due to unexpected volume or user complaints - 4.16.55.1; see https://postmaster.yahooinc.example/error-codes
suppress bad-mailbox|5.1.1|550 5.1.1 sorry, no mailbox here by that name (#5.1.1 - chkuser)
suppress bad-mailbox|5.0.0|550 permanent failure for one or more recipients (reader@there.example:550 5.1.1 User unknown)
none policy|5.0.0|550 permanent failure for one or more recipients (reader@there.example:blocked)
suppress mailbox-disabled|5.0.0|550 account reader@there.example is not active
suppress mailbox-disabled|5.2.1|554 5.2.1 mailbox is disabled
suppress bad-mailbox|5.0.0|550 Konto nie istnieje
suppress bad-mailbox|5.0.0|550 Onbekende gebruiker
suppress bad-mailbox|5.0.0|550 Gebruiker onbekend
suppress bad-mailbox|5.0.0|550 Usuario no encontrado
suppress bad-mailbox|5.0.0|550 La cuenta de correo no existe
suppress bad-mailbox|5.0.0|550 Usuário não existe
suppress bad-mailbox|5.0.0|550 Utente sconosciuto
suppress bad-mailbox|5.0.0|550 Schranka neexistuje
suppress bad-mailbox|5.0.0|550 Пользователь не найден
suppress bad-mailbox|5.0.0|550 존재하지 않는 사용자입니다
suppress bad-mailbox|5.0.0|550 Teilnehmer existiert nicht
suppress bad-mailbox|5.0.0|550 Benutzer unbekannt
suppress bad-mailbox|5.0.0|550 ユーザが存在しません
suppress bad-mailbox|5.0.0|550 此邮箱不存在
count mailbox-full|5.0.0|552 El buzón está lleno
count mailbox-full|5.0.0|552 Boîte pleine
count mailbox-full|5.0.0|552 Casella piena
count mailbox-full|5.0.0|552 Skrzynka pelna
count mailbox-full|5.0.0|552 Caixa postal cheia
count mailbox-full|5.0.0|552 Почтовый ящик переполнен
count mailbox-full|5.0.0|552 사용자 메일함 용량 초과
suppress bad-mailbox|5.0.0|550 5.1.1 The email account that you tried to reach does not exist
suppress bad-mailbox|5.5.0|550 5.5.0 Requested action not taken: mailbox unavailable [VI1EUR04FT045.eop-eur04.prod.protection.outlook.example]
suppress bad-mailbox|5.0.0|550 Recipient not found
suppress bad-mailbox|5.0.0|550 No such recipient here
suppress bad-mailbox|5.0.0|550 Unrouteable address
suppress bad-mailbox|5.0.0|554 5.1.1 <reader@there.example>: Recipient address rejected: User unknown in relay recipient table
suppress bad-mailbox|5.0.0|550 reader@there.example is not a valid mailbox
suppress bad-mailbox|5.0.0|511 sorry, no mailbox here by that name (#5.1.1)
suppress bad-mailbox|5.0.0|553 5.3.0 <reader@there.example>... No such user here
suppress bad-mailbox|5.0.0|550 The address is not in use
suppress bad-mailbox|5.0.0|550 Address unknown
suppress bad-mailbox|5.0.0|550 That account does not exist
suppress bad-mailbox|5.0.0|550 email address not found in directory
suppress bad-mailbox|5.0.0|550 Employee has left the company
count server-trouble|5.0.0|554 5.4.6 Too many hops
count server-trouble|5.0.0|554 5.3.0 local configuration error
none policy|5.0.0|550 5.7.1 Recipient not authorized, your IP has been found on a list
none reputation|5.0.0|554 Your access to this mail system has been rejected due to the sending MTA's poor reputation
none our-authentication|5.7.1|550 5.7.1 Message rejected: SPF check failed for ours.example
none our-authentication|5.0.0|550 Reverse DNS lookup failed for 192.0.2.10
none policy|5.0.0|550 5.7.1 Message rejected by recipient's mail filter
none greylisted|4.2.0|450 4.2.0 <reader@there.example>: Recipient address rejected: Greylisted, see http://postgrey.example/help
none content|5.0.0|554 Message refused: content looks unsolicited
none our-tls|5.7.10|550 5.7.10 Encryption needed
none content|5.6.0|550 5.6.0 Lone CR or LF in headers (see RFC2822 section 2.2)
count unreachable|4.4.7|delivery time expired
count unreachable|4.4.2|lost connection with mx.there.example[198.51.100.7] while receiving the initial server greeting
count unreachable|5.0.0|Retry timeout exceeded
count unreachable|4.4.1|connect to mx.there.example[198.51.100.7]:25: Connection refused
count unreachable|4.4.1|connect to mx.there.example[198.51.100.7]:25: No route to host
none policy|4.7.5|Server certificate not trusted
""".strip().splitlines()  # noqa: E501 (as they stand in reports)

# More of them, with the actions that are right; two where the words leave a doubt.
MORE = Path(__file__).with_name("reported_words.csv")


def more() -> list[dict[str, str]]:
    with MORE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", more(), ids=lambda row: row["words"][:60])
def test_the_words_of_a_report_are_acted_on_as_their_writer_meant(row: dict[str, str]) -> None:
    found = verdict.judge_report(row["words"], "", row["status"])
    assert action_of(found) in row["action"].split("|"), found.rule


@pytest.mark.parametrize("row", SAID)
def test_the_words_of_a_report_mean_what_their_writer_meant(row: str) -> None:
    expected, status, words = row.split("|", 2)
    found = verdict.judge_report(words, "", status)
    assert (f"{action_of(found)} {found.meaning}", found.rule) == (expected, found.rule)


@pytest.mark.parametrize(
    "words",
    [
        "550 Absender unbekannt: Benutzer existiert nicht",
        "550 El remitente no existe: cuenta desconocida",
        "550 Отправитель отклонён: пользователь не найден",
        "550 寄件人信箱不存在",
        "550 送信者のメールアドレスが存在しません",
    ],
)
def test_what_is_said_of_the_sender_is_not_held_against_the_reader(words: str) -> None:
    assert verdict.judge_report(words).action != verdict.Action.SUPPRESS
