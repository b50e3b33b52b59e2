"""Of several replicas one acts: the fence before every write, and the election that it asks."""

import asyncio
import inspect
from typing import Any

import pytest
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.leaderelection.leaderelection import LeaderElection

from accelbench.cluster_api.kinds import JOB
from accelbench_operator.engine.election import (
    LEASE_SECONDS,
    RENEWAL_SECONDS,
    REQUEST_SECONDS,
    RETRY_SECONDS,
    Election,
    LeaseName,
    NotLeadingError,
)
from accelbench_operator.runs.cluster import Cluster

READS = ("get_", "list_", "read_")
WRITES = [name for name, _ in inspect.getmembers(Cluster, inspect.isfunction) if not name.startswith((*READS, "_"))]
ANYTHING: Any = {"metadata": {"namespace": "team", "name": "chain"}}


NAMES = {"namespace": "team", "name": "chain", "uid": "uid", "version": "1", "kind": JOB}


class Recorder:
    """Takes every request, and tells of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattr__(self, method: str) -> Any:
        async def request(*_: Any, **__: Any) -> dict[str, Any]:
            self.asked.append(method)
            return {}

        return request


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("leads", [True, False])
def test_whoever_does_not_lead_writes_nothing_at_all(write: str, leads: bool) -> None:
    api = Recorder()
    cluster = Cluster(api, lambda: leads)  # type: ignore[arg-type]
    parameters = inspect.signature(getattr(cluster, write)).parameters
    request = getattr(cluster, write)(*[NAMES.get(parameter, ANYTHING) for parameter in parameters])
    if leads:
        asyncio.run(request)
        assert len(api.asked) == 1
    else:
        with pytest.raises(NotLeadingError):
            asyncio.run(request)
        assert api.asked == []


def test_every_write_of_a_cluster_is_known() -> None:
    assert set(WRITES) == {
        *("put_run_status", "delete_run", "create_job", "delete_job"),
        *("create_result", "delete_result", "create_event", "create_claim_template", "preview"),
    }


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Scripted:
    """An election whose tries at the Lease go as a test says: True, False, or an error."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.told: list[bool] = []
        self.outcome: Any = True
        self.takes = 0.0

    async def go(self) -> bool:
        self.clock.now += self.takes
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return bool(self.outcome)

    def election(self) -> Election:
        client = ApiClient(Configuration())
        return Election(client, LeaseName("accelbench", "operator"), "me", self.told.append, self.clock)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    found = Scripted()
    monkeypatch.setattr(LeaderElection, "try_acquire_or_renew", lambda _: found.go())
    return found


async def test_a_leader_that_stood_still_past_its_renewal_knows_it_before_it_asks_anybody(scripted: Scripted) -> None:
    election = scripted.election()
    await election.try_acquire_or_renew()
    assert election.leading()
    scripted.clock.now += RENEWAL_SECONDS - 0.01
    assert election.leading()
    scripted.clock.now += 0.01
    assert not election.leading()


async def test_a_renewal_counts_from_before_it_was_asked_for(scripted: Scripted) -> None:
    election = scripted.election()
    scripted.takes = 2.0  # the answer took its time, and others count from when the server wrote
    await election.try_acquire_or_renew()
    scripted.clock.now += RENEWAL_SECONDS - 2
    assert not election.leading()


async def test_an_error_of_the_network_ends_no_election(scripted: Scripted) -> None:
    election = scripted.election()
    scripted.outcome = ConnectionRefusedError("no")
    assert await election.try_acquire_or_renew() is False
    scripted.outcome = True
    assert await election.try_acquire_or_renew() is True
    assert scripted.told == [True]


async def test_who_sees_another_holder_stops_at_once(scripted: Scripted) -> None:
    election = scripted.election()
    await election.try_acquire_or_renew()
    scripted.outcome = False
    election.observed_record = type("Record", (), {"holder_identity": "another"})()
    await election.try_acquire_or_renew()
    assert not election.leading()
    assert scripted.told == [True, False]


async def test_a_gap_that_no_try_has_seen_is_told_when_it_is_over(scripted: Scripted) -> None:
    election = scripted.election()
    await election.try_acquire_or_renew()
    scripted.clock.now += RENEWAL_SECONDS + 1  # keys that came up meanwhile were left alone
    await election.try_acquire_or_renew()
    assert scripted.told == [True, False, True]


def test_a_lease_is_never_free_while_its_holder_may_write() -> None:
    assert RENEWAL_SECONDS < LEASE_SECONDS
    assert LEASE_SECONDS + RETRY_SECONDS + REQUEST_SECONDS <= 15  # until another leads
