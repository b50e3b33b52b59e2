"""Starts the real supervisor, with launches and a judge from the command line: `supervise.py CASE LAUNCH JUDGE`."""

import json
import sys

from accelbench_runner.__main__ import main

case, launch, judge = sys.argv[1:4]
sys.exit(main([case], launch_command=json.loads(launch), judge_command=json.loads(judge)))
