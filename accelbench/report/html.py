"""A run as one HTML page that opens with no network: findings, tables, plots, certificate, fingerprint, command. Pure.

Needs Jinja2 and matplotlib, the extra `report`; `missing()` says so before anything is lost.
"""

import importlib.util
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import accelbench
from accelbench import figures
from accelbench.api.result import Check, CheckOutcome, Result
from accelbench.document import on_one_line
from accelbench.report import certificate, details, launches, machine, overview, reproduce, targets, view
from accelbench.report.launches import LaunchSeries
from accelbench.report.table import Table, TableColumn, filled
from accelbench.verdict.expectations import ExpectationOutcome
from accelbench.verdict.redaction import redact_invalid

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
    """The whole page; `manifest` is that of the run, where it is known, else each case says for itself."""
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters["verdict_class"] = _verdict_class
    environment.filters["first_sentence"] = _first_sentence
    page = files("accelbench.report") / "page"
    template = environment.from_string((page / "report.html.j2").read_text(encoding="utf-8"))
    if manifest is None and len(cases) == 1:
        manifest = reproduce.of_case(cases[0].result.case)
    results = [case.result for case in cases]
    processors = reproduce.processors_asked_for(results[0]) if results else None
    sentences = overview.sentences(results)
    page_text: str = template.render(
        name=on_one_line(name),
        title=sentences[0] if sentences else "no result",
        version=accelbench.__version__,
        css=(page / "report.css").read_text(encoding="utf-8"),
        sentences=sentences,
        overview=_overview(results),
        cases=[_case(f"case-{number}", case, whole=len(cases) <= DRAWN_CASES) for number, case in enumerate(cases, 1)],
        command=reproduce.command(manifest, processors) if manifest else "",
        command_about=COMMAND_ABOUT,
    )
    return page_text.strip() + "\n"


def _case(identity: str, case: MeasuredCase, *, whole: bool) -> dict[str, Any]:
    from accelbench.report.plots import amortisation, blocks, forest, phases

    result = redact_invalid(case.result)
    taken = case.series or launches.of_result(result)
    timed = [variant.name for variant in view.ordered(result) if variant.seconds]
    series = {name: taken[name] for name in timed if name in taken}
    margin = f"{100 * float(result.case.measurement.equivalence_margin):.4g} %"
    confidence = figures.percent(float(result.case.measurement.confidence))
    checks = result.certificate.checks
    compiled = targets.is_compiled(result)
    baseline = result.case.baseline
    return {
        "id": identity,
        "title": view.title(result.case),
        "when": f"{'compiled' if compiled else 'measured'} {result.started[:16].replace('T', ' ')} UTC",
        "unit": result.unit,
        "partial": view.state(result),
        "sentences": targets.sentences(result) if compiled else view.sentences(result),
        "trouble": () if compiled else certificate.trouble(result),  # what was not compiled, the sentences say
        "remarks": view.remarks(result),
        "measured": not view.nothing_measured(result),
        "finding": _finding(result),
        "verdicts": targets.memory([result]) if compiled else _observations(result) or _verdicts(result),
        "basis": [
            f"{line[:1].upper()}{line[1:]}."
            for line in (targets.footnotes([result]) if compiled else (view.basis(result), *view.time_is(result)))
        ],
        "expectations": case.expectations,
        "forest": forest.plot(result, f"{identity}-forest"),
        "forest_caption": f"Each line is the interval of a speedup over {baseline}, with {confidence} confidence"
        f" for all together. An interval inside the shaded {margin} on either side of 1x is equivalent.",
        "phases": _phases(result),
        "tail": details.tail(result),
        "first_calls": details.first_calls(result),
        "work": targets.sizes([result]) if compiled else details.work(result),
        "work_about": _work_about(result),
        "programs": targets.programs([result]) if compiled else details.programs(result),
        "spread": details.spread(result),
        "phases_plot": phases.plot(result, f"{identity}-phases") if whole else None,
        "amortisation": amortisation.plot(result, f"{identity}-amortisation") if whole else None,
        "blocks": blocks.plot(series, f"{identity}-blocks", quarantined={each.round for each in result.quarantined})
        if whole
        else None,
        "blocks_caption": _blocks_caption(result, whole=bool(case.series)),
        "checks_summary": f"{certificate.summary(result)[:1].upper()}{certificate.summary(result)[1:]}.",
        "checks_outcome": certificate.worst_outcome(result),
        "open_checks": _checks(
            "Checks that failed or are untested", [check for check in checks if check.outcome != "passed"]
        ),
        "passed_checks": _passed(checks),
        "notes": result.notes,
        "machine": machine.line(result.fingerprint),
        "fingerprint": Table(
            "Fingerprint", (TableColumn("what"), TableColumn("value")), tuple(sorted(result.fingerprint.items()))
        ),
    }


def _finding(result: Result) -> str:
    if targets.is_compiled(result):
        return "Compiled, not run"
    return "Observations" if result.observations else "Verdict"


def _observations(result: Result) -> Table | None:
    rows = tuple((row.variant, row.name, row.value) for row in view.observation_rows(result))
    return filled(
        "What each variant did", (TableColumn("variant"), TableColumn("observed"), TableColumn("value")), rows
    )


def _verdicts(result: Result) -> Table:
    columns = (
        TableColumn("variant"),
        TableColumn("verdict", kind="verdict"),  # first, so that a phone shows it without scrolling
        TableColumn("speedup", number=True),
        TableColumn("interval", kind="nowrap"),
        TableColumn(f"time per {result.unit}", number=True),
        TableColumn("spread", number=True),
    )
    rows = [
        (row.name, row.verdict, row.speedup, row.interval, row.seconds, row.spread) for row in view.variant_rows(result)
    ]
    # Without a variant that stands there is still something to say: the name of each.
    return filled(f"Variants against {result.case.baseline}", columns, rows) or Table(
        "Variants", (TableColumn("variant"),), tuple((row[0],) for row in rows)
    )


def _phases(result: Result) -> Table | None:
    shown = view.phases_shown(result)
    if not shown:
        return None
    rows = tuple((row.name, *row.seconds) for row in view.phase_rows(result))
    return Table(
        "Phases of a launch", (TableColumn("variant"), *(TableColumn(phase, number=True) for phase in shown)), rows
    )


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


def _passed(checks: Sequence[Check]) -> Table:
    passed = [check for check in checks if check.outcome == "passed"]
    return _checks(f"Checks that passed, each with its reading: {len(passed)}", passed)


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
