"""Warn before the first launch about what will disturb the case, and what to do about it.

A child process surveys the machine (`accelbench_runner.supervisor.survey`); `warnings` words its findings, and is pure.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping

from accelbench.document import Document
from accelbench.launch.facts import Process
from accelbench.report.advice import ACCEPT_NOISE
from accelbench.validity.check import percent
from accelbench.validity.shared_device import NEIGHBOURS, could_use_fewer
from accelbench.validity.throttled import STEAL

SURVEY = (sys.executable, "-m", "accelbench_runner.supervisor.survey")
LIMIT_SECONDS = 20.0
NAMED_SHARE = 0.1
"""A process that uses a smaller share of a processor gets no line."""
SEEN_SHARE = 0.5
"""If the listed processes explain a smaller share of the load, a line mentions invisible processes."""
WHOLE = 1.05
"""A process that uses more than this counts as using several processors."""
LOADED = 2.0
"""A load average above this for each processor gets a line; launches of an earlier case stay below it."""
STEADY_GOVERNORS = {"", "performance"}


TakeSurvey = Callable[[Mapping[str, str]], "Survey"]


class Survey(Document):
    """Describe what the machine did for a second while this process slept."""

    processors: int
    """The number that launches may use."""
    seconds: float
    busy_seconds: float = 0.0
    """Use of these processors by other processes."""
    steal_seconds: float = 0.0
    processes: tuple[Process, ...] = ()
    """The busiest."""
    load: float = 0.0
    """Tasks that ran or waited, on average over the last minute."""
    limit: float | None = None
    """Processors that the container may use; None: no limit."""
    governor: str = ""
    turbo: str = ""
    """`on`, `off`, or empty if unknown."""


def take_survey(host: Mapping[str, str]) -> Survey:
    """Survey the machine in a child process.

    `host` is the host's part of the fingerprint. Raises OSError, subprocess.SubprocessError and
    pydantic.ValidationError.
    """
    completed = subprocess.run(
        SURVEY, input=json.dumps(host), capture_output=True, text=True, timeout=LIMIT_SECONDS, check=True
    )
    return Survey.model_validate_json(completed.stdout)


def warnings(survey: Survey, host: Mapping[str, str], *, accepts_noise: bool) -> tuple[str, ...]:
    """Return a line for each disturbance, with what to do; none for a quiet machine.

    `host` is the host's part of the fingerprint.
    """
    disturbing = [*_other_processes(survey, host), *_container_limits(survey)]
    if disturbing and accepts_noise:
        disturbing.append("Noise is accepted: disturbed rounds count, and there will be no verdict.")
    elif disturbing:
        disturbing.append(f"Disturbed rounds are discarded and measured again. To keep them, {ACCEPT_NOISE}.")
    return (*disturbing, *_clocks(survey))


def _other_processes(survey: Survey, host: Mapping[str, str]) -> list[str]:
    offered = survey.processors * survey.seconds
    if survey.busy_seconds <= NEIGHBOURS.biases * offered:
        loaded = (
            f"The load average of the last minute is {survey.load:.1f} on {_of(survey)}: other work comes and goes."
        )
        return [f"{loaded} Wait for it to end."] if survey.load > LOADED * survey.processors else []
    named = [process for process in survey.processes if process.seconds >= NAMED_SHARE * survey.seconds]
    lines = [
        f"{process.name} (pid {process.pid}) takes {_processors(process.seconds / survey.seconds, survey)}: "
        f"end it{', or let accelbench use fewer processors' if could_use_fewer(host) else ''}."
        for process in named
    ]
    if sum(process.seconds for process in named) < SEEN_SHARE * survey.busy_seconds:
        lines.append(
            f"Other processes use {percent(survey.busy_seconds / offered)} of {_of(survey)}, and most of them cannot "
            "be seen from here or are short-lived: look on the host, or wait."
        )
    return lines


def _container_limits(survey: Survey) -> list[str]:
    lines = []
    stolen = survey.steal_seconds / (survey.processors * survey.seconds)
    if stolen > STEAL.biases:
        lines.append(
            f"Hypervisor steal: {percent(stolen)} (limit {percent(STEAL.biases)}): other virtual machines share this "
            "host. Wait for a quieter time, or take a host of your own."
        )
    if survey.limit is not None and survey.limit < survey.processors:
        lines.append(
            f"The CPU limit of {survey.limit:g} is less than {_of(survey)}, so that launches are held back: raise it."
        )
    return lines


def _clocks(survey: Survey) -> list[str]:
    if survey.governor in STEADY_GOVERNORS:
        return []
    turbo = " and turbo is on" if survey.turbo == "on" else ""
    warning = f"The CPU governor is {survey.governor}{turbo}: clocks follow load and heat, and intervals get wider."
    return [f"{warning} For steady clocks: cpupower frequency-set -g performance."]


def _processors(used: float, survey: Survey) -> str:
    if used > WHOLE:
        return f"{used:.1f} of {_of(survey)}"
    return f"{percent(used)} of {'one of ' if survey.processors > 1 else ''}{_of(survey)}"


def _of(survey: Survey) -> str:
    return f"{survey.processors} processors" if survey.processors > 1 else "the one processor that launches use"
