"""Find in git the commit that first wrote the present bounds of each row of the ledger, and write `bounds.yaml`.

Run `python -m accelbench.cli.bounds` in a checkout, after the bounds are committed.
"""

import io
import subprocess
import tarfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from accelbench.claims import bounds, ledger

HEAD = "# Written by `python -m accelbench.cli.bounds`: the commit that first wrote the present bounds of each row.\n"


def main() -> None:
    """Write bounds.yaml next to the ledger."""
    directory = ledger.directory().resolve()
    text = yaml.safe_dump(find_records(directory), sort_keys=False, default_flow_style=None, width=120)
    (directory / bounds.BOUNDS).write_text(HEAD + text, encoding="utf-8")


def find_records(directory: Path) -> list[dict[str, object]]:
    """Return a record for each row: the digest of its bounds, and the commit since which this digest is unchanged.

    `directory` is the ledger's, in a git checkout. Rows without bounds, and rows whose bounds are not committed, have
    no record.
    """
    log = _git(directory, "log", "--format=%H %cI", "--", ".").decode()
    commits = [line.split() for line in log.splitlines()]  # newest first
    present = _digests(directory, commits[0][0])
    records: dict[int, dict[str, object]] = {}
    unchanged_rows = set(present)
    for commit, time in commits:
        digests = _digests(directory, commit)
        unchanged_rows = {row for row in unchanged_rows if digests.get(row) == present[row]}
        for row in unchanged_rows:  # older commits replace the records of newer ones
            records[row] = {"row": row, "digest": present[row], "commit": commit[:12], "written": time}
    return [records[row] for row in sorted(records)]


def _digests(directory: Path, commit: str) -> dict[int, str]:
    """Return the digest of each row's bounds at the commit; rows without bounds are left out."""
    files = _files(directory, commit)
    digests = {}
    rows = _parse(files.get(ledger.LEDGER, "")) or []  # no rows before the ledger was written
    for row in map(_with_present_names, rows):
        names = row.get("manifests", ())
        # At an old commit, a manifest may be missing, and a row may have no hardware.
        has_manifests = bool(names) and all(name in files for name in names)
        is_decidable = row.get("kind", "claim") in ledger.DECIDABLE_KINDS
        if has_manifests and is_decidable and "hardware" in row:
            digests[row["row"]] = bounds.digest(row, [_parse(files[name]) for name in names])
    return digests


def _with_present_names(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the ledger, in which fields that had other names before have their present names."""
    renamed = dict(row)
    if "manifest" in renamed:
        renamed["manifests"] = [renamed.pop("manifest")]
    if "trainings" in renamed:
        renamed["trainings"] = [dict(training) for training in renamed["trainings"]]
        for training in renamed["trainings"]:
            if training.get("atLeastHalf"):  # now written as `claims: direction`
                del training["atLeastHalf"]
                training["claims"] = "direction"
    return renamed


def _files(directory: Path, commit: str) -> Mapping[str, str]:
    """Return the text of each YAML file that was in the directory at the commit, by name."""
    with tarfile.open(fileobj=io.BytesIO(_git(directory, "archive", commit, "."))) as archive:
        members = [member for member in archive.getmembers() if member.isfile() and member.name.endswith(".yaml")]
        texts = {member.name: archive.extractfile(member) for member in members}
        return {name: file.read().decode() for name, file in texts.items() if file}


@cache
def _parse(text: str) -> Any:
    """Parse YAML; the cache helps because most files are the same in many commits."""
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe


def _git(directory: Path, *arguments: str) -> bytes:
    """Run git in the directory, and return its standard output."""
    return subprocess.run(["git", *arguments], cwd=directory, capture_output=True, check=True).stdout


if __name__ == "__main__":
    main()
