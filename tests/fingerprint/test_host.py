"""The conditions of a measurement apart from the case, read from files of Linux."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from accelbench.api.environment import CaseEnvironment
from accelbench.catalogue import script
from accelbench.launch.facts import Facts
from accelbench.launch.record import LaunchRecord
from accelbench.machine import fingerprint
from accelbench.workloads import _training, _transformer, freeze_layers, matmul_chain, vit
from judge.launches import BASELINE, VARIANT, a_case
from report import sample

CPUINFO = """processor\t: 0
model name\t: Some Processor 9000
flags\t\t: fpu sse2 avx2

processor\t: 1
model name\t: Some Processor 9000
flags\t\t: fpu sse2 avx2
"""


def write(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    return write(
        tmp_path,
        {
            "proc/cpuinfo": CPUINFO,
            "proc/meminfo": "MemTotal:       16384 kB\nMemFree: 1 kB\n",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
            "sys/devices/system/node/node0/x": "",
            "sys/devices/system/node/node1/x": "",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        },
    )


def test_the_machine_is_read_from_proc_and_sys(machine: Path) -> None:
    found = fingerprint.of_host({}, root=machine, threads=2)
    assert found["cpu"] == "Some Processor 9000"
    assert found["memoryBytes"] == str(16384 * 1024)
    assert found["governor"] == "performance"
    assert found["numaNodes"] == "2"
    assert found["transparentHugePages"] == "madvise"
    assert found["cpusUsed"] == "2"


def test_the_flags_of_the_processor_are_compared_without_their_order(machine: Path) -> None:
    before = fingerprint.of_host({}, root=machine)["cpuFlags"]
    write(machine, {"proc/cpuinfo": CPUINFO.replace("fpu sse2 avx2", "avx2 fpu sse2")})
    assert fingerprint.of_host({}, root=machine)["cpuFlags"] == before
    write(machine, {"proc/cpuinfo": CPUINFO.replace("avx2", "avx512f")})
    assert fingerprint.of_host({}, root=machine)["cpuFlags"] != before


def test_vector_instructions_and_a_hypervisor_are_named(machine: Path) -> None:
    found = fingerprint.of_host({}, root=machine)
    assert found["cpuVectors"] == "avx2"
    assert "virtualMachine" not in found
    write(machine, {"proc/cpuinfo": CPUINFO.replace("avx2", "hypervisor amx_bf16 avx512f avx2")})
    found = fingerprint.of_host({}, root=machine)
    assert (found["cpuVectors"], found["virtualMachine"]) == ("avx2, avx512f, amx_bf16", "yes")


def test_unreadable_values_are_left_out(tmp_path: Path) -> None:
    found = fingerprint.of_host({}, root=tmp_path)
    assert {"governor", "memoryBytes", "numaNodes", "cpuFlags", "image"}.isdisjoint(found)
    assert {"cpu", "kernel", "python", "accelbench"} <= found.keys()


def test_variables_that_change_results_are_kept_and_no_others(tmp_path: Path) -> None:
    environment = {
        "XLA_FLAGS": "--xla_cpu_enable_fast_math=true",
        "TORCHINDUCTOR_MAX_AUTOTUNE": "1",
        "OMP_PROC_BIND": "close",
        "SECRET_TOKEN": "do not tell",
        "ACCELBENCH_IMAGE": "registry/runner@sha256:abc",
    }
    found = fingerprint.of_host(environment, root=tmp_path)
    assert {name for name in found if name.startswith("env.")} == {
        "env.OMP_PROC_BIND",
        "env.TORCHINDUCTOR_MAX_AUTOTUNE",
        "env.XLA_FLAGS",
    }
    assert found["image"] == "registry/runner@sha256:abc"
    assert "do not tell" not in found.values()


def test_values_are_shortened(tmp_path: Path) -> None:
    found = fingerprint.of_host({"XLA_FLAGS": "x" * 10_000}, root=tmp_path)
    assert len(found["env.XLA_FLAGS"]) == fingerprint.MAXIMUM_VALUE_CHARACTERS


def launch_with_facts(facts: dict[str, Any], variant: str = VARIANT) -> LaunchRecord:
    return LaunchRecord(variant=variant, round=1, position=0, wall_seconds=1.0, facts=Facts.parse(facts))


def test_differing_versions_of_launches_are_all_listed() -> None:
    reported: list[dict[str, Any]] = [
        {"versions": {"jax": "0.10.2", "numpy": "2.4"}, "device": {"platform": "cpu", "name": "a processor"}},
        {"versions": {"torch": "2.15", "numpy": "2.3"}},
        {"versions": "nonsense"},
        {},
    ]
    assert fingerprint.of_launches(a_case(), map(launch_with_facts, reported)) == {
        "device.count": "1",
        "device.name": "a processor",
        "device.platform": "cpu",
        "version.jax": "0.10.2",
        "version.numpy": "2.3 | 2.4",
        "version.torch": "2.15",
    }


def test_versions_in_an_environment_of_its_own_belong_to_the_variant() -> None:
    own = CaseEnvironment(name="before", interpreter="/before/bin/python", lock_digest="0123456789abcdef")
    plain = a_case()
    variants = [each.model_copy(update={"environment": "before"}) for each in plain.variants if each.name == VARIANT]
    case = plain.model_copy(update={"environments": (own,), "variants": (plain.variants[0], *variants)})
    launches = [
        launch_with_facts({"versions": {"jax": "0.9.2"}}, VARIANT),
        launch_with_facts({"versions": {"torch": "2.15"}}, BASELINE),
    ]
    assert fingerprint.of_launches(case, launches) == {
        f"variant.{VARIANT}.version.jax": "0.9.2",
        "version.torch": "2.15",
    }
    assert fingerprint.of_environments(case) == {f"variant.{VARIANT}.lock": "0123456789abcdef"}


def test_the_workloads_source_has_a_digest() -> None:
    found = fingerprint.of_source(matmul_chain.MatmulChain)
    assert len(found["workloadSource"]) == 16
    assert fingerprint.of_source(int) == {}


def test_the_source_of_functions_is_their_file(tmp_path: Path) -> None:
    digests = []
    for name, result in (("first.py", "x"), ("second.py", "2 * x"), ("again.py", "x")):
        path = tmp_path / name
        path.write_text(f"def arrays(rng):\n    return {{}}\n\n\ndef numpy(x):\n    return {result}\n")
        digests.append(fingerprint.of_source(type(script.load(path)))["workloadSource"])
    assert digests[0] == digests[2] != digests[1]


def test_shared_modules_are_part_of_the_source_of_each_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what is shared by what they share: freeze-layers trains by way of the network that it shares."""
    kinds = (vit.Vit, freeze_layers.FreezeLayers, matmul_chain.MatmulChain)
    before = [fingerprint.of_source(kind) for kind in kinds]
    getsource = inspect.getsource
    for changed, touched in ((_transformer, [True, False, False]), (_training, [True, True, False])):
        text = {changed: "changed"}
        monkeypatch.setattr(inspect, "getsource", lambda module, text=text: text.get(module) or getsource(module))
        after = [fingerprint.of_source(kind) for kind in kinds]
        assert [one != other for one, other in zip(before, after, strict=True)] == touched


def test_cores_and_their_threads_are_distinguished(machine: Path) -> None:
    assert "cores" not in fingerprint.of_host({}, root=machine)
    threads = (f"processor\t: {n}\nphysical id\t: 0\ncore id\t\t: {n // 2}\n" for n in range(4))
    write(machine, {"proc/cpuinfo": "\n".join(threads)})
    assert fingerprint.of_host({}, root=machine)["cores"] == "2"


@pytest.mark.parametrize(
    ("file", "content", "turbo"),
    [
        ("intel_pstate/no_turbo", "0", "on"),
        ("intel_pstate/no_turbo", "1", "off"),
        ("cpufreq/boost", "1", "on"),
        ("cpufreq/boost", "0", "off"),
    ],
)
def test_turbo_is_reported_in_one_word_for_every_driver(machine: Path, file: str, content: str, turbo: str) -> None:
    assert "turbo" not in fingerprint.of_host({}, root=machine)
    write(machine, {f"sys/devices/system/cpu/{file}": f"{content}\n"})
    assert fingerprint.of_host({}, root=machine)["turbo"] == turbo


def test_parameters_and_defaults_of_the_workload_are_part_of_the_fingerprint() -> None:
    asked = fingerprint.of_case(sample.case(parameters={"size": 64}), {"size": 64, "length": 100})
    assert asked == {"precision": "float32", "seed": "0", "parameter.size": "64", "parameter.length": "100"}
