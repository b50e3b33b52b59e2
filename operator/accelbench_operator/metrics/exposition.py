"""`/metrics`: the text of a scrape, and who may have it.

Most of a scrape tells of results (`results_text`). All of it is made and sent a metric at a time.
"""

import asyncio
import itertools
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from accelbench_operator.metrics.families import Families, of_the_operator, of_the_process
from accelbench_operator.metrics.results_text import MetricTexts, ResultsText
from accelbench_operator.metrics.snapshot import Snapshot

logger = logging.getLogger(__name__)

OPENMETRICS = "application/openmetrics-text;version=1.0.0"
"""What Prometheus accepts first."""
RENEW_SECONDS = 60.0


class Exposition:
    """Writes scrapes, as text or as OpenMetrics, whichever is asked for."""

    def __init__(self, *collectors: Collector) -> None:
        """`collectors` are exported beside the snapshot."""
        self._collectors = (*collectors, of_the_process())
        self._results: dict[str, ResultsText] = {}
        """By media type: its versions differ in nothing that results have."""

    def write(self, operator: Snapshot, accept: str = "") -> "Scrape":
        """A scrape for an Accept header; results are shown where this replica leads, and ready where it does not."""
        encode, content_type = choose_encoder(accept)
        media_type = content_type.partition(";")[0]
        if media_type not in self._results:
            self._results[media_type] = ResultsText(encode)
        results = self._results[media_type].of(operator.results)
        others = itertools.chain.from_iterable(each.collect() for each in self._collectors)
        own = encode(Families(itertools.chain(of_the_operator(operator), others)))
        return Scrape(content_type, results if operator.leading else results.heads_alone, own)


@dataclass(frozen=True)
class Scrape:
    """What is sent: `parts` in order."""

    content_type: str
    results: MetricTexts
    own: bytes

    def parts(self) -> Iterator[bytes]:
        """About results, a metric at a time, then about the operator."""
        yield from self.results
        yield self.own


@dataclass(frozen=True)
class Tls:
    """Files, as a Secret of type kubernetes.io/tls has them; they are read again when they change."""

    certificate: Path
    key: Path
    client_ca: Path | None = None
    """Whoever scrapes has to show a certificate that it signed."""

    def context(self) -> ssl.SSLContext:
        """Raises OSError, ssl.SSLError among them, where a file is missing or is no such thing."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.load(context)
        if self.client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def load(self, context: ssl.SSLContext) -> None:
        """Whoever connects from now on is shown these."""
        context.load_cert_chain(self.certificate, self.key)
        if self.client_ca:
            context.load_verify_locations(self.client_ca)

    @property
    def changed(self) -> tuple[float, ...]:
        """When each file was."""
        files = (self.certificate, self.key, self.client_ca)
        return tuple(file.stat().st_mtime for file in files if file)


MayScrape = Callable[[str], Awaitable[tuple[int, str]]]
"""For an Authorization header: 200, or the HTTP status of a refusal and why."""


async def anybody(_: str) -> tuple[int, str]:
    """Whoever reaches the port."""
    return 200, ""


@asynccontextmanager
async def exposed(
    exposition: Exposition,
    snapshot: Callable[[], Snapshot],
    port: int,
    *,
    address: str = "0.0.0.0",  # noqa: S104 - Prometheus scrapes the pod's address
    tls: Tls | None = None,
    may_scrape: MayScrape = anybody,
    renew_seconds: float = RENEW_SECONDS,
) -> AsyncIterator[None]:
    """Serves `/metrics` inside; raises OSError where the port is taken or a file of `tls` cannot be used."""

    async def metrics(request: web.Request) -> web.StreamResponse:
        status, why = await may_scrape(request.headers.get("Authorization", ""))
        if status != web.HTTPOk.status_code:
            return web.Response(status=status, text=f"{why}\n")
        scrape = await asyncio.to_thread(exposition.write, snapshot(), request.headers.get("Accept", ""))
        # aiohttp's own content_type takes no parameters, and Prometheus's format is told by one.
        response = web.Response(body=_in_turn(scrape), headers={"Content-Type": scrape.content_type})
        response.enable_compression()
        # It is aiohttp that sends it: whoever asked may have gone by then, as a busy node takes longer than Prometheus
        # waits, and that is no error of ours.
        return response

    application = web.Application()
    application.add_routes([web.get("/metrics", metrics)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    context = tls.context() if tls else None
    renewing = asyncio.create_task(_renew(tls, context, renew_seconds)) if tls and context else None
    try:
        await web.TCPSite(runner, address, port, ssl_context=context).start()
        yield
    finally:
        if renewing:
            renewing.cancel()
        await runner.cleanup()


async def _in_turn(scrape: Scrape) -> AsyncIterator[bytes]:
    for part in scrape.parts():
        yield part
        # A socket may take all of them at once, and other work waits meanwhile.
        await asyncio.sleep(0)


async def _renew(tls: Tls, context: ssl.SSLContext, seconds: float) -> None:
    """Certificates are replaced while this process goes on."""
    known = tls.changed
    while True:
        await asyncio.sleep(seconds)
        try:
            if (now := tls.changed) != known:
                tls.load(context)
                known = now
        except OSError as error:
            logger.warning("the certificate cannot be read again: %s; the one before stays in use", error)
