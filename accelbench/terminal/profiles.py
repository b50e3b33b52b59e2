"""Match the profiles of a cluster with its nodes, and print the matches and the devices that no profile selects."""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from accelbench.api import labels
from accelbench.api.profiles import (
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
from accelbench.plan.placement import Misfit, Node, fits, misfits, profile_requests, read_nodes, show, uncovered
from accelbench.terminal.console import console
from accelbench.terminal.options import Output

FORMAT = "accelbench.dev/profiles/v1alpha1"
REASONS = 3
"""Maximum number of reasons in a row of the overview."""


@dataclass(frozen=True)
class ClusterContents:
    """Hold objects of a cluster; None: the user may not list them, or the cluster has no such kind."""

    config_maps: Sequence[Manifest] | None
    nodes: Sequence[Manifest]
    pods: Sequence[Manifest] | None
    slices: Sequence[Manifest] | None


def read_cluster(context: str | None, class_name: str, kubeconfig: Path | None = None) -> ClusterContents:
    """List the profiles of the operators of that class, all nodes, their pods and devices; raises ClusterError."""
    with connect(context, kubeconfig) as client:
        nodes = _items(client, NODE)
        if nodes is None:
            raise ClusterError("you may not list nodes in this cluster: ask its administrator for that permission")
        selector = f"{labels.PROFILES}=true,{labels.CLASS}={class_name}"
        return ClusterContents(
            _items(client, CONFIG_MAP, labelSelector=selector),
            nodes,
            _items(client, POD, fieldSelector="status.phase!=Succeeded,status.phase!=Failed"),
            _items(client, RESOURCE_SLICE),
        )


def _items(client: Client, kind: Kind, **query: str) -> Sequence[Manifest] | None:
    try:
        return client.items(kind.path(), **query)
    except (ForbiddenError, NotFoundError):
        return None


Match = tuple[Node, tuple[Misfit, ...]]
"""A node, and the reasons why it cannot take a case of the profile now."""


@dataclass(frozen=True)
class UncoveredDevices:
    """Describe devices that no profile selects."""

    resource: str
    nodes: tuple[str, ...]
    ready: tuple[str, ...]
    """Ready-made profiles that select them."""


@dataclass(frozen=True)
class ProfileMatches:
    """Hold each profile with all nodes."""

    profiles: Profiles
    rows: tuple[tuple[Profile, tuple[Match, ...]], ...]
    uncovered: tuple[UncoveredDevices, ...]
    notes: tuple[str, ...]

    def only(self, name: str) -> "ProfileMatches":
        """Return the matches of one profile; raises UnknownProfileError."""
        profile = self.profiles.get(name)
        return replace(self, rows=tuple(row for row in self.rows if row[0] == profile), uncovered=())


def match_profiles(contents: ClusterContents) -> ProfileMatches:
    """Match each profile with each node; raises InvalidProfilesError."""
    nodes = read_nodes(contents.nodes, contents.pods or (), contents.slices or ())
    profiles = Profiles(tuple(_parse_config_maps(contents.config_maps or ())))
    rows = tuple((profile, tuple((node, misfits(profile, node)) for node in nodes)) for profile in profiles)
    devices = tuple(
        UncoveredDevices(resource, tuple(node.name for node in owners), tuple(_ready_for(resource, owners)))
        for resource, owners in uncovered(profiles, nodes).items()
    )
    return ProfileMatches(profiles, rows, devices, tuple(_notes(contents, profiles)))


def _parse_config_maps(config_maps: Sequence[Mapping[str, Any]]) -> Iterator[Profile]:
    for config_map in config_maps:
        metadata = config_map["metadata"]
        source = f"ConfigMap {metadata['namespace']}/{metadata['name']}"
        yield from parse_profiles((config_map.get("data") or {}).get("profiles.yaml", ""), source)


def _ready_for(resource: str, nodes: Sequence[Node]) -> Iterator[str]:
    for name, profile in load_presets().items():
        if profile.resource == resource and any(fits(profile, node) for node in nodes):
            yield name


def _notes(contents: ClusterContents, profiles: Profiles) -> Iterator[str]:
    if contents.config_maps is None:
        yield "you may not list ConfigMaps in this cluster: these are the profiles that every operator has"
    elif not contents.config_maps:
        yield "no operator of that class has profiles here: these are the ones that every operator has"
    if contents.pods is None:
        yield "you may not list pods in this cluster: nodes that are taken look free"
    if any(profile.device_class for profile in profiles):
        slices = "" if contents.slices else "; this cluster shows no ResourceSlice"
        yield f"only the scheduler knows which devices a DeviceClass holds, and which are free{slices}"


def _only_occupied(reasons: Sequence[Misfit]) -> bool:
    """Return True if the node fits, although its devices may be in use now."""
    return all(reason.cause == "occupied" for reason in reasons)


def as_json(matches: ProfileMatches) -> dict[str, Any]:
    """Return the matches for scripts; `why` is empty for a node that can take a case now."""
    return {
        "format": FORMAT,
        "profiles": [
            {
                **profile.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True),
                "asksFor": {name: str(amount) for name, amount in profile_requests(profile).items()},
                "nodes": [
                    {
                        "name": node.name,
                        "fits": _only_occupied(reasons),
                        "free": not reasons,
                        "why": [{"cause": reason.cause, "message": reason.message} for reason in reasons],
                    }
                    for node, reasons in nodes
                ],
            }
            for profile, nodes in matches.rows
        ],
        "uncovered": [
            {"resource": devices.resource, "nodes": list(devices.nodes), "ready": list(devices.ready)}
            for devices in matches.uncovered
        ],
        "notes": list(matches.notes),
    }


def tables(matches: ProfileMatches, *, each_node: bool) -> Iterator[Table]:
    """Yield an overview or, with `each_node`, a table of nodes for each profile."""
    if each_node:
        for profile, nodes in matches.rows:
            yield _nodes(profile, nodes)
        return
    yield _overview(matches)
    if matches.uncovered:
        yield _uncovered(matches.uncovered)


def _overview(matches: ProfileMatches) -> Table:
    table = Table("profile", "asks for", "price/h", "namespaces", "fits", "free", box=None)
    table.add_column("nodes that cannot take it now", overflow="fold")
    for profile, nodes in matches.rows:
        fitting = [reasons for _, reasons in nodes if _only_occupied(reasons)]
        table.add_row(
            profile.name,
            _requests(profile),
            profile.price_per_hour or "",
            ", ".join(profile.namespaces) or "any",
            f"{len(fitting)} of {len(nodes)}",
            str(sum(1 for reasons in fitting if not reasons)),
            _frequent_reasons(nodes),
        )
    return table


def _requests(profile: Profile) -> str:
    requests = profile_requests(profile)
    devices = [name for name in requests if name == profile.resource]
    parts = [show(name, requests[name]) for name in (*devices, "cpu", "memory")]
    return ", ".join([*([f"1 of {profile.device_class}"] if profile.device_class else []), *parts])


def _frequent_reasons(nodes: Sequence[Match]) -> str:
    """Count the first reason of each node, and list the most frequent, one a line."""
    counts = Counter(reasons[0].message for _, reasons in nodes if reasons)
    lines = [f"{count}: {message}" for message, count in counts.most_common(REASONS)]
    return "\n".join([*lines, *(["…"] if len(counts) > REASONS else [])])


def _nodes(profile: Profile, nodes: Sequence[Match]) -> Table:
    table = Table("node", profile.name, box=None)
    table.add_column("why", overflow="fold")
    for node, reasons in nodes:
        table.add_row(
            node.name,
            ("fits, taken" if reasons else "fits") if _only_occupied(reasons) else "does not fit",
            "; ".join(reason.message for reason in reasons),
        )
    return table


def _uncovered(uncovered_devices: Sequence[UncoveredDevices]) -> Table:
    table = Table("devices that no profile selects", "nodes", "ready-made profiles that do", box=None)
    for devices in uncovered_devices:
        table.add_row(devices.resource, _some(devices.nodes), ", ".join(devices.ready) or "none")
    return table


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - REASONS} more" if len(names) > REASONS else ""
    return ", ".join(names[:REASONS]) + more


def print_profiles(
    name: str | None, context: str | None, class_name: str, output: Output, kubeconfig: Path | None = None
) -> None:
    """Print the profiles of the operator of that class, or only the profile of that name."""
    try:
        matches = match_profiles(read_cluster(context, class_name, kubeconfig))
        if name:
            matches = matches.only(name)
    except (ClusterError, InvalidProfilesError) as error:
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
