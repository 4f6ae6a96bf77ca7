"""The settings of what comes back: each provider's secret for its webhooks, and the mailbox of returned mail."""

import base64
import binascii
import re
from collections.abc import Callable
from typing import Annotated

from pydantic import BeforeValidator, Field, field_validator
from pydantic_settings import BaseSettings, NoDecode

from app.core import inbox_url

HOOKS = ("ses", "sendgrid", "mailgun", "postmark", "brevo", "resend")
SECRETS = (*(f"hook_{name}" for name in HOOKS), "inbox")
SHORTEST = 12  # characters of a word that a provider has to bring

_TOPIC = re.compile(r"arn:aws(?:-[a-z]+)*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}")


def _words(value: object) -> object:
    return tuple(value.split()) if isinstance(value, str) else value


Words = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_words)]


class Inward(BaseSettings):
    """What an operator says about returned mail; a provider whose field is empty has its door closed."""

    hook_ses: Words = Field((), repr=False)
    hook_sendgrid: Words = Field((), repr=False)
    hook_mailgun: Words = Field((), repr=False)
    hook_postmark: Words = Field((), repr=False)
    hook_brevo: Words = Field((), repr=False)
    hook_resend: Words = Field((), repr=False)
    inbox: str = Field("", repr=False)

    @field_validator("hook_ses")
    @classmethod
    def _topics(cls, topics: tuple[str, ...]) -> tuple[str, ...]:
        return _each(topics, _is_topic, "must be the ARN of your SNS topic: arn:aws:sns:us-east-1:…:name")

    @field_validator("hook_sendgrid")
    @classmethod
    def _public_keys(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        return _each(keys, _is_public_key, "must be the verification key that SendGrid shows, in base64")

    @field_validator("hook_mailgun")
    @classmethod
    def _signing_keys(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        return _each(keys, _is_long, f"must be the HTTP webhook signing key, {SHORTEST} characters or more")

    @field_validator("hook_postmark")
    @classmethod
    def _logins(cls, logins: tuple[str, ...]) -> tuple[str, ...]:
        return _each(logins, _is_login, f"must be name:password with {SHORTEST} characters or more")

    @field_validator("hook_brevo")
    @classmethod
    def _logins_or_tokens(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        return _each(words, _is_long, f"must be name:password or a token, {SHORTEST} characters or more")

    @field_validator("hook_resend")
    @classmethod
    def _svix_secrets(cls, secrets: tuple[str, ...]) -> tuple[str, ...]:
        return _each(secrets, _is_svix, "must be the signing secret that Resend shows: whsec_…")

    @field_validator("inbox")
    @classmethod
    def _sound_inbox(cls, url: str) -> str:
        if url:
            inbox_url.parse(url)
        return url

    def hook(self, provider: str) -> tuple[str, ...]:
        """What a provider's calls are verified with; nothing where its door is closed or there is no such one."""
        words: tuple[str, ...] = getattr(self, f"hook_{provider}") if provider in HOOKS else ()
        return words


def _each(words: tuple[str, ...], is_sound: Callable[[str], bool], wanted: str) -> tuple[str, ...]:
    if not all(map(is_sound, words)):
        raise ValueError(wanted)
    return words


def _is_topic(word: str) -> bool:
    return _TOPIC.fullmatch(word) is not None


def _is_public_key(word: str) -> bool:
    """Tell whether it is DER of a public key (SubjectPublicKeyInfo begins with a SEQUENCE) in base64."""
    return _decoded(word)[:1] == b"0"


def _is_svix(word: str) -> bool:
    return word.startswith("whsec_") and len(_decoded(word.removeprefix("whsec_"))) >= SHORTEST


def _is_long(word: str) -> bool:
    return len(word) >= SHORTEST


def _is_login(word: str) -> bool:
    name, _, password = word.partition(":")
    return bool(name and password) and _is_long(word)


def _decoded(word: str) -> bytes:
    try:
        return base64.b64decode(word, validate=True)
    except (binascii.Error, ValueError):
        return b""
