from pathlib import Path

import pytest

from accelbench.api.profiles import (
    InvalidProfilesError,
    Profiles,
    UnknownProfileError,
    load_presets,
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


def test_an_unknown_profile_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownProfileError, match='unknown profile "nvidea"; did you mean nvidia'):
        Profiles().get("nvidea")


def tpu(accelerator: str, topology: str, resource: str = "resource: google.com/tpu, ") -> str:
    labels = f"cloud.google.com/gke-tpu-accelerator: {accelerator}, cloud.google.com/gke-tpu-topology: '{topology}'"
    return f"a: {{platform: tpu, {resource}nodeSelector: {{{labels}}}}}"


def test_an_administrator_can_adapt_a_ready_profile_by_its_differences() -> None:
    (h100,) = parse_profiles("h100: {preset: gke-nvidia-h100, namespaces: [ml], pricePerHour: 11.06 USD}", "p.yaml")
    preset = load_presets()["gke-nvidia-h100"]

    assert (h100.name, h100.namespaces, h100.price_per_hour) == ("h100", ("ml",), "11.06 USD")
    assert (h100.node_selector, h100.tolerations, h100.memory) == (
        preset.node_selector,
        preset.tolerations,
        preset.memory,
    )


@pytest.mark.parametrize(
    ("topology", "accelerator", "chips"),
    [("1x1", "tpu-v6e-slice", 1), ("2x4", "tpu-v5-lite-podslice", 8), ("2x2x1", "tpu-v5p-slice", 4)],
)
def test_a_tpu_slice_has_as_many_chips_as_its_topology(topology: str, accelerator: str, chips: int) -> None:
    (profile,) = parse_profiles(tpu(accelerator, topology), "p.yaml")
    assert profile.slice_chips == chips


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
        ("a: {preset: gke-nvidia-h10}", 'p.yaml: profile a: preset: unknown preset "gke-nvidia-h10"; did you mean'),
        ("a: {platform: cuda, resource: nvidia.com/gpu, deviceClass: gpu.nvidia.com}", "are two ways to get a device"),
        ("a: {platform: cpu, pricePerHour: '11.06'}", "p.yaml: profile a: pricePerHour: "),
        (tpu("tpu-v5-lite-podslice", "4x4"), "4x4 has 16 chips, and no host of tpu-v5-lite-podslice has them"),
        (tpu("tpu-v5p-slice", "2x2x2"), "a case runs on one host: take 2x2x1"),
        (tpu("tpu-v6e-slice", "4"), "must be chips along each axis"),
        (tpu("tpu-v9", "2x2"), "one of tpu-v5-lite-podslice, tpu-v5p-slice, tpu-v6e-slice"),
        (tpu("tpu-v6e-slice", "2x2", resource=""), "add resource: google.com/tpu"),
    ],
)
def test_unreadable_profiles_are_refused_with_the_place_and_the_reason(text: str, message: str) -> None:
    with pytest.raises(InvalidProfilesError) as raised:
        parse_profiles(text, "p.yaml")

    assert message in str(raised.value)


def test_an_empty_file_adds_nothing() -> None:
    assert parse_profiles("# none yet\n", "p.yaml") == ()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidProfilesError, match="ACCELBENCH_PROFILES="):
        load_profiles({"ACCELBENCH_PROFILES": str(tmp_path / "none.yaml")})


def test_a_file_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    file = tmp_path / "latin.yaml"
    file.write_bytes("# für GPUs\n".encode("latin-1"))

    with pytest.raises(InvalidProfilesError, match=r"latin\.yaml"):
        load_profiles({"ACCELBENCH_PROFILES": str(file)})
