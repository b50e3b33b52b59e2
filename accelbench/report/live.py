"""What `accelbench run` shows while it measures: a picture that is redrawn on a terminal, lines anywhere else.

Both go to standard error. The picture stands still while blocks are timed: drawing it costs processor time that the
measured variant would miss.
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
from accelbench.report.progress import Lane, Progress, Remaining, advance, begin, of_the_run, remaining
from accelbench.report.terminal import BAD, VERDICT_STYLES
from accelbench.report.view import PHASES, title

Clock = Callable[[], float]

UNFINISHED: dict[Unfinished, str] = {
    "interrupted": "interrupted",
    "time-limit": "ended at the time limit",
    "probe": "one of accelbench's own probes hung or crashed: launched again without it",
}

BAR_WIDTH = 14
"""What eighty columns leave beside rounds, time and the longest estimate."""


class Display(Protocol):
    """How a run's progress is shown."""

    def case_begins(self, case: Case, number: int, of: int) -> None:
        """Case `number` of `of` is about to be measured."""

    def event(self, event: Event) -> None:
        """The runner said something."""

    def tick(self) -> None:
        """A second passed without an event."""

    def case_ends(self) -> None:
        """The case is over; its report follows."""

    def __enter__(self) -> Self:
        """Begin to show."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""


def display(console: Console, clock: Clock = time.monotonic) -> Display:
    """A picture where `console` is a terminal, else lines."""
    return Picture(console, clock) if console.is_terminal and not console.is_dumb_terminal else Lines(console)


def plan(case: Case) -> str:
    """What is about to be measured, and how long that may take."""
    measurement, names = case.measurement, ", ".join(each.name for each in case.variants)
    rounds = " to ".join(str(each) for each in sorted({measurement.rounds_min, measurement.rounds_max}))
    words = [f"{names}: {rounds} rounds", until(case), f"at most {figures.duration(measurement.time_limit_seconds)}"]
    return ", ".join(filter(None, words))


def until(case: Case) -> str:
    """What ends the rounds between the fewest and the most: a verdict alone does not. Empty where their number is set.

    This is the rule of `accelbench.stats.stopping`; the judge applies it.
    """
    measurement = case.measurement
    if measurement.rounds_min >= measurement.rounds_max:
        return ""
    target = figures.percent(float(measurement.target_relative_error))
    return f"until intervals are within ±{target}"


def failed(reason: FailureReason, case: Case | None) -> str:
    """What became of a variant that gave nothing, in the report's word for it."""
    return f"{'not compiled' if case and case.accelerator.target else 'failed'}: {reason}"


class Lines:
    """A line a launch and a line a round: for logs and pipes."""

    def __init__(self, console: Console) -> None:
        """`console` is standard error."""
        self._console = console
        self._quiet = True
        """No round of the case was disturbed yet."""
        self._done = "measured"
        self._case: Case | None = None
        self._counted = 0
        """Rounds that count."""
        self._goes_on = False
        """It was said why there are more rounds than the fewest."""

    def case_begins(self, case: Case, number: int, of: int) -> None:
        """Name it."""
        self._quiet = True
        self._case = case
        self._counted = 0
        self._goes_on = False
        self._done = "compiled" if case.accelerator.target else "measured"
        self._print(f"case {number} of {of}: {title(case)}")
        if not case.accelerator.target:
            self._print(plan(case))

    def event(self, event: Event) -> None:
        """Print that a launch has ended, and what a round gave: times only of what was found to compute the same."""
        if isinstance(event, LaunchFinished):
            outcome = failed(event.failure, self._case) if event.failure else self._done
            outcome = UNFINISHED[event.unfinished] if event.unfinished else outcome
            self._print(f"round {event.round}: {event.variant}: {outcome} ({float(event.wall_seconds):.1f} s)")
        elif isinstance(event, LaunchStarted):
            for line in self._why_more():
                self._print(line)
        elif isinstance(event, RoundFinished):
            self._counted += not event.quarantined
            for line in self._disturbed(event):
                self._print(line)
            for line in () if event.quarantined else standings(event):
                self._print(f"after round {event.round}: {line}")

        elif isinstance(event, MachineSeen):
            for warning in event.warnings:
                self._print(f"warning: {warning}")

    def _why_more(self) -> Iterator[str]:
        """Once, where a round begins though the fewest are done: a verdict so far ends nothing."""
        if self._case is None or self._goes_on or self._counted < self._case.measurement.rounds_min:
            return
        self._goes_on = True
        if goal := until(self._case):
            yield f"measuring on {goal}, or {self._case.measurement.rounds_max} rounds are done"

    def _disturbed(self, event: RoundFinished) -> tuple[str, ...]:
        """That a round was disturbed; why, and what to do, of the first one alone."""
        first, self._quiet = self._quiet, self._quiet and not (event.quarantined or event.noisy)
        if event.quarantined:
            said = f"round {event.round} is discarded for every variant, and measured again if there is time"
            return tuple(filter(None, (f"{said}: {event.quarantined[0]}", event.advice))) if first else (said,)
        if event.noisy:
            said = f"round {event.round} was disturbed, and counts because noise is accepted"
            return (f"{said}: {event.noisy[0]}",) if first else (said,)
        return ()

    def tick(self) -> None:
        """Say nothing."""

    def case_ends(self) -> None:
        """Say nothing."""

    def __enter__(self) -> Self:
        """Nothing to prepare."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to restore."""

    def _print(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)


class Picture:
    """A table of the variants, the phase of the launch under way, and the time that is left."""

    def __init__(self, console: Console, clock: Clock) -> None:
        """`console` is standard error; `clock` counts seconds from anywhere."""
        self._clock = clock
        self._progress: Progress | None = None
        self._place = (1, 1)
        self._finished: list[float] = []
        self._live = Live(console=console, auto_refresh=False, transient=True, get_renderable=self._draw)

    def case_begins(self, case: Case, number: int, of: int) -> None:
        """Start with empty lanes."""
        self._place = (number, of)
        self._progress = begin(case, self._clock())
        self._live.refresh()

    def event(self, event: Event) -> None:
        """Take it in and redraw; what is to stay is printed above."""
        for warning in event.warnings if isinstance(event, MachineSeen) else ():
            self._live.console.print(Text(f"warning: {warning}", style="yellow"))
        if self._progress is not None:
            self._progress = advance(self._progress, event, self._clock())
            self._live.refresh()

    def tick(self) -> None:
        """Let the clock run on, except while blocks are timed."""
        if self._progress is not None and self._progress.phase != "steady":
            self._live.refresh()

    def case_ends(self) -> None:
        """Clear the picture; the report takes its place."""
        if self._progress is not None:
            self._finished.append(self._clock() - self._progress.started)
            self._progress = None
            self._live.refresh()

    def __enter__(self) -> Self:
        """Begin to draw."""
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""
        self._live.stop()

    def _draw(self) -> RenderableType:
        if self._progress is None:
            return Text()
        now = self._clock()
        left = remaining(self._progress, now)
        number, of = self._place
        if left is not None and number < of:
            left = of_the_run(left, now - self._progress.started, self._finished, of - number)
        return picture(self._progress, now, left, number=number, of=of)


def picture(progress: Progress, now: float, left: Remaining | None, *, number: int, of: int) -> RenderableType:
    """One frame; `left` is what the whole run still needs."""
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
    noted = _noise(progress)
    goal = () if progress.case.accelerator.target else tuple(filter(None, [until(progress.case)]))
    why = (Text(f"measuring {line}", style="dim") for line in goal)
    return Group(heading, Text(), table, Text(), _strip(progress.phase), *noted, *why, _bar(progress, now, left))


def _noise(progress: Progress) -> tuple[Text, ...]:
    """What disturbed the first round that was, and what to do."""
    if not progress.disturbed:
        return ()
    lines = (f"disturbed: {progress.disturbed}", progress.advice)
    return tuple(Text(line, style="yellow") for line in lines if line)


def standings(finished: RoundFinished) -> Iterator[str]:
    """Where each variant stands: `jax/jit: 574 µs, 2.04x (2.01 to 2.07) faster`."""
    compared = {each.variant: each for each in finished.comparisons}
    seconds = {each.variant: None if each.seconds is None else float(each.seconds) for each in finished.times}
    baseline = next((name for name in seconds if name not in compared), "")
    digits = time_digits(seconds, finished.comparisons, baseline)
    for now in finished.times:
        said = [figures.seconds(known, digits)] if (known := seconds[now.variant]) else []
        comparison = compared.get(now.variant)
        if now.invalid:
            said.append(f"invalid: {', '.join(now.invalid)}")
        elif comparison is not None and (comparison.speedup or comparison.invalid):
            said.append(standing(comparison))
        if said:
            yield f"{now.variant}: {', '.join(said)}"


def time_digits(seconds: Mapping[str, float | None], comparisons: Iterable[SpeedupEstimate], baseline: str) -> int:
    """How many digits times need to divide to the speedups that stand beside them."""
    return figures.digits_that_agree(
        (before, after, float(each.speedup))
        for each in comparisons
        if each.speedup and (before := seconds.get(baseline)) and (after := seconds.get(each.variant))
    )


def standing(comparison: SpeedupEstimate) -> str:
    """A comparison on the way: `2.04x (2.01 to 2.07) faster`."""
    if comparison.invalid:
        return f"invalid: {', '.join(comparison.invalid)}"
    if not (comparison.speedup and comparison.lower and comparison.upper):
        return "no interval yet"
    bounds = figures.interval(float(comparison.lower), float(comparison.upper))
    said: str = comparison.verdict or ("noisy" if comparison.noisy else "")
    said = "undecided so far" if said == "inconclusive" else said
    return f"{figures.speedup(float(comparison.speedup))} ({bounds}) {said}".rstrip()


def _cells(lane: Lane, progress: Progress, digits: int) -> tuple[RenderableType, ...]:
    mark = Text(" ")
    if lane.failure is not None:
        mark = Text("✗", style=BAD)
    elif progress.running == lane.variant:
        mark = Text("●", style="bold cyan")
    elif lane.last_round == progress.round and progress.round:
        mark = Text("·", style="dim")  # measured: whether it computed the right thing, the round's end tells
    so_far = "" if lane.seconds is None else figures.seconds(lane.seconds, digits)
    said = Text()
    if lane.failure is not None:
        said = Text(failed(lane.failure, progress.case), style=BAD)
    elif lane.variant == progress.case.baseline:
        said = Text("baseline", style="dim")
        if lane.invalid:
            said = Text(f"invalid: {', '.join(lane.invalid)}", style=BAD)
    elif lane.comparison is not None:
        style = BAD if lane.comparison.invalid else VERDICT_STYLES.get(lane.comparison.verdict or "", "")
        said = Text(standing(lane.comparison), style=style)
    return mark, lane.variant, str(lane.launches) if lane.launches else "", so_far, said


def _strip(now_in: Phase | None) -> Text:
    """The phases of a launch, the one under way marked."""
    strip = Text()
    reached = now_in is not None
    for phase in PHASES:
        if strip:
            strip.append(" > ", style="dim")
        if phase == now_in:
            strip.append(phase, style="bold cyan")
            reached = False
        else:
            strip.append(phase, style="green" if reached else "dim")
    return strip


def _bar(progress: Progress, now: float, left: Remaining | None) -> RenderableType:
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
    """The estimate in words; the first launch has to end before there is one."""
    if left is None:
        return "time left: known after the first launch"
    least, most = figures.duration(left.least), figures.duration(left.most)
    return f"{least} left" if least == most else f"{least} to {most} left"
