"""A target's devices are divided into axes, or the division is refused with the remedy."""

import pytest

from accelbench.targets import UnevenMeshError, divide_mesh


@pytest.mark.parametrize(
    ("axes", "devices", "found"),
    [
        ({"data": 0}, 16, {"data": 16}),
        ({"data": 1, "fsdp": 0, "tensor": 4}, 256, {"data": 1, "fsdp": 64, "tensor": 4}),
        ({"data": 2, "fsdp": 2, "tensor": 2}, 8, {"data": 2, "fsdp": 2, "tensor": 2}),
        ({"data": 0, "fsdp": 1, "tensor": 8}, 8, {"data": 1, "fsdp": 1, "tensor": 8}),
    ],
)
def test_an_axis_of_0_gets_the_remaining_devices(axes: dict[str, int], devices: int, found: dict[str, int]) -> None:
    assert divide_mesh(axes, devices) == found
    assert list(divide_mesh(axes, devices)) == list(axes), "the last axis is of neighbours"


def test_one_device_divides_nothing_so_that_one_file_is_for_one_and_for_many() -> None:
    assert divide_mesh({"data": 2, "fsdp": 0, "tensor": 4}, 1) == {"data": 1, "fsdp": 1, "tensor": 1}


@pytest.mark.parametrize(
    ("axes", "expected_text"),
    [
        ({"data": 1, "fsdp": 0, "tensor": 3}, "data 1 x tensor 3 do not divide 16 devices, so fsdp cannot be 0"),
        ({"data": 2, "fsdp": 2, "tensor": 2}, "data 2 x fsdp 2 x tensor 2 are 8 devices, not 16: set one of them to 0"),
        ({"data": 0, "fsdp": 0}, "data and fsdp cannot both be 0 (the rest of 16 devices): set one of them"),
    ],
)
def test_axes_that_do_not_match_the_targets_devices_are_refused_with_the_remedy(
    axes: dict[str, int], expected_text: str
) -> None:
    with pytest.raises(UnevenMeshError) as raised:
        divide_mesh(axes, 16)
    assert expected_text in str(raised.value)
