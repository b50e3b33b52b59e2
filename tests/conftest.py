"""What every test may ask for: a real cluster (`control_plane`, `node_cluster`, `cluster`, `namespace`)."""

import os
from pathlib import Path

from hypothesis import settings

from accelbench_runner.protocol import ABOUT_THE_MACHINE

pytest_plugins = ["cluster.fixtures"]

# A test that is slow for want of a processor, or because its first example imports scipy, is no failure.
settings.register_profile("accelbench", deadline=None)
settings.load_profile("accelbench")

# Which vector instructions there are takes Inductor 10 s to find out, in every launch that compiles.
os.environ.setdefault(ABOUT_THE_MACHINE, str(Path.home() / ".cache" / "accelbench" / "machine"))
