"""Which node fits which profile, and why not: what a scheduler decides of one pod, in words, without asking one. Pure.

It knows what a profile says. What a run's `podTemplate` adds, and which device of a DeviceClass is free, it does not.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from accelbench.api import labels
from accelbench.api.profiles import Profile, ProfileToleration
from accelbench.plan import quantity

Manifest = Mapping[str, Any]
Amounts = Mapping[str, Decimal]
Cause = Literal["label", "taint", "resource", "occupied"]
REPELLING = ("NoSchedule", "NoExecute")
OVER = ("Succeeded", "Failed")
GIBIBYTE = 2**30


@dataclass(frozen=True)
class Taint:
    """What keeps pods off a node that do not tolerate it."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        """As `kubectl taint` takes it."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True)
class Node:
    """A node, as much of it as decides, with what its pods have taken."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    allocatable: Amounts = field(default_factory=dict)
    taken: Amounts = field(default_factory=dict)
    cases: int = 0
    """Pods of cases that are on it."""
    held_whole: bool = False
    """One of them has it to itself."""
    drivers: frozenset[str] = frozenset()
    """That publish devices of it for dynamic resource allocation."""

    @property
    def devices(self) -> Mapping[str, int]:
        """Extended resources that it offers, how many of each."""
        return {name: int(amount) for name, amount in self.allocatable.items() if _is_device(name) and amount > 0}


@dataclass(frozen=True)
class Misfit:
    """One reason why a profile's pod does not go to a node; `occupied` is over when somebody else is done."""

    cause: Cause
    message: str


def misfits(profile: Profile, node: Node) -> tuple[Misfit, ...]:
    """Everything that keeps a case of that profile off the node; empty: a scheduler can place it there now."""
    return (
        *_claims(profile, node),
        *_amounts(asked_for(profile), node),
        *_labels(profile, node),
        *_taints(profile.tolerations, node),
        *_neighbours(profile, node),
    )


def fits(profile: Profile, node: Node) -> bool:
    """Whether a case of that profile can be there, now or once others are done."""
    return all(each.cause == "occupied" for each in misfits(profile, node))


def asked_for(profile: Profile) -> Amounts:
    """What a case's pod asks for, by resource, the device first."""
    devices = {profile.resource: Decimal(profile.slice_chips or 1)} if profile.resource else {}
    return devices | {"cpu": Decimal(profile.cpu), "memory": quantity.parse(profile.memory)}


def uncovered(profiles: Iterable[Profile], nodes: Iterable[Node]) -> Mapping[str, tuple[Node, ...]]:
    """Devices that no profile gets at, by resource, with the nodes that offer them."""
    profiles, found = tuple(profiles), defaultdict(list)
    for node in nodes:
        got = {profile.resource for profile in profiles if fits(profile, node)}
        for resource in node.devices.keys() - got:
            found[resource].append(node)
    return {resource: tuple(found[resource]) for resource in sorted(found)}


def _labels(profile: Profile, node: Node) -> Iterator[Misfit]:
    for key, wanted in profile.node_selector.items():
        value = node.labels.get(key)
        if value is None:
            yield Misfit("label", f"has no label {key}")
        elif value != wanted:
            yield Misfit("label", f"{key} is {value}, not {wanted}")


def _taints(tolerations: Sequence[ProfileToleration], node: Node) -> Iterator[Misfit]:
    for taint in node.taints:
        if taint.effect in REPELLING and not any(_tolerates(each, taint) for each in tolerations):
            yield Misfit("taint", f"has the taint {taint}")


def _tolerates(toleration: ProfileToleration, taint: Taint) -> bool:
    return (
        toleration.key in {None, taint.key}
        and (toleration.operator == "Exists" or (toleration.value or "") == taint.value)
        and toleration.effect in {None, taint.effect}
    )


def _amounts(asked: Amounts, node: Node) -> Iterator[Misfit]:
    for name, amount in asked.items():
        offered = node.allocatable.get(name, Decimal(0))
        free = offered - node.taken.get(name, Decimal(0))
        if offered < amount:
            what = f"offers {show(name, offered)}, short of {show(name, amount)}" if offered else f"offers no {name}"
            yield Misfit("resource", what)
        elif free < amount:
            yield Misfit("occupied", f"has {show(name, max(free, Decimal(0)))} free, of {show(name, offered)}")
    room = node.allocatable.get("pods", Decimal(0))
    if node.taken.get("pods", Decimal(0)) >= room:
        yield Misfit("occupied", f"has all of its {room} pods")


def _claims(profile: Profile, node: Node) -> Iterator[Misfit]:
    if profile.device_class and not node.drivers:
        yield Misfit("resource", f"has no driver that publishes devices: none of DeviceClass {profile.device_class}")


def _neighbours(profile: Profile, node: Node) -> Iterator[Misfit]:
    if node.held_whole:
        yield Misfit("occupied", "a case has it to itself")
    elif profile.takes_whole_node and node.cases:
        yield Misfit("occupied", "a case is measured there, and this one has its node to itself")


def show(resource: str, amount: Decimal) -> str:
    """`4 cpu`, `16 GiB memory`, `1 nvidia.com/gpu`."""
    if resource == "memory":
        return f"{float(amount / GIBIBYTE):.3g} GiB memory"
    return f"{float(amount):g} {resource}"


def _is_device(resource: str) -> bool:
    """Extended resources have a domain; those of Kubernetes' own are no devices."""
    domain, slash, _ = resource.partition("/")
    return bool(slash) and not domain.endswith("kubernetes.io")


def read_nodes(nodes: Iterable[Manifest], pods: Iterable[Manifest], slices: Iterable[Manifest]) -> tuple[Node, ...]:
    """Nodes of their manifests, those of all pods, and the ResourceSlices; sorted by name."""
    on: defaultdict[str, list[Manifest]] = defaultdict(list)
    for pod in pods:
        if (pod.get("status") or {}).get("phase") not in OVER:
            on[pod["spec"].get("nodeName") or ""].append(pod)
    drivers: defaultdict[str, set[str]] = defaultdict(set)
    for each in slices:
        drivers[each["spec"].get("nodeName") or ""].add(each["spec"]["driver"])
    read = (_node(each, on[each["metadata"]["name"]], drivers[each["metadata"]["name"]]) for each in nodes)
    return tuple(sorted(read, key=lambda node: node.name))


def _node(body: Manifest, pods: Sequence[Manifest], drivers: Iterable[str]) -> Node:
    spec, status = body.get("spec") or {}, body.get("status") or {}
    taken: defaultdict[str, Decimal] = defaultdict(Decimal)
    for pod in pods:
        for name, amount in requested(pod["spec"]).items():
            taken[name] += amount
    cases = [pod for pod in pods if _is_case(pod)]
    return Node(
        name=body["metadata"]["name"],
        labels=body["metadata"].get("labels") or {},
        taints=tuple(Taint(each["key"], each.get("value") or "", each["effect"]) for each in spec.get("taints") or ()),
        allocatable={name: quantity.parse(each) for name, each in (status.get("allocatable") or {}).items()},
        taken=taken,
        cases=len(cases),
        held_whole=any((pod["spec"].get("affinity") or {}).get("podAntiAffinity") for pod in cases),
        drivers=frozenset(drivers),
    )


def requested(spec: Manifest) -> Amounts:
    """What a scheduler counts of a pod: all containers together, or the largest that runs before them."""
    total: defaultdict[str, Decimal] = defaultdict(Decimal)
    first: defaultdict[str, Decimal] = defaultdict(Decimal)
    for container in spec.get("containers") or ():
        for name, amount in _requests(container).items():
            total[name] += amount
    for container in spec.get("initContainers") or ():
        beside = container.get("restartPolicy") == "Always"
        for name, amount in _requests(container).items():
            if beside:
                total[name] += amount
            else:
                first[name] = max(first[name], amount)
    overhead = {name: quantity.parse(each) for name, each in (spec.get("overhead") or {}).items()}
    names = total.keys() | first.keys() | overhead.keys()
    counted = {name: max(total[name], first[name]) + overhead.get(name, Decimal(0)) for name in names}
    return counted | {"pods": Decimal(1)}


def _requests(container: Manifest) -> Amounts:
    requests = (container.get("resources") or {}).get("requests") or {}
    return {name: quantity.parse(each) for name, each in requests.items()}


def _is_case(pod: Manifest) -> bool:
    marks = pod["metadata"].get("labels") or {}
    return marks.get(labels.MANAGED_BY) == labels.MANAGER and labels.CASE in marks
