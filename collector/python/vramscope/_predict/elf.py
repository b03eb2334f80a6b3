"""Reads the dynamic symbols of shared libraries, and writes libraries whose functions return a number (ELF, 64 bits, little-endian)."""

import dataclasses
import mmap
import struct

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
PROGRAM = struct.Struct("<IIQQQQQQ")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
DYNAMIC = struct.Struct("<QQ")

IDENT = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
# Types of files, segments, sections and dynamic entries.
SHARED = 3
LOAD, DYNAMIC_SEGMENT, STACK = 1, 2, 0x6474E551
STRINGS_SECTION, DYNAMIC_SECTION, SYMBOLS_SECTION = 3, 6, 11
NEEDED, HASH, STRINGS, SYMBOLS, STRINGS_SIZE, SYMBOL_SIZE, SONAME, RUNPATH = 1, 4, 5, 6, 10, 11, 14, 29
WEAK, GLOBAL_FUNCTION = 2, 0x12
READ, WRITE, EXECUTE = 4, 2, 1
PAGE = 1 << 16
"""The largest page of the machines below."""

MACHINES = {"x86_64": 62, "aarch64": 183}
"""The machines that libraries are written for, by Python's name, with ELF's number."""


@dataclasses.dataclass
class Library:
    """What a library asks for and what it has."""

    needed: list
    undefined: set
    defined: set


def read(path):
    """Returns the symbols of the library at `path`. Raises `ValueError` for anything that is no such library."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:6] != IDENT[:6]:
            raise ValueError(f"{path} is not a 64-bit little-endian ELF library")
        header = HEADER.unpack_from(data)
        offset, size, count = header[6], header[11], header[12]
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


def write(path, machine, soname, needed=(), functions=()):
    """Writes a library for `machine`, one of `MACHINES`. `needed` are the libraries that it loads, from its own folder first.
    `functions` are pairs: a name, and the number from 0 to 65,535 that the function returns whatever its arguments are."""
    strings, places = bytearray(b"\0"), {}

    def text(name):
        if name not in places:
            places[name] = len(strings)
            strings.extend(name.encode() + b"\0")
        return places[name]

    code, starts = bytearray(), {}
    for number in sorted({number for _, number in functions}):
        starts[number] = len(code)
        code += _returning(machine, number)
    symbols = [SYMBOL.pack(0, 0, 0, 0, 0, 0)]
    # The code comes first in memory, after the headers.
    code_at = HEADER.size + 4 * PROGRAM.size
    for name, number in functions:
        # A section's number other than 0 says that it is defined here.
        symbols.append(SYMBOL.pack(text(name), GLOBAL_FUNCTION, 0, 1, code_at + starts[number], 0))
    soname_at, needed_at, path_at = text(soname), [text(name) for name in needed], text("$ORIGIN")
    hashes = _hashes(name for name, _ in functions)
    symbols_at = -(-(code_at + len(code)) // 8) * 8
    hashes_at = symbols_at + SYMBOL.size * len(symbols)
    strings_at = hashes_at + len(hashes)
    end = strings_at + len(strings)
    # The loader writes to this part.
    dynamic_at = -(-end // PAGE) * PAGE
    entries = [(NEEDED, at) for at in needed_at]
    entries += [(SONAME, soname_at), (RUNPATH, path_at), (HASH, hashes_at), (STRINGS, strings_at), (SYMBOLS, symbols_at)]
    entries += [(STRINGS_SIZE, len(strings)), (SYMBOL_SIZE, SYMBOL.size), (0, 0)]
    dynamic = b"".join(DYNAMIC.pack(*entry) for entry in entries)
    size = len(dynamic)
    # The loader needs no sections; `read` and other tools do. None has a name, but a linker wants a table where it would be.
    sections = [
        (0,) * 10,
        (0, SYMBOLS_SECTION, 2, symbols_at, symbols_at, SYMBOL.size * len(symbols), 2, 1, 8, SYMBOL.size),
        (0, STRINGS_SECTION, 2, strings_at, strings_at, len(strings), 0, 0, 1, 0),
        (0, DYNAMIC_SECTION, 3, dynamic_at, dynamic_at, size, 2, 0, 8, DYNAMIC.size),
    ]
    sections_at = dynamic_at + size
    programs = [
        (LOAD, READ | EXECUTE, 0, 0, 0, end, end, PAGE),
        (LOAD, READ | WRITE, dynamic_at, dynamic_at, dynamic_at, size, size, PAGE),
        (DYNAMIC_SEGMENT, READ | WRITE, dynamic_at, dynamic_at, dynamic_at, size, size, 8),
        (STACK, READ | WRITE, 0, 0, 0, 0, 0, 16),
    ]
    header = HEADER.pack(
        IDENT, SHARED, MACHINES[machine], 1, 0, HEADER.size, sections_at, 0,
        HEADER.size, PROGRAM.size, len(programs), SECTION.size, len(sections), 2,
    )  # fmt: skip
    with open(path, "wb") as file:
        file.write(header + b"".join(PROGRAM.pack(*program) for program in programs) + bytes(code))
        for at, part in ((symbols_at, b"".join(symbols)), (hashes_at, hashes), (strings_at, strings), (dynamic_at, dynamic)):
            file.seek(at)
            file.write(part)
        file.write(b"".join(SECTION.pack(*section) for section in sections))


def _returning(machine, number):
    """Returns the code of a function that returns a number."""
    if machine == "x86_64":
        return b"\xb8" + struct.pack("<I", number) + b"\xc3\x90\x90"  # mov eax, number; ret
    return struct.pack("<II", 0x52800000 | number << 5, 0xD65F03C0)  # mov w0, number; ret


def _hashes(names):
    """Returns the table in which the loader finds symbols by name (System V's)."""
    names = list(names)
    count = max(1, len(names))
    first, following = [0] * count, [0] * (len(names) + 1)
    for number, name in enumerate(names, 1):
        bucket = _hash(name) % count
        following[number], first[bucket] = first[bucket], number
    return struct.pack(f"<II{count}I{len(following)}I", count, len(following), *first, *following)


def _hash(name):
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        value = (value ^ (value & 0xF0000000) >> 24) & 0x0FFFFFFF
    return value
