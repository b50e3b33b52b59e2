"""Show the progress of a run on standard error: a table that is redrawn on a terminal, lines anywhere else.

The table is not redrawn while blocks are timed, because drawing would take processor time from the measured variant.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from accelbench import figures
from accelbench.api.case import Case
from accelbench.api.reasons import FailureReason
from accelbench.api.result import Phase, SpeedupEstimate
from accelbench.delivery.log import (
    Event,
    LaunchFinished,
    LaunchStarted,
    MachineSeen,
    RoundFinished,
    Unfinished,
)
from accelbench.report.progress import Lane, Progress, Remaining, advance, begin, remaining, remaining_run
from accelbench.report.terminal import BAD, VERDICT_STYLES
from accelbench.report.view import PHASES, title

Clock = Callable[[], float]

UNFINISHED: dict[Unfinished, str] = {
    "interrupted": "interrupted",
    "time-limit": "ended at the time limit",
    "probe": "one of accelbench's own probes hung or crashed: launched again without it",
}

BAR_WIDTH = 14
"""Columns for the bar, so that it fits with rounds, time and the longest estimate into eighty."""


class Display(Protocol):
    """Receive the progress of a run."""

    def start_case(self, case: Case, number: int, of: int) -> None:
        """Start a case, the first of `of` having the number 1."""

    def event(self, event: Event) -> None:
        """Process an event of the runner."""

    def tick(self) -> None:
        """Process a second without an event."""

    def end_case(self) -> None:
        """End the case; its report follows."""

    def __enter__(self) -> Self:
        """Start the display."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the terminal."""


def display(console: Console, clock: Clock = time.monotonic) -> Display:
    """Return a table if the console is a terminal, else lines."""
    return LiveTable(console, clock) if console.is_terminal and not console.is_dumb_terminal else Lines(console)


def plan(case: Case) -> str:
    """Describe the variants, the rounds and the time limit of a case."""
    measurement, names = case.measurement, ", ".join(variant.name for variant in case.variants)
    rounds = " to ".join(str(count) for count in sorted({measurement.rounds_min, measurement.rounds_max}))
    words = [
        f"{names}: {rounds} rounds",
        stop_condition(case),
        f"at most {figures.duration(measurement.time_limit_seconds)}",
    ]
    return ", ".join(filter(None, words))


def stop_condition(case: Case) -> str:
    """Return the condition that ends the rounds early; empty if their number is fixed.

    The judge applies this rule with `accelbench.stats.stopping`. A verdict alone does not end the rounds.
    """
    measurement = case.measurement
    if measurement.rounds_min >= measurement.rounds_max:
        return ""
    target = figures.percent(float(measurement.target_relative_error))
    return f"until intervals are within ±{target}"


def failure_text(reason: FailureReason, case: Case | None) -> str:
    """Return `failed: REASON`, or `not compiled: REASON` if the case is compiled for a target."""
    return f"{'not compiled' if case and case.accelerator.target else 'failed'}: {reason}"


class Lines:
    """Print a line for each launch and each round, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        """Print to a console, which is standard error."""
        self._console = console
        self._undisturbed = True
        """True until a round of the case is disturbed."""
        self._success = "measured"
        self._case: Case | None = None
        self._valid_rounds = 0
        self._rounds_explained = False
        """True once the reason for more rounds than the minimum has been printed."""

    def start_case(self, case: Case, number: int, of: int) -> None:
        """Print the case's title and plan."""
        self._undisturbed = True
        self._case = case
        self._valid_rounds = 0
        self._rounds_explained = False
        self._success = "compiled" if case.accelerator.target else "measured"
        self._print(f"case {number} of {of}: {title(case)}")
        if not case.accelerator.target:
            self._print(plan(case))

    def event(self, event: Event) -> None:
        """Print a launch's end, a round's disturbances or its times, and warnings about the machine."""
        if isinstance(event, LaunchFinished):
            outcome = failure_text(event.failure, self._case) if event.failure else self._success
            outcome = UNFINISHED[event.unfinished] if event.unfinished else outcome
            self._print(f"round {event.round}: {event.variant}: {outcome} ({float(event.wall_seconds):.1f} s)")
        elif isinstance(event, LaunchStarted):
            for line in self._explain_more_rounds():
                self._print(line)
        elif isinstance(event, RoundFinished):
            self._valid_rounds += not event.quarantined
            for line in self._disturbance(event):
                self._print(line)
            for line in () if event.quarantined else round_lines(event):
                self._print(f"after round {event.round}: {line}")
        elif isinstance(event, MachineSeen):
            for warning in event.warnings:
                self._print(f"warning: {warning}")

    def _explain_more_rounds(self) -> Iterator[str]:
        """Explain, once, why a round starts although the minimum is reached."""
        if self._case is None or self._rounds_explained or self._valid_rounds < self._case.measurement.rounds_min:
            return
        self._rounds_explained = True
        if goal := stop_condition(self._case):
            yield f"measuring continues {goal}, or until {self._case.measurement.rounds_max} rounds are done"

    def _disturbance(self, event: RoundFinished) -> tuple[str, ...]:
        """Report a disturbed round, with reason and advice for the first one only."""
        first = self._undisturbed
        self._undisturbed = first and not (event.quarantined or event.noisy)
        if event.quarantined:
            line = f"round {event.round} is discarded for every variant, and measured again if there is time"
            return tuple(filter(None, (f"{line}: {event.quarantined[0]}", event.advice))) if first else (line,)
        if event.noisy:
            line = f"round {event.round} was disturbed, and counts because noise is accepted"
            return (f"{line}: {event.noisy[0]}",) if first else (line,)
        return ()

    def tick(self) -> None:
        """Print nothing."""

    def end_case(self) -> None:
        """Print nothing."""

    def __enter__(self) -> Self:
        """Return this display."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore nothing, because lines change no terminal."""

    def _print(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)


class LiveTable:
    """Draw a table of the variants, the phase of the current launch, and the remaining time."""

    def __init__(self, console: Console, clock: Clock) -> None:
        """Draw on a console, which is standard error; `clock` returns seconds of any monotonic clock."""
        self._clock = clock
        self._progress: Progress | None = None
        self._position = (1, 1)
        self._case_durations: list[float] = []
        self._live = Live(console=console, auto_refresh=False, transient=True, get_renderable=self._draw)

    def start_case(self, case: Case, number: int, of: int) -> None:
        """Start with an empty row for each variant."""
        self._position = (number, of)
        self._progress = begin(case, self._clock())
        self._live.refresh()

    def event(self, event: Event) -> None:
        """Update the table; print warnings above it, where they stay."""
        for warning in event.warnings if isinstance(event, MachineSeen) else ():
            self._live.console.print(Text(f"warning: {warning}", style="yellow"))
        if self._progress is not None:
            self._progress = advance(self._progress, event, self._clock())
            self._live.refresh()

    def tick(self) -> None:
        """Redraw the elapsed time, except while blocks are timed."""
        if self._progress is not None and self._progress.phase != "steady":
            self._live.refresh()

    def end_case(self) -> None:
        """Clear the table; the report takes its place."""
        if self._progress is not None:
            self._case_durations.append(self._clock() - self._progress.started)
            self._progress = None
            self._live.refresh()

    def __enter__(self) -> Self:
        """Start to draw."""
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the terminal."""
        self._live.stop()

    def _draw(self) -> RenderableType:
        """Draw the current frame; nothing between cases."""
        if self._progress is None:
            return Text()
        now = self._clock()
        left = remaining(self._progress, now)
        number, of = self._position
        if left is not None and number < of:
            left = remaining_run(left, now - self._progress.started, self._case_durations, of - number)
        return frame(self._progress, now, left, number=number, of=of)


def frame(progress: Progress, now: float, left: Remaining | None, *, number: int, of: int) -> RenderableType:
    """Draw one frame; `left` is the remaining time of the whole run."""
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("", width=1)
    table.add_column("variant", overflow="fold")
    table.add_column("launches", justify="right")
    table.add_column("time so far", justify="right", no_wrap=True)
    table.add_column("speedup so far", no_wrap=True)
    digits = time_digits(
        {lane.variant: lane.seconds for lane in progress.lanes},
        [lane.comparison for lane in progress.lanes if lane.comparison],
        progress.case.baseline,
    )
    for lane in progress.lanes:
        table.add_row(*_cells(lane, progress, digits))
    heading = Text(title(progress.case), style="bold")
    if of > 1:
        heading.append(f"  case {number} of {of}", style="dim")
    goal = "" if progress.case.accelerator.target else stop_condition(progress.case)
    reason = (Text(f"measuring {goal}", style="dim"),) if goal else ()
    disturbance = _disturbance(progress)
    phases = _phases(progress.phase)
    return Group(heading, Text(), table, Text(), phases, *disturbance, *reason, _bar(progress, now, left))


def _disturbance(progress: Progress) -> tuple[Text, ...]:
    """Return the reason of the first disturbed round, and advice."""
    if not progress.disturbed:
        return ()
    lines = (f"disturbed: {progress.disturbed}", progress.advice)
    return tuple(Text(line, style="yellow") for line in lines if line)


def round_lines(finished: RoundFinished) -> Iterator[str]:
    """Yield a line for each variant: `jax/jit: 574 µs, 2.04x (2.01 to 2.07) faster`."""
    compared = {comparison.variant: comparison for comparison in finished.comparisons}
    seconds = {time.variant: None if time.seconds is None else float(time.seconds) for time in finished.times}
    baseline = next((name for name in seconds if name not in compared), "")
    digits = time_digits(seconds, finished.comparisons, baseline)
    for measured in finished.times:
        parts = [figures.seconds(value, digits)] if (value := seconds[measured.variant]) else []
        comparison = compared.get(measured.variant)
        if measured.invalid:
            parts.append(f"invalid: {', '.join(measured.invalid)}")
        elif comparison is not None and (comparison.speedup or comparison.invalid):
            parts.append(estimate_text(comparison))
        if parts:
            yield f"{measured.variant}: {', '.join(parts)}"


def time_digits(seconds: Mapping[str, float | None], comparisons: Iterable[SpeedupEstimate], baseline: str) -> int:
    """Return how many digits times need so that their ratios match the speedups shown next to them."""
    return figures.digits_that_agree(
        (before, after, float(comparison.speedup))
        for comparison in comparisons
        if comparison.speedup and (before := seconds.get(baseline)) and (after := seconds.get(comparison.variant))
    )


def estimate_text(comparison: SpeedupEstimate) -> str:
    """Return the state of a comparison, `2.04x (2.01 to 2.07) faster`, or why it has no interval."""
    if comparison.invalid:
        return f"invalid: {', '.join(comparison.invalid)}"
    if not (comparison.speedup and comparison.lower and comparison.upper):
        return "no interval yet"
    bounds = figures.interval(float(comparison.lower), float(comparison.upper))
    verdict: str = comparison.verdict or ("noisy" if comparison.noisy else "")
    verdict = "undecided so far" if verdict == "inconclusive" else verdict
    return f"{figures.speedup(float(comparison.speedup))} ({bounds}) {verdict}".rstrip()


def _cells(lane: Lane, progress: Progress, digits: int) -> tuple[RenderableType, ...]:
    """Return a variant's row: mark, name, launches, time, and speedup or failure."""
    mark = Text(" ")
    if lane.failure is not None:
        mark = Text("✗", style=BAD)
    elif progress.running == lane.variant:
        mark = Text("●", style="bold cyan")
    elif lane.last_round == progress.round and progress.round:
        mark = Text("·", style="dim")  # the checks follow at the end of the round
    so_far = "" if lane.seconds is None else figures.seconds(lane.seconds, digits)
    state = Text()
    if lane.failure is not None:
        state = Text(failure_text(lane.failure, progress.case), style=BAD)
    elif lane.variant == progress.case.baseline:
        state = Text("baseline", style="dim")
        if lane.invalid:
            state = Text(f"invalid: {', '.join(lane.invalid)}", style=BAD)
    elif lane.comparison is not None:
        style = BAD if lane.comparison.invalid else VERDICT_STYLES.get(lane.comparison.verdict or "", "")
        state = Text(estimate_text(lane.comparison), style=style)
    return mark, lane.variant, str(lane.launches) if lane.launches else "", so_far, state


def _phases(current: Phase | None) -> Text:
    """List the phases of a launch, with the current one marked."""
    line = Text()
    reached = current is not None
    for phase in PHASES:
        if line:
            line.append(" > ", style="dim")
        if phase == current:
            line.append(phase, style="bold cyan")
            reached = False
        else:
            line.append(phase, style="green" if reached else "dim")
    return line


def _bar(progress: Progress, now: float, left: Remaining | None) -> RenderableType:
    """Return a line with the round, the elapsed time, a bar of the rounds done, and the remaining time."""
    measurement = progress.case.measurement
    active = [lane for lane in progress.lanes if lane.failure is None]
    in_this_round = sum(lane.last_round == progress.round for lane in active)
    done = float(progress.rounds_complete)
    if progress.rounds_complete + progress.quarantined < progress.round and active:
        done += in_this_round / len(active)
    rounds = f"round {max(1, progress.round - progress.quarantined)} of {measurement.rounds_min}"
    if measurement.rounds_max > measurement.rounds_min:
        rounds += f" to {measurement.rounds_max}"
    if progress.quarantined:
        rounds += f" ({progress.quarantined} discarded)"
    line = Table.grid(padding=(0, 2, 0, 0))
    bar = ProgressBar(total=measurement.rounds_max, completed=done, width=BAR_WIDTH)
    elapsed = figures.duration(now - progress.started)
    line.add_row(rounds, elapsed, bar, Text(time_left(left), style="dim"))
    return line


def time_left(left: Remaining | None) -> str:
    """Format the estimated remaining time; `left` is None before the first launch has ended."""
    if left is None:
        return "time left: known after the first launch"
    least, most = figures.duration(left.least), figures.duration(left.most)
    return f"{least} left" if least == most else f"{least} to {most} left"
