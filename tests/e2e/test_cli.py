# SPDX-License-Identifier: MIT
"""The command line as people and scripts meet it: usage, output, pipes, colour, completions, pages.
What each command prints is in the golden tests; here is what must hold for all of them. Live commands
are in test_cli_live.py, those over records in test_cli_records.py."""
import os
import pty
import re
import shutil
import signal
import subprocess

import pytest

DATA = {  # a line of each command that prints data, on any machine
    "why": ["why"], "report": ["report"], "runs": ["runs"], "metrics": ["metrics"], "causes": ["causes"],
    "doctor": ["doctor"], "top": ["top", "--once"], "sql": ["sql", "SELECT * FROM run"],
}
MISUSE = {
    "run": [["--hz"], ["--hz", "fast", "true"], ["--budgett", "1%", "true"], []],
    "attach": [[], ["1", "2"], ["--for", "x", "1"]],
    "demo": [["x"], ["--seconds", "soon"], ["--seconds", "0"]],
    "why": [["a", "b"], ["--for", "-1"], ["--nope"]],
    "report": [["a", "b"], ["--for", "1y"]],
    "compare": [[], ["a"], ["a", "b", "c"], ["--nope", "a", "b"]],
    "top": [["a", "b"], ["--count", "0"], ["--every", "never"], ["--once", "--plain"]],
    "serve": [["x"], ["--port", "70000"], ["--port", "http"], ["--listen", "example.com"], ["--listen", ""]],
    "runs": [["x"], ["--max-size", "lots"]],
    "rm": [[], ["-x", "a"]],
    "sql": [[], ["a", "b", "c"]],
    "export": [["--to", "xls"], [], ["a", "b", "--to", "csv"]],
    "merge": [[], ["a"], ["--nope", "a", "b"]],
    "agent": [["x"], ["--listen", "nowhere:port"], ["--nope"]],
    "fleet": [["x"], [], ["--since", "long", "--prometheus", "http://127.0.0.1:1"], ["--nope"]],
    "doctor": [["x"], ["--capture"], ["--capture", "a", "--json"]],
    "smi": [["--nope"], ["-lms"]],
    "metrics": [["a", "b"]],
    "causes": [["a", "b"]],
    "help": [["a", "b"], ["nope"]],
    "completion": [[], ["tcsh"], ["bash", "zsh"]],
}


def commands(tree):
    """All but those only Spotter itself starts."""
    return [name for name in re.findall(r"&(\w+)_command", (tree / "src/cli/main.c").read_text())
            if "\n\t.hidden = true" not in (tree / f"src/cli/cmd_{name}.c").read_text()]


# ---- usage

def test_every_command_is_misused_here(tree):
    assert set(MISUSE) == set(commands(tree))


@pytest.mark.parametrize("words", [[c, *w] for c, lines in MISUSE.items() for w in lines], ids=" ".join)
def test_wrong_usage(spotter, words):
    done = spotter(*words)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("spotter: ")
    assert "usage: spotter " + words[0] in done.err
    assert not spotter.dir.exists()


def test_words_of_the_user_cannot_move_the_cursor(spotter):
    for words in (["\x1b[2Jx"], ["why", "--\x1b[2J"], ["why", "\x1b]0;x\x07"], ["metrics", "\x9b1m"],
                  ["top", "--root", "\x1b[2J"]):
        done = spotter(*words)
        assert done.code in (1, 2)
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.out + done.err), words


def test_exit_status_of_failures(spotter):
    for words in (["why", "no-such-run"], ["report", "no-such-run"], ["rm", "no-such-run"], ["top", "no-such-run"],
                  ["sql", "no-such-run", "SELECT 1"], ["export", "no-such-run", "--to", "csv"], ["why"],
                  ["metrics", "no.such"], ["causes", "no_such"], ["why", "4194399"], ["top", "4194399"],
                  ["why", "/dev/null"], ["why", "/"], ["compare", "no-such-run", "last"], ["compare", "/dev/null", "/"], ["sql", "/etc/passwd", "SELECT 1"]):
        done = spotter(*words)
        assert done.code == 1, words
        assert done.out == "" and done.err.startswith("spotter: "), words


# ---- data and words

@pytest.mark.parametrize("command", DATA)
def test_json_is_json(run, command):
    data = run.json(*DATA[command])
    if command != "sql":
        assert data["schema"].startswith("spotter.")


@pytest.mark.parametrize("command", DATA)
def test_data_on_stdout_words_on_stderr(run, command):
    done = run(*DATA[command], check=True)
    assert done.out.endswith("\n") and "\x1b" not in done.out
    assert all(line and not line.startswith("spotter: cannot") for line in done.err.splitlines())


@pytest.mark.parametrize("command", [*DATA, "help", "export"])
def test_full_disk(run, command):
    line = DATA.get(command) or {"help": ["help"], "export": ["export", "--to", "csv"]}[command]
    with open("/dev/full", "w") as full:
        done = subprocess.run([run.binary, *line], stdout=full, stderr=subprocess.PIPE, text=True, env=run.env,
                              timeout=60)
    assert done.returncode == 1
    assert "cannot write to standard output: no space left on device" in done.stderr


def test_closed_stdout(spotter):
    done = subprocess.run(["sh", "-c", f"{spotter.binary} metrics >&-"], stderr=subprocess.PIPE, text=True,
                          env=spotter.env, timeout=30)
    assert done.returncode == 1 and "cannot write to standard output" in done.stderr


@pytest.mark.parametrize("disposition", [signal.SIG_DFL, signal.SIG_IGN])
def test_reader_that_goes_away(run, disposition):
    """Quiet, and ended by SIGPIPE whatever it was set to: a shell shows nothing either way."""
    def before():
        signal.signal(signal.SIGPIPE, disposition)
    for line in (["metrics"], ["export", "--to", "csv"], ["top", "--every", "0.1s"], ["sql", "SELECT * FROM samples"]):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([run.binary, *line], stdout=write, stderr=subprocess.PIPE, text=True, env=run.env,
                              restore_signals=False, preexec_fn=before, timeout=30)
        os.close(write)
        assert done.returncode == -signal.SIGPIPE, line
        assert done.stderr == "", line


# ---- colour

def on_a_terminal(spotter, *words, **env):
    """Standard output (and error) of a command that runs on a terminal of its own."""
    master, slave = pty.openpty()
    e = dict(spotter.env, TERM="xterm")
    for name in ("NO_COLOR", "CLICOLOR_FORCE", "FORCE_COLOR"):
        e.pop(name, None)
    child = subprocess.Popen([spotter.binary, *words], stdin=slave, stdout=slave, stderr=slave, env=e | env)
    os.close(slave)
    text = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        text += part
    os.close(master)
    child.wait(30)
    return text.decode(errors="replace")


def test_colour_on_a_terminal(spotter):
    assert "\x1b[" in on_a_terminal(spotter, "metrics", "load")
    assert "\x1b[" not in on_a_terminal(spotter, "metrics", "load", NO_COLOR="1")
    assert "\x1b[" not in on_a_terminal(spotter, "metrics", "load", TERM="dumb")
    assert "\x1b[" not in on_a_terminal(spotter, "metrics", "--color=never", "load")
    assert "\x1b[" not in on_a_terminal(spotter, "--color", "never", "metrics", "load")
    assert "\x1b[" in on_a_terminal(spotter, "metrics", "--color=always", "load", NO_COLOR="1")
    assert "\x1b[" in on_a_terminal(spotter, "no-such-command")
    assert "\x1b[" not in on_a_terminal(spotter, "no-such-command", NO_COLOR="1")


def test_colour_in_a_pipe(spotter):
    spotter.env.pop("NO_COLOR")
    assert "\x1b[" not in spotter("metrics", "load").out
    spotter.env["CLICOLOR_FORCE"] = "1"
    assert "\x1b[" in spotter("metrics", "load").out
    spotter.env["NO_COLOR"] = "1"
    assert "\x1b[" not in spotter("metrics", "load").out


# ---- pages and completions

def words_of(text):
    return re.sub(r"\s+", " ", text.replace("\u2010", "-"))


def test_man_says_what_help_says(spotter, tree):
    if not shutil.which("man"):
        pytest.skip("no man")
    for name in commands(tree):
        roff = spotter("help", "--man", name, check=True).out
        page = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-"], input=roff, text=True,
                              capture_output=True, timeout=30,
                              env=os.environ | {"MANWIDTH": "500", "LC_ALL": "C.UTF-8", "MANPAGER": "cat"})
        assert page.returncode == 0 and page.stderr == "", name
        man, text = words_of(page.stdout), spotter(name, "--help", check=True).out
        assert words_of(text.splitlines()[0].split(" - ", 1)[1]) in man
        for row in re.split(r"\n(?=  -\w,|      --)", text.split("\nOptions\n")[1]):
            names = re.findall(r"--[a-z][a-z-]*", row)[:1]
            assert names and names[0] in man, (name, row)
            told = words_of(re.sub(r"^\s*(-\w, )?\s*--\S+( [A-Z]+)?\s", "", row)).strip()
            assert told in man, (name, told)
        examples = re.findall(r"^  (spotter .+?)(?:   .*)?$", text.split("\nUsage\n")[0], re.M)
        for line in examples:
            assert words_of(line) in man, (name, line)


BASH = r"""
PATH=%s:$PATH
source <(spotter completion bash) || exit 1
complete -p spotter >/dev/null || exit 1
try() { COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=(); _spotter; echo "${COMPREPLY[*]}"; }
try spotter ""
try spotter wh
try spotter why --
try spotter export --to ""
try spotter export --to = cs
try spotter why --color = al
try spotter metrics psi.io.
try spotter completion ""
try spotter sql short
try spotter top --root /de
try spotter run -- basenam
"""


def test_bash_completes(run, tree, build):
    done = subprocess.run(["bash", "-c", BASH % build], capture_output=True, text=True, env=run.env, timeout=60)
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert set(lines[0].split()) == set(commands(tree)) | {"--help", "--version"}
    assert lines[1:] == ["why", "--for --from --to --facts --json --color --help",
                         "csv parquet jsonl tensorboard perfetto speedscope collapsed openmetrics", "csv", "always", "psi.io.some psi.io.full", "bash zsh fish", "short", "/dev", lines[-1]]
    assert "basename" in lines[-1]


def test_completing_runs_nothing(spotter, build, tmp_path):
    """bash expands the words it is given: a name must not become a command."""
    mark = tmp_path / "mark"
    spotter("run", "--quiet", "--name", f"$(>{mark})`>{mark}`", "--", "true", check=True)
    code = BASH.split("try spotter")[0] % build + 'try spotter why ""'
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, env=spotter.env, timeout=30,
                          cwd=tmp_path)
    assert done.returncode == 0 and "last" in done.stdout
    assert not mark.exists()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_take_theirs(spotter, shell, tmp_path):
    if not shutil.which(shell):
        pytest.skip(f"no {shell}")
    script = tmp_path / "script"
    script.write_text(spotter("completion", shell, check=True).out)
    done = subprocess.run([shell, "-n", script], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and done.stderr == ""


def test_fish_completes(spotter, build):
    if not shutil.which("fish"):
        pytest.skip("no fish")
    code = "source (spotter completion fish | psub)\n" + "\n".join(
        f"echo '#'; complete -C 'spotter {line}'"
        for line in ("wh", "why --js", "export --to ", "metrics psi.io.", "help wh"))
    done = subprocess.run(["fish", "-c", code], capture_output=True, text=True, timeout=30,
                          env=spotter.env | {"PATH": f"{build}:{os.environ['PATH']}"})
    assert done.stderr == ""
    words = [[line.split("\t")[0] for line in part.split("\n") if line] for part in done.stdout.split("#\n")[1:]]
    assert words == [["why"], ["--json"], ["collapsed", "csv", "jsonl", "openmetrics", "parquet", "perfetto", "speedscope", "tensorboard"],
                     ["psi.io.full", "psi.io.some"], ["why"]]


def test_completion_lists_never_fail(spotter):
    assert spotter("completion", "--list", "runs", check=True).out == "last\n"
    assert "cpu.user\n" in spotter("completion", "--list", "metrics", check=True).out
    assert "cpu_quota\n" in spotter("completion", "--list", "causes", check=True).out
