"""Run controllers: queue the objects that have changed, and have their controller reconcile those that are due.

A controller reconciles objects of one kind from what the cluster has of them and of the objects that they own. Another
controller is another class with the methods of `Controller`, and one call of `Controllers.add`.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from accelbench.cluster_api.errors import ApiError
from accelbench.cluster_api.kinds import Kind
from accelbench_operator.engine.api import KubernetesApi
from accelbench_operator.engine.kinds import Key, Manifest, Owned, StoredObject
from accelbench_operator.engine.queue import KeyedQueue
from accelbench_operator.engine.reflector import PAGE, Reflector
from accelbench_operator.engine.store import Store

logger = logging.getLogger(__name__)

WORKERS = 16
"""Objects that are reconciled at the same time."""
UNLISTED_SECONDS = 10.0
"""Seconds until an object is due again in a namespace whose owned objects have not been listed yet."""
PRUNE_SECONDS = 1800.0
"""Seconds between lists that detect missed deletions; reflectors list as often."""
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Media type of a list without specs and status: ten thousand runs have a hundred megabytes, their metadata a few."""


class Controller(Protocol):
    """Reconcile the objects of one kind."""

    @property
    def kind(self) -> Kind:
        """Return the kind of these objects."""

    @property
    def owns(self) -> Sequence[Owned]:
        """Return the kinds that these objects own; no other controller may own them."""

    def changed(self, key: Key, manifest: Manifest) -> bool:
        """Record what a watch reports of an object; return True if it must be reconciled."""

    def deleted(self, key: Key) -> None:
        """Drop what is known of an object."""

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step of an object; return the seconds until it is due again; None: when it changes."""

    def reset(self) -> None:
        """Drop what may have changed while another replica led."""


class Controllers:
    """Route what watches report to controllers, and call them for what is due."""

    def __init__(
        self,
        api: KubernetesApi,
        store: Store,
        namespaces: Sequence[str],
        leading: Callable[[], bool],
        clock: Callable[[], float],
        timed: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        """Run controllers in `namespaces`, or in all without any; `timed` measures each reconcile."""
        self._api = api
        self._store = store
        self._namespaces = tuple(namespaces) or (None,)
        self._leading = leading
        self._timed = timed
        self._controllers: dict[str, Controller] = {}
        self.keys: dict[str, Key] = {}
        """By UID: the objects that are reconciled."""
        self.queue: KeyedQueue[Key] = KeyedQueue(self._reconcile, clock)
        self._reflectors: dict[str, list[Reflector]] = {}
        """By the kind of their controller."""
        store.subscribe(self._owned_changed)

    def add(self, controller: Controller) -> None:
        """Add the controller of one more kind; call it before `run`."""
        self._controllers[controller.kind.name] = controller
        self._reflectors[controller.kind.name] = [
            Reflector(self._api, self._store, owned, namespace)
            for owned in controller.owns
            for namespace in self._namespaces
        ]

    @property
    def reflectors(self) -> tuple[Reflector, ...]:
        """Return the reflectors of all controllers."""
        return tuple(reflector for reflectors in self._reflectors.values() for reflector in reflectors)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return the kinds that are reconciled."""
        return tuple(controller.kind for controller in self._controllers.values())

    def counts(self) -> dict[str, int]:
        """Return how many owned objects are stored, by kind."""
        owned = [kind.kind.name for controller in self._controllers.values() for kind in controller.owns]
        return {kind: self._store.count(kind) for kind in owned}

    def changed(self, key: Key, manifest: Manifest) -> None:
        """Record an object that exists or has changed, and queue it if its controller must reconcile it."""
        self.keys[key.uid] = key
        if self._controllers[key.kind].changed(key, manifest):
            self.queue.add(key)

    def deleted(self, key: Key) -> None:
        """Drop an object that was deleted."""
        self.keys.pop(key.uid, None)
        self.queue.discard(key)
        self._controllers[key.kind].deleted(key)

    def reset(self) -> None:
        """Reset the controllers and queue every object, because another leader may have changed them."""
        for controller in self._controllers.values():
            controller.reset()
        for key in self.keys.values():
            self.queue.add(key)

    async def run(self) -> None:
        """Reconcile until cancelled; call it once the reflectors have listed."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.queue.run(WORKERS))
            group.create_task(self._prune())

    async def _reconcile(self, key: Key) -> float | None:
        """Reconcile the object if this replica leads and the objects that it may own have been listed."""
        if not self._leading():
            return None
        namespaces = {None, key.namespace}
        reflectors = [reflector for reflector in self._reflectors[key.kind] if reflector.namespace in namespaces]
        if not all(reflector.synced.is_set() for reflector in reflectors):
            return UNLISTED_SECONDS
        with self._timed():
            return await self._controllers[key.kind].reconcile(key)

    def _owned_changed(self, before: StoredObject | None, after: StoredObject | None) -> None:
        """Queue the owner of an object that has changed."""
        stored = after or before
        # An owner that was not seen yet is queued when its own watch reports it.
        if stored is not None and (key := self.keys.get(stored.owner)):
            self.queue.add(key)

    async def _prune(self) -> None:
        """Drop objects whose deletion kopf did not report: it reports none that happened before it listed again."""
        while True:
            await asyncio.sleep(PRUNE_SECONDS)
            for kind in self.kinds:
                before = [key for key in self.keys.values() if key.kind == kind.name]
                try:
                    listed = {uid for namespace in self._namespaces for uid in await self._list(kind.path(namespace))}
                except (ApiError, ValueError, KeyError) as error:
                    logger.warning("cannot list %s: %s: %s", kind.plural, type(error).__name__, error)
                    continue
                for key in before:
                    if key.uid not in listed:
                        logger.info("%s was deleted (the watch missed it); dropping it", key)
                        self.deleted(key)

    async def _list(self, path: str) -> set[str]:
        """Return the UIDs of all objects of a collection."""
        pages = self._api.pages(path, {"limit": PAGE}, accept=METADATA)
        return {item["metadata"]["uid"] async for page in pages for item in page["items"]}
