"""Match the profiles of a cluster with its nodes, and print the matches and the devices that no profile selects."""

import json
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.table import Table

from accelbench.api import labels
from accelbench.api.profiles import (
    ARCHITECTURE_LABEL,
    InvalidProfilesError,
    Profile,
    Profiles,
    UnknownProfileError,
    load_presets,
    parse_profiles,
)
from accelbench.cluster_api.client import Client, Manifest, connect
from accelbench.cluster_api.errors import ClusterError, ForbiddenError, NotFoundError
from accelbench.cluster_api.kinds import CONFIG_MAP, NODE, POD, RESOURCE_SLICE, Kind
from accelbench.local.errors import UsageError
from accelbench.local.exits import Exit
from accelbench.plan.placement import (
    Misfit,
    Node,
    fits,
    format_amount,
    misfits,
    profile_requests,
    read_nodes,
    resources_without_profile,
)
from accelbench.problem import describe_unknown
from accelbench.terminal.console import console
from accelbench.terminal.options import Output

FORMAT = "accelbench.dev/profiles/v1alpha1"
REASONS = 3
"""Maximum number of reasons in a row of the overview."""
MAXIMUM_NAMES = 3
"""Maximum number of nodes that a row names."""


@dataclass(frozen=True)
class ClusterContents:
    """Hold objects of a cluster; None: the user may not list them, or the cluster has no such kind."""

    config_maps: Sequence[Manifest] | None
    nodes: Sequence[Manifest]
    pods: Sequence[Manifest] | None
    slices: Sequence[Manifest] | None


def read_cluster(
    context: str | None, class_name: str, operator_namespace: str | None, kubeconfig: Path | None = None
) -> ClusterContents:
    """Read the profiles of the operators with this class, and all nodes, pods and ResourceSlices of a cluster.

    If `operator_namespace` is None, profiles are read from all namespaces.

    Raises:
        ClusterError: The cluster cannot be read, or the user may not list nodes.
    """
    with connect(context, kubeconfig) as client:
        nodes = _list_objects(client, NODE)
        if nodes is None:
            raise ClusterError("you may not list nodes in this cluster: ask its administrator for that permission")
        selector = f"{labels.PROFILES}=true,{labels.CLASS}={class_name}"
        return ClusterContents(
            _list_objects(client, CONFIG_MAP, operator_namespace, labelSelector=selector),
            nodes,
            _list_objects(client, POD, fieldSelector="status.phase!=Succeeded,status.phase!=Failed"),
            _list_objects(client, RESOURCE_SLICE),
        )


def _list_objects(client: Client, kind: Kind, namespace: str | None = None, **query: str) -> Sequence[Manifest] | None:
    """List the objects of a kind; None if the user may not, or if the cluster does not have the kind."""
    try:
        return client.items(kind.path(namespace), **query)
    except (ForbiddenError, NotFoundError):
        return None


class NodeMatch(NamedTuple):
    """Hold a node, and the reasons why it cannot take a case of a profile now; empty if it can."""

    node: Node
    reasons: tuple[Misfit, ...]

    @property
    def fits(self) -> bool:
        """Return True if the node can take a case of the profile now, or can once other pods have ended."""
        return all(reason.cause == "occupied" for reason in self.reasons)


class ProfileMatches(NamedTuple):
    """Hold a profile and its match with each node."""

    profile: Profile
    nodes: tuple[NodeMatch, ...]
    source: str
    """The ConfigMap that publishes the operator's profiles, as `NAMESPACE/NAME`; empty if there is none."""


@dataclass(frozen=True)
class UncoveredDevices:
    """Describe devices that no profile selects."""

    resource: str
    nodes: tuple[str, ...]
    ready: tuple[str, ...]
    """Ready-made profiles that select them."""


@dataclass(frozen=True)
class ClusterMatches:
    """Hold the matches of a cluster's profiles with its nodes."""

    rows: tuple[ProfileMatches, ...]
    uncovered: tuple[UncoveredDevices, ...]
    notes: tuple[str, ...]
    """What the matches cannot show, a sentence each."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the ConfigMaps that publish profiles, each once."""
        return tuple(dict.fromkeys(row.source for row in self.rows))

    def of_profile(self, name: str) -> "ClusterMatches":
        """Return the matches of one profile only, without the devices that no profile selects.

        Raises UnknownProfileError if there is no such profile.
        """
        rows = tuple(row for row in self.rows if row.profile.name == name)
        if not rows:
            raise UnknownProfileError(describe_unknown("profile", name, {row.profile.name for row in self.rows}))
        return replace(self, rows=rows, uncovered=())


def match_profiles(contents: ClusterContents) -> ClusterMatches:
    """Match each profile with each node, and find devices that no profile selects.

    Objects that the user may not list count as absent. The result has a note if these are ConfigMaps or pods, or if a
    profile needs ResourceSlices.

    Raises:
        InvalidProfilesError: A profile is not valid.
    """
    nodes = read_nodes(contents.nodes, contents.pods or (), contents.slices or ())
    published = dict(map(_parse_config_map, contents.config_maps or ()))
    if not published:
        published = {"": Profiles()}  # the profiles that every operator has
    rows = []
    for source, source_profiles in published.items():
        for profile in source_profiles:
            node_matches = tuple(NodeMatch(node, misfits(profile, node)) for node in nodes)
            rows.append(ProfileMatches(profile, node_matches, source))
    profiles = [row.profile for row in rows]
    uncovered_devices = []
    for resource, device_nodes in resources_without_profile(profiles, nodes).items():
        node_names = tuple(node.name for node in device_nodes)
        ready_made = tuple(_ready_made_profiles(resource, device_nodes))
        uncovered_devices.append(UncoveredDevices(resource, node_names, ready_made))
    notes = (*_notes(contents, profiles), *_notes_on_sources(published), *_notes_on_architectures(rows))
    return ClusterMatches(tuple(rows), tuple(uncovered_devices), notes)


def _parse_config_map(config_map: Mapping[str, Any]) -> tuple[str, Profiles]:
    """Return the namespace and name of a ConfigMap, and the profiles that an operator publishes in it."""
    metadata = config_map["metadata"]
    source = f"{metadata['namespace']}/{metadata['name']}"
    text = (config_map.get("data") or {}).get("profiles.yaml", "")
    return source, Profiles(parse_profiles(text, f"ConfigMap {source}"))


def _ready_made_profiles(resource: str, nodes: Sequence[Node]) -> Iterator[str]:
    """Yield the names of accelbench's ready-made profiles that request this resource and fit one of the nodes."""
    for name, profile in load_presets().items():
        if profile.resource == resource and any(fits(profile, node) for node in nodes):
            yield name


def _notes(contents: ClusterContents, profiles: Iterable[Profile]) -> Iterator[str]:
    """Yield notes on what the matches cannot show: because the user may not list an object, or in principle."""
    if contents.config_maps is None:
        yield "you may not list ConfigMaps in this cluster: these are the profiles that every operator has"
    elif not contents.config_maps:
        yield "no operator of that class has profiles here: these are the ones that every operator has"
    if contents.pods is None:
        yield "you may not list pods in this cluster: nodes that are taken look free"
    if any(profile.device_class for profile in profiles):
        slices = "" if contents.slices else "; this cluster shows no ResourceSlice"
        yield f"only the scheduler knows which devices a DeviceClass holds, and which are free{slices}"


def _notes_on_sources(sources: Collection[str]) -> Iterator[str]:
    """Yield a note if several ConfigMaps publish profiles: an operator uses only the one in its namespace."""
    if len(sources) > 1:
        names = ", ".join(sorted(sources))
        yield (
            f"several ConfigMaps publish profiles of this class: {names}. An operator uses only the one in its own "
            "namespace, and anybody who may create ConfigMaps can publish another: give the operator's namespace with "
            "--operator-namespace"
        )


def _notes_on_architectures(rows: Iterable[ProfileMatches]) -> Iterator[str]:
    """Yield a note for each profile that fits nodes of several architectures, because its image is for one of them."""
    for profile, nodes, _ in rows:
        architectures = {match.node.labels.get(ARCHITECTURE_LABEL) for match in nodes if match.fits}
        names = sorted(name for name in architectures if name)
        if len(names) > 1:
            yield f"profile {profile.name} fits nodes of {' and '.join(names)}: set its arch to that of its image"


def as_json(matches: ClusterMatches) -> dict[str, Any]:
    """Return the matches as an object to print as JSON.

    In each node's object, `fits` is true also if other pods occupy the node, and `free` only if it can take a case now.
    """
    return {
        "format": FORMAT,
        "profiles": [_profile_document(row) for row in matches.rows],
        "uncovered": [
            {"resource": devices.resource, "nodes": list(devices.nodes), "ready": list(devices.ready)}
            for devices in matches.uncovered
        ],
        "notes": list(matches.notes),
    }


def _profile_document(row: ProfileMatches) -> dict[str, Any]:
    """Return a profile and its matches with all nodes as an object for JSON."""
    profile = row.profile
    return {
        **profile.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True),
        "source": row.source or None,
        "asksFor": {name: str(amount) for name, amount in profile_requests(profile).items()},
        "nodes": [_node_document(match) for match in row.nodes],
    }


def _node_document(match: NodeMatch) -> dict[str, Any]:
    """Return the match of a profile with a node as an object for JSON."""
    return {
        "name": match.node.name,
        "fits": match.fits,
        "free": not match.reasons,
        "why": [{"cause": reason.cause, "message": reason.message} for reason in match.reasons],
    }


def tables(matches: ClusterMatches, *, each_node: bool) -> Iterator[Table]:
    """Yield a table of all profiles and, if there are any, one of the devices that no profile selects.

    If `each_node`, yield instead for each profile a table with a row for each node.
    """
    if each_node:
        for profile, nodes, source in matches.rows:
            heading = f"{profile.name} of {source}" if len(matches.sources) > 1 else profile.name
            yield _nodes_table(heading, nodes)
        return
    yield _overview_table(matches)
    if matches.uncovered:
        yield _uncovered_table(matches.uncovered)


def _overview_table(matches: ClusterMatches) -> Table:
    """Return a table with a row for each profile: what a case requests, how many nodes fit, and how many are free."""
    has_several_sources = len(matches.sources) > 1
    table = Table("profile", box=None)
    if has_several_sources:
        table.add_column("published in")
    for column in ("asks for", "price/h", "namespaces", "fits", "free"):
        table.add_column(column)
    table.add_column("nodes that cannot take it now", overflow="fold")
    for profile, nodes, source in matches.rows:
        fitting_nodes = [match for match in nodes if match.fits]
        free_nodes = [match for match in nodes if not match.reasons]
        source_cells = [source] if has_several_sources else []
        table.add_row(
            profile.name,
            *source_cells,
            _format_requests(profile),
            profile.price_per_hour or "",
            ", ".join(profile.namespaces) or "any",
            f"{len(fitting_nodes)} of {len(nodes)}",
            str(len(free_nodes)),
            _frequent_reasons(nodes),
        )
    return table


def _format_requests(profile: Profile) -> str:
    """Return the resources that a case of the profile requests, as a text such as `1 nvidia.com/gpu, 4 cpu`."""
    requests = profile_requests(profile)
    devices = [name for name in requests if name == profile.resource]  # empty for a profile of CPUs or a DeviceClass
    texts = [format_amount(name, requests[name]) for name in (*devices, "cpu", "memory")]
    if profile.device_class:
        texts.insert(0, f"1 of {profile.device_class}")
    return ", ".join(texts)


def _frequent_reasons(nodes: Sequence[NodeMatch]) -> str:
    """Return the most frequent reasons why nodes cannot take a case now, each as a line `NUMBER OF NODES: REASON`.

    A node with several reasons counts for the first of them.
    """
    counts = Counter(match.reasons[0].message for match in nodes if match.reasons)
    lines = [f"{count}: {message}" for message, count in counts.most_common(REASONS)]
    if len(counts) > REASONS:
        lines.append("…")
    return "\n".join(lines)


def _nodes_table(heading: str, nodes: Sequence[NodeMatch]) -> Table:
    """Return a table of the nodes that shows whether a case of the profile in the heading fits on each, and why not."""
    table = Table("node", heading, box=None)
    table.add_column("why", overflow="fold")
    for match in nodes:
        if not match.fits:
            state = "does not fit"
        elif match.reasons:  # other pods occupy the node
            state = "fits, taken"
        else:
            state = "fits"
        table.add_row(match.node.name, state, "; ".join(reason.message for reason in match.reasons))
    return table


def _uncovered_table(uncovered_devices: Sequence[UncoveredDevices]) -> Table:
    """Return a table of the devices that no profile selects."""
    table = Table("devices that no profile selects", "nodes", "ready-made profiles that do", box=None)
    for devices in uncovered_devices:
        table.add_row(devices.resource, _join_first(devices.nodes), ", ".join(devices.ready) or "none")
    return table


def _join_first(names: Sequence[str]) -> str:
    """Return the first `MAXIMUM_NAMES` names and the number of the others, such as `a, b, c and 2 more`."""
    text = ", ".join(names[:MAXIMUM_NAMES])
    if len(names) > MAXIMUM_NAMES:
        text += f" and {len(names) - MAXIMUM_NAMES} more"
    return text


def print_profiles(
    name: str | None,
    context: str | None,
    class_name: str,
    operator_namespace: str | None,
    output: Output,
    kubeconfig: Path | None = None,
) -> None:
    """Print the profiles of the operators with class `class_name`; if `name` is given, how each node fits that profile.

    `context` and `kubeconfig` select the cluster; None stands for kubectl's defaults. If `operator_namespace` is None,
    the operators of all namespaces count. On an error of the cluster or its profiles, print it and exit; raises
    UsageError if no profile has the name.
    """
    try:
        matches = match_profiles(read_cluster(context, class_name, operator_namespace, kubeconfig))
        if name:
            matches = matches.of_profile(name)
    except (ClusterError, InvalidProfilesError) as error:
        # The text of an API server's error begins with the HTTP status, which its message leaves out.
        reason = error.message if isinstance(error, ClusterError) else error
        click.echo(f"error: {reason}", err=True)
        sys.exit(Exit.USAGE)
    except UnknownProfileError as error:
        raise UsageError(str(error), "NAME") from error
    if output is Output.JSON:
        click.echo(json.dumps(as_json(matches), indent=2, ensure_ascii=False))
        return
    for table in tables(matches, each_node=name is not None):
        console(listing=True).print(table)
    for note in matches.notes:
        click.echo(f"note: {note}", err=True)
