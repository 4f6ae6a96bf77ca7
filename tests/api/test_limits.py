"""Whatever comes in at the doors, too much, broken or hostile, is refused, and nobody else waits for it."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest

from app import edge, main
from app.cli import pages, prompt
from tests.api.problems import problem
from tests.issues import samples
from tests.sink import Sink
from tests.world import World, house_at

JSON = {"Content-Type": "application/json"}
INJECTIONS = (
    "' OR '1'='1", "1; DROP TABLE issue;--", '1" OR "1"="1', "1 UNION SELECT secret_hash FROM api_key",
    "$ne", "{$gt: ''}", "%00", "%0d%0aX-Injected: 1", "../../../etc/passwd", "..%2f..%2fetc%2fpasswd",
    "{{7*7}}", "${7*7}", "<script>alert(1)</script>", "|id", "`id`", "-1", "0", "1e3", "0x1",
    "NaN", "true", "null", "[]", "9223372036854775808", "-9223372036854775809", "2147483648", "9" * 400,
    "%ff", "%c0%ae", "%ed%a0%80", "é", "\u202e1", "a" * 2000,
)  # fmt: skip
PATHS = (
    ("GET", "/issues/{}"), ("PATCH", "/issues/{}"), ("DELETE", "/issues/{}"), ("GET", "/issues/{}/preview"),
    ("GET", "/issues/{}/preflight"), ("POST", "/issues/{}/send"), ("POST", "/issues/{}/why"),
    ("GET", "/mailings/{}"), ("GET", "/mailings/{}/events"), ("GET", "/mailings/{}/deliveries"),
    ("POST", "/mailings/{}/pause"), ("POST", "/mailings/1/{}"), ("DELETE", "/suppressions/{}"),
    ("DELETE", "/keys/{}"), ("PATCH", "/editions/{}"), ("GET", "/subscribers/{}"),
)  # fmt: skip


async def test_injections_in_a_path_find_nothing(world: World) -> None:
    await world.send(await world.issue(), at="2026-10-27T00:00:00Z")
    for (method, path), bad in product(PATHS, INJECTIONS):
        body = {"name": "x"} if "editions" in path else None
        answer = await world.api.request(method, path.format(bad.replace("/", "%2f")), json=body)
        problem(answer, 404, 405, 422)
        assert "x-injected" not in answer.headers


async def test_the_doors_are_as_tight_on_postgresql(
    tmp_path: Path, postgres_url: str, sink: Sink, empty_database: Path
) -> None:
    async with house_at(tmp_path, empty_database, sink, database_url=postgres_url) as world:
        await test_injections_in_a_path_find_nothing(world)
        await ask_with_injections(world)
        new = {"edition": "weekly", "date": "2026-10-26", "source": samples.WEEKLY}
        key = {"Idempotency-Key": "k"}
        answers = await asyncio.gather(*(world.api.post("/issues", json=new, headers=key) for _ in range(50)))
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.text for answer in answers}) == 1
        issue = answers[0].json()["id"]
        doubles = (world.api.post("/issues", json=new | {"date": "2026-10-27"}) for _ in range(20))
        assert sorted(answer.status_code for answer in await asyncio.gather(*doubles)) == [201] + [409] * 19
        same = (world.api.post("/suppressions", json={"address": "x@example.com"}) for _ in range(20))
        assert {answer.status_code for answer in await asyncio.gather(*same)} <= {201, 409}
        sent = await asyncio.gather(*(world.api.post(f"/issues/{issue}/send") for _ in range(50)))
        assert sorted(answer.status_code for answer in sent) == [200] * 49 + [202]


async def test_injections_in_a_query_find_nothing(world: World) -> None:
    await world.send(await world.issue(), at="2026-10-27T00:00:00Z")
    await ask_with_injections(world)


async def ask_with_injections(world: World) -> None:
    queries = (
        ("/issues", "cursor"), ("/issues", "limit"), ("/mailings", "cursor"), ("/mailings/1/deliveries", "state"),
        ("/mailings/1/deliveries", "cursor"), ("/issues/1/preview", "language"), ("/issues/1/preview", "part"),
        ("/suppressions", "limit"), ("/audit", "cursor"), ("/subscribers", "cursor"), ("/subscribers", "state"),
    )  # fmt: skip
    for path, name in queries:
        for bad in INJECTIONS:
            problem(await world.api.get(f"{path}?{name}={bad}"), 404, 422)


async def test_injections_in_a_body_change_nothing_but_what_they_are(world: World) -> None:
    issue = await world.issue()
    for bad in INJECTIONS:
        answer = await world.api.post(f"/issues/{issue}/why", json={"address": bad})
        problem(answer, 422)
        answer = await world.api.post("/suppressions", json={"address": bad})
        problem(answer, 422)
        answer = await world.api.post("/editions", json={"slug": bad, "name": "x"})
        assert answer.status_code in (201, 422)
    assert len((await world.api.get("/issues")).json()["items"]) == 1
    assert len((await world.api.get("/keys")).json()) == 1


async def test_what_is_not_there_is_a_problem_under_the_api(world: World) -> None:
    for path in (
        "/",
        "/nothing",
        "/issues/1/nothing",
        "/%2e%2e/%2e%2e",
        "/issues/",
        "/x" * 500,
        "/%00",
        "//",
    ):
        url = f"http://127.0.0.1:8000/api/v1{path}"
        problem(await world.api.get(url, headers={"Host": "evil.example"}), 404)


async def test_the_api_answers_problems_beside_its_calls_too(world: World) -> None:
    for path in ("/api/v1", "/api/", "/api/v2/issues", "/api/v1%0a"):
        problem(await world.web.get(path), 404)


async def test_another_method_is_a_problem_that_names_those_that_are_allowed(world: World) -> None:
    for method, path, allowed in (("PUT", "/issues", {"GET", "POST"}), ("DELETE", "/mailings", {"GET"})):
        answer = await world.api.request(method, path)
        problem(answer, 405)
        assert allowed & {each.strip() for each in answer.headers["allow"].split(",")}


async def test_a_slash_too_many_leads_to_the_page_here_whatever_the_host_is_called(world: World) -> None:
    answer = await world.web.get("/archive/", headers={"Host": "evil.example"})
    assert (answer.status_code, answer.headers["location"]) == (308, "/archive")
    for path in ("//evil.example/", "/%5cevil.example/", "/%2f%2fevil.example/", "/%0d%0aX: 1/"):
        answer = await world.web.get(f"http://127.0.0.1:8000{path}")
        assert answer.status_code in (308, 404)
        assert not answer.headers.get("location", "").startswith(("//", "/\\", "http"))


async def test_a_page_of_another_site_cannot_post_for_an_editor(world: World) -> None:
    """A browser sends no key by itself, so a form of another site gets 401 (there are no cookies to steal)."""
    issue = await world.issue()
    bare = httpx.AsyncClient(transport=world.api._transport, base_url=world.api.base_url)
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        headers = {"Content-Type": kind, "Origin": "https://evil.example"}
        answer = await bare.post(f"/issues/{issue}/send", content=b'{"force": true}', headers=headers)
        problem(answer, 401, 403)
    preflight = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answer = await bare.options(f"/issues/{issue}/send", headers=preflight)
    assert "access-control-allow-origin" not in answer.headers
    keyed = await world.api.post(
        f"/issues/{issue}/send", content=b'{"force": true}', headers={"Content-Type": "text/plain"}
    )
    problem(keyed, 422)  # JSON that says it is text is not read as JSON (CVE-2021-32677)
    assert (await world.api.get("/mailings")).json()["items"] == []


async def endless(limit: int) -> AsyncIterator[bytes]:
    for _ in range(limit // 65_536):
        yield b" " * 65_536


async def test_a_body_that_is_announced_too_large_is_refused_unread(world: World) -> None:
    async def never() -> AsyncIterator[bytes]:
        yield pytest.fail("it was read")

    headers = JSON | {"Content-Length": str(edge.BODY_LIMIT + 1)}
    for path in ("/issues", "/issues/1/send", "/nothing"):
        problem(await world.api.post(path, content=never(), headers=headers), 413)
    page = await world.web.post("/subscribe", content=never(), headers=headers)
    assert page.status_code == 413


@pytest.mark.parametrize("path", ["/issues", "/issues/1/send", "/keys"])
async def test_a_body_that_grows_too_large_is_refused_at_the_limit(world: World, path: str) -> None:
    read = 0

    async def counted() -> AsyncIterator[bytes]:
        nonlocal read
        async for chunk in endless(100_000_000):
            read += len(chunk)
            yield chunk

    problem(await world.api.post(path, content=counted(), headers=JSON), 413)
    assert read <= edge.BODY_LIMIT + 65_536


async def test_a_body_that_does_not_come_to_its_end_is_given_up(world: World, monkeypatch: Any) -> None:
    monkeypatch.setattr(edge, "PATIENCE", -9.8)  # and ten seconds for a megabyte

    async def stuck() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(30)

    answer = await world.api.post("/issues", content=stuck(), headers=JSON)
    assert answer.status_code == 408
    assert answer.headers["content-type"] == "application/problem+json"
    assert await world.issue()  # nobody's transaction was held meanwhile


@pytest.mark.parametrize("kind", ["urlencoded", "multipart"])
async def test_a_hundred_thousand_fields_are_refused_at_once(world: World, kind: str) -> None:
    if kind == "urlencoded":
        content, type_ = b"&".join([b"a=1"] * 100_000), "application/x-www-form-urlencoded"
    else:
        part = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
        content, type_ = part * 15_000 + b"--b--\r\n", "multipart/form-data; boundary=b"
    began = time.perf_counter()
    answer = await world.web.post("/subscribe", content=content, headers={"Content-Type": type_})
    took = time.perf_counter() - began
    assert 400 <= answer.status_code < 500
    assert took < 1.0  # ten times what is wanted


@pytest.mark.parametrize(
    "content_type",
    ["multipart/form-data", "multipart/form-data; boundary=", "application/json; charset=utf-16", "/", ""],
)
async def test_a_form_that_is_none_breaks_nothing(world: World, content_type: str) -> None:
    headers = {"Content-Type": content_type}
    answer = await world.web.post("/subscribe", content=b"\xff\xfe{--", headers=headers)
    assert answer.status_code < 500


@pytest.fixture
async def served(world: World) -> AsyncIterator[tuple[str, int]]:
    """Serve the world on a real socket as `broadsheet serve` does; gives host and port."""
    server = pages.server_of(main.build(world.house), world.house.settings)
    taken = socket.create_server(("127.0.0.1", 0), backlog=2048)
    task = asyncio.create_task(server.serve([taken]))
    async with asyncio.timeout(10):
        while not server.started:
            await asyncio.sleep(0.01)
    yield taken.getsockname()
    world.house.stopping.set()
    server.should_exit = True
    await asyncio.wait_for(task, 10)


@asynccontextmanager
async def connected(
    where: tuple[str, int],
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a connection, and tear it down afterwards."""
    reader, writer = await asyncio.open_connection(*where)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def get(where: tuple[str, int], path: str, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(base_url=f"http://{where[0]}:{where[1]}", timeout=10) as client:
        return await client.get(path, headers=headers)


async def test_five_hundred_half_open_connections_keep_nobody_waiting(served: tuple[str, int]) -> None:
    half = b"POST /subscribe HTTP/1.1\r\nHost: x\r\nX-Slow: "
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(connected(served)) for _ in range(500)]
        for _, writer in opened:
            writer.write(half)
        for path in ("/", "/healthz", "/archive"):
            assert (await get(served, path)).status_code == 200
        for _, writer in opened:
            writer.write(b"x")
        assert (await get(served, "/")).status_code == 200


async def test_whoever_does_not_finish_a_head_is_hung_up_on(
    served: tuple[str, int], monkeypatch: Any
) -> None:
    monkeypatch.setattr(prompt, "HEAD", 0.3)
    async with connected(served) as (silent, _), connected(served) as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"alive" in await reader.readuntil(b"}")
        writer.write(b"GET /hea")  # the next head of a connection that is kept alive
        assert await asyncio.wait_for(silent.read(), 5) == b""
        assert await asyncio.wait_for(reader.read(), 5) == b""


async def test_a_gigabyte_in_chunks_is_cut_off_at_the_limit(served: tuple[str, int], world: World) -> None:
    head = f"POST /api/v1/issues HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {world.key}\r\n"
    chunk, sent = b"10000\r\n" + b" " * 65_536 + b"\r\n", 0
    async with connected(served) as (reader, writer):
        writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        with suppress(ConnectionError):
            while sent < 1_000_000_000 and not reader.at_eof():
                writer.write(chunk)
                await writer.drain()
                sent += 65_536
        assert sent < 20_000_000  # what the kernel's buffers take, and no more
        with suppress(ConnectionError):
            assert (await reader.read(12)) in (b"HTTP/1.1 413", b"")


async def test_a_reader_of_events_who_goes_away_leaves_nothing_behind(
    served: tuple[str, int], world: World
) -> None:
    mailing = await world.send(await world.issue(), at="2026-10-27T00:00:00Z")
    before = len(asyncio.all_tasks())
    head = f"GET /api/v1/mailings/{mailing}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {world.key}"
    for _ in range(20):
        async with connected(served) as (reader, writer):
            writer.write(f"{head}\r\n\r\n".encode())
            assert b"event: mailing" in await reader.readuntil(b"event: mailing")
    async with asyncio.timeout(10):
        while len(asyncio.all_tasks()) > before:
            await asyncio.sleep(0.05)
    assert (await get(served, "/readyz")).status_code == 200
    assert await world.issue(day=date(2026, 10, 27))


NO_REQUESTS = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x00\x01\x02\r\n\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
    b"POST /api/v1/issues HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"POST /api/v1/issues HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /api/v1/issues HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]


async def test_what_is_no_request_gets_a_4xx_or_nothing(served: tuple[str, int]) -> None:
    for raw in NO_REQUESTS:
        async with connected(served) as (reader, writer):
            writer.write(raw)
            writer.write_eof()
            try:
                status = (await asyncio.wait_for(reader.read(12), 15)).partition(b" ")[2]
            except ConnectionError:
                status = b""
        assert status == b"" or status.startswith(b"4"), raw[:80]
    assert (await get(served, "/healthz")).status_code == 200
