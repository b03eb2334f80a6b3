#!/usr/bin/env python3
"""Prepares a release, and prints what changed in one.

    release.py prepare VERSION   sets the version everywhere, and dates the changelog's Unreleased part
    release.py notes VERSION     prints that version's part of the changelog
"""

import datetime
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHANGELOG = ROOT / ".github/CHANGELOG.md"
UNRELEASED = "## [Unreleased]\n"
VERSIONS = {
    "Cargo.toml": r'(?<=\[workspace\.package\]\nversion = ")[^"]*',
    "collector/python/pyproject.toml": r'(?<=\nversion = ")[^"]*',
    "collector/python/vramscope/__init__.py": r'(?<=\n__version__ = ")[^"]*',
}
"""Each file with a version, and what finds it there."""


def prepare(version):
    """Sets the version. Nothing is written if a file is not as expected."""
    if not re.fullmatch(r"\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?", version):
        sys.exit(f"{version} is no version such as 1.2.3 or 1.2.3-rc.1.")
    changes = CHANGELOG.read_text(encoding="utf-8")
    if f"## [{version}]" in changes:
        sys.exit(f"The changelog has {version} already.")
    written = {CHANGELOG: changes.replace(UNRELEASED, f"{UNRELEASED}\n## [{version}] - {datetime.date.today()}\n", 1)}
    if written[CHANGELOG] == changes:
        sys.exit("The changelog has no part Unreleased.")
    for name, pattern in VERSIONS.items():
        text, count = re.subn(pattern, version, (ROOT / name).read_text(encoding="utf-8"))
        if count != 1:
            sys.exit(f"{name} has {count} versions instead of one.")
        written[ROOT / name] = text
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")
    subprocess.run(["cargo", "update", "--quiet", "--workspace"], cwd=ROOT, check=True)
    print(f"Prepared. Read the changes, then:\n  git commit -am 'chore: release {version}' && git tag v{version} && git push --follow-tags")


def notes(version):
    """Prints a version's part of the changelog, without its heading."""
    changes = CHANGELOG.read_text(encoding="utf-8")
    part = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)", changes, re.MULTILINE | re.DOTALL)
    if part is None:
        sys.exit(f"The changelog has no part {version}.")
    print(part[1].strip())


if __name__ == "__main__":
    commands = {"prepare": prepare, "notes": notes}
    if len(sys.argv) != 3 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](sys.argv[2])
