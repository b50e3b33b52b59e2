"""Have kopf handle signals, log in, and watch the objects that controllers reconcile.

Only `on.event` is used, so kopf writes nothing to the objects: no finalizers and no annotations.
"""

import asyncio
import itertools
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import aiohttp
import kopf

from accelbench.cluster_api.kinds import Kind
from accelbench_operator.engine.kinds import Key, Manifest

PAGE = 8
"""Objects in a page of a list. Each has at most 1.5 MiB, because etcd stores no larger objects."""
IDLE_SECONDS = 0.1
"""Time for which kopf holds an object after its last event."""


class Backoffs:
    """Define endless retries: if the watch of one namespace fails, the watches of the others must continue."""

    def __iter__(self) -> Iterator[float]:
        """Return the seconds before each retry of a request."""
        return itertools.chain((1.0, 2.0, 4.0, 8.0, 16.0), itertools.repeat(30.0))


async def watch(
    kinds: Iterable[Kind],
    namespaces: Sequence[str],
    changed: Callable[[Key, Manifest], None],
    deleted: Callable[[Key], None],
    on_end: Callable[[], object],
) -> None:
    """Watch the objects of `kinds`; return after the process is signalled to end.

    Args:
        kinds: The kinds to watch.
        namespaces: The namespaces to watch; empty for all.
        changed: Called for each object that exists at the start, is created or changes.
        deleted: Called for each object that is deleted.
        on_end: Called at the end, to stop other tasks; kopf waits 5 s for them.
    """
    # kopf identifies itself by the user's name, and a container's user may have none.
    os.environ.setdefault("LOGNAME", "accelbench")
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    async def login(**context: Any) -> kopf.AiohttpSession | None:
        """Return a session with the address and credentials that the kubernetes client loads; None if it has none."""
        # kopf's own service-account login ignores KUBERNETES_SERVICE_HOST; the kubernetes client's honours it.
        info = kopf.login_via_client(**context)
        return None if info is None else _session(info)

    for kind in kinds:
        _watch_kind(registry, kind, changed, deleted)

    @kopf.on.cleanup(registry=registry)
    async def cleanup(**_: Any) -> None:
        """Stop the other tasks; ignore errors of the connections that kopf then closes."""
        asyncio.get_running_loop().set_exception_handler(_ignore_closed_connections)
        on_end()

    await kopf.operator(
        registry=registry,
        settings=kopf_settings(),
        standalone=True,
        clusterwide=not namespaces,
        namespaces=namespaces,
    )


def _session(info: kopf.ConnectionInfo) -> kopf.AiohttpSession:
    """Return the session that kopf would make of `info`, with this module's middlewares added."""
    session = aiohttp.ClientSession(
        # Without a limit (0) of connections, because each watch keeps one.
        connector=aiohttp.TCPConnector(limit=0, ssl=info.as_ssl_context()),
        headers=info.as_http_headers(),
        proxy=info.proxy_url,
        trust_env=info.trust_env,
        middlewares=[list_again_if_expired, retry_if_not_served],
    )
    return kopf.AiohttpSession(aiohttp_session=session, server=info.server, default_namespace=info.default_namespace)


async def list_again_if_expired(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Raise `ClientPayloadError` if the `continue` token of a list has expired; otherwise return the response.

    etcd may be compacted between two pages of a list. The API server then answers the next page with 410, which ends
    kopf and with it the process. After a `ClientPayloadError`, kopf lists from the beginning.
    """
    response = await handler(request)
    if response.status == HTTPStatus.GONE and "continue" in request.url.query:
        response.release()
        raise aiohttp.ClientPayloadError(f"{request.url.path}: the list has expired between two of its pages")
    return response


async def retry_if_not_served(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Raise `ClientConnectionError` if the API server does not serve the kind; otherwise return the response.

    A kind is not served while its CRD is deleted. The status 404 would end kopf, and with it the process. After a
    `ClientConnectionError`, kopf waits for the delays of `Backoffs` and sends the request again.
    """
    response = await handler(request)
    if response.status == HTTPStatus.NOT_FOUND:
        response.release()
        raise aiohttp.ClientConnectionError(f"{request.url.path}: the API server does not serve this kind")
    return response


def _watch_kind(
    registry: kopf.OperatorRegistry,
    kind: Kind,
    changed: Callable[[Key, Manifest], None],
    deleted: Callable[[Key], None],
) -> None:
    """Call `changed` or `deleted` for each event of a kind."""
    group, _, version = kind.api_version.rpartition("/")

    @kopf.on.event(group, version, kind.plural, registry=registry, id=kind.plural)
    async def event(type: str | None, body: Any, **_: Any) -> None:  # noqa: A002 - kopf's name
        """Call `deleted` with the key of a deleted object; otherwise call `changed` with the key and the object.

        The object is passed without its managedFields, which nothing reads.
        """
        if type == "DELETED":
            deleted(Key.of(kind.name, body))
        else:
            metadata = {field: value for field, value in body["metadata"].items() if field != "managedFields"}
            changed(Key.of(kind.name, body), {**body, "metadata": metadata})


def _ignore_closed_connections(loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
    """Handle an exception that no task caught: ignore connection errors, which kopf causes at shutdown."""
    if not isinstance(context.get("exception"), aiohttp.ClientConnectionError):
        loop.default_exception_handler(dict(context))


def kopf_settings() -> kopf.OperatorSettings:
    """Return settings for a kopf that only watches objects and writes nothing to them."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    # CRDs and namespaces are known at the start, so no permission to watch them is needed.
    settings.scanning.disabled = True
    # Users decide how large objects are. kopf holds an object until its worker ends, and a whole page of a list.
    settings.watching.chunk_size = PAGE
    settings.queueing.idle_timeout = IDLE_SECONDS
    settings.networking.error_backoffs = Backoffs()
    # Shorter than the 30 s after which Kubernetes kills a pod.
    settings.process.ultimate_exiting_timeout = 20
    # kopf would log each event of each object.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    return settings
