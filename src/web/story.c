/* SPDX-License-Identifier: MIT */
#include "web/story.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"
#include "explain/verdict.h"
#include "model/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS = 4, TIME_DIGITS = 6 };
enum { FLAME_TEXT = 80000 };
/* Of a command line nobody reads more. */
enum { ARGV_MOST = 64, ARGV_BYTES = 400, RANKS_MOST = 64 };

void story_number(struct json *j, double v, int digits)
{
	char text[40], *e;
	size_t n;

	if (!isfinite(v)) {
		json_raw(j, "null", 4);
		return;
	}
	n = (size_t)snprintf(text, sizeof(text), "%.*g", digits, v);
	/* 1.5e+09 is 1.5e9 */
	e = strstr(text, "e+");
	if (e) {
		size_t zeros = 1 + strspn(e + 2, "0");

		memmove(e + 1, e + 1 + zeros, strlen(e + 1 + zeros) + 1);
		n -= zeros;
	}
	json_raw(j, text, n);
}

void story_key_number(struct json *j, const char *key, double v)
{
	if (!isfinite(v))
		return;
	json_key(j, key);
	story_number(j, v, DIGITS);
}

static void put_numbers(struct json *j, const char *key, const double *v, size_t n)
{
	json_key_begin(j, key, '[');
	for (size_t i = 0; i < n; i++)
		story_number(j, v[i], DIGITS);
	json_end(j, ']');
}

static void put_track(struct json *j, const struct track *t, size_t points)
{
	json_begin(j, '{');
	json_key_str(j, "id", t->id);
	json_key_str(j, "group", t->group);
	json_key_str(j, "title", t->title);
	json_key_str(j, "unit", t->unit);
	if (isfinite(t->limit)) {
		story_key_number(j, "limit", t->limit);
		json_key_str(j, "limit_name", t->limit_name);
	}
	json_key_begin(j, "series", '[');
	for (size_t i = 0; i < t->series.n; i++) {
		const struct track_series *s = &t->series.v[i];

		json_begin(j, '{');
		json_key_str(j, "name", s->name);
		put_numbers(j, "mean", s->mean, points);
		if (s->min)
			put_numbers(j, "min", s->min, points);
		if (s->max)
			put_numbers(j, "max", s->max, points);
		json_end(j, '}');
	}
	json_end(j, ']');
	json_end(j, '}');
}

static void put_time(struct json *j, const char *key, double seconds)
{
	json_key(j, key);
	story_number(j, seconds, TIME_DIGITS);
}

static void put_timeline(struct json *j, const struct timeline *t)
{
	json_key_begin(j, "timeline", '{');
	put_time(j, "from", (double)(t->from_ns - t->start_ns) / 1e9);
	put_time(j, "to", (double)(t->to_ns - t->start_ns) / 1e9);
	json_key_begin(j, "t", '[');
	for (size_t i = 0; i < t->points; i++)
		story_number(j, timeline_at(t, i), TIME_DIGITS);
	json_end(j, ']');
	json_key_begin(j, "tracks", '[');
	for (size_t i = 0; i < t->tracks.n; i++)
		put_track(j, &t->tracks.v[i], t->points);
	json_end(j, ']');
	json_key_begin(j, "phases", '[');
	for (size_t i = 0; i < t->phases.n; i++) {
		json_begin(j, '{');
		json_key_str(j, "name", t->phases.v[i].name);
		put_time(j, "from", t->phases.v[i].from);
		put_time(j, "to", t->phases.v[i].to);
		json_end(j, '}');
	}
	json_end(j, ']');
	json_key_begin(j, "events", '[');
	for (size_t i = 0; i < t->events.n; i++) {
		json_begin(j, '{');
		put_time(j, "t", t->events.v[i].t);
		json_key_str(j, "kind", t->events.v[i].kind);
		json_key_str(j, "text", t->events.v[i].text);
		json_end(j, '}');
	}
	json_end(j, ']');
	if (t->events_left)
		json_key_int(j, "events_left", (int64_t)t->events_left);
	json_end(j, '}');
}

static void put_flame(struct json *j, const struct flame *f)
{
	if (!f->nodes.n)
		return;
	json_key_begin(j, "flame", '{');
	story_key_number(j, "total_s", f->total_s);
	json_key_begin(j, "strings", '[');
	for (size_t i = 0; i < f->strings.n; i++)
		json_str(j, f->strings.v[i]);
	json_end(j, ']');
	json_key_begin(j, "nodes", '[');
	for (size_t i = 0; i < f->nodes.n; i++) {
		const struct flame_node *n = &f->nodes.v[i];

		json_begin(j, '[');
		json_int(j, n->parent);
		json_int(j, n->function);
		json_int(j, n->file);
		json_int(j, n->line);
		story_number(j, n->self_s, DIGITS);
		story_number(j, n->total_s, DIGITS);
		json_end(j, ']');
	}
	json_end(j, ']');
	json_end(j, '}');
}

static char *safe_text(const char *text, size_t most)
{
	auto_done(buf) struct buf safe = { 0 };
	size_t n = strlen(text), cut = n < most ? n : most;

	/* no half character */
	while (cut < n && cut && ((unsigned char)text[cut] & 0xc0) == 0x80)
		cut--;
	text_safe(&safe, text, cut);
	if (cut < n)
		buf_str(&safe, "...");
	return buf_ok(&safe) ? strdup(buf_text(&safe)) : NULL;
}

int story_run(const struct run_info *run, struct run_info *ret)
{
	char *argv[ARGV_MOST + 2] = { NULL };
	struct run_info copy = *run;
	size_t n = 0;
	int r = 0;

	copy.argv = NULL;
	copy.cwd = NULL;
	for (; run->argv && run->argv[n] && n < ARGV_MOST && r == 0; n++) {
		argv[n] = safe_text(run->argv[n], ARGV_BYTES);
		r = argv[n] ? 0 : -ENOMEM;
	}
	if (r == 0 && run->argv && run->argv[n]) {
		argv[n] = strdup("...");
		r = argv[n] ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = run_info_set_argv(&copy, argv);
	for (size_t i = 0; i < ARRAY_LEN(argv); i++)
		free(argv[i]);
	text_safe_copy(copy.name, sizeof(copy.name), run->name);
	text_safe_copy(copy.id, sizeof(copy.id), run->id);
	text_safe_copy(copy.machine.hostname, sizeof(copy.machine.hostname), run->machine.hostname);
	if (r == 0)
		*ret = copy;
	return r;
}

/* JSON for people without its blanks. */
static void put_compact(struct json *j, const char *text)
{
	auto_done(buf) struct buf out = { 0 };
	bool in_string = false;

	for (; *text; text++) {
		if (in_string && *text == '\\' && text[1]) {
			buf_char(&out, *text++);
			buf_char(&out, *text);
			continue;
		}
		in_string ^= *text == '"';
		if (in_string || !strchr(" \n", *text))
			buf_char(&out, *text);
	}
	json_raw(j, buf_text(&out), out.len);
	j->out->failed |= out.failed;
}

/* As `why --json` says it; of a thousand ranks the first ones. */
static void put_verdict(const struct story *s, struct json *j)
{
	struct verdict v = *s->verdict;
	auto_done(run_info) struct run_info run = { 0 };
	auto_done(buf) struct buf json = { 0 }, markdown = { 0 };

	if (story_run(s->verdict->run, &run) < 0) {
		j->out->failed = true;
		return;
	}
	v.run = &run;
	if (v.steps.groups.n > RANKS_MOST && v.steps.lead < RANKS_MOST)
		v.steps.groups.n = RANKS_MOST;
	render_json(&v, &json);
	render_markdown(&v, &markdown);
	json_key(j, "verdict");
	put_compact(j, buf_text(&json));
	json_key_str(j, "markdown", buf_text(&markdown));
	j->out->failed |= json.failed || markdown.failed;
}

int story_take(const struct window *w, const struct verdict *v, unsigned level, struct story *ret)
{
	struct story s = { .window = w, .verdict = v, .level = level };
	int r = timeline_take(w, v, TIMELINE_POINTS >> level, &s.timeline);

	if (r == 0)
		r = flame_take(w, v, FLAME_NODES >> level, FLAME_TEXT >> level, &s.flame);
	if (r < 0)
		story_done(&s);
	else
		*ret = s;
	return r;
}

void story_done(struct story *s)
{
	timeline_done(&s->timeline);
	flame_done(&s->flame);
}

void story_json(const struct story *s, struct buf *out)
{
	struct json j;

	json_init(&j, out, false);
	json_begin(&j, '{');
	json_key_str(&j, "schema", "spotter.report/1");
	json_key_str(&j, "spotter", SPOTTER_VERSION);
	put_verdict(s, &j);
	put_timeline(&j, &s->timeline);
	story_steps(s, &j);
	put_flame(&j, &s->flame);
	story_rows(s, &j);
	json_end(&j, '}');
}
