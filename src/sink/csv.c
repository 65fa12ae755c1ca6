/* SPDX-License-Identifier: MIT
 *
 * One line a sample, long form, which pandas, R and spreadsheets pivot as they like:
 *
 *	time,seconds,kind,name,key,metric,unit,value
 *	2026-11-15T21:12:09.123Z,0.1,process,python3,4242,proc.cpu,seconds,1.25
 *
 * `seconds` counts from the start of the run, `key` is the pid, tid or CPU number (empty where there
 * is none). Counters are as the kernel counts them: growth between two lines is what was used.
 */
#include "sink/sink.h"

#include "base/buf.h"
#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void csv_number(struct buf *out, double v)
{
	char text[40];

	if (!isfinite(v))
		return;
	if (v == trunc(v) && fabs(v) < 1e15) {
		buf_printf(out, "%.0f", v); /* a spreadsheet shows 2.4e+09 as that */
		return;
	}
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	buf_str(out, text);
}

static bool is_control(const char *s, size_t left)
{
	unsigned char c = (unsigned char)s[0];

	if (c == '\n' || c == '\t')
		return false;
	return c < 0x20 || c == 0x7f ||
	       (c == 0xc2 && left > 1 && ((unsigned char)s[1] & 0xe0) == 0x80);
}

void csv_field(struct buf *out, const char *s, size_t n)
{
	bool quote = false;

	for (size_t i = 0; i < n && !quote; i++)
		quote = strchr(",\"\n", s[i]) && s[i];
	if (quote)
		buf_char(out, '"');
	for (size_t i = 0; i < n; i++) {
		if (is_control(s + i, n - i)) {
			buf_char(out, '?');
			i += s[i] == '\xc2'; /* C1 takes two bytes */
			continue;
		}
		if (s[i] == '"')
			buf_char(out, '"');
		buf_char(out, s[i]);
	}
	if (quote)
		buf_char(out, '"');
}

static int csv_begin(void *state, const struct sink_source *src, struct buf *out)
{
	(void)state;
	(void)src;
	buf_str(out, "time,seconds,kind,name,key,metric,unit,value\n");
	return 0;
}

static int csv_sample(void *state, const struct sink_source *src, const struct sink_sample *s,
		      struct buf *out)
{
	const struct entity *entity = entity_find(src->entities, s->entity);
	const char *kind = entity ? entity_kind_name(entity->kind) : "";
	const char *name = entity ? entity->name : "";
	char time[32];

	(void)state;
	clock_iso(sink_wall_ns(src->run, s->t_ns), time, sizeof(time));
	buf_str(out, time);
	buf_char(out, ',');
	csv_number(out, (double)(s->t_ns - src->run->started_mono_ns) / 1e9);
	buf_printf(out, ",%s,", kind);
	csv_field(out, name, strlen(name));
	if (entity && sink_has_key(entity))
		buf_printf(out, ",%lld,", (long long)entity->key);
	else
		buf_str(out, ",,");
	csv_field(out, s->metric, strlen(s->metric));
	buf_char(out, ',');
	csv_field(out, s->unit, strlen(s->unit));
	buf_char(out, ',');
	csv_number(out, s->value);
	buf_char(out, '\n');
	return 0;
}

static int csv_event(void *state, const struct sink_source *src, const struct window_event *e,
		     struct buf *out)
{
	(void)state; /* a table of samples has no place for them: jsonl and sql do */
	(void)src;
	(void)e;
	(void)out;
	return 0;
}

static int csv_end(void *state, const struct sink_source *src, struct buf *out)
{
	(void)state;
	(void)src;
	(void)out;
	return 0;
}

const struct sink_type csv_sink = {
	.name = "csv",
	.extension = "csv",
	.help = "one line a sample, for pandas and spreadsheets",
	.begin = csv_begin,
	.sample = csv_sample,
	.event = csv_event,
	.end = csv_end,
};
