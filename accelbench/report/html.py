"""Render a run as one HTML page that needs no network: findings, tables, plots, certificate, fingerprint, command.

Needs Jinja2 and matplotlib, the extra `report`; `install_hint` explains how to install them. Pure.
"""

import importlib.util
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import accelbench
from accelbench import figures
from accelbench.api.result import Check, CheckOutcome, Comparison, Result
from accelbench.document import on_one_line
from accelbench.explanation.explain import explain
from accelbench.report import certificate, details, launches, machine, reproduce, targets, view
from accelbench.report.launches import LaunchSeries
from accelbench.report.table import Table, TableColumn
from accelbench.verdict.expectations import ExpectationOutcome
from accelbench.verdict.redaction import redact_invalid

if TYPE_CHECKING:
    from accelbench.picture import Picture
    from accelbench.report.plots.canvas import Plot

NEEDS = ("jinja2", "matplotlib")
COMMAND_ABOUT = "Paste this into a shell where accelbench is installed; or save the manifest and apply it with kubectl."
MAXIMUM_DRAWN_CASES = 24
"""Maximum number of cases with all plots; with more, only speedups are drawn, so that a phone can open the page."""


@dataclass(frozen=True)
class MeasuredCase:
    """Hold one case to show; without `series`, its blocks are drawn from the result's summaries."""

    result: Result
    expectations: Sequence[ExpectationOutcome] = ()
    series: Mapping[str, Sequence[LaunchSeries]] = field(default_factory=dict)


def install_hint() -> str | None:
    """Return how to install the packages that an HTML report needs; None if all are installed."""
    absent = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if not absent:
        return None
    return f"an HTML report needs {' and '.join(absent)}: pip install 'accelbench[report]'"


def report(name: str, cases: Sequence[MeasuredCase], *, manifest: Mapping[str, Any] | None = None) -> str:
    """Return an HTML page that reports these cases of a run.

    Args:
        name: The run's name.
        cases: The cases to show.
        manifest: The manifest in the command that the page shows for measuring again. Without a manifest, the page of a
            single case shows a command for this case, and the page of several cases shows none.
    """
    if manifest is None and len(cases) == 1:
        manifest = reproduce.manifest_of_case(cases[0].result.case)
    results = [case.result for case in cases]
    # `--processors` is an option of the whole run, so that every case has the same.
    processors = reproduce.processors_option(results[0]) if results else None
    sentences = overview_sentences(results)
    all_plots = len(cases) <= MAXIMUM_DRAWN_CASES
    return render(
        "report.html.j2",
        name=on_one_line(name),
        title=sentences[0] if sentences else "no result",
        sentences=sentences,
        overview=overview_table(results),
        cases=[
            _CasePage(f"case-{number}", case, all_plots=all_plots, draws_picture=number == 1)
            for number, case in enumerate(cases, 1)
        ],
        command=reproduce.command(manifest, processors) if manifest else "",
        command_about=COMMAND_ABOUT,
    )


def render(template: str, **values: Any) -> str:
    """Return the page of a template in `page/` with these values, and with the style sheet and accelbench's version."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        loader=jinja2.FunctionLoader(_read_page_file),
    )
    environment.filters["verdict_class"] = _verdict_class
    environment.filters["first_sentence"] = _first_sentence
    environment.globals |= {"certificate": certificate, "details": details, "machine": machine, "view": view}
    page_text: str = environment.get_template(template).render(
        version=accelbench.__version__, css=_read_page_file("report.css"), **values
    )
    return page_text.strip() + "\n"


def _read_page_file(name: str) -> str:
    """Return the text of a template or style sheet in `page/`."""
    return (files("accelbench.report") / "page" / name).read_text(encoding="utf-8")


class _CasePage:
    """Compute what the template shows of one case."""

    def __init__(self, identity: str, case: MeasuredCase, *, all_plots: bool, draws_picture: bool) -> None:
        """Keep the case, but without the times of variants that a failed check makes invalid.

        The ids of HTML elements begin with `identity`, because they must be unique on the page. Without `all_plots`,
        only the speedups are drawn. `draws_picture` asks for the workload's picture, which takes seconds.
        """
        self.id = identity
        self.result = redact_invalid(case.result)
        self.expectations = case.expectations
        self._series = case.series
        self._all_plots = all_plots
        self._draws_picture = draws_picture
        self._is_compile_only = targets.is_compile_only(case.result)

    @property
    def measured_at(self) -> str:
        """Return when the case was measured or compiled, to the minute: `measured 2025-06-01 12:30 UTC`."""
        return f"{'compiled' if self._is_compile_only else 'measured'} {self.result.started[:16].replace('T', ' ')} UTC"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return the findings of the case: how its programs compiled, or how its variants compare."""
        return targets.sentences(self.result) if self._is_compile_only else view.sentences(self.result)

    @property
    def failure_lines(self) -> tuple[str, ...]:
        """Return a line for each failed variant and each failed check.

        For a case that is only compiled there are none, because `sentences` already states what failed.
        """
        return () if self._is_compile_only else certificate.failure_lines(self.result)

    @property
    def table_heading(self) -> str:
        """Return the heading of the case's first table."""
        if self._is_compile_only:
            return "Compiled, not run"
        return "Observations" if self.result.observations else "Verdict"

    @property
    def first_table(self) -> Table | None:
        """Return the case's first table: verdicts, observations, or whether compiled programs fit into memory."""
        if self._is_compile_only:
            return targets.memory([self.result])
        if observation_table := view.observation_table(self.result):
            return observation_table
        return view.verdict_table(self.result).without_empty_columns().with_verdict_first()

    @property
    def footnotes(self) -> str:
        """Return notes below the first table: on rounds, confidence and times, or on how numbers were estimated."""
        if self._is_compile_only:
            texts = targets.footnotes([self.result])
        else:
            texts = (view.measurement_summary(self.result), *view.time_notes(self.result))
        return " ".join(map(_sentence, texts))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return sentences on why variants are faster or slower than the baseline."""
        return explain(self.result)

    @property
    def work(self) -> Table | None:
        """Return a table of what the case costs: floating-point operations and memory."""
        return targets.sizes([self.result]) if self._is_compile_only else details.work(self.result)

    @property
    def programs(self) -> Table | None:
        """Return a table of what the compiled programs contain."""
        return targets.programs([self.result]) if self._is_compile_only else details.programs(self.result)

    @property
    def work_note(self) -> str:
        """Return a note on how work is counted and where the device's limits come from; empty without such limits.

        `numbers.share_of_limit` is a variant's rate as a share of such a limit, and `limits` is the limit's source.
        """
        sources = {variant.limits for variant in self.result.variants if variant.numbers.share_of_limit}
        descriptions = {
            "measured": "the best matrix product and stream triad of any launch of this case",
            "data-sheet": "the device's data sheet",
        }
        origin = " and ".join(descriptions[source] for source in sorted(filter(None, sources)))
        return f"Work is counted from the workload's formulas; limits are {origin}." if origin else ""

    @cached_property
    def forest(self) -> "Plot | None":
        """Draw a forest plot, which shows each speedup with its interval; None if there is no interval."""
        from accelbench.report.plots import forest

        return forest.plot(self.result, f"{self.id}-forest")

    @cached_property
    def _picture(self) -> "Picture | None":
        """Return the workload's picture of what the case computes; None without one or without times.

        Only the first case of a page has it, because it takes seconds.
        """
        from accelbench.report.plots import picture

        has_times = any(variant.seconds for variant in self.result.variants)
        return picture.picture_of(self.result.case) if self._draws_picture and has_times else None

    @cached_property
    def picture(self) -> "Plot | None":
        """Draw the workload's picture of what the case computes; None without one."""
        from accelbench.report.plots import picture

        if self._picture is None or not self._picture.panels:
            return None
        return picture.plot(self._picture, f"{self.id}-picture")

    @property
    def picture_caption(self) -> str:
        """Return the caption of the workload's picture, and where its numbers come from."""
        if self._picture is None:
            return ""
        if not self._picture.panels:
            return self._picture.caption  # the error because of which there is no picture
        origin = "Drawn from the same computation in NumPy, to which the variants' outputs were compared."
        return f"{self._picture.caption} {origin}"

    @property
    def forest_caption(self) -> str:
        """Return the caption of the plot of speedups: confidence of the intervals, and margin of equivalence."""
        measurement, baseline = self.result.case.measurement, self.result.case.baseline
        margin = f"{100 * float(measurement.equivalence_margin):.4g} %"
        confidence = figures.percent(float(measurement.confidence))
        return (
            f"Each line is the interval of a speedup over {baseline}, with {confidence} confidence"
            f" for all together. An interval inside the shaded {margin} on either side of 1x is equivalent."
        )

    @cached_property
    def phases_plot(self) -> "Plot | None":
        """Draw how long each phase of a launch takes; None without phases, or if the page has too many cases."""
        from accelbench.report.plots import phases

        return phases.plot(self.result, f"{self.id}-phases") if self._all_plots else None

    @cached_property
    def payback(self) -> "Plot | None":
        """Draw after how many steps compiling pays back; None without a curve, or if the page has too many cases."""
        from accelbench.report.plots import payback

        return payback.plot(self.result, f"{self.id}-payback") if self._all_plots else None

    @cached_property
    def blocks(self) -> "Plot | None":
        """Draw the time of each block of each launch, or quantiles of these times if the blocks are not available.

        The plot is None without times, or if the page has too many cases.
        """
        from accelbench.report.plots import blocks

        if not self._all_plots:
            return None
        series_by_variant = self._series or launches.series_from_result(self.result)
        timed_variants = [variant.name for variant in view.baseline_first(self.result) if variant.seconds]
        series = {name: series_by_variant[name] for name in timed_variants if name in series_by_variant}
        quarantined = {disturbed.round for disturbed in self.result.quarantined}
        return blocks.plot(series, f"{self.id}-blocks", quarantined=quarantined)

    @property
    def blocks_caption(self) -> str:
        """Return the caption of the plot of blocks: what a dot, a line and a shaded round mean."""
        unit = self.result.unit
        if not self._series:  # only the result is at hand, without the records of its launches
            return (
                f"Seconds per {unit} of each launch, and a line from the 5 % to the 95 % quantile of its blocks."
                " The blocks themselves are in the directory that `accelbench run --out` writes."
            )
        discarded = " Shaded rounds were discarded." if self.result.quarantined else ""
        return (
            f"Each dot is a block, in seconds per {unit}; the line in each round is its launch, and the verdict rests"
            " only on these lines. Nothing is dropped; if a launch has very many blocks, the extremes of each stretch"
            f" are drawn. Axes do not start at zero: each panel spans the range of its variant.{discarded}"
        )

    @property
    def checks_summary(self) -> str:
        """Return a sentence on how many checks passed, and which did not."""
        return _sentence(certificate.summary(self.result))

    @property
    def open_checks(self) -> Table:
        """Return the table of checks that did not pass, failed ones first."""
        checks = [check for check in self.result.certificate.checks if check.outcome != "passed"]
        return _check_table("Checks that failed or are untested", checks)

    @property
    def passed_checks(self) -> Table:
        """Return the table of checks that passed."""
        passed = [check for check in self.result.certificate.checks if check.outcome == "passed"]
        return _check_table(f"Checks that passed, each with its reading: {len(passed)}", passed)

    @property
    def fingerprint(self) -> Table:
        """Return the table of all properties of the machine and its software that the result recorded."""
        columns = (TableColumn("what"), TableColumn("value"))
        return Table("Fingerprint", columns, tuple(sorted(self.result.fingerprint.items())))


def _sentence(text: str) -> str:
    """Return the text as a sentence, with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def _check_table(caption: str, checks: Sequence[Check]) -> Table:
    """Return a table of the checks, failed ones first; variants with the same reading share a row."""
    failed_first = sorted(checks, key=lambda check: check.outcome != "failed")  # False sorts before True
    columns = (
        TableColumn("check"),
        TableColumn("outcome", kind="verdict"),
        TableColumn("variant"),
        TableColumn("reading"),
        TableColumn("held against"),
    )
    # The key is the row without its variant: checks of several variants with the same key become one row.
    variants_by_row: dict[tuple[str, CheckOutcome, str, str], list[str]] = {}
    for check in failed_first:
        row = (check.name, check.outcome, check.reading, check.threshold)
        variants_by_row.setdefault(row, []).append(check.variant or "all")
    rows = tuple(
        (name, outcome, ", ".join(variants), reading, threshold)
        for (name, outcome, reading, threshold), variants in variants_by_row.items()
    )
    return Table(caption, columns, rows)


def overview_sentences(results: Sequence[Result]) -> tuple[str, ...]:
    """Return the sentences at the top of the page.

    For several cases, they count the outcomes of all comparisons, and repeat the sentences of those with the largest
    and with the smallest speedup.
    """
    if not results:
        return ("No case has a result.",)
    if all(map(targets.is_compile_only, results)):
        headlines = [f"{compiled.headline}." for result in results for compiled in result.compiled]
        return tuple(headlines[: view.MAXIMUM_SENTENCES])
    if len(results) == 1:
        return view.sentences(results[0])
    comparisons = [(result, comparison) for result in results for comparison in result.comparisons]
    if not comparisons:
        return (f"{len(results)} cases, and nothing to compare in them.",)
    counts = Counter(_outcome(comparison) for _, comparison in comparisons)
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    sentences = [f"{len(comparisons)} comparisons in {len(results)} cases: {outcomes}."]
    with_verdict = [(result, comparison) for result, comparison in comparisons if comparison.verdict]
    # From slowest to fastest. A comparison with a verdict has a speedup; `or 0` is for the type checker.
    with_verdict.sort(key=lambda pair: float(pair[1].speedup or 0))
    fastest_and_slowest = [with_verdict[-1], with_verdict[0]] if len(with_verdict) > 1 else with_verdict
    sentences += [f"With {case_label(result)}: {comparison.sentence}" for result, comparison in fastest_and_slowest]
    return tuple(sentences)


def overview_table(results: Sequence[Result]) -> Table | None:
    """Return a table with a row for each case and a column for each compared variant; None with fewer than two cases.

    If all cases were only compiled, return the table of the programs' memory.
    """
    if len(results) < 2:  # noqa: PLR2004 - a single case needs no overview
        return None
    if all(map(targets.is_compile_only, results)):
        return targets.memory(results)
    variants = list(dict.fromkeys(comparison.variant for result in results for comparison in result.comparisons))
    rows = []
    for result in results:
        cells = {comparison.variant: _cell(comparison) for comparison in result.comparisons}
        rows.append((case_label(result), *(cells.get(variant, "") for variant in variants)))
    columns = tuple(map(TableColumn, ("case", *variants)))
    return Table("Speedup over the baseline and verdict, case by case", columns, tuple(rows))


def case_label(result: Result) -> str:
    """Label a case with its swept parameters, `size 256, depth 4`, else with all parameters, else with its name."""
    parameters = result.case.swept or result.case.parameters
    return ", ".join(f"{name} {value}" for name, value in parameters.items()) or result.case.name


def _cell(comparison: Comparison) -> str:
    """Return a cell of the overview table: `2.04x faster`, or only the outcome if there is no speedup."""
    speedup = f"{figures.speedup(float(comparison.speedup))} " if comparison.speedup else ""
    return f"{speedup}{_outcome(comparison)}"


def _outcome(comparison: Comparison) -> str:
    """Return the outcome of a comparison: its verdict, `noisy`, `invalid`, or `not compared`."""
    if comparison.noisy:
        return "noisy"
    if comparison.invalid:
        return "invalid"
    return comparison.verdict or "not compared"


def _verdict_class(verdict: str) -> str:
    """Return the CSS classes of a verdict: `baseline, invalid: parity` becomes `baseline invalid`."""
    return verdict.partition(":")[0].strip().replace(", ", " ")


def _first_sentence(text: str) -> tuple[str, str]:
    """Split a text into its first sentence and the rest."""
    # A sentence ends where a capital letter follows its full stop.
    first, *others = re.split(r"(?<=[.!?]) (?=[A-Z])", text, maxsplit=1)
    return first, "".join(others)
