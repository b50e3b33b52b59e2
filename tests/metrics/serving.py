"""The operator's own metrics server, for tests that are not asynchronous."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from accelbench_operator.metrics.exposition import Exposition, serve_metrics
from accelbench_operator.metrics.families import Families, operator_families, result_families

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from accelbench_operator.metrics.snapshot import Snapshot


@contextmanager
def served_metrics(snapshot: Callable[[], Snapshot], port: int) -> Iterator[None]:
    """Serves `/metrics` on loopback inside."""
    began, loop = threading.Event(), asyncio.new_event_loop()
    ended = asyncio.Event()

    async def serve() -> None:
        async with serve_metrics(Exposition(), snapshot, port, address="127.0.0.1"):
            began.set()
            await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert began.wait(10), "the server did not begin"
        yield
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


def text_of(shown: Snapshot, accept: str = "") -> str:
    """Return a scrape of that operator."""
    return b"".join(Exposition().write(shown, accept).texts()).decode()


def registry_of(shown: Snapshot) -> CollectorRegistry:
    """The same, to be asked for single samples."""
    registry = CollectorRegistry()
    families = [*operator_families(shown), *result_families(shown.results if shown.leading else ())]
    registry.register(Families(families))
    return registry
