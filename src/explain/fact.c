/* SPDX-License-Identifier: MIT */
#include "explain/fact.h"
#include "explain/place.h"

#include "base/text.h"
#include "explain/scene.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct fact_info fact_infos[FACTS] = {
#define FACT(id, name_, unit_, level_, window_, help_) \
	[FACT_##id] = { name_, unit_, level_, FACT_OVER_##window_, help_ },
#include "explain/facts.def"
#undef FACT
};

void facts_compute(const struct scene *s, struct facts *f)
{
	*f = (struct facts){ .book = s->activity.book };
	for (int i = 0; i < FACTS; i++)
		fact_absent(f, (enum fact_id)i, "%s is not known", fact_infos[i].name);
	for (const struct fact_source *const *src = fact_sources; *src; src++)
		(*src)->compute(s, f);
}

bool fact_value(const struct facts *f, enum fact_id id, double *ret)
{
	if (f->v[id].known)
		*ret = f->v[id].value;
	return f->v[id].known;
}

double fact_or(const struct facts *f, enum fact_id id, double otherwise)
{
	return f->v[id].known ? f->v[id].value : otherwise;
}

/* No figure of a machine is larger; one of an edited record may be, and is then not known. */
static const double most = 1e24;

double fact_round(double v)
{
	double power;
	int digits;

	if (!isfinite(v) || fabs(v) < 1e-90)
		return v;
	if (fabs(v) > most)
		return NAN;
	digits = 12 - (int)ceil(log10(fabs(v)));
	/* Powers of ten are exact upwards, so their reciprocals are not used. */
	power = pow(10, abs(digits));
	return digits >= 0 ? round(v * power) / power : round(v / power) * power;
}

int fact_whole(double v)
{
	return v >= 1e6 ? 1000000 : v > 0 ? (int)v : 0;
}

void fact_set(struct facts *f, enum fact_id id, double value)
{
	fact_set_range(f, id, value, value, value);
}

void fact_set_range(struct facts *f, enum fact_id id, double value, double low, double high)
{
	struct fact *x = &f->v[id];

	value = fact_round(value);
	low = fact_round(low);
	high = fact_round(high);
	if (!isfinite(value))
		return;
	x->known = true;
	x->value = value;
	x->low = isfinite(low) && low < value ? low : value;
	x->high = isfinite(high) && high > value ? high : value;
	x->why[0] = '\0';
}

void fact_set_subject(struct facts *f, enum fact_id id, uint32_t subject, const char *text)
{
	f->v[id].subject = subject;
	text_safe_copy(f->v[id].text, sizeof(f->v[id].text), text);
}

void fact_set_place(struct facts *f, enum fact_id id, uint32_t place)
{
	const struct place *p = f->book ? stack_book_find_place(f->book, place) : NULL;
	const char *name;
	char text[200];

	if (!p)
		return;
	name = place_file_name(p);
	if (p->line > 0)
		snprintf(text, sizeof(text), "%.48s:%d", name, (int)p->line);
	else
		snprintf(text, sizeof(text), "%.60s", name);
	f->v[id].place = place;
	text_safe_copy(f->v[id].text, sizeof(f->v[id].text), text);
}

void fact_absent(struct facts *f, enum fact_id id, const char *fmt, ...)
{
	struct fact *x = &f->v[id];
	va_list ap;

	*x = (struct fact){ 0 };
	va_start(ap, fmt);
	vsnprintf(x->why, sizeof(x->why), fmt, ap);
	va_end(ap);
}

void fact_absent_like(struct facts *f, enum fact_id id, enum fact_id other)
{
	fact_absent(f, id, "%s", f->v[other].why);
}
