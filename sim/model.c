/* SPDX-License-Identifier: MIT
 *
 * A device's figures as functions of the work queued and of time. Between two events (a kernel or copy
 * starts or ends, a window of the scenario opens or closes, a tick) all rates are constant, so every
 * integral is exact, however seldom somebody looks.
 */
#include "layout.h"

#include "base/clock.h"

#include <math.h>

/* Lags: a GPU's supply follows its load within tenths of a second, its temperature within many. */
static const double watts_lag_s = 0.15, heat_lag_s = 10;

void model_begin(struct shared *s)
{
	for (int i = 0; i < s->scenario.n_devices; i++) {
		struct device_state *d = &s->device[i];

		d->watts = s->scenario.device[i].about.power_idle_mw / 1e3;
		d->temperature = s->scenario.device[i].temp_idle;
		d->last_work = -NS_PER_S * 3600;
		queue_repair(s, i);
		client_show_partitions(s, i);
	}
}

double model_foreign(const struct scenario_device *d, int64_t age)
{
	double busy = 0;

	for (int i = 0; i < d->n_guests; i++)
		busy += d->guest[i].busy * d->guest[i].count;
	for (int i = 0; i < d->n_loads; i++)
		if (scenario_open(&d->load[i].when, age))
			busy += d->load[i].busy;
	return busy < 1 ? busy : 1;
}

double model_clock_share(const struct scenario_device *d, int64_t age)
{
	uint32_t clock = d->about.clock_sm_max;

	for (int i = 0; i < d->n_slows; i++)
		if (scenario_open(&d->slow[i].when, age) && d->slow[i].clock < clock)
			clock = d->slow[i].clock;
	return (double)clock / d->about.clock_sm_max;
}

/* The part of the device's time our kernels get while one runs: two busy processes get half each. */
static double own_share(double foreign)
{
	return foreign < 0.5 ? 1 - foreign : 0.5;
}

double model_speed(const struct scenario_device *d, int64_t age)
{
	return own_share(model_foreign(d, age)) * model_clock_share(d, age);
}

static int64_t sooner(int64_t edge, int64_t age, int64_t best)
{
	return edge > age && edge < best ? edge : best;
}

/* The next moment behind age at which the scenario changes a rate. */
static int64_t next_edge(const struct scenario_device *d, int64_t age)
{
	int64_t best = INT64_MAX;

	for (int i = 0; i < d->n_loads; i++) {
		best = sooner(d->load[i].when.from, age, best);
		best = sooner(d->load[i].when.until, age, best);
	}
	for (int i = 0; i < d->n_slows; i++) {
		best = sooner(d->slow[i].when.from, age, best);
		best = sooner(d->slow[i].when.until, age, best);
	}
	return best;
}

int64_t model_finish(const struct scenario_device *d, int64_t start, double work)
{
	for (;;) {
		int64_t edge = next_edge(d, start);
		double speed = model_speed(d, start), need = work / speed;

		if (edge == INT64_MAX || (double)start + need <= (double)edge)
			return need < 9e17 ? start + (int64_t)ceil(need) : INT64_MAX / 2;
		work -= (double)(edge - start) * speed;
		start = edge;
	}
}

/* PCIe 3.0 x16 moves 15.75 GB/s; each generation doubles it. Copies reach about 0.8 of it from pinned
 * memory, and a third of that where the driver must copy through a buffer of its own first. */
double model_bandwidth(const struct vgpu_about *a, bool pinned)
{
	double raw = 15.75e9 / 16 * a->pcie_width_max * pow(2, a->pcie_gen_max - 3);

	return raw * (pinned ? 0.8 : 0.8 / 3);
}

/* 25 GB/s a link and direction. */
double model_link_bandwidth(const struct vgpu_about *a)
{
	return a->nvlinks * 25e9;
}

struct rates {
	struct sums r; /* in a second */
	double clock, foreign, share;
	bool copies;
};

static void add_kernel(const struct scenario_device *d, const struct op *op, struct rates *r)
{
	int partition = op->engine - ENGINE_COMPUTE;
	double part = d->about.mig ? d->about.partition[partition].slices / 7.0 : 1;

	r->r.busy = 1;
	r->r.sm += op->load.sm * r->share * part;
	r->r.occupancy += op->load.sm * r->share * part / 2;
	r->r.tensor += op->load.tensor * r->share * part;
	r->r.dram += op->load.dram * r->share * part;
}

static double bytes_per_s(const struct op *op)
{
	return (double)op->bytes / (double)(op->end - op->start) * 1e9;
}

/* Between devices over NVLink where there is one, all else over PCIe. */
static void add_copy(const struct scenario_device *d, const struct op *op, bool in, double bytes,
		     struct sums *to)
{
	if (op->peer && d->about.nvlinks)
		*(in ? &to->link_rx : &to->link_tx) += bytes;
	else
		*(in ? &to->rx : &to->tx) += bytes;
}

/* What goes on between `at` and the next event. */
static struct rates rates_at(const struct scenario_device *d, const struct device_state *s,
			     int64_t at)
{
	struct rates r = { .clock = model_clock_share(d, at), .foreign = model_foreign(d, at) };

	r.share = own_share(r.foreign);
	r.r.busy = r.foreign;
	for (int i = 0; i < d->n_loads; i++) {
		if (!scenario_open(&d->load[i].when, at))
			continue;
		r.r.sm += d->load[i].sm;
		r.r.tensor += d->load[i].tensor;
		r.r.dram += d->load[i].sm * 0.4;
	}
	for (int i = 0; i < d->n_guests; i++) {
		r.r.sm += d->guest[i].busy * d->guest[i].count * 0.8;
		r.r.dram += d->guest[i].busy * d->guest[i].count * 0.3;
	}
	r.r.occupancy = r.r.sm / 2;
	for (int e = 0; e < VGPU_ENGINES; e++) {
		const struct op *op = s->head[e] >= 0 ? &s->op[s->head[e]] : NULL;

		if (!op || op->start > at || op->end <= op->start)
			continue;
		if (e >= ENGINE_COMPUTE)
			add_kernel(d, op, &r);
		else
			add_copy(d, op, e == ENGINE_IN, bytes_per_s(op), &r.r);
		r.copies |= e < ENGINE_COMPUTE;
	}
	r.r.sm = fmin(r.r.sm, 1);
	r.r.tensor = fmin(r.r.tensor, 1);
	r.r.dram = fmin(r.r.dram, 1);
	r.r.occupancy = fmin(r.r.occupancy, 1);
	return r;
}

/* An exponential approach to `goal`: moves *value, gives the integral over dt seconds. */
static double approach(double *value, double goal, double dt, double lag)
{
	double left = exp(-dt / lag), from = *value;

	*value = goal + (from - goal) * left;
	return goal * dt + (from - goal) * lag * (1 - left);
}

static void add_power(const struct scenario_device *d, struct device_state *s,
		      const struct rates *r, double dt)
{
	const struct vgpu_about *a = &d->about;
	double idle = a->power_idle_mw / 1e3, max = a->power_max_mw / 1e3;
	double load = (0.25 * r->r.busy + 0.75 * r->r.sm) * r->clock + (r->copies ? 0.05 : 0);
	double goal = fmin(idle + (max - idle) * fmin(load, 1), a->power_limit_mw / 1e3);
	double heat = max > idle ? (goal - idle) / (max - idle) : 0;

	s->sum.energy += approach(&s->watts, goal, dt, watts_lag_s);
	(void)approach(&s->temperature, d->temp_idle + (d->temp_full - d->temp_idle) * heat, dt,
		       heat_lag_s);
}

static void add_held(const struct scenario_device *d, struct device_state *s, int64_t at, double ns)
{
	uint64_t bits = 0;

	for (int i = 0; i < d->n_slows; i++)
		if (scenario_open(&d->slow[i].when, at))
			bits |= d->slow[i].reasons;
	s->held_power += bits & 0x4 ? ns : 0;
	s->held_heat += bits & 0x60 ? ns : 0;
	s->held_heat_sw += bits & 0x20 ? ns : 0;
	s->held_heat_hw += bits & 0x40 ? ns : 0;
	s->held_sync += bits & 0x10 ? ns : 0;
	s->held_brake += bits & 0x80 ? ns : 0;
}

static void add_clients(struct shared *s, int device, const struct rates *r, double dt)
{
	struct device_state *d = &s->device[device];

	for (int e = ENGINE_COMPUTE; e < VGPU_ENGINES; e++) {
		const struct op *op = d->head[e] >= 0 ? &d->op[d->head[e]] : NULL;
		struct client_device *c;

		if (!op || op->start > d->time)
			continue;
		c = &s->client[op->client].device[device];
		c->busy += r->share * dt;
		c->dram += op->load.dram * r->share * dt;
	}
}

/* The other end of copies between devices sees the same bytes go the other way. */
static void add_other_ends(struct shared *s, int device, double dt)
{
	const struct device_state *d = &s->device[device];

	for (int e = 0; e < ENGINE_COMPUTE; e++) {
		const struct op *op = d->head[e] >= 0 ? &d->op[d->head[e]] : NULL;

		if (op && op->peer && op->start <= d->time && op->end > op->start)
			add_copy(&s->scenario.device[device], op, e != ENGINE_IN,
				 bytes_per_s(op) * dt, &s->device[op->peer - 1].sum);
	}
}

/* One stretch with nothing happening in it. */
static void integrate(struct shared *s, int device, int64_t until)
{
	const struct scenario_device *d = &s->scenario.device[device];
	struct device_state *v = &s->device[device];
	struct rates r = rates_at(d, v, v->time);
	double dt = (double)(until - v->time) / 1e9;

	v->sum.busy += r.r.busy * dt;
	v->sum.sm += r.r.sm * dt;
	v->sum.occupancy += r.r.occupancy * dt;
	v->sum.tensor += r.r.tensor * dt;
	v->sum.dram += r.r.dram * dt;
	v->sum.tx += r.r.tx * dt;
	v->sum.rx += r.r.rx * dt;
	v->sum.link_tx += r.r.link_tx * dt;
	v->sum.link_rx += r.r.link_rx * dt;
	add_other_ends(s, device, dt);
	add_power(d, v, &r, dt);
	add_clients(s, device, &r, dt);
	if (r.r.busy > 0)
		add_held(d, v, v->time, dt * 1e9);
	if (r.r.busy > 0 || r.copies)
		v->last_work = until;
	v->time = until;
}

static int64_t tick_time(int64_t tick)
{
	return tick * NS_PER_S / VGPU_TICK_HZ;
}

static void latch(struct shared *s, int device, int64_t tick)
{
	struct device_state *d = &s->device[device];
	int period = (int)(tick / VGPU_PERIOD % VGPU_PERIODS);

	d->tick[tick % VGPU_TICKS] = d->sum;
	d->last_tick = tick;
	if (tick % VGPU_PERIOD)
		return;
	for (int i = 0; i < VGPU_CLIENTS; i++) {
		struct client_device *c = &s->client[i].device[device];

		if (!s->client[i].used)
			continue;
		c->period_busy[period] = c->busy;
		c->period_dram[period] = c->dram;
	}
}

static int64_t next_event(const struct shared *s, int device, int64_t now)
{
	const struct device_state *d = &s->device[device];
	int64_t best = sooner(next_edge(&s->scenario.device[device], d->time), d->time, now);

	for (int e = 0; e < VGPU_ENGINES; e++) {
		if (d->head[e] < 0)
			continue;
		best = sooner(d->op[d->head[e]].start, d->time, best);
		best = sooner(d->op[d->head[e]].end, d->time, best);
	}
	return best;
}

void model_advance(struct shared *s, int device, int64_t now)
{
	struct device_state *d = &s->device[device];

	while (d->time < now) {
		int64_t oldest = now * VGPU_TICK_HZ / NS_PER_S - VGPU_TICKS + 1;
		int64_t tick = d->last_tick + 1 > oldest ? d->last_tick + 1 : oldest;
		int64_t event = next_event(s, device, now);

		/* A holder of the lock may have been killed between a step and its tick. */
		if (tick_time(tick) < d->time)
			tick = d->time * VGPU_TICK_HZ / NS_PER_S + 1;
		if (tick_time(tick) <= event)
			event = tick_time(tick);
		if (event > d->time)
			integrate(s, device, event);
		if (d->time == tick_time(tick))
			latch(s, device, tick);
		queue_retire(s, device);
	}
}
