from pathlib import Path

import pytest

from accelbench.api.profiles import (
    InvalidProfilesError,
    Profiles,
    UnknownProfileError,
    load_profiles,
    parse_profiles,
)


def test_presets_are_there_without_a_file() -> None:
    profiles = load_profiles({})

    assert profiles.names == ("cpu", "nvidia")
    assert profiles.get("nvidia").platform == "cuda"
    assert profiles.get("nvidia").resource == "nvidia.com/gpu"


def test_an_administrator_adds_profiles_and_replaces_presets(tmp_path: Path) -> None:
    file = tmp_path / "profiles.yaml"
    file.write_text("cpu: {platform: cpu, cpu: 16}\nh100: {platform: cuda, resource: nvidia.com/gpu}\n")
    profiles = load_profiles({"ACCELBENCH_PROFILES": str(file)})

    assert profiles.names == ("cpu", "h100", "nvidia")
    assert profiles.get("cpu").cpu == 16


def test_an_unknown_profile_is_told_the_nearest_one() -> None:
    with pytest.raises(UnknownProfileError, match='unknown profile "nvidea"; did you mean nvidia'):
        Profiles().get("nvidea")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "p.yaml: not YAML"),
        ("- a", "p.yaml: must map each profile's name"),
        ("a: 1", "p.yaml: must map each profile's name"),
        ("a: {platform: rocket}", "p.yaml: profile a: platform: unknown platform"),
        ("a: {platform: cudo}", "did you mean cuda?"),
        ("a: {platform: cpu, nodeSelectr: {}}", 'unknown field "nodeSelectr"; did you mean nodeSelector?'),
        ("a: {platform: cpu, cpu: 0.5}", "p.yaml: profile a: cpu: "),
        ("a: {platform: cuda, resource: gpu}", "p.yaml: profile a: resource: "),
        ("A_B: {platform: cpu}", "p.yaml: profile A_B: name: "),
    ],
)
def test_profiles_that_cannot_be_read_say_where_and_why(text: str, message: str) -> None:
    with pytest.raises(InvalidProfilesError) as raised:
        parse_profiles(text, "p.yaml")

    assert message in str(raised.value)


def test_an_empty_file_adds_nothing() -> None:
    assert parse_profiles("# none yet\n", "p.yaml") == ()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidProfilesError, match="ACCELBENCH_PROFILES="):
        load_profiles({"ACCELBENCH_PROFILES": str(tmp_path / "none.yaml")})
