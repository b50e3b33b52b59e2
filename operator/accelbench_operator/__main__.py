"""Run the operator's process until it is signalled: `python -m accelbench_operator`."""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import uuid

from kubernetes.aio.config import ConfigException

from accelbench.api.profiles import InvalidProfilesError
from accelbench.cluster_api.async_client import load_configuration
from accelbench_operator.engine.api import KubernetesApi
from accelbench_operator.engine.health import serve_probes
from accelbench_operator.engine.watch import watch
from accelbench_operator.metrics.exposition import OPENMETRICS, Exposition, allow_everyone, serve_metrics
from accelbench_operator.metrics.scrapers import Scrapers
from accelbench_operator.operator import Operator
from accelbench_operator.settings import Settings, SettingsError, read_settings

USAGE_ERROR = 2

logger = logging.getLogger(__name__)


async def run(settings: Settings) -> None:
    """Run the operator, its metrics server and its watch of runs until a signal arrives.

    An error of a task ends the process, so that the kubelet restarts the container.
    """
    if task := asyncio.current_task():  # never None in a coroutine; the condition is for the type checker
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            # Until kopf starts and sets its own handlers, a signal cancels this task (see `main`).
            asyncio.get_running_loop().add_signal_handler(signal_number, task.cancel)
    async with KubernetesApi(await load_configuration()) as api:
        operator = Operator(api, settings, identity=f"{socket.gethostname()}_{uuid.uuid4()}")
        exposition = Exposition(operator.telemetry)
        authorize = Scrapers(api) if settings.metrics_authorization else allow_everyone
        port, tls = settings.metrics_port, settings.metrics_tls
        async with (
            serve_metrics(exposition, operator.snapshot, port, tls=tls, authorize=authorize),
            serve_probes(operator.readings, operator.readiness_problems, settings.health_port),
            asyncio.TaskGroup() as group,
        ):
            work = group.create_task(_run_operator(operator, exposition))
            # Start kopf only now: it would never watch a kind that the API server does not serve yet.
            await operator.crds_fit.wait()
            controllers = operator.controllers
            await watch(
                controllers.kinds, settings.namespaces, controllers.changed, controllers.deleted, on_end=work.cancel
            )


async def _run_operator(operator: Operator, exposition: Exposition) -> None:
    """Run the operator's tasks until cancelled."""
    async with asyncio.TaskGroup() as group:
        group.create_task(operator.run())
        group.create_task(_write_first_metrics(exposition, operator))


async def _write_first_metrics(exposition: Exposition, operator: Operator) -> None:
    """Render all metrics once, when all objects are listed: the first time is slow, and a scrape would wait for it."""
    await operator.synced.wait()
    # Objects that were listed at the start stay in memory; frozen ones are not scanned by the garbage collector.
    gc.freeze()
    try:
        await asyncio.to_thread(exposition.write, operator.snapshot(), OPENMETRICS)
    except Exception:
        logger.exception("cannot write the metrics of results; runs continue")


def main() -> int:
    """Run the operator and return the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        asyncio.run(run(read_settings(os.environ)))
    except asyncio.CancelledError:  # a signal arrived before kopf had started
        return 0
    except (SettingsError, InvalidProfilesError, ConfigException) as error:
        print(f"accelbench-operator: {error}", file=sys.stderr)  # noqa: T201 - the command's answer
        return USAGE_ERROR
    return 0


if __name__ == "__main__":
    sys.exit(main())
