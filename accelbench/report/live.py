"""Show the progress of a run on standard error: a table that is redrawn on a terminal, lines anywhere else.

The table is not redrawn while blocks are timed, because drawing would take CPU time from the measured variant.
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
from accelbench.report.progress import (
    Progress,
    Remaining,
    VariantState,
    advance,
    begin,
    remaining_time_of_case,
    remaining_time_of_run,
)
from accelbench.report.terminal import BAD, VERDICT_STYLES
from accelbench.report.view import PHASES, title

Clock = Callable[[], float]

UNFINISHED: dict[Unfinished, str] = {
    "interrupted": "interrupted",
    "time-limit": "ended at the time limit",
    "probe": "one of accelbench's own probes hung or crashed: launched again without it",
}
"""What is shown of a launch that was not finished, by the reason."""

BAR_WIDTH = 14
"""Characters of the progress bar; with the rounds, the time and the longest estimate, it fits into 80 columns."""


class Display(Protocol):
    """Receive the progress of a run."""

    def start_case(self, case: Case, case_number: int, case_count: int) -> None:
        """Show that a case starts; `case_number` counts from 1 to `case_count`."""

    def event(self, event: Event) -> None:
        """Show an event of the runner."""

    def tick(self) -> None:
        """Update the display; called after each second without an event."""

    def end_case(self) -> None:
        """End the case; its report follows."""

    def __enter__(self) -> Self:
        """Start the display."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the terminal, also after an error."""


def display(console: Console, clock: Clock = time.monotonic) -> Display:
    """Return a display of the progress of a run: a live table if the terminal can redraw it, else printed lines."""
    return LiveTable(console, clock) if console.is_terminal and not console.is_dumb_terminal else Lines(console)


def describe_plan(case: Case) -> str:
    """Describe a case's variants, rounds and time limit in one line: `a, b: 5 to 20 rounds, at most 10 min 00 s`."""
    measurement = case.measurement
    names = ", ".join(variant.name for variant in case.variants)
    rounds = f"{measurement.rounds_min}"
    if measurement.rounds_max != measurement.rounds_min:
        rounds += f" to {measurement.rounds_max}"
    texts = [
        f"{names}: {rounds} rounds",
        stop_condition(case),
        f"at most {figures.duration(measurement.time_limit_seconds)}",
    ]
    return ", ".join(filter(None, texts))


def stop_condition(case: Case) -> str:
    """Return what ends the rounds early: `until intervals are within ±1 %`; empty if their number is fixed."""
    measurement = case.measurement
    if measurement.rounds_min >= measurement.rounds_max:
        return ""
    target = figures.percent(float(measurement.target_relative_error))
    return f"until intervals are within ±{target}"


def failure_text(reason: FailureReason, case: Case | None) -> str:
    """Return `failed: REASON`, or `not compiled: REASON` in a case that is only compiled for a target."""
    is_compile_only = case is not None and bool(case.accelerator.target)
    return f"{'not compiled' if is_compile_only else 'failed'}: {reason}"


class Lines:
    """Print a line for each launch and each round, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        """Prepare to print on `console`, which is standard error."""
        self._console = console
        self._disturbance_explained = False
        """True once the reason of the case's first disturbed round has been printed."""
        self._success = "measured"
        """The text for a launch that succeeded: `measured`, or `compiled` in a case for a target."""
        self._case: Case | None = None
        self._valid_rounds = 0
        self._rounds_explained = False
        """True once the reason for more rounds than the minimum has been printed."""

    def start_case(self, case: Case, case_number: int, case_count: int) -> None:
        """Print the title of a case, and its plan if it is measured."""
        self._disturbance_explained = False
        self._case = case
        self._valid_rounds = 0
        self._rounds_explained = False
        self._success = "compiled" if case.accelerator.target else "measured"
        self._print(f"case {case_number} of {case_count}: {title(case)}")
        if not case.accelerator.target:
            self._print(describe_plan(case))

    def event(self, event: Event) -> None:
        """Print the outcome of a launch or of a round, or the warnings, that an event of the runner reports.

        When the first launch after the minimum number of rounds starts, print what ends further rounds.
        """
        if isinstance(event, LaunchFinished):
            outcome = self._describe_outcome(event)
            when = f"round {event.round}" if event.round else "before the first round"
            self._print(f"{when}: {event.variant}: {outcome} ({float(event.wall_seconds):.1f} s)")
        elif isinstance(event, LaunchStarted):
            self._explain_more_rounds()  # only now: after a round it is not known yet whether measuring continues
        elif isinstance(event, RoundFinished):
            self._finish_round(event)
        elif isinstance(event, MachineSeen):
            for warning in event.warnings:
                self._print(f"warning: {warning}")

    def _describe_outcome(self, event: LaunchFinished) -> str:
        """Return how a launch ended: `measured`, `failed: REASON`, or why it was not finished."""
        if event.unfinished:
            return UNFINISHED[event.unfinished]
        return failure_text(event.failure, self._case) if event.failure else self._success

    def _finish_round(self, event: RoundFinished) -> None:
        """Print why a round was disturbed, if it was; if it counts (is not quarantined), print all times so far."""
        for line in self._disturbance_lines(event):
            self._print(line)
        if not event.quarantined:
            self._valid_rounds += 1
            for line in round_lines(event):
                self._print(f"after round {event.round}: {line}")

    def _explain_more_rounds(self) -> None:
        """After the minimum of rounds, print once per case what ends further ones: intervals that are narrow enough."""
        if self._case is None or self._rounds_explained or self._valid_rounds < self._case.measurement.rounds_min:
            return
        self._rounds_explained = True
        condition = stop_condition(self._case)
        if condition:
            maximum = self._case.measurement.rounds_max
            self._print(f"measuring continues {condition}, or until {maximum} rounds are done")

    def _disturbance_lines(self, event: RoundFinished) -> list[str]:
        """Describe a round if it was disturbed; only for the first disturbed round of a case, add the reason."""
        if event.quarantined:
            reasons = event.quarantined
            line = f"round {event.round} is discarded for every variant, and measured again if there is time"
        elif event.noisy:
            reasons = event.noisy
            line = f"round {event.round} was disturbed, and counts because noise is accepted"
        else:
            return []
        if self._disturbance_explained:
            return [line]
        self._disturbance_explained = True
        lines = [f"{line}: {reasons[0]}"]
        if event.quarantined and event.advice:
            lines.append(event.advice)
        return lines

    def tick(self) -> None:
        """Print nothing, because there is a line only for an event."""

    def end_case(self) -> None:
        """Print nothing, because the report of the case follows."""

    def __enter__(self) -> Self:
        """Return this display."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing: printed lines leave nothing in the terminal that has to be restored."""

    def _print(self, line: str) -> None:
        """Print a line without rich's markup; a long line is not broken."""
        self._console.print(Text(line), soft_wrap=True)


class LiveTable:
    """Draw a table of the variants, the phase of the current launch, and the remaining time."""

    def __init__(self, console: Console, clock: Clock) -> None:
        """Prepare to draw a table on `console`; `clock` returns monotonic seconds."""
        self._clock = clock
        self._progress: Progress | None = None
        self._case_number, self._case_count = 1, 1
        self._case_durations: list[float] = []
        # Without auto_refresh, which draws in a thread: drawing could disturb timed blocks (see `tick`).
        self._live = Live(console=console, auto_refresh=False, transient=True, get_renderable=self._draw)

    def start_case(self, case: Case, case_number: int, case_count: int) -> None:
        """Draw the table of a new case, in which each variant still has an empty row."""
        self._case_number, self._case_count = case_number, case_count
        self._progress = begin(case, self._clock())
        self._live.refresh()

    def event(self, event: Event) -> None:
        """Print warnings above the table, and update the table."""
        if isinstance(event, MachineSeen):
            for warning in event.warnings:
                self._live.console.print(Text(f"warning: {warning}", style="yellow"))
        if self._progress is not None:
            self._progress = advance(self._progress, event, self._clock())
            self._live.refresh()

    def tick(self) -> None:
        """Redraw the elapsed time, except in the phase `steady`: drawing could disturb the timed blocks."""
        if self._progress is not None and self._progress.phase != "steady":
            self._live.refresh()

    def end_case(self) -> None:
        """Clear the table, and keep the duration of the case to estimate the remaining time of the run."""
        if self._progress is not None:
            self._case_durations.append(self._clock() - self._progress.started)
            self._progress = None
            self._live.refresh()

    def __enter__(self) -> Self:
        """Start to draw the table on the terminal."""
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop drawing, which restores the terminal."""
        self._live.stop()

    def _draw(self) -> RenderableType:
        """Draw the table in its current state; nothing between cases."""
        if self._progress is None:
            return Text()
        now = self._clock()
        case_remaining = remaining_time_of_case(self._progress, now)
        run_remaining = None
        if case_remaining is not None:
            elapsed = now - self._progress.started
            cases_left = self._case_count - self._case_number
            run_remaining = remaining_time_of_run(case_remaining, elapsed, self._case_durations, cases_left)
        return draw_frame(
            self._progress, now, run_remaining, case_number=self._case_number, case_count=self._case_count
        )


def draw_frame(
    progress: Progress, now: float, run_remaining: Remaining | None, *, case_number: int, case_count: int
) -> RenderableType:
    """Draw the progress of a case: its title, a row for each variant, the phases of a launch, and the status.

    Also draw why a round was disturbed, and what ends the rounds, if there is such a reason or condition.

    Args:
        progress: The state of the current case.
        now: The current time, in seconds of the clock that `progress` uses.
        run_remaining: Time left for the whole run; None if it is not known yet.
        case_number: Number of the current case, from 1.
        case_count: Number of cases in the run.
    """
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("", width=1)
    table.add_column("variant", overflow="fold")
    table.add_column("launches", justify="right")
    table.add_column("time so far", justify="right", no_wrap=True)
    table.add_column("speedup so far", no_wrap=True)
    digits = time_digits(
        {state.variant: state.seconds for state in progress.states},
        [state.comparison for state in progress.states if state.comparison],
        progress.case.baseline,
    )
    for state in progress.states:
        table.add_row(*_cells(state, progress, digits))
    heading = Text(title(progress.case), style="bold")
    if case_count > 1:
        heading.append(f"  case {case_number} of {case_count}", style="dim")
    lines = [_phases(progress.phase), *_disturbance_texts(progress)]
    condition = stop_condition(progress.case)
    if condition and not progress.case.accelerator.target:  # a case for a target is compiled and not measured
        lines.append(Text(f"measuring {condition}", style="dim"))
    return Group(heading, Text(), table, Text(), *lines, _status_line(progress, now, run_remaining))


def _disturbance_texts(progress: Progress) -> tuple[Text, ...]:
    """Return lines with the reason why a round was first disturbed, and with advice; none without disturbance."""
    if not progress.first_disturbance:
        return ()
    lines = (f"disturbed: {progress.first_disturbance}", progress.advice)
    return tuple(Text(line, style="yellow") for line in lines if line)


def round_lines(finished: RoundFinished) -> Iterator[str]:
    """Yield a line for each variant with a time or a comparison: `jax/jit: 574 µs, 2.04x (2.01 to 2.07) faster`."""
    comparisons = {comparison.variant: comparison for comparison in finished.comparisons}
    seconds = {time.variant: None if time.seconds is None else float(time.seconds) for time in finished.times}
    # The event does not name the baseline: it is the variant that is not compared.
    baseline = next((name for name in seconds if name not in comparisons), "")
    digits = time_digits(seconds, finished.comparisons, baseline)
    for variant_time in finished.times:
        texts = []
        if variant_seconds := seconds[variant_time.variant]:
            texts.append(figures.seconds(variant_seconds, digits))
        comparison = comparisons.get(variant_time.variant)
        if variant_time.invalid:  # checks of this variant failed; `comparison` also names those of the baseline
            texts.append(f"invalid: {', '.join(variant_time.invalid)}")
        elif comparison is not None and (comparison.speedup or comparison.invalid):
            texts.append(estimate_text(comparison))
        if texts:
            yield f"{variant_time.variant}: {', '.join(texts)}"


def time_digits(seconds: Mapping[str, float | None], comparisons: Iterable[SpeedupEstimate], baseline: str) -> int:
    """Return how many digits of times to print, so that the printed times, divided, give the printed speedups.

    `seconds` is the time of each variant, or None; the comparisons are with the variant `baseline`.
    """
    baseline_seconds = seconds.get(baseline)
    quotients = []
    for comparison in comparisons:
        variant_seconds = seconds.get(comparison.variant)
        if comparison.speedup and baseline_seconds and variant_seconds:
            quotients.append((baseline_seconds, variant_seconds, float(comparison.speedup)))
    return figures.digits_that_agree(quotients)


def estimate_text(comparison: SpeedupEstimate) -> str:
    """Describe the estimate of a speedup so far: `2.04x (2.01 to 2.07) faster`, or why there is none."""
    if comparison.invalid:
        return f"invalid: {', '.join(comparison.invalid)}"
    if not (comparison.speedup and comparison.lower and comparison.upper):
        return "no interval yet"
    text = f"{figures.speedup(float(comparison.speedup))} "
    text += f"({figures.interval(float(comparison.lower), float(comparison.upper))})"
    if comparison.verdict == "inconclusive":
        return f"{text} undecided so far"
    if comparison.verdict is not None:
        return f"{text} {comparison.verdict}"
    return f"{text} noisy" if comparison.noisy else text


def _cells(state: VariantState, progress: Progress, digits: int) -> tuple[RenderableType, ...]:
    """Return the cells of a variant's row in the live table: mark, name, launches, time and finding."""
    launches = str(state.launches) if state.launches else ""
    time_text = "" if state.seconds is None else figures.seconds(state.seconds, digits)
    return _mark(state, progress), state.variant, launches, time_text, _finding(state, progress)


def _mark(state: VariantState, progress: Progress) -> Text:
    """Return the sign in front of a variant: `✗` failed, `●` running, `·` launched in this round, or a space."""
    if state.failure is not None:
        return Text("✗", style=BAD)
    if progress.running_variant == state.variant:
        return Text("●", style="bold cyan")
    if state.last_round == progress.round and progress.round:  # both are 0 before the first round
        return Text("·", style="dim")  # its checks follow at the end of the round
    return Text(" ")


def _finding(state: VariantState, progress: Progress) -> Text:
    """Return what is known of a variant: its failure, its speedup so far, or `baseline`; empty if nothing is known."""
    if state.failure is not None:
        return Text(failure_text(state.failure, progress.case), style=BAD)
    if state.variant == progress.case.baseline:
        if state.invalid:
            return Text(f"invalid: {', '.join(state.invalid)}", style=BAD)
        return Text("baseline", style="dim")
    if state.comparison is None:
        return Text()
    style = BAD if state.comparison.invalid else VERDICT_STYLES.get(state.comparison.verdict or "", "")
    return Text(estimate_text(state.comparison), style=style)


def _phases(current: Phase | None) -> Text:
    """List the phases of a launch in a line: finished ones are green, the current one is bold, later ones are dim.

    Between launches, `current` is None and all phases are dim.
    """
    finished_count = 0 if current is None else PHASES.index(current)
    texts = []
    for index, phase in enumerate(PHASES):
        if index < finished_count:
            texts.append(Text(phase, style="green"))
        else:
            texts.append(Text(phase, style="bold cyan" if phase == current else "dim"))
    return Text(" > ", style="dim").join(texts)


def _status_line(progress: Progress, now: float, run_remaining: Remaining | None) -> RenderableType:
    """Return a line with the number of the round, the elapsed time, a progress bar and the remaining time.

    Discarded rounds do not advance the bar, because they are measured again.
    """
    measurement = progress.case.measurement
    active_states = [state for state in progress.states if state.failure is None]
    completed_rounds = float(progress.rounds_complete)
    # `progress.round` is the number of the latest round, and each finished round is complete or discarded.
    is_in_round = progress.rounds_complete + progress.discarded_rounds < progress.round
    if is_in_round and active_states:  # each launch of this round advances the bar by a fraction of a round
        launches = sum(state.last_round == progress.round for state in active_states)
        completed_rounds += launches / len(active_states)
    round_number = max(1, progress.round - progress.discarded_rounds)  # show 1 before the first round too
    rounds = f"round {round_number} of {measurement.rounds_min}"
    if measurement.rounds_max > measurement.rounds_min:
        rounds += f" to {measurement.rounds_max}"
    if progress.discarded_rounds:
        rounds += f" ({progress.discarded_rounds} discarded)"
    line = Table.grid(padding=(0, 2, 0, 0))
    bar = ProgressBar(total=measurement.rounds_max, completed=completed_rounds, width=BAR_WIDTH)
    elapsed = figures.duration(now - progress.started)
    line.add_row(rounds, elapsed, bar, Text(time_left(run_remaining), style="dim"))
    return line


def time_left(run_remaining: Remaining | None) -> str:
    """Format the remaining time of a run as `45 s to 2 min 05 s left`; it is None until the first launch has ended."""
    if run_remaining is None:
        return "time left: known after the first launch"
    minimum = figures.duration(run_remaining.minimum_seconds)
    maximum = figures.duration(run_remaining.maximum_seconds)
    return f"{minimum} left" if minimum == maximum else f"{minimum} to {maximum} left"
