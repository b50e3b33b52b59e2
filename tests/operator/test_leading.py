"""Only one of several replicas writes: the fence before every write, and the election behind it."""

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
    """Accept and record every request."""

    def __init__(self) -> None:
        self.requests: list[str] = []

    def __getattr__(self, method: str) -> Any:
        async def request(*_: Any, **__: Any) -> dict[str, Any]:
            self.requests.append(method)
            return {}

        return request


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("leads", [True, False])
def test_a_replica_that_does_not_lead_writes_nothing(write: str, leads: bool) -> None:
    api = Recorder()
    cluster = Cluster(api, lambda: leads)  # type: ignore[arg-type]
    parameters = inspect.signature(getattr(cluster, write)).parameters
    request = getattr(cluster, write)(*[NAMES.get(parameter, ANYTHING) for parameter in parameters])
    if leads:
        asyncio.run(request)
        assert len(api.requests) == 1
    else:
        with pytest.raises(NotLeadingError):
            asyncio.run(request)
        assert api.requests == []


def test_every_method_that_writes_is_listed() -> None:
    assert set(WRITES) == {
        *("put_run_status", "delete_run", "create_job", "delete_job"),
        *("create_result", "delete_result", "create_event", "create_claim_template", "preview"),
    }


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Scripted:
    """Run an election whose tries at the Lease have the outcomes of a test: True, False, or an error."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.changes: list[bool] = []
        self.outcome: Any = True
        self.takes = 0.0

    async def go(self) -> bool:
        self.clock.now += self.takes
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return bool(self.outcome)

    def election(self) -> Election:
        client = ApiClient(Configuration())
        return Election(client, LeaseName("accelbench", "operator"), "me", self.changes.append, self.clock)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    found = Scripted()
    monkeypatch.setattr(LeaderElection, "try_acquire_or_renew", lambda _: found.go())
    return found


async def test_a_leader_that_was_paused_past_its_renewal_stops_before_any_request(scripted: Scripted) -> None:
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


async def test_a_network_error_does_not_end_an_election(scripted: Scripted) -> None:
    election = scripted.election()
    scripted.outcome = ConnectionRefusedError("no")
    assert await election.try_acquire_or_renew() is False
    scripted.outcome = True
    assert await election.try_acquire_or_renew() is True
    assert scripted.changes == [True]


async def test_a_leader_that_sees_another_holder_stops_at_once(scripted: Scripted) -> None:
    election = scripted.election()
    await election.try_acquire_or_renew()
    scripted.outcome = False
    election.observed_record = type("Record", (), {"holder_identity": "another"})()
    await election.try_acquire_or_renew()
    assert not election.leading()
    assert scripted.changes == [True, False]


async def test_a_gap_in_leading_between_two_renewals_is_reported_afterwards(scripted: Scripted) -> None:
    election = scripted.election()
    await election.try_acquire_or_renew()
    scripted.clock.now += RENEWAL_SECONDS + 1  # keys that came up meanwhile were left alone
    await election.try_acquire_or_renew()
    assert scripted.changes == [True, False, True]


def test_a_lease_is_never_free_while_its_holder_may_write() -> None:
    assert RENEWAL_SECONDS < LEASE_SECONDS
    assert LEASE_SECONDS + RETRY_SECONDS + REQUEST_SECONDS <= 15  # until another leads
