/* SPDX-License-Identifier: MIT
 *
 * The figures as the management library asks for them (vgpu.h).
 */
#include "layout.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>

enum { REASON_IDLE = 0x1 };
/* A GPU without work keeps its clocks up for about this long. */
static const int64_t idle_after_ns = NS_PER_S;

int vgpu_count(struct vgpu *v)
{
	return v->s->scenario.n_devices;
}

const struct vgpu_about *vgpu_about(struct vgpu *v, int device)
{
	if (device < 0 || device >= vgpu_count(v))
		return NULL;
	return &v->s->scenario.device[device].about;
}

const struct vgpu_driver *vgpu_driver(struct vgpu *v)
{
	return &v->s->scenario.driver;
}

/* The sums at a tick, those of the beginning before the first. */
static struct sums at_tick(const struct device_state *s, int64_t tick)
{
	static const struct sums none;

	return tick > 0 ? s->tick[tick % VGPU_TICKS] : none;
}

/* Shares over the last whole sampling period, which the driver computes six times a second. */
static void put_busy(const struct device_state *s, struct vgpu_now *ret)
{
	int64_t end = s->last_tick - s->last_tick % VGPU_PERIOD;
	struct sums a = at_tick(s, end - VGPU_PERIOD), b = at_tick(s, end);
	double period = (double)VGPU_PERIOD / VGPU_TICK_HZ;

	ret->busy = fmin((b.busy - a.busy) / period, 1);
	ret->memory_busy = ret->dram_active = fmin((b.dram - a.dram) / period, 1);
	ret->sm_active = fmin((b.sm - a.sm) / period, 1);
	ret->sm_occupancy = fmin((b.occupancy - a.occupancy) / period, 1);
	ret->tensor_active = fmin((b.tensor - a.tensor) / period, 1);
	ret->fp16_active = ret->tensor_active * 0.1;
	ret->fp32_active = fmax(ret->sm_active - ret->tensor_active, 0) * 0.5;
	ret->busy_s = s->sum.busy;
	ret->sm_s = s->sum.sm;
	ret->tensor_s = s->sum.tensor;
	ret->dram_s = s->sum.dram;
}

static void put_power(const struct scenario_device *d, const struct device_state *s,
		      struct vgpu_now *ret)
{
	int64_t n = s->last_tick < VGPU_TICK_HZ ? s->last_tick : VGPU_TICK_HZ;
	struct sums a = at_tick(s, s->last_tick - n), b = at_tick(s, s->last_tick);

	ret->power_instant_mw = (uint32_t)(s->watts * 1e3 + 0.5);
	ret->power_mw = n ? (uint32_t)((b.energy - a.energy) / (double)n * VGPU_TICK_HZ * 1e3 + 0.5)
			  : d->about.power_idle_mw;
	ret->energy_mj = (uint64_t)(s->sum.energy * 1e3);
}

static void put_pcie(const struct scenario_device *d, const struct device_state *s, bool idle,
		     struct vgpu_now *ret)
{
	struct sums a = at_tick(s, s->last_tick - 1), b = at_tick(s, s->last_tick);

	ret->pcie_tx_kbs = (uint64_t)((b.tx - a.tx) * VGPU_TICK_HZ / 1024);
	ret->pcie_rx_kbs = (uint64_t)((b.rx - a.rx) * VGPU_TICK_HZ / 1024);
	ret->pcie_tx_bytes = (uint64_t)s->sum.tx;
	ret->pcie_rx_bytes = (uint64_t)s->sum.rx;
	ret->nvlink_tx_kib = (uint64_t)(s->sum.link_tx / 1024);
	ret->nvlink_rx_kib = (uint64_t)(s->sum.link_rx / 1024);
	ret->pcie_gen = idle ? 1 : d->about.pcie_gen_max; /* the link sleeps, too */
	ret->pcie_width = d->about.pcie_width_max;
}

static void put_clocks(const struct scenario_device *d, const struct device_state *s, int64_t now,
		       bool idle, struct vgpu_now *ret)
{
	const struct vgpu_about *a = &d->about;

	ret->pstate = idle ? 8 : 0;
	ret->clock_mem = idle ? a->clock_mem_max / 4 : a->clock_mem_max;
	ret->clock_sm = a->clock_sm_idle;
	ret->clock_video =
	    a->clock_sm_idle < a->clock_video_max ? a->clock_sm_idle : a->clock_video_max;
	ret->reasons = idle ? REASON_IDLE : 0;
	ret->held_power_ns = (uint64_t)s->held_power;
	ret->held_heat_ns = (uint64_t)s->held_heat;
	ret->held_heat_sw_ns = (uint64_t)s->held_heat_sw;
	ret->held_heat_hw_ns = (uint64_t)s->held_heat_hw;
	ret->held_sync_ns = (uint64_t)s->held_sync;
	ret->held_brake_ns = (uint64_t)s->held_brake;
	if (idle)
		return;
	ret->clock_sm = (uint32_t)(a->clock_sm_max * model_clock_share(d, now) + 0.5);
	ret->clock_video = a->clock_video_max;
	for (int i = 0; i < d->n_slows; i++)
		if (scenario_open(&d->slow[i].when, now))
			ret->reasons |= d->slow[i].reasons;
}

static void put_heat(const struct scenario_device *d, const struct device_state *s,
		     struct vgpu_now *ret)
{
	double t = s->temperature;

	/* What is slowed down by heat is hot. */
	if ((ret->reasons & 0x60) && t < d->about.temp_slowdown - 1)
		t = d->about.temp_slowdown - 1;
	ret->temperature = (int)lround(t);
	ret->temperature_memory = ret->temperature + 6;
	if (d->about.fans)
		ret->fan_percent = (int)fmin(100, fmax(0, 30 + (t - d->temp_idle)));
}

static void put_memory(struct vgpu *v, int device, int64_t now, struct vgpu_now *ret)
{
	const struct scenario_device *d = &v->s->scenario.device[device];

	ret->memory_used = client_memory(v->s, device, -1) + d->ghost;
	for (int i = 0; i < d->n_guests; i++)
		if (d->guest[i].memory != UINT64_MAX)
			ret->memory_used += d->guest[i].memory * (uint64_t)d->guest[i].count;
	for (int i = 0; i < d->n_eccs; i++) {
		if (now < d->ecc[i].when.from)
			continue;
		ret->ecc_corrected += d->ecc[i].corrected;
		ret->ecc_uncorrected += d->ecc[i].uncorrected;
	}
}

/* Copies between devices are counted at both ends when the one they are queued at is brought up to
 * date. */
static void advance_peers(struct shared *s, int device, int64_t now)
{
	for (int i = 0; i < s->scenario.n_devices; i++)
		if (i != device &&
		    (s->device[i].head[ENGINE_OUT] >= 0 || s->device[i].head[ENGINE_IN] >= 0))
			model_advance(s, i, now);
}

bool vgpu_now(struct vgpu *v, int device, struct vgpu_now *ret)
{
	const struct scenario_device *d;
	struct device_state *s;
	int64_t now;
	bool idle;

	memset(ret, 0, sizeof(*ret));
	if (device < 0 || device >= vgpu_count(v) || !vgpu_lock(v))
		return false;
	now = vgpu_age(v);
	d = &v->s->scenario.device[device];
	s = &v->s->device[device];
	client_reap(v, now, false);
	model_advance(v->s, device, now);
	advance_peers(v->s, device, now);
	idle = now - s->last_work >= idle_after_ns;
	ret->time_ns = clock_wall_ns();
	ret->lost = d->has_lost && scenario_open(&d->lost, now);
	ret->needs_reset = d->has_reset && scenario_open(&d->reset, now);
	put_busy(s, ret);
	put_power(d, s, ret);
	put_pcie(d, s, idle, ret);
	put_clocks(d, s, now, idle, ret);
	put_heat(d, s, ret);
	put_memory(v, device, now, ret);
	vgpu_unlock(v);
	return true;
}

static void put_client(struct vgpu *v, int row, int device, struct vgpu_process *ret)
{
	const struct client *c = &v->s->client[row];
	const struct scenario *scenario = &v->s->scenario;
	const struct device_state *s = &v->s->device[device];
	const struct client_device *u = &c->device[device];
	int64_t period = s->last_tick / VGPU_PERIOD, back = period < 6 ? period : 6;
	int a = (int)((period - back) % VGPU_PERIODS), b = (int)(period % VGPU_PERIODS);

	memset(ret, 0, sizeof(*ret));
	ret->pid = (uint32_t)(scenario->pids == PIDS_INNER ? c->pid : life_seen(v, row));
	if (scenario->pids == PIDS_OFFSET)
		ret->pid += (uint32_t)scenario->pid_offset;
	ret->gi = ret->ci = -1;
	if (u->partition >= 0) {
		ret->gi = scenario->device[device].about.partition[u->partition].gi;
		ret->ci = 0;
	}
	ret->memory = u->memory;
	/* The six periods before the newest boundary: one second. */
	if (back) {
		ret->busy = fmin(u->period_busy[b] - u->period_busy[a], 1);
		ret->memory_busy = fmin(u->period_dram[b] - u->period_dram[a], 1);
	}
	text_copy(ret->name, sizeof(ret->name), c->name);
}

static void put_guest(const struct scenario_guest *g, int i, double scale, struct vgpu_process *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->pid = g->pid + (uint32_t)i;
	ret->graphics = g->graphics;
	ret->gi = g->gi;
	ret->ci = g->gi >= 0 ? 0 : -1;
	ret->memory = g->memory;
	ret->busy = g->busy * scale;
	ret->memory_busy = ret->busy * 0.3;
	text_copy(ret->name, sizeof(ret->name), g->name);
}

/* Guests' shares are what they get beside our kernels, all together one at most. */
static double guest_scale(const struct scenario_device *d, int64_t now)
{
	double want = 0, foreign = model_foreign(d, now);

	for (int i = 0; i < d->n_guests; i++)
		want += d->guest[i].busy * d->guest[i].count;
	return want > foreign ? foreign / want : 1;
}

int vgpu_processes(struct vgpu *v, int device, struct vgpu_process *ret, int max)
{
	const struct scenario_device *d;
	int64_t now, sampled;
	int n = 0;

	if (device < 0 || device >= vgpu_count(v) || !vgpu_lock(v))
		return -1;
	d = &v->s->scenario.device[device];
	now = vgpu_age(v);
	client_reap(v, now, false);
	model_advance(v->s, device, now);
	for (int i = 0; i < VGPU_CLIENTS && v->s->scenario.pids != PIDS_HIDDEN; i++) {
		if (!v->s->client[i].used || v->s->client[i].device[device].contexts <= 0)
			continue;
		if (n++ < max)
			put_client(v, i, device, &ret[n - 1]);
	}
	for (int i = 0; i < d->n_guests && v->s->scenario.pids != PIDS_HIDDEN; i++)
		for (int k = 0; k < d->guest[i].count; k++)
			if (n++ < max)
				put_guest(&d->guest[i], k, guest_scale(d, now), &ret[n - 1]);
	/* From the clock at birth, not from now's: the same sample has the same time whenever it is read. */
	sampled = v->s->born_wall + v->s->device[device].last_tick / VGPU_PERIOD * VGPU_PERIOD *
					NS_PER_S / VGPU_TICK_HZ;
	vgpu_unlock(v);
	for (int i = 0; i < n && i < max; i++)
		ret[i].sampled_ns = sampled;
	return n;
}
