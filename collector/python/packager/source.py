"""The source distribution: the workspace as far as the package is built from it, so that it builds with cargo alone."""

import gzip
import io
import pathlib
import tarfile
import time

from . import archive, project

PARTS = ("Cargo.toml", "Cargo.lock", "LICENSE-APACHE", "LICENSE-MIT", "collector", "shared", "web")
"""What is in it, in the workspace's folder. The members that only tests need are left out."""
WITHOUT = ("__pycache__", "target", "dist", "node_modules")


def _pyproject():
    """Returns ``pyproject.toml`` for the root of the distribution, from where the paths are longer."""
    text = (project.HERE / "pyproject.toml").read_text(encoding="utf-8")
    inside = project.HERE.relative_to(project.ROOT).as_posix()
    for old, new in (('backend-path = ["."]', f'backend-path = ["{inside}"]'), ('readme = "', f'readme = "{inside}/')):
        if text.count(old) != 1:
            raise RuntimeError(f"pyproject.toml does not have {old!r} once")
        text = text.replace(old, new)
    return text


def _workspace(text):
    """Returns the workspace's ``Cargo.toml`` without the members that are not in the distribution."""
    start = text.index("members = [")
    end = text.index("]", start)
    members = [name.strip() for name in text[start + len("members = [") : end].split(",")]
    kept = [name for name in members if name and not name.strip('"').startswith("tests")]
    return text[:start] + "members = [" + ", ".join(kept) + text[end:]


def _files():
    """Yields the names and bytes of all files but ``PKG-INFO``, in order."""
    for part in PARTS:
        path = project.ROOT / part
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            inside = file.relative_to(project.ROOT)
            if file.is_file() and not set(inside.parts) & set(WITHOUT):
                data = file.read_bytes()
                yield inside.as_posix(), _workspace(data.decode()).encode() if part == "Cargo.toml" else data
    yield "pyproject.toml", _pyproject().encode()


def write(folder):
    """Writes the distribution. Returns its path."""
    about = project.read()
    base = f"{about.name}-{about.version}"
    path = pathlib.Path(folder) / f"{base}.tar.gz"
    date = time.mktime((*archive.DATE, 0, 0, 0))
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for name, data in [("PKG-INFO", about.metadata().encode()), *_files()]:
                info = tarfile.TarInfo(f"{base}/{name}")
                info.size, info.mtime, info.mode = len(data), date, 0o644
                tar.addfile(info, io.BytesIO(data))
    return path
