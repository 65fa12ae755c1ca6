/* SPDX-License-Identifier: MIT
 *
 * worker_memory_growth: the loader workers' memory grows with every batch. Mostly it is a forked copy of the
 * data set that is copied page by page: to look at a Python object writes its reference count.
 *
 * Not to be taken for it: growth of the training process itself (memory_leak), and workers that are started
 * anew for each epoch.
 *
 * Gain: none on speed, until the memory is full.
 */
#include "explain/growing.h"

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct growing g = {
		.rate = FACT_WORKERS_LEAK,
		.bytes = FACT_WORKERS_LEAK_BYTES,
		.of = FACT_WORKERS_LEAK_OF,
		.who = "the loader workers",
		.grow = "grow",
		.process = "",
		.fix = "hold the data set's index in arrays (NumPy, Arrow) instead of lists or "
		       "dicts of "
		       "Python objects, so that forked workers share it; fewer workers; no cache "
		       "without a bound inside of the data set",
		.edit = "self.files = np.array(files)",
	};

	return growing_check(&g, f, o);
}

const struct rule worker_memory_growth_rule = { .cause = "worker_memory_growth",
						.needs_s = 0,
						.check = check };
