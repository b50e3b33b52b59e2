"""Write the command that measures a case or a run again. Pure."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import yaml

from accelbench.api.case import Case, CaseMeasurement, CaseVariant, MeasurementSettings, Script
from accelbench.api.environment import CaseEnvironment
from accelbench.api.metadata import API_VERSION
from accelbench.api.result import Result
from accelbench.api.run import BenchmarkRun

END = "END-OF-MANIFEST"
"""Line that ends the manifest in the shell command."""


def command(manifest: Mapping[str, Any], processors: int | None = None) -> str:
    """Return a shell command that runs the manifest, with the option `--processors` unless `processors` is None."""
    manifest_text = yaml.safe_dump(dict(manifest), sort_keys=False, allow_unicode=True, width=100)
    script = manifest["spec"]["workload"].get("script")
    file = Script.model_validate(script).file_name if script else ""
    comment = f"# in the directory of {file}; the results contain a copy of it\n" if file else ""
    options = f" --processors {processors}" if processors else ""
    return f"{comment}accelbench run -{options} <<'{END}'\n{manifest_text}{END}"


def processors_option(result: Result) -> int | None:
    """Return the number for `--processors` that a repetition of the run needs; None if it needs no such option."""
    entries = result.fingerprint
    used, installed = entries.get("cpusUsed", ""), entries.get("cpus", "")
    if not used.isdecimal() or used == installed:
        return None
    # In a container with a CPU limit, the limit and not the option decided how many processors were used.
    return None if "cpuLimit" in entries else int(used)


def manifest_of_run(run: BenchmarkRun) -> dict[str, Any]:
    """Return the manifest of a run, without defaults, and without fields that only have a meaning in a cluster."""
    document = run.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude_none=True)
    spec = document["spec"]
    return {
        "apiVersion": run.api_version,
        "kind": run.kind,
        "metadata": {"name": run.metadata.name},
        "spec": {name: spec[name] for name in spec if name not in {"className", "podTemplate", "runPolicy"}},
    }


def manifest_of_case(case: Case) -> dict[str, Any]:
    """Return a manifest that measures this case alone."""
    measurement = case.measurement
    spec: dict[str, Any] = {
        "series": case.origin.series,
        "workload": {**_workload_source(case), "parameters": dict(case.parameters)},
        "variants": list(map(_manifest_variant, case.variants)),
        "baseline": case.baseline,
        "measurement": {
            **_measurement_settings(measurement),
            "rounds": {"min": measurement.rounds_min, "max": measurement.rounds_max},
            "targetRelativeError": _percentage(measurement.target_relative_error),
            "confidence": _percentage(measurement.confidence),
            "equivalenceMargin": _percentage(measurement.equivalence_margin),
            "timeLimitSeconds": measurement.time_limit_seconds,
        },
    }
    if case.environments:
        spec["environments"] = list(map(_manifest_environment, case.environments))
    if case.accelerator.target is not None:
        spec["accelerator"] = {"targets": [case.accelerator.target]}
    elif case.accelerator.profile != "cpu":  # the default profile
        spec["accelerator"] = {"profile": case.accelerator.profile, "devicesPerNode": case.accelerator.devices}
    return {
        "apiVersion": API_VERSION,
        "kind": "BenchmarkRun",
        "metadata": {"name": case.origin.run},
        "spec": spec,
    }


def _measurement_settings(measurement: CaseMeasurement) -> dict[str, Any]:
    """Return the settings of a measurement that a case has in the same form as a manifest, without defaults.

    Precision and seed are never left out, because readers want to see them.
    """
    shared = measurement.model_dump(by_alias=True, include=set(MeasurementSettings.model_fields), exclude_defaults=True)
    return {"precision": measurement.precision, "seed": measurement.seed, **shared}


def _manifest_variant(variant: CaseVariant) -> dict[str, Any]:
    """Return a variant as it stands in a manifest, without empty options or a name that only repeats `use`."""
    document: dict[str, Any] = {"use": variant.use}
    if variant.name != variant.use:
        document["name"] = variant.name
    if variant.options:
        document["options"] = dict(variant.options)
    if variant.environment is not None:
        document["environment"] = variant.environment
    return document


def _manifest_environment(environment: CaseEnvironment) -> dict[str, Any]:
    """Return an environment in the form of a manifest, with the exact versions of its lock as requirements.

    A large result has no exact versions: then the requirements are those of the run.
    """
    document: dict[str, Any] = {"name": environment.name}
    if environment.requirements:
        locked = [f"{name}=={version}" for name, version in sorted(environment.packages.items())]
        document["requirements"] = locked or list(environment.requirements)
    if environment.python is not None:
        document["python"] = environment.python
    return document


def _workload_source(case: Case) -> dict[str, Any]:
    """Return how a manifest refers to the case's workload: by its script or, without a script, by its name."""
    if case.script is None:
        return {"name": case.workload}
    return {"script": case.script.model_dump(by_alias=True, exclude_none=True)}


def _percentage(ratio: str) -> str:
    """Format a ratio as an exact percentage: `0.025` becomes `2.5%`."""
    return f"{(Decimal(ratio) * 100).normalize():f}%"
