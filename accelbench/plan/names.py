"""Name cases, Jobs and results: readable, deterministic, of limited length, and unique.

A name is a readable slug and a hash of everything that makes the name unique. Only the slug is shortened if the name is
too long.
"""

import hashlib
import re
from collections.abc import Mapping

MAXIMUM_LENGTH = 63
"""Maximum number of characters of a DNS label."""
MAXIMUM_JOB_LENGTH = 60
"""Maximum length of a Job's name: the pods of an Indexed Job have that name and their index as host name."""
HASH_LENGTH = 10


def slug(text: str) -> str:
    """Convert text to lower-case letters, digits and hyphens, as in a DNS label."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def digest(*texts: str) -> str:
    """Return the first `HASH_LENGTH` hexadecimal digits of the texts' SHA-256."""
    # Without lengths, ("ab", "c") and ("a", "bc") would have the same hash.
    with_lengths = "".join(f"{len(text.encode())}:{text}" for text in texts)
    return hashlib.sha256(with_lengths.encode()).hexdigest()[:HASH_LENGTH]


def unique_name(readable: str, *identity: str, length: int = MAXIMUM_LENGTH) -> str:
    """Return a DNS label of at most `length` characters: a slug of `readable`, and a hash of `identity`."""
    slug_length = length - HASH_LENGTH - 1  # 1 for the hyphen between them
    prefix = slug(readable)
    if not prefix or prefix[0].isdigit():
        # RFC 1035, the stricter of Kubernetes' two rules for labels, requires a letter at the start: `c` for case.
        prefix = f"c-{prefix}"
    prefix = prefix[:slug_length].strip("-")
    return f"{prefix}-{digest(*identity)}"


def case_name(swept: Mapping[str, int | str]) -> str:
    """Return the name of a case within its run: its swept values and their hash, or `all` without a sweep."""
    if not swept:
        return "all"
    readable = "-".join(f"{name}-{value}" for name, value in swept.items())
    # With their types, the values 1 and "1" give different names.
    identity = [f"{type(value).__name__}:{name}={value}" for name, value in swept.items()]
    return unique_name(readable, *identity)


def attempt_name(run: str, run_uid: str, case: str, attempt: int) -> str:
    """Return the name of the Job that makes one attempt at one case."""
    return unique_name(f"{run}-{case}", run_uid, case, str(attempt), length=MAXIMUM_JOB_LENGTH)


def claim_template_name(run: str, run_uid: str) -> str:
    """Return the name of a run's ResourceClaimTemplate."""
    return unique_name(run, run_uid, "device")


def result_name(run: str, run_uid: str, case: str) -> str:
    """Return the name of a case's BenchmarkResult, the same for all attempts."""
    return unique_name(f"{run}-{case}", run_uid, case, "result")
