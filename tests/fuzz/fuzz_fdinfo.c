/* SPDX-License-Identifier: MIT
 *
 * /proc/PID/fdinfo/N of a GPU's device file.
 */
#include "fuzz.h"
#include "gpu/fdinfo.h"

#include <string.h>

static void check_engines(const struct fdinfo *f)
{
	must(f->n_engines >= 0 && f->n_engines <= FDINFO_ENGINES, "engines fit");
	for (int i = 0; i < f->n_engines; i++) {
		const struct fdinfo_engine *e = &f->engine[i];

		must(memchr(e->name, '\0', sizeof(e->name)) && e->name[0], "an engine has a name");
		must(e->time_ns >= -1 && e->cycles >= -1 && e->total >= -1, "absent is -1");
		must(e->capacity >= 1 && e->capacity <= 1024, "there is an engine of each kind");
	}
}

static void check_regions(const struct fdinfo *f)
{
	must(f->n_regions >= 0 && f->n_regions <= FDINFO_REGIONS, "regions fit");
	for (int i = 0; i < f->n_regions; i++) {
		const struct fdinfo_region *r = &f->region[i];

		must(memchr(r->name, '\0', sizeof(r->name)) && r->name[0], "a region has a name");
		must(r->memory >= -1 && r->total >= -1 && r->resident >= -1, "absent is -1");
	}
	must(fdinfo_device_kb(f) >= -1 && fdinfo_shared_kb(f) >= -1, "sums do not overflow");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = malloc(n ? n : 1); /* no byte more: what is read beyond it is seen */
	struct fdinfo f;

	if (!text)
		return 0;
	memcpy(text, data, n);
	if (fdinfo_parse(text, n, &f))
		must(f.pdev[0], "a DRM file is some device's");
	must(memchr(f.pdev, '\0', sizeof(f.pdev)) && memchr(f.driver, '\0', sizeof(f.driver)),
	     "texts end");
	must(f.share >= -1 && f.share <= 10000, "a share is one");
	check_engines(&f);
	check_regions(&f);
	free(text);
	return 0;
}
