import io
import re

import pytest
from rich.console import Console, RenderableType

from accelbench.api.result import Certificate, Check
from accelbench.report import terminal
from report import sample


def printed(renderable: RenderableType, width: int, *, colour: bool = False) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=colour, color_system="standard" if colour else None).print(renderable)
    return out.getvalue()


def test_colours_are_used_only_on_a_terminal() -> None:
    assert "\x1b[" in printed(terminal.report(sample.result()), 80, colour=True)
    assert "\x1b" not in printed(terminal.report(sample.result()), 80)


@pytest.mark.parametrize("width", [40, 60])
def test_a_narrow_terminal_breaks_no_word_and_hides_no_number(width: int) -> None:
    text = printed(terminal.report(sample.result()), width)
    assert all(len(line) <= width for line in text.splitlines())
    wide = printed(terminal.report(sample.result()), 120)
    shown = {word for word in re.findall(r"[^\s│━●]+", wide) if word.strip("-")}
    heads = {
        "variant",
        "device-",
        "init",
        "first-",
        "step",
        "equal",
        "speed",
    }  # a list has no head, and writes device-init
    assert shown - heads <= set(text.split())


def test_the_mark_is_green_only_if_every_check_was_made_and_passed() -> None:
    open_ = Check(name="work-present", outcome="untested", reading="nobody counted", variant="jax/jit")
    text = printed(terminal.report(sample.result(certificate=Certificate(checks=(*sample.CHECKS, open_)))), 80)
    assert "? 6 of 7 checks passed, 1 untested (work-present for jax/jit)" in text
    assert "✓" not in text
