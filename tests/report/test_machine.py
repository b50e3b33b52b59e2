from accelbench.report import machine
from report import sample


def test_an_accelerator_comes_first_and_a_memory_limit_wins_over_the_machines_memory() -> None:
    fingerprint = sample.FINGERPRINT | {
        "device.platform": "cuda",
        "device.name": "NVIDIA H100",
        "memoryLimitBytes": str(4 * 2**30),
    }
    line = machine.line(fingerprint)
    assert line.startswith("NVIDIA H100, AMD EPYC")
    assert ", 4 GiB," in line


def test_cores_vector_instructions_and_a_hypervisor_are_told_where_they_are_known() -> None:
    known = {"cores": "1", "cpuVectors": "avx2, amx_bf16", "virtualMachine": "yes"}
    line = machine.line(sample.FINGERPRINT | known)
    assert line.startswith(
        "AMD EPYC 9B14 with avx2, amx_bf16 (2 of 2 processors used, 1 core, a virtual machine), 16 GiB"
    )


def test_an_unknown_machine_is_nothing_to_show() -> None:
    assert machine.line({}) == ""
