"""Warn before the first launch about what will disturb the case, and what to do about it.

A child process surveys the machine (`accelbench_runner.supervisor.survey`); `warnings` describes its findings.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from accelbench.document import Document
from accelbench.launch.facts import Process
from accelbench.report.advice import ACCEPT_NOISE
from accelbench.validity.check import percent
from accelbench.validity.shared_device import NEIGHBOURS, could_use_fewer_cpus
from accelbench.validity.throttled import STEAL

SURVEY = (sys.executable, "-m", "accelbench_runner.supervisor.survey")
LIMIT_SECONDS = 20.0
"""Maximum seconds of a survey."""
MINIMUM_LISTED_SHARE = 0.1
"""Minimum share of a CPU for which a process gets a line."""
MINIMUM_EXPLAINED_SHARE = 0.5
"""Minimum share of the load that the listed processes explain; below it, a line mentions invisible processes."""
ONE_PROCESSOR = 1.05
"""Maximum use of a process that counts as using one CPU."""
MAXIMUM_LOAD_PER_PROCESSOR = 2.0
"""Maximum load average per CPU without a warning; launches of an earlier case stay below it."""
STEADY_GOVERNORS = {"", "performance"}
"""Governors without a warning; empty if unknown."""


TakeSurvey = Callable[[Mapping[str, str]], "Survey"]


class Survey(Document):
    """Hold the use of the machine during one second in which this process slept."""

    processors: int
    """Number of CPUs that launches may use."""
    seconds: float
    busy_seconds: float = 0.0
    """CPU seconds of other processes on these CPUs."""
    steal_seconds: float = 0.0
    processes: tuple[Process, ...] = ()
    """The busiest other processes."""
    load: float = 0.0
    """Tasks that ran or waited, on average over the last minute."""
    limit: float | None = None
    """Processors that the container may use; None: no limit."""
    governor: str = ""
    turbo: str = ""
    """`on`, `off`, or empty if unknown."""


def take_survey(host: Mapping[str, str]) -> Survey:
    """Survey the machine's load in a child process; `host` is the host's part of the fingerprint.

    Raises OSError, subprocess.SubprocessError and pydantic.ValidationError.
    """
    with tempfile.TemporaryDirectory(prefix="accelbench-survey-") as directory:
        answer = Path(directory, "answer.json")
        subprocess.run(
            [*SURVEY, str(answer)],
            input=json.dumps(host),
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=True,
        )
        return Survey.model_validate_json(answer.read_text())


def warnings(survey: Survey, host: Mapping[str, str], *, accepts_noise: bool) -> tuple[str, ...]:
    """Return a line for each finding of the survey that will disturb the measurement, with what to do about it.

    If rounds may be disturbed, a further line says what happens to such rounds.
    """
    lines = [*_load_warnings(survey, host), *_container_warnings(survey)]
    if lines and accepts_noise:
        lines.append("Noise is accepted: disturbed rounds count, and there will be no verdict.")
    elif lines:
        lines.append(f"Disturbed rounds are discarded and measured again. To keep them, {ACCEPT_NOISE}.")
    return (*lines, *_clock_warnings(survey))


def _load_warnings(survey: Survey, host: Mapping[str, str]) -> list[str]:
    """Return warnings about processes that use the CPUs now; if these use little, about a high load average."""
    available_seconds = survey.processors * survey.seconds
    if survey.busy_seconds <= NEIGHBOURS.biases * available_seconds:  # too little to bias a measurement
        if survey.load <= MAXIMUM_LOAD_PER_PROCESSOR * survey.processors:
            return []
        load = f"The load average of the last minute is {survey.load:.1f} on {_describe_processors(survey)}"
        return [f"{load}: other work comes and goes. Wait for it to end."]
    busy_processes = [
        process for process in survey.processes if process.seconds >= MINIMUM_LISTED_SHARE * survey.seconds
    ]
    remedy = "end it, or let accelbench use fewer processors" if could_use_fewer_cpus(host) else "end it"
    lines = []
    for process in busy_processes:
        use = _describe_use(process.seconds / survey.seconds, survey)
        lines.append(f"{process.name} (pid {process.pid}) takes {use}: {remedy}.")
    if sum(process.seconds for process in busy_processes) < MINIMUM_EXPLAINED_SHARE * survey.busy_seconds:
        lines.append(
            f"Other processes use {percent(survey.busy_seconds / available_seconds)} of "
            f"{_describe_processors(survey)}, and most of them cannot be seen from here or are short-lived: look on "
            "the host, or wait."
        )
    return lines


def _container_warnings(survey: Survey) -> list[str]:
    """Return warnings about CPU time that the hypervisor takes, and about a CPU limit below the number of CPUs."""
    lines = []
    steal_share = survey.steal_seconds / (survey.processors * survey.seconds)
    if steal_share > STEAL.biases:
        lines.append(
            f"Hypervisor steal: {percent(steal_share)} (limit {percent(STEAL.biases)}): other virtual machines share "
            "this host. Wait for a quieter time, or take a host of your own."
        )
    if survey.limit is not None and survey.limit < survey.processors:
        lines.append(
            f"The CPU limit of {survey.limit:g} is less than {_describe_processors(survey)}, so that launches "
            "are held back: raise it."
        )
    return lines


def _clock_warnings(survey: Survey) -> list[str]:
    """Return a warning if the machine's CPU governor lets the clocks change during a measurement."""
    if survey.governor in STEADY_GOVERNORS:
        return []
    turbo = " and turbo is on" if survey.turbo == "on" else ""
    warning = f"The CPU governor is {survey.governor}{turbo}: clocks follow load and heat, and intervals get wider."
    return [f"{warning} For steady clocks: cpupower frequency-set -g performance."]


def _describe_use(used_processors: float, survey: Survey) -> str:
    """Describe how much CPU time is used, such as `1.5 of 4 processors` or `60 % of one of 4 processors`."""
    processors = _describe_processors(survey)
    if used_processors > ONE_PROCESSOR:
        return f"{used_processors:.1f} of {processors}"
    one_of = "one of " if survey.processors > 1 else ""
    return f"{percent(used_processors)} of {one_of}{processors}"


def _describe_processors(survey: Survey) -> str:
    """Describe the CPUs that launches may use, such as `4 processors`."""
    return f"{survey.processors} processors" if survey.processors > 1 else "the one processor that launches use"
