# SPDX-License-Identifier: MIT
"""Wheels of Spotter, as PEP 517 asks for them: the package, libspotter.so inside it, and the program.

    pip install .                                   builds in build-wheel
    pip wheel . --config-settings build=build       uses what is built there
    python3 packaging/python/wheel_backend.py [--build DIR] FOLDER

One wheel serves every CPython from 3.8 on: nothing in it is an extension module. The program and the library are
this machine's, so the name carries its glibc. SQLite and zstd stay what the program is linked with.
"""
import base64
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
PACKAGE = TREE / "python" / "spotter"


def project():
    """{field: text} of pyproject.toml; tomllib came with 3.11 only."""
    text = (TREE / "pyproject.toml").read_text(encoding="utf-8")
    return dict(re.findall(r'^([\w-]+) = "(.*)"$', text, re.M), classifiers=re.findall(r'^  "(.*)",$', text, re.M))


def stem():
    return "spotter-" + project()["version"]


def tag():
    """py3-none-manylinux_2_36_x86_64: pip refuses it where glibc is older than the one linked with."""
    machine = platform.machine()
    libc = re.fullmatch(r"glibc (\d+)\.(\d+).*", (os.confstr("CS_GNU_LIBC_VERSION") or "") if
                        "CS_GNU_LIBC_VERSION" in os.confstr_names else "")
    return "py3-none-manylinux_%s_%s_%s" % (libc[1], libc[2], machine) if libc else "py3-none-linux_" + machine


def metadata():
    p = project()
    lines = ["Metadata-Version: 2.1", "Name: spotter", "Version: " + p["version"], "Summary: " + p["description"],
             "License: MIT", "Requires-Python: " + p["requires-python"],
             *("Classifier: " + c for c in p["classifiers"]), "Description-Content-Type: text/markdown"]
    return "\n".join(lines) + "\n\n" + (TREE / "README.md").read_text(encoding="utf-8")


def information():
    """{name: bytes} of the files in .dist-info."""
    wheel = "Wheel-Version: 1.0\nGenerator: spotter\nRoot-Is-Purelib: false\nTag: %s\n" % tag()
    return {"METADATA": metadata().encode(), "WHEEL": wheel.encode(), "LICENSE": (TREE / "LICENSE").read_bytes()}


def build(folder):
    """Builds the program and the library there; a folder that is not set up becomes one."""
    if not (folder / "build.ninja").exists():
        subprocess.run(["meson", "setup", folder, TREE, "-Dtests=disabled"], check=True, stdout=sys.stderr)
    library = "libspotter.so." + project()["version"]
    subprocess.run(["ninja", "-C", folder, "-j", os.environ.get("JOBS") or str(os.cpu_count() or 2), "spotter", library],
                   check=True, stdout=sys.stderr)


def stripped(file):
    """The bytes without debug information, which is most of them; as they are without strip."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, file.name)
        shutil.copyfile(file, copy)
        if shutil.which("strip"):
            subprocess.run(["strip", "--strip-unneeded", copy], check=True)
        return copy.read_bytes()


def contents(folder):
    """(name in the wheel, bytes, mode) of all but RECORD."""
    for file in sorted(PACKAGE.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".so":
            yield "spotter/" + file.relative_to(PACKAGE).as_posix(), file.read_bytes(), 0o644
    yield "spotter/libspotter.so", stripped((folder / "libspotter.so").resolve()), 0o755
    yield stem() + ".data/scripts/spotter", stripped(folder / "spotter"), 0o755
    for name, data in information().items():
        yield stem() + ".dist-info/" + name, data, 0o644


def write(directory, folder):
    """The wheel of what is built in `folder`; its name. The same bytes whenever it is written."""
    name = "%s-%s.whl" % (stem(), tag())
    record = []
    with zipfile.ZipFile(Path(directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(path, data, mode):
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
        for path, data, mode in contents(folder):
            add(path, data, mode)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append("%s,sha256=%s,%d" % (path, digest, len(data)))
        path = stem() + ".dist-info/RECORD"
        add(path, ("\n".join([*record, path + ",,"]) + "\n").encode(), 0o644)
    return name


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    folder = Path(metadata_directory, stem() + ".dist-info")
    folder.mkdir(parents=True)
    for name, data in information().items():
        (folder / name).write_bytes(data)
    return folder.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    folder = Path((config_settings or {}).get("build") or TREE / "build-wheel").absolute()
    build(folder)
    return write(wheel_directory, folder)


def build_sdist(sdist_directory, config_settings=None):
    sys.path.insert(0, str(TREE / "tools"))
    import style
    name = stem() + ".tar.gz"
    with tempfile.TemporaryDirectory() as folder, tarfile.open(Path(sdist_directory, name), "w:gz") as archive:
        Path(folder, "PKG-INFO").write_text(metadata(), encoding="utf-8")
        archive.add(Path(folder, "PKG-INFO"), stem() + "/PKG-INFO")
        for file in style.all_files(TREE):
            archive.add(TREE / file, stem() + "/" + file, recursive=False)
    return name


if __name__ == "__main__":
    words = sys.argv[1:]
    settings = {"build": words[1]} if words[:1] == ["--build"] else None
    target = Path(words[2 if settings else 0])
    target.mkdir(parents=True, exist_ok=True)
    print(target / build_wheel(target, settings))
