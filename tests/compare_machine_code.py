#!/usr/bin/env python3
"""Says which CUDA kernels two states of the source compile to different machine code.

    compare_machine_code.py OLD_BUILD NEW_BUILD [--jobs N] [PATTERN ...]

Both are build folders that were configured with -DTESSERA_CUDA=ON for one architecture; nothing
needs to be built in them. Every .cu file of both (or those whose path contains a PATTERN) is
compiled as its build says, and kernels are matched by name, wherever they moved. Compares the bytes
of the kernels' code sections, so it needs no disassembler. Exit code 1 when anything differs.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import struct
import subprocess
import sys
import tempfile

# What nvcc puts in the name of a function without external linkage: it depends on file and path.
ANONYMOUS = re.compile(r"\d+_GLOBAL__N__[0-9a-f]{8}_\d+_\w+?_cu_[0-9a-f]{8}(_\d+)?")


def compile_commands(build, patterns):
    """Yields (file, command) for the code that is linked, not for builds that only try to compile."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if entry["file"].endswith(".cu") and "_oldest.dir" not in entry["command"]:
            if not patterns or any(pattern in entry["file"] for pattern in patterns):
                yield entry


def compile_to_cubin(entry, folder):
    words = shlex.split(entry["command"])
    words = words[next(i for i, word in enumerate(words) if word.endswith("nvcc")):]
    kept, skip = [], False
    for word in words:
        if skip or word in ("-c", "-o", "-x", "cu", "-MD", "-MT", "-MF"):
            skip = word in ("-o", "-MT", "-MF")
        elif word != entry["file"] and not word.startswith("-Werror"):
            kept.append(word)
    # -gencode asks for an archive of several codes; a cubin is one.
    command = " ".join(shlex.quote(word) for word in kept)
    command = re.sub(r"'?--generate-code=arch=compute_(\w+?),code=[^ ]*", r"-arch=sm_\1", command)
    output = pathlib.Path(folder) / (re.sub(r"\W", "_", entry["file"]) + ".cubin")
    subprocess.run(f"{command} -x cu -cubin -o {output} {shlex.quote(entry['file'])}", shell=True,
                   check=True, cwd=entry["directory"])
    return code_sections(output.read_bytes())


def code_sections(elf):
    """(kernel name, machine code) of every code section of a 64-bit ELF file."""
    table = struct.unpack_from("<Q", elf, 0x28)[0]
    count, names_index = struct.unpack_from("<HH", elf, 0x3C)
    sections = [struct.unpack_from("<IIQQQQ", elf, table + 64 * i) for i in range(count)]
    names = sections[names_index][4]
    for name_offset, _, _, _, offset, size in sections:
        begin = names + name_offset
        name = elf[begin:elf.index(b"\0", begin)].decode()
        if name.startswith(".text."):
            yield ANONYMOUS.sub("anonymous", name[len(".text."):]), elf[offset:offset + size]


def kernels(build, patterns, jobs):
    """Kernel name -> sorted machine codes: a template may be instantiated in several files."""
    found = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, \
         concurrent.futures.ThreadPoolExecutor(jobs) as executor:
        entries = list(compile_commands(build, patterns))
        for result in executor.map(lambda entry: list(compile_to_cubin(entry, folder)), entries):
            for name, code in result:
                found[name].append(code)
    return {name: sorted(codes) for name, codes in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("patterns", nargs="*")
    arguments = parser.parse_args()
    old, new = (kernels(build, arguments.patterns, arguments.jobs)
                for build in (arguments.old, arguments.new))
    different = [name for name in old if name in new and old[name] != new[name]]
    for title, names in [("only in the old", old.keys() - new.keys()),
                         ("only in the new", new.keys() - old.keys()), ("different", different)]:
        for name in sorted(names):
            print(f"{title}: {name}")
    print(f"{sum(old[name] == new.get(name) for name in old)} of {len(old)} kernels are the same")
    sys.exit(old != new)


if __name__ == "__main__":
    main()
