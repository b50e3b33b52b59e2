"""Starts real launches as the supervisor does, and collects what they say."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelbench.api.case import Case, CaseAccelerator, CaseMeasurement, CaseOrigin, CaseVariant
from accelbench_runner.protocol import Block, Facts, LaunchRequest, Message, PhaseEnded, parse_message


@dataclass(frozen=True)
class Told:
    """What a launch said, in order."""

    messages: tuple[Message, ...]
    output: str
    status: int

    @property
    def facts(self) -> dict[str, Any]:
        return {
            name: value
            for message in self.messages
            if isinstance(message, Facts)
            for name, value in message.values.items()
        }

    @property
    def phases(self) -> dict[str, PhaseEnded]:
        return {message.phase: message for message in self.messages if isinstance(message, PhaseEnded)}

    @property
    def blocks(self) -> list[Block]:
        return [message for message in self.messages if isinstance(message, Block)]


def case(workload: str, use: str, parameters: dict[str, Any] | None = None, **choices: Any) -> Case:
    return Case(
        name="all",
        origin=CaseOrigin(run="test", series="test"),
        workload=workload,
        parameters=parameters or {},
        variants=(CaseVariant(name=use, use=use, options=choices.get("options", {})),),
        baseline=use,
        measurement=CaseMeasurement(precision=choices.get("precision", "float32")),
        accelerator=CaseAccelerator(platform=choices.get("platform", "cpu")),
    )


def launch(directory: Path, asked: Case, *, threads: int = 2, before: str = "") -> Told:
    """Runs a launch to its end; `before` is Python that the process runs first, to put a workload in its way."""
    reading, writing = os.pipe()
    request = LaunchRequest(
        case=asked, variant=asked.baseline, round=1, directory=str(directory), descriptor=writing, threads=threads
    )
    caches = {"TMPDIR": "tmp", "TORCHINDUCTOR_CACHE_DIR": "inductor"}
    for name in caches.values():
        (directory / name).mkdir(exist_ok=True)
    program = f"{before}\nimport sys\nfrom accelbench_runner.launch import main\nsys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=[writing],
        env={**os.environ, **{name: str(directory / folder) for name, folder in caches.items()}},
        text=True,
    )
    os.close(writing)
    assert process.stdin is not None
    process.stdin.write(request.to_json())
    process.stdin.close()
    with os.fdopen(reading, "rb") as pipe:
        messages = tuple(parse_message(line) for line in pipe)
    assert process.stdout is not None
    output = process.stdout.read()
    process.stdout.close()
    return Told(messages=messages, output=output, status=process.wait())
