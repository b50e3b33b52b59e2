"""Serve `/metrics`: write the text of a scrape and decide who may read it.

Most of a scrape is about results (`results_text`). It is written and sent one metric at a time.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from accelbench_operator.metrics.families import Families, operator_families, process_registry
from accelbench_operator.metrics.results_text import MetricTexts, ResultsText
from accelbench_operator.metrics.snapshot import Snapshot

logger = logging.getLogger(__name__)

OPENMETRICS = "application/openmetrics-text;version=1.0.0"
"""The format that Prometheus prefers."""
RENEW_SECONDS = 60.0
"""Seconds between checks for renewed certificates."""


class Exposition:
    """Write the metrics in the format that a scrape accepts: Prometheus' text format or OpenMetrics."""

    def __init__(self, *collectors: Collector) -> None:
        """Prepare to export the metrics of `collectors` and of this process."""
        self._collectors = (*collectors, process_registry())
        self._results: dict[str, ResultsText] = {}
        """The cached texts by media type without its version: all versions have the same text."""

    def write(self, snapshot: Snapshot, accept: str = "") -> "Scrape":
        """Return the metrics in the format that the request's Accept header asks for."""
        encode, content_type = choose_encoder(accept)
        media_type = content_type.partition(";")[0]
        if media_type not in self._results:
            self._results[media_type] = ResultsText(encode)
        results = self._results[media_type].write(snapshot.results)
        if not snapshot.leading:
            # Only the leader exports results. Another replica writes them too, so that its cache is full when it leads.
            results = results.without_results
        collected_families = [family for collector in self._collectors for family in collector.collect()]
        operator_text = encode(Families([*operator_families(snapshot), *collected_families]))
        return Scrape(content_type, results, operator_text)


@dataclass(frozen=True)
class Scrape:
    """Hold the content type and the text of one response."""

    content_type: str
    results: MetricTexts
    operator_text: bytes

    def texts(self) -> Iterator[bytes]:
        """Yield the text of each metric of results, then one text for the operator."""
        yield from self.results
        yield self.operator_text


@dataclass(frozen=True)
class Tls:
    """Name the files of a Secret of type kubernetes.io/tls; the server reloads them when they change."""

    certificate: Path
    key: Path
    client_ca: Path | None = None
    """If set, clients need a certificate that this authority signed."""

    def context(self) -> ssl.SSLContext:
        """Return the TLS context of a server, which requires certificates of clients if `client_ca` is set."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.load(context)
        if self.client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def load(self, context: ssl.SSLContext) -> None:
        """Load the certificates into `context`; new connections then use them."""
        context.load_cert_chain(self.certificate, self.key)
        if self.client_ca:
            context.load_verify_locations(self.client_ca)

    @property
    def modification_times(self) -> tuple[float, ...]:
        """Return the modification time of each file, in seconds since 1970."""
        files = (self.certificate, self.key, self.client_ca)
        return tuple(file.stat().st_mtime for file in files if file)


Authorize = Callable[[str, str], Awaitable[tuple[int, str]]]
"""Takes an Authorization header and the client's address; returns 200, or the HTTP status and reason of a refusal."""


async def allow_everyone(_authorization: str, _address: str) -> tuple[int, str]:
    """Authorize every request, whatever its Authorization header."""
    return 200, ""


@asynccontextmanager
async def serve_metrics(
    exposition: Exposition,
    snapshot: Callable[[], Snapshot],
    port: int,
    *,
    address: str | None = None,
    tls: Tls | None = None,
    authorize: Authorize = allow_everyone,
    renew_seconds: float = RENEW_SECONDS,
) -> AsyncIterator[None]:
    """Serve `/metrics` while the context is open.

    `address` is the address to serve on; None stands for all addresses, of IPv4 and IPv6. `authorize` decides whether a
    request may read the metrics. With `tls`, they are served by HTTPS, and changed certificates are loaded every
    `renew_seconds`.
    """

    async def answer_scrape(request: web.Request) -> web.StreamResponse:
        """Return the metrics, or the status and reason of a refusal."""
        status, refusal = await authorize(request.headers.get("Authorization", ""), request.remote or "")
        if status != web.HTTPOk.status_code:
            return web.Response(status=status, text=f"{refusal}\n")
        scrape = await asyncio.to_thread(exposition.write, snapshot(), request.headers.get("Accept", ""))
        # aiohttp's content_type takes no parameters; the version of Prometheus's format is one.
        response = web.Response(body=_yield_chunks(scrape), headers={"Content-Type": scrape.content_type})
        response.enable_compression()
        # aiohttp sends the response after this function returns, so a client that disconnects causes no error here.
        return response

    application = web.Application()
    application.add_routes([web.get("/metrics", answer_scrape)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    context = None
    reloading = None
    if tls:
        context = tls.context()
        reloading = asyncio.create_task(_reload_certificates(tls, context, renew_seconds))
    try:
        await web.TCPSite(runner, address, port, ssl_context=context).start()
        yield
    finally:
        if reloading:
            reloading.cancel()
        await runner.cleanup()


async def _yield_chunks(scrape: Scrape) -> AsyncIterator[bytes]:
    """Yield the texts of a scrape, and let other tasks run in between."""
    for text in scrape.texts():
        yield text
        # A fast socket would take all chunks without giving other tasks a turn.
        await asyncio.sleep(0)


async def _reload_certificates(tls: Tls, context: ssl.SSLContext, seconds: float) -> None:
    """Check the certificates every `seconds`, and load them into `context` after a change."""
    loaded_times = tls.modification_times
    while True:
        await asyncio.sleep(seconds)
        try:
            current_times = tls.modification_times
            if current_times != loaded_times:
                tls.load(context)
                loaded_times = current_times
        except OSError as error:
            logger.warning("cannot reload the TLS certificate: %s; keeping the current one", error)
