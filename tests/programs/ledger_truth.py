# SPDX-License-Identifier: MIT
"""A first thread that does known things for known times, over and over, and says what it did:

    ledger_truth.py SECONDS [PHASE...]
    ledger_truth.py --steps SECONDS     steps of exactly 20 ms: 4 ms for a worker, 4 ms asleep, 12 ms of code

The last line is JSON: {"tid", "missing": {phase: why}, "track": [[t_ns, cpu_ns, delay_ns, phase], ...]}:
at each border between two phases the time (CLOCK_MONOTONIC), the CPU time of the thread, its time in
the queue for a CPU (schedstat), and the phase that ended there. What of a phase was neither of the two
it was blocked, for the one reason that the phase is made for.
"""
import ctypes
import fcntl
import json
import mmap
import multiprocessing
import os
import signal
import struct
import sys
import tempfile
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)  # calls through it release the GIL
PHASE_S = 0.11
FAULT_S = 0.01
BLOCK = 4 << 20
FILE_BLOCKS = 16
CPUS = sorted(os.sched_getaffinity(0))
HOG_BUSY = []
NOWHERE = os.open("/dev/null", os.O_WRONLY)


def die_with_parent():
    LIBC.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def forked(body):
    """A child that runs body(); no module of Python knows of it."""
    pid = os.fork()
    if pid == 0:
        try:
            die_with_parent()
            body()
        finally:
            os._exit(0)
    return pid


# --- sleeps, computes, spins

def sleeps():
    time.sleep(PHASE_S)


def computes():
    end = time.monotonic() + PHASE_S
    total = 0
    while time.monotonic() < end:
        for n in range(2000):
            total += n * n
    return total


def spins():
    end = time.monotonic() + PHASE_S
    while time.monotonic() < end:
        pass


# --- waits for a worker: a pipe that the worker writes to

def load_item(seconds):
    time.sleep(seconds)
    return b"item"


def worker_loop(requests, results):
    die_with_parent()
    while True:
        results.send_bytes(load_item(struct.unpack("d", requests.recv_bytes())[0]))


def make_worker():
    requests, mine = multiprocessing.Pipe(duplex=False)
    theirs, results = multiprocessing.Pipe(duplex=False)
    fork = multiprocessing.get_context("fork")
    fork.Process(target=worker_loop, args=(requests, results), daemon=True).start()
    requests.close()
    results.close()
    return mine, theirs


def waits_for_worker():
    send, receive = WORKER
    send.send_bytes(struct.pack("d", PHASE_S))
    receive.recv_bytes()


# --- waits for the GIL: a thread holds it in one long call of C

def hog(commands):
    os.sched_setaffinity(0, CPUS[:1])
    while True:
        until = struct.unpack("d", os.read(commands, 8))[0]
        while time.monotonic() < until:
            sum(range(1_200_000))  # some 30 ms
        HOG_BUSY.clear()


def make_hog():
    commands, ours = os.pipe()
    threading.Thread(target=hog, args=(commands,), daemon=True).start()
    return ours


def waits_for_gil():
    end = time.monotonic() + PHASE_S
    HOG_BUSY.append(True)
    os.write(HOG, struct.pack("d", end))
    while HOG_BUSY:  # it may be late: what it does then is no other phase's
        os.write(NOWHERE, b"x")  # gives the GIL away, and does not wait itself


# --- reads a file, past the page cache

def make_file():
    handle, path = tempfile.mkstemp(dir=os.environ.get("LEDGER_DIR"))
    try:
        os.write(handle, bytes(BLOCK) * FILE_BLOCKS)
        os.fsync(handle)
        direct = os.open(path, os.O_RDONLY | os.O_DIRECT)
        if os.preadv(direct, [mmap.mmap(-1, BLOCK)], 0) != BLOCK:
            raise OSError("a direct read came short")
        return direct, mmap.mmap(-1, BLOCK)
    finally:
        os.close(handle)
        os.unlink(path)


def reads_file():
    direct, buffer = FILE
    end = time.monotonic() + PHASE_S
    number = 0
    while time.monotonic() < end:
        os.preadv(direct, [buffer], number % FILE_BLOCKS * BLOCK)
        number += 1


# --- is starved: a neighbour burns the CPU that both are bound to

def make_neighbour():
    commands, ours = os.pipe()

    def burn():
        os.sched_setaffinity(0, CPUS[-1:])
        while True:
            until = struct.unpack("d", os.read(commands, 8))[0]
            while time.monotonic() < until:
                pass
    forked(burn)
    return ours


def is_starved():
    end = time.monotonic() + 2 * PHASE_S
    os.write(NEIGHBOUR, struct.pack("d", end))
    total = 0
    while time.monotonic() < end:
        for n in range(2000):
            total += n
    return total


# --- faults memory: pages that another process brings, a known time after they are missed

PAGE = mmap.PAGESIZE
PAGES = int(PHASE_S / FAULT_S)
UFFDIO_API, UFFDIO_REGISTER, UFFDIO_ZEROPAGE = 0xc018aa3f, 0xc020aa00, 0xc020aa04


def make_missing():
    number = {"x86_64": 323, "aarch64": 282}[os.uname().machine]
    fd = LIBC.syscall(number, os.O_CLOEXEC | 1)  # UFFD_USER_MODE_ONLY: any user may
    if fd < 0:
        raise OSError(ctypes.get_errno(), "userfaultfd")
    LIBC.mmap.restype = ctypes.c_void_p
    start = LIBC.mmap(None, ctypes.c_size_t(PAGES * PAGE), 3, 0x22, -1, ctypes.c_size_t(0))
    fcntl.ioctl(fd, UFFDIO_API, struct.pack("QQQ", 0xaa, 0, 0))
    fcntl.ioctl(fd, UFFDIO_REGISTER, struct.pack("QQQQ", start, PAGES * PAGE, 1, 0))

    def bring():
        while True:
            message = os.read(fd, 32)
            time.sleep(FAULT_S)
            address = struct.unpack_from("Q", message, 16)[0] & ~(PAGE - 1)
            fcntl.ioctl(fd, UFFDIO_ZEROPAGE, struct.pack("QQQq", address, PAGE, 0, 0))
    forked(bring)
    return start


def faults():
    LIBC.madvise(ctypes.c_void_p(MISSING), ctypes.c_size_t(PAGES * PAGE), 4)  # MADV_DONTNEED
    for page in range(PAGES):
        LIBC.memset(ctypes.c_void_p(MISSING + page * PAGE), 1, ctypes.c_size_t(1))


# --- the account

class Track:
    def __init__(self):
        self.schedstat = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
        self.rows = []

    def border(self, phase):
        cpu = time.thread_time_ns()  # brings schedstat up to date, too
        delay = int(os.pread(self.schedstat, 100, 0).split()[1])
        self.rows.append([time.monotonic_ns(), cpu, delay, phase])

    def tell(self, **more):
        print(json.dumps({"tid": threading.get_native_id(), "track": self.rows, **more}), flush=True)


PHASES = {"sleeps": sleeps, "computes": computes, "waits_for_worker": waits_for_worker,
          "waits_for_gil": waits_for_gil, "spins": spins, "reads_file": reads_file,
          "is_starved": is_starved, "faults": faults}
MAKERS = {"faults": ("MISSING", make_missing), "is_starved": ("NEIGHBOUR", make_neighbour),
          "waits_for_worker": ("WORKER", make_worker), "reads_file": ("FILE", make_file),
          "waits_for_gil": ("HOG", make_hog)}  # the thread last: it must not be forked


def make(names):
    """What the phases need; {phase: why} of those that cannot be had here."""
    missing = {}
    for phase, (name, maker) in MAKERS.items():
        if phase not in names:
            continue
        try:
            globals()[name] = maker()
        except (OSError, KeyError) as e:
            missing[phase] = str(e)
    os.sched_setaffinity(0, CPUS[-1:])
    return missing


def phases(seconds, names):
    names = names or list(PHASES)
    missing = make(names)
    track = Track()
    end = time.monotonic() + seconds
    track.border("start")
    while time.monotonic() < end:
        for name in names:
            if name not in missing:
                PHASES[name]()
                track.border(name)
    track.tell(missing=missing)


def code(until):
    while time.monotonic() < until:
        pass


def timed_worker(results, start, step, late):
    """A result at start + n * step + late, for ever."""
    die_with_parent()
    n = 0
    while True:
        time.sleep(max(0, start + n * step + late - time.monotonic()))
        results.send_bytes(b"item")
        n += 1


def steps(seconds):
    step, start = 0.02, time.monotonic() + 0.3
    receive, results = multiprocessing.Pipe(duplex=False)
    multiprocessing.get_context("fork").Process(target=timed_worker, args=(results, start, step, 0.004),
                                                daemon=True).start()
    results.close()
    track = Track()
    time.sleep(max(0, start - time.monotonic()))
    track.border("start")
    for n in range(int(seconds / step)):
        begin = start + n * step
        receive.recv_bytes()
        track.border("waits_for_worker")
        time.sleep(max(0, begin + 0.008 - time.monotonic()))
        track.border("sleeps")
        code(begin + step)
        track.border("computes")
    track.tell(missing={})


if __name__ == "__main__":
    if sys.argv[1] == "--steps":
        steps(float(sys.argv[2]))
    else:
        phases(float(sys.argv[1]), sys.argv[2:])
