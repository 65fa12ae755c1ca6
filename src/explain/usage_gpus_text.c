/* SPDX-License-Identifier: MIT
 *
 * GPUs in one line, as people ask: how many of how many were busy, how full, how hot.
 */
#include "explain/verdict.h"

#include "base/buf.h"
#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ENDS_SHOWN = 3 };

struct total {
	int units, parts, known, of_memory, machine, unified, ends;
	double busy, memory, memory_total, power, hottest;
	bool at_least, simulated, same;
	const struct usage_gpu *first, *end[ENDS_SHOWN];
};

const char *usage_gpu_name(const struct usage_gpu *g, char *buf, size_t size)
{
	bool has = !g->profile[0] || strstr(g->name, g->profile);

	snprintf(buf, size, "%s%s%s", g->name, has ? "" : " ", has ? "" : g->profile);
	return buf;
}

const char *usage_gpu_read(const struct usage_gpu *g, char *buf, size_t size)
{
	char a[32];

	buf[0] = '\0';
	if (g->state)
		snprintf(buf, size, "until %s: %s", num_seconds(g->until, a, sizeof(a)),
			 strcmp(g->state, "hung") == 0   ? "hangs"
			 : strcmp(g->state, "lost") == 0 ? "lost"
							 : "not read any more");
	else if (isfinite(g->seen))
		snprintf(buf, size, "%s only", num_seconds(g->seen, a, sizeof(a)));
	return buf;
}

/* Which are the job's: those its environment names and those it uses; without either, all it can
 * see. */
enum scope { SCOPE_GIVEN, SCOPE_USED, SCOPE_SEEN };

static enum scope scope_of(const struct usage *u)
{
	enum scope s = SCOPE_SEEN;

	for (size_t i = 0; i < u->gpus.n; i++) {
		if (u->gpus.v[i].allowed > 0)
			return SCOPE_GIVEN;
		if (u->gpus.v[i].job > 0)
			s = SCOPE_USED;
	}
	return s;
}

static bool counts(const struct usage_gpu *g, enum scope s)
{
	if (g->is_shell)
		return false;
	return g->job > 0 || (s == SCOPE_GIVEN && g->allowed > 0) ||
	       (s == SCOPE_SEEN && g->allowed != 0);
}

static struct total sum_up(const struct usage *u)
{
	struct total t = { .power = NAN, .hottest = NAN, .same = true };
	enum scope scope = scope_of(u);

	for (size_t i = 0; i < u->gpus.n; i++) {
		const struct usage_gpu *g = &u->gpus.v[i];

		t.machine += g->partition < 0;
		if (!counts(g, scope))
			continue;
		t.units++;
		t.parts += g->partition >= 0;
		t.first = t.first ? t.first : g;
		t.same &= strcmp(t.first->name, g->name) == 0;
		t.simulated |= g->simulated;
		t.unified += g->unified;
		if ((g->state || isfinite(g->seen)) && t.ends++ < ENDS_SHOWN)
			t.end[t.ends - 1] = g;
		if (isfinite(g->busy)) {
			t.known++;
			t.busy += g->busy;
			t.at_least |= g->busy_at_least;
		}
		if (isfinite(g->memory_used) && isfinite(g->memory_total)) {
			t.of_memory++;
			t.memory += g->memory_used;
			t.memory_total += g->memory_total;
		}
		if (isfinite(g->power))
			t.power = isfinite(t.power) ? t.power + g->power : g->power;
		t.hottest = fmax(t.hottest, g->temperature);
	}
	return t;
}

/* Figures are over the time it was read: "; read until 2.9 s: hangs", "; GPU 1 read 3.0 s only". */
static void put_ends(const struct total *t, struct buf *out)
{
	char a[64];

	for (int i = 0; i < t->ends && i < ENDS_SHOWN; i++) {
		const struct usage_gpu *g = t->end[i];

		usage_gpu_read(g, a, sizeof(a));
		if (t->units == 1)
			buf_printf(out, "; read %s", a);
		else if (g->partition < 0)
			buf_printf(out, "; GPU %d read %s", g->index, a);
		else
			buf_printf(out, "; GPU %d:%d read %s", g->index, g->partition, a);
	}
	if (t->ends > ENDS_SHOWN)
		buf_printf(out, "; %d more not throughout", t->ends - ENDS_SHOWN);
}

/* "2.41 of 4 GPUs busy (60 %; summed up 241 %)" */
static void put_busy(const struct total *t, struct buf *out)
{
	const char *what = t->parts == t->units ? "GPU partition" : "GPU";
	char a[24], b[24];

	if (!t->known) {
		buf_printf(out, "%d %s%s, how busy is not known", t->units, what,
			   t->units == 1 ? "" : "s");
		put_ends(t, out);
		return;
	}
	buf_printf(out, "%s%s of %d %s%s busy (", t->at_least ? "at least " : "",
		   t->busy > 0 && t->busy < 0.01 ? "under 0.01" : num_cores(t->busy, a, sizeof(a)),
		   t->known, what, t->known == 1 ? "" : "s");
	if (t->known == 1)
		buf_printf(out, "%s of the time a kernel ran", num_percent(t->busy, b, sizeof(b)));
	else
		buf_printf(out, "%s; summed up %.0f %%",
			   num_percent(t->busy / t->known, b, sizeof(b)), t->busy * 100);
	put_ends(t, out);
	buf_char(out, ')');
	if (t->known < t->units)
		buf_printf(out, ", of %d more it is not known", t->units - t->known);
}

/* ", 12.1 of 80 GB" */
static void put_memory(const struct total *t, struct buf *out)
{
	char a[24], b[24];

	if (t->memory_total >= 1e10)
		buf_printf(out, ", %.*f of %.0f GB", t->memory < 99.95e9 ? 1 : 0, t->memory / 1e9,
			   t->memory_total / 1e9);
	else
		buf_printf(out, ", %s of %s", num_bytes(t->memory, a, sizeof(a)),
			   num_bytes(t->memory_total, b, sizeof(b)));
}

void usage_gpus_text(const struct usage *u, struct buf *out)
{
	struct total t = sum_up(u);
	char name[144];

	if (!u->gpus.n)
		return;
	if (!t.units) {
		buf_printf(out, "none: the job's environment hides %s",
			   t.machine == 1 ? "the one there is" : "all of the machine's");
		return;
	}
	put_busy(&t, out);
	if (t.machine > t.units || t.parts)
		buf_printf(out, ", %d GPU%s in the machine", t.machine, t.machine == 1 ? "" : "s");
	if (t.of_memory)
		put_memory(&t, out);
	if (t.of_memory && t.unified == t.units)
		buf_str(out, " shared with the machine");
	if (isfinite(t.power))
		buf_printf(out, ", %.0f W", t.power);
	if (isfinite(t.hottest))
		buf_printf(out, ", %s%.0f C", t.units > 1 ? "up to " : "", t.hottest);
	buf_str(out, "  ");
	if (t.same && t.units > 1)
		buf_printf(out, "%d x ", t.units);
	buf_printf(out, "%s%s",
		   t.same ? usage_gpu_name(t.first, name, sizeof(name)) : t.first->name,
		   t.same ? "" : " and others");
	if (t.simulated)
		buf_str(out, " (simulated)");
}
