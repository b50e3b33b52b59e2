"""The site: built strictly, with everything that it shows, and nothing asked of any other host."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pages.machine import checkout
from pages.page import ROOT
from pages.serving import served
from report.chromium import tab

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from report.chromium import Page

pytestmark = pytest.mark.slow

WITH_DIAGRAM = "architecture.html"
WIDE, NARROW = 1400, 400


def build(*arguments: str, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, root / "docs" / "site" / "build.py", *arguments]
    return subprocess.run(program, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("site") / "built"
    done = build("--to", str(to))
    assert done.returncode == 0, done.stdout + done.stderr
    return to / "html"


@pytest.fixture(scope="module")
def browsed(site: Path) -> Iterator[tuple[str, Page]]:
    """The site's address, and a tab that gets nothing from anywhere else."""
    with served(site) as address, tab() as page:
        page("Network.setBlockedURLs", urls=["https://*"])
        yield address, page


def test_a_page_without_a_place_in_the_navigation_fails_the_build(tmp_path: Path) -> None:
    root = checkout(tmp_path / "accelbench")
    (root / "docs" / "operations" / "new.md").write_text("# New\n")
    done = build("--to", str(tmp_path / "built"), root=root)
    assert done.stderr == "docs/site/zensical.toml: give docs/operations/new.md a place in nav\n"


def test_a_place_without_a_page_fails_the_build(tmp_path: Path) -> None:
    root = checkout(tmp_path / "accelbench")
    config = root / "docs" / "site" / "zensical.toml"
    config.write_text(config.read_text().replace('"claims.md"', '"gone.md"'))
    done = build("--to", str(tmp_path / "built"), root=root)
    assert done.stderr == "docs/site/zensical.toml: nav has gone.md, which is not there\n"


@pytest.mark.nightly  # the pages below are for a push
def test_every_page_loads_without_errors_and_without_requests_to_other_hosts(
    site: Path, browsed: tuple[str, Page]
) -> None:
    address, page = browsed
    troubles = []
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        _open(page, f"{address}{name}", WIDE)
        troubles += [f"{name}: {trouble}" for trouble in _troubles(page.events, address)]
    assert troubles == []


@pytest.mark.parametrize("name", ["index", "start", "claims", "reference/metrics", "tutorials/cluster", "architecture"])
def test_a_page_fits_a_phone_and_loads_without_errors(browsed: tuple[str, Page], name: str) -> None:
    address, page = browsed
    _open(page, f"{address}{name}.html", NARROW)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW
    assert list(_troubles(page.events, address)) == []


def test_the_diagram_is_drawn(browsed: tuple[str, Page]) -> None:
    address, page = browsed
    _open(page, f"{address}{WITH_DIAGRAM}", WIDE)
    drawn = """new Promise((done, failed) => {
        const look = () => document.querySelector('div.mermaid') ? done(true) : setTimeout(look, 50);
        setTimeout(() => failed('no diagram'), 20000);
        look();
    })"""
    answer = page("Runtime.evaluate", expression=drawn, awaitPromise=True, returnByValue=True)
    assert answer["result"].get("value") is True, answer


def test_every_broken_link_fails_the_build(tmp_path: Path) -> None:
    root = _with("[gone](none.md) [gone](start.md#nowhere)", tmp_path)
    done = build("--to", str(tmp_path / "built"), root=root)
    assert done.returncode == 1
    assert done.stderr.count("index.md:") == 2, done.stderr
    assert "2 issues found" in done.stderr
    assert "anchor does not exist" in done.stderr


@pytest.mark.parametrize(
    ("link", "says"),
    [
        ("[gone](../examples/none.yaml)", "docs/index.md: a link names examples/none.yaml, which does not exist"),
        ("![gone](images/none.svg)", "docs/index.md: a link names docs/images/none.svg, which does not exist"),
        ("[gone](../../elsewhere.md)", "docs/index.md: ../../elsewhere.md leads out of the repository"),
    ],
)
def test_a_link_to_what_the_repository_does_not_have_is_named(tmp_path: Path, link: str, says: str) -> None:
    done = build("--to", str(tmp_path / "built"), root=_with(link, tmp_path))
    assert (done.returncode, done.stderr) == (1, f"{says}\n")


def _with(text: str, directory: Path) -> Path:
    """A checkout whose first page has this, too."""
    root = checkout(directory / "accelbench")
    with (root / "docs" / "index.md").open("a") as page:
        page.write(f"\n{text}\n")
    return root


def _open(page: Page, url: str, width: int) -> None:
    page("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < WIDE)
    page.events.clear()
    page("Page.navigate", url=url)
    page.wait_for("Page.loadEventFired")


def _troubles(events: list[dict[str, Any]], address: str) -> Iterator[str]:
    for event in events:
        parameters = event.get("params", {})
        match event.get("method"):
            case "Network.requestWillBeSent" if not parameters["request"]["url"].startswith(
                (address, "data:", "blob:")
            ):
                yield f"asks {parameters['request']['url']}"
            case "Network.responseReceived" if parameters["response"]["status"] >= 400:
                yield f"{parameters['response']['status']} for {parameters['response']['url']}"
            case "Runtime.exceptionThrown":
                yield str(parameters["exceptionDetails"].get("exception", {}).get("description"))
