# SPDX-License-Identifier: MIT
"""Device and Memory, thin over the driver's calls."""
import ctypes
import threading
from ctypes import byref, c_float, c_int, c_size_t, c_uint64, c_void_p

from . import driver as cuda


class Memory:
    """Device memory. Freed with .free(), with its device, or as the block of a `with`."""

    def __init__(self, device, nbytes):
        address = c_uint64()
        device._enter()
        device._driver.cuMemAlloc_v2(byref(address), nbytes)
        self.device, self.nbytes, self.address = device, nbytes, address.value
        device._memory[self.address] = self

    def free(self):
        """Waits for the work that is queued, as cuMemFree does. A second time does nothing."""
        if self.address and self.device._memory.pop(self.address, None):
            self.device._enter()
            self.device._driver.cuMemFree_v2(self.address)
        self.address = 0

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.free()


class Device:
    """One visible GPU with one stream: what is queued runs in that order. Threads may share it."""

    def __init__(self, index=0):
        self._driver = cuda.load()
        self._lock = threading.RLock()
        self._memory = {}
        self._context, self._stream = c_void_p(), c_void_p()
        self._module, self._kernel = c_void_p(), c_void_p()
        self._pinned, self._pinned_bytes = c_void_p(), 0
        self._pageable = ctypes.create_string_buffer(64)
        self._ordinal = None
        ordinal = c_int()
        self._driver.cuDeviceGet(byref(ordinal), index)
        self._driver.cuDevicePrimaryCtxRetain(byref(self._context), ordinal)
        self._ordinal = ordinal.value
        self._enter()
        self._spin(False)
        self._driver.cuStreamCreate(byref(self._stream), cuda.STREAM_NON_BLOCKING)
        self._driver.cuModuleLoadData(byref(self._module), b"vgpu")
        self._driver.cuModuleGetFunction(byref(self._kernel), self._module, b"vgpu_kernel")

    @property
    def name(self):
        text = ctypes.create_string_buffer(128)
        self._driver.cuDeviceGetName(text, len(text), self._ordinal)
        return text.value.decode()

    def _enter(self):
        """The context is current by thread, and any thread may call."""
        if self._ordinal is None:
            raise ValueError("this device is closed")
        self._driver.cuCtxSetCurrent(self._context)

    def _spin(self, spin):
        self._driver.cuCtxSetFlags(cuda.SCHED_SPIN if spin else cuda.SCHED_BLOCKING_SYNC)

    def alloc(self, nbytes):
        """Memory of the device, or OutOfMemory."""
        return Memory(self, nbytes)

    def memory_info(self):
        """(free, total) bytes, as cuMemGetInfo has them."""
        free, total = c_size_t(), c_size_t()
        self._enter()
        self._driver.cuMemGetInfo_v2(byref(free), byref(total))
        return free.value, total.value

    def _host(self, nbytes, pinned):
        """A host address; the driver looks at where it lies, not at what is there."""
        if not pinned:
            return ctypes.addressof(self._pageable)
        with self._lock:
            if nbytes > self._pinned_bytes:
                larger = c_void_p()
                self._driver.cuMemHostAlloc(byref(larger), nbytes, 0)
                if self._pinned:
                    self._driver.cuMemFreeHost(self._pinned)
                self._pinned, self._pinned_bytes = larger, nbytes
            return self._pinned.value

    def copy(self, nbytes, pinned=False):
        """Host to device. Pageable memory keeps the caller until it is through; pinned is queued."""
        self._enter()
        self._driver.cuMemcpyHtoDAsync_v2(cuda.SCRATCH, self._host(nbytes, pinned), nbytes, self._stream)

    def fetch(self, nbytes, spin=False):
        """Device to host, when all that is queued is done: what .item() and .cpu() wait in."""
        self._enter()
        self._spin(spin)
        self._driver.cuMemcpyDtoHAsync_v2(self._host(nbytes, True), cuda.SCRATCH, nbytes, self._stream)
        self._driver.cuStreamSynchronize(self._stream)

    def launch(self, ms, sm=0.8, tensor=None, dram=None):
        """Queues a kernel of that duration (at full clock) and load; tensor and dram follow sm."""
        if not 0 <= ms <= 86400e3:
            raise ValueError(f"a kernel of {ms} ms")
        values = (c_uint64(round(ms * 1e6)), c_float(sm), c_float(-1 if tensor is None else tensor),
                  c_float(-1 if dram is None else dram))
        parameters = (c_void_p * 4)(*[ctypes.addressof(v) for v in values])
        self._enter()
        self._driver.cuLaunchKernel(self._kernel, 1, 1, 1, 128, 1, 1, 0, self._stream, parameters, None)

    def synchronize(self, spin=False):
        """Waits until the queue is empty: asleep in the driver, or spinning in it."""
        self._enter()
        self._spin(spin)
        self._driver.cuStreamSynchronize(self._stream)

    def pending(self):
        """Whether work is still queued or running."""
        self._enter()
        code = self._driver.library.cuStreamQuery(self._stream)
        if code not in (cuda.SUCCESS, cuda.NOT_READY):
            raise cuda.Error(self._driver.words("cuStreamQuery", code), code)
        return code == cuda.NOT_READY

    def close(self):
        """Frees all it holds. Work still queued is waited for."""
        if self._ordinal is None:
            return
        for memory in list(self._memory.values()):
            memory.free()
        self._enter()
        if self._pinned:
            self._driver.cuMemFreeHost(self._pinned)
        self._driver.cuModuleUnload(self._module)
        self._driver.cuStreamSynchronize(self._stream)
        self._driver.cuStreamDestroy_v2(self._stream)
        self._driver.cuDevicePrimaryCtxRelease_v2(self._ordinal)
        self._ordinal = None

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.close()
