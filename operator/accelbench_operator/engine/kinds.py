"""Describe the kinds of objects that controllers read, and how one object is identified."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from accelbench.cluster_api.kinds import Kind

Manifest = Mapping[str, Any]
Name = tuple[str, str]
"""Namespace and name."""


class Key(NamedTuple):
    """Identify one object; a new object of the same name has another UID."""

    kind: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, kind: str, manifest: Manifest) -> "Key":
        """Return the key of the object with that kind and manifest."""
        metadata = manifest["metadata"]
        return cls(kind, metadata.get("namespace", ""), metadata["name"], metadata.get("uid", ""))

    def __str__(self) -> str:
        """Return kind, namespace and name, for logs."""
        return f"{self.kind} {self.namespace}/{self.name}"


class StoredObject(Protocol):
    """Define the attributes that the store needs of an object."""

    @property
    def key(self) -> Key:
        """Return the key of the object."""

    @property
    def owner(self) -> str:
        """Return the UID of the owner, which is reconciled when this object changes."""


@dataclass(frozen=True)
class Owned:
    """Describe a kind of objects that a controller's objects own: which ones to read, and how to store them."""

    kind: Kind
    selector: str
    """Label selector of the list and the watch."""
    convert: Callable[[Manifest], StoredObject | None]
    """Return the form in which to store an object; None to ignore the object. May raise ValueError and KeyError."""
    immutable: bool = False
    """True if objects of the kind never change: a stored one is then not converted again."""


def controller_of(manifest: Manifest) -> Mapping[str, Any]:
    """Return the owner reference whose `controller` is true; empty if there is none."""
    owners = manifest["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), {})


def controller_uid(manifest: Manifest, kind: Kind) -> str:
    """Return the UID of the object's controller; empty if there is none, or if it is not of this `kind`."""
    owner = controller_of(manifest)
    has_same_group = _group(owner.get("apiVersion", "")) == _group(kind.api_version)
    if not has_same_group or owner.get("kind") != kind.name:
        return ""
    return str(owner.get("uid", ""))


def _group(api_version: str) -> str:
    """Return the API group without its version, which another release may have written."""
    return api_version.rpartition("/")[0]
