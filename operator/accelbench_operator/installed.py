"""Check an installation: `helm test` runs `python -m accelbench_operator.installed`.

It uses the operator's account and settings, so it sees what the operator sees. A Lease that is renewed during the check
shows that a replica leads, independent of clocks.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable

from accelbench.api.metadata import GROUP, VERSION
from accelbench.api.profiles import InvalidProfilesError
from accelbench.cluster_api.async_client import load_configuration
from accelbench.cluster_api.errors import ApiError, NotFoundError
from accelbench.cluster_api.kinds import LEASE, RUN
from accelbench_operator.engine.api import KubernetesApi
from accelbench_operator.engine.election import LEASE_SECONDS, LeaseName
from accelbench_operator.settings import Settings, SettingsError, read_settings
from accelbench_operator.skew import find_skew

WAIT_SECONDS = 120.0
"""Maximum wait for a leader: the image of a new operator has to be pulled and started first."""
PUBLISH_SECONDS = 10.0
"""Maximum wait for the CRDs: an API server publishes a CRD's fields some seconds after it has accepted the CRD."""
POLL_SECONDS = 1.0


class NotAtWorkError(Exception):
    """Report what is wrong with the installation and what to do."""


async def run_checks(
    api: KubernetesApi, settings: Settings, *, wait_seconds: float = WAIT_SECONDS
) -> AsyncIterator[str]:
    """Yield a line for each check that passes; raise NotAtWorkError or ApiError at the first check that fails."""
    await _wait_for_crds(api, time.monotonic() + PUBLISH_SECONDS)
    yield f"the API server has the CRDs of {GROUP}/{VERSION} as this release writes them"
    for namespace in settings.namespaces or (None,):  # None stands for all namespaces
        await api.get(RUN.path(namespace), {"limit": 1})
        yield f"the operator may list runs in {namespace or 'every namespace'}"
    if settings.lease is None:
        raise NotAtWorkError("ACCELBENCH_LEASE is not set: set it to the operator's Lease, namespace/name")
    holder = await _wait_for_leader(api, settings.lease, time.monotonic() + wait_seconds)
    yield f"{holder} leads, and renews the Lease {settings.lease.namespace}/{settings.lease.name}"


async def _wait_for_crds(api: KubernetesApi, deadline: float) -> None:
    """Wait until the cluster's CRDs have all fields of this release.

    Raises NotAtWorkError if they lack some after `deadline`, a value of `time.monotonic`.
    """
    while skew := await find_skew(api):
        if time.monotonic() > deadline:
            raise NotAtWorkError(skew)
        await asyncio.sleep(POLL_SECONDS)


async def _wait_for_leader(api: KubernetesApi, lease: LeaseName, deadline: float) -> str:
    """Wait until the Lease is renewed, and return its holder.

    Raises NotAtWorkError if no replica has renewed it by `deadline`, a value of `time.monotonic`.
    """
    earlier_renewal: str | None = None
    while True:
        try:
            spec = (await api.get(LEASE.path(lease.namespace, lease.name)))["spec"]
        except NotFoundError:
            spec = {}
        holder = spec.get("holderIdentity") or ""
        renewal = spec.get("renewTime") or ""
        # The first reading has no earlier one to compare with.
        was_renewed = earlier_renewal is not None and renewal != earlier_renewal
        if holder and was_renewed:
            return str(holder)
        earlier_renewal = renewal
        if time.monotonic() > deadline:
            raise NotAtWorkError(
                f"no replica renews the Lease {lease.namespace}/{lease.name}; a leader renews it within "
                f"{LEASE_SECONDS} s: see kubectl logs of the operator's pods"
            )
        await asyncio.sleep(POLL_SECONDS)


async def run(settings: Settings, write: Callable[[str], object]) -> None:
    """Run all checks of the installation; call `write` with a line about each check that passes."""
    async with KubernetesApi(await load_configuration()) as api:
        async for line in run_checks(api, settings):
            write(line)


def main() -> int:
    """Check the installation of the operator, and return the exit code of the command."""
    try:
        asyncio.run(run(read_settings(os.environ), print))
    except (NotAtWorkError, ApiError, SettingsError, InvalidProfilesError) as error:
        print(f"accelbench is not at work: {error}", file=sys.stderr)  # noqa: T201 - the command's answer
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
