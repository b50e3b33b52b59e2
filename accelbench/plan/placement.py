"""Decide which nodes fit which profile and why not, as a scheduler would decide for one pod.

Only the profile is considered: neither a run's `podTemplate`, nor which devices of a DeviceClass are free.
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
"""Effects of taints that keep a new pod off the node."""
ENDED_PHASES = ("Succeeded", "Failed")
GIBIBYTE = 2**30
SUFFIXES = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3")}
SUFFIXES |= {letter: Decimal(1000) ** power for power, letter in enumerate(("k", "M", "G", "T", "P", "E"), start=1)}
SUFFIXES |= {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)}
"""Suffixes of Kubernetes quantities, each with its factor."""


@dataclass(frozen=True)
class Taint:
    """Hold a node's taint."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        """Return the taint in the form that `kubectl taint` takes: `key=value:NoSchedule`."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True)
class Node:
    """Hold the properties of a node that decide placement, and the requests of its pods."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    allocatable: Amounts = field(default_factory=dict)
    requested: Amounts = field(default_factory=dict)
    """Total of the requests of all pods on the node, by resource."""
    cases: int = 0
    """Number of pods on the node that measure cases."""
    exclusive: bool = False
    """True if one of these pods has the node to itself, so that no other case fits."""
    drivers: frozenset[str] = frozenset()
    """Drivers that publish the node's devices for dynamic resource allocation."""

    @property
    def devices(self) -> Mapping[str, int]:
        """Return the number of devices that the node offers, by extended resource."""
        return {name: int(amount) for name, amount in self.allocatable.items() if _is_device(name) and amount > 0}


@dataclass(frozen=True)
class Misfit:
    """Hold one reason why a pod of a profile does not fit on a node."""

    cause: Cause
    """`occupied`: the pod fits when other pods end. Any other cause is permanent."""
    message: str


def misfits(profile: Profile, node: Node) -> tuple[Misfit, ...]:
    """Return every reason why a pod of this profile cannot run on the node now."""
    return (
        *_claim_misfits(profile, node),
        *_resource_misfits(profile_requests(profile), node),
        *_label_misfits(profile, node),
        *_taint_misfits(profile.tolerations, node),
        *_exclusion_misfits(profile, node),
    )


def fits(profile: Profile, node: Node) -> bool:
    """Return True if a pod of this profile can run on the node, now or when other pods have ended."""
    return all(misfit.cause == "occupied" for misfit in misfits(profile, node))


def profile_requests(profile: Profile) -> Amounts:
    """Return what a pod of this profile requests: devices, CPUs, memory and disk."""
    devices = {}
    if profile.resource:
        # A pod on a TPU slice requests all chips of the slice.
        devices[profile.resource] = Decimal(profile.slice_chips or 1)
    return devices | {
        "cpu": Decimal(profile.cpu),
        "memory": parse_quantity(profile.memory),
        "ephemeral-storage": parse_quantity(profile.ephemeral_storage),
    }


def resources_without_profile(profiles: Iterable[Profile], nodes: Iterable[Node]) -> Mapping[str, tuple[Node, ...]]:
    """Return the nodes that have devices which no profile can use, by the extended resource of these devices."""
    profiles = tuple(profiles)
    nodes_by_resource: defaultdict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        usable_resources = {profile.resource for profile in profiles if fits(profile, node)}
        for resource in node.devices.keys() - usable_resources:
            nodes_by_resource[resource].append(node)
    return {resource: tuple(nodes_by_resource[resource]) for resource in sorted(nodes_by_resource)}


def _label_misfits(profile: Profile, node: Node) -> Iterator[Misfit]:
    """Yield a misfit for each node label that the profile requires and this node lacks, or has with another value."""
    for key, selected_value in profile.node_labels.items():
        value = node.labels.get(key)
        if value is None:
            yield Misfit("label", f"has no label {key}")
        elif value != selected_value:
            yield Misfit("label", f"{key} is {value}, not {selected_value}")


def _taint_misfits(tolerations: Sequence[ProfileToleration], node: Node) -> Iterator[Misfit]:
    """Yield a misfit for each taint of the node that keeps off pods with these tolerations."""
    for taint in node.taints:
        is_tolerated = any(_tolerates(toleration, taint) for toleration in tolerations)
        if taint.effect in REPELLING_EFFECTS and not is_tolerated:
            yield Misfit("taint", f"has the taint {taint}")


def _tolerates(toleration: ProfileToleration, taint: Taint) -> bool:
    """Return True if the toleration matches the taint; without a key or an effect, a toleration matches all of them."""
    matches_key = toleration.key in {None, taint.key}
    has_same_value = (toleration.value or "") == taint.value
    matches_value = toleration.operator == "Exists" or has_same_value
    matches_effect = toleration.effect in {None, taint.effect}
    return matches_key and matches_value and matches_effect


def _resource_misfits(requests: Amounts, node: Node) -> Iterator[Misfit]:
    """Yield a misfit for each resource of which the node offers too little, or other pods leave too little.

    The second kind of misfit has the cause `occupied`, because the other pods will end. A node that has its maximum of
    pods is `occupied` too.
    """
    for name, amount in requests.items():
        offered = node.allocatable.get(name, Decimal(0))
        free = offered - node.requested.get(name, Decimal(0))
        if not offered and amount > 0:
            yield Misfit("resource", f"offers no {name}")
        elif offered < amount:
            message = f"offers {format_amount(name, offered)}, short of {format_amount(name, amount)}"
            yield Misfit("resource", message)
        elif free < amount:
            free_text = format_amount(name, max(free, Decimal(0)))
            yield Misfit("occupied", f"has {free_text} free, of {format_amount(name, offered)}")
    maximum_pods = node.allocatable.get("pods", Decimal(0))
    if node.requested.get("pods", Decimal(0)) >= maximum_pods:
        yield Misfit("occupied", f"has all of its {maximum_pods} pods")


def _claim_misfits(profile: Profile, node: Node) -> Iterator[Misfit]:
    """Yield a misfit if the profile claims devices of a DeviceClass, and no driver publishes devices of the node."""
    if profile.device_class and not node.drivers:
        yield Misfit("resource", f"has no driver that publishes devices: none of DeviceClass {profile.device_class}")


def _exclusion_misfits(profile: Profile, node: Node) -> Iterator[Misfit]:
    """Yield a misfit if the node has a case, and that case or a case of this profile must have its node to itself."""
    if node.exclusive:
        yield Misfit("occupied", "a case has it to itself")
    elif profile.takes_whole_node and node.cases:
        yield Misfit("occupied", "a case is measured there, and this one has its node to itself")


def format_amount(resource: str, amount: Decimal) -> str:
    """Format an amount of a resource, such as `4 cpu`, `16 GiB memory`, `1 nvidia.com/gpu`."""
    if resource in {"memory", "ephemeral-storage"}:
        return f"{float(amount / GIBIBYTE):.3g} GiB {resource}"
    return f"{float(amount):g} {resource}"


def _is_device(resource: str) -> bool:
    """Return True for an extended resource, such as `nvidia.com/gpu`: devices have a vendor's domain."""
    domain, slash, _ = resource.partition("/")
    has_domain = bool(slash)
    return has_domain and not domain.endswith("kubernetes.io")


def read_nodes(nodes: Iterable[Manifest], pods: Iterable[Manifest], slices: Iterable[Manifest]) -> tuple[Node, ...]:
    """Build nodes, sorted by name, from the manifests of a cluster's nodes, pods and ResourceSlices."""
    pods_by_node: defaultdict[str, list[Manifest]] = defaultdict(list)
    for pod in pods:
        phase = (pod.get("status") or {}).get("phase")
        if phase not in ENDED_PHASES:
            pods_by_node[pod["spec"].get("nodeName") or ""].append(pod)  # a pod that is not scheduled has no node
    drivers_by_node: defaultdict[str, set[str]] = defaultdict(set)
    for resource_slice in slices:  # without `nodeName`, the devices belong to no single node
        drivers_by_node[resource_slice["spec"].get("nodeName") or ""].add(resource_slice["spec"]["driver"])
    parsed_nodes = []
    for body in nodes:
        name = body["metadata"]["name"]
        parsed_nodes.append(_parse_node(body, pods_by_node[name], drivers_by_node[name]))
    return tuple(sorted(parsed_nodes, key=lambda node: node.name))


def _parse_node(body: Manifest, pods: Sequence[Manifest], drivers: Iterable[str]) -> Node:
    """Build a node from its manifest, its pods, and the drivers of its devices."""
    spec, status = body.get("spec") or {}, body.get("status") or {}
    requested: defaultdict[str, Decimal] = defaultdict(Decimal)
    for pod in pods:
        for name, amount in pod_requests(pod["spec"]).items():
            requested[name] += amount
    case_pods = [pod for pod in pods if _is_case(pod)]
    return Node(
        name=body["metadata"]["name"],
        labels=body["metadata"].get("labels") or {},
        taints=tuple(
            Taint(taint["key"], taint.get("value") or "", taint["effect"]) for taint in spec.get("taints") or ()
        ),
        allocatable={name: parse_quantity(amount) for name, amount in (status.get("allocatable") or {}).items()},
        requested=requested,
        cases=len(case_pods),
        # The pod of a case that has a node to itself has an anti-affinity to other pods.
        exclusive=any((pod["spec"].get("affinity") or {}).get("podAntiAffinity") for pod in case_pods),
        drivers=frozenset(drivers),
    )


def pod_requests(spec: Manifest) -> Amounts:
    """Return the amount of each resource that the scheduler reserves for a pod with this spec.

    That is the sum of all containers and sidecars, plus the pod's overhead. Init containers run one by one before the
    others: if one of them needs more than the sum, its amount replaces the sum. Each pod also counts as 1 of `pods`.
    """
    container_sum: defaultdict[str, Decimal] = defaultdict(Decimal)
    largest_init: defaultdict[str, Decimal] = defaultdict(Decimal)
    for container in spec.get("containers") or ():
        for name, amount in _container_requests(container).items():
            container_sum[name] += amount
    for container in spec.get("initContainers") or ():
        is_sidecar = container.get("restartPolicy") == "Always"
        for name, amount in _container_requests(container).items():
            if is_sidecar:
                container_sum[name] += amount
            else:
                largest_init[name] = max(largest_init[name], amount)
    overhead = {name: parse_quantity(amount) for name, amount in (spec.get("overhead") or {}).items()}
    requests = {}
    for name in container_sum.keys() | largest_init.keys() | overhead.keys():
        requests[name] = max(container_sum[name], largest_init[name]) + overhead.get(name, Decimal(0))
    return requests | {"pods": Decimal(1)}


def _container_requests(container: Manifest) -> Amounts:
    """Return the amounts that the container requests, by resource."""
    requests = (container.get("resources") or {}).get("requests") or {}
    return {name: parse_quantity(amount) for name, amount in requests.items()}


def _is_case(pod: Manifest) -> bool:
    """Return True if the pod measures a case of accelbench."""
    pod_labels = pod["metadata"].get("labels") or {}
    return pod_labels.get(labels.MANAGED_BY) == labels.MANAGER and labels.CASE in pod_labels


def parse_quantity(text: str | int) -> Decimal:
    """Convert a Kubernetes quantity to a number: `500m` to 0.5, `64Gi` to 64 * 2**30. Raises ValueError."""
    quantity = str(text)
    longest_first = sorted(SUFFIXES, key=len, reverse=True)
    suffix = next((suffix for suffix in longest_first if quantity.endswith(suffix)), "")
    try:
        return Decimal(quantity.removesuffix(suffix)) * SUFFIXES.get(suffix, Decimal(1))
    except ArithmeticError as error:
        raise ValueError(f'"{text}" is not a quantity, such as 2, 500m or 64Gi') from error
