"""The table of targets: names are found or refused with the nearest one, and figures have a source."""

import pytest

from accelbench import targets
from accelbench.api.profiles import InvalidProfilesError, Profiles, parse_profiles


@pytest.mark.parametrize("chip", targets.chips().values(), ids=lambda chip: chip.name)
def test_every_chip_has_figures_and_their_source(chip: targets.Chip) -> None:
    assert chip.source
    assert chip.title
    if chip.platform != "cpu":
        assert chip.memory_bytes is not None
        assert chip.links


@pytest.mark.parametrize(
    ("name", "devices", "topology"),
    [
        ("h100", 1, "1x1x1"),
        ("h100x8", 8, "1x1x8"),
        ("b200x256", 256, "1x32x8"),
        ("v5e-16", 16, "4x4"),
        ("v5p-8", 4, "2x2x1"),
        ("v6e-256", 256, "16x16"),
        ("cpu", 1, ""),
    ],
)
def test_the_name_of_a_target_gives_the_number_of_chips_and_their_topology(
    name: str, devices: int, topology: str
) -> None:
    found = targets.find(name)
    assert (found.devices, found.topology) == (devices, topology)


@pytest.mark.parametrize(
    ("name", "expected_text"),
    [("h100x3", "did you mean h100x"), ("v5e-15", "did you mean v5e-1"), ("tenstorrent", "one of: a100, b200, cpu")],
)
def test_an_unknown_target_is_refused_with_the_nearest_name(name: str, expected_text: str) -> None:
    with pytest.raises(targets.UnknownTargetError, match=expected_text):
        targets.find(name)


def test_a_compiler_that_is_missing_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "NEEDS", {"tpu": ("a-package-that-nobody-has",)})
    assert targets.find("v5e-16").missing_message == (
        "compiling for v5e-16 needs a-package-that-nobody-has: pip install 'accelbench[targets-tpu]'"
    )
    assert not targets.find("cpu").missing_message


def test_a_profile_names_a_target_in_place_of_devices() -> None:
    profile = Profiles(parse_profiles("h100: {preset: cpu, target: h100x8, memory: 8Gi}", "x")).get("h100")
    assert (profile.platform, profile.target) == ("cpu", "h100x8")


@pytest.mark.parametrize(
    ("fields", "expected_text"),
    [
        ("{platform: cpu, target: h100x9}", 'profile h100: target: unknown target "h100x9"; did you mean'),
        ("{platform: cuda, resource: nvidia.com/gpu, target: h100}", "compiling needs no device"),
    ],
)
def test_a_profile_with_an_impossible_target_is_refused(fields: str, expected_text: str) -> None:
    with pytest.raises(InvalidProfilesError, match=expected_text):
        parse_profiles(f"h100: {fields}", "x")
