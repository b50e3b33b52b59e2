"""Run controllers: queue objects that have changed, and call their controller when they are due.

A controller reconciles objects of one kind and the objects that they own. To add a controller, write a class with the
methods of `Controller`, and pass an instance to `Controllers.add`.
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
RETRY_UNLISTED_SECONDS = 10.0
"""Seconds until an object is due again if the objects that it may own have not been listed yet."""
MISSED_DELETIONS_SECONDS = 1800.0
"""Seconds between lists that detect missed deletions; reflectors list as often."""
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Media type of a list that has only metadata: of ten thousand runs a few megabytes, instead of a hundred."""


class Controller(Protocol):
    """Reconcile the objects of one kind."""

    @property
    def kind(self) -> Kind:
        """Return the kind of the objects that this controller reconciles."""

    @property
    def owns(self) -> Sequence[Owned]:
        """Return the kinds that the reconciled objects own. Two controllers must not own the same kind."""

    def changed(self, key: Key, manifest: Manifest) -> bool:
        """Handle an object from a watch; return True if it must be reconciled."""

    def deleted(self, key: Key) -> None:
        """Handle the deletion of an object: forget the object."""

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step for an object.

        Return the seconds until its next reconcile, or None to wait for a change.
        """

    def reset(self) -> None:
        """Forget everything that may have changed while another replica led."""


class Controllers:
    """Pass changes of objects to their controllers, and have the controllers reconcile objects that are due."""

    def __init__(
        self,
        api: KubernetesApi,
        store: Store,
        namespaces: Sequence[str],
        leading: Callable[[], bool],
        clock: Callable[[], float],
        measure_reconcile: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        """Prepare to run controllers, which `add` adds.

        Args:
            api: The client of the API server.
            store: The store of the objects that reconciled objects own.
            namespaces: The namespaces to read; empty for all.
            leading: Returns True while this replica leads; otherwise nothing is reconciled.
            clock: Returns seconds of a monotonic clock.
            measure_reconcile: Returns a context manager that measures the duration of one reconcile.
        """
        self._api = api
        self._store = store
        self._namespaces = tuple(namespaces) or (None,)  # None stands for all namespaces
        self._leading = leading
        self._measure_reconcile = measure_reconcile
        self._controllers: dict[str, Controller] = {}
        self.keys: dict[str, Key] = {}
        """The objects that are reconciled, by UID."""
        self.queue: KeyedQueue[Key] = KeyedQueue(self._reconcile, clock, lambda key: key.namespace)
        self._reflectors: dict[str, list[Reflector]] = {}
        """Reflectors, by the name of the kind that their controller reconciles."""
        store.subscribe(self._queue_owner)

    def add(self, controller: Controller) -> None:
        """Add a controller with its reflectors; call this before `run`."""
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
    def unlisted_namespaces(self) -> tuple[str, ...]:
        """Return the namespaces where the API server refuses the first list: the namespace or a Role is missing.

        Nothing is reconciled there; the other namespaces are served, and readiness ignores the returned namespaces. If
        no namespace is listed completely, return an empty tuple, so that an operator that can read nothing does not
        count as ready.
        """
        is_complete = dict.fromkeys(self._namespaces, True)
        refused = set()
        for reflector in self.reflectors:
            if not reflector.synced.is_set():
                is_complete[reflector.namespace] = False
                # An answer without a list in the store is a refusal.
                if reflector.namespace and reflector.answered.is_set():
                    refused.add(reflector.namespace)
        return tuple(sorted(refused)) if any(is_complete.values()) else ()

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return the kinds that are reconciled."""
        return tuple(controller.kind for controller in self._controllers.values())

    def counts(self) -> dict[str, int]:
        """Return the number of stored objects of each owned kind, by the kind's name."""
        kind_names = [owned.kind.name for controller in self._controllers.values() for owned in controller.owns]
        return {kind_name: self._store.count(kind_name) for kind_name in kind_names}

    def changed(self, key: Key, manifest: Manifest) -> None:
        """Handle a new or changed object: queue it if its controller must reconcile it."""
        self.keys[key.uid] = key
        if self._controllers[key.kind].changed(key, manifest):
            self.queue.add(key)

    def deleted(self, key: Key) -> None:
        """Handle the deletion of an object: forget it, here and in its controller."""
        self.keys.pop(key.uid, None)
        self.queue.discard(key)
        self._controllers[key.kind].deleted(key)

    def reset(self) -> None:
        """Reset the controllers and queue every object, because another leader may have changed any of them."""
        for controller in self._controllers.values():
            controller.reset()
        for key in self.keys.values():
            self.queue.add(key)

    async def run(self) -> None:
        """Reconcile objects, and find missed deletions, until cancelled.

        Call this after the reflectors have listed their objects.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self.queue.run(WORKERS))
            group.create_task(self._find_missed_deletions())

    async def _reconcile(self, key: Key) -> float | None:
        """Reconcile the object. Return the seconds until its next reconcile, or None to wait for a change."""
        if not self._leading():
            return None
        # A reflector without a namespace lists all namespaces.
        namespaces = {None, key.namespace}
        reflectors = [reflector for reflector in self._reflectors[key.kind] if reflector.namespace in namespaces]
        if not all(reflector.synced.is_set() for reflector in reflectors):
            return RETRY_UNLISTED_SECONDS  # the store may lack objects that `key`'s object owns
        with self._measure_reconcile():
            return await self._controllers[key.kind].reconcile(key)

    def _queue_owner(self, before: StoredObject | None, after: StoredObject | None) -> None:
        """Queue the owner of an object that appeared, changed or disappeared."""
        stored = after or before
        if stored is None:
            return
        owner = self.keys.get(stored.owner)
        # An unknown owner is queued when its own watch reports it.
        if owner is not None:
            self.queue.add(owner)

    async def _find_missed_deletions(self) -> None:
        """List the objects at regular times, and forget those that no longer exist.

        kopf reports no deletion that happens between two watches.
        """
        while True:
            await asyncio.sleep(MISSED_DELETIONS_SECONDS)
            for kind in self.kinds:
                # An object that is created during the list may be missing in it, so only earlier keys are compared.
                known_keys = [key for key in self.keys.values() if key.kind == kind.name]
                existing_uids: set[str] = set()
                try:
                    for namespace in self._namespaces:
                        existing_uids |= await self._list_uids(kind.path(namespace))
                except (ApiError, ValueError, KeyError) as error:
                    logger.warning("cannot list %s: %s: %s", kind.plural, type(error).__name__, error)
                    continue  # an incomplete list does not show which objects were deleted
                for key in known_keys:
                    if key.uid not in existing_uids:
                        logger.info("%s was deleted (the watch missed it); dropping it", key)
                        self.deleted(key)

    async def _list_uids(self, path: str) -> set[str]:
        """Return the UIDs of all objects under the collection's path."""
        pages = self._api.pages(path, {"limit": PAGE}, accept=METADATA)
        return {item["metadata"]["uid"] async for page in pages for item in page["items"]}
