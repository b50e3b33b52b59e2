"""What the machine is doing before anything is measured: what will disturb launches, and what to do about it.

A child surveys it (`accelbench_runner.supervisor.survey`); `warnings` says what it found, and is pure.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping

from accelbench.document import Document
from accelbench.launch.facts import Process
from accelbench.report.noise import ACCEPT
from accelbench.validity.check import percent
from accelbench.validity.shared_device import NEIGHBOURS, could_use_fewer
from accelbench.validity.throttled import STEAL

SURVEY = (sys.executable, "-m", "accelbench_runner.supervisor.survey")
LIMIT_SECONDS = 20.0
NAMED_SHARE = 0.1
"""Of a processor: a process that uses less is not worth a line."""
SEEN_SHARE = 0.5
"""Of what others use: where less of it is seen, someone cannot be seen from here."""
WHOLE = 1.05
LOADED = 2.0
"""Tasks a processor that ran or waited in the last minute: the launches of a case before this one are under it."""
STEADY_GOVERNORS = {"", "performance"}


TakeSurvey = Callable[[Mapping[str, str]], "Survey"]


class Survey(Document):
    """What the machine did meanwhile, while this process slept."""

    processors: int
    """Those that launches may use."""
    seconds: float
    busy_seconds: float = 0.0
    """Of those processors, by others."""
    steal_seconds: float = 0.0
    processes: tuple[Process, ...] = ()
    """Those that used most."""
    load: float = 0.0
    """How many tasks ran or waited, on average over the last minute."""
    limit: float | None = None
    """Processors that the container may use; None: no limit."""
    governor: str = ""
    turbo: str = ""
    """`on`, `off`, or empty where that is not told."""


def take_survey(host: Mapping[str, str]) -> Survey:
    """Has a child survey the machine, as it needs psutil and this process must not.

    `host` is the host's part of the fingerprint.

    Raises OSError, subprocess.SubprocessError and pydantic.ValidationError where it cannot.
    """
    ended = subprocess.run(
        SURVEY, input=json.dumps(host), capture_output=True, text=True, timeout=LIMIT_SECONDS, check=True
    )
    return Survey.model_validate_json(ended.stdout)


def warnings(survey: Survey, host: Mapping[str, str], *, accepts_noise: bool) -> tuple[str, ...]:
    """A line for each thing that will disturb launches, with what to do; none for a quiet machine.

    `host` is the host's part of the fingerprint.
    """
    disturbing = [*_neighbours(survey, host), *_taken(survey)]
    if disturbing and accepts_noise:
        disturbing.append("Noise is accepted: disturbed rounds count, and there will be no verdict.")
    elif disturbing:
        disturbing.append(f"Disturbed rounds are discarded and measured again. To keep them, {ACCEPT}.")
    return (*disturbing, *_clocks(survey))


def _neighbours(survey: Survey, host: Mapping[str, str]) -> list[str]:
    offered = survey.processors * survey.seconds
    if survey.busy_seconds <= NEIGHBOURS.biases * offered:
        loaded = (
            f"The load average of the last minute is {survey.load:.1f} on {_of(survey)}: other work comes and goes."
        )
        return [f"{loaded} Wait for it to end."] if survey.load > LOADED * survey.processors else []
    named = [each for each in survey.processes if each.seconds >= NAMED_SHARE * survey.seconds]
    lines = [
        f"{each.name} (pid {each.pid}) takes {_processors(each.seconds / survey.seconds, survey)}: "
        f"end it{', or leave it a processor' if could_use_fewer(host) else ''}."
        for each in named
    ]
    if sum(each.seconds for each in named) < SEEN_SHARE * survey.busy_seconds:
        lines.append(
            f"Other processes use {percent(survey.busy_seconds / offered)} of {_of(survey)}, and most of them cannot "
            "be seen from here or are short-lived: look on the host, or wait."
        )
    return lines


def _taken(survey: Survey) -> list[str]:
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
    said = f"The CPU governor is {survey.governor}{turbo}: clocks follow load and heat, and intervals get wider."
    return [f"{said} For steady clocks: cpupower frequency-set -g performance."]


def _processors(used: float, survey: Survey) -> str:
    if used > WHOLE:
        return f"{used:.1f} of {_of(survey)}"
    return f"{percent(used)} of {'one of ' if survey.processors > 1 else ''}{_of(survey)}"


def _of(survey: Survey) -> str:
    return f"{survey.processors} processors" if survey.processors > 1 else "the one processor that launches use"
