# SPDX-License-Identifier: MIT
"""Starting a program without being felt: signals, stops, deaths of S and R, orphans."""
from launching import *  # the probe and what it takes to watch it


# -- signals ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("sig", ["TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "CONT", "WINCH", "TSTP",
                                 "TTIN", "ALRM", "PIPE", "SEGV", "URG", "RTMIN", "RTMAX"])
def test_sent_to_s_reaches_the_program_once(probe, sig):
    number = getattr(signal, f"SIG{sig}")
    c = probe.counter()
    kill(c.s, number)
    assert settled(c.log, number) == 1
    kill(c.s, number)
    wait_for(lambda: len(got(c.log, number)) == 2)
    assert got(c.log) == [number] * 2
    finish(c)


@pytest.mark.parametrize("sig", ["TERM", "INT", "HUP", "USR1", "CONT", "RTMIN"])
def test_sent_to_the_group_reaches_the_program_once(probe, sig):
    number = getattr(signal, f"SIG{sig}")
    c = probe.counter()
    for n in (1, 2, 3):
        os.killpg(c.s, number)
        assert settled(c.log, number, n) == n
    kill(c.s, number)  # and one to S alone is not mistaken for one to the group
    assert settled(c.log, number, 4) == 4
    assert not gone(c.r)
    finish(c)


def test_sent_to_each_in_turn_reaches_the_program_once(probe):
    """As service managers and batch systems do it: every process of the job by its number."""
    c = probe.counter()
    for order in ((c.s, c.r, c.p), (c.p, c.r, c.s), (c.r, c.s, c.p)):
        before = len(got(c.log, signal.SIGTERM))
        for pid in order:
            kill(pid, signal.SIGTERM)
        wait_for(lambda: len(got(c.log, signal.SIGTERM)) > before)
        time.sleep(0.1)
        assert len(got(c.log, signal.SIGTERM)) == before + 1
    finish(c)


def test_late_to_r_is_forgotten(probe):
    """A signal that reached R alone must not make the next one to S look like the group's."""
    c = probe.counter()
    kill(c.r, signal.SIGTERM)
    time.sleep(0.8)
    kill(c.s, signal.SIGTERM)
    assert settled(c.log, signal.SIGTERM) == 1
    finish(c)


def test_sent_to_the_group_from_inside(probe):
    """`kill 0`, as shell scripts clean up."""
    done = probe.run("sh", "-c", "trap 'exit 8' TERM; kill 0; sleep 5", start_new_session=True)
    assert done.returncode == 8


def test_program_in_a_group_of_its_own(probe):
    """Without Spotter setpgid() would have changed nothing: the shell's group is its own."""
    c = probe.counter("setpgid")
    assert os.getpgid(c.p) == c.p
    os.killpg(c.s, signal.SIGINT)
    assert settled(c.log, signal.SIGINT) == 1
    finish(c)


def test_value_of_a_queued_signal(probe):
    c = probe.counter()
    subprocess.run(["/bin/kill", "-q", "4711", "-s", "USR1", str(c.s)], check=True)
    assert settled(c.log, signal.SIGUSR1) == 1
    assert re.search(rf"got {int(signal.SIGUSR1)} -1 \d+ 4711", c.log.read_text())
    finish(c)


def test_nested(probe):
    log = probe.path("log-nested")
    child = probe.start(probe.binary, "--", PYTHON, "-c", COUNTER, log)
    wait_for(lambda: log.exists() and "ready" in log.read_text())
    os.killpg(child.pid, signal.SIGTERM)
    assert settled(log, signal.SIGTERM) == 1
    kill(child.pid, signal.SIGTERM)
    assert settled(log, signal.SIGTERM, 2) == 2
    inner = family_of_nested(child.pid)
    kill(inner, signal.SIGKILL)
    assert child.wait(10) == -signal.SIGKILL


def family_of_nested(s):
    pid = s
    while children(pid):
        pid = children(pid)[0]
    return pid


def test_signals_at_the_very_start(probe):
    """Before, while and after the program is started: it dies of it or S does, never neither."""
    rng = random.Random(5)
    for _ in range(40):
        child = probe.start("sleep", "30", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.random() * 0.004)
        (os.killpg if rng.random() < 0.5 else kill)(child.pid, signal.SIGTERM)
        assert child.wait(10) == -signal.SIGTERM


def test_storm_of_signals(probe):
    c = probe.counter()
    for n in range(60):
        kill(c.s, signal.SIGRTMIN)
    wait_for(lambda: len(got(c.log, signal.SIGRTMIN)) == 60)
    finish(c)


# -- stop and go on -----------------------------------------------------------------------------------

def test_s_stops_and_goes_on_with_the_program(probe):
    c = probe.counter()
    for _ in range(3):
        kill(c.p, signal.SIGSTOP)
        wait_for(lambda: state(c.s) == "T" and state(c.p) == "T")
        kill(c.p, signal.SIGCONT)
        wait_for(lambda: state(c.s) == "S" and state(c.p) != "T")
    for _ in range(3):
        kill(c.p, signal.SIGSTOP)
        wait_for(lambda: state(c.s) == "T" and state(c.p) == "T")
        kill(c.s, signal.SIGCONT)  # only S is told
        wait_for(lambda: state(c.s) == "S" and state(c.p) != "T")
    finish(c)


@pytest.mark.parametrize("sig", ["TSTP", "TTIN", "TTOU"])
def test_group_stopped_and_only_s_told_to_go_on(probe, sig):
    """As by Ctrl-Z, and then `kill -CONT PID`. Not a session of its own: in one without a parent in
    it the kernel does not stop anybody."""
    child = probe.start("sleep", "30", start_new_session=False, process_group=0)
    r, p = family(child.pid)
    for _ in range(3):
        os.killpg(child.pid, getattr(signal, f"SIG{sig}"))
        wait_for(lambda: state(child.pid) == "T" and state(p) == "T")
        kill(child.pid, signal.SIGCONT)
        wait_for(lambda: state(child.pid) == "S" and state(p) == "S")
    kill(child.pid, signal.SIGTERM)
    assert child.wait(5) == -signal.SIGTERM


def test_stop_and_go_on_many_times(probe):
    """Fast, so that stops and continuations pass each other; at the end both run."""
    rng = random.Random(3)
    c = probe.counter()
    for _ in range(150):
        kill(c.p, signal.SIGSTOP)
        time.sleep(rng.random() * 0.001)
        kill(c.p, signal.SIGCONT)
        time.sleep(rng.random() * 0.001)
    wait_for(lambda: state(c.p) == "S" and state(c.s) == "S")
    time.sleep(0.05)
    assert state(c.s) == "S"
    finish(c)


def test_whole_group_stopped(probe):
    c = probe.counter()
    os.killpg(c.s, signal.SIGSTOP)
    wait_for(lambda: state(c.s) == state(c.r) == state(c.p) == "T")
    kill(c.s, signal.SIGCONT)
    wait_for(lambda: state(c.s) == "S" and state(c.r) == "S" and state(c.p) == "S")
    os.killpg(c.s, signal.SIGSTOP)
    wait_for(lambda: state(c.s) == state(c.r) == state(c.p) == "T")
    os.killpg(c.s, signal.SIGCONT)
    wait_for(lambda: state(c.s) == "S" and state(c.r) == "S" and state(c.p) == "S")
    finish(c)


def test_killed_while_stopped(probe):
    c = probe.counter()
    kill(c.p, signal.SIGSTOP)
    wait_for(lambda: state(c.s) == "T")
    finish(c)


# -- R dies, S dies -------------------------------------------------------------------------------------

def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


@pytest.mark.parametrize("life", ["0", "0.003", "0.02"])
def test_r_killed_at_any_moment(probe, life):
    """The program runs once and to its end, and its status comes back."""
    rng = random.Random(life)
    log = probe.path("ran")
    script = f"echo ran >>{log}; {'sleep ' + life + ';' if life != '0' else ''} exit 37"
    log.touch()
    log.chmod(0o666)
    killed = 0
    rounds = 50
    for _ in range(rounds):
        child = probe.start("sh", "-c", script, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
        # setpriv runs first where there is one: R is the first child there is
        while not (r := children(child.pid)) and child.poll() is None:
            pass
        spin(rng.random() * (0.003 + 1.3 * float(life)))
        if r:
            kill(r[0], signal.SIGKILL)
            killed += 1
        assert child.wait(10) == 37
    assert log.read_text() == "ran\n" * rounds
    assert killed > rounds // 2


def test_r_killed_before_it_started_the_program(probe):
    """At once, without a look: S then starts the program itself."""
    for _ in range(30):
        child = probe.start("sh", "-c", "exit 38", stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
        while not (r := children(child.pid)) and child.poll() is None:
            pass
        if r:
            kill(r[0], signal.SIGKILL)
        assert child.wait(10) == 38


def test_r_killed_while_the_program_runs(probe):
    c = probe.counter("stdin", stdin=subprocess.PIPE)
    kill(c.r, signal.SIGKILL)
    wait_for(lambda: c.p in children(c.s))
    kill(c.s, signal.SIGUSR1)
    assert settled(c.log, signal.SIGUSR1) == 1
    kill(c.p, signal.SIGSTOP)
    wait_for(lambda: state(c.s) == "T")
    kill(c.s, signal.SIGCONT)
    wait_for(lambda: state(c.s) == "S" and state(c.p) == "S")
    c.child.stdin.write(b"x")
    c.child.stdin.flush()
    assert c.child.wait(5) == 7
    assert read_to_end(c.child.stderr.fileno()) == b"launch_probe: recorder 9\n"


def test_r_crashes(probe):
    done = probe.run("sh", "-c", "sleep 0.2; exit 12", options=["--crash", "50ms", "--threads"])
    assert done.returncode == 12
    assert re.fullmatch(rb"launch_probe: recorder (6|134)\n", done.stderr)


def test_r_stopped(probe):
    """Somebody stops R: the status comes all the same, and R is woken to finish."""
    path = probe.path("report")
    child = probe.start("sh", "-c", "read x; exit 9", stdin=subprocess.PIPE,
                        options=["--report", path])
    r, _ = family(child.pid)
    wait_for(path.exists)
    kill(r, signal.SIGSTOP)
    wait_for(lambda: state(r) == "T")
    child.stdin.close()
    child.stdin = None
    assert child.wait(6) == 9
    wait_for(lambda: "finished" in path.read_text())


def test_r_deaf(probe):
    """R's main thread is stuck and never looks: S finds the status by itself."""
    child = probe.start("sh", "-c", "exit 10", options=["--deaf", "--patience", "100ms"])
    began = time.monotonic()
    r = wait_for(lambda: children(child.pid))[0]
    assert child.wait(6) == 10
    assert time.monotonic() - began < 3
    assert read_to_end(child.stderr.fileno()) == b"launch_probe: recorder -110\n"
    kill(r, signal.SIGKILL)


def test_s_killed(probe):
    """The program goes on, and R finishes its record."""
    path = probe.path("report")
    c = probe.counter("stdin", stdin=subprocess.PIPE, options=["--report", path, "--say", "unheard"])
    kill(c.s, signal.SIGKILL)
    assert c.child.wait(5) == -signal.SIGKILL
    time.sleep(0.1)
    assert state(c.p) == "S" and state(c.r) == "S" and got(c.log) == []
    kill(c.p, signal.SIGUSR1)
    assert settled(c.log, signal.SIGUSR1) == 1
    kill(c.p, signal.SIGTERM)
    c.child.stdin.write(b"x")
    c.child.stdin.flush()
    wait_for(lambda: "finished" in path.read_text())
    assert report(path)["status"] == 7 << 8
    wait_for(lambda: gone(c.r))


def test_killer_of_s_that_means_the_program(probe):
    """PR_SET_PDEATHSIG on S, as launchers set it: the program dies with their launcher."""
    if not shutil.which("setpriv"):
        pytest.skip("no setpriv")
    log = probe.path("log-death")
    inner = ["setpriv", "--pdeathsig", "KILL", str(probe.binary), "--", PYTHON, "-c", COUNTER,
             str(log)]
    parent = subprocess.Popen([*probe.prefix, PYTHON, "-c",
                               "import subprocess, sys; subprocess.Popen(sys.argv[1:]).wait()",
                               *inner], env=probe.env, start_new_session=True)
    probe.started.append(parent)
    wait_for(lambda: log.exists() and "ready" in log.read_text())
    parent.kill()
    parent.wait()
    wait_for(lambda: not probe.left_behind(), timeout=3)


# -- orphans ------------------------------------------------------------------------------------------

def test_returns_while_orphans_live(probe):
    path, pidfile = probe.path("report"), probe.path("orphan")
    began = time.monotonic()
    done = probe.run("sh", "-c", f"setsid sleep 60 >/dev/null 2>&1 & echo $! >{pidfile}; exit 3",
                     options=["--report", path])
    assert done.returncode == 3 and time.monotonic() - began < 5
    orphan = int(pidfile.read_text())
    assert not gone(orphan)
    assert report(path)["orphans_left"] == 1
    assert report(path)["ended_callback"] == 1
    wait_for(lambda: gone(report(path)["recorder"]))
    assert not gone(orphan)
    kill(orphan, signal.SIGKILL)


def test_wait_for_orphans(probe):
    path = probe.path("report")
    began = time.monotonic()
    done = probe.run("sh", "-c", "(setsid sh -c 'sleep 0.4; (sleep 0.3 &)' &) >/dev/null; exit 3",
                     options=["--wait", "--report", path, "--helper"])
    assert done.returncode == 3
    assert 0.7 <= time.monotonic() - began < 5
    assert report(path)["orphans_left"] == 0
    assert report(path)["helper"] == "alive"


def test_wait_for_orphans_with_r_dead(probe):
    child = probe.start("sh", "-c", "(sleep 0.6 &) >/dev/null 2>&1; read x; exit 3", options=["--wait"],
                        stdin=subprocess.PIPE)
    r, _ = family(child.pid)
    began = time.monotonic()
    time.sleep(0.1)
    kill(r, signal.SIGKILL)
    child.stdin.close()
    child.stdin = None
    assert child.wait(5) == 3
    assert time.monotonic() - began > 0.3


def test_waiting_can_be_left(probe):
    path = probe.path("report")
    child = probe.start("sh", "-c", "(sleep 61 &) >/dev/null 2>&1; exit 3",
                        options=["--wait", "--report", path])
    r = wait_for(lambda: children(child.pid))[0]
    wait_for(lambda: path.exists() and "ended_callback" in path.read_text())
    orphan = wait_for(lambda: children(r))[0]
    wait_for(lambda: b"sleep" in cmdline(orphan))
    time.sleep(0.1)
    assert child.poll() is None
    kill(child.pid, signal.SIGTERM)
    assert child.wait(5) == 3
    assert report(path)["orphans_left"] == 1
    kill(orphan, signal.SIGKILL)


def test_waiting_can_be_left_with_r_dead(probe):
    child = probe.start("sh", "-c", "(sleep 62 &) >/dev/null 2>&1; read x; exit 3", options=["--wait"],
                        stdin=subprocess.PIPE)
    r, p = family(child.pid)
    kill(r, signal.SIGKILL)
    orphan = wait_for(lambda: [c for c in children(child.pid) if cmdline(c) == b"sleep 62 "])[0]
    child.stdin.close()
    child.stdin = None
    wait_for(lambda: children(child.pid) == [orphan])
    time.sleep(0.1)
    assert child.poll() is None
    kill(child.pid, signal.SIGTERM)
    assert child.wait(5) == 3
    kill(orphan, signal.SIGKILL)


def test_zombies_do_not_pile_up(probe):
    """Orphans that end while the program runs are reaped by R, and their time is counted."""
    path = probe.path("report")
    burn = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"
    child = probe.start("sh", "-c", f"for n in 1 2 3 4 5 6; do (sh -c '{burn}' &); done; echo all;"
                        "read x", stdin=subprocess.PIPE, options=["--report", path])
    r, p = family(child.pid)
    assert child.stdout.readline() == b"all\n"
    wait_for(lambda: children(r) == [p])
    child.stdin.close()
    child.stdin = None
    assert child.wait(5) == 1  # read saw the end of its input
    values = report(path)
    assert values["cpu_us"] > 20000 and values["cpu_us"] == values["reaped_us"]


def test_usage_is_that_of_the_tree(probe):
    path = probe.path("report")
    burn = ("import resource,subprocess,sys,time\n"
            "if len(sys.argv) < 2: subprocess.run([sys.executable, '-c', open('/proc/self/cmdline')"
            ".read().split('\\0')[2], 'x'])\n"
            "while time.process_time() < .15: pass\n"
            "u = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]\n"
            "if len(sys.argv) < 2: print(sum(x.ru_utime + x.ru_stime for x in u))\n")
    done = probe.run(PYTHON, "-c", burn, options=["--report", path])
    assert done.returncode == 0
    own = float(done.stdout)
    assert own > 0.3
    assert own <= report(path)["cpu_us"] / 1e6 < own + 0.1
    assert report(path)["maxrss_kb"] > 1000


@pytest.mark.parametrize("options", [["--poll"], ["--threads"], ["--poll", "--threads"]])
def test_other_ways_to_record(probe, options):
    path = probe.path("report")
    done = probe.run("sh", "-c", "sleep 0.05; exit 21", options=[*options, "--report", path])
    assert done.returncode == 21 and report(path)["status"] == 21 << 8
