"""A template may name only what it is given: a filter that is not there would show in one branch of one page."""

import pytest
from jinja2 import FileSystemLoader, nodes

from app.core import i18n, paths, templates
from app.mail import typeset


@pytest.mark.parametrize("part", ["email", "web"])
def test_every_filter_and_test_that_a_template_names_is_there(part: str) -> None:
    spoken = i18n.catalogue(i18n.LANGUAGES[0])
    loader = FileSystemLoader(templates.folders(part, None))
    made = templates.environment(loader, spoken, typeset.filters(spoken))
    unknown = []
    for file in sorted((paths.templates() / part).rglob("*.*")):
        tree = made.parse(file.read_text(encoding="utf-8"))
        unknown += [
            f"{file.name}: {one.name}" for one in tree.find_all(nodes.Filter) if one.name not in made.filters
        ]
        unknown += [
            f"{file.name}: {one.name}" for one in tree.find_all(nodes.Test) if one.name not in made.tests
        ]
    assert unknown == []
