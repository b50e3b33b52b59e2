"""An API server in memory: objects with versions, lists in pages, watches that can fall behind, and owners.

It is asked over `connection`, as over HTTP, by operators; users and controllers of the cluster change objects directly.
"""

import copy
import functools
import itertools
import json
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any, NamedTuple

from accelbench.api import crd
from accelbench.document import timestamp
from accelbench_operator.skew import KINDS_PATH, SCHEMAS_PATH, own_schema
from operator_world.simulated_time import SimulatedTime

Manifest = dict[str, Any]

KEPT_SECONDS = 300.0
"""etcd forgets what was longer ago: a watch from before has to list anew."""
EVENTS_KEPT_SECONDS = 3600.0
COLLECTED_SECONDS = 10.0
"""At most so long after its owner, what is owned goes."""
GRACE = timedelta(seconds=30)
PAGE = 20
"""No page has more, whatever was asked for."""
PLURALS = ("benchmarkruns", "benchmarkresults", "jobs", "pods", "events", "leases", "resourceclaimtemplates")
PATH = re.compile(
    r"(?:/api/v1|/apis/[^/]+/[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<subresource>status|log))?"
)


class RefusedError(Exception):
    """Report an answer other than 2xx."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.body = json.dumps({"kind": "Status", "code": code, "message": message})


class Id(NamedTuple):
    """Identify an object."""

    plural: str
    namespace: str
    name: str


@dataclass(frozen=True)
class Version:
    """Hold an object at one moment. `manifest` is never changed."""

    id: Id
    number: int
    manifest: Manifest

    @functools.cached_property
    def text(self) -> str:
        """Return the object as it is sent."""
        return json.dumps(self.manifest)

    @property
    def uid(self) -> str:
        return self.manifest["metadata"]["uid"]


@dataclass
class Watch:
    """Represent an open watch; `woken` is called when it has an event."""

    plural: str
    namespace: str | None
    wanted: Callable[[Manifest], bool]
    woken: Callable[[], None]
    hangs: bool = False
    ended: bool = False
    told: deque[tuple[str, Version]] = field(default_factory=deque)

    def tell(self, kind: str, version: Version) -> None:
        if (
            self.hangs
            or self.ended
            or version.id.plural != self.plural
            or self.namespace not in {None, version.id.namespace}
        ):
            return
        if self.wanted(version.manifest):
            self.told.append((kind, version))
            self.woken()

    def end(self) -> None:
        self.ended = True
        self.woken()


class ApiServer:
    """Serve objects as above. `changed` gets ADDED, MODIFIED or DELETED and the version of every stored object."""

    version = Version

    def __init__(self, time: SimulatedTime, random: Random) -> None:
        self._time = time
        self._random = random
        self.plurals = {*PLURALS}
        """What is served."""
        self.objects: dict[Id, Version] = {}
        self.logs: dict[str, str] = {}
        """By a pod's UID."""
        self.changed: list[Callable[[str, Version, Version | None], None]] = []
        self.watches: list[Watch] = []
        self._past: deque[tuple[float, str, Version]] = deque()
        self._forgotten = 0
        self._pages: dict[str, tuple[int, list[Version]]] = {}
        self._numbers = itertools.count(1)
        self.number = 0
        self._uids = itertools.count(1)
        self._alive: set[str] = set()
        self._owned: defaultdict[str, set[Id]] = defaultdict(set)

    # What users and controllers do.

    def find(self, plural: str, namespace: str, name: str) -> Manifest | None:
        """Return the stored object, which must not be changed."""
        version = self.objects.get(Id(plural, namespace, name))
        return version.manifest if version else None

    def all(self, plural: str) -> list[Manifest]:
        """Return the stored objects of a kind, which must not be changed."""
        return [version.manifest for id_, version in self.objects.items() if id_.plural == plural]

    def create(self, plural: str, manifest: Manifest) -> Version:
        metadata = manifest["metadata"]
        id_ = Id(plural, metadata["namespace"], metadata["name"])
        if id_ in self.objects:
            raise RefusedError(409, f'{plural} "{id_.name}" already exists')
        stored = copy.deepcopy(manifest)
        uid = f"{next(self._uids):08d}-0000-4000-8000-000000000000"
        stored["metadata"] |= {"uid": uid, "creationTimestamp": timestamp(self._time.now()), "generation": 1}
        self._alive.add(uid)
        owners = [owner["uid"] for owner in metadata.get("ownerReferences", ())]
        for owner in owners:
            self._owned[owner].add(id_)
            if owner not in self._alive:
                self._collect_soon(owner)
        if plural == "events":
            self._time.later(EVENTS_KEPT_SECONDS, lambda: self.remove(id_, uid))
        return self._store("ADDED", id_, stored)

    def change(self, id_: Id, uid: str, change: Callable[[Manifest], object]) -> None:
        """Store a copy of the object after `change`, if its UID is still the same."""
        version = self.objects.get(id_)
        if version is None or version.uid != uid:
            return
        manifest = copy.deepcopy(version.manifest)
        change(manifest)
        self._store("MODIFIED", id_, manifest)

    def remove(self, id_: Id, uid: str) -> None:
        """Remove the object from the store."""
        version = self.objects.get(id_)
        if version is None or version.uid != uid:
            return
        del self.objects[id_]
        self._alive.discard(uid)
        self.logs.pop(uid, None)
        for owner in version.manifest["metadata"].get("ownerReferences", ()):
            self._owned[owner["uid"]].discard(id_)
            if not self._owned[owner["uid"]]:
                del self._owned[owner["uid"]]
        self._remember("DELETED", Version(id_, self._next(), self._numbered(version.manifest)), version)
        self._collect_soon(uid)

    def delete(self, id_: Id, uid: str) -> None:
        """Delete the object as on request: pods have time to end, and owned objects are deleted later."""
        if id_.plural != "pods":
            self.remove(id_, uid)
            return
        deleted = timestamp(self._time.now().replace(microsecond=0) + GRACE)
        self.change(id_, uid, lambda pod: pod["metadata"].setdefault("deletionTimestamp", deleted))

    def compact(self) -> None:
        """Forget earlier versions, so that watches have to list again and lists in progress have to restart."""
        self._forgotten = self.number
        self._past.clear()
        self._pages.clear()

    def end_watches(self) -> None:
        """End all watches, like a server that is restarted."""
        for watch in list(self.watches):
            watch.end()

    # What is asked over the network.

    def answer(self, method: str, path: str, query: dict[str, str], body: Manifest | None) -> str:
        """Return the body of the answer; raise RefusedError for others than 2xx."""
        if path in {SCHEMAS_PATH, KINDS_PATH}:
            return _schemas() if path == SCHEMAS_PATH else _kinds(self.plurals)
        match = PATH.fullmatch(path)
        if match is None or match["plural"] not in self.plurals:
            raise RefusedError(404, f"the server could not find the requested resource {path}")
        plural, namespace, name = match["plural"], match["namespace"], match["name"]
        if method == "GET" and name is None:
            return self._list(plural, namespace, query)
        if method == "POST":
            manifest = {**body, "metadata": {"namespace": namespace, **body["metadata"]}}
            return json.dumps(manifest) if query.get("dryRun") else self.create(plural, manifest).text
        version = self.objects.get(Id(plural, namespace, name))
        if version is None:
            raise RefusedError(404, f'{plural} "{name}" not found')
        if method == "GET":
            return self._log(version) if match["subresource"] == "log" else version.text
        if method == "PUT":
            return self._replace(version, body, match["subresource"])
        if (uid := (body.get("preconditions") or {}).get("uid", version.uid)) != version.uid:
            raise RefusedError(409, f"the UID in the precondition ({uid}) does not match the UID in record")
        now = version.manifest["metadata"]["resourceVersion"]
        if (body.get("preconditions") or {}).get("resourceVersion", now) != now:
            raise RefusedError(409, "the ResourceVersion in the precondition does not match the one in record")
        self.delete(version.id, version.uid)
        return version.text

    def watch(self, path: str, query: dict[str, str], woken: Callable[[], None]) -> Watch:
        """Open a watch from the query's resource version; raise RefusedError if that is too old."""
        match = PATH.fullmatch(path)
        since = int(query["resourceVersion"])
        if since < self._forgotten:
            raise RefusedError(410, f"too old resource version: {since} ({self._forgotten})")
        watch = Watch(match["plural"], match["namespace"], _selecting(query), woken)
        for _, kind, version in self._past:
            if version.number > since:
                watch.tell(kind, version)
        self.watches.append(watch)
        return watch

    def _list(self, plural: str, namespace: str | None, query: dict[str, str]) -> str:
        token = query.get("continue")
        if token is None:
            wanted = _selecting(query)
            number, found = (
                self.number,
                [
                    version
                    for id_, version in self.objects.items()
                    if id_.plural == plural and namespace in {None, id_.namespace} and wanted(version.manifest)
                ],
            )
        elif token in self._pages:
            number, found = self._pages.pop(token)
        else:
            raise RefusedError(410, "The provided continue parameter is too old")
        page, rest = found[:PAGE], found[PAGE:]
        metadata = {"resourceVersion": str(number)}
        if rest:
            metadata["continue"] = f"{number}-{len(rest)}-{self._next()}"
            self._pages[metadata["continue"]] = (number, rest)
        items = ", ".join(version.text for version in page)
        return f'{{"metadata": {json.dumps(metadata)}, "items": [{items}]}}'

    def _log(self, pod: Version) -> str:
        if pod.uid not in self.logs:
            raise RefusedError(404, f'pods "{pod.id.name}" not found')
        return self.logs[pod.uid]

    def _replace(self, version: Version, body: Manifest, subresource: str | None) -> str:
        if body["metadata"].get("uid", version.uid) != version.uid:
            raise RefusedError(409, "the UID in the precondition does not match the UID in record")
        asked = body["metadata"].get("resourceVersion")
        if asked and asked != version.manifest["metadata"]["resourceVersion"]:
            raise RefusedError(409, "the object has been modified; please apply your changes to the latest version")
        if subresource == "status":
            return self._store("MODIFIED", version.id, {**version.manifest, "status": body["status"]}).text
        return self._store("MODIFIED", version.id, {**body, "metadata": version.manifest["metadata"]}).text

    def _store(self, kind: str, id_: Id, manifest: Manifest) -> Version:
        before = self.objects.get(id_)
        version = self.version(id_, self._next(), self._numbered(manifest))
        self.objects[id_] = version
        self._remember(kind, version, before)
        return version

    def _next(self) -> int:
        self.number = next(self._numbers)
        return self.number

    def _numbered(self, manifest: Manifest) -> Manifest:
        return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(self.number)}}

    def _remember(self, kind: str, version: Version, before: Version | None) -> None:
        now = self._time.seconds
        while self._past and self._past[0][0] < now - KEPT_SECONDS:
            self._forgotten = self._past.popleft()[2].number
        self._past.append((now, kind, version))
        for watch in list(self.watches):
            watch.tell(kind, version)
        for changed in self.changed:
            changed(kind, version, before)

    def _collect_soon(self, owner: str) -> None:
        """Delete objects of a deleted owner, one after the other."""
        if owner in self._owned:
            self._time.later(self._random.uniform(0.05, COLLECTED_SECONDS), lambda: self._collect(owner))

    def _collect(self, owner: str) -> None:
        for id_ in sorted(self._owned.get(owner, ())):
            version = self.objects[id_]
            if version.manifest["metadata"].get("deletionTimestamp") is None:
                self.delete(id_, version.uid)


@functools.cache
def _schemas() -> str:
    kinds = {}
    for kind in crd.KINDS:
        group = {"group": "accelbench.dev", "version": "v1alpha1", "kind": kind.name}
        kinds[kind.name] = {**own_schema(kind), "x-kubernetes-group-version-kind": [group]}
    return json.dumps({"components": {"schemas": kinds}})


def _kinds(plurals: set[str]) -> str:
    """Return the kinds of accelbench that are served."""
    return json.dumps({"resources": [{"kind": kind.name} for kind in crd.KINDS if kind.plural in plurals]})


def _selecting(query: dict[str, str]) -> Callable[[Manifest], bool]:
    """Return a filter for label selectors of `key=value` and `key`, and field selectors of `metadata.name=value`."""
    field, _, name = query.get("fieldSelector", "").partition("=")
    terms = [term.partition("=") for term in query.get("labelSelector", "").split(",") if term]

    def wanted(manifest: Manifest) -> bool:
        labels = manifest["metadata"].get("labels") or {}
        if field == "metadata.name" and manifest["metadata"]["name"] != name:
            return False
        return all((labels.get(key) == value) if equals else key in labels for key, equals, value in terms)

    return wanted


def lines(watch: Watch, bookmark: int) -> Iterator[str]:
    """Yield the pending events of a watch as they are sent, and a bookmark at version `bookmark`."""
    while watch.told:
        kind, version = watch.told.popleft()
        yield f'{{"type": "{kind}", "object": {version.text}}}'
    yield f'{{"type": "BOOKMARK", "object": {{"metadata": {{"resourceVersion": "{bookmark}"}}}}}}'
