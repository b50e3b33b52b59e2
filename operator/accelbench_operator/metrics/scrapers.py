"""Authorize scrapes by RBAC: a bearer token may read `/metrics` if its user may get that path.

Kubernetes' own components guard their metrics in the same way: TokenReview, then SubjectAccessReview on the path.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from accelbench.cluster_api.errors import ApiError
from accelbench_operator.engine.api import KubernetesApi

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
METRICS_PATH = "/metrics"
CACHE_SECONDS = 60.0
"""How long an answer is cached: Prometheus scrapes every few seconds; one review a minute is enough."""
MAXIMUM_CACHED = 64
"""Maximum number of answers in the cache; a full cache is emptied."""
BEARER_PREFIX = "Bearer "

Answer = tuple[int, str]


@dataclass(frozen=True)
class _CachedAnswer:
    answer: Answer
    expires_at: float
    """By the clock of `Scrapers`, in seconds."""


class Scrapers:
    """Review tokens at the API server, and cache the answers. Call it with an Authorization header."""

    def __init__(self, api: KubernetesApi, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._cache: dict[str, _CachedAnswer] = {}
        """By token."""

    async def __call__(self, authorization: str) -> Answer:
        """Return HTTP status 200 if the Authorization header allows a scrape, else another status and the reason."""
        token = authorization.removeprefix(BEARER_PREFIX)
        has_token = authorization.startswith(BEARER_PREFIX) and token != ""
        if not has_token:
            return HTTPStatus.UNAUTHORIZED, "send the bearer token of a service account that may get /metrics"
        now = self._clock()
        cached = self._cache.get(token)
        if cached and now < cached.expires_at:
            return cached.answer
        try:
            answer = await self._review(token)
        except ApiError as error:
            return HTTPStatus.SERVICE_UNAVAILABLE, f"cannot ask the API server who this is: {error}"
        if len(self._cache) >= MAXIMUM_CACHED:  # the simplest way to limit the cache: few tokens scrape
            self._cache.clear()
        self._cache[token] = _CachedAnswer(answer, now + CACHE_SECONDS)
        return answer

    async def _review(self, token: str) -> Answer:
        """Ask the API server if the token's user may get `/metrics`; return a status and the reason of a refusal."""
        token_review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status: dict[str, Any] = (await self._api.create(TOKEN_REVIEWS, token_review))["status"]
        if not status.get("authenticated"):
            return HTTPStatus.UNAUTHORIZED, "the API server does not know this token"
        user = status["user"]
        spec = {
            "user": user["username"],
            "groups": user.get("groups", []),
            "nonResourceAttributes": {"path": METRICS_PATH, "verb": "get"},
        }
        access_review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        review = await self._api.create(ACCESS_REVIEWS, access_review)
        if not review["status"]["allowed"]:
            return (
                HTTPStatus.FORBIDDEN,
                f"{user['username']} may not get {METRICS_PATH}: bind it to a ClusterRole that allows it",
            )
        return HTTPStatus.OK, ""
