"""Sign what a registry holds, and attach signed bills of materials, with cosign and a key of the publisher."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from cluster.errors import BuildError
from release.tools import COSIGN, build_tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

NO_TRANSPARENCY_LOG = ("--use-signing-config=false", "--tlog-upload=false", "--yes")
"""A publisher's own key needs no public log, and a private registry's names do not belong into one."""


def sign(reference: str, key: str, bills: Iterable[Path], say: Callable[[str], None], *, plain: bool) -> None:
    """Sign an image or chart, and attach each bill of materials to it.

    Args:
        reference: Its name in the registry, with the digest: a tag may be moved between push and signature.
        key: A file of `cosign generate-key-pair`, or the address of a key in a key management service. The password
            of a file is in COSIGN_PASSWORD.
        bills: CycloneDX files, one for each architecture.
        say: Called with progress, if cosign has to be built first.
        plain: Whether the registry speaks HTTP without TLS.

    Raises:
        BuildError: cosign's message, for example that the password is wrong.
    """
    options = (f"--key={key}", *NO_TRANSPARENCY_LOG, *(["--allow-http-registry"] if plain else []))
    _cosign(["sign", *options, reference], say)
    for bill in bills:
        _cosign(["attest", *options, "--type=cyclonedx", f"--predicate={bill}", reference], say)


def _cosign(arguments: list[str], say: Callable[[str], None]) -> None:
    """Run cosign; it never asks for a password, because nobody may be there to answer."""
    environment = {"COSIGN_PASSWORD": ""} | os.environ
    command = [build_tool(COSIGN, say), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"cosign {arguments[0]} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
