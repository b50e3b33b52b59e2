"""Answer the kubelet's probes. An unreachable API server fails neither of them.

The process is alive while its event loop turns and reconciles end; otherwise the kubelet restarts it. It is ready once
it has listed all objects and the cluster's CRDs fit this release; until then it does nothing, and `/readyz` gives the
reason.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from aiohttp import web

MAXIMUM_STEP_SECONDS = 600.0
"""Longest time of a step before the process counts as hanging: each request ends within 30 s, but fetching a log may
wait for others. Keys that wait in the queue show no hang, because they wait while the API server does not answer."""
MAXIMUM_LAG_SECONDS = 30.0
"""Longest delay of the event loop before the process counts as hanging."""

Readings = Mapping[str, tuple[float, float]]
"""By name: seconds, and the limit above which the process counts as hanging."""


@asynccontextmanager
async def serve_probes(
    readings: Callable[[], Readings], unready: Callable[[], Sequence[str]], port: int
) -> AsyncIterator[None]:
    """Serve `/healthz` and `/readyz` while the context is open; raise OSError if the port is taken."""

    async def healthz(_: web.Request) -> web.Response:
        current = readings()
        hangs = any(seconds > limit for seconds, limit in current.values())
        body = {name: round(seconds, 3) for name, (seconds, _) in current.items()}
        return web.json_response(body, status=503 if hangs else 200)

    async def readyz(_: web.Request) -> web.Response:
        problems = list(unready())
        return web.json_response({"ready": not problems, "problems": problems}, status=503 if problems else 200)

    application = web.Application()
    application.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "0.0.0.0", port).start()  # noqa: S104 - the kubelet probes the pod's address
        yield
    finally:
        await runner.cleanup()
