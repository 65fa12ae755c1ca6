/* SPDX-License-Identifier: MIT
 *
 * /proc/stat, and lists of CPUs. Times are never negative and can be added up, a CPU's number is in
 * range, and the walk over the CPUs ends.
 */
#include "collect/cpu.h"
#include "collect/cpulist.h"
#include "fuzz.h"

static void check(const struct cpu_times *t)
{
	int64_t sum = 0;

	must(t->n >= 4 && t->n <= CPU_COLUMNS, "a line has four to eight columns");
	for (unsigned i = 0; i < t->n; i++) {
		must(t->ticks[i] >= 0, "no time is negative");
		must(!__builtin_add_overflow(sum, t->ticks[i], &sum), "times can be added up");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct scan s = scan_of((const char *)data, n);
	struct cpu_stat st = { .running = 4711 };
	struct cpulist list;
	struct cpu_times t;
	unsigned cpu;

	if (cpu_parse((const char *)data, n, &st) == 0)
		check(&st.total);
	else
		must(st.running == 4711, "a result is written only on success");
	while (cpu_next(&s, &cpu, &t)) {
		must(cpu <= CPU_NUMBER_MAX, "a CPU's number is in range");
		check(&t);
	}
	s = scan_of((const char *)data, n);
	if (cpulist_parse(&s, &list))
		must(cpulist_count(&list) <= CPULIST_CPUS, "no more CPUs than can be");
	return 0;
}
