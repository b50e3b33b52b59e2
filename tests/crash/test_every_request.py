"""The operator is killed, or its request fails, at every request in a run's life: nothing is done twice or lost.

The requests are found by living each life once without faults; a request that only a restarted operator makes is found
where a fault leads to it, and met by a fault of its own.
"""

import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from accelbench_operator.engine.watch import PAGE
from accelbench_operator.rbac import LEASE, RULES
from cluster.cluster import Cluster
from cluster.wait import wait_until
from crash.harness import AT_A_TIME, Lived, Request, counted, is_of_a_start, is_of_an_election, live, storm
from crash.lives import LIVES, Life
from crash.proxy import KILLS, OF_A_WATCH, OF_A_WRITE, OF_ANY, WRITES, Rule
from crash.world import World
from operator_world.fake_kubelet import FakeKubelet

pytestmark = pytest.mark.slow

CRDS = Path(__file__).parents[2] / "crds"
FIRST = "measured"
"""Whose start-up stands for those of all."""
ELSEWHERE = frozenset(
    {
        "delete benchmarkresults",  # of retention, which looks every ten minutes: tests/operator/test_retention.py
        "update benchmarkruns/finalizers",  # is asked of whoever sets an owner, and is no request
        "list events",  # about a pod that does not say why it waits: tests/operator/test_every_wait.py
        "list workloads",  # of a queue: tests/kueue
        "list localqueues",
    }
)
NOW_AND_THEN = frozenset({"get benchmarkruns"})
"""Made where an operator hears of a run between two writes of its own: it asks which version is the later one."""

Rules = tuple[Rule, ...]


@pytest.fixture(scope="module")
def world(control_plane: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    control_plane.define(CRDS)
    wait_until(lambda: not control_plane.kubectl("get", "bmr,bmres", check=False).returncode, what="the kinds")
    with FakeKubelet(control_plane, tmp_path_factory.mktemp("kubelet")) as kubelet, World(control_plane, kubelet) as it:
        yield it


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Gives directories, one after another."""
    numbers = itertools.count()
    return lambda: tmp_path_factory.mktemp(f"life-{next(numbers)}")


@pytest.fixture(scope="module")
def faultless(world: World, place: Callable[[], Path]) -> dict[str, Lived]:
    """Each life as it is."""
    with ThreadPoolExecutor(AT_A_TIME) as threads:
        lived = dict(zip(LIVES, threads.map(lambda life: live(world, life, place()), LIVES.values()), strict=True))
    assert {name: each.wrong for name, each in lived.items() if each.wrong} == {}
    return lived


def own_requests(name: str, faultless: dict[str, Lived]) -> Iterator[Request]:
    """What of a life's requests, with all that goes before it, is in no life that comes earlier in the list."""
    if LIVES[name].leased:
        yield from filter(is_of_an_election, faultless[name].requests)
        return
    earlier = list(itertools.takewhile(lambda each: each != name, LIVES))
    known = {life_prefix(faultless[each].requests, end) for each in earlier for end in faultless[each].requests}
    for request in faultless[name].requests:
        if is_of_a_start(request):
            if name == FIRST:
                yield request
        elif life_prefix(faultless[name].requests, request) not in known:
            yield request


def life_prefix(requests: Iterable[Request], end: Request) -> tuple[Request, ...]:
    own = [request for request in requests if not is_of_a_start(request)]
    return tuple(own[: own.index(end) + 1]) if end in own else ()


def tell(line: str) -> None:
    """For whoever runs it with -s."""
    sys.stdout.write(f"{line}\n")


def kinds_of(lived: Iterable[Lived]) -> set[str]:
    return {kind for each in lived for kind, _ in each.requests}


def explore(life: Life, experiments: list[Rules], living: Callable[[Life, Rules], Lived], known: set[str]) -> list[str]:
    """Lives each experiment, then those at requests that only these have led to; what was wrong."""
    wrong = []
    with ThreadPoolExecutor(AT_A_TIME) as threads:
        while experiments:
            lived = list(threads.map(functools.partial(living, life), experiments))
            for rules, each in zip(experiments, lived, strict=True):
                for found in each.wrong:
                    tell(f"  {', '.join(map(str, rules))}: {found[:1000]}")
                title = f"{life.name}, {' then '.join(map(str, rules))}"
                wrong += [f"{title}: {found}\n{each.log[-2000:]}" for found in each.wrong]
            # Where a fault leads is not the same each time.
            missed = [rule for rule in itertools.chain(*unmet(lived)) if rule.kind not in NOW_AND_THEN]
            wrong += never_met(itertools.chain(*experiments), missed) if len(experiments[0]) == 1 else []
            tell(f"{life.name}: {len(experiments)} lives with {sum(each.restarts for each in lived)} kills")
            led_to = {
                kind: rules for rules, each in zip(experiments, lived, strict=True) for kind in kinds_of([each]) - known
            }
            known |= led_to.keys()
            experiments = [
                (*(Rule(rule.kind, rule.ordinal, rule.fault) for rule in rules), Rule(kind, 1, fault))
                for kind, rules in led_to.items()
                for fault in KILLS
            ]
    return wrong


def unmet(lived: Iterable[Lived]) -> Iterator[tuple[Rule, ...]]:
    return (each.unmet for each in lived)


def never_met(rules: Iterable[Rule], missed: list[Rule]) -> list[str]:
    """Faults of a kind of request that none of its lives has met: how often one is made may differ by one or two."""
    tell(f"  {len(missed)} faults met no request: {', '.join(map(str, missed))}"[:500])
    met = {(rule.kind, rule.fault) for rule in rules if rule.fired}
    return sorted({f"never met: {rule}" for rule in missed if (rule.kind, rule.fault) not in met})


def test_an_operator_killed_at_one_request_of_each_kind_ends_with_the_same_objects(
    world: World, place: Callable[[], Path], faultless: dict[str, Lived]
) -> None:
    def living(life: Life, rules: Rules) -> Lived:
        return live(world, life, place(), rules)

    wrong, tried = [], set[str]()
    for name in LIVES:
        first = {kind: ordinal for kind, ordinal in reversed([*own_requests(name, faultless)]) if kind not in tried}
        tried |= first.keys()
        experiments = [(Rule(kind, ordinal, fault),) for kind, ordinal in first.items() for fault in KILLS]
        wrong += explore(LIVES[name], experiments, living, kinds_of(faultless.values()))
    assert wrong == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", LIVES)
def test_an_operator_killed_before_or_after_any_request_ends_with_the_same_objects(
    name: str, world: World, place: Callable[[], Path], faultless: dict[str, Lived]
) -> None:
    def living(life: Life, rules: Rules) -> Lived:
        return live(world, life, place(), rules)

    experiments = [(Rule(kind, ordinal, fault),) for kind, ordinal in own_requests(name, faultless) for fault in KILLS]
    assert experiments
    assert explore(LIVES[name], experiments, living, kinds_of(faultless.values())) == []


@pytest.mark.nightly
def test_the_operator_recovers_from_every_kind_of_failed_request(
    world: World, place: Callable[[], Path], faultless: dict[str, Lived]
) -> None:
    runs: dict[str, Life] = {}
    rules: list[Rule] = []
    for life in LIVES.values():
        # Requests for one run are counted without those that an operator makes at its start for all of them.
        own = [kind for kind, ordinal in faultless[life.name].requests if not is_of_a_start((kind, ordinal))]
        for kind, ordinal in counted(() if life.leased else own):
            for fault in OF_A_WRITE if kind.split()[0] in WRITES else OF_ANY:
                run = f"{life.name}-{len(runs):04}"
                runs[run] = life
                rules.append(Rule(kind, ordinal, fault, run))
    tell(
        f"{len(rules)} faults at {len({(rule.run.rpartition('-')[0], rule.kind) for rule in rules})} kinds of requests"
    )
    assert storm(world, runs, place(), rules) == {}
    assert never_met(rules, [rule for rule in rules if not (rule.fired or rule.kind in NOW_AND_THEN)]) == []


def test_a_watch_that_ends_expires_or_is_refused_hides_nothing(
    world: World, place: Callable[[], Path], faultless: dict[str, Lived]
) -> None:
    watches = sorted(kind for kind in kinds_of(faultless.values()) if kind.startswith("watch "))
    assert len(watches) == 4
    experiments = [(Rule(kind, 1, fault),) for kind in watches for fault in OF_A_WATCH]
    with ThreadPoolExecutor(AT_A_TIME) as threads:
        lived = list(threads.map(lambda rules: live(world, LIVES[FIRST], place(), rules), experiments))
    wrong = {str(rules[0]): each.wrong for rules, each in zip(experiments, lived, strict=True)}
    assert {rule: found for rule, found in wrong.items() if found} == {}
    assert list(itertools.chain(*unmet(lived))) == []


def test_a_list_of_runs_that_expires_between_two_pages_is_repeated(world: World, place: Callable[[], Path]) -> None:
    runs = {f"listed-{number:02}": LIVES[FIRST] for number in range(2 * PAGE)}
    rule = Rule("list benchmarkruns", 2, "list-expired")
    assert storm(world, runs, place(), [rule]) == {}
    assert rule.fired


def test_every_permission_of_the_operator_is_used_in_these_tests(faultless: dict[str, Lived]) -> None:
    allowed = {f"{verb} {rule.resource}" for rule in (*RULES, LEASE) for verb in rule.verbs}
    after_a_fault = {"get resourceclaimtemplates"}
    assert allowed - kinds_of(faultless.values()) - ELSEWHERE == after_a_fault
