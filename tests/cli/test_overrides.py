import pytest
import yaml

from accelbench.local.errors import UsageError
from accelbench.local.overrides import override
from cli.command import EXAMPLE, MANIFEST

CHAIN = yaml.safe_load(MANIFEST)


@pytest.mark.parametrize(
    ("assignment", "where", "value"),
    [
        ("measurement.rounds.max=5", ("measurement", "rounds", "max"), 5),
        ("spec.measurement.rounds.max=5", ("measurement", "rounds", "max"), 5),
        ("workload.parameters.size=128", ("workload", "parameters", "size"), 128),
        ("workload.parameters.scaling=none", ("workload", "parameters", "scaling"), "none"),
        ("measurement.targetRelativeError=2%", ("measurement", "targetRelativeError"), "2%"),
        ("measurement.precision=bfloat16", ("measurement", "precision"), "bfloat16"),
        ("variants[1].use=jax/op-by-op", ("variants", 1, "use"), "jax/op-by-op"),
        ("variants[0].options.mode=max-autotune", ("variants", 0, "options", "mode"), "max-autotune"),
        ("runPolicy.suspend=true", ("runPolicy", "suspend"), True),
        ("accelerator.profile=nvidia", ("accelerator", "profile"), "nvidia"),
        ("baseline=jax/jit", ("baseline",), "jax/jit"),
        ("series=2", ("series",), "2"),
        ("sweep=[{name: size, values: [64, 128]}]", ("sweep",), [{"name": "size", "values": [64, 128]}]),
        ("workload.parameters.size=64, 128", ("sweep",), [{"name": "size", "values": [64, 128]}]),
        ("workload.parameters.scaling=[none, all]", ("sweep",), [{"name": "scaling", "values": ["none", "all"]}]),
        ("workload.parameters.scaling=none, all", ("workload", "parameters", "scaling"), "none, all"),
    ],
)
def test_a_path_is_set_to_the_value_in_the_fields_own_type(
    assignment: str, where: tuple[str | int, ...], value: object
) -> None:
    found = override(CHAIN, [assignment])["spec"]
    for key in where:
        found = found[key]
    assert found == value
    assert type(found) is type(value)


def test_a_swept_parameter_has_no_fixed_value_and_a_fixed_one_no_axis() -> None:
    swept = override(CHAIN, ["workload.parameters.size=64,128"])
    assert "size" not in swept["spec"]["workload"]["parameters"]
    fixed = override(swept, ["workload.parameters.size=32"])["spec"]
    assert (fixed["sweep"], fixed["workload"]["parameters"]["size"]) == ([], 32)


def test_a_ratio_that_looks_like_a_number_stays_a_string_as_the_api_requires() -> None:
    with_expectation = override(CHAIN, ["expectations=[{metric: speedup, variant: jax/jit}]"])
    changed = override(with_expectation, ["expectations[0].atLeast=2"])
    assert changed["spec"]["expectations"][0]["atLeast"] == "2"


def test_the_manifest_given_is_not_changed_and_the_last_assignment_wins() -> None:
    before = yaml.safe_load(MANIFEST)
    changed = override(before, ["measurement.seed=1", "measurement.seed=2"])
    assert before == CHAIN
    assert changed["spec"]["measurement"]["seed"] == 2


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("measurment.rounds.max=5", 'unknown path "measurment.rounds.max"; did you mean measurement.rounds.max?'),
        ("rounds.max=5", 'unknown path "rounds.max"; did you mean measurement.rounds.max?'),
        ("size=128", 'unknown path "size"; did you mean workload.parameters.size?'),
        ("measurement.rounds.maximum=5", "did you mean measurement.rounds.max?"),
        ("variants[1].usee=jax/jit", "did you mean variants[1].use?"),
        ("measurement.foo=3", "measurement has precision, "),
        ("measurement.round.max=3", "did you mean measurement.rounds.max?"),
        ("measurement.rounds.max.max=3", "did you mean measurement.rounds.max?"),
        ("zzz=1", "one of: className, series, workload, variants"),
        ("variants[7].use=jax/jit", '"variants[7].use": there is no [7]; the manifest lists 2'),
        ("measurement.rounds", "write PATH=VALUE"),
        ("=5", "write PATH=VALUE"),
        ("measurement..rounds=5", "write PATH=VALUE"),
        ("measurement[0]=5", 'unknown path "measurement[0]"; measurement has '),
        ("variants.use=5", 'unknown path "variants.use"'),
    ],
)
def test_a_wrong_path_is_refused_with_the_nearest_right_one(assignment: str, message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        override(CHAIN, [assignment])
    assert message in str(refusal.value)


def test_every_path_of_the_first_example_can_be_set() -> None:
    example = yaml.safe_load(EXAMPLE.read_text())
    changed = override(example, ["measurement.rounds.min=3", "measurement.timeLimitSeconds=60"])
    assert changed["spec"]["measurement"]["rounds"] == {"min": 3, "max": 3}


def test_a_manifest_without_a_spec_cannot_be_overridden() -> None:
    with pytest.raises(UsageError, match="no spec to change"):
        override(["not", "a", "mapping"], ["measurement.seed=1"])
