"""A week of an operator's metrics, made of results that were measured: dashboards and their pictures show it.

The results are those of tests/data, and those in `runs/`: measured next to other load, as they say, or compiled for a
target. Each night's run of a series is one of them without one of its rounds, judged again, so that times and
intervals move as far as they did between real rounds. What cannot be measured here is made up, under names that say so:
`example-gpu`, the namespace `lab`, and the operator's own load.
"""

from __future__ import annotations

import json
import math
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import ProcessCollector
from prometheus_client.parser import text_string_to_metric_families

from accelbench.api.result import Result, SpeedupEstimate, VariantResult
from accelbench.stats.interval import student_interval
from accelbench.stats.stopping import StoppingRule
from accelbench.stats.summary import geometric_mean
from accelbench.verdict.pairwise import MeasuredVariants
from accelbench_operator.engine.api import RequestKind
from accelbench_operator.engine.kinds import Key
from accelbench_operator.metrics.families import operator_families, result_families
from accelbench_operator.metrics.snapshot import LiveCase, QueueHealth, Snapshot
from accelbench_operator.metrics.telemetry import Telemetry
from accelbench_operator.runs.summary import summarize
from cluster.build import binaries
from cluster.ports import free_port
from cluster.processes import Processes, end_processes
from metrics.documents import failed, invalid
from metrics.prometheus import Prometheus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.metrics_core import Metric
    from prometheus_client.samples import Sample

    from accelbench_operator.runs.summary import Summary

__all__ = ["END", "START", "running_history"]

ROOT = Path(__file__).resolve().parents[2]
EXPORTERS = Path(__file__).parent / "exporters"
STEP = 1200
DAY = 86400
END = 1_767_618_000.0
"""Seconds since 1970: a Monday at 13, so that pictures do not change with the day on which they are made."""
START = END - 7 * DAY
MIDNIGHT = START + 11 * 3600
HERE = {"job": "accelbench", "instance": "10.42.0.17:9090"}


@dataclass(frozen=True)
class Nightly:
    """A series that runs every night at `hour`, from a result that was measured."""

    namespace: str
    series: str
    result: Result
    hour: float
    price: str = ""


def nightlies() -> tuple[Nightly, ...]:
    """What runs."""
    data = ROOT / "tests" / "data"
    sizes = Path(__file__).parent / "runs"

    def read(path: Path) -> Result:
        return Result.model_validate_json(path.read_text())

    found = [
        Nightly("vision", "cifar-cnn", read(data / "cifar-cnn.result.json"), 1),
        Nightly("vision", "activation-checkpointing", read(data / "activation-checkpointing.result.json"), 1.5),
        Nightly("language", "optimizer-step", read(data / "optimizer-step.result.json"), 2),
        # One whose verdict changes with the round that is left out.
        Nightly("kernels", "maxsim", read(data / "maxsim.result.json"), 4),
        *(
            Nightly("kernels", "dispatch-overhead", read(path), 4.5)
            for path in sorted(data.glob("dispatch-overhead-*.result.json"))
        ),
        Nightly("language", "mlp-requests", read(sizes / "arrivals" / "mlp.result.json"), 3.5),
        Nightly("language", "mlp", read(data / "mlp.result.json"), 2.5),
    ]
    for profile, price in (("cpu-1-core", "0.0425 USD"), ("cpu-2-cores", "0.085 USD")):
        for path in sorted((sizes / profile).glob("*.result.json")):
            result = read(path)
            accelerator = result.case.accelerator.model_copy(update={"profile": profile, "price_per_hour": price})
            case = result.case.model_copy(update={"accelerator": accelerator})
            found.append(
                Nightly("kernels", f"matmul-chain-on-{profile}", result.model_copy(update={"case": case}), 3, price)
            )
    found += [
        Nightly("language", "mlp-on-accelerators", read(path), 5)
        for path in sorted((sizes / "targets").glob("*.result.json"))
    ]
    return tuple(found)


def on_day(nightly: Nightly, day: int) -> Result:
    """The result without one of its rounds, and judged again; the run has a name of its own."""
    result = nightly.result
    left_out = day % result.rounds + 1 if result.rounds > 3 else 0
    variants = []
    for variant in result.variants:
        launches = tuple(each for each in variant.launches if each.round != left_out)
        if not variant.seconds or not launches:
            variants.append(variant)
            continue
        before = float(variant.seconds.geometric_mean_seconds)
        after = geometric_mean(float(each.seconds) for each in launches)
        seconds = variant.seconds.model_copy(update={"geometric_mean_seconds": f"{after:.9g}"})
        slower = after / before
        # Today a launch tells this; those that are kept did not. Had they compiled again, a check would have failed.
        numbers = variant.numbers.model_copy(update={"recompilations": 0})
        timed = {
            name: f"{float(value) / slower:.6g}"
            for name in ("flops_per_second", "bytes_per_second", "share_of_limit")
            if (value := getattr(numbers, name)) is not None
        }
        if nightly.price:
            timed["price_per_unit"] = f"{float(nightly.price.split()[0]) / 3600 * after:.6g}"
        variants.append(
            with_interval(
                variant.model_copy(
                    update={
                        "seconds": seconds,
                        "launches": launches,
                        "numbers": numbers.model_copy(update=timed),
                    }
                )
            )
        )
    measurement = result.case.measurement
    measured = MeasuredVariants(
        seconds={each.name: {launch.round: float(launch.seconds) for launch in each.launches} for each in variants},
        failures={},
        certificate=result.certificate,
        rule=StoppingRule(
            rounds_min=measurement.rounds_min - 1,
            rounds_max=measurement.rounds_max,
            target=float(measurement.target_relative_error),
            confidence=float(measurement.confidence),
            comparisons=result.case.comparisons_in_run,
        ),
        margin=float(measurement.equivalence_margin),
        noisy=bool(result.noisy),
    )
    comparisons = tuple(
        measured.compare(each.variant, each.baseline).model_copy(update={"pays_back": each.pays_back})
        for each in result.comparisons
    )
    run = f"{nightly.series}-{day}"
    origin = result.case.origin.model_copy(
        update={"run": run, "series": nightly.series, "namespace": nightly.namespace, "uid": f"uid-of-{run}"}
    )
    return result.model_copy(
        update={
            "case": result.case.model_copy(update={"origin": origin}),
            "variants": tuple(variants),
            "comparisons": comparisons,
        }
    )


def with_interval(variant: VariantResult) -> VariantResult:
    """The variant with the interval on its own time, as results have one that are measured today."""
    interval = student_interval([math.log(float(each.seconds)) for each in variant.launches], 0.05)
    if interval is None or variant.spread is None:
        return variant
    ends = {"lower_seconds": f"{interval.lower:.6g}", "upper_seconds": f"{interval.upper:.6g}"}
    return variant.model_copy(update={"spread": variant.spread.model_copy(update=ends)})


def week() -> list[tuple[float, Summary]]:
    """Everything that was stored in the week, by the time at which it was."""
    stored = []
    for nightly in nightlies():
        for day in range(8):
            finished = MIDNIGHT + (day - 1) * DAY + nightly.hour * 3600
            stored.append((finished, nightly.namespace, on_day(nightly, day)))
    stored += [(START + 2.3 * DAY, "lab", invalid()), (START + 4.6 * DAY, "lab", failed())]
    stored += [(START - DAY, "lab", example_accelerator())]
    found = []
    for finished, namespace, result in stored:
        run = result.case.origin
        key = Key("BenchmarkResult", namespace, f"{run.run}-{result.case.name}"[:63], "")
        node = "gpu-node-1" if result.case.accelerator.profile == "example-gpu" else "cpu-node-1"
        summary = replace(summarize(result, key, run.uid, node=node), created_timestamp=finished)
        found.append((finished, summary))
    return sorted(found, key=lambda each: each[0])


def example_accelerator() -> Result:
    """A made-up result of a made-up accelerator, that counts its energy: none is at hand."""
    for nightly in nightlies():
        if nightly.series == "matmul-chain-on-cpu-2-cores" and nightly.result.case.name.startswith("size-128"):
            result = nightly.result
    accelerator = result.case.accelerator.model_copy(update={"profile": "example-gpu", "price_per_hour": "2.50 USD"})
    variants = []
    for variant in result.variants:
        assert variant.seconds
        seconds = float(variant.seconds.geometric_mean_seconds) / 40
        numbers = variant.numbers.model_copy(
            update={
                "device_joules_per_unit": f"{seconds * 350:.6g}",
                "cpu_joules_per_unit": f"{seconds * 90:.6g}",
                "price_per_unit": f"{seconds * 2.5 / 3600:.6g}",
            }
        )
        launches = tuple(
            each.model_copy(update={"seconds": f"{float(each.seconds) / 40:.9g}"}) for each in variant.launches
        )
        mean = variant.seconds.model_copy(update={"geometric_mean_seconds": f"{seconds:.9g}"})
        variants.append(
            with_interval(variant.model_copy(update={"seconds": mean, "launches": launches, "numbers": numbers}))
        )
    origin = result.case.origin.model_copy(update={"run": "example", "series": "example", "uid": "uid-of-example"})
    case = result.case.model_copy(update={"accelerator": accelerator, "origin": origin})
    return result.model_copy(update={"case": case, "variants": tuple(variants)})


def moments() -> Iterator[tuple[float, Snapshot]]:
    """What the operator shows at each scrape."""
    stored = week()
    standing: dict[tuple[str, str, str], Summary] = {}
    for number in range(int((END - START) / STEP) + 2):
        moment = START + number * STEP
        while stored and stored[0][0] <= moment:
            _, summary = stored.pop(0)
            standing[summary.namespace, summary.series, summary.case] = summary
        hour = moment % DAY / 3600
        depth = (0, 1, 3, 2, 1, 0)[number % 6] if hour < 5 else 0
        passed = int(moment - START)
        live = live_case(moment - (END - 4 * 3600))
        yield (
            moment,
            Snapshot(
                leading=True,
                results=tuple(standing.values()),
                runs={
                    ("vision", "Succeeded"): 14 + passed // DAY * 2,
                    ("language", "Succeeded"): 12 + passed // DAY * 2,
                    ("language", "Running"): 1 if 2 <= hour < 3 else 0,
                    ("kernels", "Running"): 1 if hour > 3 else 0,
                    ("kernels", "Queued"): 3 if hour < 2 else 2 if hour < 3 else 0,
                    ("lab", "Failed"): 1 if passed > 4 * DAY else 0,
                },
                stored_objects={"Job": 2 + depth, "Pod": 2 + depth, "BenchmarkResult": 80 + passed // DAY * 9},
                queue=QueueHealth(
                    depth=depth,
                    oldest_seconds=depth * 1.7,
                    loop_lag_seconds=0.002 + 0.001 * (number % 3),
                    reconciled_total=passed // 3,
                    failed_total=passed // 30000,
                ),
                requests=requests(passed),
                cases={(*LIVE, state): count for state, count in CASES.items()} if live else {},
                live=live,
                limit=5000,
            ),
        )


LIVE = ("kernels", "matmul-chain-on-cpu-2-cores-7")
CASES = {"total": 3, "active": 1, "measured": 2, "failed": 0}


def live_case(passed: float) -> tuple[LiveCase, ...]:
    """A case of a run that is under way, so many seconds after it began: its interval closes with every round."""
    if passed < 0:
        return ()
    done = 2 + int(passed // 1800)
    width = 0.9 / math.sqrt(done)
    found = SpeedupEstimate(
        variant="jax/jit",
        speedup="1.62",
        lower=f"{1.62 * math.exp(-width):.6f}",
        upper=f"{1.62 * math.exp(width):.6f}",
    )
    return (LiveCase(*LIVE, "size-512-c2bf94bb3c", done, "jax/jit", "steady", (found,)),)


LOST = (("NodeLost", "false"), ("Preempted", "true"))
"""Why attempts were lost, and whether the cases were tried again."""


def count(telemetry: Telemetry, number: int) -> None:
    """What the operator counts between two scrapes."""
    for each in range(20):
        telemetry.reconcile.observe(0.004 + 0.003 * (each * 7 % 11) + (0.3 if each + number % 50 == 19 else 0))
        telemetry.request.labels("list" if each % 4 else "patch", "jobs").observe(0.008 + 0.004 * (each * 5 % 9))
    if number % 12 == 0:
        telemetry.queue.observe(2 + number % 90)
        telemetry.start.observe(4 + number % 40)
    for kind, every in zip(LOST, (240, 98), strict=True):
        if number % every == every - 1:
            telemetry.failed_attempts.labels(*kind).inc()


def requests(passed: int) -> dict[RequestKind, int]:
    """What the operator had asked of the API server after so many seconds."""
    return {
        RequestKind("list", "jobs", 200): passed // 300,
        RequestKind("create", "jobs", 201): passed // 6000,
        RequestKind("patch", "benchmarkruns", 200): passed // 900,
        RequestKind("create", "benchmarkresults", 201): passed // 7000,
        RequestKind("patch", "benchmarkruns", 409): passed // 90000,
    }


@dataclass
class Text:
    """OpenMetrics text in the making: every sample of a family together, in the order of time."""

    kinds: dict[str, str] = field(default_factory=dict)
    """Of each family: gauge, counter, histogram."""
    samples: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """Lines of each family, by the series that they belong to."""

    def series(self, families: Iterable[Metric], **more: str) -> list[tuple[list[str], str, Sample]]:
        """Where the samples of `families` go, and what each line begins with."""
        found = []
        for family in families:
            self.kinds[family.name] = family.type
            lines = self.samples.setdefault(family.name, {})
            for sample in family.samples:
                labels = more | sample.labels
                words = ",".join(f"{name}={json.dumps(value)}" for name, value in labels.items())
                key = f"{sample.name}{{{words}}}"
                found.append((lines.setdefault(key, []), key, sample))
        return found

    def write(self, to: Path) -> None:
        """Everything, as promtool reads it."""
        with to.open("w") as file:
            for family, lines in self.samples.items():
                if lines:
                    file.write(f"# TYPE {family} {self.kinds[family]}\n")
                file.writelines(f"{line}\n" for each in lines.values() for line in each)
            file.write("# EOF\n")


def write(to: Path, since: float) -> None:
    """The week from a moment on, as `promtool tsdb create-blocks-from openmetrics` reads it."""
    text = Text()
    exporters = [
        placed
        for path in sorted(EXPORTERS.glob("*.prom"))
        for placed in text.series(text_string_to_metric_families(path.read_text()), job=path.stem)
    ]
    process = text.series(ProcessCollector(registry=None).collect(), **HERE)
    telemetry = Telemetry()
    shown: tuple[Summary, ...] = ()
    steady: list[tuple[list[str], str, Sample]] = []
    for number, (moment, snapshot) in enumerate(moments()):
        passed = moment - START
        count(telemetry, number)
        if moment < since:
            continue
        if snapshot.results != shown:
            shown = snapshot.results
            steady = text.series(result_families(shown), **HERE)
        moving = text.series([*operator_families(snapshot), *telemetry.collect()], **HERE)
        for lines, key, sample in (*steady, *moving):
            # What the clients of Python add is no sample that Prometheus keeps.
            if not sample.name.endswith("_created"):
                lines.append(f"{key} {sample.value:.10g} {moment:.0f}")
        for lines, key, sample in (*exporters, *process):
            lines.append(f"{key} {over_time(sample, passed):.10g} {moment:.0f}")
    text.write(to)


def over_time(sample: Sample, passed: float) -> float:
    """What does not come from results has one value: it is made to move, as it would."""
    if sample.name == "process_cpu_seconds_total":
        return passed * 0.02
    if not sample.name.startswith("DCGM_"):
        return float(sample.value)
    if passed % 28800 < 18000:
        return float(sample.value) * (1 + 0.02 * math.sin(passed / 900))
    idle = {"DCGM_FI_DEV_GPU_UTIL": 0.0, "DCGM_FI_DEV_POWER_USAGE": 0.17, "DCGM_FI_DEV_FB_USED": 0.02}
    return float(sample.value) * idle.get(sample.name, 0.6)


@contextmanager
def running_history(directory: Path, *, since: float = START) -> Iterator[Prometheus]:
    """A Prometheus that holds the week, or what of it is later than `since`, and scrapes nothing.

    Raises `ToolMissingError` where it has not been built, `ComponentError` with its log where it ends.
    """
    programs = binaries()
    directory.mkdir(parents=True, exist_ok=True)
    write(directory / "week.om", since)
    made = subprocess.run(
        [programs.promtool, "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=192h", "--quiet",
         directory / "week.om", directory / "data"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
    (directory / "prometheus.json").write_text("{}")
    port = free_port()
    server = Prometheus(f"http://127.0.0.1:{port}", scraped_twice_at=END)
    processes = Processes(directory, die_with_parent=True)
    try:
        processes.start(
            "prometheus",
            [
                programs.prometheus,
                f"--config.file={directory / 'prometheus.json'}",
                f"--storage.tsdb.path={directory / 'data'}",
                "--storage.tsdb.retention.time=100y",
                f"--query.lookback-delta={STEP + 60}s",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
        )
        processes.wait_for("prometheus", server.is_ready, what="prometheus to be ready")
        yield server
    finally:
        end_processes(directory)
        processes.reap()
