"""Energy of the processors by RAPL: the kernel's counters of whole packages, where it lets us read them."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/class/powercap")


@dataclass(frozen=True)
class Package:
    """One counter of microjoules, which starts again from 0 at its range."""

    microjoules: int
    range_microjoules: int


def read(root: Path = ROOT) -> dict[str, Package]:
    """By domain; only packages, for the others are parts of them. Since 2020 most kernels show them to root alone."""
    found = {}
    for directory in sorted(root.glob("intel-rapl:*")):  # AMD's are called so too
        try:
            if (directory / "name").read_text().startswith("package"):
                found[directory.name] = Package(
                    microjoules=int((directory / "energy_uj").read_text()),
                    range_microjoules=int((directory / "max_energy_range_uj").read_text()),
                )
        except (OSError, ValueError):
            continue
    return found


def joules(before: dict[str, Package], after: dict[str, Package]) -> float | None:
    """Spent between two readings by all packages together; None without any. Counters that wrapped once are mended."""
    spent = [
        (after[name].microjoules - package.microjoules) % (package.range_microjoules + 1)
        for name, package in before.items()
        if name in after
    ]
    return sum(spent) / 1e6 if spent else None
