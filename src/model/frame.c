/* SPDX-License-Identifier: MIT */
#include "model/frame.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 255, DETAIL_MAX_BYTES = 4095 };

void frame_done(struct frame *f)
{
	vec_done(&f->samples);
	vec_done(&f->lives);
	vec_done(&f->events);
	vec_done(&f->gaps);
	vec_done(&f->places);
	vec_done(&f->nodes);
	vec_done(&f->stacks);
	vec_done(&f->marks);
	vec_done(&f->text);
}

/* Offset 0 is the empty string, so that {0} fields read as "". */
static uint32_t add_text(struct frame *f, const char *s, size_t n)
{
	uint32_t at = (uint32_t)f->text.n;

	if (!n)
		return 0;
	if (!vec_reserve(&f->text, f->text.n + n + 1)) {
		f->failed = true;
		return 0;
	}
	memcpy(f->text.v + f->text.n, s, n);
	f->text.v[f->text.n + n] = '\0';
	f->text.n += n + 1;
	return at;
}

void frame_begin(struct frame *f, int64_t mono_ns, int64_t wall_ns)
{
	f->mono_ns = mono_ns;
	f->wall_ns = wall_ns;
	f->samples.n = f->lives.n = f->events.n = f->gaps.n = f->text.n = 0;
	f->places.n = f->nodes.n = f->stacks.n = f->marks.n = 0;
	f->stacks_from_ns = f->stacks_to_ns = 0;
	f->failed = !vec_push(&f->text);
}

void frame_put(struct frame *f, enum metric_id metric, uint32_t entity, int64_t raw)
{
	struct sample *s = vec_push(&f->samples);

	if (!s) {
		f->failed = true;
		return;
	}
	*s = (struct sample){ .entity = entity, .metric = (uint16_t)metric, .raw = raw };
}

void frame_gap(struct frame *f, enum metric_id metric, uint32_t entity, enum gap_why why)
{
	struct gap *g = vec_push(&f->gaps);

	if (!g) {
		f->failed = true;
		return;
	}
	*g = (struct gap){ .entity = entity, .metric = (uint16_t)metric, .why = why };
}

void frame_life(struct frame *f, const struct life *life, const char *name, const char *detail)
{
	struct life *l = vec_push(&f->lives);

	if (!l) {
		f->failed = true;
		return;
	}
	*l = *life;
	l->name = add_text(f, name, strnlen(name, NAME_MAX_BYTES));
	l->detail = detail ? add_text(f, detail, strnlen(detail, DETAIL_MAX_BYTES)) : 0;
}

void frame_event(struct frame *f, enum event_kind kind, uint32_t entity, double value,
		 const char *fmt, ...)
{
	char text[512];
	struct event *e = vec_push(&f->events);
	va_list ap;

	if (!e) {
		f->failed = true;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	*e = (struct event){ .kind = kind, .entity = entity, .value = value };
	e->text = add_text(f, text, strlen(text));
}

void frame_mark(struct frame *f, const struct frame_mark *mark, const char *name)
{
	struct frame_mark *x = vec_push(&f->marks);

	if (!x) {
		f->failed = true;
		return;
	}
	*x = *mark;
	x->name = name ? add_text(f, name, strnlen(name, NAME_MAX_BYTES)) : 0;
}

const char *mark_type_name(enum mark_type type)
{
	static const char *const names[SAID_TYPES] = {
		[SAID_STEP] = "step",
		[SAID_SCALAR] = "scalar",
		[SAID_PHASE_BEGIN] = "phase_begin",
		[SAID_PHASE_END] = "phase_end",
		[SAID_DATA_WAIT] = "data_wait",
		[SAID_MICRO_STEP] = "micro_step",
		[SAID_EPOCH] = "epoch",
		[SAID_SETTING] = "setting",
		[SAID_SOURCE] = "source",
		[SAID_LOST] = "lost",
	};

	return (unsigned)type < SAID_TYPES ? names[type] : "";
}

void frame_place(struct frame *f, uint32_t id, const struct place *p)
{
	struct frame_place *x = vec_push(&f->places);

	if (!x) {
		f->failed = true;
		return;
	}
	*x = (struct frame_place){ .id = id, .kind = p->kind, .line = p->line };
	x->function = add_text(f, p->function, strnlen(p->function, NAME_MAX_BYTES));
	x->file = add_text(f, p->file, strnlen(p->file, DETAIL_MAX_BYTES));
	x->source = add_text(f, p->source, strnlen(p->source, NAME_MAX_BYTES));
}

void frame_node(struct frame *f, uint32_t id, const struct stack_node *n)
{
	struct frame_node *x = vec_push(&f->nodes);

	if (!x) {
		f->failed = true;
		return;
	}
	*x = (struct frame_node){ .id = id, .parent = n->parent, .place = n->place };
}

void frame_stack(struct frame *f, const struct stack_row *row)
{
	struct stack_row *x = vec_push(&f->stacks);

	if (!x) {
		f->failed = true;
		return;
	}
	*x = *row;
}

const char *frame_text(const struct frame *f, uint32_t offset)
{
	return offset < f->text.n ? f->text.v + offset : "";
}

const char *gap_why_name(enum gap_why why)
{
	static const char *const names[] = {
		[GAP_NOT_SUPPORTED] = "not supported",
		[GAP_NO_PERMISSION] = "no permission",
		[GAP_LOST] = "lost",
		[GAP_STALE] = "stale",
		[GAP_BUDGET] = "over budget",
		[GAP_OVER] = "readable again",
	};

	return names[why];
}

static const char *const event_names[EVENT_KINDS] = {
	[EVENT_EXIT] = "exit",
	[EVENT_EXEC] = "exec",
	[EVENT_OOM_KILL] = "oom_kill",
	[EVENT_LIMIT] = "limit",
	[EVENT_GOVERNOR] = "governor",
	[EVENT_CLOCK_JUMP] = "clock_jump",
	[EVENT_SUSPEND] = "suspend",
	[EVENT_WRITE_ERROR] = "write_error",
	[EVENT_CPU_HOTPLUG] = "cpu_hotplug",
	[EVENT_XID] = "xid",
	[EVENT_GPU_LOST] = "gpu_lost",
	[EVENT_GPU_HANG] = "gpu_hang",
	[EVENT_GPU_HELPER] = "gpu_helper",
	[EVENT_STACKS] = "stacks",
	[EVENT_NOTE] = "note",
};

const char *event_kind_name(enum event_kind kind)
{
	return event_names[kind];
}

enum event_kind event_kind_by_name(const char *name)
{
	for (int i = 0; i < EVENT_KINDS; i++)
		if (strcmp(event_names[i], name) == 0)
			return (enum event_kind)i;
	return EVENT_KINDS;
}
