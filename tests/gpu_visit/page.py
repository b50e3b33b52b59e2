"""Write the page of what visits measured, `docs/results/gpu/measured.md`, from the imported results.

`make generate` calls it; with `--check`, as `make drift` does, it only compares.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from accelbench import figures
from accelbench.api.result import Result, VariantResult
from accelbench.local.directory import RESULT_SUFFIX, load_result, write_atomically
from accelbench.report import details
from accelbench.report.markdown import escape, markdown_table
from accelbench.verdict.redaction import redact_invalid, rejections
from gpu_visit import attempts
from gpu_visit.attempts import VisitAttempt

RESULTS = Path(__file__).parents[2] / "docs" / "results"
PAGE = "measured.md"
INTRODUCTION = """\
# What visits to GPUs measured

[Visits](README.md) wrote this page: `make gpu-visit-import`. A step's time is the geometric mean over launches, each a
process of its own that compiles anew; the range is that of the launches. A first call includes compiling: `cold` with
empty compile caches, `warm` with those that an earlier process filled, as they are on a user's second start. Variants
of a table were measured one after the other and not in the same rounds, so the table gives times and no verdicts."""
RUN_COLUMNS = ("variant", "time", "lowest to highest", "launches", "first call, cold", "warm", "peak memory", "remark")


def render(results: Path = RESULTS) -> str:
    """Return the page's Markdown."""
    paragraphs = [INTRODUCTION]
    for device in sorted((results / "gpu").glob("*/")):
        paragraphs += _device_section(device)
    return "\n\n".join(paragraphs) + "\n"


def write(results: Path = RESULTS) -> None:
    """Write the page next to the results."""
    (results / "gpu").mkdir(parents=True, exist_ok=True)
    write_atomically(results / "gpu" / PAGE, render(results))


def _device_section(device: Path) -> Iterator[str]:
    """Yield the paragraphs about one model of device."""
    history = attempts.read(device / "attempts.jsonl")
    checks = json.loads(path.read_text()) if (path := device / "checks.json").exists() else None
    name = history[-1].setting.device if history else checks["device"] if checks else device.name
    yield f"## {escape(name)}"
    folders = groupby(
        sorted(device.glob(f"*/*/**/*{RESULT_SUFFIX}")), key=lambda path: path.relative_to(device).parts[:2]
    )
    for (folder, model), paths in folders:
        if folder != "claims":
            yield from _model_section(model, [load_result(path) for path in paths])
    for program in sorted(device.glob("*.json")):
        if program.name != "checks.json":
            yield from program_section(json.loads(program.read_text()))
    if checks:
        yield from _checks_section(checks)
    if history:
        yield from _history_section(history)


def _model_section(name: str, results: Sequence[Result]) -> Iterator[str]:
    """Yield the table of one model: a row for each variant, the first in the workload's order first."""
    yield f"### {escape(name)}"
    yield escape("; ".join(sorted({_setting_of(result) for result in results})))
    rows = [_variant_row(result, variant) for result in results for variant in result.variants]
    yield markdown_table(RUN_COLUMNS, rows, right={1, 2, 3, 4, 5, 6})


def _setting_of(result: Result) -> str:
    """Return what a result was measured with: the workload, the format and the frameworks."""
    versions = {"JAX": "version.jax", "PyTorch": "version.torch"}
    installed = [f"{name} {result.fingerprint[key]}" for name, key in versions.items() if key in result.fingerprint]
    return ", ".join([result.case.workload, result.case.measurement.precision, *installed])


def _variant_row(result: Result, measured: VariantResult) -> tuple[str, ...]:
    """Return the cells of a variant; its times are left out if a check rejects them."""
    rejected = rejections(result, measured)
    [variant] = [each for each in redact_invalid(result).variants if each.name == measured.name]
    remarks = [variant.failure.message] if variant.failure else [f"invalid: {', '.join(rejected)}"] if rejected else []
    if result.noisy:
        remarks.append("noisy")
    launches = [float(launch.seconds) for launch in variant.launches]
    time, span = "", ""
    if variant.seconds:
        time = figures.seconds(float(variant.seconds.geometric_mean_seconds))
        span = f"{figures.seconds(min(launches))} to {figures.seconds(max(launches))}" if len(launches) > 1 else ""
    return (
        variant.name,
        time,
        span,
        str(len(launches)),
        details.first_call_time(variant.phases),
        details.first_call_time(variant.warm_phases),
        details.number_text(variant.numbers, "peak_memory_bytes"),
        "; ".join(remarks),
    )


def program_section(document: dict[str, Any]) -> Iterator[str]:
    """Yield what a program printed: a title, a table, and what follows from it."""
    printed, setting = document["printed"], document["setting"]
    yield f"### {escape(printed['title'])}"
    yield escape(f"JAX {setting['jax']}, driver {setting['driver']}. {printed['summary']}")
    rows = [[str(cell) for cell in row] for row in printed["rows"]]
    yield markdown_table(printed["columns"], rows, right=set(range(1, len(printed["columns"]))))


def _checks_section(document: dict[str, Any]) -> Iterator[str]:
    """Yield how many variants were checked, and which failed a check."""
    checked: dict[str, Any] = document["checked"]
    failed = {
        name: [check for check, outcome in found["checks"].items() if outcome == "failed"]
        for name, found in checked.items()
    }
    wrong = {name: names for name, names in failed.items() if names}
    yield "### Checks of variants"
    summary = f"{len(checked)} variants were checked with JAX {document['jax']} and PyTorch {document['torch']}"
    yield f"{summary}; {len(wrong)} failed a check." if wrong else f"{summary}; none failed a check."
    if wrong:
        yield markdown_table(("variant", "failed"), [(name, ", ".join(names)) for name, names in wrong.items()], set())


def _history_section(history: Sequence[VisitAttempt]) -> Iterator[str]:
    """Yield a table of the visits: how many attempts ended how."""
    yield "### Visits"
    rows = []
    for visit, grouped in groupby(history, key=lambda attempt: attempt.visit):
        made = list(grouped)
        outcomes = Counter(attempt.outcome for attempt in made)
        text = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
        rows.append((visit, str(len(made)), text, made[0].setting.driver))
    yield markdown_table(("began", "attempts", "ended", "driver"), rows, right={1})


def main() -> int:
    """Write the page, or compare it with `--check`; return the exit status."""
    path = RESULTS / "gpu" / PAGE
    if "--check" not in sys.argv[1:]:
        write()
        return 0
    if path.read_text() == render():
        return 0
    print(f"{path} is not what the results say: make generate", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
