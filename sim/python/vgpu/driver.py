# SPDX-License-Identifier: MIT
"""libcuda.so.1 through ctypes: the driver's own names and result codes."""
import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_size_t, c_uint, c_uint64, c_void_p

SUCCESS, OUT_OF_MEMORY, NOT_INITIALIZED, NOT_READY = 0, 2, 3, 600
SCHED_SPIN, SCHED_BLOCKING_SYNC = 1, 4
STREAM_NON_BLOCKING = 1
SCRATCH = 0x1000  # a device address of any length with nothing behind it (sim/cuda_local.h)

ARGUMENTS = {
    "cuInit": [c_uint],
    "cuGetErrorName": [c_int, POINTER(c_char_p)],
    "cuGetErrorString": [c_int, POINTER(c_char_p)],
    "cuDeviceGetCount": [POINTER(c_int)],
    "cuDeviceGet": [POINTER(c_int), c_int],
    "cuDeviceGetName": [c_char_p, c_int, c_int],
    "cuDevicePrimaryCtxRetain": [POINTER(c_void_p), c_int],
    "cuDevicePrimaryCtxRelease_v2": [c_int],
    "cuCtxSetCurrent": [c_void_p],
    "cuCtxSetFlags": [c_uint],
    "cuMemAlloc_v2": [POINTER(c_uint64), c_size_t],
    "cuMemFree_v2": [c_uint64],
    "cuMemGetInfo_v2": [POINTER(c_size_t), POINTER(c_size_t)],
    "cuMemHostAlloc": [POINTER(c_void_p), c_size_t, c_uint],
    "cuMemFreeHost": [c_void_p],
    "cuMemcpyHtoDAsync_v2": [c_uint64, c_void_p, c_size_t, c_void_p],
    "cuMemcpyDtoHAsync_v2": [c_void_p, c_uint64, c_size_t, c_void_p],
    "cuStreamCreate": [POINTER(c_void_p), c_uint],
    "cuStreamDestroy_v2": [c_void_p],
    "cuStreamSynchronize": [c_void_p],
    "cuStreamQuery": [c_void_p],
    "cuModuleLoadData": [POINTER(c_void_p), c_char_p],
    "cuModuleUnload": [c_void_p],
    "cuModuleGetFunction": [POINTER(c_void_p), c_void_p, c_char_p],
    "cuLaunchKernel": [c_void_p] + [c_uint] * 7 + [c_void_p, POINTER(c_void_p), POINTER(c_void_p)],
    "vgpuFigure": [c_int, c_char_p, POINTER(c_double)],
}


class Error(RuntimeError):
    """A driver call that did not answer 0; .code is CUDA's."""

    def __init__(self, text, code):
        super().__init__(text)
        self.code = code


class OutOfMemory(Error, MemoryError):
    """CUDA_ERROR_OUT_OF_MEMORY."""


class NoDriver(ImportError):
    """No virtual libcuda.so.1 to be found."""


class Driver:
    """The library, each call checked: driver.cuInit(0) raises Error unless it answers 0."""

    def __init__(self, path):
        hint = "set LD_LIBRARY_PATH=build/sim, or VGPU_CUDA to the file"
        try:
            self.library = ctypes.CDLL(path)
        except OSError as why:
            raise NoDriver(f"cannot load the virtual GPU's driver '{path}': {why}; {hint}") from None
        if not hasattr(self.library, "vgpuFigure"):
            raise NoDriver(f"'{path}' is not the virtual GPU's driver but a real one; {hint}")
        for name, arguments in ARGUMENTS.items():
            call = getattr(self.library, name)
            call.argtypes = arguments
            call.restype = c_int

    def words(self, call, code):
        name, text = c_char_p(), c_char_p()
        self.library.cuGetErrorName(code, byref(name))
        self.library.cuGetErrorString(code, byref(text))
        words = f"{call}: {(name.value or b'?').decode()} ({code}): {(text.value or b'?').decode()}"
        if code == NOT_INITIALIZED:
            words += "; a forked child cannot use its parent's GPU: start it with 'spawn'"
        return words

    def __getattr__(self, name):
        native = getattr(self.library, name)

        def call(*arguments):
            code = native(*arguments)
            if code == OUT_OF_MEMORY:
                raise OutOfMemory(self.words(name, code), code)
            if code:
                raise Error(self.words(name, code), code)

        setattr(self, name, call)
        return call


LOADED = []


def load():
    """The one driver of this process, initialised."""
    if not LOADED:
        driver = Driver(os.environ.get("VGPU_CUDA") or "libcuda.so.1")
        driver.cuInit(0)
        LOADED.append(driver)
    return LOADED[0]


def figure(name, device=0):
    """An exact figure of the device at that place in the scenario: "busy_s", "energy_j", ... """
    value = c_double()
    if load().library.vgpuFigure(device, name.encode(), byref(value)):
        raise Error(f"no figure '{name}' of device {device}", 1)
    return value.value
