#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A thread that prints CPU and memory while the training runs: instead of a loop around psutil.

    PYTHONPATH=python python3 examples/python/instead_of_psutil_thread.py

What is usually pasted:
"""
#     import psutil, threading, time
#     done = threading.Event()
#     def monitor():
#         while not done.is_set():
#             print("CPU", psutil.cpu_percent(), "% RAM", psutil.virtual_memory().percent, "%")
#             time.sleep(1)
#     thread = threading.Thread(target=monitor)
#     thread.start()
#     train()
#     done.set()
#     thread.join()
#
# What is wrong with it: the first figure is 0.0, whatever happens (there was nothing to compare with). Both are of the
# whole machine: other people's work is in them, and a container or a Slurm job that keeps its 2 of 64 CPUs full reads
# 3 %. The thread stays when train() raises. And it measures in the process it measures, holding the GIL.
import time

import spotter


def run(train):
    # --8<-- as many cores as were used, of those this job may use; its memory with that of all workers
    def show(now):
        print("CPU", now.job.cores_used, "of", now.job.cores_allowed, "cores, RAM", now.job.rss_bytes, "bytes", flush=True)
    with spotter.watch(every=1, callback=show):
        train()
    # -->8--


if __name__ == "__main__":
    run(lambda: time.sleep(3.5))
