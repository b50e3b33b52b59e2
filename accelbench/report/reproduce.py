"""The command that measures a case or a run again: a manifest and where to put it. Pure."""

from collections.abc import Mapping
from typing import Any

import yaml

from accelbench.api.case import Case, Script
from accelbench.api.metadata import API_VERSION
from accelbench.api.result import Result
from accelbench.api.run import BenchmarkRun

END = "END-OF-MANIFEST"


def command(manifest: Mapping[str, Any], processors: int | None = None) -> str:
    """For a shell: `accelbench run -` with the manifest on its standard input; without `processors` it uses all."""
    text = yaml.safe_dump(dict(manifest), sort_keys=False, allow_unicode=True, width=100)
    script = manifest["spec"]["workload"].get("script")
    file = Script.model_validate(script).file_name if script else ""
    where = f"# where {file} lies, a copy of which is among the results\n" if file else ""
    options = f" --processors {processors}" if processors else ""
    return f"{where}accelbench run -{options} <<'{END}'\n{text}{END}"


def processors_asked_for(result: Result) -> int | None:
    """As many as `--processors` said; None where all were used, or a container's limit decided."""
    found = result.fingerprint
    used, there = found.get("cpusUsed", ""), found.get("cpus", "")
    return int(used) if used.isdecimal() and "cpuLimit" not in found and used != there else None


def of_run(run: BenchmarkRun) -> dict[str, Any]:
    """The manifest of a run as it was run, without what only a cluster heeds and what says nothing."""
    document = run.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude_none=True)
    spec = document["spec"]
    return {
        "apiVersion": run.api_version,
        "kind": run.kind,
        "metadata": {"name": run.metadata.name},
        "spec": {name: spec[name] for name in spec if name not in {"className", "podTemplate", "runPolicy"}},
    }


def of_case(case: Case) -> dict[str, Any]:
    """A manifest of this case alone, from what its result says was asked."""
    measurement = case.measurement
    spec: dict[str, Any] = {
        "series": case.origin.series,
        "workload": {**_source(case), "parameters": dict(case.parameters)},
        "variants": [
            {"use": each.use}
            | ({"name": each.name} if each.name != each.use else {})
            | ({"options": dict(each.options)} if each.options else {})
            for each in case.variants
        ],
        "baseline": case.baseline,
        "measurement": {
            "precision": measurement.precision,
            "rounds": {"min": measurement.rounds_min, "max": measurement.rounds_max},
            "targetRelativeError": _percentage(measurement.target_relative_error),
            "confidence": _percentage(measurement.confidence),
            "equivalenceMargin": _percentage(measurement.equivalence_margin),
            "timeLimitSeconds": measurement.time_limit_seconds,
            "seed": measurement.seed,
        },
    }
    if case.accelerator.target is not None:
        spec["accelerator"] = {"targets": [case.accelerator.target]}
    elif case.accelerator.profile != "cpu":
        spec["accelerator"] = {"profile": case.accelerator.profile, "devicesPerNode": case.accelerator.devices}
    return {
        "apiVersion": API_VERSION,
        "kind": "BenchmarkRun",
        "metadata": {"name": case.origin.run},
        "spec": spec,
    }


def _source(case: Case) -> dict[str, Any]:
    if case.script is None:
        return {"name": case.workload}
    return {"script": case.script.model_dump(by_alias=True, exclude_none=True)}


def _percentage(ratio: str) -> str:
    from decimal import Decimal

    return f"{(Decimal(ratio) * 100).normalize():f}%"
