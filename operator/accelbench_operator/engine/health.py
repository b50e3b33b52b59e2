"""What a kubelet asks: is the process alive, and may it be counted on. An API server that is away makes neither false.

Alive is a loop that turns and work that ends: what does not is started anew. Ready is who has heard of everything, and
finds CRDs as this release writes them: who is not says why, and does nothing until it is.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from aiohttp import web

LONGEST_WORK_SECONDS = 600.0
"""A step that takes so long means that the operator hangs: every request of its own ends in 30 s, and a log waits for
others. How long keys wait tells nothing: while an API server does not answer, they do."""
LATE_SECONDS = 30.0

Readings = Mapping[str, tuple[float, float]]
"""By name: seconds, and how many are too many."""


@asynccontextmanager
async def served(
    readings: Callable[[], Readings], unready: Callable[[], Sequence[str]], port: int
) -> AsyncIterator[None]:
    """Serves `/healthz` and `/readyz` inside; raises OSError where the port is taken."""

    async def healthz(_: web.Request) -> web.Response:
        found = readings()
        late = any(seconds > most for seconds, most in found.values())
        told = {name: round(seconds, 3) for name, (seconds, _) in found.items()}
        return web.json_response(told, status=503 if late else 200)

    async def readyz(_: web.Request) -> web.Response:
        problems = list(unready())
        return web.json_response({"ready": not problems, "problems": problems}, status=503 if problems else 200)

    application = web.Application()
    application.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "0.0.0.0", port).start()  # noqa: S104 - the kubelet asks the pod's address
        yield
    finally:
        await runner.cleanup()
