"""A simulated world that begins the same ends the same, in any process: what a test finds can be looked at again."""

import os
import subprocess
import sys

HISTORY = """
import logging
from random import Random
from operator_world.churn import fates, faults, of_a_cluster, shape
from operator_world.world import simulated

logging.disable(logging.CRITICAL)
random = Random(3)
with simulated(seed=3, settings=of_a_cluster(50), faults=faults(random, 0.05), fates=fates(random)) as world:
    world.server.changed.append(lambda kind, version, _: print(f"{world.time.seconds:.6f}", kind, *version.id))
    for _ in range(12):
        world.apply(shape(random))
        world.passes(120.0)
    world.heal()
    world.finish()
"""


def history(hash_seed: int) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", HISTORY], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_world_is_the_same_in_every_process() -> None:
    first = history(1)
    assert "benchmarkresults" in first
    assert {history(hash_seed) for hash_seed in (2, 3, 4)} == {first}
