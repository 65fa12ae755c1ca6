#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How busy was each GPU over the training? Instead of a loop over NVML's handles.

    PYTHONPATH=python python3 examples/python/instead_of_gpu_loop.py

What is usually pasted:
"""
#     import pynvml, threading, time, torch
#     busy = {i: [] for i in range(torch.cuda.device_count())}
#     def monitor():
#         pynvml.nvmlInit()
#         while True:
#             for i in busy:
#                 handle = pynvml.nvmlDeviceGetHandleByIndex(i)
#                 busy[i].append(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)
#             time.sleep(1)
#     threading.Thread(target=monitor, daemon=True).start()
#     train()
#     for i, shares in busy.items():
#         print("GPU", i, sum(shares) / len(shares), "%")
#
# What is wrong with it: torch counts the devices it was given, NVML those of the machine: with CUDA_VISIBLE_DEVICES=3
# this watches somebody else's GPU 0. device_count() before a fork can break the workers. A GPU that does not answer
# ends the thread, silently; one that answers late is late for all. A training of less than a second divides by zero.
import time

import spotter


def run(train):
    # --8<-- by the machine's numbers, as nvidia-smi has them
    busy = {}

    def note(now):
        for gpu in now.gpus:
            if gpu.busy is not None:
                busy.setdefault(gpu.index, []).append(gpu.busy)
    with spotter.watch(every=1, callback=note):
        train()
    for index, shares in busy.items():
        print("GPU", index, 100 * sum(shares) / len(shares), "%")
    # -->8--


if __name__ == "__main__":
    run(lambda: time.sleep(3.5))
