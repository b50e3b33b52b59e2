"""Starts the real supervisor, with launches and a judge named in `supervise.py CASE LAUNCH JUDGE PROBE_SECONDS`.

What it sees of the machine beforehand is a quiet one, or what SEEN says in the environment; with BLIND, nothing.
LAST_JUDGE_SECONDS is the judge's limit after a signal.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping

from accelbench_runner.__main__ import main
from accelbench_runner.supervisor import experiment
from accelbench_runner.supervisor.allowance import PROBE_SECONDS
from accelbench_runner.supervisor.preflight import Survey


def take_survey(_host: Mapping[str, str]) -> Survey:
    if "BLIND" in os.environ:
        raise subprocess.TimeoutExpired("look", 20)
    return Survey(processors=2, seconds=1.0, **json.loads(os.environ.get("SEEN", "{}")))


experiment.LAST_JUDGE_SECONDS = float(os.environ.get("LAST_JUDGE_SECONDS", experiment.LAST_JUDGE_SECONDS))
case, launch, judge = sys.argv[1:4]
probe_seconds = float(sys.argv[4]) if sys.argv[4:] else PROBE_SECONDS
commands = {"launch_command": json.loads(launch), "judge_command": json.loads(judge)}
sys.exit(main([case], **commands, probe_seconds=probe_seconds, take_survey=take_survey))
