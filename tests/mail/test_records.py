"""The DNS records to set, and what is wrong with those that are found; nothing here asks the network."""

import dns.asyncresolver
import dns.resolver
import pytest

from app.mail import records
from app.mail.records import Record


def by_kind(found: list[Record]) -> dict[tuple[str, str], str]:
    return {(record.name, record.type): record.value for record in found}


def test_a_sending_domain_wants_spf_and_dmarc() -> None:
    found = records.wanted("news.example.com", ("smtp.example.net", "mx.example.net"), None)
    assert by_kind(found) == {
        ("news.example.com", "TXT"): "v=spf1 a:smtp.example.net a:mx.example.net ~all",
        ("_dmarc.news.example.com", "TXT"): "v=DMARC1; p=none",
    }
    assert all(record.why and record.problem is None and record.found == () for record in found)


def test_a_bounce_domain_wants_a_way_for_returned_mail_and_its_own_spf() -> None:
    found = by_kind(records.wanted("example.com", ("smtp.example.net",), "b.example.com"))
    assert found["b.example.com", "MX"] == "10 b.example.com."
    assert found["b.example.com", "TXT"] == "v=spf1 a:smtp.example.net ~all"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "2001:db8::1"])
def test_a_relay_on_this_machine_is_named_in_no_record(host: str) -> None:
    assert records.wanted("example.com", (host,), None)[0].value == "v=spf1 ~all"


SPF, DMARC = records.wanted("example.com", ("smtp.example.net",), None)
MX = records.wanted("example.com", (), "b.example.com")[2]


@pytest.mark.parametrize(
    ("record", "found", "problem"),
    [
        (SPF, ("v=spf1 a:smtp.example.net ~all",), None),
        (SPF, ("V=SPF1 include:example.net -all",), None),
        (SPF, ("google-site-verification=x", "v=spf1 mx -all"), None),
        (SPF, (), "missing"),
        (SPF, ("v=spf10 -all",), "missing"),
        (SPF, ("v=spf1 -all", "v=spf1 mx -all"), "there are 2, and only one may be"),
        (SPF, ("v=spf1 +all",), "+all lets everybody send for this domain"),
        (SPF, ("v=spf1 mx +ALL ",), "+all lets everybody send for this domain"),
        (SPF, ("v=spf1 mx all",), "+all lets everybody send for this domain"),
        (DMARC, ("v=DMARC1; p=none",), None),
        (DMARC, ("v=DMARC1;p=reject;rua=mailto:d@example.com",), None),
        (DMARC, ("v=DMARC1; sp=none",), "it names no policy (p=)"),
        (DMARC, ("v=DMARC1",), "it names no policy (p=)"),
        (DMARC, (), "missing"),
        (MX, ("10 mx.example.net.",), None),
        (MX, (), "missing: returned mail has nowhere to go"),
        (MX, ("0 .",), "the domain says that it takes no mail (RFC 7505)"),
    ],
)
def test_what_is_found_is_judged(record: Record, found: tuple[str, ...], problem: str | None) -> None:
    assert records.judged(record, found) == problem


async def test_a_resolver_that_cannot_be_asked_is_a_problem_and_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dns.asyncresolver.Resolver, "resolve", refusing(OSError("no network")))
    looked = await records.looked_up([SPF, DMARC])
    assert [record.problem for record in looked] == ["could not be looked up (OSError)"] * 2


async def test_a_machine_without_a_resolver_says_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = dns.resolver.NoResolverConfiguration()  # type: ignore[no-untyped-call]
    monkeypatch.setattr(dns.asyncresolver, "Resolver", refusing(missing))
    assert (await records.looked_up([SPF]))[0].problem == "could not be looked up (NoResolverConfiguration)"


def refusing(error: Exception) -> object:
    def refuse(*_: object, **__: object) -> None:
        raise error

    return refuse
