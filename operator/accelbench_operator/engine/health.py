"""Answer the kubelet's probes. An unreachable API server fails neither of them.

The process is alive while its event loop runs and its reconciles end; otherwise the kubelet restarts it. It is ready if
it has listed all objects, the cluster's CRDs fit this release, and RBAC allows it to use the Lease. Otherwise it
reconciles nothing, and `/readyz` gives the reason.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from aiohttp import web

MAXIMUM_STEP_SECONDS = 600.0
"""Maximum duration of a step; after a longer one the process counts as hanging. A request ends within 30 s, but reading
a log may wait for other logs. The age of queued keys is not checked: keys also wait while the API server is down."""
MAXIMUM_LAG_SECONDS = 30.0
"""Maximum delay of the event loop; after a longer one the process counts as hanging."""

Readings = Mapping[str, tuple[float, float]]
"""By name: a duration, and the maximum above which the process counts as hanging, both in seconds."""


@asynccontextmanager
async def serve_probes(
    readings: Callable[[], Readings], readiness_problems: Callable[[], Sequence[str]], port: int
) -> AsyncIterator[None]:
    """Serve `/healthz` and `/readyz` while the context is open.

    Args:
        readings: Returns durations by name, each with its maximum; a longer duration shows that the process hangs.
        readiness_problems: Returns the reasons why the process is not ready; empty if it is ready.
        port: The port to serve on, at every address of the pod.
    """

    async def healthz(_: web.Request) -> web.Response:
        """Answer 503 if a duration of `readings` exceeds its maximum, which shows that the process hangs; else 200."""
        current_readings = readings()
        is_hanging = any(seconds > maximum for seconds, maximum in current_readings.values())
        body = {name: round(seconds, 3) for name, (seconds, _) in current_readings.items()}
        return web.json_response(body, status=503 if is_hanging else 200)

    async def readyz(_: web.Request) -> web.Response:
        """Answer 200 if the process is ready, else 503 and the reasons."""
        problems = list(readiness_problems())
        return web.json_response({"ready": not problems, "problems": problems}, status=503 if problems else 200)

    application = web.Application()
    application.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        # Without a host, it listens on IPv4 and IPv6: the kubelet probes the pod's address.
        await web.TCPSite(runner, port=port).start()
        yield
    finally:
        await runner.cleanup()
