/* SPDX-License-Identifier: MIT
 *
 * The scenario's statements about what a GPU is; scenario_events.c has those about what happens to it.
 */
#include "scenario_words.h"

#include "base/auto.h"
#include "base/num.h"
#include "base/scan.h"
#include "base/text.h"

typedef struct scenario_line *line;
typedef struct scenario_device *device;

static int on_memory(line l, device d)
{
	int r = scenario_size(l, &d->about.memory_total);

	if (!r && d->about.memory_reserved > d->about.memory_total / 16)
		d->about.memory_reserved = d->about.memory_total / 128;
	return r;
}

static int on_reserved(line l, device d)
{
	return scenario_size(l, &d->about.memory_reserved);
}

static int on_used(line l, device d)
{
	return scenario_size(l, &d->ghost);
}

static int only_one(line l)
{
	if (l->scenario->n_devices - l->first_device > 1)
		return scenario_wrong(l, "several GPUs cannot share this: not with x N",
				      l->word[l->at - 1]);
	return 0;
}

static int on_uuid(line l, device d)
{
	int r = only_one(l);

	r = r ? r : scenario_text(l, d->about.uuid, 41 + 1);
	if (!r && strncmp(d->about.uuid, "GPU-", 4) != 0)
		return scenario_wrong(l, "a uuid starts with GPU-", d->about.uuid);
	return r;
}

static int on_serial(line l, device d)
{
	int r = only_one(l);

	return r ? r : scenario_text(l, d->about.serial, 30);
}

/* 0000:83:00.0 */
static int on_pci(line l, device d)
{
	const char *w = l->at < l->n ? l->word[l->at++] : "";
	struct scan s = scan_of(w, strlen(w));
	uint64_t domain, bus, slot, function;
	int r = only_one(l);

	if (r)
		return r;
	if (!scan_hex(&s, &domain) || !scan_lit(&s, ":") || !scan_hex(&s, &bus) ||
	    !scan_lit(&s, ":") || !scan_hex(&s, &slot) || !scan_lit(&s, ".") ||
	    !scan_hex(&s, &function) || !scan_end(&s) || domain > 0xffffffff || bus > 255 ||
	    slot > 31 || function)
		return scenario_wrong(l, "a place such as 0000:83:00.0 is wanted", w);
	d->about.domain = (uint32_t)domain;
	d->about.bus = (uint32_t)bus;
	d->about.device = (uint32_t)slot;
	return 0;
}

static int on_minor(line l, device d)
{
	return scenario_small(l, 0, 1023, &d->about.minor);
}

static int on_numa(line l, device d)
{
	return scenario_small(l, -1, 1023, &d->about.numa_node);
}

static int on_arch(line l, device d)
{
	static const char *const name[] = { "turing", "ampere", "ada", "hopper", "blackwell" };

	for (int i = 0; i < (int)ARRAY_LEN(name); i++) {
		if (!scenario_is(l, name[i]))
			continue;
		d->about.architecture = 6 + i;
		d->about.gpm = d->about.architecture >= 9;
		return 0;
	}
	return scenario_wrong(l, "arch is turing, ampere, ada, hopper or blackwell", NULL);
}

static int on_cc(line l, device d)
{
	const char *w = l->at < l->n ? l->word[l->at++] : "";
	struct scan s = scan_of(w, strlen(w));
	uint64_t major, minor;

	if (!scan_u64(&s, &major) || !scan_lit(&s, ".") || !scan_u64(&s, &minor) || !scan_end(&s) ||
	    major > 99 || minor > 99)
		return scenario_wrong(l, "a compute capability such as 9.0 is wanted", w);
	d->about.cc_major = (int)major;
	d->about.cc_minor = (int)minor;
	return 0;
}

/* Watts, in the record milliwatts. */
static int watts(line l, uint32_t *ret)
{
	int64_t v = 0;
	int r = scenario_int(l, 0, 100000, &v);

	*ret = (uint32_t)v * 1000;
	return r;
}

static int on_power(line l, device d)
{
	struct vgpu_about *a = &d->about;
	int from = l->at, r = 0;

	while (!r) {
		if (scenario_is(l, "idle"))
			r = watts(l, &a->power_idle_mw);
		else if (scenario_is(l, "max")) {
			r = watts(l, &a->power_max_mw);
			a->power_limit_mw = a->power_max_mw;
		} else if (scenario_is(l, "limit"))
			r = watts(l, &a->power_limit_mw);
		else
			break;
	}
	if (r)
		return r;
	if (l->at == from)
		return scenario_wrong(l, "power idle W, max W or limit W is wanted", NULL);
	if (a->power_idle_mw > a->power_limit_mw || a->power_limit_mw > a->power_max_mw)
		return scenario_wrong(l, "power must be idle <= limit <= max", NULL);
	if (a->power_min_mw > a->power_limit_mw || a->power_min_mw > a->power_max_mw / 2)
		a->power_min_mw = a->power_limit_mw / 2;
	return 0;
}

static int on_clocks(line l, device d)
{
	struct vgpu_about *a = &d->about;
	int from = l->at, r = 0;

	while (!r) {
		if (scenario_is(l, "sm"))
			r = scenario_mhz(l, &a->clock_sm_max);
		else if (scenario_is(l, "memory"))
			r = scenario_mhz(l, &a->clock_mem_max);
		else if (scenario_is(l, "idle"))
			r = scenario_mhz(l, &a->clock_sm_idle);
		else
			break;
	}
	if (r)
		return r;
	if (l->at == from || a->clock_sm_idle > a->clock_sm_max)
		return scenario_wrong(l, "clocks sm, memory and idle in MHz, idle <= sm", NULL);
	a->clock_video_max = a->clock_sm_max * 9 / 10;
	return 0;
}

static int on_temperature(line l, device d)
{
	int from = l->at, r = 0;

	while (!r) {
		if (scenario_is(l, "idle"))
			r = scenario_small(l, 0, 150, &d->temp_idle);
		else if (scenario_is(l, "full"))
			r = scenario_small(l, 0, 150, &d->temp_full);
		else if (scenario_is(l, "slowdown"))
			r = scenario_small(l, 0, 150, &d->about.temp_slowdown);
		else
			break;
	}
	if (!r && (l->at == from || d->temp_idle > d->temp_full))
		return scenario_wrong(l, "temperature idle, full and slowdown, idle <= full", NULL);
	d->about.temp_shutdown = d->about.temp_slowdown + 5;
	return r;
}

static int on_unified(line l, device d)
{
	(void)l;
	d->about.unified = true;
	return 0;
}

/* 3g.40gb: three slices of seven, 40 GB */
static bool partition(const char *w, struct vgpu_partition *ret)
{
	struct scan s = scan_of(w, strlen(w));
	uint64_t slices, gb;

	if (!scan_u64(&s, &slices) || !scan_lit(&s, "g.") || !scan_u64(&s, &gb) ||
	    !scan_lit(&s, "gb") || !scan_end(&s) || !slices || slices > 7 || !gb || gb > 1024)
		return false;
	ret->slices = (int)slices;
	ret->memory_total = gb << 30;
	return text_copy(ret->profile, sizeof(ret->profile), w);
}

static int on_mig(line l, device d)
{
	struct vgpu_about *a = &d->about;
	int slices = 0;
	uint64_t memory = 0;

	a->n_partitions = 0;
	while (l->at < l->n && a->n_partitions < VGPU_PARTITIONS) {
		struct vgpu_partition *p = &a->partition[a->n_partitions];

		memset(p, 0, sizeof(*p));
		if (!partition(l->word[l->at], p))
			break;
		l->at++;
		p->gi = ++a->n_partitions;
		slices += p->slices;
		memory += p->memory_total;
	}
	if (!a->n_partitions || slices > 7 || memory > a->memory_total)
		return scenario_wrong(l,
				      "mig wants profiles such as 3g.40gb: 7 slices and the "
				      "GPU's memory at most",
				      NULL);
	a->mig = true;
	return 0;
}

static int on_compute_mode(line l, device d)
{
	static const char *const name[] = { "default", "", "prohibited", "exclusive_process" };

	for (int i = 0; i < 4; i++) {
		d->about.compute_mode = i; /* NVML's numbers; 1 is gone */
		if (scenario_is(l, name[i]))
			return 0;
	}
	return scenario_wrong(l, "compute_mode is default, prohibited or exclusive_process", NULL);
}

static int on_no_ecc(line l, device d)
{
	(void)l;
	d->about.ecc = false;
	return 0;
}

static int on_no_gpm(line l, device d)
{
	(void)l;
	d->about.gpm = false;
	return 0;
}

static int on_nvlinks(line l, device d)
{
	return scenario_small(l, 0, 18, &d->about.nvlinks);
}

static int on_fan(line l, device d)
{
	(void)l;
	d->about.fans = 1;
	return 0;
}

static const struct {
	const char *name;
	int (*take)(line, device);
} statements[] = {
	{ "memory", on_memory },
	{ "reserved", on_reserved },
	{ "used", on_used },
	{ "uuid", on_uuid },
	{ "serial", on_serial },
	{ "pci", on_pci },
	{ "minor", on_minor },
	{ "numa", on_numa },
	{ "arch", on_arch },
	{ "cc", on_cc },
	{ "power", on_power },
	{ "clocks", on_clocks },
	{ "temperature", on_temperature },
	{ "unified", on_unified },
	{ "mig", on_mig },
	{ "compute_mode", on_compute_mode },
	{ "no_ecc", on_no_ecc },
	{ "no_gpm", on_no_gpm },
	{ "nvlinks", on_nvlinks },
	{ "fan", on_fan },
};

int scenario_device_statement(struct scenario_line *l, const char *name, struct scenario_device *d)
{
	for (size_t i = 0; i < ARRAY_LEN(statements); i++)
		if (strcmp(name, statements[i].name) == 0)
			return statements[i].take(l, d);
	return scenario_event_statement(l, name, d);
}
