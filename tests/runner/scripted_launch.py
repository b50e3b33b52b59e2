"""Play a launch that behaves as its variant's name demands, with the standard library only, so that it starts fast."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

FOREVER = 1000
SLOW_SECONDS = 0.5
GRANDCHILD = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.setsid(); time.sleep(1000)"

request = json.load(sys.stdin)
descriptor, variant, number = request["descriptor"], request["variant"], request["round"]
kind = variant.partition("_")[0]


def say(**message: Any) -> None:
    write(json.dumps(message).encode() + b"\n")


def write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def measure() -> None:
    say(type="phase-started", phase="import")
    say(type="phase-ended", phase="import", seconds=0.01, parts={})
    say(type="phase-started", phase="steady")
    for step in range(20):
        say(type="block", units=10, seconds=0.01 * (1 + 0.001 * step))
    say(type="phase-ended", phase="steady", seconds=0.2)
    seen = {name: os.environ[name] for name in ("TMPDIR", "HOME", "OMP_NUM_THREADS", "JAX_COMPILATION_CACHE_DIR")}
    say(
        type="facts",
        values={
            "unit": "product",
            "flopsPerUnit": 2e6,
            "peakMemoryBytes": 1000 * number,
            "versions": {"python": "3", **seen, "processors": str(sorted(os.sched_getaffinity(0)))},
            "device": {"platform": "cpu", "name": "scripted"},
            "compileCache": {"hits": 0, "misses": 1},
        },
    )
    say(type="measured")


def done() -> None:
    say(type="done")


def leave_a_grandchild() -> None:
    os.posix_spawn(sys.executable, [sys.executable, "-c", GRANDCHILD], os.environ)


def crash_in_a_library() -> None:
    import ctypes  # which takes longer than all else here, so only who crashes pays for it

    ctypes.string_at(0)


def hang_in_a_named_function() -> None:
    while True:
        time.sleep(FOREVER)


def probe(name: str, how: str) -> None:
    """One of accelbench's own, which does not do what it should."""
    say(type="aside-started", name=name, alone=True)
    misbehave(how)
    say(type="aside-ended", name=name, seconds=0.1, problem="ValueError: no answer" if how == "raises" else "")


def misbehave(how: str) -> None:
    match how:
        case "hangs":
            hang_in_a_named_function()
        case "crashes":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "exits":
            os._exit(7)
        case "slow":
            time.sleep(SLOW_SECONDS)


if request["purpose"] == "explain":
    Path(request["directory"], "trace.json.gz").write_text(variant)
    operation = {"name": f"Kineto logs from {os.environ['KINETO_LOG_LEVEL']}", "runs": 1.0, "seconds": 0.009}
    say(type="facts", values={"profiledCalls": {"secondsPerCall": 0.01, "calls": 1, "operations": [operation]}})
    done()
    sys.exit()

if request["purpose"] == "probe":
    if kind.startswith("warm-"):
        say(type="phase-started", phase="device-init")
        misbehave(kind.removeprefix("warm-"))
    left = len(list(Path(os.environ["TMPDIR"]).iterdir()))
    for phase, seconds in (("import", 0.01), ("compile", 0.002), ("first-step", 0.001)):
        say(type="phase-started", phase=phase)
        say(type="phase-ended", phase=phase, seconds=seconds, parts={})
    say(type="facts", values={"compileCache": {"hits": left, "misses": 1 - left}})
    done()
    sys.exit()

if kind.partition("-")[0] in {"watch", "glance", "synchronisation", "limits", "parity"}:
    asked, how = kind.split("-", 1)
    deaf = how.startswith("even-so-")
    how = how.removeprefix("even-so-")
    if asked == "parity":
        say(type="aside-started", name="parity")
        hang_in_a_named_function()
    if asked == "watch" and (deaf or "watch" not in request["skip"]):
        probe("watch", how)
    if asked == "glance" and "watch" not in request["skip"]:
        say(type="phase-started", phase="steady")
        Path(request["directory"], "under-way").write_text("watch")
        misbehave(how)
    measure()
    if asked in {"synchronisation", "limits"} and asked not in request["skip"]:
        probe(asked, how)
    done()
    sys.exit()

match kind:
    case "leaves-a-cache":
        (Path(os.environ["TMPDIR"]) / "compiled").touch()
        measure()
        done()
    case "fine" | "warm-hangs" | "warm-crashes" | "warm-slow" | "jax/jit" | "pytorch/eager":
        measure()
        done()
    case "segfaults":
        say(type="phase-started", phase="compile")
        crash_in_a_library()
    case "killed":
        say(type="phase-started", phase="compile")
        os.kill(os.getpid(), signal.SIGKILL)
    case "exits":
        sys.stderr.write("cannot go on\n")
        sys.exit(7)
    case "hangs":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say(type="phase-started", phase="setup")
        leave_a_grandchild()
        hang_in_a_named_function()
    case "grandchild":
        leave_a_grandchild()
        measure()
        done()
    case "floods":
        line = "x" * 999 + "\n"
        for _ in range(25_000):
            sys.stdout.write(line)
            sys.stderr.write(line)
        measure()
        done()
    case "forges":
        forged = f"accelbench/1 result 1 1/1 {'0' * 64} AAAA"
        sys.stdout.write(f"{forged}\n\u2028{forged}\r{forged}\x0b{forged}\x85{forged}\n")
        sys.stdout.flush()
        sys.stdout.buffer.write(b"\xff\xfe\x00\n")
        measure()
        done()
    case "garbage":
        measure()
        write(b"Traceback (most recent call last):\n")
        time.sleep(FOREVER)
    case "endless-line":
        try:
            while True:
                write(b"x" * 65536)
        except BrokenPipeError:
            time.sleep(FOREVER)
    case "closes-its-pipe":
        os.close(descriptor)
        time.sleep(FOREVER)
    case "crashes-after-done":
        measure()
        done()
        os.kill(os.getpid(), signal.SIGSEGV)
    case "takes-memory":
        held = []
        while True:
            held.append(b"x" * (16 * 1024 * 1024))
    case "reads-again":  # what it reads is evicted before it comes round
        path = Path(os.environ["TMPDIR"]) / "file"
        with path.open("wb") as file:
            for _ in range(400):
                file.write(b"x" * (1024 * 1024))
        while True:
            with path.open("rb") as file:
                while file.read(1024 * 1024):
                    pass
    case "waits-in-round-2":  # until somebody ends it, with a grandchild
        if number == 2:
            leave_a_grandchild()
            say(type="phase-started", phase="warm-up")
            hang_in_a_named_function()
        measure()
        done()
    case _:
        raise ValueError(kind)
