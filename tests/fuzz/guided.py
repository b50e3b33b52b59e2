"""One target under libFuzzer, guided by what inputs reach: `python -m fuzz.guided TARGET [libFuzzer's arguments]`."""

import sys

import atheris

with atheris.instrument_imports(include=["accelbench", "accelbench_operator", "accelbench_runner", "yaml"]):
    from fuzz.targets import TARGETS
from fuzz.mutations import mutated


def mutate(data: bytes, most: int, seed: int) -> bytes:
    """Every other time a change that leaves JSON what it is, else libFuzzer's own."""
    changed = mutated(data, seed) if seed % 2 else None
    if changed is None or len(changed) > most:
        return bytes(atheris.Mutate(data, most))
    return changed


name, *arguments = sys.argv[1:]
atheris.Setup([name, *arguments], TARGETS[name], custom_mutator=mutate)
atheris.Fuzz()
