/* SPDX-License-Identifier: MIT */
#include "explain/growing.h"
#include "explain/place.h"

#include "base/num.h"
#include "base/text.h"
#include "explain/keeps/keeps.h"
#include "model/stacks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double watched_least = 8; /* seconds: what grows in less may be a start */
static const double sure_least = 60;   /* before a limit is called near */
static const double bytes_least = 32e6, of_least = 0.02;
static const double near_s = 3600;

static void say(const struct growing *g, const struct facts *f, struct finding *x, double left)
{
	const struct fact *rate = &f->v[g->rate];
	char a[32], b[32], c[32];

	num_bytes(rate->value, a, sizeof(a));
	if (isfinite(left))
		snprintf(x->title, sizeof(x->title),
			 "the memory of %s grows by %s/s: the %s is full in %s", g->who, a,
			 f->v[FACT_MEMORY_ROOM].text, num_seconds(left, b, sizeof(b)));
	else
		snprintf(x->title, sizeof(x->title), "the memory of %s grows by %s/s", g->who, a);
	rule_because(x, f, g->rate, "%s%s%s%s %s by %s/s, no slower at the end (%s to %s/s)",
		     g->who, g->process[0] ? " (" : "", g->process, g->process[0] ? ")" : "",
		     g->grow, a, num_bytes(rate->low, b, sizeof(b)),
		     num_bytes(rate->high, c, sizeof(c)));
	rule_because(x, f, g->bytes, "that was %s in %s",
		     num_bytes(f->v[g->bytes].value, a, sizeof(a)),
		     num_seconds(fact_or(f, FACT_LEAK_WATCHED, 0), b, sizeof(b)));
	rule_because(x, f, FACT_MEMORY_ROOM, "%s are left in the %s",
		     num_bytes(fact_or(f, FACT_MEMORY_ROOM, 0), a, sizeof(a)),
		     f->v[FACT_MEMORY_ROOM].text);
	snprintf(x->fix, sizeof(x->fix), "%s", g->fix);
	snprintf(x->edit, sizeof(x->edit), "%s", g->edit);
	growing_where(x, f, g->kept);
}

void growing_where(struct finding *x, const struct facts *f, enum fact_id kept)
{
	const struct fact *k = &f->v[kept];
	const struct place *p =
	    k->known && f->book ? stack_book_find_place(f->book, k->place) : NULL;
	struct keep keep;
	char file[48];

	if (!p || !keep_read(p, &keep))
		return;
	rule_where(x, f, kept);
	x->where.guess = true;
	rule_because(x, f, kept, "likely kept at %s:%d, a guess from the source: %.60s (%s)%s%s",
		     text_safe_copy(file, sizeof(file), place_file_name(p)), (int)keep.line,
		     keep.text, keep_why(&keep), k->text[0] ? "; else " : "", k->text);
	/* an edit that is made for losses, or for objects of a data set, says nothing about other lines */
	if (!strstr(keep.text, "loss") && keep.what != KEEP_OBJECTS)
		x->edit[0] = '\0';
}

void growing_title(struct finding *x)
{
	/* half a line number would be another line: the longest that fits, or none */
	static const char *const words[] = { "; likely kept at ", "; likely at " };
	const char *name = strrchr(x->where.file, '/');
	size_t n = strlen(x->title), room = sizeof(x->title) - n;
	char more[100];

	for (size_t i = 0; x->where.guess && i < sizeof(words) / sizeof(words[0]); i++) {
		int need = snprintf(more, sizeof(more), "%s%.50s:%d", words[i],
				    name ? name + 1 : x->where.file, x->where.line);

		if (need > 0 && (size_t)need < room && (size_t)need < sizeof(more)) {
			text_copy(x->title + n, room, more);
			return;
		}
	}
}

enum answer growing_check(const struct growing *g, const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	enum answer a = answer_and(rule_at_least(f, g->bytes, bytes_least, o),
				   rule_at_least(f, g->of, of_least, o));
	double room, left = INFINITY, watched = fact_or(f, FACT_LEAK_WATCHED, 0);
	char b[32];

	if (a != ANSWER_YES)
		return a;
	if (watched < watched_least)
		return rule_cannot_tell(
		    o,
		    "its memory grows, but %s are too short to tell that from a "
		    "start",
		    num_seconds(watched, b, sizeof(b)));
	if (fact_value(f, FACT_MEMORY_ROOM, &room))
		left = room / f->v[g->rate].value;
	say(g, f, x, left);
	/* A run that has ended well had room enough. */
	x->note = !(left < fmax(near_s, watched)) || watched < sure_least ||
		  fact_or(f, FACT_RUN_DONE, 0) >= 1;
	x->cost = x->note ? (double)NAN : 0;
	x->confidence = watched < sure_least ? 0.5 : 0.75;
	if (!x->note)
		snprintf(x->then, sizeof(x->then), "the run can finish");
	return ANSWER_YES;
}
