"""The description of the API: what FastAPI finds by itself, with our errors in place of its own."""

from collections.abc import Callable, Iterator
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from app.api.issue_shapes import NewIssue
from app.api.shapes import Problem
from app.core.errors import (
    BroadsheetError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    TooLarge,
    TooMany,
    Unauthorized,
    Unavailable,
    Unsupported,
)
from app.edge import NotAllowed

EXPECTED: tuple[type[BroadsheetError], ...] = (
    Unauthorized, Forbidden, NotFound, NotAllowed, Conflict, TooLarge, Unsupported, Invalid, TooMany, Unavailable,
)  # fmt: skip
REFERENCE = "#/components/schemas/{model}"
PROBLEMS: dict[int | str, dict[str, Any]] = {
    error.status: {
        "description": error.title,
        "content": {"application/problem+json": {"schema": {"$ref": REFERENCE.format(model="Problem")}}},
    }
    for error in EXPECTED
}


TEXTS = {"text/csv": "email,name,editions\nlin@example.com,林,daily weekly\n"}


def describing(api: FastAPI) -> Callable[[], dict[str, Any]]:
    """Return what gives an application's OpenAPI document, every error and example in it described."""
    generate = api.openapi

    def openapi() -> dict[str, Any]:
        document = generate()
        schemas = document["components"]["schemas"]
        for one in (Problem, NewIssue):
            schema = one.model_json_schema(ref_template=REFERENCE)
            schemas |= schema.pop("$defs", {}) | {one.__name__: schema}
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        for model in _shapes(BaseModel):
            if model.__name__ in schemas and "example" in _extra(model):
                schemas[model.__name__]["example"] = _extra(model)["example"]  # FastAPI drops its nulls
        for content in _contents(document):
            for kind in TEXTS.keys() & content.keys():
                content[kind].setdefault("example", TEXTS[kind])
        return document

    return openapi


def _contents(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the content of every body that is asked for or answered."""
    for item in document["paths"].values():
        for call in item.values():
            yield call.get("requestBody", {}).get("content", {})
            yield from (answer.get("content", {}) for answer in call["responses"].values())


def _shapes(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        if model.__module__.startswith("app.api."):
            yield model
        yield from _shapes(model)


def _extra(model: type[BaseModel]) -> dict[str, Any]:
    extra = model.model_config.get("json_schema_extra")
    return extra if isinstance(extra, dict) else {}
