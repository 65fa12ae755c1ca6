#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A training loop on the virtual GPU: 30 ms of device work a step, then 30 ms in which the GPU waits.

    export LD_LIBRARY_PATH=build/sim PYTHONPATH=sim/python SPOTTER_NVML=build/sim/libnvidia-ml.so.1
    build/spotter run -- python3 examples/gpu.py 10
    VGPU_SCENARIO=sim/scenarios/throttled.vgpu build/spotter run -- python3 examples/gpu.py 10
"""
import sys
import time

import vgpu


def main(seconds):
    steps = 0
    end = time.monotonic() + seconds
    with vgpu.Device(0) as gpu:
        weights = gpu.alloc(2 << 30)
        while time.monotonic() < end:
            gpu.copy(8 << 20, pinned=True)
            gpu.launch(ms=30, sm=0.8)
            gpu.synchronize()
            time.sleep(0.03)  # a loader that does not keep up
            steps += 1
        weights.free()
    print(f"{steps} steps")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10)
