"""Jinja for mails and pages: sandboxed, speaking one language, an operator's own files before ours."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import BaseLoader, Environment, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from app.core import paths
from app.core.i18n import Catalogue


def folders(part: str, overlay: Path | None) -> list[Path]:
    """Return where the templates of `part` (email, web) lie, the operator's own first."""
    return [folder / part for folder in (overlay, paths.templates()) if folder]


def environment(
    loader: BaseLoader, catalogue: Catalogue, filters: Mapping[str, Callable[..., Any]]
) -> Environment:
    """Return an environment whose `_()` and `lang` are those of the catalogue.

    Markup in values is escaped in every `.html`; an undefined name is an error, and nothing outside the
    values can be reached or changed.
    """
    made = ImmutableSandboxedEnvironment(
        loader=loader,
        undefined=StrictUndefined,
        autoescape=lambda name: bool(name and name.endswith(".html")),
        extensions=["jinja2.ext.i18n"],
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["ext.i18n.trimmed"] = True
    made.globals["lang"] = catalogue.tag
    made.filters |= dict(filters)
    # The extension adds this method at run time, where no type checker sees it.
    install: Callable[..., None] = getattr(made, "install_gettext_callables")  # noqa: B009
    install(catalogue.gettext, catalogue.ngettext, newstyle=True)
    return made
