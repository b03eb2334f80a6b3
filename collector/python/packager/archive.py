"""A wheel as an archive with a record of its files (PEP 427)."""

import base64
import csv
import hashlib
import io
import zipfile

DATE = (2024, 1, 1, 0, 0, 0)
"""The date of all files, so that the same files make the same archive."""


class Wheel:
    """A wheel that is being written."""

    def __init__(self, path):
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self._rows = []

    def add(self, name, data, is_program=False):
        if isinstance(data, str):
            data = data.encode()
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self._rows.append((name, "sha256=" + digest, len(data)))
        self._write(name, data, 0o755 if is_program or name.endswith(".so") else 0o644)

    def close(self, record):
        """Adds the record, whose name is `record`, and completes the archive."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([*self._rows, (record, "", "")])
        self._write(record, out.getvalue(), 0o644)
        self._zip.close()

    def _write(self, name, data, mode):
        info = zipfile.ZipInfo(name, date_time=DATE)
        # A regular file: installers copy the mode of a program only then.
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self._zip.writestr(info, data)
