# SPDX-License-Identifier: MIT
"""A virtual GPU for programs that want one to wait for.

    with vgpu.Device(0) as gpu:          # index into the visible devices (CUDA_VISIBLE_DEVICES)
        batch = gpu.alloc(256 << 20)     # device memory: .free() or with the device; OutOfMemory
        gpu.copy(64 << 20)               # host to device: pageable blocks the caller
        gpu.copy(64 << 20, pinned=True)  # queued, returns at once
        gpu.launch(ms=30, sm=0.8)        # queue a kernel; a full queue blocks, as CUDA's does
        gpu.synchronize()                # asleep in the driver; spin=True: burning a core in it
        gpu.pending()                    # work still queued?

All of it goes through the CUDA driver's own calls in libcuda.so.1 (sim/), found through the loader's
path (LD_LIBRARY_PATH=build/sim) or $VGPU_CUDA. vgpu.torch has a torch.Tensor on top."""
from .device import Device, Memory
from .driver import Error, NoDriver, OutOfMemory

__all__ = ["Device", "Error", "Memory", "NoDriver", "OutOfMemory"]
