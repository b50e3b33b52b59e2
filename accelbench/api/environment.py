"""Define separate Python environments for variants: as a run requests them, and as a case was measured in them."""

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, StringConstraints

from accelbench.api import rules
from accelbench.api.metadata import Name
from accelbench.document import Document, Line

MAXIMUM_REQUIREMENTS = 256
DIGEST_CHARACTERS = 16

Requirement = Annotated[str, StringConstraints(min_length=1, max_length=256)]
InterpreterOrMinor = Annotated[str, StringConstraints(max_length=1024), rules.MEASURABLE_PYTHON]


class Environment(Document):
    """Give variants a Python environment of their own, to compare releases that do not fit into one installation."""

    name: Name = Field(description="Unique in the run; variants refer to it.")
    requirements: tuple[Requirement, ...] = Field(
        default=(),
        max_length=MAXIMUM_REQUIREMENTS,
        description='What uv installs, as for pip: "jax==0.9.2". What accelbench needs there is added.',
    )
    python: InterpreterOrMinor | None = Field(
        default=None,
        description="The minor of Python to install them for, as 3.12, or the path of an interpreter. Without "
        "requirements, the interpreter is used as it is. Default: accelbench's own Python.",
    )


class CaseEnvironment(Document):
    """Describe an environment that a case is measured in: what was asked for, and what is in it."""

    name: Line = Field(description="Unique in the case.")
    requirements: tuple[Line, ...] = Field(default=(), description="What was asked for.")
    python: Line | None = Field(default=None, description="The Python that was asked for.")
    interpreter: Line = Field(description="The path of its Python.")
    packages: dict[Line, Line] = Field(
        default={},
        description="The version of each package by name: from the lock, or without one as installed before round 1.",
    )
    python_version: Line = Field(
        default="", description="Its Python's version; empty if the environment cannot be used."
    )
    directories: tuple[Line, ...] = Field(default=(), description="The directories that hold its packages.")
    lock_digest: Line = Field(default="", description="A digest of Python's version and all packages with versions.")

    def version_of(self, package: str) -> str | None:
        """Return the version of a package in the environment; None if it has no package of that name."""
        return self.packages.get(normalize_package(package))


def normalize_package(name: str) -> str:
    """Return a package's name as locks write it: `ml-dtypes` for `ml_dtypes`."""
    return re.sub("[-_.]+", "-", name).lower()


def digest_lock(python_version: str, packages: Mapping[str, str]) -> str:
    """Return a short hash of Python's version and of the versions of all packages, by name."""
    lines = [f"python=={python_version}", *(f"{name}=={version}" for name, version in sorted(packages.items()))]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:DIGEST_CHARACTERS]
