"""Runs, plans, Jobs, pods and results as small as the operator's tests need them."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from accelbench.api.case import Case
from accelbench.api.profiles import Profiles
from accelbench.api.reasons import RetryLimit
from accelbench.api.result import (
    Certificate,
    Check,
    Comparison,
    Failure,
    Quantiles,
    Result,
    VariantResult,
)
from accelbench.api.run import Attempt
from accelbench.delivery.log import Headline, digest_of, encode_document
from accelbench.document import timestamp
from accelbench.plan.names import attempt_name
from accelbench_operator.engine.kinds import Key
from accelbench_operator.runs.accept import Plan, accept
from accelbench_operator.runs.attempts import Observed
from accelbench_operator.runs.observed import ObservedJob, ObservedPod
from accelbench_operator.runs.summary import Summary, summarize
from accelbench_operator.settings import Settings

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
UID = "11111111-2222-3333-4444-555555555555"
NAMESPACE = "team"
NAME = "chain"
IMAGE = "registry.example/runner:1"
ALL_RETRIES: frozenset[RetryLimit] = frozenset(RetryLimit)
NO_RETRIES: frozenset[RetryLimit] = frozenset()
SETTINGS = Settings(runner_image=IMAGE, profiles=Profiles())


def run_manifest(
    *, sizes: Iterable[int] = (64,), uid: str = UID, labels: dict[str, str] | None = None, **spec: Any
) -> Any:
    """Return a BenchmarkRun as the API server gives it, with one case for each size."""
    return {
        "apiVersion": "accelbench.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "uid": uid,
            "generation": 1,
            "resourceVersion": "1",
            "labels": labels or {},
        },
        "spec": {
            "workload": {"name": "matmul-chain"},
            "variants": [{"use": "pytorch/eager"}, {"use": "jax/jit"}],
            "sweep": [{"name": "size", "values": list(sizes)}],
            "measurement": {"timeLimitSeconds": 60},
        }
        | spec,
    }


def large_run(number: int, text: int = 140, **metadata: Any) -> dict[str, Any]:
    """Return a suspended run of 256 cases whose parameters and options have `text` characters each."""
    script = {"configMapKeyRef": {"name": "scripts", "key": "my_filter.py"}}
    options = {f"o{option}": "y" * text for option in range(16)}
    spec = {
        "workload": {"script": script, "parameters": {f"p{number}": "x" * text for number in range(64)}},
        "variants": [{"use": "numpy/eager", "name": f"v{variant}", "options": options} for variant in range(16)],
        "sweep": [{"name": name, "values": list(range(1, 17))} for name in ("size", "length")],
        "runPolicy": {"suspend": True},
    }
    run = run_manifest()
    run["metadata"] |= {"name": f"large-{number}", "uid": f"u-{number}", **metadata}
    return run | {"spec": spec}


def make_plan(*, profiles: Profiles | None = None, **run: Any) -> Plan:
    """Return the plan of an accepted run."""
    plan = accept(run_manifest(**run), profiles or Profiles(), IMAGE)
    assert isinstance(plan, Plan), plan
    return plan


def make_attempt(plan: Plan, index: int = 0, number: int = 1, **fields: Any) -> Attempt:
    """Return the recorded attempt at the plan's case of that index."""
    case = plan.cases[index].name
    job = attempt_name(NAME, UID, case, number)
    return Attempt(**{"case": case, "number": number, "job": job, "start_time": timestamp(NOW)} | fields)


def job_uid(attempt: Attempt) -> str:
    """Return the UID of the attempt's Job: the recorded one, if any."""
    return attempt.job_uid or f"uid-of-{attempt.job}"


def make_job(plan: Plan, attempt: Attempt, **fields: Any) -> ObservedJob:
    """Return the Job of an attempt after the Job controller processed it."""
    key = Key("Job", NAMESPACE, attempt.job, job_uid(attempt))
    standard = {
        "key": key,
        "owner": UID,
        "case": attempt.case,
        "created_at": NOW,
        "started_at": NOW,
        "is_suspended": False,
        "has_ended": False,
    }
    if fields.get("is_suspended"):
        standard |= {"started_at": None, "suspended_since": NOW, "queue": "team-a"}
    return ObservedJob(**standard | fields)


def make_pod(attempt: Attempt, **fields: Any) -> ObservedPod:
    """Return the pod of an attempt, not yet running."""
    standard = {
        "key": Key("Pod", NAMESPACE, f"{attempt.job}-pod", f"uid-of-{attempt.job}-pod"),
        "owner": UID,
        "case": attempt.case,
        "job": attempt.job,
        "job_uid": job_uid(attempt),
        "created_at": NOW,
        "phase": "Pending",
        "accepted_at": None,
        "started_at": None,
        "deletion_time": None,
        "ended_at": None,
    }
    return ObservedPod(**standard | fields)


def running(attempt: Attempt, since: datetime = NOW, **fields: Any) -> ObservedPod:
    """Return a pod whose container runs."""
    return make_pod(attempt, **{"phase": "Running", "accepted_at": since, "started_at": since} | fields)


def ended(attempt: Attempt, exit_code: int = 0, **fields: Any) -> ObservedPod:
    """Return a pod whose container has ended."""
    phase = "Succeeded" if exit_code == 0 else "Failed"
    times = {"accepted_at": NOW, "started_at": NOW, "ended_at": NOW + timedelta(seconds=30)}
    return make_pod(attempt, **{"phase": phase, "exit_code": exit_code, **times} | fields)


def observe(
    jobs: Iterable[ObservedJob] = (), pods: Iterable[ObservedPod] = (), results: Iterable[Summary] = (), **failures: Any
) -> Observed:
    """Return the observation of these objects; the operator has created the Jobs."""
    jobs, pods = tuple(jobs), tuple(pods)
    return Observed(
        {job.key.name: job for job in jobs},
        {job: tuple(found) for job, found in groupby(pods, lambda pod: pod.job)},
        {result.case: result for result in results},
        failures.get("failures", {}),
        own_jobs={pod.job: pod.job_uid for pod in pods} | {job.key.name: job.key.uid for job in jobs},
    )


def make_result(case: Case, *, complete: bool = True, failure: Failure | None = None, speedup: str = "2") -> Result:
    """Return a result in which jax/jit is twice as fast, or failed."""
    names = ("geometric_mean", "p5", "p25", "median", "p75", "p95")
    seconds = Quantiles(**{f"{name}_seconds": "0.1" for name in names})
    baseline, other = case.variants
    ends = {"lower": f"{0.95 * float(speedup):g}", "upper": f"{1.05 * float(speedup):g}"}
    found = {"verdict": "faster", "speedup": speedup, **ends} if failure is None else {}
    return Result(
        case=case,
        complete=complete,
        unit="product",
        started=timestamp(NOW),
        finished=timestamp(NOW),
        rounds=5,
        variants=(
            VariantResult(name=baseline.name, use=baseline.use, seconds=seconds),
            VariantResult(name=other.name, use=other.use, seconds=None if failure else seconds, failure=failure),
        ),
        comparisons=(
            Comparison(
                variant=other.name, baseline=baseline.name, rounds=5, confidence="0.95", sentence="measured", **found
            ),
        ),
        certificate=Certificate(checks=(Check(name="parity", outcome="passed", reading="0"),)),
    )


def make_summary(plan: Plan, index: int = 0, *, not_met: tuple[str, ...] = (), **result: Any) -> Summary:
    """Return the summary of a stored result of the plan's case of that index."""
    case = plan.cases[index]
    key = Key("BenchmarkResult", NAMESPACE, f"result-of-{case.name}", f"uid-of-the-result-of-{case.name}")
    return summarize(make_result(case, **result), key, UID, not_met)


def make_log(result: Result, *checkpoints: Result) -> str:
    """Return the container's log: checkpoints, noise, and the result."""
    lines = ["compiling ..."]
    for number, checkpoint in enumerate(checkpoints, start=1):
        lines += encode_document("checkpoint", str(number), checkpoint.to_json())
    lines += encode_document("result", "1", result.to_json())
    return "\n".join([*lines, "bye", ""])


def make_headline(result: Result, **fields: Any) -> str:
    """Return the termination message of a result."""
    standard = {
        "case": result.case.name,
        "attempt": result.case.origin.attempt,
        "state": "finished",
        "round": result.rounds,
        "digest": digest_of(result.to_json()),
        "comparisons": result.comparisons,
    }
    return Headline(**standard | fields).to_message()
