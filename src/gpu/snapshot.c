/* SPDX-License-Identifier: MIT */
#include "base/text.h"
#include "gpu/gpu.h"

#include <string.h>

const struct gpu_property_info gpu_properties[GPU_PROPERTIES] = {
#define PROPERTY(id_, name_, type_, help_) [GPU_P_##id_] = { name_, GPU_##type_, help_ },
#include "gpu/property.def"
#undef PROPERTY
};

const char *gpu_vendor_name(enum gpu_vendor v)
{
	static const char *const names[] = {
		[GPU_NVIDIA] = "nvidia", [GPU_AMD] = "amd", [GPU_INTEL] = "intel"
	};

	return (unsigned)v < GPU_VENDORS ? names[v] : "unknown";
}

const char *gpu_compute_mode_name(int64_t mode)
{
	/* nvmlComputeMode_t, in the words of nvidia-smi. */
	static const char *const names[] = { "Default", "Exclusive_Thread", "Prohibited",
					     "Exclusive_Process" };

	return mode >= 0 && mode < 4 ? names[mode] : NULL;
}

struct gpu_device *gpu_add_device(struct gpu_snapshot *s, enum gpu_vendor v)
{
	struct gpu_device *d;

	if (s->n_devices >= GPU_DEVICES)
		return NULL;
	d = &s->device[s->n_devices++];
	memset(d, 0, sizeof(*d));
	d->vendor = (uint8_t)v;
	d->state = GPU_KNOWN;
	d->partition = d->parent = -1;
	d->instance = d->compute_instance = -1;
	return d;
}

int gpu_number(const struct gpu_snapshot *s, int row)
{
	const struct gpu_device *d = &s->device[row];
	int before = 0;

	for (int v = 0; v < d->vendor; v++) {
		int highest = -1;

		for (int i = 0; i < s->n_devices; i++)
			if (s->device[i].vendor == v && s->device[i].index > highest)
				highest = s->device[i].index;
		before += highest + 1;
	}
	return before + d->index;
}

void gpu_put(struct gpu_device *d, enum metric_id m, int64_t raw)
{
	d->metric[m - GPU_METRIC_FIRST] = (struct gpu_cell){ .raw = raw, .have = GPU_KNOWN };
}

void gpu_lacks(struct gpu_device *d, enum metric_id m, enum gpu_have why)
{
	d->metric[m - GPU_METRIC_FIRST] = (struct gpu_cell){ .have = (uint8_t)why };
}

void gpu_put_number(struct gpu_device *d, enum gpu_property_id p, int64_t v)
{
	d->property[p].number = v;
	d->property[p].have = GPU_KNOWN;
}

void gpu_put_text(struct gpu_device *d, enum gpu_property_id p, const char *text)
{
	text_safe_copy(d->property[p].text, sizeof(d->property[p].text), text);
	d->property[p].have = GPU_KNOWN;
}

void gpu_lacks_property(struct gpu_device *d, enum gpu_property_id p, enum gpu_have why)
{
	d->property[p].have = (uint8_t)why;
}

struct gpu_process *gpu_add_process(struct gpu_snapshot *s, int device, int32_t pid)
{
	struct gpu_process *p;

	if (s->n_processes >= GPU_PROCESSES) {
		s->processes_left_out++;
		return NULL;
	}
	p = &s->process[s->n_processes++];
	*p = (struct gpu_process){ .device = (int16_t)device,
				   .pid = pid,
				   .memory_kb = -1,
				   .busy = -1,
				   .encoder = -1,
				   .decoder = -1,
				   .time_ns = -1 };
	return p;
}

void gpu_note(struct gpu_snapshot *s, enum gpu_note_kind kind, int device, int64_t code)
{
	uint64_t newest = 0;

	for (int i = 0; i < GPU_NOTES; i++)
		if (s->note[i].number > newest)
			newest = s->note[i].number;
	newest++;
	s->note[newest % GPU_NOTES] = (struct gpu_note){
		.number = newest, .kind = (uint8_t)kind, .device = (int16_t)device, .code = code
	};
}

#define END_TEXT(t) ((t)[sizeof(t) - 1] = '\0')

/* A bool that holds anything but 0 and 1 may not even be looked at. */
static void check_bool(bool *b)
{
	unsigned char v;

	memcpy(&v, b, 1);
	*b = v != 0;
}

static void at_least(int64_t *v, int64_t least)
{
	if (*v < least)
		*v = least;
}

static void check_device(struct gpu_snapshot *s, struct gpu_device *d)
{
	END_TEXT(d->name);
	END_TEXT(d->uuid);
	END_TEXT(d->pci);
	END_TEXT(d->driver);
	END_TEXT(d->runtime);
	END_TEXT(d->mode);
	END_TEXT(d->profile);
	check_bool(&d->simulated);
	check_bool(&d->unified);
	check_bool(&d->partitioned);
	if (d->partition < -1)
		d->partition = -1;
	if (d->vendor >= GPU_VENDORS)
		d->vendor = GPU_NVIDIA;
	if (d->state >= GPU_HAVES)
		d->state = GPU_FAILED;
	if (d->parent < -1 || d->parent >= s->n_devices)
		d->parent = -1;
	for (int i = 0; i < GPU_METRICS; i++)
		if (d->metric[i].have >= GPU_HAVES)
			d->metric[i].have = GPU_FAILED;
	for (int i = 0; i < GPU_PROPERTIES; i++) {
		END_TEXT(d->property[i].text);
		if (d->property[i].have >= GPU_HAVES)
			d->property[i].have = GPU_FAILED;
	}
}

static void check_process(struct gpu_process *p)
{
	END_TEXT(p->name);
	check_bool(&p->graphics);
	at_least(&p->memory_kb, -1);
	at_least(&p->busy, -1);
	at_least(&p->encoder, -1);
	at_least(&p->decoder, -1);
	at_least(&p->time_ns, -1);
}

void gpu_snapshot_check(struct gpu_snapshot *s)
{
	/* Times are subtracted from one another. */
	at_least(&s->taken_ns, 0);
	at_least(&s->ended_ns, 0);
	check_bool(&s->whole);
	if (s->processes_left_out < 0)
		s->processes_left_out = 0;
	if (s->n_devices < 0 || s->n_devices > GPU_DEVICES)
		s->n_devices = 0;
	if (s->n_processes < 0 || s->n_processes > GPU_PROCESSES)
		s->n_processes = 0;
	for (int i = 0; i < s->n_devices; i++)
		check_device(s, &s->device[i]);
	for (int i = 0; i < s->n_processes; i++) {
		struct gpu_process *p = &s->process[i];

		check_process(p);
		if (p->device < 0 || p->device >= s->n_devices) {
			*p = s->process[--s->n_processes];
			i--;
		}
	}
	for (int i = 0; i < GPU_NOTES; i++)
		if (s->note[i].device < -1 || s->note[i].device >= s->n_devices)
			s->note[i].device = -1;
	for (int i = 0; i < GPU_VENDORS; i++)
		END_TEXT(s->problem[i]);
}
