"""Clients of `/metrics` cause a bounded number of reviews, and none affects the permission of another."""

from __future__ import annotations

from typing import Any

from accelbench.cluster_api.errors import ApiError
from accelbench_operator.metrics.scrapers import (
    ACCESS_REVIEWS,
    CACHE_SECONDS,
    MAXIMUM_CACHED,
    MAXIMUM_REVIEWS,
    MAXIMUM_REVIEWS_PER_ADDRESS,
    TOKEN_REVIEWS,
    WINDOW_SECONDS,
    Scrapers,
)

PROMETHEUS, STRANGER = "10.0.0.1", "10.0.0.66"


class ApiServer:
    """Answer reviews: `good` tokens may scrape, `poor` ones belong to a user who may not, others are unknown."""

    def __init__(self) -> None:
        self.token_reviews = 0
        self.works = True

    async def create(self, path: str, review: dict[str, Any]) -> dict[str, Any]:
        if not self.works:
            raise ApiError(503, "overloaded")
        if path == TOKEN_REVIEWS:
            self.token_reviews += 1
            owner = review["spec"]["token"].partition("-")[0]
            return {"status": {"authenticated": owner in {"good", "poor"}, "user": {"username": owner}}}
        assert path == ACCESS_REVIEWS
        return {"status": {"allowed": review["spec"]["user"] == "good"}}


class Clients:
    """Ask for metrics at a time of the test's own."""

    def __init__(self) -> None:
        self.server = ApiServer()
        self.now = 0.0
        self._scrapers = Scrapers(self.server, clock=lambda: self.now)  # type: ignore[arg-type]

    async def scrape(self, token: str, address: str = PROMETHEUS) -> int:
        status, _ = await self._scrapers(f"Bearer {token}", address)
        return status

    async def flood(self, count: int, address: str = STRANGER, kind: str = "unknown") -> list[int]:
        return [await self.scrape(f"{kind}-{self.now}-{address}-{number}", address) for number in range(count)]


async def test_many_different_tokens_from_one_address_are_answered_429_without_reviews() -> None:
    for kind, refused in (("unknown", 401), ("poor", 403)):
        clients = Clients()
        answers = await clients.flood(1000, kind=kind)
        assert answers[:MAXIMUM_REVIEWS_PER_ADDRESS] == [refused] * MAXIMUM_REVIEWS_PER_ADDRESS
        assert set(answers[MAXIMUM_REVIEWS_PER_ADDRESS:]) == {429}
        assert clients.server.token_reviews == MAXIMUM_REVIEWS_PER_ADDRESS

        clients.now += WINDOW_SECONDS
        assert await clients.scrape("unknown", STRANGER) == 401


async def test_unknown_tokens_from_many_addresses_cause_no_more_reviews_than_the_global_limit() -> None:
    clients = Clients()
    for host in range(1000):
        await clients.flood(5, f"10.1.{host // 256}.{host % 256}")
    assert clients.server.token_reviews == MAXIMUM_REVIEWS


async def test_a_scraper_is_served_while_others_send_unknown_tokens() -> None:
    clients = Clients()
    assert await clients.scrape("good") == 200
    for _ in range(10):
        for host in range(100):
            await clients.flood(20, f"10.1.0.{host}")
        clients.now += CACHE_SECONDS / 2
        assert await clients.scrape("good") == 200


async def test_a_scraper_with_a_renewed_token_is_served_while_others_send_unknown_tokens() -> None:
    clients = Clients()
    await clients.flood(1000)
    assert await clients.scrape("good-renewed") == 200


async def test_a_permission_is_reviewed_once_a_minute_and_ends_when_the_api_server_revokes_it() -> None:
    clients = Clients()
    assert [await clients.scrape("good") for _ in range(100)] == [200] * 100
    assert clients.server.token_reviews == 1
    clients.now += CACHE_SECONDS
    assert [await clients.scrape("good") for _ in range(100)] == [200] * 100
    assert clients.server.token_reviews == 2


async def test_no_new_scraper_is_admitted_while_the_api_server_does_not_answer() -> None:
    clients = Clients()
    assert await clients.scrape("good") == 200
    clients.server.works = False
    assert await clients.scrape("good") == 200
    assert await clients.scrape("good-renewed") == 503
    clients.now += CACHE_SECONDS
    assert await clients.scrape("good") == 503
    clients.server.works = True
    assert await clients.scrape("good") == 200


async def test_more_scrapers_than_the_cache_holds_are_all_served() -> None:
    clients = Clients()
    for number in range(2 * MAXIMUM_CACHED):
        assert await clients.scrape(f"good-{number}", f"10.2.0.{number}") == 200
