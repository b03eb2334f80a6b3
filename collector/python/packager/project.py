"""What ``pyproject.toml`` says of the package, as metadata (PEP 621, core metadata 2.4)."""

import pathlib

HERE = pathlib.Path(__file__).resolve().parent.parent
"""The folder of ``pyproject.toml``."""
ROOT = HERE.parent.parent
"""The workspace's folder."""


class Project:
    """The table ``[project]``."""

    def __init__(self, table):
        self._table = table
        self.name, self.version = table["name"], table["version"]
        self.info = f"{self.name}-{self.version}.dist-info"

    def licences(self):
        """Returns the licence files, by name. They are the workspace's, which no pattern of ``pyproject.toml`` reaches."""
        return {path.name: path.read_bytes() for path in sorted(ROOT.glob("LICENSE-*"))}

    def metadata(self):
        """Returns the text of ``METADATA``."""
        table = self._table
        lines = ["Metadata-Version: 2.4", f"Name: {self.name}", f"Version: {self.version}"]
        lines += [f"Summary: {table['description']}", f"Keywords: {','.join(table['keywords'])}"]
        lines += [f"License-Expression: {table['license']}"]
        lines += [f"License-File: {name}" for name in self.licences()]
        lines += [f"Classifier: {classifier}" for classifier in table["classifiers"]]
        lines += [f"Project-URL: {label}, {url}" for label, url in table.get("urls", {}).items()]
        lines += [f"Requires-Python: {table['requires-python']}"]
        lines += [f"Requires-Dist: {requirement}" for requirement in table.get("dependencies", [])]
        lines += ["Description-Content-Type: text/markdown; charset=UTF-8", ""]
        return "\n".join(lines) + "\n" + (HERE / table["readme"]).read_text(encoding="utf-8")

    def _files(self, tag):
        text = f"Wheel-Version: 1.0\nGenerator: {self.name}-packager\nRoot-Is-Purelib: false\nTag: {tag}\n"
        files = {"METADATA": self.metadata(), "WHEEL": text}
        groups = self._table.get("entry-points", {})
        if groups:
            files["entry_points.txt"] = "".join(_group(name, entries) for name, entries in groups.items())
        files.update((f"licenses/{name}", data) for name, data in self.licences().items())
        return files

    def add_to(self, wheel, tag):
        """Adds the folder ``.dist-info`` to a wheel, and completes it."""
        for name, data in self._files(tag).items():
            wheel.add(f"{self.info}/{name}", data)
        wheel.close(f"{self.info}/RECORD")

    def write_to(self, folder, tag):
        """Writes the folder ``.dist-info`` without its record. Returns its name."""
        for name, data in self._files(tag).items():
            path = pathlib.Path(folder) / self.info / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data.encode() if isinstance(data, str) else data)
        return self.info


def _group(name, entries):
    """Returns a group of entry points as ``entry_points.txt`` has it."""
    return "".join([f"[{name}]\n", *(f"{key} = {value}\n" for key, value in entries.items()), "\n"])


def read():
    """Reads ``pyproject.toml``."""
    try:
        import tomllib
    except ModuleNotFoundError:
        import tomli as tomllib
    with open(HERE / "pyproject.toml", "rb") as file:
        return Project(tomllib.load(file)["project"])
