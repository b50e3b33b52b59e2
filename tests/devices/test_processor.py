"""Energy by RAPL and caches, read from the kernel, also if they are missing or unreadable."""

import mmap
from importlib import metadata
from pathlib import Path

import pytest

from accelbench_runner.devices import cpu, monitor, processor

RANGE = 262_143_328_850
LIBRARIES = Path(str(metadata.distribution("torch").locate_file("torch/lib")))


def package(root: Path, number: int, microjoules: int, name: str = "package-0") -> None:
    directory = root / f"intel-rapl:{number}"
    directory.mkdir(exist_ok=True)
    (directory / "name").write_text(f"{name}\n")
    (directory / "energy_uj").write_text(f"{microjoules}\n")
    (directory / "max_energy_range_uj").write_text(f"{RANGE}\n")


def test_energy_is_that_of_all_packages_and_of_nothing_twice(tmp_path: Path) -> None:
    for number, name in enumerate(("package-0", "package-1", "psys")):
        package(tmp_path, number, 1_000_000, name)
    before = processor.read_packages(tmp_path)
    for number, name in enumerate(("package-0", "package-1", "psys")):
        package(tmp_path, number, 3_500_000, name)
    assert processor.joules_between(before, processor.read_packages(tmp_path)) == 5.0


def test_a_counter_that_wrapped_around_is_corrected(tmp_path: Path) -> None:
    package(tmp_path, 0, RANGE - 999_999)
    before = processor.read_packages(tmp_path)
    package(tmp_path, 0, 1_000_000)
    assert processor.joules_between(before, processor.read_packages(tmp_path)) == 2.0


def test_energy_is_unknown_if_counters_may_not_be_read(tmp_path: Path) -> None:
    package(tmp_path, 0, 1_000_000)
    (tmp_path / "intel-rapl:0" / "energy_uj").unlink()
    assert processor.joules_between(processor.read_packages(tmp_path), processor.read_packages(tmp_path)) is None
    assert processor.joules_between(processor.read_packages(tmp_path / "nowhere"), {}) is None


@pytest.mark.parametrize("joules", [None, 0.0])
def test_energy_is_unknown_and_not_zero_if_a_counter_is_missing_or_constant(joules: float | None) -> None:
    assert monitor.measured_energy(joules, 2.0, "processors") is None


def a_cache(root: Path, index: int, level: int, kind: str, size: str) -> None:
    directory = root / f"cpu0/cache/index{index}"
    directory.mkdir(parents=True)
    for name, value in (("level", level), ("type", kind), ("size", size)):
        (directory / name).write_text(f"{value}\n")


def test_the_last_level_cache_is_the_one_before_memory(tmp_path: Path) -> None:
    for index, (level, kind, size) in enumerate(
        [(1, "Data", "48K"), (1, "Instruction", "32K"), (2, "Unified", "2048K"), (3, "Unified", "105M")]
    ):
        a_cache(tmp_path, index, level, kind, size)
    assert processor.last_level_bytes(tmp_path) == 105 * 1024**2


@pytest.mark.parametrize("size", ["", "much", "K"])
def test_the_cache_is_unknown_if_the_kernel_does_not_report_it(size: str, tmp_path: Path) -> None:
    assert processor.last_level_bytes(tmp_path) is None
    a_cache(tmp_path, 0, 3, "Unified", size)
    assert processor.last_level_bytes(tmp_path) is None


@pytest.mark.parametrize("size", [None, 480 * 1024**2])
def test_a_cache_that_is_too_large_is_not_emptied(size: int | None) -> None:
    assert processor.cache_evictor(size) is None


def test_emptying_a_cache_touches_twice_its_lines() -> None:
    evict = processor.cache_evictor(64 * 1024)
    assert evict is not None
    evict()


def test_memory_of_a_process_excludes_the_files_that_it_reads() -> None:
    """A library is read page by page as it is used; 64 MB of numbers are the computation's.

    A real library, as /tmp may be kept in memory, where a file is no file to the kernel's account.
    """
    size = 64 * 2**20
    file = max(LIBRARIES.glob("*.so"), key=lambda each: each.stat().st_size)
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), size, access=mmap.ACCESS_READ) as library:
        held = cpu.resident_bytes()
        cpu.restart_peak()
        assert len(bytes(library[page] for page in range(0, size, mmap.PAGESIZE))) == size // mmap.PAGESIZE
        of_reading = cpu.peak_bytes() - held
        numbers = b"\1" * size
        of_computing = cpu.peak_bytes() - held
    assert len(numbers) == size
    assert of_reading < size / 4
    assert size <= of_computing < size * 1.25
