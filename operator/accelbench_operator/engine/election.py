"""Which replica acts: a Lease, by the kubernetes client's own election, and a fence before every write.

The client's election (37.0.2) holds, with four things that it leaves to others and that are done here: its Lease cannot
be created; an error of the network ends its loop; a replica that was paused believes that it leads until its next
renewal; and nothing is released at the end. So whoever asks is told by the time of the last renewal, measured from
before it was asked for, on a clock that nobody sets. A leader that wakes up after its renewal deadline writes nothing,
and a Lease is never free before.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus

from kubernetes.aio.client import ApiClient, ApiException, V1Lease, V1ObjectMeta
from kubernetes.aio.leaderelection.electionconfig import Config
from kubernetes.aio.leaderelection.leaderelection import LeaderElection
from kubernetes.aio.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.aio.leaderelection.resourcelock.leaselock import LeaseLock

from accelbench.cluster_api.async_client import NO_ANSWER
from accelbench_operator.engine.queue import RetryError

logger = logging.getLogger(__name__)

LEASE_SECONDS = 10
"""For so long after a leader's last renewal nobody else takes the Lease: it bounds how long a failover takes."""
RENEWAL_SECONDS = 7
"""For so long after a renewal was asked for a leader may write."""
RETRY_SECONDS = 2
REQUEST_SECONDS = 3.0


class NotLeadingError(RetryError):
    """Another replica leads, or may by now: nothing was written."""


def always() -> bool:
    """Of the only replica there is."""
    return True


@dataclass(frozen=True)
class LeaseName:
    """Where the Lease is."""

    namespace: str
    name: str


class Lock(LeaseLock):  # type: ignore[misc]
    """The client's, with a `create` that its own generated code takes (37.0.2 refuses `pretty=True`).

    Of replicas that want a free Lease all but one are refused: that is how an election goes, and it logs no traceback.
    """

    async def create(self, name: str, namespace: str, election_record: LeaderElectionRecord) -> bool:
        """Whether the Lease was made; False where another replica was first."""
        body = V1Lease(metadata=V1ObjectMeta(name=name), spec=self.update_lease(election_record))
        return await self._written(self.api_instance.create_namespaced_lease(namespace, body))

    async def update(self, name: str, namespace: str, updated_record: LeaderElectionRecord) -> bool:
        """Whether the Lease was written; False where another replica wrote it since it was read."""
        lease = self.lease_reference
        lease.spec = self.update_lease(updated_record, lease.spec)
        return await self._written(self.api_instance.replace_namespaced_lease(name, namespace, lease))

    async def _written(self, request: Awaitable[V1Lease]) -> bool:
        try:
            await request
        except ApiException as error:
            if error.status == HTTPStatus.CONFLICT:
                logger.info("Lease %s: another replica was first", self.name)
            else:
                logger.warning("Lease %s cannot be written: %s: %s", self.name, error.reason, error.body)
            return False
        return True


class Election(LeaderElection):  # type: ignore[misc]
    """One replica's part in it. `changed` is told whenever this replica begins or ceases to lead."""

    def __init__(
        self,
        client: ApiClient,
        lease: LeaseName,
        identity: str,
        changed: Callable[[bool], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(
            Config(
                lock=Lock(lease.name, lease.namespace, identity, client),
                lease_duration=LEASE_SECONDS,
                renew_deadline=RENEWAL_SECONDS,
                retry_period=RETRY_SECONDS,
                onstarted_leading=_nothing,
                onstopped_leading=_nothing,
            )
        )
        self._changed = changed
        self._clock = clock
        self._renewed = float("-inf")
        self._told = False

    def leading(self) -> bool:
        """Whether this replica may write now."""
        return self._clock() - self._renewed < RENEWAL_SECONDS

    async def try_acquire_or_renew(self) -> bool:
        """One try; whatever goes wrong with it, there will be another."""
        began = self._clock()
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                succeeded = bool(await super().try_acquire_or_renew())
        except Exception as error:
            name, known = self.election_config.lock.name, isinstance(error, NO_ANSWER)
            logger.warning("Lease %s: %s: %s", name, type(error).__name__, error, exc_info=not known)
            succeeded = False
        if succeeded:
            self._tell()  # of a gap that no try has seen: keys that came up in it were left alone
            self._renewed = began
        elif self.observed_record and self.observed_record.holder_identity != self.election_config.lock.identity:
            self._renewed = float("-inf")
        self._tell()
        return succeeded

    async def stand(self) -> None:
        """Take part until cancelled; who has lost the Lease stands again."""
        while True:
            await self.run()
            self._tell()

    async def release(self) -> None:
        """Let the next replica lead at once."""
        if not self.leading():
            return
        self._renewed = float("-inf")
        lock = self.election_config.lock
        with contextlib.suppress(*NO_ANSWER, ApiException):
            async with asyncio.timeout(REQUEST_SECONDS):
                lease = await lock.api_instance.read_namespaced_lease(lock.name, lock.namespace)
                if lease.spec.holder_identity == lock.identity:
                    lease.spec.holder_identity, lease.spec.lease_duration_seconds = "", 1
                    await lock.api_instance.replace_namespaced_lease(lock.name, lock.namespace, lease)

    def _tell(self) -> None:
        if (leads := self.leading()) != self._told:
            self._told = leads
            logger.info("%s %s", self.election_config.lock.identity, "leads" if leads else "follows")
            self._changed(leads)


@asynccontextmanager
async def standing(election: Election) -> AsyncIterator[None]:
    """Takes part inside, and releases the Lease at the end."""
    task = asyncio.create_task(election.stand())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await election.release()


async def _nothing() -> None:
    """What leads asks `leading` for itself."""
