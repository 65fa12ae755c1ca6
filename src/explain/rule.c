/* SPDX-License-Identifier: MIT */
#include "explain/rule.h"

#include "base/text.h"
#include "model/stacks.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum answer rule_at_least(const struct facts *f, enum fact_id id, double least, struct opinion *o)
{
	if (f->v[id].known)
		return f->v[id].value >= least ? ANSWER_YES : ANSWER_NO;
	if (!o->why[0])
		snprintf(o->why, sizeof(o->why), "%s", f->v[id].why);
	return ANSWER_CANNOT_TELL;
}

enum answer rule_cannot_tell(struct opinion *o, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(o->why, sizeof(o->why), fmt, ap);
	va_end(ap);
	return ANSWER_CANNOT_TELL;
}

void rule_because(struct finding *x, const struct facts *f, enum fact_id id, const char *fmt, ...)
{
	char text[sizeof(x->evidence[0].text)];
	va_list ap;

	if (!f->v[id].known)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	finding_because(x, fact_infos[id].name, f->v[id].value, fact_infos[id].unit, "%s", text);
}

void rule_where(struct finding *x, const struct facts *f, enum fact_id id)
{
	const struct place *p = f->book ? stack_book_find_place(f->book, f->v[id].place) : NULL;

	if (!p)
		return;
	text_safe_copy(x->where.file, sizeof(x->where.file), p->file);
	text_safe_copy(x->where.function, sizeof(x->where.function), p->function);
	x->where.line = p->line > 0 ? p->line : 0;
}

static double speedup(double share, double room)
{
	double v = 1 / (1 - fmin(fmax(share, 0), 0.995));

	return fmin(v, fmax(room, 1));
}

void rule_gain_of_share(struct finding *x, const struct fact *share, double room)
{
	if (!share->known)
		return;
	x->has_gain = true;
	x->speedup = speedup(share->value, room);
	x->low = speedup(share->low, room);
	x->high = speedup(share->high, room);
	x->cost = 1 - 1 / x->speedup;
}

void rule_gain_of_time(struct finding *x, double best, double likely, double worst)
{
	best = fmin(fmax(best, 0.005), 1);
	likely = fmin(fmax(likely, best), 1);
	worst = fmin(fmax(worst, likely), 1);
	x->has_gain = true;
	x->speedup = fact_round(1 / likely);
	x->low = fact_round(1 / worst);
	x->high = fact_round(1 / best);
	x->cost = 1 - 1 / x->speedup;
}
