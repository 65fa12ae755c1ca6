/* SPDX-License-Identifier: MIT
 *
 * Memory that a vendor library may have written over. The input is the head of the snapshot, and goes on
 * from there again and again to its end.
 */
#include "fuzz.h"
#include "gpu/gpu.h"

#include <string.h>

static bool yes_or_no(const bool *b)
{
	unsigned char v;

	memcpy(&v, b, 1);
	return v <= 1;
}

#define ENDS(text) must(memchr(text, '\0', sizeof(text)), "texts end: " #text)

static void check_device(const struct gpu_snapshot *s, const struct gpu_device *d)
{
	ENDS(d->name);
	ENDS(d->uuid);
	ENDS(d->pci);
	ENDS(d->driver);
	ENDS(d->runtime);
	ENDS(d->mode);
	ENDS(d->profile);
	must(d->vendor < GPU_VENDORS && d->state < GPU_HAVES, "a vendor and a state");
	must(d->parent >= -1 && d->parent < s->n_devices, "a parent is a row");
	must(d->partition >= -1, "no partition is -1");
	must(yes_or_no(&d->simulated) && yes_or_no(&d->unified) && yes_or_no(&d->partitioned),
	     "yes or no");
	for (int i = 0; i < GPU_METRICS; i++)
		must(d->metric[i].have < GPU_HAVES, "there or why not");
	for (int i = 0; i < GPU_PROPERTIES; i++) {
		must(d->property[i].have < GPU_HAVES, "there or why not");
		ENDS(d->property[i].text);
	}
}

static void check(const struct gpu_snapshot *s)
{
	must(s->n_devices >= 0 && s->n_devices <= GPU_DEVICES, "devices fit");
	must(s->n_processes >= 0 && s->n_processes <= GPU_PROCESSES, "processes fit");
	must(s->processes_left_out >= 0, "as many as were left out");
	must(s->taken_ns >= 0 && s->ended_ns >= 0 && yes_or_no(&s->whole), "a time is one");
	for (int i = 0; i < s->n_devices; i++)
		check_device(s, &s->device[i]);
	for (int i = 0; i < s->n_processes; i++) {
		const struct gpu_process *p = &s->process[i];

		must(p->device >= 0 && p->device < s->n_devices, "a process is on a device");
		must(p->memory_kb >= -1 && p->busy >= -1 && p->time_ns >= -1, "absent is -1");
		must(yes_or_no(&p->graphics), "yes or no");
		ENDS(p->name);
	}
	for (int i = 0; i < GPU_NOTES; i++)
		must(s->note[i].device >= -1 && s->note[i].device < s->n_devices,
		     "a note is about a device or none");
	for (int i = 0; i < GPU_VENDORS; i++)
		ENDS(s->problem[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct gpu_snapshot s;
	char *to = (char *)&s;

	memset(&s, 0, sizeof(s));
	for (size_t at = 0, take; n && at < sizeof(s); at += take) {
		take = n < sizeof(s) - at ? n : sizeof(s) - at;
		memcpy(to + at, data, take);
	}
	gpu_snapshot_check(&s);
	check(&s);
	return 0;
}
