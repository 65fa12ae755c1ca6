#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/embed.py FILE OUT.c NAME HEADER: writes FILE as a C array, so that the program carries it along:

    const unsigned char NAME[] = { 35, 33, ... };
    const size_t NAME_size = 9724;

HEADER declares both."""
import sys
from pathlib import Path


def main():
    source, target, name, header = sys.argv[1:]
    data = Path(source).read_bytes()
    lines = [", ".join(map(str, data[at:at + 20])) + "," for at in range(0, len(data), 20)]
    Path(target).write_text(
        f"/* Made from {Path(source).name} by tools/embed.py. */\n#include \"{header}\"\n\n"
        f"const unsigned char {name}[] = {{\n\t" + "\n\t".join(lines) + "\n};\n"
        f"const size_t {name}_size = {len(data)};\n")


if __name__ == "__main__":
    main()
