/* SPDX-License-Identifier: MIT
 *
 * Intel GPUs through the files of i915 and xe, hwmon and fdinfo. How busy the whole GPU is stands in no
 * file (it takes perf counters and privileges): processes have their counted engine time instead.
 */
#include "base/err.h"
#include "base/text.h"
#include "gpu/backend.h"
#include "gpu/drm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const drivers[] = { "i915", "xe", NULL };

struct intel_energy {
	char pci[24];
	int64_t mj, taken_ns;
};

struct intel_state {
	struct drm_cards cards;
	struct drm_sweep sweep;
	struct intel_energy energy[GPU_DEVICES]; /* of the reading before */
};

static int intel_open(struct gpu_world *w, void *state, struct err *e)
{
	struct intel_state *a = state;

	(void)e;
	drm_find(w->root, 0x8086, drivers, &a->cards);
	return a->cards.n == 0 ? -ENOENT : 0;
}

static void intel_close(void *state)
{
	drm_sweep_done(&((struct intel_state *)state)->sweep);
}

/* Where a driver keeps what: the first graphics unit (gt0) is the one that computes; later ones of
 * newer GPUs do video only. i915 before 6.0 has no gt directory. */
struct layout {
	char dir[80], old[48], throttle[96]; /* "" none */
	const char *act, *cur, *max, *top;   /* in dir */
	bool xe;
};

static void layout_of(const struct drm_card *c, struct layout *l)
{
	*l = (struct layout){ .xe = strcmp(c->driver, "xe") == 0 };
	if (l->xe) {
		snprintf(l->dir, sizeof(l->dir), "%s/tile0/gt0/freq0", c->device);
		snprintf(l->throttle, sizeof(l->throttle), "%s/throttle", l->dir);
		l->act = "act_freq";
		l->cur = "cur_freq";
		l->max = "max_freq";
		l->top = "rp0_freq";
		return;
	}
	snprintf(l->dir, sizeof(l->dir), "%s/gt/gt0", c->top);
	snprintf(l->throttle, sizeof(l->throttle), "%s/gt/gt0", c->top);
	text_copy(l->old, sizeof(l->old), c->top);
	l->act = "rps_act_freq_mhz";
	l->cur = "rps_cur_freq_mhz";
	l->max = "rps_max_freq_mhz";
	l->top = "rps_RP0_freq_mhz";
}

static void with_old(const struct drm_reader *r, struct gpu_device *d, enum metric_id m,
		     const struct layout *l, const char *name, const char *old)
{
	drm_metric(r, d, m, l->dir, name, 1, 1);
	if (gpu_metric(d, m)->have == GPU_NOT_SUPPORTED && l->old[0])
		drm_metric(r, d, m, l->old, old, 1, 1);
}

/* The actual frequency is 0 while the unit is power-gated (RC6), and reading it wakes nothing; the
 * one asked for (cur) is taken only where the other is missing. */
static void clocks(const struct drm_reader *r, struct gpu_device *d, const struct layout *l,
		   bool maxima)
{
	int64_t limit;
	const struct gpu_cell *now = gpu_metric(d, M_GPU_CLOCK_SM),
			      *top = gpu_metric(d, M_GPU_CLOCK_SM_MAX);

	with_old(r, d, M_GPU_CLOCK_SM, l, l->act, "gt_act_freq_mhz");
	if (now->have == GPU_NOT_SUPPORTED)
		with_old(r, d, M_GPU_CLOCK_SM, l, l->cur, "gt_cur_freq_mhz");
	d->metric[M_GPU_CLOCK_GRAPHICS - GPU_METRIC_FIRST] = *now;
	if (!maxima)
		return;
	with_old(r, d, M_GPU_CLOCK_SM_MAX, l, l->top, "gt_RP0_freq_mhz");
	if (top->have == GPU_NOT_SUPPORTED)
		with_old(r, d, M_GPU_CLOCK_SM_MAX, l, l->max, "gt_max_freq_mhz");
	/* Somebody set a limit below what the GPU can do, and the GPU is at it. */
	if ((drm_number(r, l->dir, l->max, &limit) == GPU_KNOWN ||
	     (l->old[0] && drm_number(r, l->old, "gt_max_freq_mhz", &limit) == GPU_KNOWN)) &&
	    top->have == GPU_KNOWN && now->have == GPU_KNOWN)
		gpu_put(d, M_GPU_SLOW_SETTING, limit < top->raw && now->raw >= limit);
	else
		gpu_lacks(d, M_GPU_SLOW_SETTING, GPU_NOT_SUPPORTED);
}

/* One file a reason, "0" or "1" (i915 5.19: throttle_reason_pl1; xe 6.8: reason_pl1). Puts whether one
 * of them holds; those that are missing do not count, unless all are. */
static void reason(const struct drm_reader *r, struct gpu_device *d, enum metric_id m,
		   const struct layout *l, const char *const *names)
{
	enum gpu_have worst = GPU_NOT_SUPPORTED;
	bool known = false, holds = false;

	for (; names[0]; names += 2) {
		int64_t v;
		enum gpu_have have = drm_number(r, l->throttle, names[l->xe], &v);

		if (have == GPU_KNOWN && v != 0 && v != 1)
			have = GPU_FAILED;
		known |= have == GPU_KNOWN;
		holds |= have == GPU_KNOWN && v == 1;
		if (have != GPU_KNOWN && have != GPU_NOT_SUPPORTED)
			worst = have;
	}
	if (known)
		gpu_put(d, m, holds);
	else
		gpu_lacks(d, m, worst);
}

#define REASON(name) "throttle_reason_" name, "reason_" name

static void reasons(const struct drm_reader *r, struct gpu_device *d, const struct layout *l)
{
	static const char *const power[] = { REASON("pl1"), REASON("pl2"), NULL };
	static const char *const brake[] = { REASON("pl4"), REASON("vr_tdc"), NULL };
	static const char *const heat[] = { REASON("thermal"), REASON("ratl"), NULL };
	static const char *const pin[] = { REASON("prochot"), REASON("vr_thermalert"), NULL };
	const struct gpu_cell *a = gpu_metric(d, M_GPU_SLOW_BRAKE),
			      *b = gpu_metric(d, M_GPU_SLOW_HEAT_HW);

	reason(r, d, M_GPU_SLOW_POWER, l, power);
	reason(r, d, M_GPU_SLOW_BRAKE, l, brake);
	reason(r, d, M_GPU_SLOW_HEAT, l, heat);
	reason(r, d, M_GPU_SLOW_HEAT_HW, l, pin);
	if (a->have == GPU_KNOWN && b->have == GPU_KNOWN)
		gpu_put(d, M_GPU_SLOW_HW, a->raw || b->raw);
	else
		gpu_lacks(d, M_GPU_SLOW_HW, GPU_NOT_SUPPORTED);
}

/* energy1_input in uJ: of the card; xe has the package as well (energy2), and on some only that. Power
 * is what came to it since the reading before. */
static void energy(const struct drm_reader *r, struct gpu_device *d, struct intel_energy *was,
		   int64_t taken_ns)
{
	const struct gpu_cell *e = gpu_metric(d, M_GPU_ENERGY);
	int64_t elapsed = taken_ns - was->taken_ns;
	bool same = was->taken_ns != 0 && strcmp(was->pci, r->card->pci) == 0;

	drm_metric(r, d, M_GPU_ENERGY, r->card->hwmon, "energy1_input", 1, 1000);
	if (e->have == GPU_NOT_SUPPORTED)
		drm_metric(r, d, M_GPU_ENERGY, r->card->hwmon, "energy2_input", 1, 1000);
	drm_metric(r, d, M_GPU_POWER, r->card->hwmon, "power1_input", 1, 1000);
	if (gpu_metric(d, M_GPU_POWER)->have == GPU_KNOWN)
		return;
	if (e->have != GPU_KNOWN) {
		gpu_lacks(d, M_GPU_POWER, (enum gpu_have)e->have);
		return;
	}
	if (same && elapsed > 0 && e->raw >= was->mj) {
		double mw = (double)(e->raw - was->mj) * 1e9 / (double)elapsed;

		/* Of a counter that jumped: no GPU draws a megawatt. */
		if (mw < 1e9)
			gpu_put(d, M_GPU_POWER, (int64_t)(mw + 0.5));
		else
			gpu_lacks(d, M_GPU_POWER, GPU_FAILED);
	} else {
		gpu_lacks(d, M_GPU_POWER, GPU_NOT_ASKED);
	}
	*was = (struct intel_energy){ .mj = e->raw, .taken_ns = taken_ns };
	text_copy(was->pci, sizeof(was->pci), r->card->pci);
}

/* i915 has one sensor; xe labels them: "pkg", "vram", "mctrl". */
static void temperatures(const struct drm_reader *r, struct gpu_device *d)
{
	static const char *const label[] = { "temp1_label", "temp2_label", "temp3_label" };
	static const char *const input[] = { "temp1_input", "temp2_input", "temp3_input" };
	static const char *const crit[] = { "temp1_crit", "temp2_crit", "temp3_crit" };
	int package = 0, vram = -1;

	for (int i = 0; i < 3; i++) {
		char text[32];

		(void)drm_text(r, r->card->hwmon, label[i], text, sizeof(text));
		if (strcmp(text, "pkg") == 0)
			package = i;
		else if (strcmp(text, "vram") == 0)
			vram = i;
	}
	drm_metric(r, d, M_GPU_TEMPERATURE, r->card->hwmon, input[package], 1, 1000);
	drm_metric(r, d, M_GPU_TEMP_SLOWDOWN, r->card->hwmon, crit[package], 1, 1000);
	if (vram >= 0)
		drm_metric(r, d, M_GPU_TEMP_MEM, r->card->hwmon, input[vram], 1, 1000);
	else
		gpu_lacks(d, M_GPU_TEMP_MEM, GPU_NOT_SUPPORTED);
}

/* hwmon tells turns a minute; a share of the maximum only where that is told too. */
static void fan(const struct drm_reader *r, struct gpu_device *d)
{
	int64_t now, max;
	enum gpu_have have = drm_number(r, r->card->hwmon, "fan1_input", &now);

	if (have == GPU_KNOWN)
		have = drm_number(r, r->card->hwmon, "fan1_max", &max);
	if (have == GPU_KNOWN && max > 0 && now >= 0 && now <= max && now < 1000000)
		gpu_put(d, M_GPU_FAN, now * 10000 / max);
	else
		gpu_lacks(d, M_GPU_FAN, have == GPU_KNOWN ? GPU_FAILED : have);
}

/* Memory of the card: xe has the size in a file, i915 only in Intel's own builds. */
static void memory(const struct drm_reader *r, struct gpu_device *d)
{
	int64_t available;
	const struct gpu_cell *total = gpu_metric(d, M_GPU_MEM_TOTAL);

	gpu_lacks(d, M_GPU_MEM_USED, GPU_NOT_SUPPORTED);
	gpu_lacks(d, M_GPU_MEM_FREE, GPU_NOT_SUPPORTED);
	drm_metric(r, d, M_GPU_MEM_TOTAL, r->card->device, "tile0/physical_vram_size_bytes", 1,
		   1024);
	if (total->have != GPU_NOT_SUPPORTED)
		return;
	drm_metric(r, d, M_GPU_MEM_TOTAL, r->card->top, "lmem_total_bytes", 1, 1024);
	if (total->have != GPU_KNOWN ||
	    drm_number(r, r->card->top, "lmem_avail_bytes", &available) != GPU_KNOWN ||
	    available < 0 || available / 1024 > total->raw)
		return;
	gpu_put(d, M_GPU_MEM_FREE, available / 1024);
	gpu_put(d, M_GPU_MEM_USED, total->raw - available / 1024);
}

/* A limit of 0 is none (PL1 switched off). */
static void power_limit(const struct drm_reader *r, struct gpu_device *d)
{
	const struct gpu_cell *limit = gpu_metric(d, M_GPU_POWER_LIMIT);

	drm_metric(r, d, M_GPU_POWER_LIMIT, r->card->hwmon, "power1_max", 1, 1000);
	if (limit->have == GPU_NOT_SUPPORTED)
		drm_metric(r, d, M_GPU_POWER_LIMIT, r->card->hwmon, "power2_max", 1, 1000);
	if (limit->have == GPU_KNOWN && limit->raw == 0)
		gpu_lacks(d, M_GPU_POWER_LIMIT, GPU_NOT_SUPPORTED);
}

static void lacking(struct gpu_device *d)
{
	static const enum metric_id none[] = {
		M_GPU_BUSY,          M_GPU_MEM_BUSY,        M_GPU_SM_ACTIVE,
		M_GPU_SM_OCCUPANCY,  M_GPU_TENSOR_ACTIVE,   M_GPU_DRAM_ACTIVE,
		M_GPU_FP16_ACTIVE,   M_GPU_FP32_ACTIVE,     M_GPU_ENCODER,
		M_GPU_DECODER,       M_GPU_MEM_RESERVED,    M_GPU_MEM_SHARED_USED,
		M_GPU_CLOCK_MEM,     M_GPU_CLOCK_VIDEO,     M_GPU_CLOCK_MEM_MAX,
		M_GPU_SLOW_IDLE,     M_GPU_SLOW_SYNC,       M_GPU_HELD_POWER,
		M_GPU_HELD_HEAT,     M_GPU_PCIE_TX,         M_GPU_PCIE_RX,
		M_GPU_PCIE_REPLAYS,  M_GPU_NVLINK_TX,       M_GPU_NVLINK_RX,
		M_GPU_ECC_CORRECTED, M_GPU_ECC_UNCORRECTED, M_GPU_XIDS,
	};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		gpu_lacks(d, none[i], GPU_NOT_SUPPORTED);
}

/* The integrated GPU has been device 2 of bus 0 since there is one. */
static bool is_integrated(const struct drm_card *c)
{
	return strcmp(c->pci, "0000:00:02.0") == 0;
}

static void read_card(const struct drm_reader *r, struct intel_state *a, enum gpu_depth depth,
		      int64_t taken_ns, struct gpu_device *d)
{
	bool asleep = drm_asleep(r);
	struct layout l;

	layout_of(r->card, &l);
	lacking(d);
	drm_common(r, d, depth, asleep);
	snprintf(d->name, sizeof(d->name), "Intel GPU 0x%04x", r->card->device_id);
	d->unified = is_integrated(r->card);
	if (depth >= GPU_ALL)
		gpu_put_number(d, GPU_P_COUNT, a->cards.n);
	/* Sizes are kept in memory. */
	memory(r, d);
	if (asleep) {
		text_copy(d->mode, sizeof(d->mode), "suspended");
		return;
	}
	clocks(r, d, &l, depth >= GPU_SLOW);
	reasons(r, d, &l);
	energy(r, d, &a->energy[r->index], taken_ns);
	if (depth >= GPU_MIDDLE) {
		temperatures(r, d);
		fan(r, d);
	}
	if (depth >= GPU_SLOW)
		power_limit(r, d);
	if (depth >= GPU_ALL)
		drm_property(r, d, GPU_P_POWER_LIMIT_DEFAULT, r->card->hwmon, "power1_rated_max",
			     1000);
}

static int intel_read(struct gpu_world *w, void *state, enum gpu_depth depth,
		      struct gpu_snapshot *s)
{
	struct intel_state *a = state;
	int first = s->n_devices;

	if (!w->live || depth >= GPU_SLOW)
		drm_find(w->root, 0x8086, drivers, &a->cards);
	if (a->cards.n == 0)
		return -ENODEV;
	for (int i = 0; i < a->cards.n; i++) {
		struct drm_reader r = { .w = w, .card = &a->cards.card[i], .index = i };
		struct gpu_device *d = gpu_add_device(s, GPU_INTEL);

		if (!d) {
			a->cards.n = i;
			break;
		}
		d->index = (int16_t)i;
		if (gpu_skipped(w, r.card->pci)) {
			d->state = GPU_HUNG;
			d->unified = is_integrated(r.card);
			text_safe_copy(d->pci, sizeof(d->pci), r.card->pci);
			snprintf(d->name, sizeof(d->name), "Intel GPU 0x%04x", r.card->device_id);
			continue;
		}
		read_card(&r, a, depth, s->taken_ns, d);
	}
	if (depth >= GPU_MIDDLE)
		drm_processes(w, &a->sweep, &a->cards, first, s);
	return 0;
}

extern const struct gpu_backend intel_backend;
const struct gpu_backend intel_backend = {
	.name = "intel",
	.vendor = GPU_INTEL,
	.state_size = sizeof(struct intel_state),
	.open = intel_open,
	.read = intel_read,
	.close = intel_close,
};
