"""Names for cases, Jobs and results: readable, deterministic, at most 63 characters, and free of collisions.

A name is a slug that a person can read and a hash of everything that makes it unique. The slug is cut, the hash never.
"""

import hashlib
import re
from collections.abc import Mapping

MAXIMUM_LENGTH = 63
MAXIMUM_JOB_LENGTH = 60
"""An Indexed Job's pods have its name and their index as host name, so the API server refuses longer names."""
HASH_LENGTH = 10


def slug(text: str) -> str:
    """`text` in the alphabet of a DNS label: lower case, digits and inner hyphens; may be empty."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def digest(*parts: str) -> str:
    """`HASH_LENGTH` hexadecimal digits that differ where any part differs; parts cannot run into each other."""
    framed = "".join(f"{len(part.encode())}:{part}" for part in parts)
    return hashlib.sha256(framed.encode()).hexdigest()[:HASH_LENGTH]


def unique_name(readable: str, *identity: str, length: int = MAXIMUM_LENGTH) -> str:
    """A DNS label that starts with what can be kept of `readable` and ends in the hash of `identity`."""
    room = length - HASH_LENGTH - 1
    start = slug(readable)[:room].strip("-")
    if not start or start[0].isdigit():
        start = f"c-{start}".strip("-")[:room].strip("-")
    return f"{start}-{digest(*identity)}"


def case_name(swept: Mapping[str, int | str]) -> str:
    """The case's name within its run: `all` without a sweep, else its swept values and their hash."""
    if not swept:
        return "all"
    readable = "-".join(f"{name}-{value}" for name, value in swept.items())
    identity = [f"{type(value).__name__}:{name}={value}" for name, value in swept.items()]
    return unique_name(readable, *identity)


def attempt_name(run: str, run_uid: str, case: str, attempt: int) -> str:
    """The Job's name for one attempt at one case."""
    return unique_name(f"{run}-{case}", run_uid, case, str(attempt), length=MAXIMUM_JOB_LENGTH)


def claim_template_name(run: str, run_uid: str) -> str:
    """The name of the ResourceClaimTemplate that a run's pods claim a device with."""
    return unique_name(run, run_uid, "device")


def result_name(run: str, run_uid: str, case: str) -> str:
    """The BenchmarkResult's name for one case: one case has one result, whichever attempt brought it."""
    return unique_name(f"{run}-{case}", run_uid, case, "result")
