/* SPDX-License-Identifier: MIT
 *
 * cuGetProcAddress: calls by name. A name without version means the newest one.
 */
#include "cuda_abi.h"

#include "base/auto.h"

#define CUDA_ROW(name, parameters) { #name, (void *)name },
static const struct {
	const char *name;
	void *call;
} calls[] = { CUDA_CALLS(CUDA_ROW) };
#undef CUDA_ROW

/* "cuMemAlloc" is meant by "cuMemAlloc_v2", too. */
static int is(const char *full, const char *name)
{
	size_t n = strlen(name);

	if (strncmp(full, name, n) != 0)
		return 0;
	return !full[n] || (full[n] == '_' && full[n + 1] == 'v' && full[n + 2] && !full[n + 3]);
}

CUresult cuGetProcAddress_v2(const char *name, void **ret, int version, uint64_t flags, int *status)
{
	(void)version;
	(void)flags;
	if (!name || !ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = NULL;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (is(calls[i].name, name))
			*ret = calls[i].call;
	if (status)
		*status = *ret ? 0 : 1; /* found, or no such symbol */
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *name, void **ret, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(name, ret, version, flags, NULL);
}
