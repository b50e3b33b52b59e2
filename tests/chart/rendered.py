"""Find in the rendered chart what its tests look at."""

from __future__ import annotations

from typing import Any

from chart.helm import render


def only(manifests: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """Return the manifest of that kind; raise ValueError unless there is exactly one."""
    found: dict[str, Any]
    (found,) = (manifest for manifest in manifests if manifest["kind"] == kind)
    return found


def operator(values: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the operator's container, with the spec of its pod under `pod`."""
    pod: dict[str, Any] = only(render(values), "Deployment")["spec"]["template"]["spec"]
    container: dict[str, Any]
    (container,) = pod["containers"]
    return container | {"pod": pod}


def environment(values: dict[str, Any] | None = None) -> dict[str, str]:
    """Return the operator's environment variables, by name."""
    return {variable["name"]: variable.get("value", "") for variable in operator(values)["env"]}


def permissions(role: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Return (group, resource, verb) for everything that a role allows."""
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
