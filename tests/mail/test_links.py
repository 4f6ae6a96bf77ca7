"""A link says where it leads, and a paper or a ticket what it is cited by."""

import pytest

from app.mail.links import reference, shown


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://arxiv.org/abs/2410.12345", "arXiv:2410.12345"),
        ("https://arxiv.org/pdf/2410.12345v2.pdf", "arXiv:2410.12345v2"),
        ("https://www.arxiv.org/html/2410.12345v1/", "arXiv:2410.12345v1"),
        ("https://export.arxiv.org/abs/math.GT/0309136", "arXiv:math.GT/0309136"),
        ("https://huggingface.co/papers/2410.12345", "arXiv:2410.12345"),
        ("https://github.com/pytorch/torchtitan/pull/123", "pytorch/torchtitan#123"),
        ("https://github.com/a-b/c.d_e/issues/7#issuecomment-1", "a-b/c.d_e#7"),
        ("https://github.com/a/b/pull/7/files", "a/b#7"),
        ("https://github.com/a/b/discussions/9", "a/b#9"),
        ("https://github.com/a/b/commit/0123456789abcdef", "a/b@0123456"),
        ("https://github.com/a/b/pull/7/commits/0123456789abcdef", "a/b@0123456"),
        ("https://github.com/a/b/releases/tag/v1.2", "a/b v1.2"),
        ("https://github.com/a/b", ""),
        ("https://github.com/a/b/pull/seven", ""),
        ("https://github.com.evil.example/a/b/pull/7", ""),
        ("https://arxiv.org/list/cs/new", ""),
        ("https://example.org/abs/2410.12345", ""),
    ],
)
def test_a_paper_or_a_ticket_is_cited_by_its_number(url: str, name: str) -> None:
    assert reference(url) == name


def test_host_and_path_are_shown_and_who_claims_to_be_another_host_is_not() -> None:
    assert shown("https://example.org/a?b=1#c") == "example.org/a?b=1"
    assert shown("https://bank.example@evil.example/x") == "evil.example/x"
