"""Refusals that only a CEL rule can express."""

from api.bad.table import axis, bad, below, body, expectation, observation, rounds, unmatched

NAMES = '["pytorch/eager", "jax/jit"]'

VARIANT_NAME = "^[A-Za-z0-9]([-A-Za-z0-9._/]*[A-Za-z0-9])?$"
OF_THE_BASELINE = (
    "spec.expectations: Invalid value: %s compares a variant with the baseline; "
    "expect it of a variant that is not the baseline"
)

ARRIVALS_TOGETHER = (
    "spec.measurement: Invalid value: protocol: arrivals and the field arrivals need each other, as in "
    "protocol: arrivals, arrivals: {ratePerSecond: 100}"
)


def no_variant(path: str, name: str, names: str = NAMES) -> str:
    return (
        f'{path}: Invalid value: no variant is called "{name}"; correct it here or in spec.variants, which has {names}'
    )


RULES = (
    bad(
        "one variant twice",
        {"spec.variants": [{"use": "jax/jit"}, {"use": "pytorch/eager"}, {"use": "jax/jit"}]},
        'spec.variants: Invalid value: two variants are called "jax/jit"; give one of them a name of its own',
    ),
    bad(
        "one name twice, with a line break that no message can hold",
        {"spec.variants": [{"use": "jax/jit\n"}, {"use": "jax/jit\n"}]},
        *(unmatched(f"spec.variants[{index}].use", r"jax/jit\n", VARIANT_NAME) for index in range(2)),
        'spec.variants: Invalid value: two variants are called "..."; give one of them a name of its own',
    ),
    bad(
        "a variant named as another's use",
        {"spec.variants[0].name": "jax/jit"},
        'spec.variants: Invalid value: two variants are called "jax/jit"; give one of them a name of its own',
    ),
    bad(
        "a baseline that is no variant",
        {"spec.baseline": "pytorch/egaer"},
        no_variant("spec.baseline", "pytorch/egaer"),
    ),
    bad(
        "a baseline by use where the variant has a name",
        {"spec.variants[0].name": "eager", "spec.baseline": "pytorch/eager"},
        no_variant("spec.baseline", "pytorch/eager", '["eager", "jax/jit"]'),
    ),
    bad(
        "more least than most rounds", rounds(21, 20), "spec.measurement.rounds: Invalid value: min 21 is above max 20"
    ),
    bad(
        "more rounds than the default's most",
        {"spec.measurement.rounds.min": 30},
        "spec.measurement.rounds: Invalid value: min 30 is above max 20",
    ),
    bad(
        "arrivals without their times",
        {"spec.measurement.protocol": "arrivals"},
        ARRIVALS_TOGETHER,
    ),
    bad(
        "times of arrivals for calls",
        {"spec.measurement": {"protocol": "latency", "arrivals": {"ratePerSecond": 99}}},
        ARRIVALS_TOGETHER,
    ),
    bad(
        "requests that take longer than the run may",
        {"spec.measurement": {"protocol": "arrivals", "arrivals": {"ratePerSecond": 10}, "timeLimitSeconds": 999}},
        "spec.measurement.arrivals: Invalid value: the requests of rounds.min rounds arrive in 1000 s, and "
        "timeLimitSeconds is 999: ask for fewer requests or more time",
    ),
    bad(
        "one value twice",
        {"spec.sweep": [{"name": "size", "values": [1, 2, 1]}]},
        "spec.sweep[0].values[2]: Duplicate value: 1",
    ),
    bad(
        "one string twice",
        {"spec.sweep": [{"name": "size", "values": ["a", "a"]}]},
        'spec.sweep[0].values[1]: Duplicate value: "a"',
    ),
    bad(
        "one parameter swept twice",
        {"spec.sweep": [axis("size", 1), axis("length", 1), axis("size", 2)]},
        'spec.sweep: Invalid value: "size" is swept twice; put its values into one axis',
    ),
    bad(
        "257 cases of two axes",
        {"spec.sweep": [axis("a", 129), axis("b", 2)]},
        "spec.sweep: Invalid value: 258 cases, at most 256; split the sweep over several runs",
    ),
    bad(
        "5^4 cases",
        {"spec.sweep": [axis(name, 5) for name in "abcd"]},
        "spec.sweep: Invalid value: 625 cases, at most 256; split the sweep over several runs",
    ),
    bad(
        "a parameter both fixed and swept",
        {"spec.workload.parameters": {"size": 512}, "spec.sweep": [axis("size", 2)]},
        'spec.sweep: Invalid value: "size" is both swept and fixed; remove it from workload.parameters',
    ),
    bad(
        "an interval of no width",
        {"spec.measurement.targetRelativeError": "0%"},
        'spec.measurement.targetRelativeError: Invalid value: "0%": a percentage above 0% up to 50%, such as "1%"',
    ),
    bad(
        "a target without its sign",
        {"spec.measurement.targetRelativeError": "1"},
        'spec.measurement.targetRelativeError: Invalid value: "1": a percentage above 0% up to 50%, such as "1%"',
    ),
    bad(
        "a coin's confidence",
        {"spec.measurement.confidence": "49.9%"},
        'spec.measurement.confidence: Invalid value: "49.9%": a percentage from 50% to 99.99%, such as "95%"',
    ),
    bad(
        "certainty",
        {"spec.measurement.confidence": "100%"},
        'spec.measurement.confidence: Invalid value: "100%": a percentage from 50% to 99.99%, such as "95%"',
    ),
    bad(
        "a confidence too close to it",
        {"spec.measurement.confidence": "99.995%"},
        'spec.measurement.confidence: Invalid value: "99.995%": a percentage from 50% to 99.99%, such as "95%"',
    ),
    bad(
        "an endless percentage",
        {"spec.measurement.equivalenceMargin": "2.00000000%"},
        "spec.measurement.equivalenceMargin: Too long: may not be more than 8 bytes",
    ),
    bad(
        "a margin in words",
        {"spec.measurement.equivalenceMargin": "two"},
        'spec.measurement.equivalenceMargin: Invalid value: "two": a percentage from 0% to 50%, such as "2%"',
    ),
    bad(
        "an expectation of no variant",
        expectation(variant="jax/jt", atLeast="2"),
        no_variant("spec.expectations", "jax/jt"),
    ),
    bad(
        "an expectation of nothing",
        expectation(),
        "spec.expectations[0]: Invalid value: give atLeast, atMost or both; for an observation, equals is possible too",
    ),
    bad(
        "an expectation of a metric and an observation",
        expectation(observation="compilations", atLeast="2"),
        "spec.expectations[0]: Invalid value: give exactly one of metric, observation",
    ),
    bad(
        "an expectation of neither",
        {"spec.expectations": [{"variant": "jax/jit", "atLeast": "2"}]},
        "spec.expectations[0]: Invalid value: give exactly one of metric, observation",
    ),
    bad(
        "a time that equals another",
        expectation(metric="seconds", equals="0.5"),
        "spec.expectations[0]: Invalid value: equals is only for observations; for a metric, give atLeast or atMost",
    ),
    bad(
        "an observation that equals something and is bounded too",
        observation(equals="2", atMost="3"),
        "spec.expectations[0]: Invalid value: equals excludes atLeast and atMost; remove them",
    ),
    bad(
        "an observation of no variant",
        observation(variant="jax/jt", equals="2"),
        no_variant("spec.expectations", "jax/jt"),
    ),
    bad(
        "an expectation that nothing can meet",
        expectation(atLeast="10", atMost="9.5"),
        "spec.expectations[0]: Invalid value: atLeast is above atMost, so nothing can meet it",
    ),
    bad(
        "a speedup of the baseline",
        expectation(variant="pytorch/eager", atLeast="1"),
        OF_THE_BASELINE % "speedup",
    ),
    bad(
        "a baseline that pays back",
        expectation(metric="paysBackSteps", variant="pytorch/eager", atLeast="1"),
        OF_THE_BASELINE % "paysBackSteps",
    ),
    bad(
        "a ratio of the baseline's compiling to itself",
        expectation(metric="compileRatio", variant="pytorch/eager", atMost="1"),
        OF_THE_BASELINE % "compileRatio",
    ),
    bad(
        "a ratio of the baseline's memory to itself",
        expectation(metric="peakMemoryRatio", variant="pytorch/eager", atMost="1"),
        OF_THE_BASELINE % "peakMemoryRatio",
    ),
    bad(
        "a speedup of the chosen baseline",
        {**expectation(atLeast="1"), "spec.baseline": "jax/jit"},
        OF_THE_BASELINE % "speedup",
    ),
    bad(
        "several things at once",
        {"spec.variants": [], "spec.baseline": "jax/jit", **rounds(9, 8), "spec.measurement.seed": -1},
        body("spec.variants", "0", "should have at least 1 items"),
        no_variant("spec.baseline", "jax/jit", "[]"),
        "spec.measurement.rounds: Invalid value: min 9 is above max 8",
        below("spec.measurement.seed", -1, 0),
    ),
    bad(
        "several things of which one hides the rules",
        {"spec.baseline": "jax/jt", "spec.measurement.precision": "fp32", "spec.measurement.seed": -1},
        'spec.measurement.precision: Unsupported value: "fp32": '
        'supported values: "float64", "float32", "tf32", "bfloat16", "float16", "default"',
        below("spec.measurement.seed", -1, 0),
    ),
)
