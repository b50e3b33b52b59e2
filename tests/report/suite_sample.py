"""Suites as they may come out: what the reports of suites are tested on."""

from typing import Any

from accelbench.api.manifest import parse_run
from accelbench.api.result import Result
from accelbench.report.suite.view import Suite, SuiteRun
from report import sample

EAGER, JIT, OP_BY_OP = sample.USES
SHARED = sample.Comparison(
    variant=JIT,
    baseline=EAGER,
    rounds=0,
    confidence="0.95",
    invalid=("shared-device",),
    sentence=f"Invalid: jax/jit fails shared-device: {sample.CROWDED}.",
)


def suite_run(name: str, result: Result | None, *, uses: tuple[str, ...] = (EAGER, JIT), page: str = "") -> SuiteRun:
    """A run of a suite, with this result or none."""
    manifest = {
        "apiVersion": "accelbench.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": name},
        "spec": {"workload": {"name": "matmul-chain"}, "variants": [{"use": use} for use in uses]},
    }
    return SuiteRun(parse_run(manifest, name), {"all": result} if result else {}, page)


def compared(verdict: str, speedup: str, lower: str, upper: str, **changes: Any) -> Result:
    """A case with one comparison."""
    return sample.result(
        case=sample.case((EAGER, JIT)),
        variants=(sample.variant(EAGER, "0.00117"), sample.variant(JIT, "0.000574")),
        comparisons=(sample.comparison(JIT, verdict, speedup, lower, upper),),
        **changes,
    )


FASTER = compared("faster", "4.0", "3.9", "4.1")
SLOWER = compared("slower", "0.5", "0.48", "0.52")
EQUIVALENT = compared("equivalent", "1.0", "0.99", "1.01")
UNDECIDED = compared("inconclusive", "1.2", "0.95", "1.5")
INVALID = sample.result(
    case=sample.case((EAGER, JIT)),
    variants=(sample.variant(EAGER, "0.00117"), sample.variant(JIT, "0.000574")),
    comparisons=(SHARED,),
)


def suite(*runs: SuiteRun) -> Suite:
    return Suite("demo", "Cases that somebody chose.", runs)


def decided() -> Suite:
    """Four cases with a speedup each, one of them undecided: there is a mean."""
    results = {"slower-case": SLOWER, "faster-case": FASTER, "undecided-case": UNDECIDED, "equivalent-case": EQUIVALENT}
    return suite(*(suite_run(name, result) for name, result in results.items()))


def mixed() -> Suite:
    """Every outcome, a case with three variants, and one that is observed: there is no mean."""
    return suite(
        suite_run("faster-case", FASTER, page="faster-case/report.html"),
        suite_run("slower-case", SLOWER),
        suite_run("three-variants", sample.result(), uses=sample.USES),
        suite_run("undecided-case", UNDECIDED),
        suite_run("equivalent-case", EQUIVALENT),
        suite_run("invalid-case", INVALID),
        suite_run("noisy-case", sample.noisy(), uses=sample.USES),
        suite_run("missing-case", None),
        suite_run("observed-case", sample.observing(), uses=sample.USES[:2]),
    )
