"""Copy one kind of objects from the cluster to the store: list, then watch, and list again every half hour.

The informer of the kubernetes client (37.0.2) is not used: it holds whole model objects (75 KiB for a runner's pod,
where 0.4 KiB are needed), needs a thread and a connection pool for each kind, and does not page its list.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from accelbench.cluster_api.errors import ApiError, ForbiddenError, NotFoundError
from accelbench_operator.engine.api import KubernetesApi
from accelbench_operator.engine.kinds import Key, Name, Owned, StoredObject
from accelbench_operator.engine.store import Store, name_of

logger = logging.getLogger(__name__)

PAGE = 50
"""Objects in a page: a result has 14 KiB of JSON, and parsing a page blocks the event loop."""
ITEMS_PER_TURN = 20
"""Maximum number of objects that are read before other tasks get a turn."""
WATCH_SECONDS = 300
WATCHES_PER_LIST = 6
"""Watches between two lists: every half hour a list finds events that a watch has dropped."""
FIRST_DELAY_SECONDS = 1.0
"""Delay after the first error or short watch; it doubles with each further one."""
LONGEST_DELAY_SECONDS = 30.0
SHORT_WATCH_SECONDS = 5.0
"""Minimum duration of a watch that worked; after a shorter one the next may fail too, so the reflector pauses."""


class Reflector:
    """Keep the stored objects of one kind equal to the cluster's, in one namespace or in all."""

    def __init__(
        self,
        api: KubernetesApi,
        store: Store,
        owned: Owned,
        namespace: str | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Prepare to copy the objects of `namespace` to the store; None stands for all namespaces."""
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
        """Return the path of the objects in the API."""
        return self._path

    async def run(self) -> None:
        """List and watch the objects until cancelled.

        An error of one kind of objects must not end the process, which also serves the other kinds.
        """
        while True:
            try:
                version = await self._list()
                self.synced.set()
                self.answered.set()
                for _ in range(WATCHES_PER_LIST):
                    version = await self._watch(version)
            except (ApiError, ValueError, KeyError) as error:
                logger.warning("%s: %s: %s; listing again", self._path, type(error).__name__, error)
                # The operator may lack a permission in one of its namespaces, and must not wait for that namespace.
                if self.namespace and isinstance(error, ForbiddenError | NotFoundError):
                    self.answered.set()
                await self._pause()
            except Exception:
                logger.exception("%s: unexpected error; listing again", self._path)
                await self._pause()

    async def _pause(self) -> None:
        """Wait for a random part of the delay, then double the delay.

        Without this, a server that ends every watch immediately would get requests without pause.
        """
        await self._sleep(self._delay * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load, keeps no secret
        self._delay = min(2 * self._delay, LONGEST_DELAY_SECONDS)

    async def _list(self) -> str:
        """Copy the cluster's list to the store; return the resource version from which to watch."""
        # The store keeps objects that the operator writes after this tick: the list may be older.
        since = self._store.tick
        listed_names: set[Name] = set()
        query = {"labelSelector": self._owned.selector, "limit": PAGE}
        version = ""
        async for page in self._api.pages(self._path, query):
            for start in range(0, len(page["items"]), ITEMS_PER_TURN):
                await asyncio.sleep(0)  # gives other tasks a turn: reading an object takes time
                items = page["items"][start : start + ITEMS_PER_TURN]
                objects = [stored for stored in map(self._convert, items) if stored is not None]
                self._store.merge(objects, since)
                listed_names.update(map(name_of, objects))
            version = str(page["metadata"]["resourceVersion"])
        self._store.retain(self._kind, self.namespace, listed_names, since)
        return version

    async def _watch(self, version: str) -> str:
        """Watch until the server ends the watch; return the resource version to continue from.

        Wait after a short watch, because the next one may fail too.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            version = await self._apply_events(version)
        finally:
            lasted_long = loop.time() - began >= SHORT_WATCH_SECONDS
            # A long watch shows that the server works, even if an error ended the watch.
            if lasted_long:
                self._delay = FIRST_DELAY_SECONDS
        if not lasted_long:
            await self._pause()
        return version

    async def _apply_events(self, version: str) -> str:
        """Apply the events of one watch to the store; return the last resource version."""
        query = {"labelSelector": self._owned.selector, "resourceVersion": version}
        async for event in self._api.watch(self._path, query, WATCH_SECONDS):
            item = event["object"]
            metadata = item["metadata"]
            if event["type"] == "DELETED":
                self._store.remove(self._kind, (metadata.get("namespace", ""), metadata["name"]))
            elif event["type"] in {"ADDED", "MODIFIED"}:
                stored = self._convert(item)
                # The previous version of an unreadable object stays in the store until the next list.
                if stored is not None:
                    self._store.put(stored)
            # A BOOKMARK event has nothing but a newer version.
            version = metadata["resourceVersion"]
        return version

    def _convert(self, item: Mapping[str, Any]) -> StoredObject | None:
        """Convert an object from the API server to the form that is stored; None if the object cannot be read.

        An immutable object that is in the store already is not converted again.
        """
        key = Key.of(self._kind, item)
        stored = self._store.get(self._kind, (key.namespace, key.name))
        if self._owned.immutable and stored is not None and stored.key.uid == key.uid:
            return stored
        try:
            return self._owned.convert(item)
        except (ValueError, KeyError) as error:
            logger.warning("ignoring %s, which cannot be read: %s", key, error)
            return None
