/* SPDX-License-Identifier: MIT
 *
 * GPUs that were lost, hang, or report errors: events of the run. A GPU matters when the job uses it
 * or its environment names it; while the job is on no GPU at all and could use one, any it may see.
 */
#include "explain/fact.h"
#include "explain/scene.h"
#include "explain/xid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Ends of things and of the run may differ by a tick of a slow recorder. */
static const int64_t edge_ns = 2000000000;
/* A call that blocks is reported again while it does. */
static const int64_t hang_again_ns = 5000000000;

/* The GPU an event is about. One that has just been lost may be no entity any more; then its text says
 * which: "XID 79 on GPU 1: ...". */
static const struct gpu_row *row_of(const struct scene *s, const struct window_event *e)
{
	const struct gpu_row *found = NULL;
	const char *at = e->text ? strstr(e->text, "GPU ") : NULL;
	char *end = NULL;
	long index = at ? strtol(at + 4, &end, 10) : -1;

	for (size_t i = 0; i < s->gpus.rows.n; i++) {
		const struct gpu_row *g = &s->gpus.rows.v[i];

		if (g->id == e->entity)
			return g;
		if (at && end != at + 4 && g->partition < 0 && g->index == index)
			found = g;
	}
	return found;
}

/* Could a GPU that is nobody's in particular be one the job wants? Not when it has its own, nor when
 * it has no use for any. */
static bool wants_any(const struct scene *s)
{
	for (size_t i = 0; i < s->gpus.rows.n; i++)
		if (s->gpus.rows.v[i].use == GPU_USE_YES)
			return false;
	return s->gpus.code != 0;
}

static bool matters(const struct gpu_row *g, bool any)
{
	if (!g || g->use == GPU_USE_YES || g->mask == GPU_MASK_LEAVES)
		return true; /* a fault of a GPU nobody could name may be ours */
	return g->mask == GPU_MASK_NONE && any;
}

/* Is the GPU there at the end, with fresh readings? A record keeps only changes, so it is the ends and
 * gaps that say so, not how old the last value is. */
static bool is_read(const struct scene *s, const struct gpu_row *g)
{
	size_t n;
	const struct window_gap *gap = s->whole->ops->gaps(s->whole->src, &n);

	if (g->gone_ns && g->gone_ns <= s->whole->to_ns - edge_ns)
		return false;
	for (size_t i = 0; i < n; i++)
		if (gap[i].metric == M_GPU_AGE && gap[i].why == GAP_STALE &&
		    gap[i].entity == g->id && (!gap[i].to_ns || gap[i].to_ns > s->whole->to_ns))
			return false;
	return true;
}

/* The same GPU, as it is now. */
static const struct gpu_row *newest(const struct scene *s, const struct gpu_row *g)
{
	while (g && g->replaced && g + 1 < s->gpus.rows.v + s->gpus.rows.n)
		g++;
	return g;
}

struct tally {
	double lost, foreign, hang;
	int fault, other; /* XIDs, 0: none */
	const struct gpu_row *lost_row, *fault_row, *other_row, *foreign_row, *hang_row;
	const char *hang_text, *foreign_hang_text;
	int64_t hang_ns;
	double foreign_hang;
};

static void note_xid(struct tally *t, const struct gpu_row *g, double value)
{
	int code = value >= 1 && value < 10000 ? (int)value : 0;

	if (xid_kind(code) == XID_HARDWARE) {
		/* one that fell off the bus reports others on its way */
		if (!t->fault || code == XID_OFF_THE_BUS) {
			t->fault = code;
			t->fault_row = g;
		}
	} else if (!t->other) {
		t->other = code;
		t->other_row = g;
	}
}

static void note(struct tally *t, const struct gpu_row *g, const struct window_event *e, bool ours)
{
	bool grave = e->kind != EVENT_XID || xid_kind((int)fmin(e->value, 1e6)) == XID_HARDWARE;

	if (!ours && e->kind == EVENT_GPU_HANG && e->value >= t->foreign_hang) {
		t->foreign_hang = e->value;
		t->foreign_hang_text = e->text;
	}
	if (!ours) {
		t->foreign += grave;
		t->foreign_row = grave ? g : t->foreign_row;
		return;
	}
	if (e->kind == EVENT_GPU_LOST) {
		t->lost++;
		t->lost_row = g;
	} else if (e->kind == EVENT_XID) {
		note_xid(t, g, e->value);
	} else if (e->value >= t->hang) {
		t->hang = e->value;
		t->hang_row = g;
		t->hang_text = e->text ? e->text : "";
		t->hang_ns = e->t_ns;
	}
}

static void name(struct facts *f, enum fact_id id, const struct gpu_row *g)
{
	char label[48];

	fact_set_subject(f, id, g ? g->id : 0, g ? gpu_label(g, label, sizeof(label)) : "a GPU");
}

/* "driver call blocked for 2.1 s in nvmlDeviceGetTemperature on GPU 2": from " in " on. */
static void set_call(struct facts *f, enum fact_id id, double seconds, const char *text)
{
	const char *in = text ? strstr(text, " in ") : NULL;

	fact_set(f, id, seconds);
	fact_set_subject(f, id, 0, in ? in + 4 : "a GPU's driver");
}

static void set_hang(const struct scene *s, struct facts *f, const struct tally *t)
{
	const struct gpu_row *now;

	set_call(f, FACT_GPU_HANG, t->hang, t->hang_text);
	set_call(f, FACT_GPU_HANG_FOREIGN, t->foreign_hang, t->foreign_hang_text);
	if (!t->hang_text)
		return;
	now = newest(s, t->hang_row);
	fact_set(f, FACT_GPU_HANG_OVER,
		 now && is_read(s, now) && t->hang_ns < s->whole->to_ns - hang_again_ns);
}

static void silent(const struct scene *s, struct facts *f, bool any)
{
	const struct gpu_row *which = NULL;
	double n = 0;

	for (size_t i = 0; i < s->gpus.rows.n; i++) {
		const struct gpu_row *g = &s->gpus.rows.v[i];

		if (g->replaced || g->partition >= 0 || !matters(g, any) || is_read(s, g))
			continue;
		n++;
		which = g;
	}
	fact_set(f, FACT_GPU_SILENT, n);
	if (which)
		name(f, FACT_GPU_SILENT, which);
}

static void compute(const struct scene *s, struct facts *f)
{
	size_t n;
	const struct window_event *e = s->whole->ops->events(s->whole->src, &n);
	bool any = wants_any(s);
	struct tally t = { 0 };

	if (!s->gpus.rows.n)
		return;
	for (size_t i = 0; i < n; i++) {
		const struct gpu_row *g;

		if ((e[i].kind != EVENT_XID && e[i].kind != EVENT_GPU_LOST &&
		     e[i].kind != EVENT_GPU_HANG) ||
		    e[i].t_ns < s->whole->from_ns || e[i].t_ns > s->whole->to_ns)
			continue;
		g = row_of(s, &e[i]);
		note(&t, g, &e[i], matters(g, any));
	}
	fact_set(f, FACT_GPU_LOST, t.lost);
	fact_set(f, FACT_GPU_FAULT, t.fault);
	fact_set(f, FACT_GPU_FAULT_PROGRAM, t.other);
	fact_set(f, FACT_GPU_FAULT_FOREIGN, t.foreign);
	name(f, FACT_GPU_LOST, t.lost_row);
	name(f, FACT_GPU_FAULT, t.fault_row);
	name(f, FACT_GPU_FAULT_PROGRAM, t.other_row);
	name(f, FACT_GPU_FAULT_FOREIGN, t.foreign_row);
	set_hang(s, f, &t);
	silent(s, f, any);
}

const struct fact_source gpu_fault_facts = { "gpu_fault", compute };
