"""The rows of the table, and the API server's recurring phrases."""

from dataclasses import dataclass
from typing import Any

from api.manifests import changed


@dataclass(frozen=True)
class Bad:
    """Hold the mistake in words, the change to the good manifest, and the complete refusals."""

    what: str
    changes: dict[str, Any]
    refusals: tuple[str, ...]

    @property
    def manifest(self) -> dict[str, Any]:
        return changed(self.changes)


def bad(what: str, changes: dict[str, Any], *refusals: str) -> Bad:
    return Bad(what, changes, refusals)


def body(path: str, value: str, detail: str) -> str:
    """Return the message about a bound."""
    return f"{path}: Invalid value: {value}: {path} in body {detail}"


def below(path: str, value: int, minimum: int) -> str:
    return body(path, str(value), f"should be greater than or equal to {minimum}")


def above(path: str, value: int, maximum: int) -> str:
    return body(path, str(value), f"should be less than or equal to {maximum}")


def unmatched(path: str, value: str, pattern: str) -> str:
    return body(path, f'"{value}"', f"should match '{pattern}'")


def unsupported(path: str, value: str, *supported: str) -> str:
    names = ", ".join(f'"{name}"' for name in supported)
    return f'{path}: Unsupported value: "{value}": supported values: {names}'


def wrong_type(path: str, wanted: str, found: str) -> str:
    return f'{path}: Invalid value: "{found}": {path} in body must be of type {wanted}: "{found}"'


def axis(name: str, count: int) -> dict[str, Any]:
    return {"name": name, "values": list(range(count))}


def rounds(least: int, most: int) -> dict[str, Any]:
    return {"spec.measurement.rounds": {"min": least, "max": most}}


def expectation(**fields: str) -> dict[str, Any]:
    return {"spec.expectations": [{"metric": "speedup", "variant": "jax/jit", **fields}]}


def observation(**fields: str) -> dict[str, Any]:
    return {"spec.expectations": [{"observation": "compilations", "variant": "jax/jit", **fields}]}
