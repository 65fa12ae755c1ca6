/* SPDX-License-Identifier: MIT
 *
 * What happened, in words.
 */
#include "gpu/client_state.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/text.h"
#include "model/xid.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static struct gpu_event *new_event(struct gpu_client *c, int kind)
{
	struct gpu_event *e;

	/* Nobody takes them: the oldest goes. */
	if (c->n_events == GPU_EVENTS) {
		c->event_first = (c->event_first + 1) % GPU_EVENTS;
		c->n_events--;
	}
	e = &c->event[(c->event_first + c->n_events++) % GPU_EVENTS];
	memset(e, 0, sizeof(*e));
	e->kind = kind;
	e->index = -1;
	return e;
}

bool gpu_client_event(struct gpu_client *c, struct gpu_event *ret)
{
	if (!c->n_events)
		return false;
	*ret = c->event[c->event_first];
	c->event_first = (c->event_first + 1) % GPU_EVENTS;
	c->n_events--;
	return true;
}

void gpu_tell(struct gpu_client *c, int kind, const char *fmt, ...)
{
	struct gpu_event *e = new_event(c, kind);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
}

static void fill_call(struct gpu_event *e, const struct gpu_call *call)
{
	e->index = call->index >= 0 && call->index < 1 << 14 ? call->index : -1;
	text_safe_copy(e->pci, sizeof(e->pci), call->pci);
	text_safe_copy(e->call, sizeof(e->call), call->what);
}

/* " on GPU 2", "" */
static const char *on_gpu(const struct gpu_event *e, char *text, size_t size)
{
	text[0] = '\0';
	if (e->index >= 0)
		snprintf(text, size, " on GPU %d", e->index);
	return text;
}

/* "2.1 s", "42 s", "12 min" */
static const char *span(double s, char *text, size_t size)
{
	if (s < 10)
		snprintf(text, size, "%.1f s", s);
	else if (s < 600)
		snprintf(text, size, "%.0f s", s);
	else
		snprintf(text, size, "%.0f min", s / 60);
	return text;
}

void gpu_tell_call(struct gpu_client *c, int kind, const struct gpu_call *call, int64_t ns)
{
	struct gpu_event *e = new_event(c, kind);
	char gpu[24], time[24], name[sizeof(e->call)];

	fill_call(e, call);
	memcpy(name, e->call, sizeof(name));
	e->seconds = (double)ns / NS_PER_S;
	on_gpu(e, gpu, sizeof(gpu));
	span(e->seconds, time, sizeof(time));
	if (kind == GPU_EVENT_RETURNED)
		snprintf(e->text, sizeof(e->text), "driver call came back after %s: %s%s", time,
			 name, gpu);
	else if (!name[0])
		snprintf(e->text, sizeof(e->text), "the GPU helper has not moved for %s", time);
	else
		snprintf(e->text, sizeof(e->text), "driver call blocked for %s in %s%s", time, name,
			 gpu);
}

void gpu_tell_death(struct gpu_client *c, const struct gpu_call *call, int status)
{
	struct gpu_event *e = new_event(c, GPU_EVENT_DIED);
	char how[64], gpu[24] = "";

	if (call)
		fill_call(e, call);
	e->code = status;
	if (WIFSIGNALED(status))
		snprintf(how, sizeof(how), "was killed by SIG%s",
			 sigabbrev_np(WTERMSIG(status)) ? sigabbrev_np(WTERMSIG(status)) : "?");
	else
		snprintf(how, sizeof(how), "exited with status %d", WEXITSTATUS(status));
	if (call)
		on_gpu(e, gpu, sizeof(gpu));
	snprintf(e->text, sizeof(e->text), "the GPU helper %s%s%s%s", how, call ? " in " : "",
		 call ? e->call : "", gpu);
}

static void tell_note(struct gpu_client *c, const struct gpu_note *n, const struct gpu_snapshot *s)
{
	const struct gpu_device *d = n->device >= 0 ? &s->device[n->device] : NULL;
	int kind = n->kind == GPU_NOTE_XID    ? GPU_EVENT_XID
		   : n->kind == GPU_NOTE_LOST ? GPU_EVENT_LOST
					      : GPU_EVENT_BACK;
	struct gpu_event *e;
	char gpu[24];

	if (d && kind != GPU_EVENT_XID) {
		bool lost = kind == GPU_EVENT_LOST;

		/* A new helper finds out again what its predecessor has told. */
		if (c->lost[n->device] == lost)
			return;
		c->lost[n->device] = lost;
	}
	e = new_event(c, kind);
	e->code = n->code;
	e->index = d ? d->index : -1;
	if (d)
		text_safe_copy(e->pci, sizeof(e->pci), d->pci);
	if (d)
		snprintf(gpu, sizeof(gpu), "GPU %d", d->index);
	else
		snprintf(gpu, sizeof(gpu), "a GPU");
	if (kind == GPU_EVENT_XID && xid_words(n->code))
		snprintf(e->text, sizeof(e->text), "XID %lld on %s: %s", (long long)n->code, gpu,
			 xid_words(n->code));
	else if (kind == GPU_EVENT_XID)
		snprintf(e->text, sizeof(e->text), "XID %lld on %s", (long long)n->code, gpu);
	else if (kind == GPU_EVENT_LOST)
		snprintf(e->text, sizeof(e->text), "%s %s", gpu,
			 d && d->state == GPU_NEEDS_RESET
			     ? "needs a reset, says its driver"
			     : "is lost: its driver does not reach it any more");
	else
		snprintf(e->text, sizeof(e->text), "%s answers again", gpu);
}

void gpu_tell_notes(struct gpu_client *c, struct gpu_helper *h, const struct gpu_snapshot *s)
{
	/* By number: the ring holds the last GPU_NOTES. A helper gone mad may write any numbers:
	 * then some are left out, no more. */
	for (;;) {
		const struct gpu_note *next = NULL;

		for (int i = 0; i < GPU_NOTES; i++) {
			const struct gpu_note *n = &s->note[i];

			if (n->number > h->last_note && (!next || n->number < next->number))
				next = n;
		}
		if (!next)
			return;
		h->last_note = next->number;
		tell_note(c, next, s);
	}
}
