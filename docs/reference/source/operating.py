"""Write the pages for operators: metrics, reasons, troubleshooting."""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, get_origin, get_type_hints

import yaml
from prometheus_client.metrics import MetricWrapperBase
from pydantic.alias_generators import to_camel

from accelbench.api.reasons import AttemptReason, ConditionReason, FailureReason, StopReason
from accelbench.report.markdown import markdown_table
from accelbench_operator.metrics.families import (
    LIVE_LABELS,
    LIVE_VARIANT_LABELS,
    RESULT_LABELS,
    VARIANT_LABELS,
    operator_families,
    result_families,
)
from accelbench_operator.metrics.snapshot import Snapshot
from accelbench_operator.metrics.telemetry import Telemetry
from accelbench_operator.runs.pending import Advice, Cause
from accelbench_operator.runs.waits import Limit, Wait

DOCS = Path(__file__).resolve().parents[2]
RECORDED = DOCS / "operations" / "seen.yaml"
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
  or when newer results take the places that its namespace has within `accelbench_series_limit`. A newer result of the
  same series and case replaces the values; only `accelbench_run_info` gets new labels.

Prometheus keeps what it has stored of a series that has ended.
"""
JOINS = """## Joins

Other exporters know what the operator does not. A test runs each query on metrics in the exporter's own format.

GPU utilisation on the nodes that a run was measured on, from NVIDIA's dcgm-exporter. Its label `Hostname` has to be the
node's name: on Kubernetes that is the exporter's default.

```promql
DCGM_FI_DEV_GPU_UTIL
  and on (Hostname) label_replace(accelbench_run_info{run="example"}, "Hostname", "$1", "node", "(.+)")
```

The phase of each pod of a run, from kube-state-metrics. It exports labels of pods only with
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
COMMON_LABELS = {
    "Of a variant": VARIANT_LABELS,
    "Of a result": RESULT_LABELS,
    "Of a variant while it is measured": LIVE_VARIANT_LABELS,
    "Of a case while it is measured": LIVE_LABELS,
    "Of the operator": (),
}
"""Labels that the metrics of each group begin with, by the group's heading; longer sequences of labels are first."""
REASONS = """# Reasons

Every reason that `kubectl` and results give. Generated from the code by `python docs/reference/build.py`.
"""
DURATION_TEXTS = {
    timedelta(minutes=2): "2 minutes",
    timedelta(minutes=5): "5 minutes",
    timedelta(minutes=10): "10 minutes",
    timedelta(minutes=30): "30 minutes",
    timedelta(days=1): "24 hours",
}
TROUBLESHOOTING = """# Troubleshooting

Why a run does not start, does not end, or ends without a result; what to do; and how long each wait can last.
Generated from the code by `python docs/reference/build.py`.

```console
$ kubectl get bmr                  # the state of each run, in one word
$ kubectl describe bmr my-run      # Finished: why it waits; Succeeded: why it failed; Events: when it ended
$ accelbench profiles              # which nodes fit which profile, and why not
```

If `kubectl get bmr` shows no status of a run, no operator serves it: none is installed, or it serves other namespaces
or another `spec.className`. `kubectl wait --for=condition=Finished` returns for every run, unless its user has
suspended it or it waits in a queue without a `startDeadlineSeconds`. [Reasons](../reference/reasons.md) explains every
reason in a status.
"""
STARTING = """While a case waits, the message of `Finished` gives the reason. `{cluster_message}` comes from the
cluster: from the scheduler, the kubelet, the API server, or the events of the Job or pod."""
ADVICE = """If the cluster's words contain these, the message gives this advice instead of the advice above."""
FAILED = """The reason is in `status.attempts[]`, and after the last attempt also in the message of `Succeeded`.
If the column `retried` names a field of `runPolicy`, the case is tried again, at most that many times. In a sweep, the
other cases continue.

`kubectl accelbench logs RUN` shows the log of a case without a valid result for an hour after its end, and so does
`kubectl logs`: the last three Jobs of such cases stay, with their pods (`runPolicy.failedJobsHistorySeconds`,
`runPolicy.failedJobsHistoryLimit`). These pods hold no device. If a quota of Jobs or pods (`count/jobs.batch`,
`count/pods`) holds up another case, the operator deletes the oldest of these Jobs first, and says so in an Event,
`MadeRoom`.

As long as its Job stays, the document of a case shows what was asked of the runner, also if it left no result. Of each
Job that `kubectl get jobs --selector=accelbench.dev/run=RUN` shows, this prints it:
`kubectl get job JOB -o jsonpath='{.spec.template.metadata.annotations.accelbench\\.dev/case-document}'`.
Afterwards, the run's `spec` and `status.runner` are what each case was made of.

A `ttlSecondsAfterFinished` that a policy or a webhook adds to these Jobs deletes them, with their logs, although their
results may not have been read: the Event `JobExpires` warns of it."""
WAITS = """Every wait ends by itself, except for two that a user controls: a suspended run, and a queue without a
deadline."""
DELETION = """## A deletion does not end

The operator sets no finalizers, so runs, their namespace and the definitions can be deleted while it is scaled to
zero. What can hold a run is its own Jobs and pods (`kubectl delete --cascade=foreground`, Argo CD's foreground
deletion), or a finalizer of another program. After a minute, or at once if the API server does not let the operator
delete a Job, an Event of the run, `DeletionHeld`, names what holds it and what to do.

To end it by hand, remove what the Event names:

- **A pod on a node that is gone**: `kubectl delete pod POD --force --grace-period=0`. On a node that is only
  unreachable, its container may go on.
- **A Job that a webhook or a policy keeps**: have it allow the deletion, then `kubectl delete job JOB`.
- **A finalizer of a program that is gone**:
  `kubectl patch bmr RUN --type=merge --patch='{"metadata": {"finalizers": null}}'`.

A namespace that stays `Terminating` has the reason in its own conditions: `kubectl get namespace NAMESPACE -o yaml`.
No Event can be created there. Without an operator there are no Events either: `kubectl get bmr RUN -o yaml` shows the
finalizers, and `kubectl get jobs,pods --selector=accelbench.dev/run=RUN` what is left."""
RECORDED_TEXT = """## Messages of runs

A test provokes each of these problems, on a real node, or on a real control plane with a simulated node. These
are the messages of the run, word for word; names end in random letters."""


def metrics() -> str:
    """Return the page of metrics: a table for each group, with all metrics of an operator that has no runs."""
    rows_by_group: dict[str, list[tuple[str, ...]]] = {group: [] for group in COMMON_LABELS}
    for family in (*result_families(()), *operator_families(_empty(Snapshot)), *Telemetry().instruments):
        [metric] = family.describe() if isinstance(family, MetricWrapperBase) else [family]
        labels = tuple(family._labelnames)  # noqa: SLF001 - the only source of labels without samples
        group = next(group for group, common in COMMON_LABELS.items() if labels[: len(common)] == common)
        own_labels = labels[len(COMMON_LABELS[group]) :]
        name = f"{metric.name}_total" if metric.type == "counter" else metric.name
        rows_by_group[group].append((name, metric.type, ", ".join(own_labels), metric.documentation))
    columns = ("metric", "type", "own labels", "what it is")
    sections = []
    for group, rows in rows_by_group.items():
        common = "`, `".join(COMMON_LABELS[group])
        introduction = f"All of them have the labels `{common}`.\n\n" if common else ""
        sections.append(f"## {group}\n\n{introduction}{markdown_table(columns, rows, right=set())}")
    return "\n\n".join([METRICS.rstrip(), *sections, JOINS.rstrip()]) + "\n"


def _empty(value_type: Any) -> Any:
    """Return an empty value of a type: a zero, an empty container, or a dataclass whose fields are empty."""
    if is_dataclass(value_type):
        types = get_type_hints(value_type)
        required_fields = [field.name for field in fields(value_type) if field.default is MISSING]
        return value_type(**{name: _empty(types[name]) for name in required_fields})
    constructor = get_origin(value_type) or value_type  # `tuple` for `tuple[int, ...]`
    return {} if constructor is Mapping else constructor()


def reasons() -> str:
    """Return the page of reasons, with a table for each kind of reason."""
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
                reason.value,
                reason.meaning,
                _sentence(reason.remedy),
                *([reason.retry_limit or ""] if retried else []),
            )
            for reason in kind
        ]
        tables.append(f"## {heading}\n\n{markdown_table(columns, rows, right=set())}")
    return "\n\n".join([REASONS.rstrip(), *tables]) + "\n"


def troubleshooting() -> str:
    """Return the page of troubleshooting: why a case waits or fails, how long waits last, and messages of real runs."""
    causes = [(cause.sentence, _sentence(cause.remedy), cause.wait.awaited) for cause in Cause]
    advice = [(entry.contained_text, _sentence(entry.remedy)) for entry in Advice]
    waits = [(wait.awaited, _limit(wait.limit), wait.ends_with or "the run continues") for wait in Wait]
    failures = [
        (reason.value, reason.meaning, _sentence(reason.remedy), reason.retry_limit or "") for reason in AttemptReason
    ]
    parts = [
        ("It does not start", STARTING, ("message", "what to do", "it waits for"), causes),
        ("Advice for the cluster's messages", ADVICE, ("words", "what to do"), advice),
        ("An attempt failed", FAILED, ("reason", "what it means", "what to do", "retried"), failures),
        ("How long anything may take", WAITS, ("what is waited for", "for how long", "then"), waits),
    ]
    sections = [
        f"## {heading}\n\n{text}\n\n{markdown_table(columns, rows, right=set())}"
        for heading, text, columns, rows in parts
    ]
    return "\n\n".join([TROUBLESHOOTING.rstrip(), *sections, DELETION, RECORDED_TEXT, *_recorded_messages()]) + "\n"


def _sentence(text: str) -> str:
    """Return the text with a full stop; empty for an empty text."""
    return f"{text}." if text else ""


def _limit(limit: Limit) -> str:
    """Describe how long a wait lasts: by a field of the run's policy, a duration, or a number of tries."""
    duration = DURATION_TEXTS[limit.duration] if limit.duration else ""
    if limit.policy:
        default = f"{duration} by default" if duration else limit.otherwise
        return f"{to_camel(limit.policy)}, {default}"
    counted_duration = f"{duration} {limit.counted}".strip()
    tries = f"{limit.tries} tries at least" if limit.tries else ""
    return ", ".join(filter(None, (counted_duration, tries))) or limit.otherwise


def _recorded_messages() -> Iterator[str]:
    """Yield paragraphs with the conditions of a run that the test of each problem has recorded."""
    for problem, record in yaml.safe_load(RECORDED.read_text()).items():
        file, _, test = record["test"].partition("::")
        yield f"### {problem[0].upper()}{problem[1:]}"
        for condition in record["conditions"]:
            state = f"{condition['type']}={condition['status']} {condition['reason']}"
            yield f"```text\n{state}\n{condition['message']}\n```"
        nothing = "" if record["conditions"] else "Nothing is left to report anything. "
        yield f"{nothing}`{test}`, [{file.rpartition('/')[2]}](../../{file}), accelbench {record['version']}"
