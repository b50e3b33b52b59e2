"""A real Chromium, spoken to over its DevTools pipe: what a page does there, and what its user gets to see."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from cluster.wait import HANG_SECONDS
from report.browser import find

Scheme = Literal["light", "dark"]


class Page:
    """One tab."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._held = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self._session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Accessibility", "Log"):
            self(f"{domain}.enable")

    def __call__(self, method: str, **parameters: Any) -> Any:
        """Send a command and wait for its answer; events that come before it are kept."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._held:
            chunk = os.read(self._answers, 1 << 16)
            assert chunk, "Chromium has ended"
            self._held += chunk
        message, self._held = self._held.split(b"\0", 1)
        return dict(json.loads(message))

    def wait_for(self, method: str) -> None:
        """Until this event has come."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._message())

    def open(self, path: Path, *, width: int = 1280, scheme: Scheme = "light") -> None:
        """Load a file at this width, in this colour scheme."""
        self("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
        self("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self("Page.navigate", url=path.as_uri())
        self.wait_for("Page.loadEventFired")

    def evaluate(self, expression: str) -> Any:
        """The value of JavaScript in the page; it works although the page itself allows no script."""
        answer = self("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def accessible(self, role: str) -> list[str]:
        """The names of all that assistive technology finds with this role."""
        nodes = self("Accessibility.getFullAXTree")["nodes"]
        return [
            node.get("name", {}).get("value", "")
            for node in nodes
            if not node.get("ignored") and node.get("role", {}).get("value") == role
        ]


@contextmanager
def tab() -> Iterator[Page]:
    """A browser of its own, with an empty profile, for as long as the block lasts.

    Raises `ToolMissingError` where there is none.
    """
    browser = find()
    there_read, commands = os.pipe()
    answers, there_write = os.pipe()
    with tempfile.TemporaryDirectory(prefix="accelbench-chromium-", ignore_cleanup_errors=True) as profile:
        arguments = [
            browser.program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank",
        ]  # fmt: skip
        process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{there_read} 4>&{there_write}', "bash", *arguments],
            pass_fds=(there_read, there_write),
            env=os.environ | browser.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(there_read)
        os.close(there_write)
        try:
            page = Page(commands, answers)
            yield page
            page._session = None
            os.write(commands, b'{"id": 0, "method": "Browser.close"}\0')
            process.wait(timeout=HANG_SECONDS)
        finally:
            process.kill()
            process.wait()
            os.close(commands)
            os.close(answers)
