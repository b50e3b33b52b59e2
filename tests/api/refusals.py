"""Refusals of `kubectl apply` and `accelbench validate`, as sets that can be compared."""

import re
from collections.abc import Iterable

from accelbench.api.manifest import InvalidManifestError, load_manifests

NO_REFUSALS = (
    # Rules are checked once the rest is right.
    "some validation rules were not checked because the object was invalid",
    # A fraction where an integer belongs is refused once more, without its field.
    "Checked value must be of type integer",
)
"""What the server says beside its refusals."""


def from_kubectl(stderr: str) -> set[str]:
    """Return the refusals in kubectl's message."""
    if "strict decoding error: " in stderr:
        return set(stderr.strip().partition("strict decoding error: ")[2].split(", "))
    if found := re.search(r'no matches for kind "[^"]*" in version "[^"]*"', stderr):
        return {found[0]}
    refusal_text = re.sub(r'^The BenchmarkRun "[^"]*" is invalid: *', "", stderr.strip())
    lines = refusal_text.removeprefix("\n* ").split("\n* ")
    return without_notes(lines)


def from_us(text: str) -> set[str]:
    """Return our refusals without line numbers and without advice that the API server cannot give."""
    try:
        load_manifests(text, "bad.yaml")
    except InvalidManifestError as error:
        return {without_advice(f"{problem.path}: {problem.message}".removeprefix(": ")) for problem in error.problems}
    return set()


def without_advice(refusal: str) -> str:
    """Return the refusal without our advice, as the API server gives it."""
    return re.sub(r"^((unknown field|no matches for) .*?); .*", r"\1", refusal)


def without_notes(lines: Iterable[str]) -> set[str]:
    return {line for line in lines if not any(note in line for note in NO_REFUSALS)}
