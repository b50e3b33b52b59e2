"""Runs that are gone although nobody said so.

kopf tells of no deletion that came about while it had to list anew: it hands on what is listed, and that something is
not goes unnoticed. So now and then the UIDs of all runs are listed here, and what is known and not among them is gone.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from accelbench_operator.engine.api import ApiError, KubernetesApi
from accelbench_operator.engine.reflector import PAGE
from accelbench_operator.runs.known import RunKey

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 1800.0
"""As often as the other kinds are listed anew."""
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Ten thousand runs are a hundred megabytes, their metadata a few."""


async def keep_forgetting(
    api: KubernetesApi, paths: Sequence[str], keys: Mapping[str, RunKey], gone: Callable[[RunKey], None]
) -> None:
    """Tell `gone` of each of the `keys`, by UID, whose run none of the lists at `paths` has; until cancelled."""
    while True:
        await asyncio.sleep(PERIOD_SECONDS)
        before = dict(keys)
        try:
            listed = {uid for path in paths for uid in await _listed(api, path)}
        except (ApiError, ValueError, KeyError) as error:
            logger.warning("runs cannot be listed: %s: %s", type(error).__name__, error)
            continue
        for key in (key for uid, key in before.items() if uid not in listed):
            logger.info("%s is gone, and nothing was heard of it", key)
            gone(key)


async def _listed(api: KubernetesApi, path: str) -> set[str]:
    found: set[str] = set()
    query: dict[str, object] = {"limit": PAGE}
    while True:
        page = await api.get(path, query, accept=METADATA)
        found |= {item["metadata"]["uid"] for item in page["items"]}
        if not (token := page["metadata"].get("continue")):
            return found
        query["continue"] = token
