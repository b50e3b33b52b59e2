"""Store what the operator knows of the objects that controllers own, by kind and name and by owner.

A list of the API server replaces the store's content. If this operator wrote or read an object after it had requested
the list, the object is fresh: it stays, because the list may be older.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator

from accelbench_operator.engine.kinds import Name, StoredObject

Listener = Callable[[StoredObject | None, StoredObject | None], None]
"""Called with the stored object before and after a change; None if nothing is stored then."""


class Store:
    """Store objects of several kinds, and call listeners for each change."""

    def __init__(self) -> None:
        self._objects: defaultdict[str, dict[Name, StoredObject]] = defaultdict(dict)
        """Objects by kind and name."""
        self._by_owner: defaultdict[str, set[tuple[str, Name]]] = defaultdict(set)
        """Kinds and names of the objects of each owner, by its UID."""
        self._fresh_at: dict[tuple[str, Name], int] = {}
        """Value of `tick` when each object was put as `fresh`, by kind and name."""
        self._listeners: list[Listener] = []
        self._ticks = 0

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` for each change from now on."""
        self._listeners.append(listener)

    @property
    def tick(self) -> int:
        """Return the number of objects put as `fresh` so far.

        Read it before requesting a list, and pass it as `since` with the list.
        """
        return self._ticks

    def put(self, stored: StoredObject, *, fresh: bool = False) -> None:
        """Store the object, and notify the listeners of a change.

        Put an object as `fresh` after this operator has written or read it: a list that was requested earlier does not
        replace it.
        """
        kind, name = stored.key.kind, name_of(stored)
        before = self._objects[kind].get(name)
        if before is not None and before.owner != stored.owner:
            # Remove the object first, so that the listeners are notified with its earlier owner too. This also forgets
            # when it was put as fresh.
            self.remove(kind, name)
            before = None
        if fresh:
            self._ticks += 1
            self._fresh_at[kind, name] = self._ticks
        if before is stored or before == stored:  # `is` first, because comparing all fields takes longer
            return
        self._objects[kind][name] = stored
        self._by_owner[stored.owner].add((kind, name))
        self._notify(before, stored)

    def remove(self, kind: str, name: Name) -> None:
        """Remove an object, and notify the listeners; do nothing if it is not stored."""
        self._fresh_at.pop((kind, name), None)
        stored = self._objects[kind].pop(name, None)
        if stored is None:
            return
        owned = self._by_owner[stored.owner]
        owned.discard((kind, name))
        if not owned:
            del self._by_owner[stored.owner]
        self._notify(stored, None)

    def replace(self, kind: str, namespace: str | None, listed: Iterable[StoredObject], since: int) -> None:
        """Replace all objects of a kind by a complete list, except those put as `fresh` after the list's request.

        `since` is the `tick` of that request. `namespace` is the list's namespace; None stands for all.
        """
        objects = tuple(listed)
        self.merge(objects, since)
        self.retain(kind, namespace, {name_of(stored) for stored in objects}, since)

    def merge(self, listed: Iterable[StoredObject], since: int) -> None:
        """Store a page of a list, except where an object was put as `fresh` after the list's request.

        `since` is the `tick` of that request.
        """
        for stored in listed:
            if self._fresh_at.get((stored.key.kind, name_of(stored)), 0) <= since:
                self.put(stored)

    def retain(self, kind: str, namespace: str | None, listed_names: Container[Name], since: int) -> None:
        """Remove the objects that a complete list lacks, except those put as `fresh` after the list's request.

        `since` is the `tick` of that request. `namespace` is the list's namespace; None stands for all.
        """
        # `name` is a tuple of namespace and name. `namespace` is None if the list is of all namespaces.
        stored_names = [name for name in self._objects[kind] if namespace in {None, name[0]}]
        for name in stored_names:
            if name not in listed_names and self._fresh_at.get((kind, name), 0) <= since:
                self.remove(kind, name)
        # Forget the ticks up to `since` of the objects in this list's scope. The next list of this scope is requested
        # later, so it replaces these objects with their ticks or without.
        for (other_kind, name), tick in list(self._fresh_at.items()):
            is_covered = other_kind == kind and namespace in {None, name[0]}
            if is_covered and tick <= since:
                del self._fresh_at[other_kind, name]

    def get(self, kind: str, name: Name) -> StoredObject | None:
        """Return the object of that kind and name; None if it is not stored."""
        return self._objects[kind].get(name)

    def all(self, kind: str) -> Iterator[StoredObject]:
        """Return every object of a kind."""
        return iter(self._objects[kind].values())

    def owned(self, owner: str) -> Iterator[StoredObject]:
        """Return the objects of the owner with that UID, sorted by kind, namespace and name."""
        return (self._objects[kind][name] for kind, name in sorted(self._by_owner.get(owner, ())))

    def count(self, kind: str) -> int:
        """Return how many objects of a kind are stored."""
        return len(self._objects[kind])

    def _notify(self, before: StoredObject | None, after: StoredObject | None) -> None:
        """Call each listener with the object before and after a change."""
        for listener in self._listeners:
            listener(before, after)


def name_of(stored: StoredObject) -> Name:
    """Return the namespace and the name of an object."""
    key = stored.key
    return key.namespace, key.name
