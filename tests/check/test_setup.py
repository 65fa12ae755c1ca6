# SPDX-License-Identifier: MIT
"""tools/setup on machines that lack things: PATH is a folder of stand-ins, apt-get among them, which
notes what it was asked for and "installs" by putting a program there."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
PROGRAMS = {"gcc": "cc", "meson": "meson", "ninja-build": "ninja", "pkg-config": "pkg-config"}

APT = """#!/bin/sh
echo "$DEBIAN_FRONTEND apt-get $*" >> "$LOG"
case "$1" in update) touch "$APT_LISTS/x_Packages"; exit 0 ;; esac
[ -z "${APT_FAILS:-}" ] || { [ -e "$APT_LISTS/x_Packages" ] || exit 100; }
shift 3
for package; do
	[ "$package" != "${APT_LOSES:-}" ] || continue
	case "$package" in
	gcc) name=cc ;; ninja-build) name=ninja ;; *) name=$package ;;
	esac
	printf '#!/bin/sh\\nexit 0\\n' > "$BIN/$name"
	chmod +x "$BIN/$name"
done
"""


class Machine:
    def __init__(self, tmp_path, uid=0, with_sudo=True, with_apt=True, has=()):
        self.bin, self.log, self.lists = tmp_path / "bin", tmp_path / "log", tmp_path / "lists"
        self.bin.mkdir()
        self.lists.mkdir()
        for name in ("sh", "env", "find", "head", "touch", "chmod", "printf"):
            for folder in ("/usr/bin", "/bin"):
                if os.path.exists(f"{folder}/{name}") and not (self.bin / name).exists():
                    (self.bin / name).symlink_to(f"{folder}/{name}")
        self.program("id", f"echo {uid}")
        if with_sudo:
            self.program("sudo", 'echo "sudo $*" >> "$LOG"; exec "$@"')
        if with_apt:
            (self.bin / "apt-get").write_text(APT)
            (self.bin / "apt-get").chmod(0o755)
        for name in has:
            self.program(name, "exit 0")
        self.python = tmp_path / "python"  # a Python without modules
        self.python.write_text("#!/bin/sh\nexit 1\n")
        self.python.chmod(0o755)

    def program(self, name, body):
        (self.bin / name).write_text(f"#!/bin/sh\n{body}\n")
        (self.bin / name).chmod(0o755)

    def setup(self, *groups, **env):
        done = subprocess.run(["/bin/sh", TREE / "tools/setup", *groups], capture_output=True, text=True,
                              timeout=20, env={"PATH": str(self.bin), "LOG": str(self.log),
                                               "BIN": str(self.bin), "APT_LISTS": str(self.lists),
                                               "PYTHON": str(self.python)} | env)
        return done.returncode, done.stderr, self.log.read_text() if self.log.exists() else ""


def test_nothing_missing_says_nothing(tmp_path):
    m = Machine(tmp_path, has=PROGRAMS.values())
    assert m.setup("build") == (0, "", "")
    assert m.setup("build", SETUP="0") == (0, "", "")


def test_setup_0_says_what_is_missing_and_installs_nothing(tmp_path):
    m = Machine(tmp_path, has=["cc", "pkg-config", "ninja"])
    code, err, log = m.setup("build", SETUP="0")
    assert code == 1 and log == ""
    assert "missing: meson\n" in err
    assert "SETUP=0 forbids" in err
    assert "to install it: apt-get install -y --no-install-recommends meson\n" in err


def test_setup_0_names_sudo_for_an_ordinary_user(tmp_path):
    code, err, log = Machine(tmp_path, uid=1000).setup("build", SETUP="0")
    assert code == 1 and log == ""
    assert "sudo apt-get install -y --no-install-recommends gcc libc6-dev meson ninja-build pkg-config " \
           "libsqlite3-dev libzstd-dev libncurses-dev libjansson-dev libmicrohttpd-dev" in err


def test_check_is_what_plain_make_says(tmp_path):
    code, err, log = Machine(tmp_path, has=["cc", "pkg-config", "ninja"]).setup("build", SETUP="check")
    assert code == 1 and log == "" and "forbids" not in err and "missing: meson\n" in err


def test_fresh_machine_as_root(tmp_path):
    m = Machine(tmp_path)
    code, err, log = m.setup("build")
    assert code == 0, err
    lines = log.splitlines()
    assert lines[0] == "noninteractive apt-get update"
    assert lines[1].startswith("noninteractive apt-get install -y --no-install-recommends gcc libc6-dev meson")
    assert "+ env DEBIAN_FRONTEND=noninteractive apt-get install" in err  # says the line it runs
    assert m.setup("build")[2] == log  # a second time there is nothing to do


def test_known_lists_are_not_fetched_again(tmp_path):
    m = Machine(tmp_path)
    (m.lists / "some_Packages").touch()
    code, err, log = m.setup("build")
    assert code == 0, err
    assert "update" not in log


def test_stale_lists_are_fetched_once_and_tried_again(tmp_path):
    m = Machine(tmp_path)
    (m.lists / "old_Packages").touch()
    code, err, log = m.setup("build", APT_FAILS="1")
    assert code == 0, err
    assert [line.split()[2] for line in log.splitlines()] == ["install", "update", "install"]


def test_ordinary_user_uses_sudo(tmp_path):
    m = Machine(tmp_path, uid=1000)
    code, err, log = m.setup("build")
    assert code == 0, err
    assert "sudo env DEBIAN_FRONTEND=noninteractive apt-get install" in log


def test_ordinary_user_without_sudo_is_told_what_to_ask_for(tmp_path):
    code, err, log = Machine(tmp_path, uid=1000, with_sudo=False).setup("build")
    assert code == 1 and log == ""
    assert "there is no sudo: ask for: apt-get install -y" in err


def test_no_apt_get(tmp_path):
    code, err, log = Machine(tmp_path, with_apt=False).setup("build")
    assert code == 1 and log == ""
    assert "there is no apt-get here" in err


def test_install_that_did_not_help(tmp_path):
    code, err, _ = Machine(tmp_path).setup("build", APT_LOSES="meson")
    assert code == 1
    assert err.endswith("still missing after installing: meson\n")


def test_test_group_names_python_modules(tmp_path):
    code, err, _ = Machine(tmp_path, has=PROGRAMS.values()).setup("build", "test", SETUP="0")
    assert code == 1
    assert "python3-pytest python3-psutil" in err


def test_unknown_group(tmp_path):
    assert Machine(tmp_path).setup("everything")[0] == 2


@pytest.mark.skipif(subprocess.run([TREE / "tools/setup", "build", "test"],
                                   env=os.environ | {"SETUP": "0"}).returncode != 0,
                    reason="something is missing here")
def test_costs_nothing_when_all_is_there():
    best = min(cpu_of_a_check() for _ in range(5))
    assert best < 0.05, f"{best * 1000:.0f} ms"


def cpu_of_a_check():
    before = os.times()
    subprocess.run([TREE / "tools/setup", "build", "test"], check=True)
    after = os.times()
    return (after.children_user - before.children_user) + (after.children_system - before.children_system)


def test_playwright_comes_from_npm_and_may_be_missing(tmp_path):
    m = Machine(tmp_path, has=["chromium", "node"])
    m.python.write_text("#!/bin/sh\nexit 0\n")
    m.program("npm", 'echo "npm $*" >> "$LOG"; exit "${NPM_FAILS:-0}"')
    place = tmp_path / "build"
    code, err, log = m.setup("browser", BUILD=str(place), NPM_FAILS="1")
    assert code == 0 and "tests in a browser will be skipped" in err
    assert log == f"npm install --silent --no-audit --no-fund --fetch-retries=0 --fetch-timeout=20000 --prefix {place}/npm playwright-core@1.61 axe-core@4\n"
    m.log.unlink()
    assert m.setup("browser", BUILD=str(place), SETUP="0") == (0, "", "")
    for package in ("playwright-core", "axe-core"):
        (place / "npm/node_modules" / package).mkdir(parents=True)
    assert m.setup("browser", BUILD=str(place)) == (0, "", "")


def test_uplot_comes_from_npm_and_never_stops_a_build(tmp_path):
    m = Machine(tmp_path)
    for name in ("mkdir", "rm"):
        (m.bin / name).symlink_to(f"/bin/{name}")
    place = tmp_path / "build"
    code, err, log = m.setup("web", BUILD=str(place))  # no npm at all
    assert code == 0 and log == "" and "a picture instead of charts" in err
    assert (place / "npm/no-uplot").exists()
    m.program("npm", 'echo "npm $*" >> "$LOG"; exit "${NPM_FAILS:-0}"')
    assets = place / "src/web/report_assets.c"
    assets.parent.mkdir(parents=True)
    assets.touch()
    code, err, log = m.setup("web", BUILD=str(place), NPM_FAILS="1")  # no network
    assert code == 0 and "a picture instead of charts" in err and assets.exists()
    m.log.unlink()
    assert m.setup("web", BUILD=str(place), SETUP="0") == (0, "", "")
    code, err, log = m.setup("web", BUILD=str(place))
    assert code == 0 and log.endswith(f"--prefix {place}/npm uplot@1.6.32\n")
    assert not assets.exists()  # to be made again, with charts
    (place / "npm/node_modules/uplot").mkdir(parents=True)
    m.log.unlink()
    assert m.setup("web", BUILD=str(place)) == (0, "", "")


def test_pages_are_tested_where_a_browser_is_there_already(tmp_path):
    m = Machine(tmp_path, has=["chromium"])
    m.program("npm", 'echo "npm $*" >> "$LOG"')
    place = tmp_path / "build"
    assert m.setup("pages", BUILD=str(place)) == (0, "", "")  # no node: nothing is installed for it
    m.program("node", "exit 0")
    code, _, log = m.setup("pages", BUILD=str(place))
    assert code == 0 and log.endswith("playwright-core@1.61 axe-core@4\n")


# -- engines to test against: unpacked, not installed

FETCH = """#!/bin/sh
echo "apt-get $*" >> "$LOG"
[ "${APT_FAILS:-0}" = 0 ] || exit 100
case " $* " in *' download '*)
	: > prometheus_2_all.deb
	: > victoria-metrics_1_all.deb ;;
esac
"""
UNPACK = """echo "dpkg-deb $*" >> "$LOG"
case "$2" in prometheus_*) names="prometheus promtool" ;; *) names=victoria-metrics ;; esac
made=$BIN/made
mkdir -p "$made/usr/bin"
for name in $names; do echo "#!/bin/sh" > "$made/usr/bin/$name"; chmod +x "$made/usr/bin/$name"; done
tar -cf - -C "$made" ./usr
"""


@pytest.fixture
def bare(tmp_path):
    """Everything of the group test but the engines."""
    m = Machine(tmp_path, has=["clang-format", "ip", "man", "openssl", "ps", "sqlite3", "tmux", "setpriv", "valgrind", "pkg-config"])
    for name in ("mkdir", "rm", "tar", "cat"):
        (m.bin / name).symlink_to(shutil.which(name))
    m.python.write_text("#!/bin/sh\nexit 0\n")
    (m.bin / "apt-get").write_text(FETCH)
    m.program("dpkg-deb", UNPACK)
    return m


def test_engines_are_unpacked_and_not_installed(bare, tmp_path):
    place = tmp_path / "build/engines"
    code, err, log = bare.setup("test", BUILD=str(tmp_path / "build"))
    assert code == 0, err
    assert "install" not in log and "download prometheus victoria-metrics" in log
    assert {p.name for p in (place / "usr/bin").iterdir()} == {"prometheus", "promtool", "victoria-metrics"}
    assert not list(place.glob("*.deb")) and os.access(place / "usr/bin/promtool", os.X_OK)
    assert f"+ (cd {place}; apt-get" in err  # says what it runs
    assert bare.setup("test", BUILD=str(tmp_path / "build"))[2] == log  # a second time there is nothing to do


def test_engines_of_the_system_will_do(bare, tmp_path):
    for name in ("prometheus", "promtool", "victoria-metrics"):
        bare.program(name, "exit 0")
    assert bare.setup("test", BUILD=str(tmp_path / "build")) == (0, "", "")
    assert not (tmp_path / "build").exists()


@pytest.mark.parametrize("forbidden", ["0", "check"])
def test_no_engines_where_nothing_may_be_installed(bare, tmp_path, forbidden):
    assert bare.setup("test", BUILD=str(tmp_path / "build"), SETUP=forbidden) == (0, "", "")
    assert not (tmp_path / "build").exists()


def test_without_a_network_there_are_no_engines_and_that_is_said_once(bare, tmp_path):
    code, err, log = bare.setup("test", BUILD=str(tmp_path / "build"), APT_FAILS="1")
    assert code == 0 and "tests with real engines will be skipped" in err
    assert [line.split()[-1] for line in log.splitlines()] == ["victoria-metrics", "update"]
    assert bare.setup("test", BUILD=str(tmp_path / "build")) == (0, "", log)  # until make setup takes the note away
    (tmp_path / "build/engines/none").unlink()
    assert bare.setup("test", BUILD=str(tmp_path / "build"))[0] == 0
    assert (tmp_path / "build/engines/usr/bin/victoria-metrics").exists()
