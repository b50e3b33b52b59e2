"""Provide what every test may use: real clusters (`control_plane`, `cluster`)."""

import contextlib
import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from accelbench_runner.protocol import MACHINE_DIRECTORY
from cluster.errors import ToolMissingError
from tiers import DURATIONS, E2E, Order, Recorder, sort

CLUSTER_FIXTURES = {"cluster", "control_plane"}

pytest_plugins = ["cluster.fixtures", "operator_world.fixtures", "taxonomy.recording"]

# A test that is slow for want of a processor, or because its first example imports scipy, is no failure. Under CI
# the examples are the same each time, so that a failure is the push's own; elsewhere they are new.
settings.register_profile("accelbench", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("accelbench")

# Which vector instructions there are takes Inductor 10 s to find out, in every launch that compiles.
os.environ.setdefault(MACHINE_DIRECTORY, str(Path.home() / ".cache" / "accelbench" / "machine"))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Return a function that compares a text with the file of that name in the folder `golden` next to the test."""

    def check(name: str, text: str) -> None:
        path = request.path.parent / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path}: no such file; write it with pytest --update-golden"
        assert text == path.read_text(), f"{path} differs; if it should, run pytest --update-golden and read git diff"

    return check


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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer `--record-durations` and `--update-golden`."""
    parser.addoption("--update-golden", action="store_true", help="write what tests compare with golden files")
    parser.addoption("--record-durations", action="store_true", help=f"write {DURATIONS.name}: `make test-all` does")


def pytest_configure(config: pytest.Config) -> None:
    """Record durations where that is asked for; with pytest-xdist, in the process that sees every report."""
    if config.getoption("--record-durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder())


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that need a real node, all of which one worker runs, and those that need a real control plane."""
    if item.nodeid.startswith(E2E):
        item.add_marker(pytest.mark.node)
    elif CLUSTER_FIXTURES & set(getattr(item, "fixturenames", ())):
        item.add_marker(pytest.mark.cluster)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that the workers end together."""
    sort(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Order:
    """Give each worker whole groups, for what their fixtures share."""
    config.option.loadscopereorder = False
    return Order(config, log)
