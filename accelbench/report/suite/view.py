"""Turn the results of a suite into rows, counts, means and sentences, which every report paints. Pure.

The suite has no verdict. Its means describe the cases that it lists and no others.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

from accelbench import figures
from accelbench.api.result import Comparison, Result, Verdict
from accelbench.api.run import BenchmarkRun
from accelbench.plan.cases import case_names
from accelbench.report import machine, targets, view
from accelbench.report.html import case_label
from accelbench.report.table import Bounds, Table, TableColumn
from accelbench.stats.leave_one_out import RatioMean, mean_of_ratios
from accelbench.verdict.redaction import redact_invalid

Outcome = Verdict | Literal["noisy", "invalid", "failed", "not compared", "not measured"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
COUNTED: tuple[Outcome, ...] = (
    "faster",
    "equivalent",
    "slower",
    "inconclusive",
    "noisy",
    "invalid",
    "failed",
    "not compared",
    "not measured",
)
"""Outcomes in the order in which they are counted."""
MAXIMUM_NAMED_CASES = 3
"""Maximum number of cases that a reason names."""


@dataclass(frozen=True)
class SuiteRun:
    """Hold a run of a suite with its complete results, by case name."""

    run: BenchmarkRun
    results: Mapping[str, Result] = field(default_factory=dict)
    page: str = ""
    """Address of the run's own report; empty if there is none."""


@dataclass(frozen=True)
class Pair:
    """Name a variant and the baseline that it is compared with."""

    variant: str
    baseline: str

    def __str__(self) -> str:
        """Return `jax/jit over pytorch/eager`."""
        return f"{self.variant} over {self.baseline}"


@dataclass(frozen=True)
class Cell:
    """Hold the outcome of one comparison: a variant of one case with its baseline."""

    case: str
    """Label of the case."""
    pair: Pair
    outcome: Outcome
    text: str
    """The outcome with the reason if there is no verdict, such as `invalid: parity`."""
    margin: float
    """Relative difference that does not matter in this case."""
    bounds: Bounds | None = None
    reason: str = ""
    """Why there is no verdict, in a sentence; empty with a verdict."""

    @property
    def is_decided(self) -> bool:
        """Return True if the verdict is `faster`, `slower` or `equivalent`."""
        return self.outcome in VERDICTS and self.outcome != "inconclusive"

    @property
    def speedup(self) -> str:
        """Return the speedup as text; empty without an interval."""
        return figures.speedup(self.bounds.estimate) if self.bounds else ""

    @property
    def interval(self) -> str:
        """Return the interval as text; empty without one."""
        return figures.interval(self.bounds.lower, self.bounds.upper) if self.bounds else ""


@dataclass(frozen=True)
class CaseRow:
    """Hold one case with the outcomes of its comparisons, or with what was found if nothing is compared in it."""

    label: str
    baseline: str
    cells: tuple[Cell, ...]
    findings: tuple[str, ...] = ()
    page: str = ""


@dataclass(frozen=True)
class PairSummary:
    """Count the outcomes of a pair over the suite's timed cases, with their mean or the reason why there is none."""

    pair: Pair
    counts: Mapping[Outcome, int]
    is_in_every_case: bool
    """True if every case that compares anything compares this pair. Otherwise there is no mean."""
    mean: RatioMean | None
    why_no_mean: str
    """The cases without a valid speedup; empty if there is none."""

    @property
    def mean_text(self) -> str:
        """Return the mean, such as `1.31x of these 6 cases`, or why there is none."""
        if self.mean is None:
            return f"none: {self.why_no_mean}"
        return f"{figures.speedup(self.mean.mean)} of these {self.mean.count} cases"

    @property
    def range_text(self) -> str:
        """Return the smallest and largest mean of all cases but one; empty without a mean."""
        return figures.interval(self.mean.lowest, self.mean.highest) if self.mean else ""


@dataclass(frozen=True)
class Suite:
    """Hold the runs of a suite."""

    name: str
    description: str
    runs: tuple[SuiteRun, ...]

    @cached_property
    def rows(self) -> tuple[CaseRow, ...]:
        """Return a row for each case, in the order of the suite."""
        return tuple(row for suite_run in self.runs for row in _rows(suite_run))

    @property
    def compared_rows(self) -> tuple[CaseRow, ...]:
        """Return the rows of cases whose variants are compared."""
        return tuple(row for row in self.rows if row.cells)

    @property
    def other_rows(self) -> tuple[CaseRow, ...]:
        """Return the rows of cases without a comparison: nothing is timed in them, or a single variant."""
        return tuple(row for row in self.rows if not row.cells)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Return all comparisons, in the order of the suite."""
        return tuple(cell for row in self.rows for cell in row.cells)

    @property
    def sorted_cells(self) -> tuple[Cell, ...]:
        """Return the comparisons that have an interval, from the largest speedup to the smallest."""
        with_interval = [cell for cell in self.cells if cell.bounds]
        # `else 0.0` below is only for the type checker.
        return tuple(sorted(with_interval, key=lambda cell: -cell.bounds.estimate if cell.bounds else 0.0))

    @property
    def cells_without_verdict(self) -> tuple[Cell, ...]:
        """Return the comparisons that have no verdict, in the order of the suite."""
        return tuple(cell for cell in self.cells if cell.outcome not in VERDICTS)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Return every pair that a case compares, in the order of their first cases."""
        return tuple(dict.fromkeys(cell.pair for cell in self.cells))

    @cached_property
    def summaries(self) -> tuple[PairSummary, ...]:
        """Return a summary for each pair that more than one case compares."""
        cells_by_pair = {pair: [cell for cell in self.cells if cell.pair == pair] for pair in self.pairs}
        return tuple(
            _summarize(pair, cells, len(self.compared_rows)) for pair, cells in cells_by_pair.items() if len(cells) > 1
        )

    @property
    def sentence(self) -> str:
        """Count the outcomes of all comparisons: `12 comparisons in 6 cases: 5 faster, 1 inconclusive.`."""
        if not self.cells:
            return f"{figures.count(len(self.rows), 'case')}, and nothing is compared in them."
        counts = Counter(cell.outcome for cell in self.cells)
        outcomes = ", ".join(f"{counts[outcome]} {outcome}" for outcome in COUNTED if counts[outcome])
        comparisons = figures.count(len(self.cells), "comparison")
        return f"{comparisons} in {figures.count(len(self.compared_rows), 'case')}: {outcomes}."

    @property
    def machines(self) -> tuple[str, ...]:
        """Return a line for each machine, with its software, on which the results were measured."""
        results = (result for suite_run in self.runs for result in suite_run.results.values())
        return machine.describe_all(result.fingerprint for result in results)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return sentences on how to read the suite."""
        confidence = (
            "A speedup is baseline seconds / variant seconds. Each interval has the confidence of its own manifest, "
            "whose comparisons share its error; nothing corrects for the number of manifests."
        )
        notes = [confidence]
        if any(summary.mean for summary in self.summaries):
            notes.append(
                "A geometric mean describes the cases listed here, which somebody chose, and no other programs. It is "
                "no verdict. Its range shows the means with one case left out."
            )
        if not all(summary.is_in_every_case for summary in self.summaries):
            notes.append("A pair that some cases do not compare has no geometric mean.")
        single_pairs = len(self.pairs) - len(self.summaries)
        if single_pairs and self.summaries:
            notes.append(f"{figures.count(single_pairs, 'pair')} compared in a single case have no row in the counts.")
        if len(self.machines) > 1:
            notes.append("The results are of more than one machine or software: do not compare times across cases.")
        return tuple(notes)


def count_table(suite: Suite) -> Table | None:
    """Return the table that counts the outcomes of each pair; None if no pair has two cases."""
    if not suite.summaries:
        return None
    headings = ("faster", "equivalent", "slower", "inconclusive", "no verdict")
    columns = (TableColumn("variant over baseline"), *(TableColumn(heading, number=True) for heading in headings))
    rows = []
    for summary in suite.summaries:
        # In the order of the headings, which is that of `COUNTED`.
        verdict_counts = [summary.counts.get(outcome, 0) for outcome in COUNTED if outcome in VERDICTS]
        without_verdict = sum(summary.counts.values()) - sum(verdict_counts)
        rows.append((str(summary.pair), *map(str, verdict_counts), str(without_verdict)))
    return Table("Verdicts in all cases", columns, tuple(rows))


def mean_table(suite: Suite) -> Table | None:
    """Return a table with the geometric mean of each pair that every case compares; None if there is no such pair.

    If a pair has no mean, its cell has the reason.
    """
    summaries = [summary for summary in suite.summaries if summary.is_in_every_case]
    if not summaries:
        return None
    columns = (
        TableColumn("variant over baseline"),
        TableColumn("geometric mean"),
        TableColumn("with any one case left out", kind="nowrap"),
    )
    rows = tuple((str(summary.pair), summary.mean_text, summary.range_text) for summary in summaries)
    return Table("Geometric mean of the speedups", columns, rows).without_empty_columns()


def comparison_table(suite: Suite) -> Table | None:
    """Return the table of all comparisons, sorted by speedup, then those without an interval; None without any."""
    if not suite.cells:
        return None
    cells = (*suite.sorted_cells, *(cell for cell in suite.cells if not cell.bounds))
    columns = (
        TableColumn("case"),
        TableColumn("variant over baseline"),
        TableColumn("speedup", number=True),
        TableColumn("interval", kind="nowrap"),
        TableColumn("verdict", kind="verdict"),
    )
    rows = tuple((cell.case, str(cell.pair), cell.speedup, cell.interval, cell.text) for cell in cells)
    intervals = tuple(cell.bounds for cell in cells)
    return Table("Speedups, largest first", columns, rows, intervals=intervals).without_empty_columns()


def reason_table(suite: Suite) -> Table | None:
    """Return the table of reasons of all comparisons without a verdict; None without any."""
    rows = tuple(
        (cell.case, str(cell.pair), cell.text, cell.reason) for cell in suite.cells_without_verdict if cell.reason
    )
    if not rows:
        return None
    columns = tuple(map(TableColumn, ("case", "variant over baseline", "outcome", "reason")))
    return Table("Comparisons without a verdict", columns, rows)


def finding_table(suite: Suite) -> Table | None:
    """Return the table of cases without a comparison; None if each case has one."""
    rows = tuple((row.label, " ".join(row.findings)) for row in suite.other_rows)
    if not rows:
        return None
    return Table("Cases without a comparison", (TableColumn("case"), TableColumn("found")), rows)


def labelled_results(suite: Suite) -> Iterator[tuple[str, Result]]:
    """Yield each result of the suite with the label of its case, in the order of the suite."""
    for suite_run in suite.runs:
        for name in case_names(suite_run.run):
            if name in suite_run.results:
                yield _label(suite_run, name), suite_run.results[name]


def _label(suite_run: SuiteRun, case: str) -> str:
    """Return the label of a case: the name of its run and, in a sweep, what distinguishes the case."""
    name = suite_run.run.metadata.name
    if len(case_names(suite_run.run)) == 1:
        return name
    result = suite_run.results.get(case)
    return f"{name} ({case_label(result) if result else case})"


def _rows(suite_run: SuiteRun) -> Iterator[CaseRow]:
    """Yield a row for each case of a run."""
    run = suite_run.run
    for name in case_names(run):
        result = suite_run.results.get(name)
        label = _label(suite_run, name)
        cells = tuple(_missing_cells(run, label) if result is None else _cells(result, label))
        findings = () if cells else _findings(result)
        yield CaseRow(label, run.baseline, cells, findings, suite_run.page)


def _is_untimed(result: Result) -> bool:
    """Return True if the case only observes or compiles, so that it has nothing to compare."""
    return bool(result.observations) or result.protocol in {"observe", "compile"}


def _findings(result: Result | None) -> tuple[str, ...]:
    """Return sentences on a case without a comparison: what was observed or compiled, or that it was not measured."""
    if result is None:
        return ("not measured",)
    return targets.sentences(result) if targets.is_compile_only(result) else view.sentences(result)


def _missing_cells(run: BenchmarkRun, label: str) -> Iterator[Cell]:
    """Yield the cells of a case that has no complete result, one for each comparison."""
    margin = float(run.spec.measurement.equivalence_margin.removesuffix("%")) / 100  # a manifest has a percentage
    for variant in run.spec.variants:
        if variant.label != run.baseline:
            pair = Pair(variant.label, run.baseline)
            yield Cell(case=label, pair=pair, outcome="not measured", text="not measured", margin=margin)


def _cells(result: Result, label: str) -> Iterator[Cell]:
    """Yield a cell for each variant of a case except its baseline; none if the case only observes or compiles."""
    if _is_untimed(result):
        return
    result = redact_invalid(result)
    margin = float(result.case.measurement.equivalence_margin)
    baseline = result.case.baseline
    for row in view.variant_rows(result):
        if row.name == baseline:
            continue
        outcome = _outcome(row.verdict)
        yield Cell(
            case=label,
            pair=Pair(row.name, baseline),
            outcome=outcome,
            text=row.verdict or outcome,  # a variant without a comparison has an empty verdict
            margin=margin,
            bounds=row.bounds,
            reason="" if outcome in VERDICTS else _reason(result, row.name, row.comparison),
        )


def _outcome(verdict: str) -> Outcome:
    """Return the outcome that the text of a verdict stands for: `invalid: parity` is `invalid`.

    A text that only says why there is no interval, such as `too few rounds`, stands for `not compared`.
    """
    word = verdict.partition(":")[0]
    return next((outcome for outcome in COUNTED if outcome == word), "not compared")


def _reason(result: Result, name: str, comparison: Comparison | None) -> str:
    """Return a sentence on why the variant has no verdict; empty if the result does not state it."""
    failure = next((variant.failure for variant in result.variants if variant.name == name), None)
    if failure is not None:
        return failure.message
    return comparison.sentence if comparison else ""


def _summarize(pair: Pair, cells: Sequence[Cell], case_count: int) -> PairSummary:
    """Summarize a pair's comparisons, of which there is at most one in each of the suite's `case_count` cases.

    Inconclusive comparisons have valid speedups with intervals, so they count in the mean. Without them, the mean would
    be that of the cases with large differences.
    """
    excluded = [cell for cell in cells if cell.outcome not in VERDICTS]
    is_in_every_case = len(cells) == case_count
    mean = None
    if is_in_every_case and not excluded:
        mean = mean_of_ratios([cell.bounds.estimate for cell in cells if cell.bounds])
    counts = Counter(cell.outcome for cell in cells)
    return PairSummary(pair, counts, is_in_every_case, mean, _name_cases(excluded))


def _name_cases(cells: Sequence[Cell]) -> str:
    """Return the first cases of these comparisons with their outcomes, and how many more there are."""
    names = [f"{cell.case} ({cell.text})" for cell in cells[:MAXIMUM_NAMED_CASES]]
    others = len(cells) - len(names)
    return ", ".join(names) + (f" and {others} more" if others else "")
