"""Reads the dynamic symbols of shared libraries (ELF, 64 bits, little-endian)."""

import dataclasses
import mmap
import struct

HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
DYNAMIC = struct.Struct("<QQ")

# Types of sections and of dynamic entries.
DYNAMIC_SECTION, SYMBOLS_SECTION = 6, 11
NEEDED = 1
WEAK = 2


@dataclasses.dataclass
class Library:
    """What a library asks for and what it has."""

    needed: list
    undefined: set
    defined: set


def read(path):
    """The symbols of the library at `path`. Raises `ValueError` for anything that is no such library."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path} is not a 64-bit little-endian ELF library")
        header = HEADER.unpack_from(data)
        offset, size, count = header[5], header[10], header[11]
        sections = [SECTION.unpack_from(data, offset + i * size) for i in range(count)]
        library = Library([], set(), set())
        for kind, start, length, link in ((s[1], s[4], s[5], s[6]) for s in sections):
            if kind not in (DYNAMIC_SECTION, SYMBOLS_SECTION):
                continue
            names = sections[link][4]

            def name(at, names=names):
                return data[names + at : data.find(b"\0", names + at)].decode()

            if kind == DYNAMIC_SECTION:
                entries = DYNAMIC.iter_unpack(data[start : start + length])
                library.needed += [name(value) for tag, value in entries if tag == NEEDED]
                continue
            for at, info, _, section, _, _ in SYMBOL.iter_unpack(data[start : start + length]):
                if section:
                    library.defined.add(name(at))
                elif at and info >> 4 != WEAK:
                    library.undefined.add(name(at))
        return library
