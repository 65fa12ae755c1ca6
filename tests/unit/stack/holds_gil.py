# SPDX-License-Identifier: MIT
"""One thread has the GIL for good, three want it, one waits for a lock, one for a time."""
import sys
import threading
import time

lock = threading.Lock()
lock.acquire()
tids = []


def want():
    tids.append(("gil", threading.get_native_id()))
    time.sleep(0.3)
    while True:
        pass


def wait():
    tids.append(("lock", threading.get_native_id()))
    lock.acquire()


def rest():
    tids.append(("sleep", threading.get_native_id()))
    time.sleep(1000)


for function in [want, want, want, wait, rest]:
    threading.Thread(target=function, daemon=True).start()
while len(tids) < 5:
    time.sleep(0.001)
print("running", threading.get_native_id())
for kind, tid in tids:
    print(kind, tid)
sys.setswitchinterval(1000)
print("ready", 0, flush=True)
while True:
    pass
