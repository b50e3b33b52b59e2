"""Suites as they may come out: what the reports of suites are tested on."""

from collections.abc import Sequence
from typing import Any

from accelbench.api.case import CaseVariant
from accelbench.api.environment import CaseEnvironment, digest_lock
from accelbench.api.manifest import parse_run
from accelbench.api.numbers import Numbers
from accelbench.api.result import Result
from accelbench.plan.versions import compare_releases, parse_releases
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


RELEASES = ("jax-0.8.3", "jax-0.9.2", "jax-0.10.2")
COMMON = {"numpy": "2.4.0", "scipy": "1.17.0"}
"""Packages that are the same in all environments."""


def environment(release: str, **packages: str) -> CaseEnvironment:
    """The environment of a release of JAX, as a runner has examined it; its jaxlib has the same version."""
    version = release.removeprefix("jax-")
    locked = {"jax": version, "jaxlib": version} | COMMON | packages
    return CaseEnvironment(
        name=release.replace(".", "-"),
        requirements=(f"jax=={version}",),
        interpreter=f"/environments/{release}/bin/python",
        packages=locked,
        python_version="3.11.7",
        lock_digest=digest_lock("3.11.7", locked),
    )


def released(
    environments: Sequence[CaseEnvironment], numbers: Sequence[Numbers], comparisons: Sequence[sample.Comparison]
) -> Result:
    """A case that compares the releases in `environments`, the first of which is the baseline."""
    releases = [f"jax-{each.packages['jax']}" for each in environments]
    case = sample.case((JIT,)).model_copy(
        update={
            "variants": tuple(
                CaseVariant(name=release, use=JIT, environment=each.name)
                for release, each in zip(releases, environments, strict=True)
            ),
            "environments": tuple(environments),
            "baseline": releases[0],
        }
    )
    variants = tuple(
        sample.variant(release, "0.001").model_copy(update={"use": JIT, "numbers": own})
        for release, own in zip(releases, numbers, strict=True)
    )
    fingerprint = sample.FINGERPRINT | {f"variant.{name}.version.jax": name.removeprefix("jax-") for name in releases}
    return sample.result(case=case, variants=variants, comparisons=tuple(comparisons), fingerprint=fingerprint)


def program(kernels: int | None, accessed_bytes: int | None, **more: int) -> Numbers:
    """The numbers of a compiled program."""
    return Numbers(kernels_per_call=kernels, accessed_bytes=accessed_bytes, **more)


def versions() -> Suite:
    """Three releases of JAX: one changes one of two programs; Flax and Python change with it."""
    old, middle, new = RELEASES
    environments = (
        environment(old, flax="0.12.6"),
        environment(middle, flax="0.12.6"),
        environment(new, flax="0.12.8"),
    )
    layer_norm = released(
        environments,
        (
            program(6, 103_000_000, program_size=41),
            program(6, 103_000_000, program_size=41),
            program(1, 33_600_000, program_size=38),
        ),
        (
            sample.comparison(middle, "equivalent", "1.003", "0.995", "1.011", old),
            sample.comparison(new, "faster", "2.31", "2.25", "2.38", old),
        ),
    )
    chain = released(
        environments,
        (program(100, 419_000_000),) * 3,
        (
            sample.comparison(middle, "equivalent", "0.999", "0.99", "1.008", old),
            sample.comparison(new, "inconclusive", "1.04", "0.98", "1.1", old),
        ),
    )
    releases = parse_releases([{"requirements": list(each.requirements)} for each in environments])
    runs = []
    for name, result in (("layer-norm", layer_norm), ("chain", chain)):
        (run,) = compare_releases(suite_run(name, None).run, releases)
        runs.append(SuiteRun(run, {"all": result}))
    return Suite("jax==0.8.3, jax==0.9.2, jax==0.10.2", "", tuple(runs))
