#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How busy is the GPU, and how full? Instead of nvidia-smi in a subprocess.

    PYTHONPATH=python python3 examples/python/instead_of_nvidia_smi.py

What is usually pasted:
"""
#     import subprocess
#     out = subprocess.check_output(["nvidia-smi", "--query-gpu=utilization.gpu,memory.used",
#                                    "--format=csv,noheader,nounits"])
#     busy, memory = [int(x) for x in out.decode().strip().split(",")]
#     print(f"GPU {busy} %, {memory} MiB")
#
# What is wrong with it: with a second GPU the answer has a second line, and int("4096\n60") raises. So does "[N/A]",
# which is what a GPU answers that cannot tell. When the driver hangs, the training hangs with it. And nothing says how
# much of it is this job's.
import spotter


def report():
    # --8<-- every GPU; None is what could not be read
    for gpu in spotter.snapshot().gpus:
        print(f"GPU {gpu.index} {gpu.name}: busy {gpu.busy}, {gpu.memory_used_bytes} bytes")
    # -->8--


if __name__ == "__main__":
    report()
