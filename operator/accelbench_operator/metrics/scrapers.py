"""Authorize scrapes by RBAC: a bearer token may read `/metrics` if its user may get that path.

Kubernetes' own components guard their metrics in the same way: TokenReview, then SubjectAccessReview on the path.
"""

import time
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from accelbench.cluster_api.errors import ApiError
from accelbench_operator.engine.api import KubernetesApi

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
METRICS_PATH = "/metrics"
CACHE_SECONDS = 60.0
"""How long a permission is cached: Prometheus scrapes every few seconds; one review a minute is enough."""
MAXIMUM_CACHED = 64
"""Maximum number of tokens whose permission is cached; the oldest ones are dropped."""
MAXIMUM_REVIEWS = 200
"""Maximum number of tokens without a cached permission that are reviewed in `WINDOW_SECONDS`."""
MAXIMUM_REVIEWS_PER_ADDRESS = 20
"""The same maximum for one client address, so that no client uses up the reviews that a renewed token needs."""
WINDOW_SECONDS = 60.0
"""Length of the window in which reviews are counted."""
BEARER_PREFIX = "Bearer "

Answer = tuple[int, str]
"""HTTP status 200 and an empty text; or another status and the reason of the refusal."""


class Scrapers:
    """Review tokens at the API server, and cache permissions. Call it with an Authorization header and an address.

    Anybody can send tokens. So only tokens that may scrape are cached, and reviews of other tokens are limited: a
    stranger can neither flood the API server nor drop a scraper from the cache.
    """

    def __init__(self, api: KubernetesApi, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._permitted: dict[str, float] = {}
        """When the permission of each token expires, by `clock`; the oldest first."""
        self._reviews: Counter[str] = Counter()
        """Reviews of other tokens by client address, in the current window."""
        self._window_ends = 0.0

    async def __call__(self, authorization: str, address: str) -> Answer:
        """Return HTTP status 200 if the Authorization header allows a scrape, else another status and the reason.

        A token with a cached permission is not reviewed again.

        Args:
            authorization: The header's value; empty if the request has no such header.
            address: The address of the client.
        """
        token = authorization.removeprefix(BEARER_PREFIX)
        has_token = authorization.startswith(BEARER_PREFIX) and token != ""
        if not has_token:
            return HTTPStatus.UNAUTHORIZED, "send the bearer token of a service account that may get /metrics"
        now = self._clock()
        permission_ends = self._permitted.get(token)
        if permission_ends is not None and now < permission_ends:
            return HTTPStatus.OK, ""
        # The limit does not apply to a scraper whose permission has expired.
        if token not in self._permitted and not self._count_review(address, now):
            return (
                HTTPStatus.TOO_MANY_REQUESTS,
                f"too many tokens that may not get {METRICS_PATH}; try again in {WINDOW_SECONDS:.0f} s",
            )
        try:
            answer = await self._review(token)
        except ApiError as error:
            return HTTPStatus.SERVICE_UNAVAILABLE, f"cannot ask the API server who this is: {error}"
        self._permitted.pop(token, None)  # a new permission belongs at the end, where the latest ones are
        status, _ = answer
        if status == HTTPStatus.OK:
            self._permitted[token] = now + CACHE_SECONDS
            if len(self._permitted) > MAXIMUM_CACHED:
                del self._permitted[next(iter(self._permitted))]  # the oldest
        return answer

    def _count_review(self, address: str, now: float) -> bool:
        """Count a review in the current window; return False if the window has its maximum of reviews already."""
        if now >= self._window_ends:
            self._reviews.clear()
            self._window_ends = now + WINDOW_SECONDS
        if self._reviews[address] >= MAXIMUM_REVIEWS_PER_ADDRESS or self._reviews.total() >= MAXIMUM_REVIEWS:
            return False
        self._reviews[address] += 1
        return True

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
