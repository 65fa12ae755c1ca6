# SPDX-License-Identifier: MIT
"""What runs is a copy below the data folder: any user can read it, a build going on does not disturb it, and records
name the same files wherever the tree is.

    kit/bin/spotter, libspotter.so, refuse   kit/python/spotter   kit/zoo/*.py   kit/sim/lib*.so.1
    kit/sim/site-packages/vgpu               a library, as that of a real device is"""
import filecmp
import os
import shutil
from pathlib import Path


def parts(tree, build):
    """(source, place in the kit) of every file."""
    for name in ("spotter", "libspotter.so", "tests/programs/refuse"):
        yield build / name, Path("bin") / Path(name).name
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        yield build / "sim" / name, Path("sim") / name
    for folder, place in (("python/spotter", "python/spotter"), ("zoo/programs", "zoo"), ("sim/python/vgpu", "sim/site-packages/vgpu")):
        for file in sorted((tree / folder).rglob("*.py")):
            yield file, Path(place) / file.relative_to(tree / folder)


def make(tree, build, top):
    """Brings the kit up to date, file by file, so that what runs from it is not disturbed. Returns its folder."""
    kit = Path(top) / "kit"
    for source, place in parts(tree, build):
        target = kit / place
        if not source.exists() or target.exists() and filecmp.cmp(source, target):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.{os.getpid()}")
        shutil.copy2(source, part)
        os.replace(part, target)
    return kit
