"""Elect a leader by a Lease, with the kubernetes client's election, and fence every write.

The client's election (37.0.2) lacks four things, which this module adds: it cannot create its Lease, a network error
ends its loop, a replica that was paused believes that it leads until its next renewal, and the Lease is not released at
the end. A replica leads only for `RENEWAL_SECONDS` after it sent its last successful renewal, on a monotonic clock. The
Lease cannot be taken earlier, so a leader that was paused for longer writes nothing.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from kubernetes.aio.client import ApiClient, ApiException, V1Lease, V1ObjectMeta
from kubernetes.aio.leaderelection.electionconfig import Config
from kubernetes.aio.leaderelection.leaderelection import LeaderElection
from kubernetes.aio.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.aio.leaderelection.resourcelock.leaselock import LeaseLock

from accelbench.cluster_api.async_client import NO_ANSWER_ERRORS
from accelbench.cluster_api.errors import api_error
from accelbench_operator.engine.queue import RetryError

logger = logging.getLogger(__name__)

LEASE_SECONDS = 10
"""Seconds after a leader's last renewal until another replica may take the Lease: the bound of a failover."""
RENEWAL_SECONDS = 7
"""Seconds for which a leader may write after it has sent a renewal."""
RETRY_SECONDS = 2
"""Seconds between tries to take or renew the Lease."""
REQUEST_SECONDS = 3.0
"""Longest time of one try."""


class NotLeadingError(RetryError):
    """Report that another replica leads, or may lead by now; nothing was written."""


def always_leads() -> bool:
    """Return True; a replica without a Lease has no rival."""
    return True


@dataclass(frozen=True)
class LeaseName:
    """Name a Lease."""

    namespace: str
    name: str


class Lock(LeaseLock):  # type: ignore[misc]
    """Write the Lease.

    The client's own `create` fails (37.0.2 refuses `pretty=True`), and its errors log a traceback when another replica
    takes a free Lease first, which is part of every election.
    """

    refusal = ""
    """Why the API server refuses to return or write the Lease; empty if it does not. `Election` resets this before each
    try. Temporary errors do not count as refusals."""

    async def get(self, name: str, namespace: str) -> tuple[bool, Any]:
        """Return True and the record of the Lease, or False and the error; a refusal is stored in `refusal`."""
        exists, answer = await super().get(name, namespace)
        # A missing Lease is created next.
        if isinstance(answer, ApiException) and answer.status != HTTPStatus.NOT_FOUND:
            self._note_refusal(answer)
        return exists, answer

    async def create(self, name: str, namespace: str, election_record: LeaderElectionRecord) -> bool:
        """Create the Lease; return False if the API server refuses."""
        # The client's `update_lease` sends nothing: it returns a spec with the record's values.
        body = V1Lease(metadata=V1ObjectMeta(name=name), spec=self.update_lease(election_record))
        return await self._send_write(self.api_instance.create_namespaced_lease(namespace, body))

    async def update(self, name: str, namespace: str, updated_record: LeaderElectionRecord) -> bool:
        """Write the Lease; return False if the API server refuses."""
        lease = self.lease_reference  # as the client's `get` has read it
        lease.spec = self.update_lease(updated_record, lease.spec)
        return await self._send_write(self.api_instance.replace_namespaced_lease(name, namespace, lease))

    async def _send_write(self, request: Awaitable[V1Lease]) -> bool:
        """Send a request that writes the Lease; return True if the API server accepts it."""
        try:
            await request
        except ApiException as error:
            if error.status == HTTPStatus.CONFLICT:
                logger.info("Lease %s: another replica took it first", self.name)
            else:
                logger.warning("cannot write Lease %s: %s: %s", self.name, error.reason, error.body)
                self._note_refusal(error)
            return False
        return True

    def _note_refusal(self, exception: ApiException) -> None:
        """Set `refusal`, unless the error is temporary."""
        error = api_error(exception.status, exception.body or "")
        if not error.is_temporary:
            self.refusal = f"Lease {self.namespace}/{self.name}: {error.message}"


class Election(LeaderElection):  # type: ignore[misc]
    """Take part in the election as one replica."""

    def __init__(
        self,
        client: ApiClient,
        lease: LeaseName,
        identity: str,
        changed: Callable[[bool], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare to take part in the election.

        Args:
            client: The client of the API server.
            lease: The Lease that all replicas share.
            identity: The unique name of this replica in the Lease.
            changed: Called with True when this replica starts to lead, and with False when it stops.
            clock: Returns seconds of a monotonic clock.
        """
        super().__init__(
            Config(
                lock=Lock(lease.name, lease.namespace, identity, client),
                lease_duration=LEASE_SECONDS,
                renew_deadline=RENEWAL_SECONDS,
                retry_period=RETRY_SECONDS,
                onstarted_leading=_ignore_callback,
                onstopped_leading=_ignore_callback,
            )
        )
        self._changed = changed
        self._clock = clock
        self._renewed_at = float("-inf")
        self._notified_leading = False
        self.refusal = ""
        """Why the API server refused the Lease at the last try that got an answer; empty if it did not refuse."""

    def leading(self) -> bool:
        """Return True if this replica may write."""
        return self._clock() - self._renewed_at < RENEWAL_SECONDS

    async def try_acquire_or_renew(self) -> bool:
        """Try once to take or renew the Lease; return True if that succeeds."""
        began = self._clock()
        lock = self.election_config.lock
        lock.refusal = ""
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                succeeded = bool(await super().try_acquire_or_renew())
            self.refusal = lock.refusal
        except Exception as error:
            is_expected = isinstance(error, NO_ANSWER_ERRORS)
            logger.warning("Lease %s: %s: %s", lock.name, type(error).__name__, error, exc_info=not is_expected)
            succeeded = False
        if succeeded:
            # If the last renewal has expired, first notify that this replica stopped leading. When it starts again,
            # the keys that were skipped meanwhile are queued.
            self._notify()
            self._renewed_at = began  # the server may have renewed the Lease long before its answer arrived
        elif self.observed_record and self.observed_record.holder_identity != lock.identity:
            self._renewed_at = float("-inf")  # another replica holds the Lease: stop leading at once
        self._notify()
        return succeeded

    async def run_until_cancelled(self) -> None:
        """Take part in the election until cancelled, also after this replica has lost the Lease."""
        while True:
            await self.run()  # returns when the Lease is lost
            self._notify()

    async def release(self) -> None:
        """Give up the Lease if this replica leads, so that another can take it at once."""
        if not self.leading():
            return
        self._renewed_at = float("-inf")  # from here on `leading` returns False
        lock = self.election_config.lock
        with contextlib.suppress(*NO_ANSWER_ERRORS, ApiException):
            async with asyncio.timeout(REQUEST_SECONDS):
                lease = await lock.api_instance.read_namespaced_lease(lock.name, lock.namespace)
                if lease.spec.holder_identity == lock.identity:
                    lease.spec.holder_identity = ""
                    lease.spec.lease_duration_seconds = 1  # the minimum that the API server accepts
                    await lock.api_instance.replace_namespaced_lease(lock.name, lock.namespace, lease)

    def _notify(self) -> None:
        """Call `changed` if this replica has started or stopped leading since the last call."""
        leads = self.leading()
        if leads == self._notified_leading:
            return
        self._notified_leading = leads
        logger.info("replica %s %s", self.election_config.lock.identity, "leads" if leads else "does not lead")
        self._changed(leads)


@asynccontextmanager
async def take_part(election: Election) -> AsyncIterator[None]:
    """Take part in the leader election while the context is open, then release the Lease."""
    task = asyncio.create_task(election.run_until_cancelled())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await election.release()


async def _ignore_callback() -> None:
    """Do nothing. The client's election requires callbacks, but this module uses `leading`."""
