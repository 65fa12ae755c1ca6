/* SPDX-License-Identifier: MIT
 *
 * The part of the CUDA driver's binary interface that a training loop uses, under the vendor's names
 * and numbers. Declared by us from the published interface; x86-64 and aarch64.
 */
#ifndef VGPU_CUDA_ABI_H
#define VGPU_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

#define CUDA_API __attribute__((visibility("default")))

typedef enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NOT_INITIALIZED = 3,
	CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
	CUDA_ERROR_NO_DEVICE = 100,
	CUDA_ERROR_INVALID_DEVICE = 101,
	CUDA_ERROR_INVALID_IMAGE = 200,
	CUDA_ERROR_INVALID_CONTEXT = 201,
	CUDA_ERROR_OPERATING_SYSTEM = 304,
	CUDA_ERROR_INVALID_HANDLE = 400,
	CUDA_ERROR_NOT_FOUND = 500,
	CUDA_ERROR_NOT_READY = 600,
	CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
	CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
	CUDA_ERROR_LAUNCH_FAILED = 719,
	CUDA_ERROR_NOT_SUPPORTED = 801,
	CUDA_ERROR_UNKNOWN = 999,
} CUresult;

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct cuda_context *CUcontext;
typedef struct cuda_stream *CUstream;
typedef struct cuda_event *CUevent;
typedef struct cuda_module *CUmodule;
typedef struct cuda_function *CUfunction;
typedef struct {
	unsigned char bytes[16];
} CUuuid;

enum {
	CU_CTX_SCHED_AUTO = 0,
	CU_CTX_SCHED_SPIN = 1,
	CU_CTX_SCHED_YIELD = 2,
	CU_CTX_SCHED_BLOCKING_SYNC = 4,
	CU_CTX_SCHED_MASK = 7,
	CU_CTX_FLAGS_MASK = 0xff,
};
enum { CU_STREAM_NON_BLOCKING = 1 };
enum { CU_EVENT_BLOCKING_SYNC = 1, CU_EVENT_DISABLE_TIMING = 2, CU_EVENT_INTERPROCESS = 4 };

/* The three streams that are no pointers. */
#define CU_STREAM_LEGACY     ((CUstream)1)
#define CU_STREAM_PER_THREAD ((CUstream)2)

/* Every call, as F(exported name, parameters): declared here, looked up by name in cuda_proc.c. The
 * newest version of a call stands behind the older ones, as that is the one a plain name means. */
#define CUDA_CALLS(F)                                                                              \
	F(cuInit, (unsigned flags))                                                                \
	F(cuDriverGetVersion, (int *ret))                                                          \
	F(cuGetErrorName, (CUresult code, const char **ret))                                       \
	F(cuGetErrorString, (CUresult code, const char **ret))                                     \
	F(cuGetProcAddress, (const char *name, void **ret, int version, uint64_t flags))           \
	F(cuGetProcAddress_v2,                                                                     \
	  (const char *name, void **ret, int version, uint64_t flags, int *status))                \
	F(cuDeviceGetCount, (int *ret))                                                            \
	F(cuDeviceGet, (CUdevice * ret, int ordinal))                                              \
	F(cuDeviceGetName, (char *ret, int size, CUdevice device))                                 \
	F(cuDeviceGetUuid, (CUuuid * ret, CUdevice device))                                        \
	F(cuDeviceGetUuid_v2, (CUuuid * ret, CUdevice device))                                     \
	F(cuDeviceTotalMem, (unsigned *ret, CUdevice device))                                      \
	F(cuDeviceTotalMem_v2, (size_t * ret, CUdevice device))                                    \
	F(cuDeviceGetAttribute, (int *ret, int attribute, CUdevice device))                        \
	F(cuDeviceGetPCIBusId, (char *ret, int size, CUdevice device))                             \
	F(cuDeviceGetByPCIBusId, (CUdevice * ret, const char *place))                              \
	F(cuDeviceComputeCapability, (int *major, int *minor, CUdevice device))                    \
	F(cuDevicePrimaryCtxRetain, (CUcontext * ret, CUdevice device))                            \
	F(cuDevicePrimaryCtxRelease, (CUdevice device))                                            \
	F(cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                         \
	F(cuDevicePrimaryCtxSetFlags, (CUdevice device, unsigned flags))                           \
	F(cuDevicePrimaryCtxSetFlags_v2, (CUdevice device, unsigned flags))                        \
	F(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned *flags, int *active))             \
	F(cuDevicePrimaryCtxReset, (CUdevice device))                                              \
	F(cuDevicePrimaryCtxReset_v2, (CUdevice device))                                           \
	F(cuCtxCreate_v2, (CUcontext * ret, unsigned flags, CUdevice device))                      \
	F(cuCtxCreate_v3,                                                                          \
	  (CUcontext * ret, void *affinity, int n, unsigned flags, CUdevice device))               \
	F(cuCtxDestroy_v2, (CUcontext context))                                                    \
	F(cuCtxSetCurrent, (CUcontext context))                                                    \
	F(cuCtxGetCurrent, (CUcontext * ret))                                                      \
	F(cuCtxPushCurrent_v2, (CUcontext context))                                                \
	F(cuCtxPopCurrent_v2, (CUcontext * ret))                                                   \
	F(cuCtxGetDevice, (CUdevice * ret))                                                        \
	F(cuCtxGetFlags, (unsigned *ret))                                                          \
	F(cuCtxSetFlags, (unsigned flags))                                                         \
	F(cuCtxGetApiVersion, (CUcontext context, unsigned *ret))                                  \
	F(cuCtxSynchronize, (void))                                                                \
	F(cuMemAlloc_v2, (CUdeviceptr * ret, size_t bytes))                                        \
	F(cuMemFree_v2, (CUdeviceptr at))                                                          \
	F(cuMemGetInfo_v2, (size_t * ret_free, size_t * ret_total))                                \
	F(cuMemAllocHost_v2, (void **ret, size_t bytes))                                           \
	F(cuMemHostAlloc, (void **ret, size_t bytes, unsigned flags))                              \
	F(cuMemFreeHost, (void *at))                                                               \
	F(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes))                       \
	F(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes))                             \
	F(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream)) \
	F(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))       \
	F(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes))                       \
	F(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)) \
	F(cuMemcpyPeer, (CUdeviceptr to, CUcontext to_context, CUdeviceptr from,                   \
			 CUcontext from_context, size_t bytes))                                    \
	F(cuMemcpyPeerAsync, (CUdeviceptr to, CUcontext to_context, CUdeviceptr from,              \
			      CUcontext from_context, size_t bytes, CUstream stream))              \
	F(cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, size_t n))                          \
	F(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t n, CUstream stream))       \
	F(cuStreamCreate, (CUstream * ret, unsigned flags))                                        \
	F(cuStreamCreateWithPriority, (CUstream * ret, unsigned flags, int priority))              \
	F(cuStreamDestroy_v2, (CUstream stream))                                                   \
	F(cuStreamSynchronize, (CUstream stream))                                                  \
	F(cuStreamQuery, (CUstream stream))                                                        \
	F(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))                     \
	F(cuEventCreate, (CUevent * ret, unsigned flags))                                          \
	F(cuEventRecord, (CUevent event, CUstream stream))                                         \
	F(cuEventSynchronize, (CUevent event))                                                     \
	F(cuEventQuery, (CUevent event))                                                           \
	F(cuEventElapsedTime, (float *ret_ms, CUevent from, CUevent to))                           \
	F(cuEventDestroy_v2, (CUevent event))                                                      \
	F(cuModuleLoadData, (CUmodule * ret, const void *image))                                   \
	F(cuModuleLoadDataEx,                                                                      \
	  (CUmodule * ret, const void *image, unsigned n, int *options, void **values))            \
	F(cuModuleUnload, (CUmodule module))                                                       \
	F(cuModuleGetFunction, (CUfunction * ret, CUmodule module, const char *name))              \
	F(cuLaunchKernel,                                                                          \
	  (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,          \
	   unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra))

#define CUDA_DECLARE(name, parameters) CUDA_API CUresult name parameters;
CUDA_CALLS(CUDA_DECLARE)
#undef CUDA_DECLARE

#endif
