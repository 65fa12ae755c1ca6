/* SPDX-License-Identifier: MIT */
#include "explain/does/makes.h"

#include <string.h>

/* "Pool(4)", "mp.Pool(4)", and not "MaxPool(2)". */
static bool calls(struct span s, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = s.p; s.n && (p = memmem(p, s.n - (size_t)(p - s.p), name, n)); p++)
		if (p == s.p || !py_is_word(p[-1]))
			return true;
	return false;
}

/* Where workers, threads and devices come from, DOES_WHATS: nowhere here. Names of variables of the environment are strings. */
enum does_what makes_what(struct span s, struct span raw, bool crews)
{
	if (span_has(s, "DataLoader("))
		return DOES_LOADER;
	if (calls(s, "Pool(") || calls(s, "ThreadPool(") || span_has(s, "PoolExecutor("))
		return DOES_POOL;
	if ((calls(s, "Process(") || calls(s, "Thread(")) && span_has(s, "target"))
		return DOES_STARTS;
	/* `make = Thread if light else Process` ... `make(target=fill, args=(k,), daemon=True)` */
	if (crews && calls(s, "target=") && !span_has(s, "target==") && span_has(s, "args=("))
		return DOES_STARTS;
	if (span_has_any(s, "set_num_threads(|setNumThreads(|threadpool_limits(") ||
	    (span_has_any(s, "environ|putenv(") &&
	     span_has_any(raw, "OMP_NUM_THREADS|OPENBLAS_NUM_THREADS|MKL_NUM_THREADS")))
		return DOES_THREADS;
	/* jax.devices("cpu") */
	if (span_has_any(raw, "\"cpu|'cpu|CPU:") && !span_has_any(raw, "cuda|gpu|GPU"))
		return DOES_WHATS;
	if (calls(s, "Device(") || calls(s, "jax.devices(") || calls(s, "mx.gpu(") ||
	    calls(s, "set_device(") || span_has(s, ".cuda(") ||
	    (span_has_any(s, "device(|device = |device=|.to(") &&
	     span_has_any(raw, "\"cuda|'cuda|GPU:")))
		return DOES_DEVICE;
	return DOES_WHATS;
}
