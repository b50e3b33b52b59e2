"""What a cluster offers, for people and for scripts: each profile against each node, and devices that none gets at."""

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
    parse_profiles,
    ready,
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
"""How many reasons a row of the overview names."""


@dataclass(frozen=True)
class ClusterContents:
    """Objects of a cluster; None: the user may not list them, or the cluster has no such kind."""

    config_maps: Sequence[Manifest] | None
    nodes: Sequence[Manifest]
    pods: Sequence[Manifest] | None
    slices: Sequence[Manifest] | None


def read_cluster(context: str | None, class_name: str, kubeconfig: Path | None = None) -> ClusterContents:
    """List the profiles of the operators of that class, all nodes and what is on them; raises ClusterError."""
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


@dataclass(frozen=True)
class Uncovered:
    """Devices that no profile gets at."""

    resource: str
    nodes: tuple[str, ...]
    ready: tuple[str, ...]
    """Ready profiles that would."""


@dataclass(frozen=True)
class Offered:
    """Each profile with every node and what keeps it off there."""

    profiles: Profiles
    rows: tuple[tuple[Profile, tuple[tuple[Node, tuple[Misfit, ...]], ...]], ...]
    uncovered: tuple[Uncovered, ...]
    notes: tuple[str, ...]

    def one(self, name: str) -> "Offered":
        """The same of that profile alone; raises UnknownProfileError."""
        wanted = self.profiles.get(name)
        return replace(self, rows=tuple(row for row in self.rows if row[0] == wanted), uncovered=())


def offered(found: ClusterContents) -> Offered:
    """What was read of a cluster, matched; raises InvalidProfilesError."""
    nodes = read_nodes(found.nodes, found.pods or (), found.slices or ())
    profiles = Profiles(tuple(_written(found.config_maps or ())))
    rows = tuple((profile, tuple((node, misfits(profile, node)) for node in nodes)) for profile in profiles)
    missed = tuple(
        Uncovered(resource, tuple(node.name for node in there), tuple(_ready_for(resource, there)))
        for resource, there in uncovered(profiles, nodes).items()
    )
    return Offered(profiles, rows, missed, tuple(_notes(found, profiles)))


def _written(config_maps: Sequence[Mapping[str, Any]]) -> Iterator[Profile]:
    for each in config_maps:
        metadata = each["metadata"]
        source = f"ConfigMap {metadata['namespace']}/{metadata['name']}"
        yield from parse_profiles((each.get("data") or {}).get("profiles.yaml", ""), source)


def _ready_for(resource: str, nodes: Sequence[Node]) -> Iterator[str]:
    for name, profile in ready().items():
        if profile.resource == resource and any(fits(profile, node) for node in nodes):
            yield name


def _notes(found: ClusterContents, profiles: Profiles) -> Iterator[str]:
    if found.config_maps is None:
        yield "you may not list ConfigMaps in this cluster: these are the profiles that every operator has"
    elif not found.config_maps:
        yield "no operator of that class has profiles here: these are the ones that every operator has"
    if found.pods is None:
        yield "you may not list pods in this cluster: nodes that are taken look free"
    if any(profile.device_class for profile in profiles):
        slices = "" if found.slices else "; this cluster shows no ResourceSlice"
        yield f"only the scheduler knows which devices a DeviceClass holds, and which are free{slices}"


def as_json(shown: Offered) -> dict[str, Any]:
    """For scripts; amounts are as a manifest has them, and `why` is empty where a case can go now."""
    return {
        "format": FORMAT,
        "profiles": [
            {
                **profile.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True),
                "asksFor": {name: str(amount) for name, amount in profile_requests(profile).items()},
                "nodes": [
                    {
                        "name": node.name,
                        "fits": all(each.cause == "occupied" for each in found),
                        "free": not found,
                        "why": [{"cause": each.cause, "message": each.message} for each in found],
                    }
                    for node, found in nodes
                ],
            }
            for profile, nodes in shown.rows
        ],
        "uncovered": [
            {"resource": each.resource, "nodes": list(each.nodes), "ready": list(each.ready)}
            for each in shown.uncovered
        ],
        "notes": list(shown.notes),
    }


def tables(shown: Offered, *, each_node: bool) -> Iterator[Table]:
    """For people: an overview, or `each_node` of a profile."""
    if each_node:
        for profile, nodes in shown.rows:
            yield _nodes(profile, nodes)
        return
    yield _overview(shown)
    if shown.uncovered:
        yield _uncovered(shown.uncovered)


def _overview(shown: Offered) -> Table:
    table = Table("profile", "asks for", "price/h", "namespaces", "fits", "free", box=None)
    table.add_column("nodes that cannot take it now", overflow="fold")
    for profile, nodes in shown.rows:
        fitting = [found for _, found in nodes if all(each.cause == "occupied" for each in found)]
        table.add_row(
            profile.name,
            _asks(profile),
            profile.price_per_hour or "",
            ", ".join(profile.namespaces) or "any",
            f"{len(fitting)} of {len(nodes)}",
            str(sum(1 for found in fitting if not found)),
            _why(nodes),
        )
    return table


def _asks(profile: Profile) -> str:
    asked = profile_requests(profile)
    devices = [name for name in asked if name == profile.resource]
    parts = [show(name, asked[name]) for name in (*devices, "cpu", "memory")]
    return ", ".join([*([f"1 of {profile.device_class}"] if profile.device_class else []), *parts])


def _why(nodes: Sequence[tuple[Node, tuple[Misfit, ...]]]) -> str:
    """The first reason of each node, the most frequent first, a line each."""
    counted = Counter(found[0].message for _, found in nodes if found)
    told = [f"{count}: {message}" for message, count in counted.most_common(REASONS)]
    return "\n".join([*told, *(["…"] if len(counted) > REASONS else [])])


def _nodes(profile: Profile, nodes: Sequence[tuple[Node, tuple[Misfit, ...]]]) -> Table:
    table = Table("node", profile.name, box=None)
    table.add_column("why", overflow="fold")
    for node, found in nodes:
        fitting = all(each.cause == "occupied" for each in found)
        table.add_row(
            node.name,
            ("fits, taken" if found else "fits") if fitting else "does not fit",
            "; ".join(each.message for each in found),
        )
    return table


def _uncovered(missed: Sequence[Uncovered]) -> Table:
    table = Table("devices that no profile selects", "nodes", "ready-made profiles that do", box=None)
    for each in missed:
        table.add_row(each.resource, _some(each.nodes), ", ".join(each.ready) or "none")
    return table


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - REASONS} more" if len(names) > REASONS else ""
    return ", ".join(names[:REASONS]) + more


def print_profiles(
    name: str | None, context: str | None, class_name: str, output: Output, kubeconfig: Path | None = None
) -> None:
    """Print the profiles of the operator of that class, or only the profile of that name."""
    try:
        found = offered(read_cluster(context, class_name, kubeconfig))
        shown = found.one(name) if name else found
    except (ClusterError, InvalidProfilesError) as error:
        reason = error.message if isinstance(error, ClusterError) else error
        click.echo(f"error: {reason}", err=True)
        sys.exit(Exit.USAGE)
    except UnknownProfileError as error:
        raise UsageError(str(error), "NAME") from error
    if output is Output.JSON:
        click.echo(json.dumps(as_json(shown), indent=2, ensure_ascii=False))
        return
    for table in tables(shown, each_node=name is not None):
        console(listing=True).print(table)
    for note in shown.notes:
        click.echo(f"note: {note}", err=True)
