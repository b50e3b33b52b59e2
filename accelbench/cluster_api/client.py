"""Send requests to the API server with a user's kubeconfig, for the command line and the kubectl plugin.

The `kubernetes` package brings configuration, TLS and credential plugins; its models are not used. JSON goes in and
out, and every refusal becomes an exception whose message includes the remedy.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from accelbench.api.metadata import GROUP
from accelbench.cluster_api.errors import ApiError, ClusterError, UnreachableError, api_error
from accelbench.cluster_api.kinds import POD, verb_and_resource
from accelbench.frameworks.descriptor import install_message
from accelbench.problem import describe_unknown

Manifest = dict[str, Any]
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
TABLE = f"{JSON};as=Table;v=v1;g=meta.k8s.io,{JSON}"
REQUEST_SECONDS = 30
WATCH_SECONDS = 300
"""Time after which the server ends a watch."""
LOG_IDLE_SECONDS = 120
"""Time without a line after which reading a log fails: a proxy may have dropped the connection."""
PAGE_SIZE = 500
"""Maximum number of objects in one answer, as kubectl asks for them."""
CHUNK_BYTES = 65536
"""Maximum number of bytes of a log or a watch to read at a time."""
LOWEST_ERROR_STATUS = 400
"""Lowest HTTP status that reports an error."""
UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 401, 403, 404
POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
MISSING_GROUP_MESSAGES = ("404 page not found", "could not find the requested resource")
"""Messages of API servers about a group, and about a resource of a group, that they do not serve."""


def connect(context: str | None = None, kubeconfig: Path | None = None, namespace: str | None = None) -> "Client":
    """Connect to the cluster of a kubeconfig or, in a pod without a kubeconfig, to the pod's cluster.

    Args:
        context: A context of the kubeconfig; None stands for the current context.
        kubeconfig: The kubeconfig file; None stands for kubectl's default.
        namespace: The namespace that the user asked for; None stands for the context's namespace.

    Raises:
        ClusterError: The `kubernetes` package is missing, or the kubeconfig is unusable.
    """
    try:
        from kubernetes import config
        from urllib3.exceptions import HTTPError
    except ImportError as error:
        raise ClusterError(f"the Python package {install_message('kubernetes', 'kubectl')}") from error
    file = None if kubeconfig is None else str(kubeconfig)
    try:
        api = config.new_client_from_config(file, context)
        return Client(api, HTTPError, namespace, _default_namespace(context, kubeconfig))
    except config.ConfigException as error:
        # Kubernetes sets this variable in every pod.
        is_in_pod = "KUBERNETES_SERVICE_HOST" in os.environ
        if is_in_pod and file is None and context is None:
            return _connect_from_pod(namespace)
        known_contexts = contexts(kubeconfig)
        if context is not None and known_contexts and context not in known_contexts:
            problem = describe_unknown("context", context, known_contexts)
        else:
            problem = f"{str(error).rstrip('. ')}; see kubectl config get-contexts, or set KUBECONFIG"
        raise ClusterError(f"cannot reach a cluster: {problem}") from error
    except (OSError, ValueError) as error:
        raise ClusterError(f"cannot reach a cluster: the kubeconfig cannot be read: {error}") from error


def _connect_from_pod(namespace: str | None) -> "Client":
    """Connect to the cluster of this process's pod, as its service account.

    `namespace` is that which the user asked for; None stands for the pod's.
    """
    from kubernetes import client, config
    from urllib3.exceptions import HTTPError

    configuration = client.Configuration()
    config.load_incluster_config(client_configuration=configuration)
    pod_namespace = POD_NAMESPACE.read_text().strip()
    return Client(client.ApiClient(configuration), HTTPError, namespace, pod_namespace)


def contexts(kubeconfig: Path | None = None) -> dict[str, dict[str, str]]:
    """Return the settings of each kubeconfig context by name, the current context first; none if it cannot be read."""
    try:
        from kubernetes import config

        listed, current = config.list_kube_config_contexts(None if kubeconfig is None else str(kubeconfig))
    except Exception:  # noqa: BLE001 - the client raises any error that its YAML parser does
        return {}
    # `listed` contains the current context too, but a dict keeps the first position of a key.
    current_first = [current, *listed] if current else listed
    return {context["name"]: context.get("context") or {} for context in current_first}


def _default_namespace(context: str | None, kubeconfig: Path | None) -> str:
    """Return the namespace that a kubeconfig context sets, or else `default`; None stands for the current context."""
    settings_by_context = contexts(kubeconfig)  # the current context first
    current_context = next(iter(settings_by_context), "")
    settings = settings_by_context.get(context or current_context, {})
    return settings.get("namespace") or "default"


class Client:
    """Send requests to one API server, also from several threads. Use as a context manager."""

    def __init__(
        self, api: Any, connection_error: type[Exception], namespace: str | None, default_namespace: str
    ) -> None:
        """Wrap the kubernetes client `api`, which raises `connection_error` if the connection fails.

        `namespace` is the namespace that the user named; if it is None, requests use `default_namespace`.
        """
        self.namespace = namespace or default_namespace
        self.has_requested_namespace = namespace is not None
        """True if the user named the namespace; False if it is the default."""
        self._api = api
        self._api.user_agent = "kubectl-accelbench"
        self._connection_error = connection_error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._api.close()

    def get(self, path: str, **query: str) -> Manifest:
        """Get an object; raises NotFoundError if it does not exist."""
        return self._request_json("GET", path, query=query)

    def items(self, path: str, **query: str) -> list[Manifest]:
        """Return all objects of the collection at `path`, requested page by page."""
        items, _version = self.items_and_version(path, **query)
        return items

    def items_and_version(self, path: str, **query: str) -> tuple[list[Manifest], str]:
        """Return all objects of the collection at `path`, and the resource version from which to watch it."""
        items: list[Manifest] = []
        query = {"limit": str(PAGE_SIZE), **query}
        while True:
            page = self._request_json("GET", path, query=query)
            items += page["items"]
            continue_token = page["metadata"].get("continue")
            if not continue_token:
                return items, page["metadata"].get("resourceVersion", "")
            query["continue"] = continue_token

    def table(self, path: str) -> Manifest:
        """Get the table that `kubectl get` prints of a collection."""
        return self._request_json("GET", path, accept=TABLE)

    def create(self, path: str, body: Manifest, **query: str) -> Manifest:
        """Create an object in the collection at `path`; return the object as the server stored it.

        Raises ConflictError if the object's name is taken.
        """
        query = {"fieldManager": "kubectl-accelbench", "fieldValidation": "Strict", **query}
        return self._request_json("POST", path, query=query, body=body)

    def patch(self, path: str, body: Manifest) -> Manifest:
        """Apply the JSON merge patch `body` to the object at `path`; return the object as the server stored it."""
        query = {"fieldManager": "kubectl-accelbench"}
        return self._request_json("PATCH", path, query=query, body=body, content_type=MERGE_PATCH)

    def watch(self, path: str, version: str, *, table: bool = False, **query: str) -> Iterator[Manifest]:
        """Yield watch events that follow a resource version.

        Raises ExpiredError if the version is too old, and UnreachableError if an event is incomplete.

        With `table`, the `object` of each event is a table with one row: the row that `kubectl get` prints.
        """
        query = {**query, "watch": "1", "resourceVersion": version, "timeoutSeconds": str(WATCH_SECONDS)}
        lines = self._lines(path, query, seconds=WATCH_SECONDS + REQUEST_SECONDS, accept=TABLE if table else JSON)
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError as error:
                raise UnreachableError(0, "the cluster stopped answering in the middle of an event") from error
            if event["type"] == "ERROR":
                status = int(event["object"].get("code") or 0)  # 0: the server gave none
                raise error_with_remedy(status, json.dumps(event["object"]), "GET", path)
            yield event

    def log(self, namespace: str, pod: str, *, follow: bool) -> Iterator[bytes]:
        """Yield the lines of the log of a pod's `runner` container; with `follow`, until the container ends."""
        query = {"container": "runner"}
        if follow:
            query["follow"] = "true"
        return self._lines(POD.path(namespace, pod, "log"), query, seconds=LOG_IDLE_SECONDS, accept="*/*")

    def _lines(self, path: str, query: Mapping[str, str], *, seconds: float, accept: str) -> Iterator[bytes]:
        """Yield the lines of a streamed answer with their line breaks, as they arrive; the last may have none.

        Raises UnreachableError if nothing arrives for `seconds`, or if the connection breaks.
        """
        # The client's answer wraps urllib3's response, which can stream.
        response = self._send("GET", path, query=query, accept=accept, seconds=seconds).response
        partial_line = b""
        try:
            for chunk in response.stream(CHUNK_BYTES, decode_content=True):
                *complete_lines, partial_line = (partial_line + chunk).split(b"\n")
                for line in complete_lines:
                    yield line + b"\n"
            if partial_line:
                yield partial_line
        except self._connection_error as error:
            raise UnreachableError(0, f"the cluster stopped answering: {error}") from error
        finally:
            response.close()

    def _request_json(self, method: str, path: str, **options: Any) -> Manifest:
        """Send a request with the options of `_send`; return the JSON object in the answer.

        Raises UnreachableError if the answer is incomplete or no JSON.
        """
        response = self._send(method, path, **options)
        try:
            document: Manifest = json.loads(response.read())
        except self._connection_error as error:
            raise UnreachableError(0, f"the cluster stopped answering: {error}") from error
        except ValueError as error:
            raise UnreachableError(0, f"the answer to {method} {path} is not an API server's") from error
        return document

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Manifest | None = None,
        accept: str = JSON,
        content_type: str = JSON,
        seconds: float = REQUEST_SECONDS,
    ) -> Any:
        """Send a request and return the response, whose body has not been read; raises ApiError for an error answer.

        Raises UnreachableError if the server is silent for `seconds`.
        """
        request = self._api.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params={"Accept": accept, "Content-Type": content_type},
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            # The first limit is for connecting, the second for each read.
            response = self._api.call_api(*request, _request_timeout=(REQUEST_SECONDS, seconds))
            answer = response.read() if response.status >= LOWEST_ERROR_STATUS else b""
        except self._connection_error as error:
            raise UnreachableError(0, f"the cluster does not answer: {error}") from error
        if response.status >= LOWEST_ERROR_STATUS:
            raise error_with_remedy(response.status, answer.decode(errors="replace"), method, path)
        return response


def error_with_remedy(status: int, body: str, method: str, path: str) -> ApiError:
    """Return the exception for an error answer; its message has advice to the user, if there is any.

    `status` and `body` belong to the answer, `method` and `path` to the request.
    """
    error = api_error(status, body)
    is_group_missing = any(message in error.message for message in MISSING_GROUP_MESSAGES)
    if status == NOT_FOUND and path.startswith(f"/apis/{GROUP}") and is_group_missing:
        return ApiError(status, "this cluster has no accelbench: install its chart first")
    # Status 403 can also come from a quota or a policy. Only RBAC's message is like `User "ann" cannot get ...`.
    is_refused_by_rbac = status == FORBIDDEN and " cannot " in error.message
    if status == UNAUTHORIZED:
        error.message = f"the cluster does not accept your credentials: log in to it again ({error.message})"
    elif is_refused_by_rbac:
        verb, resource = verb_and_resource(method, path, {})  # without the query, a watch is described as a list
        error.message = (
            f"you may not {verb} {resource} here: ask for a role that allows it, such as "
            f"Kubernetes' own edit with accelbench's chart ({error.message})"
        )
    return error
