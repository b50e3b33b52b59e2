"""Serve requests in an open loop: they arrive by a schedule, whether or not the requests before them are finished.

One program serves them one after the other, in their order, as a server with one worker does. In a closed loop, the
next request would not arrive before the last one is answered, so that a long pause would delay only one request
("coordinated omission"). Here each request that arrives during the pause waits, and its response time includes that.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench_runner.clock import Clock
from accelbench_runner.frameworks.work import Work


@dataclass(frozen=True)
class Request:
    """Hold the times of one request, in seconds of the launch's clock."""

    arrived: float
    """When it arrived by the schedule, whether or not other requests had ended."""
    ready: float
    """When it could begin: at its arrival, or at the end of the previous request if that was later."""
    began: float
    ended: float

    @property
    def response_seconds(self) -> float:
        """Return the seconds from its arrival to its end."""
        return self.ended - self.arrived

    @property
    def service_seconds(self) -> float:
        """Return the seconds from its beginning to its end."""
        return self.ended - self.began

    @property
    def late_seconds(self) -> float:
        """Return how late it began, because this process woke up late."""
        return self.began - self.ready


def serve(work: Work, arrivals: Sequence[float], clock: Clock, inspect: Callable[[Any], None]) -> tuple[Request, ...]:
    """Make a call for each request, as soon as it has arrived and the previous request has ended.

    Args:
        work: The call. Its first state is fresh, and each request gets the state that the previous request returned.
        arrivals: Seconds after the start at which requests arrive, in order.
        clock: The clock to wait by and to time with.
        inspect: Called with the last call's result, after the last request.

    Returns:
        The requests, in order.
    """
    state = work.fresh()
    work.synchronise(state)
    out: Any = None
    # Local names, which the loop finds sooner than attributes.
    call, batches, synchronise = work.call, work.batches, work.synchronise
    requests: list[Request] = []
    ended = started = clock.seconds()
    for arrival in arrivals:
        arrived = started + arrival
        clock.wait_until(arrived)
        ready = max(arrived, ended)
        began = clock.seconds()
        state, out = call(state, batches)
        synchronise((state, out))
        ended = clock.seconds()
        requests.append(Request(arrived, ready, began, ended))
    inspect((state, out))
    return tuple(requests)
