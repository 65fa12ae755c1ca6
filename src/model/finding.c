/* SPDX-License-Identifier: MIT */
#include "model/finding.h"

#include <stdarg.h>
#include <stdio.h>

void finding_because(struct finding *f, const char *metric, double value, const char *unit,
		     const char *fmt, ...)
{
	struct evidence *e;
	va_list ap;

	if (f->n_evidence >= FINDING_EVIDENCE)
		return;
	e = &f->evidence[f->n_evidence++];
	e->metric = metric;
	e->value = value;
	e->unit = unit;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
}
