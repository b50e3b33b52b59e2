"""Strategies of hypothesis: runs of all kinds, users, faults, and ends of pods."""

from random import Random
from typing import Any

from hypothesis import strategies as st

from accelbench.api import labels
from operator_world.connection import FAULTS
from operator_world.nodes import DEADLINE, NODE_LOST, Fate
from operator_world.played import ENDINGS

INDEX = st.integers(0, 3)
SECONDS = st.sampled_from([1.0, 10.0, 60.0, 400.0, 2000.0])
HOURS = st.sampled_from([600.0, 3600.0, 3 * 3600.0])
WATCHED = st.sampled_from(["benchmarkruns", "benchmarkresults", "jobs", "pods"])
NONE = {"name": "no-such"}
QUEUE = {labels.QUEUE: "queue"}

FATES = st.builds(
    Fate,
    waits=st.sampled_from([2.0, 2.0, 60.0, 1000.0]),
    lasts=st.sampled_from([1.0, 30.0, 30.0, 600.0]),
    how=st.sampled_from([*ENDINGS, "whole", "whole", DEADLINE, NODE_LOST]),
)
FAULT = st.tuples(st.integers(0, 12), st.sampled_from(FAULTS))
"""So many requests go well, then this happens to one."""

POLICY = st.fixed_dictionaries(
    {"startDeadlineSeconds": st.sampled_from([600, 3600])},
    optional={
        "parallelism": st.integers(1, 3),
        "infrastructureRetries": st.integers(0, 2),
        "activeDeadlineSeconds": st.sampled_from([300, 3600]),
        "ttlSecondsAfterFinished": st.sampled_from([0, 60, 3600]),
        "suspend": st.booleans(),
        "resultRetentionPolicy": st.just("Delete"),
    },
)
RUN = st.fixed_dictionaries(
    {"sizes": st.sampled_from([(64,), (64,), (64, 128), (64, 128, 256)]), "runPolicy": POLICY},
    optional={
        "labels": st.sampled_from([{}, QUEUE]),
        "workload": st.sampled_from([{"name": "matmul-chain"}] * 7 + [NONE]),
    },
)
CHANGE = st.sampled_from(
    [{"suspend": True}, {"suspend": False}, {"cancel": True}, {"parallelism": 3}, {"ttlSecondsAfterFinished": 10}]
)

APPLY = st.tuples(st.just("apply"), RUN)
USER = st.one_of(
    APPLY,
    st.tuples(st.just("policy"), INDEX, CHANGE),
    st.tuples(st.just("delete"), st.sampled_from(["benchmarkruns", "pods", "benchmarkresults"]), INDEX),
    st.tuples(st.just("delete_job"), INDEX),
    st.tuples(st.just("preempt"), INDEX),
)
TROUBLE = st.one_of(
    st.tuples(st.just("kill"), INDEX, SECONDS),
    st.tuples(st.just("end"), INDEX, SECONDS),
    st.tuples(st.just("stand_still"), INDEX, SECONDS),
    st.tuples(st.just("skew"), INDEX, st.sampled_from([-10.0, -2.0, 2.0, 10.0])),
    st.tuples(st.just("away"), HOURS),
    st.tuples(
        st.just("out"),
        st.sampled_from(["lost", "unanswered", "busy", "failing", "unavailable", "slow", "late"]),
        st.sampled_from(["", "", "leases", "jobs", "pods", "log", "benchmarkresults", "status", "events"]),
        SECONDS,
    ),
    st.tuples(st.just("lag"), WATCHED, st.sampled_from([1.0, 20.0, 200.0])),
    st.sampled_from([("expire",), ("end_watches",), ("hang",)]),
)
PASSES = st.tuples(st.just("passes"), SECONDS)
STEP = st.one_of(PASSES, PASSES, USER, USER, TROUBLE)

Step = tuple[Any, ...]


def scenarios(longest: int) -> st.SearchStrategy[dict[str, Any]]:
    """One begins with a run; then so many chapters at most, a handful of steps each."""
    return st.fixed_dictionaries(
        {
            "seed": st.integers(0, 2**16),
            "first": RUN,
            "chapters": _many(st.lists(STEP, min_size=4, max_size=12), longest),
            "faults": _many(st.lists(FAULT, max_size=12), longest),
            "fates": _many(FATES, 4 * longest),
        }
    )


def _many(each: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[list[Any]]:
    """As often many as few."""
    return st.integers(0, most).flatmap(lambda count: st.lists(each, min_size=count, max_size=count))


def storm(seed: int, steps: int = 100) -> dict[str, Any]:
    """A scenario of which no minute is quiet: for what hypothesis, which begins with little, is slow to find."""
    random = Random(seed)  # noqa: S311 - a storm that can be had again
    troubles: list[Step] = [
        ("kill", 0, 5.0),
        ("kill", 1, 60.0),
        ("end", 0, 20.0),
        ("stand_still", 0, 100.0),
        ("stand_still", 1, 100.0),
        ("skew", 0, random.choice([-5.0, 5.0])),
        ("out", random.choice(["lost", "unanswered", "failing", "late"]), random.choice(["", "status", "jobs"]), 60.0),
        (
            "lag",
            random.choice(["benchmarkruns", "benchmarkresults", "jobs", "pods"]),
            random.choice([1.0, 30.0, 120.0]),
        ),
        *[("expire",), ("end_watches",), ("hang",)],
    ]
    users: list[Step] = [
        ("policy", -1, {"suspend": True}),
        ("policy", -2, {"suspend": False}),
        ("policy", -3, {"cancel": True}),
        *[("delete", plural, -1) for plural in ("benchmarkruns", "pods", "benchmarkresults")],
        *[("delete_job", -1), ("preempt", -1)],
    ]
    script: list[Step] = []
    for _ in range(steps):
        policy = {"parallelism": random.randint(1, 2), "startDeadlineSeconds": 3600}
        policy |= random.choice([{}, {"ttlSecondsAfterFinished": random.choice([0, 300])}])
        run = {"sizes": random.choice([(64,), (64, 128)]), "runPolicy": policy}
        script.append(random.choice([("apply", run), ("apply", run), random.choice(users), random.choice(troubles)]))
        script.append(("passes", random.uniform(1.0, 60.0)))
    hows = [*ENDINGS, *["whole"] * 6, DEADLINE, NODE_LOST]
    return {
        "seed": seed,
        "first": {"sizes": (64, 128)},
        "chapters": [script],
        "faults": [[(random.randint(5, 60), random.choice(FAULTS)) for _ in range(2 * steps)]],
        "fates": [Fate(random.uniform(2, 20), random.uniform(1, 90), random.choice(hows)) for _ in range(2 * steps)],
    }
