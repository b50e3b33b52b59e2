"""All of kopf: the process, its login, and the watch of BenchmarkRuns, whose events become keys.

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


async def watch_runs(
    settings: Settings,
    seen: Callable[[RunKey, str], None],
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
    async def changed(namespace: str | None, name: str, uid: str, type: str | None, meta: Any, **_: Any) -> None:  # noqa: A002
        key = RunKey(namespace or "", name, uid)
        if type == "DELETED":
            gone(key)
        else:
            seen(key, meta["resourceVersion"])

    @kopf.on.cleanup(registry=registry)
    async def cleanup(**_: Any) -> None:
        ending()

    await kopf.operator(
        registry=registry,
        settings=kopf_settings(),
        standalone=True,
        clusterwide=not settings.namespaces,
        namespaces=settings.namespaces,
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
    # It would log each event of each run.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    return settings
