"""The operator's client against a real HTTP server: how it reads answers, and how many requests run at a time."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from kubernetes.aio.client import Configuration

from accelbench.api.result import MAXIMUM_BYTES
from accelbench.cluster_api import async_client
from accelbench.cluster_api.errors import ApiError, ForbiddenError, TooLargeError, UnreachableError
from accelbench.delivery.log import DocumentKind, LogDocuments, encode_document
from accelbench_operator.engine.api import KubernetesApi
from accelbench_operator.runs.cluster import Cluster, NoLogError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def served(handler: Handler, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KubernetesApi]:
    """Yield a client that the operator configures, of a server on loopback."""
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]

    def in_cluster(client_configuration: Configuration) -> None:
        client_configuration.host = f"http://{host}:{port}"

    monkeypatch.setattr(async_client.config, "load_incluster_config", in_cluster)
    try:
        async with KubernetesApi(await async_client.load_configuration()) as api:
            yield api
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (403, 'admission webhook "a" denied the request: no'),
        (400, 'admission webhook "a" denied the request: no'),
        (422, "jobs \"a\" is forbidden: ValidatingAdmissionPolicy 'a' with binding 'a' denied request: no"),
    ],
)
async def test_a_denial_by_a_policy_or_webhook_may_be_changed_whatever_its_status(
    status: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.json_response({"kind": "Status", "message": message}, status=status)

    async with served(handler, monkeypatch) as api:
        with pytest.raises(ForbiddenError) as refusal:
            await api.get("/x")
    assert (refusal.value.status, refusal.value.message) == (status, message)


async def test_watches_of_many_namespaces_delay_no_other_request(monkeypatch: pytest.MonkeyPatch) -> None:
    held = 0
    all_held = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal held
        if "watch" not in request.query:
            return web.json_response({"items": []})
        response = web.StreamResponse()
        await response.prepare(request)
        held += 1
        if held == 3 * 60:
            all_held.set()
        await asyncio.Event().wait()
        return response

    async with served(handler, monkeypatch) as api, asyncio.timeout(30):

        async def watch(number: int) -> None:
            async for _ in api.watch(f"/apis/namespaces/{number}", {}, 300):
                pass

        watches = [asyncio.create_task(watch(number)) for number in range(3 * 60)]
        await all_held.wait()
        assert await api.get("/apis") == {"items": []}
        for each in watches:
            each.cancel()
        await asyncio.gather(*watches, return_exceptions=True)


async def test_a_watch_reads_the_largest_result_that_can_be_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    event = {"type": "ADDED", "object": {"result": "r" * 2 * MAXIMUM_BYTES}}

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(2):
            await response.write(json.dumps(event).encode() + b"\n")
        return response

    async with served(handler, monkeypatch) as api:
        assert [each async for each in api.watch("/apis", {}, 300)] == [event, event]


async def test_a_busy_server_gives_the_time_of_the_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.json_response({"message": "too many requests"}, status=429, headers={"Retry-After": "7"})

    async with served(handler, monkeypatch) as api:
        with pytest.raises(ApiError, match="429: too many requests") as refused:
            await api.get("/apis")
    assert refused.value.retry_after_seconds == 7


async def test_an_object_that_is_too_large_is_an_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.json_response({"message": "limit is 3145728"}, status=413)

    async with served(handler, monkeypatch) as api:
        with pytest.raises(TooLargeError, match="413: limit is 3145728"):
            await api.create("/apis", {})


async def test_the_message_of_a_kubelet_about_a_lost_log_is_not_taken_for_a_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = 'failed to try resolving symlinks in path "/var/log/pods/0.log": lstat: no such file or directory'
    logs = {"lost": words, "kept": f"{words}\n", "empty": ""}

    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(text=logs[request.path.split("/")[6]])

    async with served(handler, monkeypatch) as api:
        cluster = Cluster(api, lambda: True)
        with pytest.raises(NoLogError, match="no such file"):
            await cluster.read_log("team", "lost")
        # A program may print the same, on a line of its own.
        assert await cluster.read_log("team", "kept") == LogDocuments()
        assert await cluster.read_log("team", "empty") == LogDocuments()


async def test_a_page_of_large_objects_has_fewer_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [10, 10, 3_000_000, 1_000_000, 1_000_000, 1_000_000, *[10] * 60]
    sent: list[int] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        first = int(request.query.get("continue", 0))
        end = first + int(request.query["limit"])
        items = [{"number": number, "text": "x" * size} for number, size in enumerate(sizes)][first:end]
        sent.append(sum(len(item["text"]) for item in items))
        return web.json_response({"metadata": {"continue": str(end) if end < len(sizes) else ""}, "items": items})

    async with served(handler, monkeypatch) as api:
        pages = [page["items"] async for page in api.pages("/things", {"limit": 50})]
    assert [item["number"] for page in pages for item in page] == list(range(len(sizes)))
    assert all(len(page) == 1 or sum(len(item["text"]) for item in page) < 2 * 1024 * 1024 for page in pages)
    assert len(sent) < 20


async def test_only_results_and_checkpoints_are_read_from_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: tuple[DocumentKind, ...] = ("launch", "checkpoint", "result")
    lines = [line for kind in kinds for line in encode_document(kind, "1", f"the {kind}")]

    async def handler(_: web.Request) -> web.StreamResponse:
        return web.Response(text="\n".join(lines))

    async with served(handler, monkeypatch) as api:
        log = await Cluster(api, lambda: True).read_log("team", "pod")
    assert [document.text for document in log.documents] == ["the checkpoint", "the result"]


async def test_the_end_of_a_long_log_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    (last_line,) = encode_document("result", "1", "the result")

    async def handler(request: web.Request) -> web.StreamResponse:
        lines = int(request.query.get("tailLines", 10_000))
        log = f"{'chatter ' * 256}\n" * (lines - 1) + last_line
        return web.Response(text=log[: int(request.query["limitBytes"])])

    async with served(handler, monkeypatch) as api:
        log = await Cluster(api, lambda: True).read_log("team", "pod")
    assert [document.text for document in log.documents] == ["the result"]


@pytest.mark.parametrize("status", [200, 500])
async def test_a_truncated_answer_is_an_error(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=status, headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b'{"message": ')
        assert request.transport
        request.transport.close()
        return response

    async with served(handler, monkeypatch) as api:
        with pytest.raises(UnreachableError, match="ClientPayloadError"):
            await api.get("/apis")
