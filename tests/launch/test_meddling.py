"""A program that changes what measures it."""

import pytest

from accelbench_runner.launch import blocks, meddling
from accelbench_runner.launch.reporter import Reporter


def test_functions_that_were_replaced_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    before = meddling.imported_functions()
    assert meddling.replaced_functions(before) == []
    monkeypatch.setattr(blocks, "time_calls", lambda *_: 0.0)
    monkeypatch.setattr(Reporter, "send_facts", lambda *_, **__: None)
    monkeypatch.delattr(blocks, "warm_up")
    assert meddling.replaced_functions(before) == [
        "accelbench_runner.launch.blocks.time_calls",
        "accelbench_runner.launch.blocks.warm_up",
        "accelbench_runner.launch.reporter.Reporter.send_facts",
    ]


def test_code_that_was_exchanged_inside_a_function_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    before = meddling.imported_functions()
    monkeypatch.setattr(blocks.plan, "__code__", (lambda _seconds, _overhead: None).__code__)
    assert meddling.replaced_functions(before) == ["accelbench_runner.launch.blocks.plan"]


def test_flags_that_frameworks_read_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--one")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    before = meddling.flags()
    monkeypatch.setenv("XLA_FLAGS", "--another")
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    monkeypatch.setenv("A_PROGRAMS_OWN", "1")
    assert meddling.changed_flags(before) == ["JAX_ENABLE_X64", "OMP_NUM_THREADS", "XLA_FLAGS"]
