/* SPDX-License-Identifier: MIT
 *
 * /proc/meminfo, vmstat, loadavg: a value is absent (-1) or not negative, and a failed parse writes
 * nothing.
 */
#include "collect/load.h"
#include "collect/mem.h"
#include "collect/vmstat.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *text = (const char *)data;
	struct mem m = { .kib = { 4711 } };
	struct vmstat v = { .value = { 4711 } };
	struct load l = { .avg = { 4711 } };

	if (mem_parse(text, n, &m) == 0)
		for (int i = 0; i < MEM_KEYS; i++)
			must(m.kib[i] >= (i ? -1 : 0), "memory is absent or not negative");
	else
		must(m.kib[0] == 4711, "a result is written only on success");
	if (vmstat_parse(text, n, &v) == 0)
		for (int i = 0; i < VMSTAT_KEYS; i++)
			must(v.value[i] >= -1, "a counter is absent or not negative");
	else
		must(v.value[0] == 4711, "a result is written only on success");
	if (load_parse(text, n, &l) == 0)
		for (int i = 0; i < 3; i++)
			must(l.avg[i] >= 0, "a load is not negative");
	else
		must(l.avg[0] == 4711, "a result is written only on success");
	return 0;
}
