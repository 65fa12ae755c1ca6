#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What does my training use, CPU and GPU together? Instead of psutil and gpustat side by side.

    PYTHONPATH=python python3 examples/python/instead_of_psutil_gpustat.py

What is usually pasted:
"""
#     import gpustat, psutil, time
#     me = psutil.Process()
#     me.cpu_percent()
#     time.sleep(1)
#     print("CPU", me.cpu_percent(), "% RAM", me.memory_percent(), "%")
#     gpu = gpustat.new_query()[0]
#     print("GPU", gpu.utilization, "%", gpu.memory_used, "MB")
#
# What is wrong with it: 387 % of what? And that is without the DataLoader's workers, which are other processes. The
# memory is a share of the machine's, not of the container's, without the workers again. The GPU is the first of the
# machine, not the one this program was given (CUDA_VISIBLE_DEVICES), with everybody's work in it.
import spotter


def report():
    # --8<-- workers included; the GPUs this job has memory on, and how much of each is the job's
    now = spotter.snapshot(seconds=1)
    print("CPU", now.job.cores_used, "of", now.job.cores_allowed, "cores, RAM", now.job.rss_bytes, "bytes")
    for gpu in now.gpus:
        if gpu.job_memory_bytes:
            print("GPU", gpu.index, "busy", gpu.busy, "with", gpu.job_memory_bytes, "of", gpu.memory_used_bytes, "bytes")
    # -->8--


if __name__ == "__main__":
    report()
