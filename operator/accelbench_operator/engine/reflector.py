"""Keep one kind of object in the store equal to the cluster's: list, then watch, and list again now and then.

The informer of the kubernetes client (37.0.2) was measured and left: it holds whole model objects, 75 KiB for a
runner's pod where 0.4 KiB are wanted; it needs a thread and a connection pool for each kind; its list is in one piece.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from accelbench.cluster_api.errors import ApiError, ForbiddenError, NotFoundError
from accelbench_operator.engine.api import KubernetesApi
from accelbench_operator.engine.kinds import Held, Key, Name, Owned
from accelbench_operator.engine.store import Store, name_of

logger = logging.getLogger(__name__)

PAGE = 50
"""A result is 14 KiB of JSON: what is parsed in one step of the event loop is to take a few milliseconds."""
AT_A_TIME = 20
"""Objects that are read before others get their turn."""
WATCH_SECONDS = 300
WATCHES_A_LIST = 6
"""Every half hour the list is taken anew: what a watch may have dropped does not stay unseen."""
FIRST_DELAY_SECONDS = 1.0
LONGEST_DELAY_SECONDS = 30.0
SHORT_WATCH_SECONDS = 5.0
"""One that ends sooner ended before its time: it may do so again."""


class Reflector:
    """Reflect one kind in one namespace, or in all."""

    def __init__(
        self,
        api: KubernetesApi,
        store: Store,
        owned: Owned,
        namespace: str | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self._store = store
        self._owned = owned
        self._kind = owned.kind.name
        self._path = owned.kind.path(namespace)
        self.namespace = namespace
        self._sleep = sleep
        self._delay = FIRST_DELAY_SECONDS
        self.synced = asyncio.Event()
        """Set once the first list is in the store."""
        self.answered = asyncio.Event()
        """Set once the API server has returned the first list, or refused it in this namespace."""

    def __str__(self) -> str:
        """What it reflects."""
        return self._path

    async def run(self) -> None:
        """Reflect until cancelled; errors of the API server and the network delay, and never end it."""
        while True:
            try:
                version = await self._list()
                self.synced.set()
                self.answered.set()
                for _ in range(WATCHES_A_LIST):
                    version = await self._watch(version)
            except (ApiError, ValueError, KeyError) as error:
                logger.warning("%s: %s: %s; listing again", self._path, type(error).__name__, error)
                if self.namespace and isinstance(error, ForbiddenError | NotFoundError):
                    self.answered.set()
                await self._pause()

    async def _pause(self) -> None:
        """Longer each time, until a watch holds: a server that takes lists and ends watches is not to be flooded."""
        await self._sleep(self._delay * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load, keeps no secret
        self._delay = min(2 * self._delay, LONGEST_DELAY_SECONDS)

    async def _list(self) -> str:
        since = self._store.now
        names: set[Name] = set()
        query = {"labelSelector": self._owned.selector, "limit": PAGE}
        version = ""
        async for page in self._api.pages(self._path, query):
            for start in range(0, len(page["items"]), AT_A_TIME):
                await asyncio.sleep(0)
                listed = [seen for item in page["items"][start : start + AT_A_TIME] if (seen := self._see(item))]
                self._store.merge(listed, since)
                names.update(map(name_of, listed))
            version = str(page["metadata"]["resourceVersion"])
        self._store.retain(self._kind, self.namespace, names, since)
        return version

    async def _watch(self, version: str) -> str:
        """Until the server ends it; returns the resource version to go on from."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            version = await self._follow(version)
        finally:
            # However it ended, one that held shows that the server is well.
            if held := loop.time() - began >= SHORT_WATCH_SECONDS:
                self._delay = FIRST_DELAY_SECONDS
        if not held:
            await self._pause()
        return version

    async def _follow(self, version: str) -> str:
        query = {"labelSelector": self._owned.selector, "resourceVersion": version}
        async for event in self._api.watch(self._path, query, WATCH_SECONDS):
            item = event["object"]
            metadata = item["metadata"]
            if event["type"] == "DELETED":
                self._store.remove(self._kind, (metadata.get("namespace", ""), metadata["name"]))
            elif event["type"] in {"ADDED", "MODIFIED"} and (seen := self._see(item)) is not None:
                self._store.put(seen)
            version = metadata["resourceVersion"]
        return version

    def _see(self, item: Mapping[str, Any]) -> Held | None:
        key = Key.of(self._kind, item)
        held = self._store.get(self._kind, (key.namespace, key.name))
        if self._owned.immutable and held is not None and held.key.uid == key.uid:
            return held
        try:
            return self._owned.observe(item)
        except (ValueError, KeyError) as error:
            logger.warning("%s cannot be read and is ignored: %s", key, error)
            return None
