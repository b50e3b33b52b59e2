"""Starts the real supervisor, with launches and a judge named in `supervise.py CASE LAUNCH JUDGE PROBE_SECONDS`."""

import json
import sys

from accelbench_runner.__main__ import main
from accelbench_runner.allowance import PROBE_SECONDS

case, launch, judge = sys.argv[1:4]
probe_seconds = float(sys.argv[4]) if sys.argv[4:] else PROBE_SECONDS
commands = {"launch_command": json.loads(launch), "judge_command": json.loads(judge)}
sys.exit(main([case], **commands, probe_seconds=probe_seconds))
