"""Container images without a container engine or a registry: files in, an OCI archive out.

The format is the OCI image layout, v1, in a tar file; containerd, buildah and kind all take it.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["archive_from_files"]

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
OCI = "application/vnd.oci.image"


def archive_from_files(
    archive: Path, *, name: str, files: Mapping[str, Path | bytes], entrypoint: Sequence[str], user: str = "65532:65532"
) -> Path:
    """Write an image of one layer that holds these files, executable all, and return the archive's path.

    Args:
        archive: where to write it.
        name: what pods call it, such as localhost/pod:test. A tag other than `latest` is not pulled by default.
        files: absolute paths inside the image, and their content, as bytes or as a file to copy.
        entrypoint: the command a container runs when its pod names none.
        user: who runs it, as uid:gid; nobody in particular by default, so that `runAsNonRoot` is content.
    """
    layer = _tar(files, mode=0o755)
    platform_fields = {"architecture": ARCHITECTURES.get(platform.machine(), platform.machine()), "os": "linux"}
    configuration = _json(
        {
            **platform_fields,
            "config": {"Entrypoint": list(entrypoint), "User": user, "WorkingDir": "/"},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{OCI}.manifest.v1+json",
            "config": _descriptor(f"{OCI}.config.v1+json", configuration),
            "layers": [_descriptor(f"{OCI}.layer.v1.tar", layer)],
        }
    )
    # Who imports it reads one or the other annotation for the image's name.
    names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
    entry = {**_descriptor(f"{OCI}.manifest.v1+json", manifest), "annotations": names, "platform": platform_fields}
    blobs = {f"/blobs/sha256/{hashlib.sha256(blob).hexdigest()}": blob for blob in (layer, configuration, manifest)}
    index = _json({"schemaVersion": 2, "mediaType": f"{OCI}.index.v1+json", "manifests": [entry]})
    layout = {"/oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "/index.json": index, **blobs}
    archive.write_bytes(_tar(layout, mode=0o644))
    return archive


def _tar(files: Mapping[str, Path | bytes], *, mode: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, content in sorted(files.items()):
            data = content.read_bytes() if isinstance(content, Path) else content
            # Nothing of the machine goes in, neither owner nor time: the same files make the same image.
            member = tarfile.TarInfo(path.lstrip("/"))
            member.size, member.mode = len(data), mode
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _descriptor(media_type: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}
