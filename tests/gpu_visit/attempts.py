"""Append each attempt of a visit to a file, at once, and read such files.

A line is one attempt with the files that it wrote, so that one file is all that has to come back from a machine. A
machine may be taken away in the middle of a line: a line that is no whole JSON document is skipped.
"""

import json
import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError

from accelbench.document import DecimalString, Document, decimal_string
from gpu_visit.plan import Attempt, Outcome

FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._=-]*$", max_length=120)]
"""Name of a file in the directory of a result: no path leads out of it."""


class InvalidAttemptError(Exception):
    """Report a line that is JSON and no attempt; the message names file, line and field."""


class Setting(Document):
    """Describe what attempts have in common if they continue each other, and what else is known of the machine."""

    device: Annotated[str, Field(min_length=1)]
    """The device's model, such as `NVIDIA H100 80GB HBM3`."""
    jax: str
    torch: str
    driver: str = ""
    python: str = ""

    def continues(self, other: Self) -> bool:
        """Return True if results of both may stand in one table: the same device model and the same frameworks."""
        return (self.device, self.jax, self.torch) == (other.device, other.jax, other.torch)

    @property
    def directory(self) -> str:
        """Return the device's name as that of a directory: `nvidia-h100-80gb-hbm3`."""
        characters = [character if character.isalnum() else "-" for character in self.device.lower()]
        return "-".join(part for part in "".join(characters).split("-") if part)


class VisitAttempt(Document):
    """Describe one line of a visit's file."""

    format: Literal["accelbench.dev/gpu-visit-attempt/v1"] = "accelbench.dev/gpu-visit-attempt/v1"
    visit: str
    """When the visit began, which identifies it."""
    began: str
    setting: Setting
    item: str
    question: str
    outcome: Outcome
    message: str = ""
    """Why nothing was measured; empty if something was."""
    rounds_wanted: int
    rounds: int
    seconds: DecimalString
    files: dict[FileName, str] = {}

    @classmethod
    def of(cls, attempt: Attempt, *, setting: Setting, began: str, message: str, files: dict[str, str]) -> Self:
        """Return the line for an attempt of the plan."""
        return cls(
            visit=attempt.visit,
            began=began,
            setting=setting,
            item=attempt.name,
            question=attempt.question,
            outcome=attempt.outcome,
            message=message,
            rounds_wanted=attempt.rounds_wanted,
            rounds=attempt.rounds,
            seconds=decimal_string(attempt.seconds, 4),
            files=files,
        )

    @property
    def planned(self) -> Attempt:
        """Return the attempt as the plan takes it."""
        return Attempt(
            name=self.item,
            question=self.question,
            visit=self.visit,
            outcome=self.outcome,
            rounds_wanted=self.rounds_wanted,
            rounds=self.rounds,
            seconds=float(self.seconds),
        )

    @property
    def identity(self) -> tuple[str, str, str]:
        """Return what no two attempts share."""
        return self.visit, self.began, self.item


def append(path: Path, attempt: VisitAttempt) -> None:
    """Append an attempt as a line, and return once it is on the disk; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            # A visit that was killed may have left half a line, which must not spoil this one.
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(json.dumps(attempt.model_dump(mode="json", by_alias=True)).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> list[VisitAttempt]:
    """Return all attempts in a file, without half lines; an empty list if there is no file.

    Raises InvalidAttemptError.
    """
    if not path.exists():
        return []
    attempts = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            document = json.loads(line)
        except ValueError:  # half a line
            continue
        try:
            attempts.append(VisitAttempt.model_validate(document))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            raise InvalidAttemptError(f"{path}, line {number}: {field}: {first['msg']}") from error
    return attempts
