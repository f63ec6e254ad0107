#!/usr/bin/env python3
"""Fails when a C++ or CUDA source is not as clang-format would write it, and prints which.

    check_format.py ROOT

Looks at files that git tracks or would track. Exits with 77, which CTest counts as skipped, where
clang-format or git is missing.
"""

import pathlib
import shutil
import subprocess
import sys

SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
SKIPPED = 77


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    clang_format = shutil.which("clang-format-14") or shutil.which("clang-format")
    if clang_format is None or shutil.which("git") is None or not (root / ".git").exists():
        print("clang-format or git is missing: nothing checked")
        sys.exit(SKIPPED)
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True, text=True,
    ).stdout
    sources = sorted(path for path in set(listed.split("\0"))
                     if pathlib.Path(path).suffix in SUFFIXES and (root / path).exists())
    bad = [path for path in sources
           if subprocess.run([clang_format, "--dry-run", "-Werror", path], cwd=root,
                             capture_output=True).returncode != 0]
    print("\n".join(bad) if bad else f"{len(sources)} sources are formatted")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
