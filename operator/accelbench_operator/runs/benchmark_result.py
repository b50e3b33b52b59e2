"""Build the BenchmarkResult that stores the result of a case."""

from accelbench.api.metadata import ObjectMeta
from accelbench.api.result import MAXIMUM_MESSAGE, BenchmarkResult, JudgedExpectation, Result
from accelbench.cluster_api.async_client import Manifest
from accelbench.document import shorten
from accelbench.plan.names import result_name
from accelbench.verdict.expectations import ExpectationOutcome, evaluate
from accelbench_operator.runs.accept import Plan
from accelbench_operator.runs.job import identity_labels, owner_reference
from accelbench_operator.runs.observed import ObservedPod


def build_result(result: Result, plan: Plan, pod: ObservedPod) -> Manifest:
    """Return the manifest of the BenchmarkResult that stores `result`, with the run's expectations evaluated."""
    run, case = plan.run, result.case.name
    metadata = ObjectMeta(
        name=result_name(run.metadata.name, run.metadata.uid, case),
        namespace=run.metadata.namespace,
        labels=identity_labels(run, case),
    )
    expectations = [_judged_expectation(outcome) for outcome in evaluate(run.spec.expectations, result)]
    document = BenchmarkResult.from_result(
        result, metadata, expectations, node=pod.node or None, pod=pod.key.name, image=pod.image or None
    )
    body = document.model_dump(mode="json", by_alias=True, exclude_none=True)
    # The API server sets all other metadata.
    body["metadata"] = {key: body["metadata"][key] for key in ("name", "namespace", "labels")}
    if run.spec.run_policy.result_retention_policy == "Delete":
        # The cluster deletes an object together with its owner.
        body["metadata"]["ownerReferences"] = [owner_reference(run)]
    return body


def _judged_expectation(outcome: ExpectationOutcome) -> JudgedExpectation:
    """Convert an evaluated expectation to the form in which a BenchmarkResult stores it."""
    sentence_on_one_line = " ".join(outcome.sentence.split())
    message = shorten(sentence_on_one_line, MAXIMUM_MESSAGE)
    return JudgedExpectation(**dict(outcome.expectation), outcome=outcome.outcome, message=message)
