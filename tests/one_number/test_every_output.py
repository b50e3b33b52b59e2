"""One number for one thing: what any output shows of a result is what every other shows, to the digits shown."""

import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from accelbench.api.result import Result, SpeedupEstimate
from accelbench.delivery.log import RoundFinished
from accelbench.history.runs import compare
from accelbench.history.sample import Side
from accelbench.launch.record import LaunchRecord, ParityReading, PhaseRecord
from accelbench.report import comparison, html, markdown, terminal, tidy
from accelbench.report.live import Lines
from accelbench.report.plots import payback
from accelbench.terminal.comparison import format_json
from accelbench.terminal.results import json_report
from accelbench_runner.judge.assessment import judge
from accelbench_runner.judge_protocol import JudgeRequest
from accelbench_runner.supervisor.assemble import CaseTiming, assemble
from accelbench_runner.supervisor.experiment import times_so_far
from judge.launches import BASELINE, OTHER, VARIANT, a_case, rounds_of
from metrics.documents import snapshot
from metrics.serving import text_of

SCALES = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
TIME = re.compile(r"^([0-9.,]+) (s|ms|µs|ns)$")
RATIO = re.compile(r"^([0-9.,]+)x$")
WRONG = ParityReading(units=1, finite=True, worst_ratio=9e5, worst_array="x", detail="x[0] is off by 0.1 after 1 step")
TIMING = CaseTiming(started="2026-01-01T00:00:00Z", finished="2026-01-01T00:01:00Z", total_seconds=60, judge_seconds=4)

PHASES = (Phase.explicit, Phase.generate)
"""To shrink an example takes minutes, as each asks the judge."""
seconds = st.floats(1e-4, 1e-1)
rounds = st.lists(st.tuples(seconds, seconds, seconds), min_size=2, max_size=7)


def measured(times: Sequence[Sequence[float]], wrong: str = "") -> Result:
    """What the judge and the assembly make of launches that took `times`, a row a round."""
    case = a_case(BASELINE, VARIANT, OTHER, comparisons=2)
    by_variant = dict(zip((BASELINE, VARIANT, OTHER), zip(*times, strict=True), strict=True))
    launches = tuple(_with_phases(launch, wrong) for launch in rounds_of(by_variant))
    assessment = judge(JudgeRequest(case=case, launches=launches, directory="/nowhere"))
    return assemble(case, launches, assessment, TIMING)


def _with_phases(launch: LaunchRecord, wrong: str) -> LaunchRecord:
    compiling = PhaseRecord(phase="compile", seconds=0.0 if launch.variant == BASELINE else 0.7)
    first = PhaseRecord(phase="first-step", seconds=0.3)
    parity = WRONG if launch.variant == wrong else launch.parity
    return launch.model_copy(update={"phases": (compiling, first), "parity": parity})


class Shown:
    """The texts of a variant's row in one output."""

    def __init__(self, cells: Sequence[str]) -> None:
        self.time = next((cell for cell in cells if TIME.match(cell)), "")
        self.speedup = next((cell for cell in cells if RATIO.match(cell)), "")

    @property
    def seconds(self) -> float:
        number, unit = self.time.split()
        return float(number.replace(",", "")) * SCALES[unit]

    def last_digit(self) -> float:
        """What one more in its last digit is, in seconds."""
        number, unit = self.time.split()
        return 10.0 ** -len(number.partition(".")[2]) * SCALES[unit]


def in_the_terminal(result: Result) -> Mapping[str, Shown]:
    out = io.StringIO()
    Console(file=out, width=140).print(terminal.report(result))
    table = out.getvalue().partition("speedup  ")[2]
    rows = [re.split(r" {2,}", line) for line in table.splitlines()]
    return _first_rows(rows)


def in_markdown(result: Result) -> Mapping[str, Shown]:
    lines = markdown.report("run", [(result, ())]).splitlines()
    return _first_rows([[cell.strip() for cell in line.strip("| ").split("|")] for line in lines])


def while_it_ran(result: Result) -> Mapping[str, Shown]:
    now = tuple(
        SpeedupEstimate(
            variant=each.variant, verdict=each.verdict, invalid=each.invalid,
            speedup=each.speedup, lower=each.lower, upper=each.upper,
        )
        for each in result.comparisons
    )  # fmt: skip
    out = io.StringIO()
    Lines(Console(file=out)).event(RoundFinished(round=1, times=times_so_far(result), comparisons=now))
    rows = [re.split(r": |, | \(", line)[1:] for line in out.getvalue().splitlines()]
    return _first_rows(rows)


def in_html(result: Result) -> Mapping[str, Shown]:
    class Rows(HTMLParser):
        rows: list[list[str]] = []

        def handle_starttag(self, tag: str, _attrs: object) -> None:
            if tag == "tr":
                self.rows.append([])
            elif tag in {"td", "th"} and self.rows:
                self.rows[-1].append("")

        def handle_data(self, data: str) -> None:
            if self.rows and self.rows[-1]:
                self.rows[-1][-1] += data.strip()

    parser = Rows()
    parser.rows = []
    parser.feed(html.report("run", [html.MeasuredCase(result)]))
    return _first_rows(parser.rows)


def in_csv(result: Result) -> dict[str, dict[str, str]]:
    return {row["variant"]: row for row in csv.DictReader(io.StringIO(tidy.report([result])))}


def _first_rows(rows: Sequence[Sequence[str]]) -> Mapping[str, Shown]:
    found: dict[str, Shown] = {}
    for name, *cells in (row for row in rows if row):
        if name in {BASELINE, VARIANT, OTHER} and name not in found:
            found[name] = Shown(cells)
    return found


def exported(result: Result, metric: str) -> Mapping[str, float]:
    exposition = text_of(snapshot(("team-a", result)))
    families = text_string_to_metric_families(exposition)
    return {each.labels["variant"]: each.value for family in families for each in family.samples if each.name == metric}


def agree(shown: Mapping[str, Shown], exact: Mapping[str, float], speedups: Mapping[str, float]) -> None:
    """Each time is the exact one, rounded; those of two variants divide to the speedup beside them, rounded."""
    for variant, time in exact.items():
        assert abs(shown[variant].seconds - time) <= 0.5001 * shown[variant].last_digit(), variant
    for variant, speedup in speedups.items():
        said = shown[variant].speedup.removesuffix("x").replace(",", "")
        half = 0.51 * 10.0 ** -len(said.partition(".")[2])
        assert abs(float(said) - speedup) <= half, variant
        assert abs(shown[BASELINE].seconds / shown[variant].seconds - float(said)) <= half, variant


def exact_of(result: Result) -> tuple[dict[str, float], dict[str, float]]:
    """Times and speedups, by the JSON that a script gets."""
    found = json.loads(json_report([(result, ())], None))["cases"][0]["result"]
    times = {each["name"]: float(each["seconds"]["geometricMeanSeconds"]) for each in found["variants"]}
    speedups = {each["variant"]: float(each["speedup"]) for each in found["comparisons"] if "lower" in each}
    return times, speedups


@given(times=rounds)
@settings(max_examples=25, deadline=None, phases=PHASES)
def test_every_text_shows_the_same_times_and_they_divide_to_the_speedup(times: list[tuple[float, ...]]) -> None:
    result = measured(times)
    exact, speedups = exact_of(result)
    for variant, ratio in speedups.items():
        assert exact[BASELINE] / exact[variant] == pytest.approx(ratio, rel=5.1e-6)
    for texts in (in_the_terminal(result), in_markdown(result), while_it_ran(result)):
        agree(texts, exact, speedups)


@pytest.mark.parametrize(
    "times",
    [((0.0117, 0.00149, 0.02), (0.0131, 0.00201, 0.021), (0.0118, 0.0015, 0.02)), ((0.0123456, 0.00987, 1e-4),) * 3],
)
def test_the_page_shows_them_too(times: Sequence[Sequence[float]]) -> None:
    result = measured(times)
    agree(in_html(result), *exact_of(result))


@given(times=rounds)
@settings(max_examples=20, deadline=None, phases=PHASES)
def test_the_rows_of_a_spreadsheet_hold_the_same_numbers(times: list[tuple[float, ...]]) -> None:
    result = measured(times)
    seconds, speedups = exact_of(result)
    rows = in_csv(result)
    assert {variant: float(row["seconds"]) for variant, row in rows.items()} == seconds
    assert {variant: float(row["speedup"]) for variant, row in rows.items() if row["speedupLower"]} == speedups


@given(times=rounds)
@settings(max_examples=20, deadline=None, phases=PHASES)
def test_metrics_rates_and_curves_are_of_the_same_time(times: list[tuple[float, ...]]) -> None:
    result = measured(times)
    exact, _ = exact_of(result)
    assert exported(result, "accelbench_step_seconds") == pytest.approx(exact)
    assert exported(result, "accelbench_speedup_ratio") == pytest.approx(
        {each.variant: float(each.speedup or 0) for each in result.comparisons}
    )
    for variant in result.variants:
        for rate in (variant.numbers.flops_per_second, variant.numbers.bytes_per_second):
            assert 1e6 / float(rate or 0) == pytest.approx(exact[variant.name], rel=1e-5)
    for curve in payback.curves(result):
        assert curve.speedup(1e15) == pytest.approx(exact[BASELINE] / exact[curve.variant], rel=1e-3)
        assert curve.step_seconds == pytest.approx((exact[BASELINE], exact[curve.variant]))
        if curve.pays_back.answer == "after":
            crossing = float(curve.pays_back.extra_seconds) / (exact[BASELINE] - exact[curve.variant])
            assert curve.pays_back.steps == pytest.approx(crossing, rel=1e-3, abs=1)


@given(before=rounds, after=rounds)
@settings(max_examples=20, deadline=None, phases=PHASES)
def test_a_comparison_of_two_runs_shows_the_times_of_their_reports(
    before: list[tuple[float, ...]], after: list[tuple[float, ...]]
) -> None:
    results = measured(before), measured(after)
    found = compare(Side("A", (results[0],)), Side("B", (results[1],)))
    document = json.loads(format_json(found, (), ()))
    for each in document["comparisons"]:
        if each["quantity"] != "median" or "before" not in each:
            continue
        for side, result in zip(("before", "after"), results, strict=True):
            time = float(each[side]["seconds"])
            assert time == pytest.approx(exact_of(result)[0][each["variant"]], rel=1e-8)
        ratio = float(each["before"]["seconds"]) / float(each["after"]["seconds"])
        assert ratio == pytest.approx(float(each["speedup"]), rel=5.1e-6)
    table = comparison.verdict_table(found)
    assert table is not None
    heads = [column.name for column in table.columns]
    for row in ([*cells, *[""] * (len(heads) - len(cells))] for cells in table.rows):
        cells = dict(zip(heads, row, strict=True))
        if cells.get("A") and cells.get("B"):
            said = float(cells["speedup"].removesuffix("x").replace(",", ""))
            half = 0.51 * 10.0 ** -len(cells["speedup"].removesuffix("x").partition(".")[2])
            sides = [_value(cells[side]) for side in ("A", "B")]
            ratio = sides[1] / sides[0] if cells["A"].endswith("x") else sides[0] / sides[1]
            assert abs(ratio - said) <= half, cells


def _value(text: str) -> float:
    return Shown([text]).seconds if TIME.match(text) else float(text.removesuffix("x").replace(",", ""))


def test_the_sentence_has_the_number_of_the_table() -> None:
    result = measured(((0.02, 0.01, 0.0237),) * 5)
    assert result.comparisons[0].sentence.startswith("jax/jit is 2.00 times as fast as pytorch/eager")
    assert result.comparisons[1].sentence.startswith("pytorch/compile takes 1.18 times as long as pytorch/eager")
    assert in_the_terminal(result)[OTHER].speedup == "0.844x"
    assert math.isclose(1 / 0.844, 1.185, abs_tol=0.001)


@pytest.mark.parametrize("wrong", [VARIANT, BASELINE])
def test_a_variant_with_wrong_outputs_has_no_time_anywhere(wrong: str) -> None:
    result = measured(((0.0203, 0.0107, 0.0151),) * 5, wrong)
    document = result.to_json()
    mine = json.dumps([each for each in json.loads(document)["variants"] if each["name"] == wrong])
    assert "econds" not in mine
    assert not {"flopsPerSecond", "bytesPerSecond", "shareOfLimit"} & json.loads(mine)[0]["numbers"].keys()
    for texts in (in_the_terminal(result), in_markdown(result), while_it_ran(result), in_html(result)):
        assert texts[wrong].time == ""
        assert texts[OTHER].time == "15.1 ms"
    assert (in_csv(result)[wrong]["seconds"], in_csv(result)[wrong]["flopsPerSecond"]) == ("", "")
    assert wrong not in exported(result, "accelbench_step_seconds")
    assert wrong not in exported(result, "accelbench_phase_seconds")
    assert wrong not in exported(result, "accelbench_flops_per_second")
    page = html.report("run", [html.MeasuredCase(result)])
    for said in ("Seconds of a launch until", "Time per step"):
        [plot] = set(re.findall(f'aria-label="({said}[^"]*)"', page))
        assert wrong not in plot


def test_an_older_result_that_holds_times_of_a_wrong_variant_shows_none() -> None:
    good, bad = measured(((0.0203, 0.0107, 0.0151),) * 5), measured(((0.0203, 0.0107, 0.0151),) * 5, VARIANT)
    kept = bad.model_copy(update={"variants": good.variants})
    for texts in (in_the_terminal(kept), in_markdown(kept), in_html(kept)):
        assert texts[VARIANT].time == ""
        assert texts[OTHER].time == "15.1 ms"
    assert VARIANT not in exported(kept, "accelbench_step_seconds")
    assert json.loads(json_report([(kept, ())], None))["cases"][0]["result"]["variants"][1].get("seconds") is None
