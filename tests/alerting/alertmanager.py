"""A real Alertmanager on 127.0.0.1, and the receiver of its notifications."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import urllib3

from alerting.build import alertmanager
from cluster.ports import free_port
from cluster.processes import Processes, end_processes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Notifications", "running_alertmanager"]


class Notifications:
    """Hold the alerts of all notifications, in order."""

    def __init__(self) -> None:
        self.alerts: list[dict[str, Any]] = []

    def of(self, name: str, status: str) -> list[dict[str, Any]]:
        """Return the alerts of that name that were `firing`, or `resolved`."""
        return [each for each in list(self.alerts) if each["labels"]["alertname"] == name and each["status"] == status]


@contextlib.contextmanager
def running_alertmanager(directory: Path) -> Iterator[tuple[str, Notifications]]:
    """Yield the address (host:port) of an Alertmanager that sends each alert at once and alone, and its notifications.

    Raises `ToolMissingError` where it has not been built, `ComponentError` with its log where it ends.
    """
    program = alertmanager()
    port = free_port()
    directory.mkdir(parents=True, exist_ok=True)
    processes = Processes(directory, die_with_parent=True)
    with _on_call() as (webhook, notifications):
        receiver = {"name": "on-call", "webhook_configs": [{"url": webhook, "send_resolved": True}]}
        route = {"receiver": "on-call", "group_by": ["..."], "group_wait": "0s", "group_interval": "1s"}
        (directory / "alertmanager.json").write_text(json.dumps({"route": route, "receivers": [receiver]}))
        try:
            processes.start(
                "alertmanager",
                [
                    program,
                    f"--config.file={directory / 'alertmanager.json'}",
                    f"--storage.path={directory / 'data'}",
                    f"--web.listen-address=127.0.0.1:{port}",
                    "--cluster.listen-address=",
                ],
            )
            processes.wait_for("alertmanager", lambda: _is_ready(port), what="Alertmanager to be ready")
            yield f"127.0.0.1:{port}", notifications
        finally:
            end_processes(directory)
            processes.reap()


def _is_ready(port: int) -> bool:
    try:
        answer = urllib3.request("GET", f"http://127.0.0.1:{port}/-/ready", timeout=5, retries=False)
    except urllib3.exceptions.HTTPError:
        return False
    return answer.status == HTTPStatus.OK


@contextlib.contextmanager
def _on_call() -> Iterator[tuple[str, Notifications]]:
    notifications = Notifications()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            notifications.alerts += json.loads(body)["alerts"]
            self.send_response(HTTPStatus.OK)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/", notifications
    finally:
        server.shutdown()
        server.server_close()
