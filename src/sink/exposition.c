/* SPDX-License-Identifier: MIT
 *
 *	# HELP spotter_steps_total steps the training has done
 *	# TYPE spotter_steps_total counter
 *	spotter_steps_total{run_id="4711.0",rank="3",node="n12"} 1204
 *
 * The same in OpenMetrics: the family is called without its suffix, it has a UNIT where the name ends in one, and the
 * text ends with a line that says so, by which a reader knows that nothing was cut off:
 *
 *	# TYPE spotter_gpu_energy_joules counter
 *	# UNIT spotter_gpu_energy_joules joules
 *	# HELP spotter_gpu_energy_joules energy used since the driver was loaded
 *	spotter_gpu_energy_joules_total{node="n12",gpu="0"} 1841.25
 *	# EOF
 */
#include "sink/exposition.h"

#include "base/buf.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void exposition_begin(struct exposition *x, struct buf *out, enum exposition_format format)
{
	*x = (struct exposition){ .out = out, .format = format };
}

void exposition_end(struct exposition *x)
{
	if (x->format == EXPOSITION_OPENMETRICS)
		buf_str(x->out, "# EOF\n");
}

const char *exposition_content_type(enum exposition_format format)
{
	return format == EXPOSITION_OPENMETRICS
		   ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
		   : "text/plain; version=0.0.4; charset=utf-8";
}

/* Backslash, newline and (where it is the end) the quote; bytes that are no UTF-8 become U+FFFD. */
static void put_escaped(struct buf *out, const char *s, bool quoted)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n;) {
		size_t len = text_utf8(s + i, n - i);

		if (!len) {
			buf_str(out, "\xef\xbf\xbd");
			i++;
			continue;
		}
		if (s[i] == '\\')
			buf_str(out, "\\\\");
		else if (s[i] == '\n')
			buf_str(out, "\\n");
		else if (s[i] == '"' && quoted)
			buf_str(out, "\\\"");
		else
			buf_put(out, s + i, len);
		i += len;
	}
}

/* Shortest text that reads back as the same number. */
static void put_number(struct buf *out, double v)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	buf_str(out, text);
}

static size_t family_length(const struct series_family *f, enum exposition_format format)
{
	const char *suffix = f->type == SERIES_COUNTER ? "_total"
			     : f->type == SERIES_INFO  ? "_info"
						       : "";
	size_t n = strlen(f->name), cut = strlen(suffix);

	if (format == EXPOSITION_OPENMETRICS && cut < n && strcmp(f->name + n - cut, suffix) == 0)
		return n - cut;
	return n;
}

static bool ends_in_unit(const char *name, size_t n, const char *unit)
{
	size_t m = strlen(unit);

	return m && n > m + 1 && name[n - m - 1] == '_' && memcmp(name + n - m, unit, m) == 0;
}

static void put_family(struct exposition *x, const struct series_family *f)
{
	static const char *const types[] = { [SERIES_GAUGE] = "gauge",
					     [SERIES_COUNTER] = "counter",
					     [SERIES_HISTOGRAM] = "histogram",
					     [SERIES_INFO] = "info" };
	bool open = x->format == EXPOSITION_OPENMETRICS;
	int n = (int)family_length(f, x->format);
	/* The old format has no type for it. */
	const char *type = f->type == SERIES_INFO && !open ? "gauge" : types[f->type];

	buf_printf(x->out, "# HELP %.*s ", n, f->name);
	put_escaped(x->out, f->help, open);
	buf_printf(x->out, "\n# TYPE %.*s %s\n", n, f->name, type);
	if (open && ends_in_unit(f->name, (size_t)n, f->unit))
		buf_printf(x->out, "# UNIT %.*s %s\n", n, f->name, f->unit);
}

static void put_labels(struct exposition *x, const struct series_sample *s)
{
	const char *between = "{";

	for (size_t i = 0; i < s->n_labels && i < SERIES_LABELS_MAX; i++) {
		if (!s->labels[i].value || !s->labels[i].value[0])
			continue; /* the same as no label at all */
		buf_printf(x->out, "%s%s=\"", between, s->labels[i].name);
		put_escaped(x->out, s->labels[i].value, true);
		buf_char(x->out, '"');
		between = ",";
	}
	if (*between == ',')
		buf_char(x->out, '}');
}

bool exposition_sample(const struct series_sample *s, void *arg)
{
	struct exposition *x = arg;

	if (!isfinite(s->value))
		return true;
	if (x->family != s->family)
		put_family(x, s->family);
	x->family = s->family;
	buf_str(x->out, s->name);
	put_labels(x, s);
	buf_char(x->out, ' ');
	put_number(x->out, s->value);
	if (x->times && x->format == EXPOSITION_OPENMETRICS)
		buf_printf(x->out, " %lld.%03d", (long long)(s->time_ms / 1000),
			   (int)(s->time_ms % 1000));
	else if (x->times)
		buf_printf(x->out, " %lld", (long long)s->time_ms);
	buf_char(x->out, '\n');
	return buf_ok(x->out);
}

static bool is_between(char c)
{
	return c == ' ' || c == '\t';
}

/* Its weight in the header: ";q=0.75" of a part that is n bytes long; 1 without. */
static double weight_of(const char *part, size_t n)
{
	for (size_t i = 0; i + 3 < n; i++) {
		size_t at = i + 1;

		if (part[i] != ';')
			continue;
		while (at < n && is_between(part[at]))
			at++;
		if (at + 2 < n && (part[at] == 'q' || part[at] == 'Q') && part[at + 1] == '=') {
			char text[16];

			snprintf(text, sizeof(text), "%.*s", (int)(n - at - 2), part + at + 2);
			return strtod(text, NULL);
		}
	}
	return 1;
}

static bool has(const char *part, size_t n, const char *what)
{
	return memmem(part, n, what, strlen(what)) != NULL;
}

/* "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;..." */
enum exposition_format exposition_wanted(const char *accept)
{
	double open = 0, text = 0;

	while (accept && *accept) {
		size_t n = strcspn(accept, ",");
		double q = weight_of(accept, n);

		if (has(accept, n, "application/openmetrics-text") &&
		    (!has(accept, n, "version=") || has(accept, n, "version=1.0.0")))
			open = fmax(open, q);
		else if (has(accept, n, "text/plain") || has(accept, n, "text/*"))
			text = fmax(text, q);
		accept += n + (accept[n] == ',');
	}
	return open > 0 && open >= text ? EXPOSITION_OPENMETRICS : EXPOSITION_TEXT;
}
