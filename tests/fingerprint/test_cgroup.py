"""Limits of control groups, v1 and v2, inside and outside a container's view."""

import os
from pathlib import Path

import pytest

from accelbench.machine import cgroup

PAGE = os.sysconf("SC_PAGE_SIZE")
V2_MOUNT = "30 25 0:26 {root} {point} rw,nosuid - cgroup2 cgroup2 rw\n"
V1_MOUNT = "31 25 0:29 {root} {point} rw,relatime shared:1 - cgroup cgroup rw,{controllers}\n"


def process(tmp_path: Path, membership: str, mountinfo: str) -> Path:
    proc = tmp_path / "self"
    proc.mkdir()
    (proc / "cgroup").write_text(membership)
    (proc / "mountinfo").write_text("24 1 8:1 / / rw - ext4 /dev/root rw\n" + mountinfo)
    return proc


def group(directory: Path, **files: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in {"cgroup.procs": "", **files}.items():
        (directory / name.replace("__", ".")).write_text(content + "\n")
    return directory


def test_v2_limits_are_the_smallest_of_all_parent_groups(tmp_path: Path) -> None:
    mount = group(tmp_path / "cgroup")
    group(mount / "pod", cpu__max="150000 100000", memory__max="1000")
    own = group(mount / "pod/container", cpu__max="max 100000", memory__max="max", memory__events="oom 3\noom_kill 2")
    (own / "memory.stat").write_text("anon 5\nworkingset_refault_anon 4\nworkingset_refault_file 3\n")
    proc = process(tmp_path, "0::/pod/container\n", V2_MOUNT.format(root="/", point=mount))
    found = cgroup.find("cpu", proc)
    assert found == cgroup.ControlGroup(own, 2)
    assert cgroup.cpu_quota(found) == 1.5
    assert cgroup.memory_limit(found) == 1000
    assert cgroup.out_of_memory_kills(found) == 2
    assert cgroup.refaulted_bytes(found) == 3 * PAGE


def test_v1_limits_are_in_the_hierarchy_of_their_controller(tmp_path: Path) -> None:
    cpu = group(tmp_path / "cpu,cpuacct")
    memory = group(tmp_path / "memory", memory__limit_in_bytes="9223372036854771712")
    group(cpu / "pod", cpu__cfs_quota_us="200000", cpu__cfs_period_us="100000")
    pod = group(memory / "pod", memory__limit_in_bytes="5000", memory__oom_control="under_oom 0\noom_kill 7")
    (pod / "memory.stat").write_text("cache 9\nworkingset_refault 6\ntotal_workingset_refault 8\n")
    proc = process(
        tmp_path,
        "4:memory:/pod\n3:cpu,cpuacct:/pod\n0::/\n",
        V1_MOUNT.format(root="/", point=cpu, controllers="cpu,cpuacct")
        + V1_MOUNT.format(root="/", point=memory, controllers="memory"),
    )
    assert cgroup.cpu_quota(cgroup.find("cpu", proc)) == 2.0
    assert cgroup.memory_limit(cgroup.find("memory", proc)) == 5000
    assert cgroup.out_of_memory_kills(cgroup.find("memory", proc)) == 7
    assert cgroup.refaulted_bytes(cgroup.find("memory", proc)) == 6 * PAGE


def test_in_a_container_the_mount_is_the_group_itself(tmp_path: Path) -> None:
    mount = group(tmp_path / "memory", memory__limit_in_bytes="5000")
    membership = "4:memory:/kubepods/pod1/container2\n"
    mountinfo = V1_MOUNT.format(root="/kubepods/pod1/container2", point=mount, controllers="memory")
    assert cgroup.find("memory", process(tmp_path, membership, mountinfo)) == cgroup.ControlGroup(mount, 1)


@pytest.mark.parametrize(("membership", "mountinfo"), [("", ""), ("0::/\n", ""), ("4:memory:/x\n", "")])
def test_without_control_groups_there_are_no_limits(tmp_path: Path, membership: str, mountinfo: str) -> None:
    found = cgroup.find("cpu", process(tmp_path, membership, mountinfo))
    assert found is None
    assert cgroup.cpu_quota(found) is None
    assert cgroup.memory_limit(found) is None
    assert cgroup.out_of_memory_kills(found) is None
    assert cgroup.refaulted_bytes(found) is None


def test_unlimited_groups_have_no_limit(tmp_path: Path) -> None:
    own = group(tmp_path / "cpu", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    assert cgroup.cpu_quota(cgroup.ControlGroup(own, 1)) is None
    assert cgroup.cpu_quota(cgroup.ControlGroup(group(tmp_path / "root"), 2)) is None
