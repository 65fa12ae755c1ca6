/* SPDX-License-Identifier: MIT
 *
 * AMD GPUs through amdgpu's sysfs files, its hwmon and fdinfo. Every file is optional: which there are
 * depends on the GPU and on the kernel.
 */
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "gpu/amd_parse.h"
#include "gpu/backend.h"
#include "gpu/drm.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char *const drivers[] = { "amdgpu", NULL };

struct amd_traffic {
	char pci[24];
	int64_t rx, tx; /* bytes a second */
	uint8_t have;
};

struct amd_state {
	struct drm_cards cards;
	struct drm_sweep sweep;
	/* pcie_bw, from the slow thread */
	pthread_mutex_t lock;
	int n_traffic;
	struct amd_traffic traffic[GPU_DEVICES];
};

static int amd_open(struct gpu_world *w, void *state, struct err *e)
{
	struct amd_state *a = state;

	(void)e;
	drm_find(w->root, 0x1002, drivers, &a->cards);
	if (a->cards.n == 0)
		return -ENOENT;
	return -pthread_mutex_init(&a->lock, NULL);
}

static void amd_close(void *state)
{
	struct amd_state *a = state;

	drm_sweep_done(&a->sweep);
	(void)pthread_mutex_destroy(&a->lock);
}

/* In memory of the driver or of its firmware tables: no hardware is touched. */
static void identity(const struct drm_reader *r, struct gpu_device *d)
{
	char text[96];

	if (drm_text(r, r->card->device, "product_name", text, sizeof(text)) > 0)
		text_safe_copy(d->name, sizeof(d->name), text);
	else
		snprintf(d->name, sizeof(d->name), "AMD GPU 0x%04x", r->card->device_id);
	/* As ROCm writes it: GPU-%016x. */
	if (drm_text(r, r->card->device, "unique_id", text, sizeof(text)) > 0) {
		char uuid[112];

		snprintf(uuid, sizeof(uuid), "GPU-%s", text);
		text_safe_copy(d->uuid, sizeof(d->uuid), uuid);
	}
}

/* Of the driver's own book-keeping: this never wakes a GPU. */
static void memory(const struct drm_reader *r, struct gpu_device *d)
{
	const char *dev = r->card->device;
	const struct gpu_cell *total = gpu_metric(d, M_GPU_MEM_TOTAL),
			      *used = gpu_metric(d, M_GPU_MEM_USED);

	drm_metric(r, d, M_GPU_MEM_TOTAL, dev, "mem_info_vram_total", 1, 1024);
	drm_metric(r, d, M_GPU_MEM_USED, dev, "mem_info_vram_used", 1, 1024);
	drm_metric(r, d, M_GPU_MEM_SHARED_USED, dev, "mem_info_gtt_used", 1, 1024);
	if (total->have == GPU_KNOWN && used->have == GPU_KNOWN && used->raw <= total->raw)
		gpu_put(d, M_GPU_MEM_FREE, total->raw - used->raw);
	else
		gpu_lacks(d, M_GPU_MEM_FREE,
			  total->have != GPU_KNOWN ? (enum gpu_have)total->have : GPU_FAILED);
}

/* hwmon has the clock in Hz on most; pp_dpm_* marks the level in use. */
static void clock_now(const struct drm_reader *r, struct gpu_device *d, enum metric_id m,
		      const char *hertz, const char *levels)
{
	char text[2048];
	struct amd_clocks c;
	int64_t hz;
	ssize_t n;

	if (drm_number(r, r->card->hwmon, hertz, &hz) == GPU_KNOWN && hz >= 0) {
		gpu_put(d, m, hz / 1000000);
		return;
	}
	n = drm_text(r, r->card->device, levels, text, sizeof(text));
	if (n >= 0 && amd_clocks_parse(text, (size_t)n, &c) && c.now >= 0)
		gpu_put(d, m, c.now);
	else
		gpu_lacks(d, m, n < 0 ? drm_have((int)n) : GPU_NOT_SUPPORTED);
}

static void clock_max(const struct drm_reader *r, struct gpu_device *d, enum metric_id m,
		      const char *levels)
{
	char text[2048];
	struct amd_clocks c;
	ssize_t n = drm_text(r, r->card->device, levels, text, sizeof(text));

	if (n >= 0 && amd_clocks_parse(text, (size_t)n, &c))
		gpu_put(d, m, c.max);
	else
		gpu_lacks(d, m, n < 0 ? drm_have((int)n) : GPU_NOT_SUPPORTED);
}

static void put_flag(struct gpu_device *d, enum metric_id m, int reasons, int which)
{
	if (reasons >= 0)
		gpu_put(d, m, (reasons & which) != 0);
	else
		gpu_lacks(d, m, GPU_NOT_SUPPORTED);
}

/* The firmware's table: why clocks are held, and energy where it counts it. */
static void firmware_table(const struct drm_reader *r, struct gpu_device *d)
{
	char path[80], data[4096];
	struct amd_table t = { .throttle = -1, .energy_mj = -1 };
	ssize_t n;

	snprintf(path, sizeof(path), "%s/gpu_metrics", r->card->device);
	gpu_call_begin(r->w, r->lane, "gpu_metrics", r->card->pci, r->index);
	n = io_read(r->w->root, path, data, sizeof(data));
	gpu_call_end(r->w, r->lane);
	if (n > 0 && amd_table_parse(data, (size_t)n, &t))
		d->unified = t.integrated;
	put_flag(d, M_GPU_SLOW_POWER, t.throttle, AMD_THROTTLE_POWER);
	put_flag(d, M_GPU_SLOW_BRAKE, t.throttle, AMD_THROTTLE_CURRENT);
	put_flag(d, M_GPU_SLOW_HEAT, t.throttle, AMD_THROTTLE_HEAT);
	put_flag(d, M_GPU_SLOW_HEAT_HW, t.throttle, AMD_THROTTLE_HOT_PIN);
	put_flag(d, M_GPU_SLOW_HW, t.throttle, AMD_THROTTLE_CURRENT | AMD_THROTTLE_HOT_PIN);
	if (t.energy_mj >= 0)
		gpu_put(d, M_GPU_ENERGY, t.energy_mj);
	else
		gpu_lacks(d, M_GPU_ENERGY, n < 0 ? drm_have((int)n) : GPU_NOT_SUPPORTED);
}

static void fast(const struct drm_reader *r, struct gpu_device *d)
{
	const char *dev = r->card->device, *hw = r->card->hwmon;
	const struct gpu_cell *busy = gpu_metric(d, M_GPU_BUSY);

	drm_metric(r, d, M_GPU_BUSY, dev, "gpu_busy_percent", 100, 1);
	if (busy->have == GPU_LOST)
		d->state = GPU_LOST;
	drm_metric(r, d, M_GPU_MEM_BUSY, dev, "mem_busy_percent", 100, 1);
	/* Newer kernels have an instant value where older ones have a mean. */
	drm_metric(r, d, M_GPU_POWER, hw, "power1_average", 1, 1000);
	if (gpu_metric(d, M_GPU_POWER)->have != GPU_KNOWN)
		drm_metric(r, d, M_GPU_POWER, hw, "power1_input", 1, 1000);
	clock_now(r, d, M_GPU_CLOCK_SM, "freq1_input", "pp_dpm_sclk");
	d->metric[M_GPU_CLOCK_GRAPHICS - GPU_METRIC_FIRST] = *gpu_metric(d, M_GPU_CLOCK_SM);
	clock_now(r, d, M_GPU_CLOCK_MEM, "freq2_input", "pp_dpm_mclk");
	firmware_table(r, d);
}

/* Sensors are told apart by their label: "edge", "junction" (the hottest spot), "mem". The slowdown
 * temperature is that of the sensor that is shown. */
static void temperatures(const struct drm_reader *r, struct gpu_device *d)
{
	static const char *const label[] = { "temp1_label", "temp2_label", "temp3_label" };
	static const char *const input[] = { "temp1_input", "temp2_input", "temp3_input" };
	static const char *const crit[] = { "temp1_crit", "temp2_crit", "temp3_crit" };
	static const char *const emergency[] = { "temp1_emergency", "temp2_emergency",
						 "temp3_emergency" };
	int edge = -1, junction = -1, mem = -1;
	bool labelled = false;

	for (int i = 0; i < 3; i++) {
		char text[32];
		ssize_t n = drm_text(r, r->card->hwmon, label[i], text, sizeof(text));

		if (n < 0)
			continue;
		labelled = true;
		if (strcmp(text, "edge") == 0)
			edge = i;
		else if (strcmp(text, "junction") == 0)
			junction = i;
		else if (strcmp(text, "mem") == 0)
			mem = i;
	}
	/* Before 5.4 there was one sensor, without a label. */
	if (edge < 0)
		edge = labelled && junction >= 0 ? junction : 0;
	drm_metric(r, d, M_GPU_TEMPERATURE, r->card->hwmon, input[edge], 1, 1000);
	drm_metric(r, d, M_GPU_TEMP_SLOWDOWN, r->card->hwmon, crit[edge], 1, 1000);
	drm_property(r, d, GPU_P_TEMP_SHUTDOWN, r->card->hwmon, emergency[edge], 1000);
	if (mem >= 0)
		drm_metric(r, d, M_GPU_TEMP_MEM, r->card->hwmon, input[mem], 1, 1000);
	else
		gpu_lacks(d, M_GPU_TEMP_MEM, GPU_NOT_SUPPORTED);
}

static void middle(const struct drm_reader *r, struct gpu_device *d)
{
	const char *dev = r->card->device, *hw = r->card->hwmon;
	char text[128];
	uint64_t ue, ce;
	ssize_t n;

	temperatures(r, d);
	/* pwm1 is 0 to 255; the speed in turns (fan1_input) is no share of anything. */
	drm_metric(r, d, M_GPU_FAN, hw, "pwm1", 10000, 255);
	n = drm_text(r, dev, "ras/umc_err_count", text, sizeof(text));
	if (n >= 0 && amd_errors_parse(text, (size_t)n, &ue, &ce)) {
		gpu_put(d, M_GPU_ECC_UNCORRECTED, (int64_t)ue);
		gpu_put(d, M_GPU_ECC_CORRECTED, (int64_t)ce);
	} else {
		enum gpu_have why = n < 0 ? drm_have((int)n) : GPU_FAILED;

		gpu_lacks(d, M_GPU_ECC_UNCORRECTED, why);
		gpu_lacks(d, M_GPU_ECC_CORRECTED, why);
	}
}

static void traffic(struct amd_state *a, struct gpu_device *d)
{
	struct amd_traffic t = { .have = GPU_NOT_ASKED };

	(void)pthread_mutex_lock(&a->lock);
	for (int i = 0; i < a->n_traffic; i++)
		if (strcmp(a->traffic[i].pci, d->pci) == 0)
			t = a->traffic[i];
	(void)pthread_mutex_unlock(&a->lock);
	if (t.have == GPU_KNOWN) {
		gpu_put(d, M_GPU_PCIE_RX, t.rx / 1024);
		gpu_put(d, M_GPU_PCIE_TX, t.tx / 1024);
	} else {
		gpu_lacks(d, M_GPU_PCIE_RX, (enum gpu_have)t.have);
		gpu_lacks(d, M_GPU_PCIE_TX, (enum gpu_have)t.have);
	}
}

static void slow(const struct drm_reader *r, struct gpu_device *d)
{
	const char *dev = r->card->device;
	char text[1024];
	int generation, width;
	ssize_t n;

	drm_metric(r, d, M_GPU_POWER_LIMIT, r->card->hwmon, "power1_cap", 1, 1000);
	clock_max(r, d, M_GPU_CLOCK_SM_MAX, "pp_dpm_sclk");
	clock_max(r, d, M_GPU_CLOCK_MEM_MAX, "pp_dpm_mclk");
	drm_metric(r, d, M_GPU_PCIE_REPLAYS, dev, "pcie_replay_count", 1, 1);
	n = drm_text(r, dev, "pp_dpm_pcie", text, sizeof(text));
	if (n > 0 && amd_link_parse(text, (size_t)n, &generation, &width)) {
		gpu_put(d, M_GPU_PCIE_GEN, generation);
		gpu_put(d, M_GPU_PCIE_WIDTH, width);
	}
}

static void properties(const struct drm_reader *r, struct gpu_device *d, bool asleep)
{
	const char *dev = r->card->device, *hw = r->card->hwmon;

	drm_property_text(r, d, GPU_P_VBIOS, dev, "vbios_version");
	drm_property_text(r, d, GPU_P_SERIAL, dev, "serial_number");
	drm_property(r, d, GPU_P_BAR1_TOTAL, dev, "mem_info_vis_vram_total", 1);
	drm_property(r, d, GPU_P_BAR1_USED, dev, "mem_info_vis_vram_used", 1);
	if (asleep)
		return;
	drm_property(r, d, GPU_P_POWER_LIMIT_DEFAULT, hw, "power1_cap_default", 1000);
	drm_property(r, d, GPU_P_POWER_LIMIT_MIN, hw, "power1_cap_min", 1000);
	drm_property(r, d, GPU_P_POWER_LIMIT_MAX, hw, "power1_cap_max", 1000);
	drm_property(r, d, GPU_P_POWER_AVERAGE, hw, "power1_average", 1000);
	drm_property(r, d, GPU_P_POWER_INSTANT, hw, "power1_input", 1000);
}

/* What no file of amdgpu tells. */
static void lacking(struct gpu_device *d)
{
	static const enum metric_id none[] = {
		M_GPU_SM_ACTIVE,   M_GPU_SM_OCCUPANCY, M_GPU_TENSOR_ACTIVE, M_GPU_DRAM_ACTIVE,
		M_GPU_FP16_ACTIVE, M_GPU_FP32_ACTIVE,  M_GPU_ENCODER,       M_GPU_DECODER,
		M_GPU_CLOCK_VIDEO, M_GPU_MEM_RESERVED, M_GPU_SLOW_IDLE,     M_GPU_SLOW_SETTING,
		M_GPU_SLOW_SYNC,   M_GPU_HELD_POWER,   M_GPU_HELD_HEAT,     M_GPU_NVLINK_TX,
		M_GPU_NVLINK_RX,   M_GPU_XIDS,
	};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		gpu_lacks(d, none[i], GPU_NOT_SUPPORTED);
}

static void read_card(const struct drm_reader *r, struct amd_state *a, enum gpu_depth depth,
		      struct gpu_device *d)
{
	bool asleep = drm_asleep(r);
	char text[24];

	lacking(d);
	drm_common(r, d, depth, asleep);
	identity(r, d);
	memory(r, d);
	if (depth >= GPU_ALL) {
		gpu_put_number(d, GPU_P_COUNT, a->cards.n);
		properties(r, d, asleep);
	}
	if (asleep) {
		text_copy(d->mode, sizeof(d->mode), "suspended");
		return;
	}
	/* MI300: "SPX" is one device, "CPX" one a die. */
	if (drm_text(r, r->card->device, "current_compute_partition", text, sizeof(text)) > 0) {
		text_safe_copy(d->mode, sizeof(d->mode), text);
		d->partitioned = strcmp(text, "SPX") != 0;
	}
	fast(r, d);
	if (depth >= GPU_MIDDLE) {
		middle(r, d);
		traffic(a, d);
	}
	if (depth >= GPU_SLOW)
		slow(r, d);
}

static int amd_read(struct gpu_world *w, void *state, enum gpu_depth depth, struct gpu_snapshot *s)
{
	struct amd_state *a = state;
	int first = s->n_devices;

	if (!w->live || depth >= GPU_SLOW)
		drm_find(w->root, 0x1002, drivers, &a->cards);
	if (a->cards.n == 0)
		return -ENODEV;
	for (int i = 0; i < a->cards.n; i++) {
		struct drm_reader r = { .w = w, .card = &a->cards.card[i], .index = i };
		struct gpu_device *d = gpu_add_device(s, GPU_AMD);

		if (!d) {
			a->cards.n = i;
			break;
		}
		d->index = (int16_t)i;
		if (gpu_skipped(w, r.card->pci)) {
			d->state = GPU_HUNG;
			text_safe_copy(d->pci, sizeof(d->pci), r.card->pci);
			snprintf(d->name, sizeof(d->name), "AMD GPU 0x%04x", r.card->device_id);
			continue;
		}
		read_card(&r, a, depth, d);
	}
	if (depth >= GPU_MIDDLE)
		drm_processes(w, &a->sweep, &a->cards, first, s);
	return 0;
}

/* pcie_bw counts packets for one second before it answers. Only Vega and Navi 10 have it. */
static void amd_crawl(struct gpu_world *w, void *state)
{
	struct amd_state *a = state;
	struct amd_traffic found[GPU_DEVICES];
	struct drm_cards cards;

	drm_find(w->root, 0x1002, drivers, &cards);
	for (int i = 0; i < cards.n; i++) {
		struct drm_reader r = { .w = w, .card = &cards.card[i], .lane = 1, .index = i };
		char text[96];
		ssize_t n;

		found[i] = (struct amd_traffic){ .have = GPU_NOT_ASKED };
		text_copy(found[i].pci, sizeof(found[i].pci), cards.card[i].pci);
		if (gpu_skipped(w, r.card->pci) || drm_asleep(&r))
			continue;
		n = drm_text(&r, r.card->device, "pcie_bw", text, sizeof(text));
		if (n < 0)
			found[i].have = (uint8_t)drm_have((int)n);
		else if (amd_traffic_parse(text, (size_t)n, &found[i].rx, &found[i].tx))
			found[i].have = GPU_KNOWN;
		else
			found[i].have = GPU_FAILED;
	}
	(void)pthread_mutex_lock(&a->lock);
	memcpy(a->traffic, found, sizeof(found[0]) * (size_t)cards.n);
	a->n_traffic = cards.n;
	(void)pthread_mutex_unlock(&a->lock);
}

extern const struct gpu_backend amd_backend;
const struct gpu_backend amd_backend = {
	.name = "amd",
	.vendor = GPU_AMD,
	.state_size = sizeof(struct amd_state),
	.open = amd_open,
	.read = amd_read,
	.crawl = amd_crawl,
	.close = amd_close,
};
