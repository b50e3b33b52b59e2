"""The HTML report in a real Chromium: requests, layout and accessibility."""

import itertools
import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from accelbench.api.numbers import Numbers
from accelbench.api.result import Certificate, Check, Result
from accelbench.report import html, launches, view
from accelbench.report.suite import html as suite_html
from report import sample, suite_sample
from report.chromium import Page, Scheme, tab

PLOTS = (
    "Speedups against",
    "Seconds of a launch",
    "Speedup over pytorch/eager with the first call counted",
    "Time per step",
)


def documents(result: Result) -> list[str]:
    """Launches of a few blocks, one of them slow, as a run leaves them."""
    return [
        json.dumps(
            {
                "variant": variant.name,
                "round": launch.round,
                "parity": {"units": 1},
                "blocks": [{"units": 10, "seconds": 0.01 * (1 + 0.02 * (n % 3) + (n == 7))} for n in range(20)],
            }
        )
        for variant in result.variants
        for launch in variant.launches
    ]


def good() -> html.MeasuredCase:
    result = sample.result()
    return html.MeasuredCase(result, (), launches.series_from_documents(documents(result)))


def troubled() -> html.MeasuredCase:
    parity = Check(name="parity", outcome="failed", reading="`x` is off: 3e-3 > 7e-5", threshold="1", variant="jax/jit")
    return html.MeasuredCase(
        sample.result(
            complete=False,
            stopped="TimeLimitReached",
            variants=(
                sample.variant("pytorch/eager", "0.00117"),
                sample.variant("jax/jit", "0.000574"),
                sample.failed("jax/op-by-op"),
            ),
            comparisons=(sample.invalid("jax/jit", "parity"),),
            certificate=Certificate(checks=(*sample.CHECKS, parity)),
            notes=("<script>alert(1)</script> is text",),
        )
    )


def several() -> list[html.MeasuredCase]:
    case = sample.case()
    return [
        html.MeasuredCase(sample.result(case=case.model_copy(update={"name": f"size-{size}", "swept": {"size": size}})))
        for size in (256, 512)
    ]


PAGES = {"good": [good()], "troubled": [troubled()], "several": several()}
SUITE = "suite"


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with tab() as page:
        yield page


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return each page, drawn once."""
    folder = tmp_path_factory.mktemp("pages")
    texts = {name: html.report("matmul-chain", cases) for name, cases in PAGES.items()}
    texts[SUITE] = suite_html.report(suite_sample.mixed())
    drawn = {name: folder / f"{name}.html" for name in texts}
    for name, path in drawn.items():
        path.write_text(texts[name], encoding="utf-8")
    return drawn


@pytest.fixture(params=[*PAGES, SUITE])
def page(request: pytest.FixtureRequest, pages: dict[str, Path]) -> Path:
    return pages[request.param]


@pytest.fixture
def good_page(pages: dict[str, Path]) -> Path:
    return pages["good"]


def test_the_page_makes_no_request_and_logs_no_error(browser: Page, page: Path) -> None:
    browser.open(page)
    asked = [
        event["params"]["request"]["url"] for event in browser.events if event["method"] == "Network.requestWillBeSent"
    ]
    assert [url for url in asked if not url.startswith("data:")] == [page.as_uri()]
    assert [event["params"] for event in browser.events if event["method"] == "Log.entryAdded"] == []
    # Nor could one: whatever a message holds, the page's own policy allows nothing but its style.
    assert "default-src 'none'" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [320, 375, 768])
def test_it_fits_a_phone_without_scrolling_sideways(browser: Page, page: Path, width: int) -> None:
    browser.open(page, width=width)
    wide, room = browser.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= room <= width


def test_every_plot_has_a_text_alternative_with_its_finding(browser: Page, good_page: Path) -> None:
    for width in (375, 1280):
        browser.open(good_page, width=width)
        names = browser.accessible("image")
        assert [name[: len(plot)] for name, plot in zip(names, PLOTS, strict=True)] == list(PLOTS), width
        assert "jax/jit 2.04x, 2.01 to 2.07, faster" in names[0]


def test_all_plots_of_all_pages_have_a_name(browser: Page, page: Path) -> None:
    browser.open(page)
    names = browser.accessible("image")
    assert names
    assert all(len(name) > 20 for name in names)


def test_headings_make_an_outline_without_gaps(browser: Page, page: Path) -> None:
    browser.open(page)
    levels = browser.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_ids_are_unique_and_every_reference_to_one_resolves(browser: Page, page: Path) -> None:
    browser.open(page)
    ids = browser.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    referred = browser.evaluate(
        "[...document.querySelectorAll('[aria-labelledby],use,a')].filter(e => !e.href?.endsWith?.('.html'))"
        ".map(e => e.getAttribute('aria-labelledby') ?? e.getAttribute('href').slice(1))"
    )
    assert set(referred) <= set(ids)


def test_scrollable_elements_can_be_focused_and_scrolled_with_the_keyboard(browser: Page, good_page: Path) -> None:
    browser.open(good_page, width=375)
    unreachable = browser.evaluate(
        "[...document.querySelectorAll('*')].filter(e => e.scrollWidth > e.clientWidth + 1"
        " && getComputedStyle(e).overflowX === 'auto' && e.tabIndex < 0 && e.checkVisibility()).map(e => e.outerHTML)"
    )
    assert unreachable == []
    named = browser.evaluate("[...document.querySelectorAll('[tabindex]')].every(e => e.role === 'region')")
    assert named is True


# WCAG 2.2: 4.5 to 1 for text (1.4.3), 3 to 1 for what a plot is drawn with (1.4.11).
CONTRASTS = """
(() => {
  // A mixed colour is `color(srgb 0.9 0.8 1)`, another one `rgb(230, 204, 255)`.
  const numbers = colour => colour.match(/[0-9.]+/g).map(n => Number(n) * (colour.startsWith('color(') ? 255 : 1));
  const luminance = colour => {
    const [r, g, b] = numbers(colour).slice(0, 3).map(c => c / 255)
      .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = element => {
    for (let each = element; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if (numbers(colour)[3] !== 0) return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const found = ratio(element.closest('svg') ? style.fill : style.color, ground(element));
    if (found < 4.5) poor.push(['text', walker.currentNode.data, found]);
  }
  const drawn = [...document.querySelectorAll('.plot path[style*="--"], .plot use')]
    .filter(e => e.checkVisibility() && !e.closest('defs') && !/--(rule|band|paper)/.test(e.getAttribute('style')));
  for (const element of drawn) {
    const style = getComputedStyle(element);
    for (const colour of [style.fill, style.stroke].filter(c => c !== 'none')) {
      const found = ratio(colour, ground(element));
      if (found < 3) poor.push(['plot', element.outerHTML, found]);
    }
  }
  return [drawn.length, poor];
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_plots_have_contrast_in_both_colour_schemes(browser: Page, page: Path, scheme: Scheme) -> None:
    browser.open(page, scheme=scheme)
    browser.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    drawn, poor = browser.evaluate(CONTRASTS)
    assert drawn > 20
    assert poor == []


def test_plots_follow_the_colour_scheme(browser: Page, good_page: Path) -> None:
    fill = "getComputedStyle(document.querySelector('.wide svg text')).fill"
    grounds = "getComputedStyle(document.body).backgroundColor"
    seen = {}
    for scheme in ("light", "dark"):
        browser.open(good_page, scheme=scheme)
        seen[scheme] = (browser.evaluate(fill), browser.evaluate(grounds))
    assert seen["light"][0] != seen["dark"][0]
    assert seen["light"][1] != seen["dark"][1]


def test_no_placeholder_colour_of_a_plot_is_left(good_page: Path) -> None:
    text = good_page.read_text(encoding="utf-8")
    assert re.findall(r"#0100[0-3][0-9]", text) == []
    assert "font-family: 'DejaVu" not in text


def test_the_printed_page_is_complete_and_white(browser: Page, good_page: Path) -> None:
    browser.open(good_page)
    browser("Emulation.setEmulatedMedia", media="print")
    assert browser.evaluate("document.querySelector('.readings td').checkVisibility()") is True
    assert browser.evaluate("[...document.querySelectorAll('.narrow')].some(each => each.checkVisibility())") is False
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize("name", PAGES)
def test_the_first_sentences_are_the_verdicts(browser: Page, pages: dict[str, Path], name: str) -> None:
    browser.open(pages[name])
    shown = browser.evaluate("[...document.querySelectorAll('header .finding')].map(each => each.textContent)")
    results = [case.result for case in PAGES[name]]
    assert shown == list(html.overview_sentences(results) if len(results) > 1 else view.sentences(results[0]))
    assert 1 <= len(shown) <= 3


def test_an_invalid_comparison_shows_its_reason_and_no_speedup(browser: Page, pages: dict[str, Path]) -> None:
    browser.open(pages["troubled"])
    text = browser.evaluate("document.body.innerText")
    assert "partial: out of time" in text
    assert "invalid: parity" in text
    assert "`x` is off: 3e-3 > 7e-5" in text
    assert "jax/op-by-op failed in round 1, phase setup (OutOfMemory)" in text
    assert re.search(r"\d[.,]?\d*x\b", text.partition("Certificate")[0]) is None
    assert "<script>alert(1)</script> is text" in text
    assert [name for name in browser.accessible("image") if "first call counted" in name] == []


def test_a_single_result_is_drawn_from_its_summaries_and_the_page_notes_that() -> None:
    text = unescape(html.report("run", [html.MeasuredCase(sample.result())]))
    assert "a line from the 5 % to the 95 % quantile" in text
    assert "Time per step of launches, in run order: pytorch/eager 1.17 ms" in text


def test_many_cases_still_open_on_a_phone() -> None:
    many = [html.MeasuredCase(sample.result(case=sample.case(name=f"case-{n}"))) for n in range(64)]
    assert len(html.report("run", many)) < 4_000_000


@pytest.mark.parametrize("width", [390, 700, 1400])
def test_no_table_scrolls_sideways_and_every_interval_is_visible(browser: Page, page: Path, width: int) -> None:
    browser.open(page, width=width)
    browser.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    hidden = (
        "[...document.querySelectorAll('.verdicts, .phases, .first-calls, .spread, .costs')]"
        ".filter(each => each.scrollWidth > each.clientWidth).map(each => each.innerText)"
    )
    assert browser.evaluate(hidden) == []
    right = "Math.max(0, ...[...document.querySelectorAll('.verdicts td')].map(td => td.getBoundingClientRect().right))"
    assert browser.evaluate(right) <= width


def test_on_a_phone_every_number_has_a_label(browser: Page, good_page: Path) -> None:
    browser.open(good_page, width=390)
    label = "[...document.querySelectorAll('.verdicts td')].filter(td => td.checkVisibility())"
    named = f"{label}.map(td => getComputedStyle(td, '::before').content + ' ' + td.innerText)"
    assert '"interval" 2.01 to 2.07' in browser.evaluate(named)
    assert not any(text.endswith('" ') for text in browser.evaluate(named))


def test_checks_that_were_not_made_are_named_and_not_green(browser: Page, tmp_path: Path) -> None:
    unmade = Check(name="work-present", outcome="untested", reading="nobody counted", variant="jax/jit")
    case = html.MeasuredCase(sample.result(certificate=Certificate(checks=(*sample.CHECKS, unmade))))
    path = tmp_path / "page.html"
    path.write_text(html.report("run", [case]), encoding="utf-8")
    browser.open(path)
    script = "[...document.querySelectorAll('p.verdict')].map(p => p.innerText + getComputedStyle(p).color)"
    green = "getComputedStyle(document.querySelector('td.faster')).color"
    [summary] = browser.evaluate(script)
    assert summary.startswith("6 of 7 checks passed, 1 untested (work-present for jax/jit).")
    assert not summary.endswith(browser.evaluate(green))


def test_compiled_programs_have_a_table_of_their_own() -> None:
    first, *others = sample.result().variants
    counted = first.model_copy(update={"numbers": Numbers(kernels_per_call=1200)})
    page = html.report("run", [html.MeasuredCase(sample.result(variants=(counted, *others)))])
    assert "What was compiled" in page
    assert "1,200" in page
    assert "What was compiled" not in html.report("run", [html.MeasuredCase(sample.result())])
