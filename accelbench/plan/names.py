"""Name cases, Jobs and results: readable, deterministic, bounded in length, and free of collisions.

A name is a readable slug and a hash of everything that makes it unique. The slug may be cut, the hash is not.
"""

import hashlib
import re
from collections.abc import Mapping

MAXIMUM_LENGTH = 63
MAXIMUM_JOB_LENGTH = 60
"""An Indexed Job's pods have its name and their index as host name, so the API server refuses longer names."""
HASH_LENGTH = 10


def slug(text: str) -> str:
    """Convert `text` to the alphabet of a DNS label: lower case, digits and inner hyphens; may be empty."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def digest(*parts: str) -> str:
    """Return `HASH_LENGTH` hexadecimal digits that differ if any part differs; parts are length-prefixed."""
    framed = "".join(f"{len(part.encode())}:{part}" for part in parts)
    return hashlib.sha256(framed.encode()).hexdigest()[:HASH_LENGTH]


def unique_name(readable: str, *identity: str, length: int = MAXIMUM_LENGTH) -> str:
    """Return a DNS label: as much of `readable` as fits into `length`, then the hash of `identity`.

    The prefix `c-` is added if the readable part is empty or begins with a digit.
    """
    room = length - HASH_LENGTH - 1
    start = slug(readable)[:room].strip("-")
    if not start or start[0].isdigit():
        start = f"c-{start}".strip("-")[:room].strip("-")
    return f"{start}-{digest(*identity)}"


def case_name(swept: Mapping[str, int | str]) -> str:
    """Return the case's name within its run: `all` without a sweep, else its swept values and their hash."""
    if not swept:
        return "all"
    readable = "-".join(f"{name}-{value}" for name, value in swept.items())
    identity = [f"{type(value).__name__}:{name}={value}" for name, value in swept.items()]
    return unique_name(readable, *identity)


def attempt_name(run: str, run_uid: str, case: str, attempt: int) -> str:
    """Return the Job's name for one attempt at one case."""
    return unique_name(f"{run}-{case}", run_uid, case, str(attempt), length=MAXIMUM_JOB_LENGTH)


def claim_template_name(run: str, run_uid: str) -> str:
    """Return the name of the ResourceClaimTemplate with which a run's pods claim a device."""
    return unique_name(run, run_uid, "device")


def result_name(run: str, run_uid: str, case: str) -> str:
    """Return the BenchmarkResult's name for one case: one result per case, whichever attempt delivers it."""
    return unique_name(f"{run}-{case}", run_uid, case, "result")
