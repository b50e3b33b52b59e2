"""A run as one HTML page that opens with no network: findings, tables, plots, certificate, fingerprint, command. Pure.

Needs Jinja2 and matplotlib, the extra `report`; `missing()` says so before anything is lost.
"""

import importlib.util
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import accelbench
from accelbench import figures
from accelbench.api.result import Check, CheckOutcome, Result
from accelbench.document import on_one_line
from accelbench.report import certificate, details, launches, machine, overview, reproduce, targets, view
from accelbench.report.launches import LaunchSeries
from accelbench.report.table import Table, TableColumn
from accelbench.verdict.expectations import ExpectationOutcome
from accelbench.verdict.redaction import redact_invalid

if TYPE_CHECKING:
    from accelbench.report.plots.canvas import Plot

NEEDS = ("jinja2", "matplotlib")
COMMAND_ABOUT = "Paste this into a shell where accelbench is installed; or save the manifest and apply it with kubectl."
DRAWN_CASES = 24
"""Of a run with more cases, only speedups are drawn: the page has to open on a phone."""


@dataclass(frozen=True)
class MeasuredCase:
    """What there is to show of one case; without `series`, its blocks are drawn from the result's summaries."""

    result: Result
    expectations: Sequence[ExpectationOutcome] = ()
    series: Mapping[str, Sequence[LaunchSeries]] = field(default_factory=dict)


def missing() -> str | None:
    """What to install before a page can be written; None where all is there. Nothing is imported."""
    absent = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if not absent:
        return None
    return f"an HTML report needs {' and '.join(absent)}: pip install 'accelbench[report]'"


def report(name: str, cases: Sequence[MeasuredCase], *, manifest: Mapping[str, Any] | None = None) -> str:
    """Return the whole page.

    Args:
        name: Heading of the page, usually the run's name.
        cases: The cases to show, in order.
        manifest: The run's manifest, for the command that measures it again. Without one, a single case has the
            manifest that its result implies, and several cases have no command.
    """
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters["verdict_class"] = _verdict_class
    environment.filters["first_sentence"] = _first_sentence
    environment.globals |= {"certificate": certificate, "details": details, "machine": machine, "view": view}
    page = files("accelbench.report") / "page"
    template = environment.from_string((page / "report.html.j2").read_text(encoding="utf-8"))
    if manifest is None and len(cases) == 1:
        manifest = reproduce.of_case(cases[0].result.case)
    results = [case.result for case in cases]
    processors = reproduce.processors_asked_for(results[0]) if results else None
    sentences = overview.sentences(results)
    drawn_whole = len(cases) <= DRAWN_CASES
    page_text: str = template.render(
        name=on_one_line(name),
        title=sentences[0] if sentences else "no result",
        version=accelbench.__version__,
        css=(page / "report.css").read_text(encoding="utf-8"),
        sentences=sentences,
        overview=_overview(results),
        cases=[CasePage(f"case-{number}", case, drawn_whole=drawn_whole) for number, case in enumerate(cases, 1)],
        command=reproduce.command(manifest, processors) if manifest else "",
        command_about=COMMAND_ABOUT,
    )
    return page_text.strip() + "\n"


class CasePage:
    """Hold what the template shows of one case and no module computes on its own."""

    def __init__(self, identity: str, case: MeasuredCase, *, drawn_whole: bool) -> None:
        """`identity` prefixes the ids of this case on the page; without `drawn_whole` only speedups are drawn."""
        self.id = identity
        self.result = redact_invalid(case.result)
        self.expectations = case.expectations
        self._series = case.series
        self._drawn_whole = drawn_whole
        self._compiled = targets.is_compiled(case.result)

    @property
    def when(self) -> str:
        """When it was measured or compiled."""
        return f"{'compiled' if self._compiled else 'measured'} {self.result.started[:16].replace('T', ' ')} UTC"

    @property
    def sentences(self) -> tuple[str, ...]:
        """The findings."""
        return targets.sentences(self.result) if self._compiled else view.sentences(self.result)

    @property
    def trouble(self) -> tuple[str, ...]:
        """Failures and failed checks; the sentences of a compiled case already contain its failures."""
        return () if self._compiled else certificate.trouble(self.result)

    @property
    def finding(self) -> str:
        """Heading of the table of verdicts."""
        if self._compiled:
            return "Compiled, not run"
        return "Observations" if self.result.observations else "Verdict"

    @property
    def verdicts(self) -> Table | None:
        """The table below that heading."""
        if self._compiled:
            return targets.memory([self.result])
        if observed := view.observation_table(self.result):
            return observed
        return view.verdict_table(self.result).without_empty_columns().with_verdict_first()

    @property
    def basis(self) -> str:
        """Sentences about rounds, confidence and the meaning of the times."""
        lines = targets.footnotes([self.result]) if self._compiled else (view.basis(self.result),)
        return " ".join(map(_sentence, (*lines, *(() if self._compiled else view.time_is(self.result)))))

    @property
    def work(self) -> Table | None:
        """Work, memory and energy, or the memory that a compiled program is planned to take."""
        return targets.sizes([self.result]) if self._compiled else details.work(self.result)

    @property
    def programs(self) -> Table | None:
        """Numbers of the compiled programs."""
        return targets.programs([self.result]) if self._compiled else details.programs(self.result)

    @property
    def work_about(self) -> str:
        """Where limits and bytes come from; empty if no share of a limit is shown."""
        return _work_about(self.result)

    @cached_property
    def forest(self) -> "Plot | None":
        """The plot of speedups."""
        from accelbench.report.plots import forest

        return forest.plot(self.result, f"{self.id}-forest")

    @property
    def forest_caption(self) -> str:
        """Caption of the plot of speedups."""
        measurement, baseline = self.result.case.measurement, self.result.case.baseline
        margin = f"{100 * float(measurement.equivalence_margin):.4g} %"
        confidence = figures.percent(float(measurement.confidence))
        return (
            f"Each line is the interval of a speedup over {baseline}, with {confidence} confidence"
            f" for all together. An interval inside the shaded {margin} on either side of 1x is equivalent."
        )

    @cached_property
    def phases_plot(self) -> "Plot | None":
        """The plot of phases."""
        from accelbench.report.plots import phases

        return phases.plot(self.result, f"{self.id}-phases") if self._drawn_whole else None

    @cached_property
    def amortisation(self) -> "Plot | None":
        """The plot of when compiling pays back."""
        from accelbench.report.plots import amortisation

        return amortisation.plot(self.result, f"{self.id}-amortisation") if self._drawn_whole else None

    @cached_property
    def blocks(self) -> "Plot | None":
        """The plot of all blocks, or of the launches' summaries if the blocks are not at hand."""
        from accelbench.report.plots import blocks

        if not self._drawn_whole:
            return None
        known = self._series or launches.of_result(self.result)
        timed = [variant.name for variant in view.ordered(self.result) if variant.seconds]
        series = {name: known[name] for name in timed if name in known}
        quarantined = {disturbed.round for disturbed in self.result.quarantined}
        return blocks.plot(series, f"{self.id}-blocks", quarantined=quarantined)

    @property
    def blocks_caption(self) -> str:
        """Caption of the plot of blocks."""
        return _blocks_caption(self.result, whole=bool(self._series))

    @property
    def checks_summary(self) -> str:
        """How many checks passed."""
        return _sentence(certificate.summary(self.result))

    @property
    def open_checks(self) -> Table:
        """Checks that did not pass, with their readings."""
        checks = [check for check in self.result.certificate.checks if check.outcome != "passed"]
        return _checks("Checks that failed or are untested", checks)

    @property
    def passed_checks(self) -> Table:
        """Checks that passed, with their readings."""
        passed = [check for check in self.result.certificate.checks if check.outcome == "passed"]
        return _checks(f"Checks that passed, each with its reading: {len(passed)}", passed)

    @property
    def fingerprint(self) -> Table:
        """The fingerprint, entry by entry."""
        columns = (TableColumn("what"), TableColumn("value"))
        return Table("Fingerprint", columns, tuple(sorted(self.result.fingerprint.items())))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _work_about(result: Result) -> str:
    """Where limits and bytes come from; empty where no share is shown."""
    sources = {variant.limits for variant in result.variants if variant.numbers.share_of_limit}
    limits = {
        "measured": "the best matrix product and stream triad of any launch of this case",
        "data-sheet": "the device's data sheet",
    }
    said = " and ".join(limits[source] for source in sorted(filter(None, sources)))
    return f"Work is counted from the workload's formulas; limits are {said}." if said else ""


def _checks(caption: str, checks: Sequence[Check]) -> Table:
    ordered = sorted(checks, key=lambda check: check.outcome != "failed")
    columns = (
        TableColumn("check"),
        TableColumn("outcome", kind="verdict"),
        TableColumn("variant"),
        TableColumn("reading"),
        TableColumn("held against"),
    )
    # What a check read alike of several variants is one row.
    alike: dict[tuple[str, CheckOutcome, str, str], list[str]] = {}
    for check in ordered:
        key = (check.name, check.outcome, check.reading, check.threshold)
        alike.setdefault(key, []).append(check.variant or "all")
    rows = tuple(
        (name, outcome, ", ".join(variants), reading, threshold)
        for (name, outcome, reading, threshold), variants in alike.items()
    )
    return Table(caption, columns, rows)


def _overview(results: Sequence[Result]) -> Table | None:
    if len(results) > 1 and all(map(targets.is_compiled, results)):
        return targets.memory(results)
    table = overview.table(results)
    if table is None:
        return None
    header, rows = table
    return Table("Speedup over the baseline and verdict, case by case", tuple(map(TableColumn, header)), rows)


def _blocks_caption(result: Result, *, whole: bool) -> str:
    if whole:
        said = (
            f"Each dot is a block, in seconds per {result.unit}; the line in each round is its launch, and the"
            " verdict rests only on these lines. Nothing is dropped; if a launch has very many blocks, the extremes of"
            " each stretch are drawn. Axes do not start at zero: each panel spans the range of its variant."
        )
        return f"{said} Shaded rounds were discarded." if result.quarantined else said
    return (
        f"Seconds per {result.unit} of each launch, and a line from the 5 % to the 95 % quantile of its blocks."
        " The blocks themselves are in the directory that `accelbench run --out` writes."
    )


def _verdict_class(verdict: str) -> str:
    return verdict.partition(":")[0].strip().replace(", ", " ")


def _first_sentence(text: str) -> tuple[str, str]:
    """The verdict, which is shown large, and what is said beside it."""
    first, *rest = re.split(r"(?<=[.!?]) (?=[A-Z])", text, maxsplit=1)
    return first, "".join(rest)
