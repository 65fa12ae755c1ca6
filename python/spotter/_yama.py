# SPDX-License-Identifier: MIT
"""Where Yama restricts who may look at a process (kernel.yama.ptrace_scope = 1: its ancestors only), a process names
the one recorder that may. A forked child has to do so again, and so has a program it starts.

Imported by _site/sitecustomize.py as well: no other module of this package."""
import os

PR_SET_PTRACER = 0x59616D61  # linux/prctl.h; "Yama"
RECORDER = "SPOTTER_RECORDER"  # names the recorder's pid to children
SCOPE = "/proc/sys/kernel/yama/ptrace_scope"


def restricted(scope: str = SCOPE) -> bool:
    """Without Yama, and where it restricts nothing, there is nothing to allow."""
    try:
        with open(scope, "rb") as f:
            return f.read(8).strip() not in (b"", b"0")
    except OSError:
        return False


def allow(pid: int) -> None:
    """Lets that process and those it started, and nobody else, read this one. 0: nobody any more."""
    try:
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        none = ctypes.c_ulong(0)
        libc.prctl(ctypes.c_int(PR_SET_PTRACER), ctypes.c_ulong(pid), none, none, none)
    except Exception:
        pass  # never the program's problem


def allow_named() -> None:
    """The recorder that the environment names, if it is there still: in this process, and in those it forks (the
    workers of a forkserver, of a DataLoader in a rank that was spawned)."""
    pid = os.environ.get(RECORDER, "")
    if pid.isdigit() and int(pid) > 0 and restricted():
        allow(int(pid))
        os.register_at_fork(after_in_child=lambda: allow(int(pid)))
