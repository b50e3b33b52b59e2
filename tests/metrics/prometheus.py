"""A real Prometheus on 127.0.0.1 for as long as a test asks for it."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, replace
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import urllib3

from cluster.build import binaries
from cluster.ports import free_port
from cluster.processes import Processes, end_processes
from cluster.wait import HANG_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["Prometheus", "running_prometheus"]


@dataclass(frozen=True)
class Prometheus:
    """Where it listens, since when it knows its target (Unix seconds), and the two questions that tests ask."""

    url: str
    scraped_twice_at: float = 0.0

    def query(self, expression: str, *, at: float | None = None) -> list[dict[str, Any]]:
        """The samples of an instant query, now or as of Unix seconds; ValueError where the expression is wrong."""
        moment = {} if at is None else {"time": str(at)}
        samples: list[dict[str, Any]] = self._get("query", query=expression, **moment)["result"]
        return samples

    def label_values(self, label: str, selector: str) -> list[str]:
        """The values of a label among the series that a selector matches."""
        values: list[str] = self._get(f"label/{label}/values", **{"match[]": selector})
        return values

    def is_ready(self) -> bool:
        """Whether it answers."""
        try:
            return urllib3.request("GET", f"{self.url}/-/ready", timeout=5, retries=False).status == HTTPStatus.OK
        except urllib3.exceptions.HTTPError:
            return False

    def _get(self, path: str, **parameters: str) -> Any:
        answer = urllib3.request("GET", f"{self.url}/api/v1/{path}", fields=parameters, timeout=HANG_SECONDS).json()
        if answer["status"] != "success":
            raise ValueError(f"{answer['error']}: {parameters}")
        return answer["data"]


@contextlib.contextmanager
def running_prometheus(
    directory: Path,
    *,
    expected: int,
    job: str = "accelbench",
    every: str = "200ms",
    scraped: Mapping[str, Any],
    more: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[Prometheus]:
    """Prometheus, once it has scraped each of its `expected` targets twice, so that rates can be told.

    `scraped` is where it finds them and how it scrapes them, `more` what else its configuration has.

    Raises `ToolMissingError` where it has not been built, `ComponentError` with its log where it ends.
    """
    program = binaries().prometheus
    times = {"scrape_interval": every, "scrape_timeout": every}
    scrape = {"job_name": job, **scraped}
    configuration = {"global": times, "scrape_configs": [scrape], **more}
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "prometheus.json").write_text(json.dumps(configuration))
    port = free_port()
    server = Prometheus(f"http://127.0.0.1:{port}")
    processes = Processes(directory, die_with_parent=True)
    try:
        processes.start(
            "prometheus",
            [
                program,
                f"--config.file={directory / 'prometheus.json'}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
        )
        processes.wait_for("prometheus", server.is_ready, what="prometheus to be ready")
        # A scrape that failed is a sample of `up` too, and leaves rates with one sample of the target: sum, not count.
        up = f'up{{job="{job}"}}'
        twice = f"min(sum_over_time({up}[1m])) >= 2 and min({up}) == 1 and count({up}) == {expected}"
        (known,) = wait_until(lambda: server.query(twice), what=f"two scrapes of each of {expected} targets of {job}")
        yield replace(server, scraped_twice_at=known["value"][0])
    finally:
        end_processes(directory)
        processes.reap()
