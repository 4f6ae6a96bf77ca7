"""Every mail of a house with a DKIM key arrives signed, and a key that cannot sign is named at start."""

from pathlib import Path

import dkim as dkimpy  # type: ignore[import-untyped]
import pytest
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric import rsa

from app.core import config
from app.core.errors import Misconfigured
from app.flows import signing
from app.mail import dkim, records
from tests.programs import Shop, stopped
from tests.sink import Sink
from tests.web import reading
from tests.world import house_at


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    """A fresh RSA key of 2048 bits in a file."""
    key = rsa.generate_private_key(65537, 2048)
    file = tmp_path / "dkim.pem"
    file.write_bytes(key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption()))
    return file


async def test_issues_and_letters_arrive_signed(
    tmp_path: Path, empty_database: Path, sink: Sink, key_file: Path
) -> None:
    async with house_at(tmp_path, empty_database, sink, dkim_key=key_file, dkim_selector="s1") as world:
        await world.readers(10, "daily")
        await world.deliver(await world.send(await world.issue()))
        assert (await reading.ask(world, "new@example.com")).status_code == 200
        mails = await world.letters(11)
        signer = world.house.composer.dkim
        assert signer is not None
        public = dkim.public_record(signer).encode()
        for mail in mails:
            assert dkimpy.verify(mail.data, dnsfunc=lambda _name, timeout=5: public)  # noqa: ARG005


async def test_the_record_to_set_is_the_one_that_verifies(
    tmp_path: Path, empty_database: Path, sink: Sink, key_file: Path
) -> None:
    async with house_at(tmp_path, empty_database, sink, dkim_key=key_file, dkim_selector="s1") as world:
        signer = world.house.composer.dkim
    assert signer is not None
    record = records.key_record(signer)
    assert record.name == "s1._domainkey.broadsheet.example"
    assert records.judged(record, (record.value,)) is None
    assert "another" in (records.judged(record, ("v=DKIM1; p=AAAA",)) or "")
    assert records.judged(record, ()) == "missing"


async def test_a_sender_outside_the_signing_domain_is_doubted_at_start(
    tmp_path: Path, empty_database: Path, sink: Sink, key_file: Path
) -> None:
    async with house_at(tmp_path, empty_database, sink, dkim_key=key_file, dkim_selector="s1") as world:
        signer = world.house.composer.dkim
    senders = ["a@broadsheet.example", "b@x.broadsheet.example", "c@evilbroadsheet.example"]
    doubts = signing.doubts(signer, senders)
    assert len(doubts) == 1
    assert "c@evilbroadsheet.example" in doubts[0]


def test_a_start_says_what_is_doubtful_about_the_signatures(shop: Shop, key_file: Path) -> None:
    given = {"KEY": str(key_file), "SELECTOR": "s1", "DOMAIN": "other.example"}
    program, _ = shop.serve("serve", **{f"BROADSHEET_DKIM_{name}": value for name, value in given.items()})
    code, _, said = stopped(program)
    assert code == 0
    assert "signed for other.example, which DMARC does not count" in said


@pytest.mark.parametrize("content", [b"", b"not a key", None])
async def test_a_key_that_cannot_sign_stops_the_start_with_a_sentence(
    tmp_path: Path, empty_database: Path, sink: Sink, content: bytes | None
) -> None:
    file = tmp_path / "bad.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(Misconfigured, match="BROADSHEET_DKIM_KEY"):
        async with house_at(tmp_path, empty_database, sink, dkim_key=file, dkim_selector="s1"):
            pass


def test_a_key_without_a_selector_is_refused() -> None:
    with pytest.raises(Misconfigured, match="DKIM_SELECTOR is needed"):
        config.load(dkim_key="dkim.pem")
