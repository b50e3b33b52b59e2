"""A bare asyncio client of an API server: the operator is held against it, and it plays users and nodes."""

import asyncio
import itertools
import json
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any, Self

import aiohttp
from kubernetes.aio import config
from kubernetes.aio.client import Configuration

AT_A_TIME = 16
MERGE = {"Content-Type": "application/merge-patch+json"}
HTTP_ERROR = 400
BUSY = (429, 500, 503, 504)
"""So says a server that begins or ends."""
PAUSE_SECONDS, TRIES = 0.25, 200
EVENTS = frozenset({"ADDED", "MODIFIED", "DELETED"})
PAGE = 500

Manifest = dict[str, Any]


class Client:
    """Send requests with the credentials of a kubeconfig. Use as an async context manager."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._room = asyncio.Semaphore(AT_A_TIME)

    async def __aenter__(self) -> Self:
        configuration = Configuration()
        await config.load_kube_config(str(self._kubeconfig), client_configuration=configuration)
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
        self._server = configuration.host
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def get(self, path: str, **query: Any) -> Manifest:
        """Return an object, or a list in one piece."""
        return await self._send("GET", path, params=query)

    async def items(self, path: str) -> list[Manifest]:
        """Return a whole list, read page by page."""
        items: list[Manifest] = []
        query: dict[str, Any] = {"limit": PAGE}
        while True:
            page = await self.get(path, **query)
            items += page["items"]
            if not (token := page["metadata"].get("continue")):
                return items
            query["continue"] = token

    async def create(self, path: str, body: Manifest) -> Manifest:
        """Create one object."""
        return await self._send("POST", path, json=body)

    async def create_all(self, path: str, bodies: Iterable[Manifest]) -> None:
        """Create many objects, `AT_A_TIME` of them at a time."""

        async def create(body: Manifest) -> None:
            async with self._room:
                await self.create(path, body)

        async with asyncio.TaskGroup() as group:
            for body in bodies:
                group.create_task(create(body))

    async def patch(self, path: str, body: Manifest) -> Manifest:
        """Send a merge patch."""
        return await self._send("PATCH", path, data=json.dumps(body), headers=MERGE)

    async def delete_all(self, path: str) -> None:
        """Delete a whole collection, and owned objects in the background."""
        await self._send("DELETE", path, json={"propagationPolicy": "Background", "gracePeriodSeconds": 0})

    async def follow(self, path: str, **query: Any) -> AsyncIterator[tuple[str, Manifest]]:
        """Each object that is there, then each event; again from the beginning where the server ends the watch.

        What was deleted between two watches is told by nothing but LISTED, which comes with each new list.
        """
        while True:
            listed = await self.get(path, **query)
            yield "LISTED", listed
            for item in listed["items"]:
                yield "ADDED", item
            try:
                async for event in self._watch(path, listed["metadata"]["resourceVersion"], query):
                    if event["type"] not in EVENTS:
                        break
                    yield event["type"], event["object"]
            except aiohttp.ClientError:
                continue  # the server ended

    async def _watch(self, path: str, version: str, query: Manifest) -> AsyncIterator[Manifest]:
        query = query | {"watch": "1", "resourceVersion": version, "timeoutSeconds": 3600}
        async with self._session.get(self._server + path, params=query) as response:
            try:
                # An event can be longer than a stream's usual line.
                buffer = b""
                async for chunk in response.content.iter_any():
                    *lines, buffer = (buffer + chunk).split(b"\n")
                    for line in lines:
                        yield json.loads(line)
            finally:
                cut(response)

    async def _send(self, method: str, path: str, **request: Any) -> Manifest:
        """Raises RuntimeError for what is refused; a server that is away is waited for."""
        for again in itertools.count(1):
            try:
                async with self._session.request(method, self._server + path, **request) as response:
                    status, content = response.status, await response.read()
            except aiohttp.ClientError:
                if again > TRIES:
                    raise
            else:
                if status < HTTP_ERROR:
                    return dict(json.loads(content))
                if status not in BUSY or again > TRIES:
                    raise RuntimeError(f"{method} {path}: {status} {content.decode(errors='replace')[:500]}")
            await asyncio.sleep(PAUSE_SECONDS)
        raise AssertionError


def cut(response: aiohttp.ClientResponse) -> None:
    """End at once the connection of an answer that is not whole.

    TLS takes leave of the server, which can last longer than the loop of a test.
    """
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()


async def until(
    client: Client,
    path: str,
    total: int,
    is_done: Callable[[Manifest], bool],
    *,
    seen: Callable[[Manifest], object] = id,
    listed: Callable[[], object] = bool,
) -> None:
    """Follows a collection until that many of its objects are done; `seen` is told of each, once, when it is.

    From `listed` on, one that is done and deleted at once is seen too.
    """
    done: set[str] = set()
    async for kind, item in client.follow(path):
        if kind == "LISTED":
            listed()
        if kind in {"ADDED", "MODIFIED"} and is_done(item) and (uid := item["metadata"]["uid"]) not in done:
            done.add(uid)
            seen(item)
        if len(done) >= total:
            return


async def until_none(client: Client, path: str) -> None:
    """Follow a collection until it is empty."""
    left: set[str] = set()
    async for kind, item in client.follow(path):
        if kind == "LISTED":
            left = {each["metadata"]["uid"] for each in item["items"]}
        elif kind == "ADDED":
            left.add(item["metadata"]["uid"])
        elif kind == "DELETED":
            left.discard(item["metadata"]["uid"])
        if not left:
            return
