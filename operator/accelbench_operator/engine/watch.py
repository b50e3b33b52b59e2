"""All of kopf: the process, its login, and the watch of BenchmarkRuns, whose events become keys.

Only `on.event` is used, so nothing is written to the runs by kopf: no finalizers, no annotations.
"""

import asyncio
import itertools
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import aiohttp
import kopf

from accelbench.api.metadata import GROUP, VERSION
from accelbench_operator.runs.known import Manifest, RunKey
from accelbench_operator.settings import Settings


class Backoffs:
    """Without an end: where one namespace is gone or refuses the watch of its runs, those of the others go on."""

    def __iter__(self) -> Iterator[float]:
        """Seconds between two tries of a request."""
        yield from (1.0, 2.0, 4.0, 8.0, 16.0)
        yield from itertools.repeat(30.0)


class NoDiffs(kopf.DiffBaseStorage):
    """Nothing asks kopf what has changed in a run, so it need not copy every version of it to find out."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        """See `kopf.DiffBaseStorage`."""
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> None:
        """See `kopf.DiffBaseStorage`."""

    def store(self, **_: Any) -> None:
        """See `kopf.DiffBaseStorage`."""


async def watch_runs(
    settings: Settings,
    seen: Callable[[RunKey, Manifest], None],
    gone: Callable[[RunKey], None],
    ending: Callable[[], object],
) -> None:
    """Tell of every BenchmarkRun that is there, appears, changes or goes; returns when the process is to end.

    `ending` is called before that: kopf waits 5 s for tasks of others that go on.
    """
    # kopf names itself after the user; in a container the passwd database need not know one.
    os.environ.setdefault("LOGNAME", "accelbench")
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    def login(**context: Any) -> kopf.ConnectionInfo | None:
        # kopf's own service-account login ignores KUBERNETES_SERVICE_HOST; the kubernetes client's honours it.
        return kopf.login_via_client(**context)

    @kopf.on.event(GROUP, VERSION, "benchmarkruns", registry=registry)
    async def changed(namespace: str | None, name: str, uid: str, type: str | None, body: Any, **_: Any) -> None:  # noqa: A002
        key = RunKey(namespace or "", name, uid)
        if type == "DELETED":
            gone(key)
        else:
            metadata = {field: value for field, value in body["metadata"].items() if field != "managedFields"}
            seen(key, {**body, "metadata": metadata})

    @kopf.on.cleanup(registry=registry)
    async def cleanup(**_: Any) -> None:
        asyncio.get_running_loop().set_exception_handler(_left_behind)
        ending()

    await kopf.operator(
        registry=registry,
        settings=kopf_settings(),
        standalone=True,
        clusterwide=not settings.namespaces,
        namespaces=settings.namespaces,
    )


def _left_behind(loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
    """What kopf asks when it begins goes on where it is told to end, until it closes the connection: nobody's loss."""
    if not isinstance(context.get("exception"), aiohttp.ClientConnectionError):
        loop.default_exception_handler(dict(context))


def kopf_settings() -> kopf.OperatorSettings:
    """Kopf as a watcher and nothing else."""
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.posting.enabled = False
    settings.persistence.diffbase_storage = NoDiffs()
    # What would be scanned for, CRDs and namespaces, is known at start; so no permission to watch them is needed.
    settings.scanning.disabled = True
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 330
    settings.watching.connect_timeout = 30
    settings.networking.error_backoffs = Backoffs()
    settings.process.ultimate_exiting_timeout = 20
    # It would log each event of each run.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    return settings
