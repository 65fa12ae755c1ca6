/* SPDX-License-Identifier: MIT */
#include "explain/rule.h"

#include "base/text.h"
#include "explain/place.h"
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
	/* what a line does stands where its function would be */
	if (p->kind == PLACE_DOES)
		x->where.function[0] = '\0';
	else
		place_function_name(p, x->where.function, sizeof(x->where.function));
	x->where.line = p->line > 0 ? p->line : 0;
	x->where.place = f->v[id].place;
}

void rule_where_ended(struct finding *x, const struct facts *f)
{
	const struct fact *line = &f->v[FACT_RUN_LINE];

	if (!line->known)
		return;
	rule_where(x, f, FACT_RUN_LINE);
	if (!x->where.file[0])
		text_safe_copy(x->where.file, sizeof(x->where.file), line->text);
	x->where.function[0] = '\0';
	x->where.line = (int)line->value;
	x->where.place = 0; /* that was any line of the file */
	rule_because(x, f, FACT_RUN_LINE, "it came from %s:%d", line->text, (int)line->value);
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

/* How much less time the same code on a CPU took in another run, at the low end of eight in ten. Of the zoo's ill
 * programs, run again hours later on the same two virtual CPUs: docs/gain.md. */
static const double drift = 0.35;

void rule_gain_drifts(struct finding *x, double cpu)
{
	double saved, model, machine;

	if (!x->has_gain || !(x->speedup > 1) || !(x->low >= 1))
		return;
	saved = 1 - 1 / x->speedup;
	/* Two reasons that have nothing to do with each other: as squares, of ratios. */
	model = log(x->speedup / x->low);
	machine = log1p(-drift * fmin(fmax(cpu, 0), 1) * saved);
	x->low = fact_round(fmax(1, x->speedup * exp(-hypot(model, machine))));
}

void rule_gain_at_most(struct finding *x, double best)
{
	if (x->has_gain && best > 0)
		x->most = fact_round(fmax(x->high, 1 / fmin(fmax(best, 0.005), 1)));
}
