/* SPDX-License-Identifier: MIT
 *
 * The scenario's statements about what happens to a GPU: work and processes of others, slow clocks,
 * loss, calls that hang or fail, XIDs and memory errors.
 */
#include "scenario_words.h"

#include "base/auto.h"

/* Bits of nvmlDeviceGetCurrentClocksEventReasons. */
enum {
	REASON_SETTING = 0x2,
	REASON_SW_POWER = 0x4,
	REASON_HW_SLOWDOWN = 0x8,
	REASON_SYNC = 0x10,
	REASON_SW_THERMAL = 0x20,
	REASON_HW_THERMAL = 0x40,
	REASON_HW_BRAKE = 0x80,
};

typedef struct scenario_line *line;
typedef struct scenario_device *device;

static int on_load(line l, device d)
{
	struct scenario_load load = { .sm = -1 };
	int r = scenario_ratio(l, &load.busy);

	while (!r) {
		if (scenario_is(l, "sm"))
			r = scenario_ratio(l, &load.sm);
		else if (scenario_is(l, "tensor"))
			r = scenario_ratio(l, &load.tensor);
		else
			break;
	}
	if (load.sm < 0)
		load.sm = load.busy;
	r = r ? r : scenario_when(l, &load.when);
	if (!r && d->n_loads == SCENARIO_WINDOWS)
		return scenario_wrong(l, "too many load lines for one GPU", NULL);
	if (!r)
		d->load[d->n_loads++] = load;
	return r;
}

static int on_process(line l, device d)
{
	struct scenario_guest g = { .count = 1, .gi = -1, .memory = UINT64_MAX };
	int64_t pid = 0;
	int r = scenario_int(l, 1, 1 << 30, &pid), others = 0;

	g.pid = (uint32_t)pid;
	r = r ? r : scenario_text(l, g.name, sizeof(g.name));
	while (!r) {
		if (scenario_is(l, "memory"))
			r = scenario_size(l, &g.memory);
		else if (scenario_is(l, "busy"))
			r = scenario_ratio(l, &g.busy);
		else if (scenario_is(l, "gi"))
			r = scenario_small(l, 0, VGPU_PARTITIONS, &g.gi);
		else if (scenario_is(l, "x"))
			r = scenario_small(l, 1, VGPU_PROCESSES, &g.count);
		else if (scenario_is(l, "graphics"))
			g.graphics = true;
		else
			break;
	}
	for (int i = 0; i < d->n_guests; i++)
		others += d->guest[i].count;
	if (!r && (d->n_guests == SCENARIO_GUESTS || others + g.count > VGPU_PROCESSES))
		return scenario_wrong(l, "too many processes on one GPU", NULL);
	if (!r)
		d->guest[d->n_guests++] = g;
	return r;
}

static int on_slow(line l, device d)
{
	static const struct {
		const char *name;
		uint64_t bits;
	} why[] = { { "thermal", REASON_SW_THERMAL },
		    { "hw_thermal", REASON_HW_THERMAL | REASON_HW_SLOWDOWN },
		    { "power", REASON_SW_POWER },
		    { "brake", REASON_HW_BRAKE | REASON_HW_SLOWDOWN },
		    { "sync", REASON_SYNC },
		    { "setting", REASON_SETTING } };
	struct scenario_slow slow = { .clock = d->about.clock_sm_max };
	int r;

	for (size_t i = 0; i < ARRAY_LEN(why) && !slow.reasons; i++)
		if (scenario_is(l, why[i].name))
			slow.reasons = why[i].bits;
	if (!slow.reasons || !scenario_is(l, "clock"))
		return scenario_wrong(l,
				      "slow thermal|hw_thermal|power|brake|sync|setting clock "
				      "MHZ is wanted",
				      NULL);
	r = scenario_mhz(l, &slow.clock);
	r = r ? r : scenario_when(l, &slow.when);
	if (!r && d->n_slows == SCENARIO_WINDOWS)
		return scenario_wrong(l, "too many slow lines for one GPU", NULL);
	if (!r)
		d->slow[d->n_slows++] = slow;
	return r;
}

static int on_lost(line l, device d)
{
	d->has_lost = true;
	return scenario_when(l, &d->lost);
}

static int on_reset_required(line l, device d)
{
	d->has_reset = true;
	return scenario_when(l, &d->reset);
}

static int call_row(line l, device d, bool answer)
{
	struct scenario_call c = { 0 };
	int r = scenario_text(l, c.symbol, sizeof(c.symbol));

	if (!r && strcmp(c.symbol, "any") != 0 && strncmp(c.symbol, "nvml", 4) != 0)
		return scenario_wrong(l, "a call's name (nvml...) or any is wanted", c.symbol);
	if (!r && answer)
		r = scenario_small(l, 1, 999, &c.answer);
	r = r ? r : scenario_when(l, &c.when);
	if (!r && d->n_calls == SCENARIO_CALLS)
		return scenario_wrong(l, "too many hang and error lines for one GPU", NULL);
	if (!r)
		d->call[d->n_calls++] = c;
	return r;
}

static int on_hang(line l, device d)
{
	return call_row(l, d, false);
}

static int on_error(line l, device d)
{
	return call_row(l, d, true);
}

static int on_xid(line l, device d)
{
	struct scenario_xid x = { 0 };
	int64_t code = 0;
	int r = scenario_int(l, 1, 999, &code);

	x.code = (uint32_t)code;
	r = r ? r : scenario_when(l, &x.when);
	if (!r && d->n_xids == SCENARIO_WINDOWS)
		return scenario_wrong(l, "too many xid lines for one GPU", NULL);
	if (!r)
		d->xid[d->n_xids++] = x;
	return r;
}

static int on_ecc(line l, device d)
{
	struct scenario_ecc ecc = { 0 };
	int64_t corrected = 0, uncorrected = 0;
	int r = 0, from = l->at;

	while (!r) {
		if (scenario_is(l, "corrected"))
			r = scenario_int(l, 0, 1 << 30, &corrected);
		else if (scenario_is(l, "uncorrected"))
			r = scenario_int(l, 0, 1 << 30, &uncorrected);
		else
			break;
	}
	if (!r && l->at == from)
		return scenario_wrong(l, "ecc corrected N or uncorrected N is wanted", NULL);
	ecc.corrected = (uint64_t)corrected;
	ecc.uncorrected = (uint64_t)uncorrected;
	r = r ? r : scenario_when(l, &ecc.when);
	if (!r && d->n_eccs == SCENARIO_WINDOWS)
		return scenario_wrong(l, "too many ecc lines for one GPU", NULL);
	if (!r)
		d->ecc[d->n_eccs++] = ecc;
	return r;
}

static const struct {
	const char *name;
	int (*take)(line, device);
} statements[] = {
	{ "load", on_load },
	{ "process", on_process },
	{ "slow", on_slow },
	{ "lost", on_lost },
	{ "reset_required", on_reset_required },
	{ "hang", on_hang },
	{ "error", on_error },
	{ "xid", on_xid },
	{ "ecc", on_ecc },
};

int scenario_event_statement(struct scenario_line *l, const char *name, struct scenario_device *d)
{
	for (size_t i = 0; i < ARRAY_LEN(statements); i++)
		if (strcmp(name, statements[i].name) == 0)
			return statements[i].take(l, d);
	return scenario_wrong(l, "no such statement about a GPU", name);
}
