"""Count and time the operator's requests to the API server, and read the server's clock from the answers."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kubernetes.aio.client import ApiClient, Configuration

from accelbench.cluster_api.async_client import AsyncClient
from accelbench.cluster_api.kinds import verb_and_resource
from accelbench_operator.engine.clock import ServerClock


class RequestKind(NamedTuple):
    """Identify requests that are counted together, by the labels that API servers use in their own metrics."""

    verb: str
    resource: str
    code: int
    """HTTP status; 0 if no answer arrived."""


class DatedClient(ApiClient):  # type: ignore[misc]
    """Pass the `Date` header of each response to `add_answer`, also for requests that the leader election sends."""

    def __init__(self, configuration: Configuration, add_answer: Callable[[str], object]) -> None:
        super().__init__(configuration)
        self.add_answer = add_answer

    async def call_api(self, *request: Any, **options: Any) -> Any:
        """Send a request, pass the `Date` header of the response to `add_answer`, and return the response."""
        response = await super().call_api(*request, **options)
        self.add_answer(response.headers.get("Date", ""))
        return response


class KubernetesApi(AsyncClient):
    """Send the operator's requests. Use as an async context manager."""

    def __init__(self, configuration: Configuration) -> None:
        self.clock = ServerClock()
        super().__init__(DatedClient(configuration, self.clock.add_answer), "accelbench-operator")
        self.observe_duration: Callable[[str, str, float], object] = _ignore
        """Called with verb, resource and seconds of each answered request, except watches."""
        self.requests: Counter[RequestKind] = Counter()

    def record_answer(self, method: str, path: str, query: Mapping[str, Any], status: int, seconds: float) -> None:
        """Count a request; if it was answered and is not a watch, pass its duration to `observe_duration`."""
        verb, resource = verb_and_resource(method, path, query)
        self.requests[RequestKind(verb, resource, status)] += 1
        was_answered = status != 0
        if was_answered and verb != "watch":
            self.observe_duration(verb, resource, seconds)


def _ignore(*_: object) -> None:
    """Do nothing; this is the default of `observe_duration`."""
