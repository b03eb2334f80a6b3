"""Builds the wheel: the package, the library that cargo builds, and the .pth file that reads the variables.

This is a build backend of its own because it only has to put files into an archive. So building needs only cargo, and
installing needs only the wheel.
"""

import base64
import csv
import hashlib
import io
import os
import pathlib
import shutil
import subprocess
import sysconfig
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NAME, VERSION = "vramscope", "0.1.0"
LIBRARY = "libvramscope_pluggable.so"
METADATA = f"""Metadata-Version: 2.1
Name: {NAME}
Version: {VERSION}
Summary: Watch a training job's GPU memory live
License: MIT OR Apache-2.0
Requires-Python: >=3.9
"""
ENTRY_POINTS = f"""[pytest11]
{NAME} = {NAME}.integrations.pytest_plugin
"""


def _tag():
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"py3-none-{platform}"


def _library():
    """Returns the library's path: the one in VRAMSCOPE_LIBRARY, or the one that cargo builds."""
    given = os.environ.get("VRAMSCOPE_LIBRARY")
    if given:
        return pathlib.Path(given)
    subprocess.run([shutil.which("cargo") or "cargo", "build", "--release", "-p", "pluggable"], cwd=ROOT, check=True)
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "release" / LIBRARY


def _stripped(path):
    """Returns the library's bytes, without debugging symbols if `strip` is installed."""
    strip = shutil.which("strip")
    if strip is None:
        return path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / LIBRARY
        done = subprocess.run([strip, "--strip-unneeded", "-o", str(made), str(path)], check=False)
        return made.read_bytes() if done.returncode == 0 else path.read_bytes()


class _Wheel:
    """An archive with a record of its files."""

    def __init__(self, path):
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self._rows = []

    def add(self, name, data):
        if isinstance(data, str):
            data = data.encode()
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self._rows.append((name, "sha256=" + digest, len(data)))
        info = zipfile.ZipInfo(name, date_time=(2024, 1, 1, 0, 0, 0))
        info.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self._zip.writestr(info, data)

    def close(self, record):
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([*self._rows, (record, "", "")])
        self._zip.writestr(record, out.getvalue())
        self._zip.close()


def _finish(wheel, tag):
    info = f"{NAME}-{VERSION}.dist-info"
    wheel.add(f"{info}/METADATA", METADATA)
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: false\nTag: {tag}\n")
    wheel.add(f"{info}/entry_points.txt", ENTRY_POINTS)
    wheel.close(f"{info}/RECORD")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    tag = _tag()
    name = f"{NAME}-{VERSION}-{tag}.whl"
    wheel = _Wheel(pathlib.Path(wheel_directory) / name)
    for path in sorted((HERE / NAME).rglob("*")):
        if path.suffix in (".py", ".cpp", ".h"):
            wheel.add(path.relative_to(HERE).as_posix(), path.read_bytes())
    wheel.add(f"{NAME}/{LIBRARY}", _stripped(_library()))
    wheel.add(f"{NAME}.pth", (HERE / f"{NAME}.pth").read_bytes())
    _finish(wheel, tag)
    return name


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds a wheel that refers to the sources. The library is the one in cargo's folder."""
    tag = _tag()
    name = f"{NAME}-{VERSION}-{tag}.whl"
    wheel = _Wheel(pathlib.Path(wheel_directory) / name)
    wheel.add(f"_{NAME}_sources.pth", f"{HERE}\n")
    wheel.add(f"{NAME}.pth", (HERE / f"{NAME}.pth").read_bytes())
    _finish(wheel, tag)
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("there is no sdist; build the wheel in a checkout")
