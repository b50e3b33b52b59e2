"""Decide which nodes fit which profile and why not, as a scheduler would decide for one pod.

Only the profile is considered: neither a run's `podTemplate`, nor which device of a DeviceClass is free.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from accelbench.api import labels
from accelbench.api.profiles import Profile, ProfileToleration

Manifest = Mapping[str, Any]
Amounts = Mapping[str, Decimal]
Cause = Literal["label", "taint", "resource", "occupied"]
REPELLING_EFFECTS = ("NoSchedule", "NoExecute")
ENDED_PHASES = ("Succeeded", "Failed")
GIBIBYTE = 2**30
SUFFIXES = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3")}
SUFFIXES |= {letter: Decimal(1000) ** power for power, letter in enumerate(("k", "M", "G", "T", "P", "E"), start=1)}
SUFFIXES |= {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)}


@dataclass(frozen=True)
class Taint:
    """Hold a node's taint."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        """Return the taint as `kubectl taint` takes it."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True)
class Node:
    """Hold the properties of a node that decide placement, and what its pods use."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    allocatable: Amounts = field(default_factory=dict)
    taken: Amounts = field(default_factory=dict)
    cases: int = 0
    """Number of its pods that measure cases."""
    exclusive: bool = False
    """True if one of these pods has the node to itself."""
    drivers: frozenset[str] = frozenset()
    """Drivers that publish its devices for dynamic resource allocation."""

    @property
    def devices(self) -> Mapping[str, int]:
        """Return its extended resources, with the number of each."""
        return {name: int(amount) for name, amount in self.allocatable.items() if _is_device(name) and amount > 0}


@dataclass(frozen=True)
class Misfit:
    """Hold one reason why a profile's pod cannot go to a node; `occupied` ends when other pods end."""

    cause: Cause
    message: str


def misfits(profile: Profile, node: Node) -> tuple[Misfit, ...]:
    """Return every reason why the node cannot take a case of that profile now; empty if it can."""
    return (
        *_claim_misfits(profile, node),
        *_resource_misfits(profile_requests(profile), node),
        *_label_misfits(profile, node),
        *_taint_misfits(profile.tolerations, node),
        *_exclusion_misfits(profile, node),
    )


def fits(profile: Profile, node: Node) -> bool:
    """Return True if the node can take a case of that profile, now or when other pods end."""
    return all(misfit.cause == "occupied" for misfit in misfits(profile, node))


def profile_requests(profile: Profile) -> Amounts:
    """Return what a case's pod requests, by resource, the device first."""
    devices = {profile.resource: Decimal(profile.slice_chips or 1)} if profile.resource else {}
    return devices | {"cpu": Decimal(profile.cpu), "memory": parse_quantity(profile.memory)}


def uncovered(profiles: Iterable[Profile], nodes: Iterable[Node]) -> Mapping[str, tuple[Node, ...]]:
    """Return, for each extended resource, the nodes that offer it but on which no profile can use it."""
    profiles, offering = tuple(profiles), defaultdict(list)
    for node in nodes:
        covered = {profile.resource for profile in profiles if fits(profile, node)}
        for resource in node.devices.keys() - covered:
            offering[resource].append(node)
    return {resource: tuple(offering[resource]) for resource in sorted(offering)}


def _label_misfits(profile: Profile, node: Node) -> Iterator[Misfit]:
    """Yield each label of the profile's node selector that the node lacks, or has with another value."""
    for key, wanted in profile.node_selector.items():
        value = node.labels.get(key)
        if value is None:
            yield Misfit("label", f"has no label {key}")
        elif value != wanted:
            yield Misfit("label", f"{key} is {value}, not {wanted}")


def _taint_misfits(tolerations: Sequence[ProfileToleration], node: Node) -> Iterator[Misfit]:
    """Yield each taint that keeps pods off the node and that no toleration matches."""
    for taint in node.taints:
        if taint.effect in REPELLING_EFFECTS and not any(_tolerates(toleration, taint) for toleration in tolerations):
            yield Misfit("taint", f"has the taint {taint}")


def _tolerates(toleration: ProfileToleration, taint: Taint) -> bool:
    """Return True if the toleration matches the taint; a missing key or effect matches all."""
    return (
        toleration.key in {None, taint.key}
        and (toleration.operator == "Exists" or (toleration.value or "") == taint.value)
        and toleration.effect in {None, taint.effect}
    )


def _resource_misfits(requests: Amounts, node: Node) -> Iterator[Misfit]:
    """Yield `resource` for what the node never has, and `occupied` for what other pods use, or if its pods are full."""
    for name, amount in requests.items():
        offered = node.allocatable.get(name, Decimal(0))
        free = offered - node.taken.get(name, Decimal(0))
        if offered < amount:
            lack = f"offers {show(name, offered)}, short of {show(name, amount)}" if offered else f"offers no {name}"
            yield Misfit("resource", lack)
        elif free < amount:
            yield Misfit("occupied", f"has {show(name, max(free, Decimal(0)))} free, of {show(name, offered)}")
    room = node.allocatable.get("pods", Decimal(0))
    if node.taken.get("pods", Decimal(0)) >= room:
        yield Misfit("occupied", f"has all of its {room} pods")


def _claim_misfits(profile: Profile, node: Node) -> Iterator[Misfit]:
    """Yield a misfit if the profile claims devices by a DeviceClass, and no driver publishes devices of the node."""
    if profile.device_class and not node.drivers:
        yield Misfit("resource", f"has no driver that publishes devices: none of DeviceClass {profile.device_class}")


def _exclusion_misfits(profile: Profile, node: Node) -> Iterator[Misfit]:
    """Yield a misfit if a case has the node to itself, or if this profile needs that and the node has cases."""
    if node.exclusive:
        yield Misfit("occupied", "a case has it to itself")
    elif profile.takes_whole_node and node.cases:
        yield Misfit("occupied", "a case is measured there, and this one has its node to itself")


def show(resource: str, amount: Decimal) -> str:
    """Format an amount: `4 cpu`, `16 GiB memory`, `1 nvidia.com/gpu`."""
    if resource == "memory":
        return f"{float(amount / GIBIBYTE):.3g} GiB memory"
    return f"{float(amount):g} {resource}"


def _is_device(resource: str) -> bool:
    """Return True for an extended resource: it has a domain that is not Kubernetes' own."""
    domain, slash, _ = resource.partition("/")
    return bool(slash) and not domain.endswith("kubernetes.io")


def read_nodes(nodes: Iterable[Manifest], pods: Iterable[Manifest], slices: Iterable[Manifest]) -> tuple[Node, ...]:
    """Build nodes, sorted by name, from manifests of nodes, pods and ResourceSlices; pods that ended use nothing."""
    pods_by_node: defaultdict[str, list[Manifest]] = defaultdict(list)
    for pod in pods:
        if (pod.get("status") or {}).get("phase") not in ENDED_PHASES:
            pods_by_node[pod["spec"].get("nodeName") or ""].append(pod)
    drivers: defaultdict[str, set[str]] = defaultdict(set)
    for resource_slice in slices:
        drivers[resource_slice["spec"].get("nodeName") or ""].add(resource_slice["spec"]["driver"])
    names = ((body, body["metadata"]["name"]) for body in nodes)
    return tuple(
        sorted(
            (_parse_node(body, pods_by_node[name], drivers[name]) for body, name in names), key=lambda node: node.name
        )
    )


def _parse_node(body: Manifest, pods: Sequence[Manifest], drivers: Iterable[str]) -> Node:
    """Build a node from its manifest, its pods that have not ended, and its drivers."""
    spec, status = body.get("spec") or {}, body.get("status") or {}
    taken: defaultdict[str, Decimal] = defaultdict(Decimal)
    for pod in pods:
        for name, amount in pod_requests(pod["spec"]).items():
            taken[name] += amount
    cases = [pod for pod in pods if _is_case(pod)]
    return Node(
        name=body["metadata"]["name"],
        labels=body["metadata"].get("labels") or {},
        taints=tuple(
            Taint(taint["key"], taint.get("value") or "", taint["effect"]) for taint in spec.get("taints") or ()
        ),
        allocatable={name: parse_quantity(amount) for name, amount in (status.get("allocatable") or {}).items()},
        taken=taken,
        cases=len(cases),
        exclusive=any((pod["spec"].get("affinity") or {}).get("podAntiAffinity") for pod in cases),
        drivers=frozenset(drivers),
    )


def pod_requests(spec: Manifest) -> Amounts:
    """Return what a scheduler reserves for a pod, by resource, including one of `pods`.

    It is the larger of its containers' sum, with sidecars, and its largest init container, plus the overhead.
    """
    total: defaultdict[str, Decimal] = defaultdict(Decimal)
    first: defaultdict[str, Decimal] = defaultdict(Decimal)
    for container in spec.get("containers") or ():
        for name, amount in _requests(container).items():
            total[name] += amount
    for container in spec.get("initContainers") or ():
        sidecar = container.get("restartPolicy") == "Always"
        for name, amount in _requests(container).items():
            if sidecar:
                total[name] += amount
            else:
                first[name] = max(first[name], amount)
    overhead = {name: parse_quantity(amount) for name, amount in (spec.get("overhead") or {}).items()}
    names = total.keys() | first.keys() | overhead.keys()
    counted = {name: max(total[name], first[name]) + overhead.get(name, Decimal(0)) for name in names}
    return counted | {"pods": Decimal(1)}


def _requests(container: Manifest) -> Amounts:
    """Return the container's requests by resource."""
    requests = (container.get("resources") or {}).get("requests") or {}
    return {name: parse_quantity(amount) for name, amount in requests.items()}


def _is_case(pod: Manifest) -> bool:
    """Return True if the pod measures a case of accelbench."""
    marks = pod["metadata"].get("labels") or {}
    return marks.get(labels.MANAGED_BY) == labels.MANAGER and labels.CASE in marks


def parse_quantity(text: str | int) -> Decimal:
    """Convert a Kubernetes quantity (`500m`, `64Gi`, `1e3`) to a number; raises ValueError if it is none."""
    written = str(text)
    suffix = next((suffix for suffix in sorted(SUFFIXES, key=len, reverse=True) if written.endswith(suffix)), "")
    try:
        return Decimal(written.removesuffix(suffix)) * SUFFIXES.get(suffix, Decimal(1))
    except ArithmeticError as error:
        raise ValueError(f'"{text}" is not a quantity, such as 2, 500m or 64Gi') from error
