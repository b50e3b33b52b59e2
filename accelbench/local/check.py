"""Check the cases of a run on this machine: compare what variants compute, and time nothing."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from accelbench.api.case import Case
from accelbench.api.run import BenchmarkRun
from accelbench.delivery.log import Event
from accelbench.local import environments
from accelbench.local.child import RunnerExit, run_case
from accelbench.local.directory import RunDirectory
from accelbench.local.interrupt import Signals
from accelbench.local.run import script_environment
from accelbench.plan.cases import plan_cases


def check_cases(
    run: BenchmarkRun,
    platform: str,
    script: Path | None,
    *,
    signals: Signals,
    on_event: Callable[[Event], None],
    on_line: Callable[[str], None],
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[tuple[Case, RunnerExit]]:
    """Check the cases of a run one after the other until a signal arrives; yield each with its runner's exit.

    Args:
        run: The run.
        platform: Name of the platform of the run's profile.
        script: The workload's file, if it has one.
        signals: The handler that forwards Ctrl-C and SIGTERM to the runner.
        on_event: Called with each event of a runner's log.
        on_line: Called with each line about environments that are installed.
        environment: Environment variables for the runner, in addition to this process's variables.
    """
    installed = environments.install(run, on_line)
    with tempfile.TemporaryDirectory(prefix="accelbench-check-") as temporary:
        directory = RunDirectory(Path(temporary))
        runner_environment = {**environment, **script_environment(script, directory)}
        for case in plan_cases(run, platform, environments=installed):
            if signals.received is None:
                log = directory.log_path(case.name)
                runner_exit = run_case(
                    case,
                    log,
                    signals=signals,
                    on_event=on_event,
                    on_tick=lambda: None,
                    environment=runner_environment,
                    check=True,
                )
                yield case, runner_exit
