/* SPDX-License-Identifier: MIT */
#include "tui/words.h"

#include "base/num.h"
#include "base/text.h"
#include "tui/palette.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Below this nobody can say anything; rules say for themselves what they need. */
enum { SECONDS_NEEDED = 10 };

const char *words_gain(const struct finding *f, char *buf, size_t size)
{
	buf[0] = '\0';
	if (!f->has_gain || !(f->speedup >= 1.005))
		return buf;
	if (f->high - f->low < 0.05 * f->speedup)
		snprintf(buf, size, f->speedup >= 1.95 ? "%.1f times as fast" : "%.0f %% faster",
			 f->speedup >= 1.95 ? f->speedup : (f->speedup - 1) * 100);
	else if (f->speedup >= 1.95)
		snprintf(buf, size, "%.1f times as fast (%.1f to %.1f)", f->speedup, f->low,
			 f->high);
	else
		snprintf(buf, size, "%.0f %% faster (%.0f to %.0f %%)", (f->speedup - 1) * 100,
			 (f->low - 1) * 100, (f->high - 1) * 100);
	return buf;
}

const char *words_clock(double seconds, char *buf, size_t size)
{
	long s = seconds > 0 ? (long)seconds : 0;

	if (s >= 3600)
		snprintf(buf, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
	else
		snprintf(buf, size, "%ld:%02ld", s / 60, s % 60);
	return buf;
}

const char *words_span(double seconds, char *buf, size_t size)
{
	if (seconds < 120)
		snprintf(buf, size, "%.0f s", seconds);
	else if (seconds < 7200)
		snprintf(buf, size, "%.0f min", seconds / 60);
	else
		snprintf(buf, size, "%.3g h", seconds / 3600);
	return buf;
}

static void say_machine(const struct board *b, struct headline *h)
{
	const struct snap_machine *m = &b->snap.machine;
	const struct snap_task *p = b->snap.processes.n ? &b->snap.processes.v[0] : NULL;
	char cpus[24], name[64];

	h->mark = 0x25cf;
	h->tone = TONE_KEY;
	if (isnan(m->cores_used) || isnan(m->cpus)) {
		text_copy(h->says, sizeof(h->says), "Looking at this machine");
	} else {
		h->tone = palette_load(m->cores_used / m->cpus);
		snprintf(h->says, sizeof(h->says), "This machine uses %.2f of its %s cores",
			 m->cores_used, num_cores(m->cpus, cpus, sizeof(cpus)));
		if (p && p->cores >= 0.05) {
			size_t n = strlen(h->says);

			snprintf(h->says + n, sizeof(h->says) - n,
				 "; most of all %s, pid %lld: %.2f",
				 text_safe_copy(name, sizeof(name), p->entity->name),
				 (long long)p->entity->key, p->cores);
		}
	}
	text_copy(h->then, sizeof(h->then),
		  "Choose a process and press Enter: it is watched with its children, and judged");
}

static void say_nothing_wrong(const struct verdict *v, struct headline *h)
{
	h->mark = 0x2713;
	h->tone = TONE_GOOD;
	if (v->limit && strcmp(v->limit, "gpu_bound") == 0)
		text_copy(h->says, sizeof(h->says), "Nothing holds it up: the GPU is the limit");
	else if (v->limit && strcmp(v->limit, "cpu_bound") == 0)
		text_copy(h->says, sizeof(h->says),
			  "Nothing holds it up: its cores are busy, they are the limit");
	else
		text_copy(h->says, sizeof(h->says), "Nothing was found that holds it up");
	/* Who sees little must not say that all is well. */
	if (v->level < 2 && v->level_why[0]) {
		h->mark = 0x25cf;
		h->tone = TONE_WARN;
		snprintf(h->says, sizeof(h->says),
			 "Nothing was found, but little can be seen of it: no stacks (L%d)",
			 v->level);
		text_copy(h->then, sizeof(h->then), v->level_why);
	} else if (v->notes.n) {
		snprintf(h->then, sizeof(h->then), "Note: %s", v->notes.v[0].title);
	}
}

static void say_finding(const struct verdict *v, struct headline *h)
{
	const struct finding *f = &v->findings.v[0];
	char gain[96];

	h->mark = 0x25b2;
	h->tone = f->has_gain && f->speedup < 1.2 ? TONE_WARN : TONE_BAD;
	snprintf(h->says, sizeof(h->says), "%s", f->title);
	words_gain(f, gain, sizeof(gain));
	snprintf(h->then, sizeof(h->then), "%s%s%s", f->fix,
		 f->fix[0] && gain[0] ? "; about " : gain, f->fix[0] ? gain : "");
	if (v->findings.n > 1) {
		size_t n = strlen(h->then);

		snprintf(h->then + n, sizeof(h->then) - n, "%s%zu more: w", n ? " | " : "",
			 v->findings.n - 1);
	}
}

void words_headline(const struct board *b, struct headline *ret)
{
	const struct verdict *v = &b->verdict;
	double seconds = (double)(b->last_ns - b->first_ns) / 1e9;

	*ret = (struct headline){ .tone = TONE_KEY, .mark = 0x25cf };
	if (!b->job)
		say_machine(b, ret);
	else if (b->judged && v->findings.n)
		say_finding(v, ret);
	else if (b->judged && v->healthy && v->judged)
		say_nothing_wrong(v, ret);
	else if (b->replay && b->judged)
		text_copy(ret->says, sizeof(ret->says),
			  "Too little was recorded to say what holds it up");
	else if (b->replay)
		text_copy(ret->says, sizeof(ret->says), "Reading the record");
	else
		snprintf(ret->says, sizeof(ret->says),
			 "Looking: %.0f s so far, a verdict takes about %d", seconds,
			 SECONDS_NEEDED);
	if (b->ended && !b->replay)
		text_copy(ret->then, sizeof(ret->then),
			  "The process has ended; the left arrow leads back in time");
}
