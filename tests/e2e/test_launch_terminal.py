# SPDX-License-Identifier: MIT
"""Starting a program without being felt: a real terminal and a real shell in it."""
from launching import *  # the probe and what it takes to watch it

# Timing of keys and screens: not beside other work.
pytestmark = pytest.mark.alone


# -- a terminal ---------------------------------------------------------------------------------------

class Terminal:
    """A real one: a session of its own on a pseudo-terminal."""

    def __init__(self, argv, env, cwd):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(argv[0], list(map(str, argv)), env)
        self.text = ""
        self.status = None

    def read(self, timeout):
        if not select.select([self.fd], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.text += data.decode(errors="replace")
        return bool(data)

    def expect(self, pattern, timeout=10.0):
        """Everything up to and with the pattern is taken off."""
        end = time.monotonic() + timeout
        while not (found := re.search(pattern, self.text)):
            assert time.monotonic() < end, f"no {pattern!r} in {self.text!r}"
            self.read(0.05)
        self.text = self.text[found.end():]
        return found

    def send(self, text):
        os.write(self.fd, text.encode())

    def wait(self, timeout=10.0):
        end = time.monotonic() + timeout
        while self.status is None:
            self.read(0.01)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            assert time.monotonic() < end, f"still running: {self.text!r}"
        while self.read(0.05):
            pass
        return self.status

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        end = time.monotonic() + 3
        while self.status is None and time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


@pytest.fixture
def terminal(probe):
    opened = []

    def start(*argv):
        t = Terminal([*probe.prefix, *argv], dict(probe.env, PS1="PROMPT> ", TERM="dumb"),
                     probe.folder)
        opened.append(t)
        return t
    yield start
    for t in opened:
        t.close()


@pytest.fixture
def shell(probe, terminal):
    probe.write("handler.py", HANDLER)
    t = terminal("bash", "--norc", "--noprofile", "-i")
    t.expect("PROMPT> ")
    return t


HANDLER = r'''
import os, signal, sys, time
n = 0
def on_int(sig, frame):
    global n
    n += 1
    print("INT", n, flush=True)
def on_winch(sig, frame): print("WINCH", os.get_terminal_size().columns, flush=True)
def on_cont(sig, frame): print("CONTINUED", flush=True)
signal.signal(signal.SIGINT, on_int)
signal.signal(signal.SIGWINCH, on_winch)
signal.signal(signal.SIGCONT, on_cont)
print("READY", flush=True)
while n == 0: time.sleep(0.02)
time.sleep(0.3)
print("SEEN", n, flush=True)
sys.exit(7)
'''


def test_ctrl_c_handled(probe, terminal):
    """S is the leader of the session here."""
    t = terminal(probe.binary, "--", PYTHON, "-c", HANDLER)
    t.expect("READY")
    t.send("\x03")
    t.expect("SEEN 1")
    assert t.wait() == 7


def test_ctrl_c_not_handled(probe, terminal):
    t = terminal(probe.binary, "--say", "verdict", "--", "sh", "-c", "echo READY; exec sleep 30")
    t.expect("READY")
    t.send("\x03")
    t.expect("verdict")
    assert t.wait() == -signal.SIGINT


def test_ctrl_backslash(probe, terminal):
    t = terminal(probe.binary, "--", "sh", "-c", "ulimit -c 0; echo READY; exec sleep 30")
    t.expect("READY")
    t.send("\x1c")
    assert t.wait() == -signal.SIGQUIT


def test_ctrl_c_for_a_program_in_a_group_of_its_own(probe, terminal):
    log = probe.path("log-own")
    t = terminal(probe.binary, "--", PYTHON, "-c", COUNTER, log, "setpgid")
    wait_for(lambda: log.exists() and "ready" in log.read_text())
    t.send("\x03")
    assert settled(log, signal.SIGINT) == 1
    kill(family(t.pid)[1], signal.SIGKILL)
    assert t.wait() == -signal.SIGKILL


def test_window_size(probe, terminal):
    t = terminal(probe.binary, "--", PYTHON, "-c", HANDLER)
    t.expect("READY")
    for columns in (91, 92):
        fcntl.ioctl(t.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        t.expect(f"WINCH {columns}")
    time.sleep(0.2)
    t.read(0.05)
    assert "WINCH" not in t.text
    t.send("\x03")
    assert t.wait() == 7


def test_terminal_goes_away(probe, terminal):
    """The kernel tells the leader of the session alone, which would have been the program."""
    log = probe.path("log-hup")
    t = terminal(probe.binary, "--", PYTHON, "-c", COUNTER, log)
    wait_for(lambda: log.exists() and "ready" in log.read_text())
    p = family(t.pid)[1]
    os.close(t.fd)
    t.fd = -1
    assert settled(log, signal.SIGHUP) == 1
    kill(p, signal.SIGKILL)
    wait_for(lambda: gone(t.pid))


def goes_on_silently(shell):
    """Ctrl-Z, bg, fg: does the `fg` bring no SIGCONT?"""
    shell.send("\x1a")
    shell.expect(r"Stopped.*launch_probe")
    shell.expect("PROMPT> ")
    shell.send("jobs -l; bg\n")
    shell.expect(r"launch_probe.*&")
    shell.expect("CONTINUED")
    shell.send("jobs; echo CHECK''ED\n")
    assert "Running" in shell.expect(r"(?s).*CHECKED").group()
    shell.send("fg\n")
    shell.expect(r"launch_probe")
    time.sleep(0.1)
    shell.read(0.05)
    return "CONTINUED" not in shell.text


def test_job_control(probe, shell):
    """Ctrl-Z, jobs, bg, fg, Ctrl-C in a real shell."""
    shell.send(f"{probe.binary} -- {PYTHON} handler.py\n")
    shell.expect("READY")
    for _ in range(2):
        shell.send("\x1a")
        shell.expect(r"Stopped.*launch_probe")
        shell.expect("PROMPT> ")
        shell.send("fg\n")
        shell.expect("CONTINUED")
    # It was running: bash sends none at the second `fg`, nor do we. The one of `bg` may come twice, and late, when the
    # recorder was slow to forget the one before: once in hundreds, and harmless to what runs.
    assert any(goes_on_silently(shell) for _ in range(3))
    shell.send("\x03")
    shell.expect("SEEN 1")
    shell.expect("PROMPT> ")
    shell.send("echo code $?\n")
    shell.expect("code 7\r")
    shell.send("exit\n")
    assert shell.wait() == 0


def test_a_stop_is_seen_once(probe, shell):
    """`CONTINUED` comes once for each fg: the shell's own, not ours as well."""
    shell.send(f"{probe.binary} -- {PYTHON} handler.py\n")
    shell.expect("READY")
    shell.send("\x1a")
    shell.expect("PROMPT> ")
    shell.send("fg\n")
    shell.expect("CONTINUED")
    time.sleep(0.3)
    shell.read(0.05)
    assert "CONTINUED" not in shell.text
    shell.send("\x03")
    shell.expect("SEEN 1")
    shell.expect("PROMPT> ")
    shell.send("exit\n")
    shell.wait()


def test_background_reader_stops_and_reads_in_the_foreground(probe, shell):
    shell.send(f"{probe.binary} -- cat &\n")
    shell.expect("PROMPT> ")
    shell.send("\n")
    time.sleep(0.3)
    shell.send("\n")
    shell.expect(r"Stopped.*launch_probe")
    shell.send("fg\n")
    shell.expect("launch_probe -- cat")
    shell.send("some words\n")
    shell.expect(r"some words\r\nsome words")
    shell.send("\x04")
    shell.expect("PROMPT> ")
    shell.send("echo code $?\n")
    shell.expect("code 0\r")
    shell.send("exit\n")
    shell.wait()


def test_background_writer_under_tostop(probe, shell):
    shell.send(f"stty tostop; {probe.binary} -- sh -c 'sleep 0.1; echo WRIT\"\"TEN; exit 5' &\n")
    shell.expect("PROMPT> ")
    time.sleep(0.5)
    shell.send("\n")
    shell.expect(r"Stopped.*launch_probe")
    assert "WRITTEN" not in shell.text
    shell.send("fg\n")
    shell.expect("WRITTEN")
    shell.expect("PROMPT> ")
    shell.send("echo code $?; stty -tostop\n")
    shell.expect("code 5\r")
    shell.send("exit\n")
    shell.wait()


def test_background_job_is_left_in_peace(probe, shell):
    shell.send(f"{probe.binary} -- sh -c 'sleep 0.3; exit 0' & wait $!; echo code $?\n")
    shell.expect("code 0\r")
    shell.send("exit\n")
    shell.wait()


def test_shell_inside(probe, shell):
    """An interactive shell takes the terminal for a group of its own, and gives it back."""
    shell.send(f"{probe.binary} -- bash --norc --noprofile -i\n")
    shell.expect("PROMPT> ")
    shell.send("PS1='INNER> '; sleep 60\n")
    time.sleep(0.3)
    shell.send("\x03")
    shell.expect("\nINNER> ")
    shell.send("sleep 61\n")
    time.sleep(0.3)
    shell.send("\x1a")
    shell.expect("Stopped.*sleep 61")
    shell.send("fg\n")
    shell.expect("\nsleep 61")
    shell.send("\x03")
    shell.expect("\nINNER> ")
    shell.send("exit 11\n")
    shell.expect("PROMPT> ")
    shell.send("echo code $?\n")
    shell.expect("code 11\r")
    shell.send("exit\n")
    shell.wait()


def test_script_stops_at_ctrl_c(probe, shell):
    """A loop in the shell ends, because what it waits for died of SIGINT."""
    shell.send(f"for i in 1 2 3; do echo ROUND $i; {probe.binary} -- sleep 20; done\n")
    shell.expect(r"\nROUND 1")
    time.sleep(0.3)
    shell.send("\x03")
    shell.expect("PROMPT> ")
    assert "ROUND 2" not in shell.text
    shell.send("exit\n")
    shell.wait()
