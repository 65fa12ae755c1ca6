# SPDX-License-Identifier: MIT
"""Starting a program without being felt: how it ends, what it is given, pipes, words, cost."""
from launching import *  # the probe and what it takes to watch it


# -- how it ended ---------------------------------------------------------------------------------

def test_every_exit_code(probe):
    for code in range(256):
        assert probe.run("sh", "-c", f"exit {code}").returncode == code


@pytest.mark.parametrize("sig", ["TERM", "KILL", "SEGV", "ABRT", "INT", "HUP", "QUIT", "PIPE", "USR1",
                                 "ALRM", "RTMIN"])
def test_every_way_to_be_killed(probe, sig):
    done = probe.run("sh", "-c", f"ulimit -c 0; kill -{sig} $$")
    assert done.returncode == -getattr(signal, f"SIG{sig}")
    assert done.stderr == b""


def test_core_dump_is_the_programs_alone(probe):
    if Path("/proc/sys/kernel/core_pattern").read_text()[0] == "|":
        pytest.skip("cores go to a program here")
    done = probe.run("sh", "-c", "ulimit -c unlimited; kill -SEGV $$")
    assert done.returncode == -signal.SIGSEGV
    cores = list(probe.folder.glob("core*"))
    assert len(cores) <= 1
    assert not cores or b"launch_probe" not in cores[0].read_bytes()[:65536]


def test_not_found(probe):
    done = probe.run("no-such-command")
    assert done.returncode == 127
    assert done.stderr == b"launch_probe: cannot run 'no-such-command': no such command\n"
    done = probe.run("./no-such-file")
    assert (done.returncode, done.stderr) == (
        127, b"launch_probe: cannot run './no-such-file': no such file\n")


def test_found_in_this_folder_only(probe):
    probe.write("train", "#!/bin/sh\nexit 5\n", 0o755)
    probe.write("traim.py", "print(1)\n")
    done = probe.run("train")
    assert done.returncode == 127 and b"did you mean './train'?" in done.stderr
    assert probe.run("./train").returncode == 5
    done = probe.run("traim.py")
    assert done.returncode == 127 and re.search(rb"did you mean 'python3? traim.py'\?", done.stderr)


def test_not_executable(probe):
    probe.write("train.py", "print(1)\n")
    probe.write("data.sh", "echo 1\n")
    done = probe.run("./train.py")
    assert done.returncode == 126
    assert b"cannot run './train.py': it is not executable" in done.stderr
    assert re.search(rb"run 'python3? ./train.py', or 'chmod \+x ./train.py'", done.stderr)
    done = probe.run("./data.sh")
    assert done.returncode == 126 and b"run 'chmod +x ./data.sh'" in done.stderr
    done = probe.run("/tmp")
    assert done.returncode == 126 and b"it is a folder" in done.stderr


def test_exec_format(probe):
    """Text without "#!" is the shell's, as execvp has it; something else is nobody's."""
    probe.write("plain", "echo \"$0 $1\"; exit 9\n", 0o755)
    done = probe.run("./plain", "x")
    assert (done.returncode, done.stdout) == (9, b"./plain x\n")
    path = probe.path("alien")
    path.write_bytes(b"\x7fELF\0\0\0\0 not of this machine")
    path.chmod(0o755)
    done = probe.run("./alien")
    assert done.returncode == 126 and b"not a program for this machine" in done.stderr
    probe.write("lost.py", "#!/no/such/python\n", 0o755)
    done = probe.run("./lost.py")
    assert done.returncode == 127
    assert b"its interpreter '/no/such/python' does not exist" in done.stderr


def test_strange_names_are_harmless(probe):
    done = probe.run("no\033[2Jsuch\ncommand")
    assert done.returncode == 127 and b"\033" not in done.stderr
    assert probe.run("").returncode == 127
    done = probe.run("python train.py")
    assert done.returncode == 127 and b"leave out the quotes" in done.stderr


def test_own_failure(probe):
    """No descriptors to be had: that is Spotter's failure, not the command's."""
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))
    done = probe.run("true", preexec_fn=limit)
    assert done.returncode == 125
    assert done.stderr == b"launch_probe: cannot start the program: too many open files\n"


def test_no_more_processes(probe):
    if not probe.prefix:
        pytest.skip("root has no limit on processes")
    done = probe.run("prlimit", "--nproc=1:1", probe.binary, "--", "true", bare=True)
    assert done.returncode == 125 and b"cannot start the program" in done.stderr


# -- what it is given ------------------------------------------------------------------------------

def test_environment_byte_for_byte(probe):
    env = dict(probe.env, EMPTY="", WITH_NEWLINE="a\nb", UTF="\u00fc", ODD="=x=")
    bare = probe.run("env", "-0", env=env, bare=True).stdout
    assert probe.run("env", "-0", env=env).stdout == bare
    assert b"WITH_NEWLINE=a\nb\0" in bare


def test_environment_added(probe):
    env = dict(probe.env, PYTHONPATH="/old", PYTHONPATHX="/keep")
    options = ["--env", "PYTHONPATH=/new:/old", "--env", "SPOTTER_RING=x"]
    bare = probe.run("env", "-0", env=env, bare=True).stdout.split(b"\0")
    seen = probe.run("env", "-0", env=env, options=options).stdout.split(b"\0")
    bare.remove(b"PYTHONPATH=/old")
    assert sorted(seen) == sorted([*bare, b"PYTHONPATH=/new:/old", b"SPOTTER_RING=x"])


def test_words_are_kept(probe):
    show = "import sys; print([b for b in open('/proc/self/cmdline', 'rb').read().split(b'\\0')])"
    args = ["exec", "-a", "my own name"]
    odd = ["", "a b", "--", "-x", "'", "\u00fc\n"]
    done = probe.run("bash", "-c", 'exec -a "my name" "$0" "$@"', probe.binary, "--", PYTHON, "-c",
                     show, *odd, bare=True)
    assert done.stdout == probe.run(PYTHON, "-c", show, *odd, bare=True).stdout
    done = probe.run("bash", "-c", 'echo "$0|$1|$2"', *args)
    assert done.stdout == b"exec|-a|my own name\n"


def descriptors(text):
    """Without the one that lists them."""
    lines = [line for line in text.decode().splitlines() if "/fd" not in line.split(" ", 1)[1]]
    return sorted(line for line in lines if line.split()[0].isdigit())


@pytest.mark.parametrize("closed", [(), (0,), (1,), (0, 1, 2), (2,)])
def test_descriptors_are_the_same(probe, closed):
    """No more, no fewer, the same numbers, also where some of 0, 1, 2 are closed."""
    extra = os.open("/dev/zero", os.O_RDONLY)
    r, w = os.pipe()
    os.set_inheritable(extra, True)
    out = probe.path("fds")
    show = f"exec find /proc/self/fd -fprintf {out} '%f %l\\n'"

    def close():
        for fd in closed:
            os.close(fd)
    try:
        seen = []
        for bare in (True, False):
            probe.run("sh", "-c", show, bare=bare, pass_fds=(extra, w), preexec_fn=close,
                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            seen.append(descriptors(out.read_bytes()))
        assert seen[0] == seen[1]
        assert f"{extra} /dev/zero" in seen[1]
    finally:
        for fd in (extra, r, w):
            os.close(fd)


FACTS = r'''
import ctypes, json, os, resource
libc = ctypes.CDLL(None)
def prctl(option):
    value = ctypes.c_int(-1)
    return libc.prctl(option, ctypes.byref(value), 0, 0, 0), value.value
status = dict(l.split(":\t", 1) for l in open("/proc/self/status").read().splitlines() if ":\t" in l)
print(json.dumps({
    "limits": open("/proc/self/limits").read(), "umask": status["Umask"], "cwd": os.getcwd(),
    "nice": os.getpriority(os.PRIO_PROCESS, 0), "pgid": os.getpgrp(), "sid": os.getsid(0),
    "oom": open("/proc/self/oom_score_adj").read(), "policy": os.sched_getscheduler(0),
    "cpus": sorted(os.sched_getaffinity(0)), "pdeathsig": prctl(2), "subreaper": prctl(37),
    "dumpable": libc.prctl(3, 0, 0, 0, 0), "securebits": libc.prctl(27, 0, 0, 0, 0),
    "timer_slack": libc.prctl(30, 0, 0, 0, 0),
    **{k: status[k] for k in ("SigBlk", "SigIgn", "SigCgt", "SigPnd", "ShdPnd", "NoNewPrivs",
                              "Seccomp", "CapEff", "CapInh", "CapAmb", "Groups", "Uid", "Gid")}}))
'''


def test_everything_else_is_the_same(probe):
    def before():
        os.setsid()
        os.umask(0o137)
        os.nice(3)
        resource.setrlimit(resource.RLIMIT_NOFILE, (77, 99))
        resource.setrlimit(resource.RLIMIT_CORE, (4096, 8192))
        resource.setrlimit(resource.RLIMIT_STACK, (4 << 20, resource.RLIM_INFINITY))
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        LIBC.prctl(29, 77777, 0, 0, 0)  # timer slack
    facts = [json.loads(probe.run(PYTHON, "-c", FACTS, bare=bare, preexec_fn=before,
                                  cwd=probe.folder).stdout) for bare in (True, False)]
    for f in facts:
        assert f.pop("pgid") == f.pop("sid")
    assert facts[0] == facts[1]


def test_same_group_and_session(probe):
    c = probe.counter()
    assert os.getpgid(c.p) == os.getpgid(c.r) == os.getpgid(c.s) == c.s
    assert os.getsid(c.p) == os.getsid(c.r) == os.getsid(c.s)
    finish(c)


def signals_of(probe, before, bare, wrap=()):
    """Sig* lines of a program that does nothing about signals itself."""
    argv = [*wrap, *(probe.argv("cat", "/proc/self/status") if not bare
                     else [*probe.prefix, "cat", "/proc/self/status"])]
    done = subprocess.run(argv, preexec_fn=before, env=probe.env, stdin=subprocess.DEVNULL,
                          capture_output=True, restore_signals=False, timeout=20)
    return re.findall(rb"(Sig(?:Blk|Ign|Cgt)):\s*(\w+)", done.stdout)


def block(mask):
    now = ctypes.c_uint64(mask)
    LIBC.syscall(SYS_RT_SIGPROCMASK, 2, ctypes.byref(now), None, 8)


@pytest.mark.parametrize("what", ["nothing", "ignored", "blocked", "all blocked", "nohup"])
def test_mask_and_dispositions_as_found(probe, what):
    if not SYS_RT_SIGPROCMASK:
        pytest.skip("system call number not known here")

    def before():
        if what == "ignored":  # SIGCHLD ignored would make statuses vanish
            for sig in (signal.SIGCHLD, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGPIPE,
                        signal.SIGTSTP, signal.SIGRTMAX):
                signal.signal(sig, signal.SIG_IGN)
        if what == "blocked":
            block(1 << (signal.SIGTERM - 1) | 1 << (signal.SIGCHLD - 1) | 1 << 31 | 1 << 40)
        if what == "all blocked":
            block(2**64 - 1)
    wrap = ["nohup"] if what == "nohup" else []
    bare = signals_of(probe, before, True, wrap)
    assert len(bare) == 3
    assert signals_of(probe, before, False, wrap) == bare
    if what == "ignored":
        assert int(bare[1][1], 16) & 1 << (signal.SIGCHLD - 1)
    if what == "nohup":
        assert int(bare[1][1], 16) & 1


def test_exit_code_with_sigchld_ignored(probe):
    def before():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    assert probe.run("sh", "-c", "exit 41", preexec_fn=before, restore_signals=False).returncode == 41


def test_pending_alarm_still_rings(probe):
    """alarm() outlives an exec, but not a fork: S has it and the program must get it."""
    began = time.monotonic()
    done = probe.run("sleep", "10", preexec_fn=lambda: signal.setitimer(signal.ITIMER_REAL, 0.3))
    assert done.returncode == -signal.SIGALRM
    assert time.monotonic() - began < 3


# -- pipes ------------------------------------------------------------------------------------------

def test_stdin_goes_through(probe):
    data = os.urandom(30 << 20)
    done = probe.run("cat", input=data)
    assert done.returncode == 0 and done.stdout == data


def test_end_of_output_comes_with_the_end_of_the_program(probe):
    """Though R lives on for a second after it."""
    began = time.monotonic()
    child = probe.start("echo", "hi", options=["--linger", "1s", "--patience", "0s"],
                        stderr=subprocess.STDOUT)
    assert read_to_end(child.stdout.fileno()) == b"hi\nlaunch_probe: recorder -110\n"
    assert time.monotonic() - began < 0.7
    assert child.wait(5) == 0


def test_output_closed_early_is_closed(probe):
    """S holds neither the output nor any other descriptor of the running program."""
    r, w = os.pipe()
    child = probe.start("bash", "-c", f"exec >&- {w}>&-; read x", pass_fds=[w], stdin=subprocess.PIPE)
    os.close(w)
    assert read_to_end(child.stdout.fileno()) == b""
    assert read_to_end(r) == b""
    assert child.poll() is None
    os.close(r)
    child.stdin.write(b"x\n")
    child.stdin.close()
    child.stdin = None
    assert child.wait(5) == 0


def test_reader_that_goes_away(probe):
    child = probe.start("yes")
    assert child.stdout.read(10) == b"y\n" * 5
    child.stdout.close()
    child.stdout = None
    assert child.wait(10) == -signal.SIGPIPE


# -- R's words ---------------------------------------------------------------------------------------

def test_words_come_after_the_program(probe):
    for early in ([], ["--early"]):
        done = probe.run("sh", "-c", "echo out; echo err >&2; exit 3", stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, options=["--say", "verdict\n", *early])
        assert (done.returncode, done.stdout) == (3, b"out\nerr\nverdict\n")


def test_many_words_are_cut(probe):
    for early in ([], ["--early"]):
        done = probe.run("true", options=["--say-bytes", "300000", *early])
        assert done.stderr == b"x" * 65536


def test_patience_ends(probe):
    began = time.monotonic()
    done = probe.run("sh", "-c", "exit 6", options=["--say", "said\n", "--linger", "1500ms",
                                                    "--patience", "200ms"])
    assert done.returncode == 6
    assert done.stderr == b"said\nlaunch_probe: recorder -110\n"
    assert 0.2 <= time.monotonic() - began < 1.2


def test_words_to_nobody(probe):
    """stderr is a pipe nobody reads any more: the status still counts."""
    child = probe.start("sh", "-c", "read x; exit 4", options=["--say", "words\n"],
                        stdin=subprocess.PIPE)
    family(child.pid)
    child.stderr.close()
    child.stderr = None
    child.stdin.close()
    child.stdin = None
    assert child.wait(5) == 4




# -- cost ---------------------------------------------------------------------------------------------

def test_start_is_fast(probe):
    """To the exec of the program, over a bare start: the budget of all of Spotter is 50 ms."""
    def start(bare):
        argv = ["/bin/date", "+%s%N"]
        began = time.time_ns()
        return int(probe.run(*argv, bare=bare).stdout) - began
    if SANITIZED:
        pytest.skip("a sanitizer's start takes longer")
    extra = min(start(False) for _ in range(15)) - min(start(True) for _ in range(15))
    assert extra < 10e6, f"{extra / 1e6:.2f} ms"


def test_s_sleeps(probe):
    """One thread, and no CPU time while the program runs."""
    c = probe.counter()
    def used():
        return sum(map(int, Path(f"/proc/{c.s}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))
    switches = re.compile(r"voluntary_ctxt_switches:\s*(\d+)")
    before = switches.search(Path(f"/proc/{c.s}/status").read_text()).group(1)
    time.sleep(0.5)
    status = Path(f"/proc/{c.s}/status").read_text()
    assert switches.search(status).group(1) == before
    assert re.search(r"Threads:\s*1\n", status) and used() <= 1
    finish(c)
