"""The description of the API holds what it says: examples, errors, answers that conform, and a client made from it."""

import asyncio
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from sqlalchemy import update

from app.editors.models import ApiKey
from tests.issues import samples
from tests.world import World

METHODS = ("get", "post", "put", "patch", "delete")
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


async def described(world: World) -> dict[str, Any]:
    answer = await world.api.get("/openapi.json", headers={"Authorization": ""})
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def calls(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each call as `METHOD path` with its description."""
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield f"{method.upper()} {path}", item[method]


def has_example(document: dict[str, Any], content: dict[str, Any]) -> bool:
    """Tell whether a body's description, or the shape it refers to, shows an example."""
    schema = content.get("schema", {})
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    inner = schema.get("items") or schema.get("properties", {}).get("items", {}).get("items", {})
    return (
        "example" in content
        or "examples" in content
        or "example" in schema
        or any(has_example(document, {"schema": each}) for each in schema.get("anyOf", ()))
        or bool(inner and has_example(document, {"schema": inner}))
    )


async def test_every_call_has_a_summary_a_sentence_and_a_name_of_its_own(world: World) -> None:
    document = await described(world)
    assert document["openapi"].startswith("3.1")
    assert document["servers"] == [{"url": "http://127.0.0.1:8000/api/v1"}]
    found = dict(calls(document))
    assert len(found) > 25
    assert all(call["summary"] and call["description"] and call["tags"] for call in found.values())
    names = [call["operationId"] for call in found.values()]
    assert len(set(names)) == len(names)
    open_calls = [name for name, call in found.items() if call.get("security") != [{"HTTPBearer": []}]]
    assert open_calls == ["POST /hooks/{provider}"]  # whose key is the provider's signature


async def test_every_body_and_every_answer_shows_an_example(world: World) -> None:
    document = await described(world)
    missing = []
    for name, call in calls(document):
        bodies = [("asks", call["requestBody"])] if "requestBody" in call else []
        bodies += [(status, answer) for status, answer in call["responses"].items() if status < "3"]
        for which, body in bodies:
            for kind, content in body.get("content", {}).items():
                if not has_example(document, content):
                    missing.append(f"{name} {which} {kind}")
    assert missing == []


async def test_every_error_is_described_as_a_problem(world: World) -> None:
    document = await described(world)
    for name, call in calls(document):
        errors = {status: answer for status, answer in call["responses"].items() if status >= "4"}
        assert {"401", "403", "404", "405", "409", "413", "415", "422", "429", "503"} == set(errors), name
        for answer in errors.values():
            assert answer["description"]
            content = answer["content"]
            assert content == {
                "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
            }
    problem = document["components"]["schemas"]["Problem"]
    assert problem["example"]["errors"]
    assert "HTTPValidationError" not in document["components"]["schemas"]


async def test_every_example_fits_its_own_shape(world: World) -> None:
    import jsonschema_rs

    document = await described(world)
    for name, schema in document["components"]["schemas"].items():
        if "example" in schema:
            whole = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
            jsonschema_rs.validate(whole, schema["example"])


async def test_every_call_of_the_contract_is_there(world: World) -> None:
    found = {name for name, _ in calls(await described(world))}
    wanted = {
        "POST /issues", "GET /issues", "GET /issues/{issue_id}", "PATCH /issues/{issue_id}",
        "DELETE /issues/{issue_id}", "GET /issues/{issue_id}/preview", "GET /issues/{issue_id}/preflight",
        "POST /issues/{issue_id}/test", "POST /issues/{issue_id}/copy", "POST /issues/{issue_id}/send",
        "POST /issues/{issue_id}/why", "GET /mailings", "GET /mailings/{mailing_id}",
        "PATCH /mailings/{mailing_id}", "GET /mailings/{mailing_id}/events",
        "GET /mailings/{mailing_id}/deliveries", "POST /mailings/{mailing_id}/reconcile",
        "POST /mailings/{mailing_id}/{act}", "GET /suppressions", "POST /suppressions",
        "DELETE /suppressions/{suppression_id}", "GET /keys", "POST /keys", "DELETE /keys/{key_id}",
        "GET /editions", "POST /editions", "PATCH /editions/{slug}",
    }  # fmt: skip
    assert wanted <= found


async def ask(client: httpx.AsyncClient, case: schemathesis.Case[Any]) -> httpx.Response:
    """Ask what a generated case asks."""
    given = case.as_transport_kwargs(base_url="http://127.0.0.1:8000/api/v1")
    wanted = {
        name: given[name] for name in ("headers", "params", "json", "data") if given.get(name) is not None
    }
    if "data" in wanted:
        wanted["content"] = wanted.pop("data")
    headers = dict(client.headers) | dict(wanted.pop("headers", {}))
    return await client.request(given["method"], given["url"], headers=headers, timeout=20, **wanted)


@pytest.mark.parametrize("mode", list(GenerationMode))
async def test_whatever_a_call_is_given_it_answers_as_described(world: World, mode: GenerationMode) -> None:
    await world.readers(3)
    await world.send(await world.issue())
    await world.issue("weekly")
    async with world.db.transaction() as session:  # so that no case revokes the key it is asked with
        await session.execute(update(ApiKey).values(id=987654))
    world.house.stopping.set()  # so that the events of a mailing end
    here = asyncio.get_running_loop()
    schema = schemathesis.openapi.from_dict(await described(world))
    broken = []
    for found in schema.get_all_operations():
        call = found.ok()  # type: ignore[union-attr]

        @settings(
            max_examples=8, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(call.as_strategy(generation_mode=mode))
        def answers_as_described(case: schemathesis.Case[Any]) -> None:
            answer = asyncio.run_coroutine_threadsafe(ask(world.api, case), here).result()
            case.validate_response(answer, checks=CHECKS)

        try:
            await asyncio.to_thread(answers_as_described)
        except FailureGroup as error:
            broken.append(f"{call.label}: {[str(one)[:600] for one in error.exceptions]}")
        except Unsatisfiable:
            continue  # a call that takes nothing can be given nothing wrong
    assert broken == []


@pytest.fixture
def made_client(tmp_path: Path) -> Iterator[Any]:
    """Give what makes a client from a description, and forget its modules afterwards."""

    def make(document: dict[str, Any]) -> Any:
        (tmp_path / "openapi.json").write_text(json.dumps(document))
        command = [sys.executable, "-m", "openapi_python_client", "generate", "--path", "openapi.json",
                   "--meta", "none", "--output-path", "broadsheet_client"]  # fmt: skip
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        told = done.stdout + done.stderr
        # Bodies of plain text, Markdown and CSV are what this generator does not know; everything else must be there.
        unknown = re.findall(r"Unsupported content type (\S+)", told)
        assert set(unknown) <= {"text/plain", "text/markdown", "text/csv"}, told
        assert told.count("WARNING") == len(unknown), told
        sys.path.insert(0, str(tmp_path))
        return importlib.import_module("broadsheet_client")

    yield make
    sys.path[:] = [each for each in sys.path if each != str(tmp_path)]
    for name in [name for name in sys.modules if name.split(".")[0] == "broadsheet_client"]:
        del sys.modules[name]


async def test_a_client_made_from_the_description_sends_an_issue(world: World, made_client: Any) -> None:
    await world.readers(2)
    made = await asyncio.to_thread(made_client, await described(world))
    api, models = (importlib.import_module(f"broadsheet_client.{part}") for part in ("api", "models"))
    client = made.AuthenticatedClient(base_url="http://127.0.0.1:8000/api/v1", token=world.key)
    client.set_async_httpx_client(world.api)

    def call(path: str) -> Any:
        return importlib.import_module(f"{api.__name__}.{path}")

    new = models.NewIssue(edition="daily", date=date(2026, 10, 26), source=samples.DAILY)
    handed = await call("issues.issues_hand_in").asyncio(client=client, body=new)
    assert handed.subject == "缓存：先看瓶颈，再谈提速"
    assert handed.outline[0].items[0].title == "缓存：先看瓶颈，再谈提速"
    again = await call("issues.issues_hand_in").asyncio(client=client, body=new)
    assert isinstance(again, models.Problem)
    assert again.status == 409
    mailing = await call("issues.issues_send").asyncio(handed.id, client=client, body=models.SendOrder())
    await world.deliver(mailing.id)
    shown = await call("mailings.mailings_show").asyncio(mailing.id, client=client)
    assert (shown.state, shown.sent, shown.audience) == ("finished", 2, 2)
    page = await call("mailings.mailings_deliveries").asyncio(mailing.id, client=client, limit=1)
    assert page.items[0].address == "r0@example.com"
    assert page.next_
    key = await call("keys.keys_make_key").asyncio(client=client, body=models.NewKey(name="other"))
    assert key.key.startswith("bs_")
    gone = await call("issues.issues_show").asyncio(99, client=client)
    assert isinstance(gone, models.Problem)
