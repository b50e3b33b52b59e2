"""The API server, as much of it as the operator needs: JSON in and out, an exception for each answer that matters.

Configuration, TLS and the renewal of tokens are the kubernetes client's; its models are left out, as what is kept of
an object is a few fields (`observed`).
"""

import json
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, NamedTuple, Self

import aiohttp
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration
from pydantic_core import from_json

from accelbench_operator.engine.clock import ServerClock
from accelbench_operator.engine.queue import RetryError

REQUEST_SECONDS = 30
HTTP_ERROR = 400
JSON = "application/json, */*"

Manifest = dict[str, Any]
NO_ANSWER = (aiohttp.ClientError, TimeoutError, OSError)


class ApiError(RetryError):
    """The API server answered with an error; `status` is the HTTP code, 0 where there was no answer."""

    def __init__(self, status: int, message: str, retry_after_seconds: float = 0.0) -> None:
        """`retry_after_seconds` is what the server asks for before the next try."""
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message
        self.retry_after_seconds = retry_after_seconds


class ForbiddenError(ApiError):
    """403: not allowed now, by RBAC, a quota or a policy, each of which somebody may change."""


class NotFoundError(ApiError):
    """404: the object, or what it is in, is not there."""


class ConflictError(ApiError):
    """409: it exists already, or is not the version or the object that was meant."""


class ExpiredError(ApiError):
    """410: the resource version is too old to go on from; list again."""


class InvalidError(ApiError):
    """400 or 422: no API server will ever take this."""


class TooLargeError(ApiError):
    """413: more than the API server or etcd takes."""


class UnreachableError(ApiError):
    """No answer: the network, the server, or the time that a request may take."""


KINDS: Mapping[int, type[ApiError]] = {
    400: InvalidError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
    413: TooLargeError,
    422: InvalidError,
}


def api_error(status: int, body: str, retry_after: str = "") -> ApiError:
    """The exception for an error's HTTP code, with the message of the Status object in its body.

    `retry_after` is the header of that name: whole seconds, as API servers send it.
    """
    try:
        message = json.loads(body).get("message") or body
    except (ValueError, AttributeError):
        message = body
    seconds = float(retry_after) if retry_after.isdecimal() else 0.0
    return KINDS.get(status, ApiError)(status, message[:2048], seconds)


class RequestKind(NamedTuple):
    """What of an answered request counts, in the words that API servers' own metrics have."""

    verb: str
    resource: str
    code: int
    """HTTP status; 0 where there was no answer."""


VERBS = {"POST": "create", "PUT": "update", "DELETE": "delete"}
_RESOURCE = re.compile(
    r"/(?:api|apis/[^/]+)/[^/]+/(?:namespaces/[^/]+/(?=.))?(?P<resource>[^/]+)(?P<name>/[^/]+)?(?P<subresource>/.+)?"
)


def verb_and_resource(method: str, path: str, query: Mapping[str, Any]) -> tuple[str, str]:
    """`/api/v1/namespaces/team/pods/a/log` is a get of `pods/log`; what is no resource is told by its path."""
    found = _RESOURCE.fullmatch(path)
    read = "watch" if "watch" in query else "list" if found and not found["name"] else "get"
    return VERBS.get(method, read), found["resource"] + (found["subresource"] or "") if found else path


async def load_configuration() -> Configuration:
    """In-cluster where there is a service account, which honours KUBERNETES_SERVICE_HOST; else the kubeconfig."""
    # A watch holds its connection: what limits them is how many namespaces are watched and how many workers there are.
    configuration = Configuration(connection_pool_maxsize=0)
    try:
        config.load_incluster_config(client_configuration=configuration)
    except config.ConfigException:
        await config.load_kube_config(client_configuration=configuration)
    return configuration


class KubernetesApi:
    """Requests to one API server. Use as an async context manager."""

    def __init__(self, configuration: Configuration) -> None:
        self.timed: Callable[[str, str, float], object] = _ignore
        """Called with verb, resource and seconds of each answered request that is no watch."""
        self.client = ApiClient(configuration)
        self.client.user_agent = "accelbench-operator"
        self.requests: Counter[RequestKind] = Counter()
        """How many were made of each kind."""
        self.clock = ServerClock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()

    async def get(self, path: str, query: Mapping[str, Any] | None = None, *, accept: str = JSON) -> Manifest:
        """The object or list at `path`; `accept` can ask for less of it."""
        return await self._json("GET", path, query=query, accept=accept)

    async def create(self, path: str, body: Manifest) -> Manifest:
        """The object as it was stored; raises ConflictError where one of that name exists."""
        return await self._json("POST", path, body=body)

    async def replace(self, path: str, body: Manifest) -> Manifest:
        """The object as it was stored; raises ConflictError where `metadata.resourceVersion` is not the latest."""
        return await self._json("PUT", path, body=body)

    async def delete(self, path: str, uid: str) -> None:
        """Delete exactly the object with that UID, what it owns in the background."""
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        }
        await self._json("DELETE", path, body=body)

    async def text(self, path: str, query: Mapping[str, Any]) -> str:
        """A text: a container's log."""
        return (await self._content("GET", path, query=query)).decode(errors="replace")

    async def watch(self, path: str, query: Mapping[str, Any], seconds: int) -> AsyncIterator[Manifest]:
        """Events from `query`'s resourceVersion on, for at most `seconds`; raises ExpiredError where it is too old."""
        query = {**query, "watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": seconds}
        response = (await self._send("GET", path, query=query, seconds=seconds + REQUEST_SECONDS)).response
        try:
            async for line in response.content:
                event = from_json(line)
                if event["type"] == "ERROR":
                    raise api_error(int(event["object"].get("code") or 0), json.dumps(event["object"]))
                yield event
        except NO_ANSWER as error:
            raise UnreachableError(0, f"{path}: {type(error).__name__}: {error}") from error
        finally:
            response.close()

    async def lines(self, path: str, query: Mapping[str, Any], seconds: int, most_bytes: int) -> AsyncIterator[str]:
        """Lines of a text as it grows, for at most `seconds`; of one with more than `most_bytes` nothing is told."""
        response = (await self._send("GET", path, query=query, seconds=seconds)).response
        begun, too_long = b"", False
        try:
            async for chunk in response.content.iter_any():
                *whole, begun = (begun + chunk).split(b"\n")
                for line in whole:
                    if not too_long and len(line) <= most_bytes:
                        yield line.decode(errors="replace")
                    too_long = False
                if len(begun) > most_bytes:
                    begun, too_long = b"", True
        except NO_ANSWER as error:
            raise UnreachableError(0, f"{path}: {type(error).__name__}: {error}") from error
        finally:
            response.close()

    async def _json(self, method: str, path: str, **request: Any) -> Manifest:
        document: Manifest = from_json(await self._content(method, path, **request))
        return document

    async def _content(self, method: str, path: str, **request: Any) -> bytes:
        return await _body(await self._send(method, path, **request), f"{method} {path}")

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Manifest | None = None,
        seconds: int = REQUEST_SECONDS,
        accept: str = JSON,
    ) -> Any:
        kind = verb_and_resource(method, path, query or {})
        # Without the body: it is JSON already, and the client would walk through all of it to make sure.
        method, url, headers, _, _ = await self.client.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params={"Accept": accept, "Content-Type": "application/json"},
            auth_settings=["BearerToken"],
        )
        began = time.perf_counter()
        try:
            response = await self.client.call_api(method, url, headers, body, _request_timeout=seconds)
        except NO_ANSWER as error:
            self.requests[RequestKind(*kind, 0)] += 1
            raise UnreachableError(0, f"{method} {path}: {type(error).__name__}: {error}") from error
        self.requests[RequestKind(*kind, response.status)] += 1
        if kind[0] != "watch":
            self.timed(*kind, time.perf_counter() - began)
        self.clock.heard(response.headers.get("Date", ""))
        if response.status >= HTTP_ERROR:
            answer = (await _body(response, f"{method} {path}")).decode(errors="replace")
            raise api_error(response.status, answer, response.headers.get("Retry-After", ""))
        return response


def _ignore(*_: object) -> None:
    """Measure nothing."""


async def _body(response: Any, asked: str) -> bytes:
    """All that an answer holds; raises UnreachableError where the connection ends before."""
    try:
        content: bytes = await response.read()
    except NO_ANSWER as error:
        raise UnreachableError(0, f"{asked}: {type(error).__name__}: {error}") from error
    return content
