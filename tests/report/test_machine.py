from accelbench.report import machine


def test_an_unknown_machine_is_nothing_to_show() -> None:
    assert machine.line({}) == ""
