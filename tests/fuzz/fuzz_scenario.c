/* SPDX-License-Identifier: MIT
 *
 * Scenarios of the virtual GPU: what is taken has its counts within the arrays, names that end and
 * figures that the model can divide by; what is not says why.
 */
#include "base/err.h"
#include "fuzz.h"
#include "scenario.h"

#include <string.h>

static void check(const struct scenario_device *d)
{
	const struct vgpu_about *a = &d->about;

	must(memchr(a->name, 0, sizeof(a->name)) && memchr(a->uuid, 0, sizeof(a->uuid)) &&
		 memchr(a->serial, 0, sizeof(a->serial)),
	     "texts end");
	must(a->clock_sm_max > 0 && a->clock_sm_idle <= a->clock_sm_max, "clocks have an order");
	must(a->power_idle_mw <= a->power_limit_mw && a->power_limit_mw <= a->power_max_mw,
	     "powers have an order");
	must(a->memory_reserved <= a->memory_total && d->ghost <= a->memory_total,
	     "there is no more memory than there is");
	must(a->n_partitions >= 0 && a->n_partitions <= VGPU_PARTITIONS, "partitions fit");
	must(d->n_loads <= SCENARIO_WINDOWS && d->n_slows <= SCENARIO_WINDOWS &&
		 d->n_eccs <= SCENARIO_WINDOWS && d->n_xids <= SCENARIO_WINDOWS &&
		 d->n_calls <= SCENARIO_CALLS && d->n_guests <= SCENARIO_GUESTS,
	     "rows fit");
	for (int i = 0; i < d->n_loads; i++)
		must(d->load[i].busy >= 0 && d->load[i].busy <= 1, "a share is a share");
	for (int i = 0; i < d->n_slows; i++)
		must(d->slow[i].clock > 0 && d->slow[i].reasons,
		     "a slow GPU has a clock and a reason");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct scenario s; /* 200 KB */
	struct err e = { 0 };
	int r = scenario_parse((const char *)data, n, &s, &e);

	must(r == 0 || e.text[0], "what is refused has a reason");
	must(s.n_devices >= 0 && s.n_devices <= VGPU_DEVICES, "devices fit");
	for (int i = 0; r == 0 && i < s.n_devices; i++)
		check(&s.device[i]);
	return 0;
}
