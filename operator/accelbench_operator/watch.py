"""All of kopf: the process, its login, its probe, and the watch of BenchmarkRuns, whose events become keys.

Only `on.event` is used, so nothing is written to the runs by kopf: no finalizers, no annotations. The body of an event
is not kept either: a worker reads the run live.
"""

import logging
import os
from collections.abc import Callable
from typing import Any

import kopf

from accelbench.api.metadata import GROUP, VERSION
from accelbench_operator.reconcile import RunKey
from accelbench_operator.settings import Settings

STALE_SECONDS = 600.0
"""A key that is worked on for so long means that the operator hangs: every request of its own ends in 30 s. How long
keys wait tells nothing: while an API server does not answer, they do."""
LATE_SECONDS = 30.0


async def watch_runs(
    settings: Settings,
    seen: Callable[[RunKey], None],
    ending: Callable[[], object],
    working: Callable[[], float],
    lag: Callable[[], float],
) -> None:
    """Tell of every BenchmarkRun that is there, appears, changes or goes; returns when the process is to end.

    `ending` is called before that: kopf waits 5 s for tasks of others that go on. `working` and `lag`, in seconds, are
    what the liveness probe judges.
    """
    # kopf names itself after the user; in a container the passwd database need not know one.
    os.environ.setdefault("LOGNAME", "accelbench")
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    def login(**context: Any) -> kopf.ConnectionInfo | None:
        # kopf's own service-account login ignores KUBERNETES_SERVICE_HOST; the kubernetes client's honours it.
        return kopf.login_via_client(**context)

    @kopf.on.event(GROUP, VERSION, "benchmarkruns", registry=registry)
    async def changed(namespace: str | None, name: str, uid: str, **_: Any) -> None:
        seen(RunKey(namespace or "", name, uid))

    @kopf.on.cleanup(registry=registry)
    async def cleanup(**_: Any) -> None:
        ending()

    @kopf.on.probe(id="longest-work-seconds", registry=registry)
    async def longest_work(**_: Any) -> float:
        return _within(working(), STALE_SECONDS, "one key has been worked on for")

    @kopf.on.probe(id="loop-lag-seconds", registry=registry)
    async def loop_lag(**_: Any) -> float:
        return _within(lag(), LATE_SECONDS, "the event loop is late by")

    await kopf.operator(
        registry=registry,
        settings=kopf_settings(),
        standalone=True,
        clusterwide=not settings.namespaces,
        namespaces=settings.namespaces,
        liveness_endpoint=f"http://0.0.0.0:{settings.health_port}/healthz",
    )


def kopf_settings() -> kopf.OperatorSettings:
    """Kopf as a watcher and nothing else."""
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.posting.enabled = False
    # What would be scanned for, CRDs and namespaces, is known at start; so no permission to watch them is needed.
    settings.scanning.disabled = True
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 330
    settings.watching.connect_timeout = 30
    settings.process.ultimate_exiting_timeout = 20
    # They would log each event of each run, and each probe.
    for name in ("kopf.objects", "kopf.activities.probe", "aiohttp.access"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return settings


def _within(seconds: float, limit: float, what: str) -> float:
    if seconds > limit:
        raise kopf.PermanentError(f"{what} {seconds:.0f} s, more than {limit:.0f} s")
    return round(seconds, 3)
