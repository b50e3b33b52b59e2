"""Send requests to the API server from an event loop, for the operator.

The `kubernetes` package brings configuration, TLS and the renewal of tokens; its models are not used. JSON goes in and
out, and every refusal becomes an exception.
"""

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Self

import aiohttp
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration
from pydantic_core import from_json

from accelbench.cluster_api.errors import UnreachableError, api_error

REQUEST_SECONDS = 30
LOWEST_ERROR_STATUS = 400
"""Lowest HTTP status that reports an error."""
JSON = "application/json, */*"
MAXIMUM_PAGE_BYTES = 2 * 1024 * 1024
"""Maximum size of a page with several objects."""

Manifest = dict[str, Any]
NO_ANSWER_ERRORS = (aiohttp.ClientError, TimeoutError, OSError)


async def load_configuration() -> Configuration:
    """Load the API client's configuration from this process's pod or, outside a pod, from the kubeconfig."""
    # A size of 0 sets no maximum. Each watch and each worker uses one connection at most, so there are few anyway.
    configuration = Configuration(connection_pool_maxsize=0)
    try:
        config.load_incluster_config(client_configuration=configuration)
    except config.ConfigException:
        await config.load_kube_config(client_configuration=configuration)
    return configuration


class LargeAnswerError(Exception):
    """Report that an answer is larger than the caller allowed; the rest of the answer was not read."""


class AsyncClient:
    """Send requests to one API server. Use as an async context manager."""

    def __init__(self, client: ApiClient, user_agent: str) -> None:
        self.client = client
        self.client.user_agent = user_agent

    def record_answer(self, method: str, path: str, query: Mapping[str, Any], status: int, seconds: float) -> None:
        """Do nothing; a subclass may override this method to measure requests.

        It is called after each request. `status` is the HTTP status of the answer, 0 without an answer, and `seconds`
        is the time until the answer came.
        """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()

    async def get(
        self,
        path: str,
        query: Mapping[str, Any] | None = None,
        *,
        accept: str = JSON,
        maximum_bytes: int | None = None,
    ) -> Manifest:
        """Return the object or list at `path`. The media type `accept` can ask for the objects' metadata only.

        Raises LargeAnswerError if the answer has more than `maximum_bytes`.
        """
        return await self._request_json("GET", path, query=query, accept=accept, maximum_bytes=maximum_bytes)

    async def pages(self, path: str, query: Mapping[str, Any], *, accept: str = JSON) -> AsyncIterator[Manifest]:
        """Yield the list at `path` page by page.

        A page has at most `query["limit"]` objects and at most `MAXIMUM_PAGE_BYTES`, except if a single object is
        larger.
        """
        limit = maximum_limit = int(query["limit"])
        while True:
            query = {**query, "limit": limit}
            maximum_bytes = MAXIMUM_PAGE_BYTES if limit > 1 else None  # a page of one object cannot be made smaller
            try:
                page = await self.get(path, query, accept=accept, maximum_bytes=maximum_bytes)
            except LargeAnswerError:
                # Users decide how large objects are. Request fewer of them, so that a page does not fill the memory.
                limit = max(1, limit // 4)
                continue
            yield page
            continue_token = page["metadata"].get("continue")
            if not continue_token:
                return
            query = {**query, "continue": continue_token}
            limit = min(maximum_limit, 2 * limit)

    async def create(self, path: str, body: Manifest, *, dry_run: bool = False) -> Manifest:
        """Create an object; return the object as the server stored it. Raises ConflictError if its name is taken.

        With `dry_run` the server stores nothing, but applies defaults, admission and validation.
        """
        query = {"dryRun": "All"} if dry_run else None
        return await self._request_json("POST", path, query=query, body=body)

    async def replace(self, path: str, body: Manifest) -> Manifest:
        """Replace an object and return it; raises ConflictError if another version is stored."""
        return await self._request_json("PUT", path, body=body)

    async def delete(self, path: str, uid: str, version: str | None = None) -> None:
        """Delete the object at `path`; raises ConflictError if it is not the object with this UID and version.

        A `version` of None accepts every resource version.
        """
        preconditions = {"uid": uid} | ({"resourceVersion": version} if version else {})
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": preconditions,
        }
        await self._request_json("DELETE", path, body=body)

    async def pieces(
        self, path: str, query: Mapping[str, Any], seconds: int = REQUEST_SECONDS
    ) -> AsyncGenerator[bytes, None]:
        """Yield the text at `path`, such as a container's log, piece by piece as it arrives.

        Raises UnreachableError if the stream breaks off or takes longer than `seconds`.
        """
        # The client's answer wraps aiohttp's response, which can stream.
        response = (await self._send("GET", path, query=query, seconds=seconds)).response
        try:
            async for piece in response.content.iter_any():
                yield piece
        except NO_ANSWER_ERRORS as error:
            raise UnreachableError(0, f"{path}: {type(error).__name__}: {error}") from error
        finally:
            response.close()

    async def watch(self, path: str, query: Mapping[str, Any], seconds: int) -> AsyncIterator[Manifest]:
        """Yield watch events of the objects at `path` for at most `seconds`.

        Raises ExpiredError if the query's resourceVersion is too old, and UnreachableError if the connection breaks.
        """
        query = {**query, "watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": seconds}
        # The server ends the watch after `seconds`; the limit of the request is only for a server that does not.
        response = (await self._send("GET", path, query=query, seconds=seconds + REQUEST_SECONDS)).response
        try:
            async for line in response.content:
                event = from_json(line)
                if event["type"] == "ERROR":
                    status = int(event["object"].get("code") or 0)  # 0: the server gave none
                    raise api_error(status, json.dumps(event["object"]))
                yield event
        except NO_ANSWER_ERRORS as error:
            raise UnreachableError(0, f"{path}: {type(error).__name__}: {error}") from error
        finally:
            response.close()

    async def lines(self, path: str, query: Mapping[str, Any], seconds: int, maximum_bytes: int) -> AsyncIterator[str]:
        """Yield the lines of the streamed text at `path`, without line breaks; skip lines longer than `maximum_bytes`.

        A last line without a line break is left out, because it may be incomplete. Raises UnreachableError if the
        stream breaks off or takes longer than `seconds`.
        """
        partial_line = b""
        skips_rest_of_line = False
        async with aclosing(self.pieces(path, query, seconds)) as pieces:
            async for piece in pieces:
                *complete_lines, partial_line = (partial_line + piece).split(b"\n")
                for line in complete_lines:
                    # The first line may be the rest of a line whose beginning was dropped.
                    if not skips_rest_of_line and len(line) <= maximum_bytes:
                        yield line.decode(errors="replace")
                    skips_rest_of_line = False
                if len(partial_line) > maximum_bytes:
                    # Drop what has arrived of this line so far: it could grow until it fills the memory.
                    partial_line = b""
                    skips_rest_of_line = True

    async def _request_json(
        self, method: str, path: str, *, maximum_bytes: int | None = None, **options: Any
    ) -> Manifest:
        """Send a request with the options of `_send`; return the JSON object in the answer."""
        response = await self._send(method, path, **options)
        document: Manifest = from_json(await _read_body(response, f"{method} {path}", maximum_bytes))
        return document

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
        """Send a request and return the response, whose body has not been read.

        Raises ApiError for an error answer, and UnreachableError without an answer.
        """
        # `param_serialize` does not get the body: it is JSON already, and the client would check every value in it.
        method, url, headers, _, _ = await self.client.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params={"Accept": accept, "Content-Type": "application/json"},
            auth_settings=["BearerToken"],
        )
        start_time = time.perf_counter()
        try:
            response = await self.client.call_api(method, url, headers, body, _request_timeout=seconds)
        except NO_ANSWER_ERRORS as error:
            self.record_answer(method, path, query or {}, 0, time.perf_counter() - start_time)
            raise UnreachableError(0, f"{method} {path}: {type(error).__name__}: {error}") from error
        self.record_answer(method, path, query or {}, response.status, time.perf_counter() - start_time)
        if response.status >= LOWEST_ERROR_STATUS:
            answer = (await _read_body(response, f"{method} {path}")).decode(errors="replace")
            raise api_error(response.status, answer, response.headers.get("Retry-After", ""))
        return response


async def _read_body(response: Any, request: str, maximum_bytes: int | None = None) -> bytes:
    """Read the body of an answer, whatever its size if `maximum_bytes` is None; `request` names the request in errors.

    Raises:
        UnreachableError: The connection ends before the body does.
        LargeAnswerError: The body has more than `maximum_bytes`.
    """
    try:
        if maximum_bytes is None:
            content: bytes = await response.read()
            return content
        body = bytearray()
        stream = response.response  # aiohttp's response, which the client's answer wraps
        async for piece in stream.content.iter_any():
            body += piece
            if len(body) > maximum_bytes:
                stream.close()
                raise LargeAnswerError(request)
        return bytes(body)
    except NO_ANSWER_ERRORS as error:
        raise UnreachableError(0, f"{request}: {type(error).__name__}: {error}") from error
