"""Simulate a clock and a machine: the costs of calls, synchronisation and clock readings are given."""

from dataclasses import dataclass, field
from typing import Any

from accelbench_runner.frameworks.work import Work


@dataclass
class Simulated:
    """Let time pass only by what is done; `call_seconds` may change from call to call."""

    call_seconds: list[float]
    """Seconds of each call in turn; the last number repeats."""
    synchronise_seconds: float = 0.0
    read_seconds: float = 0.0
    wakes_late_seconds: float = 0.0
    units: int = 1
    now: float = 100.0
    calls: int = 0
    pending: float = 0.0
    """Seconds of asynchronous work that only a synchronisation waits for."""
    events: list[str] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    marked: float = 0.0
    device_seconds: float = 0.0

    def seconds(self) -> float:
        self.now += self.read_seconds
        return self.now

    def raw_seconds(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds

    def wait_until(self, moment: float) -> None:
        if self.now < moment:
            self.now = moment + self.wakes_late_seconds

    def work(self) -> Work:
        return Work(
            fresh=self._fresh, call=self._call, batches="batches", synchronise=self._synchronise, units=self.units
        )

    def start(self) -> None:
        """Record an event in the device's idle queue."""
        self.events.append("start")
        self.marked = self.now

    def stop(self) -> None:
        """Record an event behind all pending work."""
        self.events.append("stop")
        self.device_seconds = self.now + self.pending - self.marked

    def compare(self, host_seconds: float) -> None:
        """Keep host seconds over device seconds."""
        self.ratios.append(host_seconds / self.device_seconds)

    def evict(self) -> None:
        """Take a second."""
        self.events.append("evict")
        self.now += 1.0

    def _fresh(self) -> int:
        self.events.append("fresh")
        self.now += 1.0  # must never be seen in a block
        return 0

    def _call(self, state: int, batches: Any) -> tuple[int, None]:
        assert batches == "batches"
        self.pending += self.call_seconds[min(self.calls, len(self.call_seconds) - 1)]
        self.calls += 1
        return state + 1, None

    def _synchronise(self, _value: Any) -> None:
        self.now += self.synchronise_seconds + self.pending
        self.pending = 0.0
        self.events.append("synchronise")
