"""The API server as the plugin asks it: JSON in and out, and an exception that says what to do for every refusal."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Self

from accelbench.api.metadata import GROUP, VERSION
from accelbench.cli.in_cluster import REQUEST_SECONDS, ClusterError, Connection

Manifest = dict[str, Any]
RUNS = "benchmarkruns"
RESULTS = "benchmarkresults"
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
TABLE = f"{JSON};as=Table;v=v1;g=meta.k8s.io,{JSON}"
WATCH_SECONDS = 300
"""A watch is ended by the server after it, and begun again."""
SILENT_SECONDS = 120
"""A log that says nothing for so long is asked for again: what lies between may have dropped the connection."""
PAGE = 500
HTTP_ERROR = 400
BAD_REQUEST, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT, GONE, UNPROCESSABLE = 400, 401, 403, 404, 409, 410, 422
NO_ACCESS = (
    "you may not {verb} {what} here: ask for a role that allows it, such as Kubernetes' own edit with "
    "accelbench's chart"
)


class RefusedError(ClusterError):
    """The API server says no; `status` is the HTTP code."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class NotThereError(RefusedError):
    """404: the object, the namespace, or the kind."""


class UnreachableError(ClusterError):
    """No answer, or one that ended before its end."""


def path(namespace: str | None, resource: str = RUNS, name: str = "") -> str:
    """Of one of our objects, or of all of them; without a namespace: of every one."""
    place = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{GROUP}/{VERSION}{place}/{resource}{f'/{name}' if name else ''}"


def pods(namespace: str, name: str = "", part: str = "") -> str:
    """Of pods, or of one and a part of it."""
    return f"/api/v1/namespaces/{namespace}/pods{f'/{name}' if name else ''}{f'/{part}' if part else ''}"


class Server:
    """One API server and a namespace. Its requests may come from several threads. Use as a context manager."""

    def __init__(self, connection: Connection, namespace: str | None = None) -> None:
        """`namespace` is the one that was asked for; None: the connection's own."""
        self.namespace = namespace or connection.namespace
        self.insisted = namespace is not None
        """Somebody asked for that namespace and no other."""
        self._api = connection.api
        self._api.user_agent = "kubectl-accelbench"
        self._no_answer = connection.no_answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._api.close()

    def get(self, at: str, **query: str) -> Manifest:
        """The object at that path; raises NotThereError."""
        return self._json("GET", at, query=query)

    def items(self, at: str, **query: str) -> list[Manifest]:
        """All there are, page by page."""
        return self.items_at(at, **query)[0]

    def items_at(self, at: str, **query: str) -> tuple[list[Manifest], str]:
        """All there are, and the version from which a watch goes on."""
        found: list[Manifest] = []
        further = ""
        while True:
            page = {"limit": str(PAGE), **query, **({"continue": further} if further else {})}
            answer = self._json("GET", at, query=page)
            found += answer["items"]
            if not (further := answer["metadata"].get("continue") or ""):
                return found, answer["metadata"].get("resourceVersion", "")

    def table(self, at: str) -> Manifest:
        """What `kubectl get` prints of it, as the server lays it out."""
        return self._json("GET", at, accept=TABLE)

    def create(self, at: str, body: Manifest, **query: str) -> Manifest:
        """The object as it was stored."""
        asked = {"fieldManager": "kubectl-accelbench", "fieldValidation": "Strict", **query}
        return self._json("POST", at, query=asked, body=body, content=JSON)

    def patch(self, at: str, body: Manifest) -> Manifest:
        """The object after a JSON merge patch."""
        return self._json("PATCH", at, query={"fieldManager": "kubectl-accelbench"}, body=body, content=MERGE_PATCH)

    def watch(self, at: str, version: str, *, table: bool = False, **query: str) -> Iterator[Manifest]:
        """Events after that version, until the server ends the watch; raises RefusedError with 410 if it is too old."""
        asked = {**query, "watch": "1", "resourceVersion": version, "timeoutSeconds": str(WATCH_SECONDS)}
        lines = self._lines(at, asked, seconds=WATCH_SECONDS + REQUEST_SECONDS, accept=TABLE if table else JSON)
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError as error:
                raise UnreachableError("the cluster stopped answering in the middle of an event") from error
            if event["type"] == "ERROR":
                raise refused(int(event["object"].get("code") or 0), json.dumps(event["object"]), "WATCH", at)
            yield event

    def log(self, namespace: str, pod: str, *, follow: bool) -> Iterator[bytes]:
        """The lines of a pod's log with their ends; with `follow` until its container has ended."""
        query = {"container": "runner", **({"follow": "true"} if follow else {})}
        return self._lines(pods(namespace, pod, "log"), query, seconds=SILENT_SECONDS, accept="*/*")

    def _lines(self, at: str, query: Mapping[str, str], *, seconds: float, accept: str) -> Iterator[bytes]:
        response = self._send("GET", at, query=query, accept=accept, seconds=seconds)
        held = b""
        try:
            for chunk in response.response.stream(65536, decode_content=True):
                *whole, held = (held + chunk).split(b"\n")
                for line in whole:
                    yield line + b"\n"
            if held:
                yield held
        except self._no_answer as error:
            raise UnreachableError(f"the cluster stopped answering: {error}") from error
        finally:
            response.response.close()

    def _json(self, method: str, at: str, **request: Any) -> Manifest:
        response = self._send(method, at, **request)
        try:
            document: Manifest = json.loads(response.read())
        except self._no_answer as error:
            raise UnreachableError(f"the cluster stopped answering: {error}") from error
        except ValueError as error:
            raise ClusterError(f"the answer to {method} {at} is not an API server's") from error
        return document

    def _send(
        self,
        method: str,
        at: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Manifest | None = None,
        accept: str = JSON,
        content: str = JSON,
        seconds: float = REQUEST_SECONDS,
    ) -> Any:
        asked = self._api.param_serialize(
            method,
            at,
            query_params=list((query or {}).items()),
            header_params={"Accept": accept, "Content-Type": content},
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            response = self._api.call_api(*asked, _request_timeout=(REQUEST_SECONDS, seconds))
            answer = response.read() if response.status >= HTTP_ERROR else b""
        except self._no_answer as error:
            raise UnreachableError(f"the cluster does not answer: {error}") from error
        if response.status >= HTTP_ERROR:
            raise refused(response.status, answer.decode(errors="replace"), method, at)
        return response


NO_KIND = ("404 page not found", "could not find the requested resource")
"""What API servers say of a group, and of a resource, that they do not have."""
VERBS = {"GET": "read", "POST": "create", "PATCH": "change", "WATCH": "watch"}


def refused(status: int, body: str, method: str, at: str) -> RefusedError:
    """The exception for an error, with the message of the Status object in its body."""
    try:
        message = str(json.loads(body).get("message") or body)
    except (ValueError, AttributeError):
        message = body
    message = message.strip()[:2048]
    if status == UNAUTHORIZED:
        return RefusedError(status, f"the cluster does not accept your credentials: log in to it again ({message})")
    if status == FORBIDDEN and " cannot " in message:  # by RBAC, not by a quota or a policy
        asked = NO_ACCESS.format(verb=VERBS[method], what=_what(at))
        return RefusedError(status, f"{asked} ({message})")
    if status == NOT_FOUND and at.startswith(f"/apis/{GROUP}") and any(each in message for each in NO_KIND):
        return RefusedError(status, "this cluster has no accelbench: install its chart first")
    return (NotThereError if status == NOT_FOUND else RefusedError)(status, message)


def _what(at: str) -> str:
    """The resource in a path: `benchmarkruns`, `pods/log`."""
    parts = at.split("/")
    following = parts[parts.index("namespaces") + 2 :] if "namespaces" in parts else parts[-1:]
    return "/".join([following[0], *following[2:]])
