# SPDX-License-Identifier: MIT
"""Another program on the same GPU.

    python3 other_job.py MS PAUSE_MS [MEMORY_GB]     kernels of MS with PAUSE_MS between; 0 0: holds memory only"""
import sys
import time

import vgpu


def main(ms, pause, gigabytes=2.0):
    with vgpu.Device(0) as gpu:
        gpu.alloc(int(gigabytes * (1 << 30)))
        while True:
            if ms:
                gpu.launch(ms=ms, sm=0.9)
                gpu.synchronize()
            time.sleep(pause / 1000 if ms else 1)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
