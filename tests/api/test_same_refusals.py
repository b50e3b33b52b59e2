"""The law behind the tables: the API server and `accelbench validate` refuse the same of every manifest."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from accelbench.api.admission import refusals
from accelbench.api.manifest import RUN
from api.manifests import changed, runner
from api.refusals import without_advice
from api.requests import Runs

FULL = changed(
    {
        "spec.workload.parameters": {"length": 1},
        "spec.sweep": [{"name": "size", "values": [1, 2]}, {"name": "width", "values": [1]}],
        "spec.expectations": [{"metric": "speedup", "variant": "jax/jit", "atLeast": "1"}],
        "spec.podTemplate": runner(env=[{"name": "A"}], resources={"limits": {"cpu": 1}}),
    }
)

TEXTS = st.text("aZ0-._/%é \n\"'", max_size=70)
NAMES = st.sampled_from(["size", "name", "use", "values", "jax/jit", "pytorch/eager", "runner", "ACCELBENCH_A", "min"])
PERCENTAGES = st.sampled_from(["", "0%", "1%", "50%", "50.0001%", "99.99%", "100%", "1", "2.50", "007%"])
DECIMALS = st.sampled_from(["0", "1", "1.5", "2.50", "10", "007", "1e3", "-1", "1%", ""])
INTEGERS = st.integers(-3, 300) | st.integers(-(2**60), 2**60)
FRACTIONS = st.sampled_from([0.5, -1.5, 3.25, 99.99])
SCALARS = st.one_of(st.none(), st.booleans(), INTEGERS, FRACTIONS, NAMES, PERCENTAGES, TEXTS)
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=18) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=20
)
PARAMETERS = st.dictionaries(NAMES, INTEGERS | TEXTS, max_size=4)
VALUES = st.lists(st.integers(0, 40) | NAMES, max_size=130)
VARIANTS = st.lists(st.fixed_dictionaries({"use": NAMES}, optional={"name": NAMES, "options": PARAMETERS}), max_size=17)
EXPECTATIONS = st.lists(
    st.fixed_dictionaries(
        {"variant": NAMES},
        optional={
            "metric": st.sampled_from(["speedup", "seconds", "latency"]),
            "observation": NAMES,
            "atLeast": DECIMALS,
            "atMost": DECIMALS,
            "equals": TEXTS,
        },
    ),
    max_size=3,
)
SWEEP = st.lists(st.fixed_dictionaries({"name": NAMES, "values": VALUES}), max_size=5)
VOLUMES = st.lists(
    st.fixed_dictionaries({"name": NAMES}, optional={"emptyDir": st.just({}), "secret": st.just({"secretName": "a"})}),
    max_size=2,
)

PLAUSIBLE = {
    "spec.series": NAMES | TEXTS,
    "spec.workload.name": NAMES | TEXTS,
    "spec.workload.parameters": PARAMETERS,
    "spec.workload.parameters.size": INTEGERS | TEXTS,
    "spec.variants": VARIANTS,
    "spec.variants[0].use": NAMES | TEXTS,
    "spec.variants[1].name": NAMES | TEXTS,
    "spec.baseline": NAMES,
    "spec.sweep": SWEEP,
    "spec.sweep[0].name": NAMES,
    "spec.sweep[0].values": VALUES,
    "spec.sweep[1].values": VALUES,
    "spec.measurement.precision": st.sampled_from(["tf32", "fp32"]),
    "spec.measurement.rounds.min": st.integers(0, 60),
    "spec.measurement.rounds.max": st.integers(0, 60),
    "spec.measurement.confidence": PERCENTAGES,
    "spec.measurement.targetRelativeError": PERCENTAGES,
    "spec.measurement.seed": INTEGERS,
    "spec.accelerator.nodes": st.integers(0, 2),
    "spec.podTemplate.spec.containers[0].env[0].name": NAMES | TEXTS,
    "spec.podTemplate.spec.containers[0].resources.limits": st.dictionaries(NAMES, INTEGERS | TEXTS, max_size=2),
    "spec.podTemplate.spec.volumes": VOLUMES,
    "spec.expectations": EXPECTATIONS,
    "spec.expectations[0].metric": st.sampled_from(["speedup", "seconds", "latency"]),
    "spec.expectations[0].variant": NAMES,
    "spec.expectations[0].atLeast": DECIMALS,
    "spec.expectations[0].atMost": DECIMALS,
    "spec.expectations[0].observation": NAMES,
    "spec.expectations[0].equals": TEXTS,
    "spec.runPolicy.suspend": st.booleans(),
    "spec.runPolicy.activeDeadlineSeconds": INTEGERS,
    "spec.unknown": st.just(1),
}
PATHS = [*PLAUSIBLE, "spec.workload", "spec.variants[0]", "spec.sweep[0]", "spec.measurement", "spec.runPolicy"]
LIKELY = st.lists(st.sampled_from(list(PLAUSIBLE)), min_size=1, max_size=4, unique=True).flatmap(
    lambda paths: st.fixed_dictionaries({path: PLAUSIBLE[path] for path in paths})
)
UNLIKELY = st.dictionaries(st.sampled_from(PATHS), ANYTHING, min_size=1, max_size=2)


def from_us(manifest: dict[str, Any]) -> set[str]:
    return {without_advice(str(problem)) for problem in refusals(RUN, manifest)}


@settings(max_examples=300, deadline=None)
@given(changes=LIKELY | LIKELY | UNLIKELY)
def test_the_server_and_validate_refuse_the_same_manifests(runs: Runs, changes: dict[str, Any]) -> None:
    manifest = FULL
    # Longer paths first: they need what a shorter one may replace.
    for path in sorted(changes, key=len, reverse=True):
        manifest = changed({path: changes[path]}, manifest)
    assert from_us(manifest) == runs.refusals_to_create(manifest)
