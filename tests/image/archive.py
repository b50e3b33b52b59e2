"""Read an OCI archive: an image's configuration and the files of its layers, without unpacking them."""

from __future__ import annotations

import json
import tarfile
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

import zstandard

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

__all__ = ["Image", "read_archive"]


@dataclass
class Image:
    """An image's configuration, and what it has beyond the layers of its base."""

    configuration: dict[str, Any]
    """Source: the OCI image specification's `config` object: User, Env, Entrypoint, Labels."""
    size_bytes: int = 0
    """Of all files beyond the base."""
    files: set[str] = field(default_factory=set)
    """Their paths, without the first slash."""
    loose: set[str] = field(default_factory=set)
    """Those that somebody other than root may change."""
    texts: dict[str, str] = field(default_factory=dict)
    """The content of those that were asked for."""


def read_archive(archive: Path, base: Collection[str], *, texts: Collection[str] = ()) -> Image:
    """Read an image; `base` has the uncompressed digests of its base's layers, `texts` the files to be read."""
    with tarfile.open(archive) as outer:

        def blob(digest: str) -> IO[bytes]:
            content = outer.extractfile(f"blobs/{digest.replace(':', '/')}")
            if content is None:
                raise ValueError(f"{archive.name} has no blob {digest}")
            return content

        index = json.load(outer.extractfile("index.json") or blob("index.json"))
        manifest = json.load(blob(index["manifests"][0]["digest"]))
        described = json.load(blob(manifest["config"]["digest"]))
        image = Image(described["config"])
        for layer, difference in zip(manifest["layers"], described["rootfs"]["diff_ids"], strict=True):
            if difference not in base:
                with tarfile.open(fileobj=_open_layer(layer["mediaType"], blob(layer["digest"])), mode="r|*") as inner:
                    _add_layer(image, inner, texts)
        return image


def _open_layer(media_type: str, content: IO[bytes]) -> IO[bytes]:
    """Return a layer as tarfile reads it: tarfile knows gzip, and zstd from Python 3.14 on."""
    return zstandard.ZstdDecompressor().stream_reader(content) if media_type.endswith("+zstd") else content


def _add_layer(image: Image, layer: tarfile.TarFile, texts: Collection[str]) -> None:
    for member in layer:
        path = member.name.removeprefix("./")
        image.files.add(path)
        image.size_bytes += member.size
        if not member.issym() and (member.mode & 0o002 or member.uid):
            image.loose.add(path)
        content = layer.extractfile(member) if path in texts else None
        if content is not None:
            image.texts[path] = content.read().decode()
