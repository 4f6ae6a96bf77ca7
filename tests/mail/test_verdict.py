"""A reply is judged by what it means: a dead mailbox is given up, and nobody is lost over policy or our own faults."""

import csv
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.mail import verdict
from app.mail.outcome import Reply
from app.mail.verdict import Action
from tests import needs

REPLIES = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "replies.csv"
BEFORE_RCPT = ("connect", "ehlo", "auth", "mail")
AGAINST = (Action.SUPPRESS, Action.COUNT)

# action, code, stage, provider (- for none), text: as servers say it, in our own words
SAID = """
retry           550 rcpt    qq     Mailbox unavailable or access denied [Y3Jhc2g= IP: 192.0.2.9]. https://service.mail.qq.com/detail/0/166
slow-provider   550 dot     qq     Sender frequency limited [bm9uZQ==]. https://service.mail.qq.com/
slow-provider   550 report  -      Ip frequency limited [Zm9v IP 198.51.100.4]
slow-provider   550 mail    qq     Domain frequency limited
fail-message    550 dot     qq     Mail content denied [d2hv]. https://service.mail.qq.com/detail/0/171
suppress        550 rcpt    qq     Mailbox not found. https://service.mail.qq.com/detail/122/169
suppress        550 dot     -      The recipient may contain a non-existent account, please check the recipient address.
pause-mailing   550 dot     qq     SPF check failed. https://service.mail.qq.com/detail/0/72
pause-mailing   550 mail    qq     Domain may not exist or DNS check failed
pause-provider  550 connect qq     Suspected bounce attacks
pause-mailing   535 auth    -      Login Fail. Please enter your authorization code to login.
pause-mailing   501 mail    -      Mail from address must be same as authorization user.
pause-provider  421 connect 163    HL:REP 163 gzmx41, 198.51.100.9 http://mail.163.com/help/help_spam_16.htm?ip=198.51.100.9
pause-provider  554 report  -      HL:REP 126 mx7
pause-provider  554 mail    163    HL:IHU 163 mx2 host 198.51.100.9
slow-provider   450 rcpt    163    RP:QRC 126 smtp3, too many recipients in the last minutes
retry           450 rcpt    163    RP:DRC 163 mx11
retry           451 dot     163    DT:SPM yeah mx5, please try again
fail-message    554 dot     163    DT:SPM 126 mx3, PikvCgBHq, please see http://mail.163.com/help/help_spam_16.htm
pause-mailing   550 dot     163    MI:SPF 163 mx8
suppress        550 rcpt    163    Invalid User: nobody1984@126.com
count           550 rcpt    163    User locked: reader@163.com
fail-message    550 dot     163    User in blacklist
suppress        550 rcpt    -      5.1.1 用户不存在
suppress        550 report  -      收件人邮箱地址 reader@corp.example 不存在，请核对
suppress        554 rcpt    aliyun RCPT (nobody@aliyun.com) dosn't exist
count           552 rcpt    -      邮箱空间不足
count           552 dot     -      对方信箱已满，邮件无法投递
count           550 rcpt    -      该帐号已被冻结
fail-message    554 dot     -      邮件被判定为垃圾邮件
fail-message    550 dot     -      邮件内容违规，拒收
pause-provider  554 connect -      您的IP已被列入黑名单
slow-provider   550 mail    -      发信频率过快，请稍后再试
fail-message    554 rcpt    aliyun Reject by behaviour spam at Rcpt State(Connection IP address:192.0.2.4)
retry           451 rcpt    -      灰名单，请五分钟后重试
suppress        550 rcpt    gmail  5.1.1 The email account does not exist. https://support.google.com/mail/?p=NoSuchUser
suppress        550 report  gmail  5.2.1 The email account that you tried to reach is inactive. https://support.google.com/mail/
retry           550 rcpt    gmail  5.2.1 The user you are trying to contact is receiving mail too quickly.
pause-mailing   550 dot     gmail  5.7.26 Your email has been blocked because the sender is unauthenticated.
pause-mailing   421 dot     gmail  4.7.27 Your email has been rate limited because SPF authentication did not pass
pause-mailing   550 dot     gmail  5.7.30 This message does not pass DKIM
slow-provider   421 dot     gmail  4.7.28 Gmail has detected an unusual rate of mail containing one of your URL domains.
pause-provider  550 dot     gmail  5.7.1 This message is suspicious due to the very low reputation of the sending IP.
slow-provider   451 mail    outlook 4.7.500 Server busy. Please try again later from [198.51.100.4].
pause-mailing   550 dot     outlook 5.7.515 Access denied, domain does not meet the required authentication level.
pause-mailing   550 report  -      5.7.515 Access denied, sending domain news.example
suppress        550 rcpt    outlook 5.5.0 Requested action not taken: mailbox unavailable. (AM4PEPF0)
suppress        550 report  office365 5.4.1 Recipient address rejected: Access denied. [AMS0EPF0.outlook.com]
suppress        550 report  -      Recipient address rejected: Access denied. AS(201806271) [x.protection.outlook.com]
count           554 rcpt    -      5.7.1 <reader@corp.example>: Recipient address rejected: Access denied
pause-provider  550 mail    office365 5.7.511 Access denied, banned sender[198.51.100.4].
pause-provider  550 mail    office365 5.7.708 Service unavailable. Access denied, traffic not accepted from this IP.
fail-message    550 dot     office365 5.7.133 RESOLVER.RST.SenderNotAuthenticatedForGroup; authentication required
count           554 dot     office365 5.2.2 mailbox full; STOREDRV.Deliver.Exception:QuotaExceededException
suppress        550 report  -      5.4.310 DNS domain gone.example does not exist
pause-provider  421 mail    yahoo  4.7.1 [TS03] Messages will be permanently deferred; Retrying will NOT succeed.
pause-provider  421 mail    yahoo  4.7.0 [TSS05] Messages from 198.51.100.4 temporarily deferred due to user complaints
retry           421 mail    yahoo  4.7.0 Max messages per connection reached
suppress        554 dot     yahoo  delivery error: dd This account has been disabled or discontinued [#102].
suppress        552 rcpt    yahoo  1 Requested mail action aborted, mailbox not found
slow-provider   421 mail    icloud 4.7.1 [HCM2] Your mail from 198.51.100.4 was deferred.
fail-message    550 dot     icloud 5.7.1 [CS01] Message rejected due to local policy.
count           552 rcpt    icloud 5.2.2 <reader@me.com>: user is over quota
suppress        550 rcpt    icloud 5.1.1 <reader@mac.com>: inactive email address
fail-message    550 dot     docomo Unknown user reader@docomo.ne.jp
fail-message    550 dot     -      Unknown user reader@docomo.ne.jp
count           550 report  docomo Unknown user reader@docomo.ne.jp
count           550 report  au     : User unknown
suppress        550 rcpt    -      5.1.1 <gone@corp.example>... User unknown
suppress        550 rcpt    -      No such user here
suppress        550 rcpt    -      sorry, no mailbox here by that name. (#5.1.1)
suppress        550 rcpt    -      #5.1.0 Address rejected.
suppress        550 rcpt    -      5.1.1 Recipient not found in directory. https://community.mimecast.com/docs/DOC-1369#550
suppress        550 rcpt    -      Invalid Recipient - https://community.mimecast.com/docs/DOC-1369#550
suppress        550 rcpt    -      5.1.1 Adresse d au moins un destinataire invalide. Invalid recipient. OFR204_416
suppress        550 rcpt    -      unrouteable address
suppress        550 rcpt    -      Empfaenger unbekannt: account does not exist
suppress        550 rcpt    -      5.1.1 spam.policy@corp.example: Recipient rejected: User unknown in relay table
suppress        553 rcpt    -      5.1.2 We do not know a host by that name
suppress        550 report  -      5.1.1 Mr. Hat has left the firm
count           550 rcpt    -      Requested action not taken: mailbox unavailable
count           550 rcpt    -      5.1.1 Not enough disk space
count           452 report  -      5.2.2 -
count           550 report  -      552 5.2.2 <reader@corp.example>: the mailbox exceeded its storage limit
count           550 rcpt    -      5.2.1 mailbox temporarily disabled
count           554 dot     -      5.4.6 Routing loop detected
count           554 dot     -      5.3.0 Internal server error
retry           452 rcpt    -      4.2.2 Mailbox full
retry           452 mail    -      4.3.1 Insufficient system storage
retry           450 rcpt    -      4.2.0 <reader@corp.example>: Recipient address rejected: Greylisted for 300 seconds
retry           451 rcpt    -      4.7.1 Please try again in 5 minutes
retry           451 data    -      4.3.0 Queue file write error
retry           451 rcpt    -      4.4.3 SPF lookup timed out, temporary DNS error
retry           454 auth    -      4.7.0 Temporary authentication failure
retry           421 any     -      4.4.2 idle timeout, closing connection
retry           450 rcpt    -      4.1.1 nobody here, user unknown
slow-provider   421 connect -      4.7.0 Too many concurrent SMTP connections from your host
slow-provider   454 dot     -      Throttling failure: Maximum sending rate exceeded.
pause-mailing   454 dot     -      Throttling failure: Daily message quota exceeded.
pause-mailing   451 auth    -      Authentication failed: Maximum credits exceeded
pause-mailing   554 dot     -      Message rejected: Email address is not verified.
pause-mailing   530 mail    -      5.7.0 Must issue a STARTTLS command first
pause-mailing   530 mail    -      5.7.1 Authentication required
pause-mailing   550 mail    -      5.1.1 <news@ours.example>: Sender address rejected: User unknown in table
pause-mailing   550 mail    -      news.ours.example does not exist
pause-mailing   550 rcpt    -      5.7.60 SMTP; Client does not have permissions to send as this sender
pause-mailing   550 rcpt    -      5.7.1 Client host rejected: cannot find your reverse hostname, [198.51.100.4]
pause-mailing   553 rcpt    -      sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)
count           550 report  -      5.7.1 Unable to relay for reader@corp.example
pause-provider  554 connect -      5.7.1 Client host [198.51.100.4] blocked using b.barracudacentral.org
pause-provider  550 rcpt    -      5.1.1 IP address blacklisted by recipient
pause-provider  521 connect -      Go away
fail-message    550 dot     -      5.7.1 Rejected by the recipient's own filter
fail-message    554 dot     -      5.6.0 Scored 14 points, limit 5
fail-message    550 rcpt    -      5.1.1 User unknown or mail refused by policy
fail-message    552 dot     -      5.3.4 Message too big for this system
fail-message    550 rcpt    -      Computer says no
fail-message    550 rcpt    -      5.7.1 Computer says no
""".strip().splitlines()


@pytest.mark.parametrize("line", SAID)
def test_what_servers_say_is_understood(line: str) -> None:
    action, code, stage, provider, text = line.split(maxsplit=4)
    found = verdict.judge(Reply(int(code), text), stage, provider.strip("-"))
    assert found.action == ("retry" if code.startswith("4") and action == "count" else action), found


def test_every_row_of_the_corpus_is_judged_right_with_and_without_its_provider() -> None:
    if not REPLIES.exists():
        needs.give_up("The corpus of server replies does not lie beside this repository.")
    wrong = []
    with REPLIES.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            reply = Reply(int(row["code"]), f"{row['enhanced']} {row['text']}".strip())
            for provider in (row["provider"], ""):
                found = verdict.judge(reply, row["stage"], provider)
                if found.action != row["action"] or (row["suppress"] == "never") == found.counts:
                    wrong.append((row["action"], row["suppress"], found, reply))
    assert wrong == []


def test_a_verdict_says_what_the_reply_means_and_which_rule_said_so() -> None:
    found = verdict.judge(Reply(550, "5.1.1 No such user"), "rcpt")
    assert verdict.table().meanings[found.meaning] == "The mailbox does not exist."
    assert found.rule in {rule.name for rule in verdict.table().rules}


# -- nothing of ours is a reader's fault

POLICY = st.sampled_from(
    """blocked using zen.spamhaus.org|poor reputation|SPF check failed|DMARC policy of reject|message looks like spam
    rejected for policy reasons|your IP is banned|too many connections|rate limited|Relay access denied|content denied
    垃圾邮件|发信频率过快|authentication required|not authorized|virus found|access denied""".replace(
        "\n", "|"
    ).split("|")
)
MAILBOX = st.sampled_from(
    [
        "",
        "user unknown",
        "no such mailbox",
        "mailbox full",
        "account disabled",
        "用户不存在",
        "mailbox unavailable",
    ]
)
FILLER = st.text("abcdefghij ", max_size=30)
STAGES = st.sampled_from([*BEFORE_RCPT, "rcpt", "data", "body", "dot", "report"])
STATUSES = st.sampled_from(["", "5.0.0 ", "5.1.1 ", "5.2.1 ", "5.2.2 ", "5.4.1 ", "5.5.0 ", "5.7.1 "])
PROVIDERS = st.sampled_from(["", *verdict.table().providers])


@given(STATUSES, st.tuples(POLICY, MAILBOX, FILLER).flatmap(st.permutations), STAGES, PROVIDERS)
def test_policy_never_speaks_against_an_address_whatever_stands_beside_it(
    status: str, parts: list[str], stage: str, provider: str
) -> None:
    said = "; ".join(parts)
    found = verdict.judge(Reply(550, status + said), stage, provider)
    assert found.action != Action.SUPPRESS
    if "Relay" not in said:
        assert found.action != Action.COUNT


@given(st.integers(0, 999), st.text(max_size=120), STAGES, PROVIDERS)
def test_a_policy_status_suppresses_only_where_the_text_speaks_of_the_mailbox(
    detail: int, text: str, stage: str, provider: str
) -> None:
    found = verdict.judge(Reply(550, f"5.7.{detail} {text}"), stage, provider)
    assert found.action != Action.SUPPRESS or re.search(
        "user|mail|recip|account|addr|host|domain|人|户|号", text, re.I
    )


@given(st.integers(400, 499), st.text(max_size=120), MAILBOX, STAGES, PROVIDERS)
def test_what_is_temporary_is_never_held_against_anybody(
    code: int, text: str, mailbox: str, stage: str, provider: str
) -> None:
    found = verdict.judge(Reply(code, f"{text} {mailbox}"), stage, provider)
    assert found.action not in (*AGAINST, Action.FAIL_MESSAGE)


@given(st.integers(500, 599), STATUSES, MAILBOX, st.sampled_from(BEFORE_RCPT), PROVIDERS)
def test_nothing_said_before_the_reader_is_named_is_held_against_them(
    code: int, status: str, mailbox: str, stage: str, provider: str
) -> None:
    found = verdict.judge(Reply(code, status + mailbox), stage, provider)
    assert found.action not in AGAINST


@given(st.integers(0, 999), st.text(max_size=3000), st.text(max_size=12), st.text(max_size=12))
def test_any_reply_at_all_has_a_verdict(code: int, text: str, stage: str, status: str) -> None:
    assert verdict.judge(Reply(code, text), stage, "nobody", status).action in Action


@pytest.mark.parametrize(
    "word", ["user ", "a@", "mailbox" * 3, "http://", "relay ing", "5.", "too many ", "（用户", "- "]
)
def test_a_hostile_reply_has_a_verdict_too(word: str) -> None:
    assert verdict.judge(Reply(550, word * 100_000), "rcpt").action in Action


def test_the_words_in_addresses_and_paths_are_others_words() -> None:
    text = "5.1.1 <spf.relay-access-denied@spam.example>: see https://mx.example/policy/blocked?dkim - user unknown"
    assert verdict.judge(Reply(550, text), "rcpt").action == Action.SUPPRESS


# -- reports


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ("smtp; 550 5.1.1 <a@b.example>... User Unknown", 550, "5.1.1 <a@b.example>... User Unknown"),
        ("smtp;550-5.1.1 The account 550 5.1.1 is unknown", 550, "5.1.1 The account 550 5.1.1 is unknown"),
        ("X-Postfix; host mx[192.0.2.5] said: 554 5.6.0 spam (in reply to end of DATA command)", 554, None),
        ("RecipientError: 550 5.5.0 Requested action not taken", 550, "5.5.0 Requested action not taken"),
        ("550: : User unknown", 550, ": User unknown"),
        ("unknown; No such domain.", 0, "unknown; No such domain."),
        ("smtp; 550", 550, ""),
        ("Mailbox 550 of 600", 0, "Mailbox 550 of 600"),
        ("PERM_FAILURE: SMTP Error (state 9): 550 550 Unknown user", 550, "Unknown user"),
        ("It responded as follows: [550 5.1.1 no]", 550, "5.1.1 no]"),
        ("Invalid Address, ERROR_CODE :550, ERROR_CODE :5.1.1 Unknown", 550, "5.1.1 Unknown"),
        ("[198.51.100.4], 554 Service currently unavailable", 554, "Service currently unavailable"),
        ("see error 5501 of host 198.51.100.4", 0, None),
    ],
)
def test_the_reply_in_a_report_is_found(words: str, code: int, text: str | None) -> None:
    found = verdict.reply_in(words)
    assert found.code == code
    assert text is None or found.text == text


def test_the_stage_in_a_report_is_found() -> None:
    assert verdict.stage_in("said: 550 no (in reply to end of DATA command)") == "dot"
    assert (
        verdict.stage_in("SMTP error from remote mail server after RCPT TO:<a@b.example>: 550 no") == "rcpt"
    )
    assert verdict.stage_in("SMTP error after MAIL FROM:<a@b.example>: 550 no") == "mail"
    assert (
        verdict.stage_in("SMTP error from remote mail server after initial connection: 554 no") == "connect"
    )
    assert verdict.stage_in("198.51.100.4 failed after I sent the message. Remote host said: 554 no") == "dot"
    assert verdict.stage_in("Connected to 198.51.100.4 but sender was rejected.") == "mail"
    assert verdict.stage_in("198.51.100.4 did not like our EHLO: 550 no") == "ehlo"
    assert verdict.stage_in("550 no") == "report"


# action for the address, text: a report is the last word on a mail
REPORTED = """
suppress smtp; 550 5.1.1 <gone@corp.example>... User unknown
suppress host mx.corp.example[198.51.100.4] said: 550 no such person here (in reply to RCPT TO command)
suppress gone@corp.example Invalid Address, ERROR_CODE :550, ERROR_CODE :5.1.1 User Unknown
suppress It responded as follows: [550 we do not have such a user]
suppress smtp; 554 5.7.1 <gone@corp.example>: Recipient address rejected: Access denied
suppress Message was not accepted -- invalid mailbox. Local mailbox gone@corp.example is unavailable
suppress all relevant MX records point to non-existent hosts
suppress User gone (gone@corp.example) not listed in Domino Directory
count    the mailbox exceeded the local limit
count    mail file size exceeds the maximum for this reader
count    quota violation for reader@corp.example
count    lost connection with mx.corp.example while sending end of data
count    all hosts have been failing for a long time
count    Command died with status 75: "/usr/lib/deliver"
count    host mx.corp.example said: 550 Unknown user reader@corp.example (in reply to end of DATA command)
count    The subscriber is only accepting mail from people they know
count    smtp; 550 Computer says no
count    smtp; 421 4.4.2 greeting timed out
none     smtp; 550 we do not like senders such as you
none     host mx.corp.example said: 550 Computer says no (in reply to end of DATA command)
none     SMTP error from remote mail server after initial connection: 554 go away
none     SMTP error from remote mail server after MAIL FROM:<a@ours.example>: 550 5.1.1 user unknown
none     smtp; 554 5.7.1 <reader@corp.example>: Recipient address rejected: Access denied, blocked by policy
count    smtp; 554 5.7.1 <reader@corp.example>: Recipient address rejected: Access denied; see our terms
none     smtp; 550 this is a closed mailing list, members only
none     smtp; 550 the message has no valid header as RFC 5322 asks
none     smtp; 421 4.7.28 unusual rate of mail
""".strip().splitlines()


@pytest.mark.parametrize("row", REPORTED)
def test_what_a_report_says_of_the_address_is_understood(row: str) -> None:
    action, words = row.split(maxsplit=1)
    found = verdict.judge_report(words)
    against = found.action if found.action in AGAINST else "count" if found.counts else "none"
    assert (against, found.rule) == (action, found.rule)


@given(POLICY, MAILBOX, st.booleans(), STATUSES, PROVIDERS)
def test_a_report_that_names_a_policy_never_suppresses(
    policy: str, mailbox: str, first: bool, status: str, provider: str
) -> None:
    words = f"smtp; 550 {status}{policy}; {mailbox}" if first else f"550 {status}{mailbox}; {policy}"
    assert verdict.judge_report(words, provider).action != Action.SUPPRESS


@pytest.mark.parametrize(
    ("words", "status", "action"),
    [
        ("", "5.1.1", "suppress"),
        ("", "5.2.2", "count"),
        ("", "5.7.1", "fail-message"),
        ("", "5.0.0 (permanent failure)", "count"),
        ("", "4.4.7", "retry"),
        ("550 5.7.1 Computer says no", "5.1.1", "fail-message"),
        ("550 5.0.0 Computer says no", "5.1.1", "suppress"),
        ("Envelope expired", "", "count"),
    ],
)
def test_a_reports_status_speaks_where_the_reply_does_not(words: str, status: str, action: str) -> None:
    assert verdict.judge(verdict.reply_in(words), "report", status=status).action == action


# -- providers


@pytest.mark.parametrize(
    ("name", "hosts"),
    [
        ("qq", "qq.com foxmail.com vip.qq.com mx3.qq.com mxbiz1.qq.com reader@QQ.COM"),
        ("163", "163.com 126.com yeah.net 163mx01.mxmail.netease.com. hzmx02.mxmail.netease.com"),
        ("gmail", "gmail.com googlemail.com alt2.aspmx.l.google.com aspmx3.googlemail.com smtp.google.com"),
        ("outlook", "outlook.com hotmail.co.uk live.nl msn.com hotmail-com.olc.protection.outlook.com"),
        ("office365", "corp-example.mail.protection.outlook.com corp-example.a-v1.mx.microsoft"),
        ("yahoo", "yahoo.com yahoo.fr yahoo.com.br ymail.com aol.com mta7.am0.yahoodns.net"),
        ("yahoo-japan", "yahoo.co.jp mx3.mail.yahoo.co.jp"),
        ("icloud", "icloud.com me.com mac.com mx01.mail.icloud.com"),
        ("other", "example.org notqq.com yahoo.evil.example qq.com.example mail.example.cn localhost"),
    ],
)
def test_a_provider_is_known_by_its_domains_and_by_its_mx(name: str, hosts: str) -> None:
    assert {host: verdict.provider_of(host) for host in hosts.split()} == dict.fromkeys(hosts.split(), name)


@pytest.mark.parametrize(
    ("meaning", "words"),
    [
        (verdict.ENOUGH, "421 too many messages in this connection"),
        (verdict.ENOUGH, "421 4.7.0 Too many messages per connection"),
        (verdict.ENOUGH, "452 4.3.2 mail limit per session"),
        (verdict.ENOUGH, "450 Number of messages exceeds maximum per connection"),
        (verdict.ENOUGH, "421 Messages per connection limit exceeded"),
        (verdict.ENOUGH, "421 4.4.5 Limit of 20 messages per session exceeded"),
        (verdict.ENOUGH, "421 Session message limit reached"),
        (verdict.ENOUGH, "450 4.7.1 too many emails in this session"),
        (verdict.ENOUGH, "451 4.7.1 Only 10 messages are allowed per connection"),
        (verdict.ENOUGH, "421 4.7.0 Max. number of mails per session reached"),
        ("connections", "421 4.7.0 Too many concurrent SMTP sessions"),
        ("connections", "450 4.7.1 Too many messages sent, connection refused"),
        ("rate", "450 too many messages per hour from this session's ip"),
        ("too-large", "552 exceeds the maximum message size for this session"),
    ],
)
def test_a_limit_of_the_connection_is_none_of_our_pace(meaning: str, words: str) -> None:
    assert verdict.judge(Reply(int(words[:3]), words[4:]), "rcpt").meaning == meaning


# -- the table itself

SOUND = """
[meaning]
gone = { counts = true, says = "Gone." }
no = { says = "No." }
[provider.qq]
domains = ["qq.com"]
[words]
mail = 'e?mail'
[[rule]]
name = "first"
{}
[[rule]]
name = "last"
meaning = "no"
action = "fail-message"
"""


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ('meaning = "lost"\naction = "retry"', "Rule first: the meaning 'lost' is not in the list"),
        ('meaning = "no"\naction = "ban"', "Rule first: 'ban' is not an action"),
        ('meaning = "no"\naction = "retry"\ncolour = "red"', "Rule first: a rule has"),
        ('meaning = "no"\naction = "retry"\nsays = "x"', "Rule first: .* are lists"),
        ('meaning = "no"\naction = "suppress"\nsays = ["x"]', "Rule first: no is not about the mailbox"),
        ('meaning = "gone"\naction = "suppress"\ncode = [550]', "Rule first: .* no evidence"),
        ('meaning = "no"\naction = "retry"\ncode = [250]', "Rule first: 250 is not a code"),
        ('meaning = "no"\naction = "retry"\nprovider = ["aol"]', "Rule first: 'aol' is not a provider"),
        ('meaning = "no"\naction = "retry"\nstage = ["end"]', "Rule first: 'end' is not a stage"),
        ('meaning = "no"\naction = "retry"\nsays = ["("]', "Rule first: the pattern .* is not valid"),
        ('meaning = "no"\naction = "retry"\nsays = ["{post}"]', "Rule first: the pattern .* names a list"),
        ('meaning = "no"\naction = "retry"\nsays = ["a.*b"]', "Rule first: the pattern .* repeats"),
        ('meaning = "no"\naction = "retry"\nsays = ["(a{0,9}){0,9}"]', "Rule first: the pattern .* repeats"),
        (
            'meaning = "no"\naction = "retry"\n[[rule]]\nname = "first"\nmeaning = "no"\naction = "retry"',
            "Two rules",
        ),
    ],
)
def test_a_table_that_is_not_sound_is_refused_and_the_rule_is_named(row: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        verdict.read_table(SOUND.replace("{}", row, 1))


@pytest.mark.parametrize("limit", ["connections = 4", "per_connection = 8"])
def test_a_provider_s_limit_which_only_its_relay_could_keep_is_refused(limit: str) -> None:
    with pytest.raises(ValueError, match="Provider qq: it has domains and mx, and nothing else"):
        verdict.read_table(
            SOUND.replace("{}", 'meaning = "no"\naction = "retry"').replace("[words]", f"{limit}\n[words]")
        )


def test_a_table_needs_an_end() -> None:
    with pytest.raises(ValueError, match="last rule"):
        verdict.read_table(SOUND.partition("[[rule]]")[0])


def test_every_meaning_is_used_and_the_actions_are_those_we_know() -> None:
    rules = verdict.table().rules
    assert {rule.meaning for rule in rules} == set(verdict.table().meanings)
    assert {rule.action for rule in rules} == set(Action)
