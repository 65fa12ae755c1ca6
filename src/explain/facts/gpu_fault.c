/* SPDX-License-Identifier: MIT
 *
 * GPUs that were lost, hang, or report errors: events of the run. A GPU matters when the job uses it
 * or its environment names it; while the job is on no GPU at all and could use one, any it may see.
 */
#include "explain/fact.h"
#include "explain/scene.h"
#include "model/xid.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A call that blocks is reported again while it does, and once more at the end of the run. */
static const int64_t hang_again_ns = 5000000000;

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

/* The same GPU, as it is now. */
static const struct gpu_row *newest(const struct scene *s, const struct gpu_row *g)
{
	while (g && g->replaced && g + 1 < s->gpus.rows.v + s->gpus.rows.n)
		g++;
	return g;
}

/* One call that did not return, however often it was told of. */
struct hang {
	const struct gpu_row *row;
	bool ours, over;
	double seconds;
	const struct window_event *last;
};

enum { HANGS = 64 };

struct tally {
	double lost, foreign;
	int fault, other; /* XIDs, 0: none */
	const struct gpu_row *lost_row, *fault_row, *other_row, *foreign_row;
	struct hang hangs[HANGS];
	size_t n_hangs;
};

static bool same_gpu(const struct gpu_row *a, const struct gpu_row *b)
{
	return a && b ? a->index == b->index && a->partition == b->partition : a == b;
}

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

/* The same one while its seconds grow and it has not come back. */
static bool note_hang(struct tally *t, const struct gpu_row *g, const struct window_event *e,
		      bool ours)
{
	struct hang *h = NULL;
	bool is_new;

	for (size_t i = t->n_hangs; i-- > 0 && !h;)
		if (same_gpu(t->hangs[i].row, g))
			h = &t->hangs[i];
	is_new = !h || e->value < h->seconds || gpu_came_back(h->last);
	if (is_new && t->n_hangs == HANGS)
		return false;
	if (is_new) {
		h = &t->hangs[t->n_hangs++];
		*h = (struct hang){ .row = g, .ours = ours };
	}
	h->seconds = e->value;
	h->last = e;
	return is_new;
}

static void note(struct tally *t, const struct gpu_row *g, const struct window_event *e, bool ours)
{
	bool grave = e->kind != EVENT_XID || xid_kind((int)fmin(e->value, 1e6)) == XID_HARDWARE;

	if (e->kind == EVENT_GPU_HANG)
		grave = note_hang(t, g, e, ours);
	if (!ours && grave) {
		/* of one GPU: the first that reported any */
		t->foreign_row = t->foreign_row ? t->foreign_row : g;
		t->foreign += same_gpu(t->foreign_row, g);
	}
	if (!ours)
		return;
	if (e->kind == EVENT_GPU_LOST) {
		t->lost++;
		t->lost_row = g;
	} else if (e->kind == EVENT_XID) {
		note_xid(t, g, e->value);
	}
}

static void name(struct facts *f, enum fact_id id, const struct gpu_row *g)
{
	char label[48];

	fact_set_subject(f, id, g ? g->id : 0, g ? gpu_label(g, label, sizeof(label)) : "a GPU");
}

/* "driver call blocked for 2.1 s in nvmlDeviceGetTemperature on GPU 2", "driver call came back after
 * 4.0 s: nvmlDeviceGetTemperature on GPU 0": the call, and the GPU as everything else calls it. */
static void set_call(struct facts *f, enum fact_id id, const struct hang *h)
{
	const char *text = h->last->text ? h->last->text : "";
	const char *from = strstr(text, gpu_came_back(h->last) ? ": " : " in ");
	const char *on = from ? strstr(from, " on GPU ") : NULL;
	char label[48], call[64];

	if (from)
		from += gpu_came_back(h->last) ? 2 : 4;
	if (!from && h->row)
		snprintf(call, sizeof(call), "the driver of %s",
			 gpu_label(h->row, label, sizeof(label)));
	else if (!from)
		snprintf(call, sizeof(call), "a GPU's driver");
	else if (on && h->row)
		snprintf(call, sizeof(call), "%.*s on %s", on > from ? (int)(on - from) : 0, from,
			 gpu_label(h->row, label, sizeof(label)));
	else
		snprintf(call, sizeof(call), "%s", from);
	fact_set(f, id, h->seconds);
	fact_set_subject(f, id, h->row ? h->row->id : 0, call);
}

/* Over: the call came back (whether its GPU is read again or left alone), or the GPU is read again. */
static bool is_over(const struct scene *s, const struct hang *h)
{
	const struct gpu_row *now = newest(s, h->row);

	if (gpu_came_back(h->last))
		return true;
	if (!now || now->end != GPU_END_NONE)
		return false;
	return now->born_ns >= h->last->t_ns || h->last->t_ns < s->whole->to_ns - hang_again_ns;
}

/* Before all others one that lasts, then the longest. */
static bool worse(const struct hang *a, const struct hang *b)
{
	return !b || (a->over != b->over ? !a->over : a->seconds > b->seconds);
}

static void set_hangs(const struct scene *s, struct facts *f, struct tally *t)
{
	const struct hang *ours = NULL, *foreign = NULL;

	for (size_t i = 0; i < t->n_hangs; i++) {
		struct hang *h = &t->hangs[i];

		h->over = is_over(s, h);
		if (h->ours && worse(h, ours))
			ours = h;
		/* the count of faults and the call are of the same GPU */
		if (!h->ours && same_gpu(h->row, t->foreign_row) && worse(h, foreign))
			foreign = h;
	}
	fact_set(f, FACT_GPU_HANG, 0);
	fact_set(f, FACT_GPU_HANG_FOREIGN, 0);
	if (foreign)
		set_call(f, FACT_GPU_HANG_FOREIGN, foreign);
	if (!ours)
		return;
	set_call(f, FACT_GPU_HANG, ours);
	fact_set(f, FACT_GPU_HANG_OVER, ours->over);
}

static void silent(const struct scene *s, struct facts *f, bool any)
{
	const struct gpu_row *which = NULL;
	double n = 0;

	for (size_t i = 0; i < s->gpus.rows.n; i++) {
		const struct gpu_row *g = &s->gpus.rows.v[i];

		if (g->replaced || g->partition >= 0 || !matters(g, any) || g->end == GPU_END_NONE)
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
		g = gpus_row_of(&s->gpus, &e[i]);
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
	set_hangs(s, f, &t);
	silent(s, f, any);
}

const struct fact_source gpu_fault_facts = { "gpu_fault", compute };
