"""What every test may ask for: a real cluster (`control_plane`, `node_cluster`, `cluster`), and what is `installed`."""

import contextlib
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from accelbench_runner.protocol import ABOUT_THE_MACHINE
from cluster.errors import ToolMissingError

pytest_plugins = ["cluster.fixtures", "e2e.fixtures", "taxonomy.recording"]

# A test that is slow for want of a processor, or because its first example imports scipy, is no failure. Under CI
# the examples are the same each time, so that a failure is the push's own; elsewhere they are new.
settings.register_profile("accelbench", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("accelbench")

# Which vector instructions there are takes Inductor 10 s to find out, in every launch that compiles.
os.environ.setdefault(ABOUT_THE_MACHINE, str(Path.home() / ".cache" / "accelbench" / "machine"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    """Skip a test whose fixtures lack something of the machine."""
    with _skipped_without_its_tools():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """Skip a test that lacks something of the machine itself."""
    with _skipped_without_its_tools():
        return (yield)


@contextlib.contextmanager
def _skipped_without_its_tools() -> Iterator[None]:
    try:
        yield
    except ToolMissingError as error:
        # Where every push is judged, a test that did not run must not look like one that passed.
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


LONG = (
    "crash/test_every_request",
    "workloads/test_parity",
    "pages/test_laptop",
    "tutorials/",
    "launch/test_launch",
    "operator/test_on_a_real",
    "operator/test_hours",
    "chart/test_schemas",
    "fuzz/",
    "operator/test_a_day",
    "targets/",
    "grafana/",
    "kueue/",
    "cli/test_with_the_real_runner",
    "cli/test_targets",
    "third_device/",
    "workloads/",
    "launch/",
    "observe/",
    "runner/",
    "cli/",
    "golden/",
    "operator/",
)
"""Modules that take minutes, then folders whose modules take seconds: what begins late ends last."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long modules first."""
    items.sort(key=lambda item: next((place for place, part in enumerate(LONG) if part in item.nodeid), len(LONG)))


TOGETHER = {
    "control plane": (
        "/api/",
        "/chart/test_install",
        "/cluster/",
        "/operator/test_on_a_real",
        "/security/test_on_",
        "/taxonomy/test_behind",
    ),
    "another control plane": (
        "/kubectl/test_complete",
        "/kubectl/test_reading",
        "/kubectl/test_run",
        "/pages/test_control_plane",
    ),
    "forks": (
        "/catalogue/test_catalogue",
        "/launch/test_adapters",
        "/launch/test_arithmetic",
        "/launch/test_escapes",
        "/launch/test_launch",
        "/launch/test_mistakes",
        "/launch/test_operations",
        "/launch/test_protocols",
        "/launch/test_warm_probe",
        "/observe/test_launch",
    ),
}
"""What takes seconds to start, and the modules that use it: one worker runs them all and starts it once. One control
plane for all of them would be the last to end."""


class ByModule(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out modules whole, for what their fixtures share, in order; of the programs' table each by itself."""

    def _split_scope(self, nodeid: str) -> str:
        module, _, test = nodeid.partition("::")
        for shared, modules in TOGETHER.items():
            if any(part in module for part in modules):
                return shared
        return f"{module}::{test.partition(' ')[0]}" if module.endswith("test_cheats.py") else module


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByModule:
    """The scheduler of `--dist loadscope`, with our scopes."""
    config.option.loadscopereorder = False
    return ByModule(config, log)
