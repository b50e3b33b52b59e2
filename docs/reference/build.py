"""Writes the pages beside this file from the code that they describe.

python docs/reference/build.py            writes them
python docs/reference/build.py --check    fails where one is not what the code says
"""

import argparse
import inspect
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, get_origin, get_type_hints

import typer
import yaml
from prometheus_client.metrics import MetricWrapperBase
from typer.testing import CliRunner

from accelbench import catalogue
from accelbench import targets as compile_targets
from accelbench.api.crd import KINDS, Schema, schema_of, structural
from accelbench.api.manifest import RUN
from accelbench.api.numbers import DISPATCHED, MEASURED, TOLD_BY_COMPILING
from accelbench.api.numbers import NUMBERS as REGISTERED
from accelbench.api.profiles import ALWAYS, Profile, ready
from accelbench.api.reasons import AttemptReason, ConditionReason, FailureReason, StopReason
from accelbench.claims import ledger
from accelbench.cli.exits import Exit
from accelbench.cli.main import app
from accelbench.cli.workloads import allowed, describe
from accelbench.kubectl import words
from accelbench.kubectl.main import app as plugin
from accelbench.report.markdown import markdown_table
from accelbench.validity.certificate import validity_checks
from accelbench.workload import Workload
from accelbench_operator.metrics import (
    LIVE_LABELS,
    LIVE_VARIANT_LABELS,
    RESULT_LABELS,
    VARIANT_LABELS,
    of_results,
    of_the_operator,
)
from accelbench_operator.pending import Advice, Cause
from accelbench_operator.snapshot import Snapshot
from accelbench_operator.telemetry import Telemetry
from accelbench_operator.waits import Limit, Wait

HERE = Path(__file__).resolve().parent
SEEN = HERE.parent / "operations" / "seen.yaml"
CLAIMS = HERE.parents[1] / "examples" / "claims"
WORKLOADS = """# Workloads

Generated from the code by `python docs/reference/build.py`. In a terminal: `accelbench workloads NAME`.
"""

NUMBERS = """# Numbers

Every number that is measured for a variant. Generated from the code by `python docs/reference/build.py`.
A manifest asks for a number by its name: `metric: speedup`. A result holds the stored ones in `variants[].numbers`.
A number without a unit is a count.
"""

PROFILES = """# Profiles

Generated from `accelbench/api/presets.yaml` and the code by `python docs/reference/build.py`.
[Pools](../operations/pools.md) explains how to use them.
"""

TARGETS = """# Targets

What programs can be compiled for without having it. Generated from `accelbench/targets/chips.yaml` and the code by
`python docs/reference/build.py`. [How to ask](../tutorials/targets.md) has an example;
[ADR 43](../adr/0043-a-target-is-compiled-for.md) says why it is done so.

A run names targets: `accelbench run FILE --target h100x8,v5e-16`, or `spec.accelerator.targets` in a manifest. In a
cluster a [profile](profiles.md) can name one. Each target is a case of its own. Nothing runs: a result has no time and
no speedup.
"""
MACHINES = {"cuda": "Linux", "tpu": "Linux on x86-64"}
"""That the packages of an extra are built for."""
DISPATCH_TELLS = {
    *("kernels", "kernelsPerCall", "argumentBytes", "outputBytes", "aliasedBytes", "temporaryBytes", "peakBytes"),
    *("flopsPerCall", "fits", "deviceMemoryBytes"),
}
"""Of a program that nothing compiles."""
NOT_FOR_TARGETS = {"accessedBytes"}
"""XLA's own estimate, which its compilers for GPUs do not give."""
TARGETS_MEMORY = """`memory` is what a program can have of one chip, in bytes; a data sheet may say more. GPUs are named
by how many there are: `h100x8`. TPU slices are named as Google names them, by chips, but v5p by TensorCores, of which
a chip has two: `v5p-8` is four chips."""
TARGETS_NEED = """Packages that an extra brings are built for these machines. `cpu` needs nothing but a framework: it
is the processor of the machine that compiles, and what is told of it can be held against a run
([how it agrees](../results/compiled_against_run.md)). Where a package is missing, the command line names the extra."""
TARGETS_EXACT = """An estimate is marked `≈` in reports, and by name in a result's `compiled[].estimates`. On a GPU,
XLA tunes kernels on the device and may choose others, with other temporary memory. A TPU's compiler makes the program
that would run, so everything is exact there. Counts are of the program as it stands, each instruction once; only
`kernelsPerCall` counts what a loop runs, and is missing where a TPU's program does not say how often that is.
[Numbers](numbers.md) says more of each."""
TARGETS_FRAMEWORKS = """- **JAX**: variants that are compiled as a whole, such as `jax/jit`. Operations that are
  dispatched one by one, and parts that are compiled by hand, are refused with the reason. A workload may say how its
  arrays lie on several devices ([ADR 46](../adr/0046-a-mesh-has-names.md)); one that does not is whole on each, and the
  report says so.
- **PyTorch**: `pytorch/eager` and what else runs eagerly, for GPUs and `cpu`. Nothing is compiled: operations are
  dispatched on arrays that have shapes and no numbers ([ADR 47](../adr/0047-pytorch-for-a-target.md)). Memory that
  libraries such as cuDNN work in is not counted, so the real peak may be several times what is told
  ([what a GPU said](../results/h100/README.md#peak-memory-and-whether-it-fits)). torch.compile needs a driver, and is
  refused. PyTorch is not told for TPUs. Programs are not divided: each device does everything.
- **NumPy** is compiled for nothing."""

KUBECTL = """# kubectl accelbench

Every command. Generated from the code by `python docs/reference/build.py`. In a terminal:
`kubectl accelbench COMMAND --help`. [The guide](../kubectl.md) explains what they are for.
"""

UNITS = {
    timedelta(minutes=2): "2 minutes",
    timedelta(minutes=5): "5 minutes",
    timedelta(minutes=10): "10 minutes",
    timedelta(minutes=30): "30 minutes",
    timedelta(days=1): "24 hours",
}
REFUSED = "Not for a run to set."
MANIFEST = """# The manifest

Every field of a `BenchmarkRun`'s spec. Generated from its schema by `python docs/reference/build.py`. In a terminal:
`kubectl explain bmr.spec --recursive`. `accelbench validate` and the API server refuse anything else, with the same
messages.
"""

OBJECTS = """# Status and result

Every field of a run's status and of a `BenchmarkResult`. Generated from the schemas by
`python docs/reference/build.py`. In a terminal: `kubectl explain bmr.status --recursive`,
`kubectl explain bmres --recursive`. In a cluster, only the operator writes them. On a laptop, `CASE.result.json` is the
`result` of a `BenchmarkResult`.
"""

REASONS = """# Reasons

Every reason that `kubectl` and results give. Generated from the code by `python docs/reference/build.py`.
"""

CHECKS = """# Checks

Every validity check. Generated from the code by `python docs/reference/build.py`. [Validity](../concepts/validity.md)
explains what happens when one fails.
"""

CLI = """# The command line

The help of every command. Generated from the code by `python docs/reference/build.py`.
"""

METRICS = """# Metrics

Every metric at the operator's `/metrics`. Generated from the code by `python docs/reference/build.py`. Metrics of
results show the latest result of each series and case. Only the leader exports them. Scrape with `honor_labels: true`:
a result's `namespace` is that of its run. A histogram has `_bucket`, `_sum` and `_count`.
[Numbers](numbers.md) explains what is measured.

## When a series ends

- `accelbench_run_cases` and `accelbench_live_*` end when their run finishes or is deleted, within seconds.
- `accelbench_runs` counts the runs that exist. A deleted run is no longer counted, and a phase without runs has no
  series.
- Metrics of results outlive the run. They end when the BenchmarkResult is deleted, by you or by the operator's limits,
  or when more cases than `accelbench_series_limit` have newer results. A newer result of the same series and case
  replaces the values; only `accelbench_run_info` gets new labels.

Prometheus keeps what it has stored of a series that has ended.
"""
JOINS = """## Joins

Other exporters know what the operator does not. Each query was run by a test, beside metrics of the form that the
exporter writes.

GPU utilisation on the nodes that a run was measured on, from NVIDIA's dcgm-exporter. Its label `Hostname` has to be the
node's name: on Kubernetes that is the exporter's default.

```promql
DCGM_FI_DEV_GPU_UTIL
  and on (Hostname) label_replace(accelbench_run_info{run="example"}, "Hostname", "$1", "node", "(.+)")
```

The phase of each pod of a run, from kube-state-metrics. It exports labels of pods only if it is told to:
`--metric-labels-allowlist=pods=[accelbench.dev/run]`.

```promql
kube_pod_status_phase == 1
  and on (namespace, pod) kube_pod_labels{label_accelbench_dev_run="example"}
```

Devices that pods of runs have requested, without pods that are finished.

```promql
sum by (namespace, resource) (
  kube_pod_container_resource_requests{resource=~".*(gpu|tpu).*"}
    and on (namespace, pod) kube_pod_status_phase{phase=~"Pending|Running"} == 1
    and on (namespace, pod) kube_pod_labels{label_accelbench_dev_run!=""}
)
```
"""
DESCRIBED = {
    "Of a variant": VARIANT_LABELS,
    "Of a result": RESULT_LABELS,
    "Of a variant while it is measured": LIVE_VARIANT_LABELS,
    "Of a case while it is measured": LIVE_LABELS,
    "Of the operator": (),
}
"""Whose metrics there are, by the labels that all of them begin with; the longest come first."""

TROUBLESHOOTING = """# Troubleshooting

Why a run does not start, does not end, or ends without a result; what to do; and how long each wait can last.
Generated from the code by `python docs/reference/build.py`.

```console
$ kubectl get bmr                  # where each run stands, in one word
$ kubectl describe bmr my-run      # Finished says what it waits for, Succeeded why it failed, Events since when
$ accelbench profiles              # which nodes fit which profile, and why not
```

If a run has no status at all, no operator serves it: none is installed, or it serves other namespaces or another
`spec.className`. `kubectl wait --for=condition=Finished` returns for every run, unless its user has suspended it or it
waits in a queue without a `startDeadlineSeconds`. [Reasons](../reference/reasons.md) explains every reason in a status.
"""
STARTING = """While a case waits, the message of `Finished` says what it waits for. `{words}` come from the
cluster: from the scheduler, the kubelet, the API server, or the events of the Job or pod."""
ADVICE = """If the cluster's words contain these, the message gives this advice instead of the advice above."""
FAILED = """The reason is in `status.attempts[]`, and after the last attempt also in the message of `Succeeded`.
Attempts marked `retried` are repeated, at most `runPolicy.infrastructureRetries` times per case. In a sweep, the other
cases go on."""
WAITS = """Every wait ends by itself, except for two that a user controls: a suspended run, and a queue without a
deadline."""
SEEN_TEXT = """## What runs have said

A test provokes each of these problems, on a real node, or on a real control plane with a simulated node. These
are the messages of the run, word for word; names end in random letters."""


def claims() -> dict[str, list[str]]:
    """The rows that ask each workload, as links to their manifests."""
    found = defaultdict(list)
    for claim in ledger.load(CLAIMS):
        for manifest in (*claim.manifests, *claim.beside):
            asked = yaml.safe_load((CLAIMS / manifest).read_text())["spec"]["workload"]["name"]
            found[asked].append(f"[{claim.row}](../../examples/claims/{manifest})")
    return found


def section(workload: Workload, rows: list[str]) -> str:
    """Purpose, parameters, variants, what is observed, cost, claims."""
    described = describe(workload)
    parts = [f"## {workload.name}", _paragraphs(type(workload))]
    if described["parameters"]:
        parameters = [
            (name, str(schema.get("default", "")), allowed(schema), schema.get("description", ""))
            for name, schema in described["parameters"].items()
        ]
        parts.append(markdown_table(("parameter", "default", "allowed", "what it is"), parameters, right=set()))
    variants = [
        (use, ", ".join(variant["options"]), variant["summary"]) for use, variant in described["variants"].items()
    ]
    parts.append(markdown_table(("variant", "options", "what it is"), variants, right=set()))
    if described["observes"]:
        parts.append(markdown_table(("observed", "what it is"), described["observes"].items(), right=set()))
    else:
        protocol = workload.measure(workload.Parameters()).protocol
        measured = f"Measured by protocol `{protocol}`, a {described['unit']} at a time."
        own = type(workload).measure is not Workload.measure
        parts.append(f"{measured} {_paragraphs(type(workload).measure)}" if own else measured)
        if type(workload).cost is not Workload.cost:
            parts.append(f"Cost: {_paragraphs(type(workload).cost)}")
    if rows:
        parts.append(f"Claims: {', '.join(rows)}.")
    return "\n\n".join(parts)


def _paragraphs(documented: object) -> str:
    text = (inspect.getdoc(documented) or "").replace("<", "\\<").replace("*", "\\*")
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def workloads() -> str:
    """A section each, with the claims that ask it."""
    rows = claims()
    sections = [section(catalogue.find(name), rows[name]) for name in catalogue.names()]
    return "\n\n".join([WORKLOADS.rstrip(), *sections]) + "\n"


def numbers() -> str:
    """One table."""
    stored = {number.name for number in MEASURED.values()}
    rows = [
        (
            number.name,
            number.meaning,
            number.unit,
            "yes" if number.expected else "",
            "yes" if number.name in stored else "",
            number.metric,
        )
        for number in REGISTERED.values()
    ]
    columns = ("number", "what it is", "unit", "expectation", "stored", "Prometheus")
    return f"{NUMBERS}\n{markdown_table(columns, rows, right=set())}\n"


def manifest() -> str:
    """A table for each part of the spec, in the schema's order."""
    spec = schema_of(RUN)["properties"]["spec"]
    sections = [("`spec`", _fields(spec, ""))]
    for name, part in spec["properties"].items():
        inner = part.get("items", part)
        if name != "podTemplate" and "properties" in inner:
            path = f"{name}[]" if part["type"] == "array" else name
            sections.append((f"`spec.{path}`", list(_nested(inner, ""))))
    pods = spec["properties"]["podTemplate"]["properties"]["spec"]["properties"]
    sections.append(
        ("`spec.podTemplate.spec`", [row for row in _fields({"properties": pods}, "") if row[-1] != REFUSED])
    )
    columns = ("field", "default", "allowed", "what it is")
    tables = [f"## {heading}\n\n{markdown_table(columns, rows, right=set())}" for heading, rows in sections]
    return "\n\n".join([MANIFEST.rstrip(), *tables]) + "\n"


def _fields(schema: Schema, path: str) -> list[tuple[str, str, str, str]]:
    required = set(schema.get("required", ()))
    return [
        (
            f"{path}{name}{'[]' if field.get('type') == 'array' else ''}",
            "required" if name in required else _default(field),
            _allowed(field.get("items", field) if field.get("type") == "array" else field),
            field.get("description", ""),
        )
        for name, field in schema["properties"].items()
    ]


def _nested(schema: Schema, path: str) -> Iterator[tuple[str, str, str, str]]:
    """The fields, each followed by its own."""
    for row, (name, field) in zip(_fields(schema, path), schema["properties"].items(), strict=True):
        yield row
        inner = field.get("items", field)
        if "properties" in inner:
            yield from _nested(inner, f"{path}{name}{'[]' if field['type'] == 'array' else ''}.")


def _default(field: Schema) -> str:
    value = field.get("default", "")
    return "" if isinstance(value, dict | list) else str(value).lower() if isinstance(value, bool) else str(value)


def _allowed(field: Schema) -> str:
    if "enum" in field:
        return ", ".join(field["enum"])
    if "minimum" in field and "maximum" in field and field["maximum"] < 2**31 - 1:
        return f"{field['minimum']} to {field['maximum']}"
    if field.get("x-kubernetes-int-or-string"):
        return "number or text"
    return {"boolean": "true, false", "integer": "integer", "string": "text"}.get(field.get("type", ""), "")


def objects() -> str:
    """A table for the status, and one for each part of a result."""
    run, result = (schema_of(kind)["properties"] for kind in KINDS)
    parts = [("A run's `status`", run["status"])]
    parts += [(f"A result's `{name}`", result[name]) for name in ("summary", "expectations", "result")]
    columns = ("field", "allowed", "what it is")
    written = []
    for heading, part in parts:
        rows = [(name, values, what) for name, _, values, what in _nested(part.get("items", part), "")]
        written.append(f"## {heading}\n\n{markdown_table(columns, rows, right=set())}")
    return "\n\n".join([OBJECTS.rstrip(), *written]) + "\n"


def profiles() -> str:
    """The ready ones, and the fields of one."""
    written = Profile.model_json_schema(by_alias=True)
    fields = structural(written, written["$defs"], "Profile")
    preset = ("preset", "", "a name above", "A ready-made profile. A field next to it replaces the preset's field.")
    own = [row for row in _nested(fields, "") if row[0] != "name"]
    rows = [
        (
            name,
            profile.platform,
            f"{profile.slice_chips or 1} {profile.resource or profile.device_class or 'node'}",
            ", ".join(f"{key}={value}" for key, value in profile.node_selector.items()),
            ", ".join(f"{each.key}{f'={each.value}' if each.value else ''}" for each in profile.tolerations),
            "yes" if name in ALWAYS else "",
        )
        for name, profile in ready().items()
    ]
    columns = ("profile", "platform", "a pod asks for", "labels of its nodes", "tolerates", "always exists")
    ready_ = markdown_table(columns, rows, right=set())
    table = markdown_table(("field", "default", "allowed", "what it is"), [preset, *own], right=set())
    return f"{PROFILES}\n## Ready-made profiles\n\n{ready_}\n\n## Fields\n\n{table}\n"


def targets() -> str:
    """Chips, the names of their targets, what each needs, and what is exact."""
    chips = compile_targets.chips().values()
    rows = [(each.name, each.title, _memory(each), each.links, each.source) for each in chips]
    chip_table = markdown_table(("chip", "what it is", "memory", "links", "source"), rows, right=set())
    every = [compile_targets.find(name) for name in compile_targets.names()]
    names = [(chip.name, ", ".join(each.name for each in every if each.chip is chip)) for chip in chips]
    needs = [
        (
            platform,
            compile_targets.EXTRAS[platform],
            ", ".join(packages),
            MACHINES[platform],
        )
        for platform, packages in compile_targets.NEEDS.items()
    ]
    told = [number for number in MEASURED.values() if number.name in TOLD_BY_COMPILING - NOT_FOR_TARGETS]
    exact = [
        (
            number.name,
            number.meaning.partition(".")[0],
            *("estimate" if of in number.estimated_for else "exact" for of in ("cuda", "tpu")),
            "estimate" if DISPATCHED in number.estimated_for else "exact" if number.name in DISPATCH_TELLS else "",
        )
        for number in told
    ]
    need_table = markdown_table(("for", "extra", "packages", "on"), needs, right=set())
    heads = ("number", "what it is", "JAX, GPU", "JAX, TPU", "PyTorch")
    exact_table = markdown_table(heads, exact, right=set())
    tables = (
        ("Chips", f"{chip_table}\n\n{TARGETS_MEMORY}"),
        ("Names", markdown_table(("chip", "targets"), names, right=set())),
        ("What compiling needs", f"{need_table}\n\n{TARGETS_NEED}"),
        ("Exact, or an estimate", f"{exact_table}\n\n{TARGETS_EXACT}"),
        ("Frameworks", TARGETS_FRAMEWORKS),
    )
    return "\n\n".join([TARGETS.rstrip(), *(f"## {heading}\n\n{text}" for heading, text in tables)]) + "\n"


def _memory(chip: compile_targets.Chip) -> str:
    return f"{chip.memory_bytes:,}" if chip.memory_bytes else "what is free"


def reasons() -> str:
    """A table for each kind."""
    tables = []
    for kind, heading, retried in (
        (ConditionReason, "Of a run: `status.conditions[].reason`, `status.phase`", False),
        (AttemptReason, "Of an attempt at a case: `status.attempts[].reason`", True),
        (FailureReason, "Of a variant: `result.variants[].failure.reason`", False),
        (StopReason, "Of the end of a case: `result.stopped`", False),
    ):
        columns = ("reason", "what it means", "what to do", *(["retried"] if retried else []))
        rows = [
            (
                each.value,
                each.meaning,
                f"{each.remedy}." if each.remedy else "",
                *(["yes" if each.retried else ""] if retried else []),
            )
            for each in kind
        ]
        tables.append(f"## {heading}\n\n{markdown_table(columns, rows, right=set())}")
    return "\n\n".join([REASONS.rstrip(), *tables]) + "\n"


def troubleshooting() -> str:
    """What a message says while a case waits, what ends an attempt, how long anything may take, and what tests read."""
    causes = [(each.sentence, _sentence(each.remedy), each.wait.what) for each in Cause]
    advice = [(each.words, _sentence(each.remedy)) for each in Advice]
    waits = [(each.what, _limit(each.limit), each.ends_with or "it goes on") for each in Wait]
    failures = [
        (each.value, each.meaning, _sentence(each.remedy), "yes" if each.retried else "") for each in AttemptReason
    ]
    parts = [
        ("It does not start", STARTING, ("the message says", "what to do", "it waits for"), causes),
        ("What the cluster says", ADVICE, ("words", "what to do"), advice),
        ("An attempt failed", FAILED, ("reason", "what it means", "what to do", "retried"), failures),
        ("How long anything may take", WAITS, ("what is waited for", "for how long", "then"), waits),
    ]
    sections = [
        f"## {heading}\n\n{text}\n\n{markdown_table(columns, rows, right=set())}"
        for heading, text, columns, rows in parts
    ]
    return "\n\n".join([TROUBLESHOOTING.rstrip(), *sections, SEEN_TEXT, *_seen()]) + "\n"


def kubectl() -> str:
    """A section each, and what the exit codes mean."""
    sections = [f"## {each.name}\n\n{_command(each)}" for each in words.commands(plugin).values()]
    codes = [(str(code.value), code.meaning) for code in sorted(Exit)]
    table = markdown_table(("code", "what it means"), codes, right=set())
    return "\n\n".join([KUBECTL.rstrip(), *sections, f"## Exit codes\n\n{table}"]) + "\n"


def _command(command: words.Command) -> str:
    usage = " ".join(["kubectl accelbench", command.name, *(each.metavar for each in command.arguments), "[OPTIONS]"])
    rows = [
        (", ".join(each.options) or each.metavar, _values(each), each.help)
        for each in (*command.arguments, *command.options)
    ]
    told = "\n\n".join(" ".join(part.split()) for part in command.help.split("\n\n"))
    return f"```text\n{usage}\n```\n\n{told}\n\n{markdown_table(('', 'allowed', 'what it is'), rows, right=set())}"


def _values(parameter: words.Parameter) -> str:
    allowed = (f"{each} (default)" if each == parameter.default else each for each in parameter.choices)
    return ", ".join(allowed) or (parameter.metavar if parameter.options else "")


def _sentence(text: str) -> str:
    return f"{text}." if text else ""


def _limit(limit: Limit) -> str:
    duration = UNITS[limit.duration] if limit.duration else ""
    if limit.policy:
        first, *rest = limit.policy.split("_")
        field = f"{first}{''.join(part.capitalize() for part in rest)}"
        return f"{field}, {f'{duration} by default' if duration else limit.otherwise}"
    tries = f"{limit.tries} tries at least" if limit.tries else ""
    return ", ".join(part for part in (f"{duration} {limit.counted}".strip(), tries) if part) or limit.otherwise


def _seen() -> Iterator[str]:
    """What each trouble's test has read last."""
    for row, seen in yaml.safe_load(SEEN.read_text()).items():
        file, _, test = seen["test"].partition("::")
        yield f"### {row[0].upper()}{row[1:]}"
        for each in seen["conditions"]:
            yield f"```text\n{each['type']}={each['status']} {each['reason']}\n{each['message']}\n```"
        nothing = "" if seen["conditions"] else "Nothing is left to report anything. "
        yield f"{nothing}`{test}`, [{file.rpartition('/')[2]}](../../{file}), accelbench {seen['version']}"


def checks() -> str:
    """One table; a disturbance is no variant's doing."""
    rows = [
        (check.name, check.threshold, check.reason, "yes" if getattr(check, "disturbance", False) else "")
        for check in validity_checks()
    ]
    columns = ("check", "threshold", "why", "a round that fails it is measured again")
    return f"{CHECKS}\n{markdown_table(columns, rows, right=set())}\n"


def cli() -> str:
    """A section for each command, in the words of its `--help`."""
    root = typer.main.get_command(app)
    return "\n\n".join([CLI.rstrip(), *_commands(root, ())]) + "\n"


def _commands(command: object, path: tuple[str, ...]) -> Iterator[str]:
    said = CliRunner().invoke(app, [*path, "--help"], prog_name="accelbench", env={"COLUMNS": "100"}).stdout
    yield f"## {' '.join(('accelbench', *path))}\n\n```text\n{said.strip()}\n```"
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, (*path, name))


def metrics() -> str:
    """A table for each thing that is described, of whatever an operator at rest has, in the code's order."""
    tables: dict[str, list[tuple[str, ...]]] = {of: [] for of in DESCRIBED}
    for family in (*of_results(()), *of_the_operator(_nothing(Snapshot)), *Telemetry().instruments):
        [told] = family.describe() if isinstance(family, MetricWrapperBase) else [family]
        labels = tuple(family._labelnames)  # noqa: SLF001 - without samples nothing else tells them
        of, common = next((of, common) for of, common in DESCRIBED.items() if labels[: len(common)] == common)
        name = f"{told.name}_total" if told.type == "counter" else told.name
        tables[of].append((name, told.type, ", ".join(labels[len(common) :]), told.documentation))
    columns = ("metric", "type", "own labels", "what it is")
    written = []
    for of, rows in tables.items():
        has = f"All of them have the labels `{'`, `'.join(DESCRIBED[of])}`.\n\n" if DESCRIBED[of] else ""
        written.append(f"## {of}\n\n{has}{markdown_table(columns, rows, right=set())}")
    return "\n\n".join([METRICS.rstrip(), *written, JOINS.rstrip()]) + "\n"


def _nothing(of: Any) -> Any:
    """What a type has of nothing: no results, no runs, zeros."""
    if is_dataclass(of):
        hints = get_type_hints(of)
        return of(**{field.name: _nothing(hints[field.name]) for field in fields(of) if field.default is MISSING})
    return {Mapping: dict}.get(get_origin(of) or of, get_origin(of) or of)()


PAGES = {
    "checks.md": checks,
    "cli.md": cli,
    "metrics.md": metrics,
    "manifest.md": manifest,
    "objects.md": objects,
    "workloads.md": workloads,
    "numbers.md": numbers,
    "profiles.md": profiles,
    "targets.md": targets,
    "reasons.md": reasons,
    "kubectl.md": kubectl,
    "../operations/troubleshooting.md": troubleshooting,
}


def main(arguments: list[str] | None = None) -> int:
    """Write or check; returns the exit status."""
    parser = argparse.ArgumentParser(description="Generate the reference pages.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a page is out of date")
    check = parser.parse_args(arguments).check
    stale = []
    for name, render in PAGES.items():
        page, text = HERE / name, render()
        if not check:
            page.write_text(text)
        elif not page.exists() or page.read_text() != text:
            stale.append(str(page.resolve().relative_to(HERE.parents[1])))
    if stale:
        sys.stderr.write(f"out of date: {', '.join(stale)}: python docs/reference/build.py\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
