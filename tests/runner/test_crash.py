"""Test where a process crashed, by shortened real output of faulthandler."""

import pytest

from accelbench.catalogue import script
from accelbench_runner.supervisor.outcome import crash_location

SEGFAULT = b"""a line of the program's
Fatal Python error: Segmentation fault

Thread 0x00007f41e0000000 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 331 in wait

Current thread 0x00007f41e84b6b80 (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/home/me/my_filter.py", line 35 in step
  File "/usr/lib/python3.11/site-packages/accelbench_runner/launch.py", line 252 in _first_call
  File "/home/me/my_filter.py", line 70 in <lambda>
  File "<frozen runpy>", line 88 in _run_code

Extension modules: psutil._psutil_linux, numpy._core._multiarray_umath (total: 2)
"""


def test_a_scripts_own_calls_are_named_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(script.SCRIPT_VARIABLE, "/results/my_filter.py")
    monkeypatch.setenv(script.ORIGIN_VARIABLE, "/home/me/my_filter.py")
    assert (
        crash_location(SEGFAULT) == " at my_filter.py, line 35 in step, called from my_filter.py, line 70 in <lambda>"
    )


def test_without_a_script_the_innermost_calls_of_the_thread_that_crashed_are_named() -> None:
    assert crash_location(SEGFAULT, "; it hung") == (
        "; it hung at __init__.py, line 519 in string_at, called from my_filter.py, line 35 in step, "
        "called from launch.py, line 252 in _first_call"
    )


@pytest.mark.parametrize("errors", [b"", b"terminate called without an active exception\n", SEGFAULT[:80]])
def test_a_process_that_reports_no_calls_has_no_line(errors: bytes) -> None:
    assert crash_location(errors, "; it hung") == ""
