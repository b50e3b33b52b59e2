"""Too many, too few, too much, and values that no enum has."""

from api.bad.table import above, axis, bad, below, body, expectation, observation, rounds, unmatched, unsupported

METRICS = (
    *("speedup", "paysBackSteps", "seconds", "compileSeconds", "warmCompileSeconds", "compileRatio"),
    *("firstCallRatio", "launchSpread", "peakMemoryRatio", "parity", "recompilations"),
    *(
        "kernelsPerCall",
        "dispatchedPerCall",
        "dispatchedBytes",
        "productsPerCall",
        "programSize",
        "temporaryBytes",
        "aliasedBytes",
        "accessedBytes",
    ),
    *("argumentBytes", "outputBytes", "peakBytes", "kernels", "fusions", "collectives", "collectiveBytes"),
    *("allReduces", "allReduceBytes", "allGathers", "allGatherBytes", "reduceScatters", "reduceScatterBytes"),
    *("allToAlls", "allToAllBytes", "collectivePermutes", "collectivePermuteBytes", "flopsPerCall", "fits"),
)


def variants(count: int) -> list[dict[str, str]]:
    return [{"use": "jax/jit", "name": f"variant-{number}"} for number in range(count)]


BOUNDS = (
    bad("no variant at all", {"spec.variants": []}, body("spec.variants", "0", "should have at least 1 items")),
    bad(
        "a seventeenth variant",
        {"spec.variants": variants(17)},
        "spec.variants: Too many: 17: must have at most 16 items",
    ),
    bad(
        "an axis without a value",
        {"spec.sweep": [axis("size", 0)]},
        body("spec.sweep[0].values", "0", "should have at least 1 items"),
    ),
    bad(
        "five axes",
        {"spec.sweep": [axis(name, 1) for name in "abcde"]},
        "spec.sweep: Too many: 5: must have at most 4 items",
    ),
    bad(
        "257 values",
        {"spec.sweep": [axis("size", 257)]},
        "spec.sweep[0].values: Too many: 257: must have at most 256 items",
    ),
    bad(
        "65 parameters",
        {"spec.workload.parameters": {f"p{number}": 1 for number in range(65)}},
        "spec.workload.parameters: Too many: 65: must have at most 64 items",
    ),
    bad(
        "a parameter too long",
        {"spec.workload.parameters": {"text": "a" * 257}},
        "spec.workload.parameters.text: Too long: may not be more than 256 bytes",
    ),
    bad(
        "a parameter above what JSON readers hold",
        {"spec.workload.parameters": {"size": 2**53}},
        body("spec.workload.parameters.size", str(2**53), "should be less than or equal to 9007199254740991"),
    ),
    bad(
        "too few rounds",
        rounds(2, 20),
        below("spec.measurement.rounds.min", 2, 3),
    ),
    bad(
        "too many rounds",
        rounds(5, 51),
        above("spec.measurement.rounds.max", 51, 50),
    ),
    bad(
        "no time",
        {"spec.measurement.timeLimitSeconds": 9},
        below("spec.measurement.timeLimitSeconds", 9, 10),
    ),
    bad(
        "more than a day",
        {"spec.measurement.timeLimitSeconds": 86401},
        above("spec.measurement.timeLimitSeconds", 86401, 86400),
    ),
    bad(
        "a seed below zero",
        {"spec.measurement.seed": -1},
        below("spec.measurement.seed", -1, 0),
    ),
    bad(
        "two nodes",
        {"spec.accelerator.nodes": 2},
        "spec.accelerator.nodes: Invalid value: 2: accelbench uses one for now; more would be reserved and stay idle",
    ),
    bad(
        "two devices",
        {"spec.accelerator.devicesPerNode": 2},
        "spec.accelerator.devicesPerNode: Invalid value: 2: "
        "accelbench uses one for now; more would be reserved and stay idle",
    ),
    bad(
        "no parallelism",
        {"spec.runPolicy.parallelism": 0},
        below("spec.runPolicy.parallelism", 0, 1),
    ),
    bad(
        "retries without end",
        {"spec.runPolicy.infrastructureRetries": 11},
        above("spec.runPolicy.infrastructureRetries", 11, 10),
    ),
    bad(
        "disruptions without end",
        {"spec.runPolicy.disruptionRetries": 101},
        above("spec.runPolicy.disruptionRetries", 101, 100),
    ),
    bad(
        "more failed Jobs than cases",
        {"spec.runPolicy.failedJobsHistoryLimit": 257},
        above("spec.runPolicy.failedJobsHistoryLimit", 257, 256),
    ),
    bad(
        "failed Jobs that go before they fail",
        {"spec.runPolicy.failedJobsHistorySeconds": -1},
        below("spec.runPolicy.failedJobsHistorySeconds", -1, 0),
    ),
    bad(
        "a deadline of nothing",
        {"spec.runPolicy.activeDeadlineSeconds": 0},
        below("spec.runPolicy.activeDeadlineSeconds", 0, 1),
    ),
    bad(
        "a deletion before the end",
        {"spec.runPolicy.ttlSecondsAfterFinished": -1},
        below("spec.runPolicy.ttlSecondsAfterFinished", -1, 0),
    ),
    bad(
        "a precision that nothing has",
        {"spec.measurement.precision": "fp32"},
        unsupported(
            "spec.measurement.precision", "fp32", "float64", "float32", "tf32", "bfloat16", "float16", "default"
        ),
    ),
    bad(
        "no request in a second",
        {"spec.measurement": {"protocol": "arrivals", "arrivals": {"ratePerSecond": 0}}},
        below("spec.measurement.arrivals.ratePerSecond", 0, 1),
    ),
    bad(
        "too few requests for a percentile",
        {"spec.measurement": {"protocol": "arrivals", "arrivals": {"ratePerSecond": 50, "requests": 99}}},
        below("spec.measurement.arrivals.requests", 99, 100),
    ),
    bad(
        "a metric that nothing has",
        expectation(metric="latency", atMost="2"),
        unsupported("spec.expectations[0].metric", "latency", *METRICS),
    ),
    bad(
        "an observation whose name is no name",
        observation(observation="compilations by call", equals="1"),
        unmatched("spec.expectations[0].observation", "compilations by call", r"^[a-z][A-Za-z0-9]*$"),
    ),
    bad(
        "a bound below zero",
        expectation(atLeast="-1"),
        unmatched("spec.expectations[0].atLeast", "-1", r"^[0-9]+(\.[0-9]+)?$"),
    ),
    bad(
        "a bound with an exponent",
        expectation(atLeast="1e3"),
        unmatched("spec.expectations[0].atLeast", "1e3", r"^[0-9]+(\.[0-9]+)?$"),
    ),
)
