/* SPDX-License-Identifier: MIT
 *
 * The list of runs. What the folder says of a run costs next to nothing; its headline costs as much as
 * `spotter why`. So the list is there at once, and headlines come one after the other.
 */
#include "web/serve_make.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "explain/verdict.h"
#include "record/reader.h"
#include "web/serve_request.h"
#include "web/story.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Points of the small pictures beside a run. */
enum { SPARK_POINTS = 48, SPARK_DIGITS = 3 };
/* A run that goes on gets a new headline no sooner, and not so often that it takes more than this share. */
enum { SUMMARY_EVERY_S = 5, SUMMARY_REST = 20 };

void shelf_done(struct shelf *s)
{
	store_list_done(&s->runs);
	for (size_t i = 0; i < s->summaries.n; i++)
		buf_done(&s->summaries.v[i].json);
	vec_done(&s->summaries);
}

static struct summary *summary_of(const struct shelf *s, const char *path)
{
	for (size_t i = 0; i < s->summaries.n; i++)
		if (strcmp(s->summaries.v[i].path, path) == 0)
			return &s->summaries.v[i];
	return NULL;
}

static size_t first_shown(const struct shelf *s)
{
	return s->runs.rows.n > SHELF_SHOWN ? s->runs.rows.n - SHELF_SHOWN : 0;
}

/* Those of runs that are gone go, too. */
static void forget_gone(struct shelf *s)
{
	size_t kept = 0;

	s->round++;
	for (size_t i = first_shown(s); i < s->runs.rows.n; i++) {
		struct summary *old = summary_of(s, s->runs.rows.v[i].path);

		if (old)
			old->round = s->round;
	}
	for (size_t i = 0; i < s->summaries.n; i++) {
		if (s->summaries.v[i].round != s->round)
			buf_done(&s->summaries.v[i].json);
		else if (kept++ != i)
			s->summaries.v[kept - 1] = s->summaries.v[i];
	}
	s->summaries.n = kept;
}

int shelf_read(struct shelf *s, struct err *e)
{
	struct store_list l = { 0 };
	int r = store_list(&l, e);

	if (r < 0)
		return r;
	store_list_done(&s->runs);
	s->runs = l;
	forget_gone(s);
	return 0;
}

static void put_finding(struct json *j, const struct finding *f)
{
	json_begin(j, '{');
	json_key_str(j, "cause", f->cause);
	json_key_str(j, "title", f->title);
	if (f->has_gain) {
		json_key_begin(j, "gain", '{');
		story_key_number(j, "speedup", f->speedup);
		story_key_number(j, "low", f->low);
		story_key_number(j, "high", f->high);
		json_end(j, '}');
	}
	json_end(j, '}');
}

/* Why nothing can be said: a run that was too short before anything else. */
static const struct cannot_tell *first_blind(const struct verdict *v)
{
	for (size_t i = 0; i < v->blind.n; i++)
		if (strncmp(v->blind.v[i].why, "only ", 5) == 0)
			return &v->blind.v[i];
	return v->blind.n ? &v->blind.v[0] : NULL;
}

static void put_words(struct json *j, const struct verdict *v)
{
	const struct cannot_tell *blind = first_blind(v);

	json_key_begin(j, "findings", '[');
	for (size_t i = 0; i < v->findings.n; i++)
		put_finding(j, &v->findings.v[i]);
	json_end(j, ']');
	json_key_begin(j, "notes", '[');
	for (size_t i = 0; v->limit && i < v->notes.n; i++)
		if (strcmp(v->notes.v[i].cause, v->limit) == 0)
			put_finding(j, &v->notes.v[i]);
	json_end(j, ']');
	json_key_str(j, "limit", v->limit);
	if (v->judged || !v->healthy)
		json_key_bool(j, "healthy", v->healthy);
	json_key_begin(j, "cannot_tell", '[');
	if (blind) {
		json_begin(j, '{');
		json_key_str(j, "why", blind->why);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_steps(struct json *j, const struct verdict *v)
{
	const struct step_group *lead = steps_lead(&v->steps);

	json_key_begin(j, "steps", '{');
	story_key_number(j, "rate_hz", lead ? lead->rate_hz : v->steps.inferred.rate_hz);
	if (lead)
		json_key_int(j, "count", (int64_t)lead->count);
	json_key_str(j, "source", steps_source(&v->steps));
	json_end(j, '}');
}

/* The subset of spotter.verdict/1 that a headline is made of. */
static void put_verdict(struct json *j, const struct verdict *v)
{
	const struct usage *u = &v->usage;

	json_key_begin(j, "verdict", '{');
	put_words(j, v);
	json_key_begin(j, "cpu", '{');
	story_key_number(j, "cores", v->cpu_cores);
	json_end(j, '}');
	json_key_begin(j, "usage", '{');
	json_key_begin(j, "cpu", '{');
	story_key_number(j, "cores_used", u->cores_used);
	story_key_number(j, "cores_allowed", u->cores_allowed);
	json_end(j, '}');
	json_key_begin(j, "memory", '{');
	story_key_number(j, "peak_bytes", u->memory_peak);
	json_end(j, '}');
	json_end(j, '}');
	if (steps_source(&v->steps))
		put_steps(j, v);
	json_end(j, '}');
}

static void put_spark(struct json *j, const char *name, double of, const double *v, size_t n)
{
	json_begin(j, '{');
	json_key_str(j, "name", name);
	story_key_number(j, "of", of);
	json_key_begin(j, "v", '[');
	for (size_t i = 0; i < n; i++)
		story_number(j, v[i], SPARK_DIGITS);
	json_end(j, ']');
	json_end(j, '}');
}

/* All GPUs as one: the mean of those that are known at a moment. False: none. */
static bool gpu_mean(const struct timeline *t, double *ret)
{
	unsigned counts[SPARK_POINTS] = { 0 };
	bool any = false;

	for (size_t i = 0; i < t->points && i < SPARK_POINTS; i++)
		ret[i] = 0;
	for (size_t k = 0; k < t->tracks.n; k++) {
		const struct track *track = &t->tracks.v[k];
		size_t n = strlen(track->id);

		if (strcmp(track->group, "gpu") != 0 || n < 5 || !track->series.n ||
		    strcmp(track->id + n - 5, "_busy") != 0)
			continue;
		for (size_t i = 0; i < t->points && i < SPARK_POINTS; i++) {
			if (!isfinite(track->series.v[0].mean[i]))
				continue;
			ret[i] += track->series.v[0].mean[i];
			counts[i]++;
			any = true;
		}
	}
	for (size_t i = 0; i < t->points && i < SPARK_POINTS; i++)
		ret[i] = counts[i] ? ret[i] / counts[i] : NAN;
	return any;
}

static void put_sparks(struct json *j, const struct timeline *t)
{
	size_t n = t->points < SPARK_POINTS ? t->points : SPARK_POINTS;
	double gpu[SPARK_POINTS];

	json_key_begin(j, "sparks", '[');
	if (gpu_mean(t, gpu))
		put_spark(j, "GPU", 100, gpu, n);
	for (size_t i = 0; i < t->tracks.n; i++) {
		const struct track *track = &t->tracks.v[i];

		if (!track->series.n)
			continue;
		if (strcmp(track->id, "cpu") == 0)
			put_spark(j, "CPU", track->limit, track->series.v[0].mean, n);
		else if (strcmp(track->id, "step_time") == 0)
			put_spark(j, "step", NAN, track->series.v[0].mean, n);
	}
	json_end(j, ']');
}

static int put_summary(struct record *record, struct buf *out)
{
	struct window w = record_window(record, 0, 0);
	auto_done(verdict) struct verdict v = { 0 };
	struct timeline t = { 0 };
	struct json j;
	int r = explain(&w, &v);

	if (r == 0)
		r = timeline_take(&w, &v, SPARK_POINTS, &t);
	if (r == 0) {
		json_init(&j, out, false);
		json_begin(&j, '{');
		put_verdict(&j, &v);
		put_sparks(&j, &t);
		json_end(&j, '}');
	}
	timeline_done(&t);
	return r;
}

/* A record that cannot be read has no headline; the list says why it cannot. */
static void summarise(struct summary *s, bool live, int64_t now_ns)
{
	int64_t begin = clock_thread_cpu_ns(), cost;
	struct record *record = NULL;
	struct err e = { 0 };

	record_stamp_of(s->path, &s->stamp);
	buf_reset(&s->json);
	if (record_open(s->path, &record, &e) == 0 && put_summary(record, &s->json) < 0)
		buf_reset(&s->json);
	record_close(record);
	cost = clock_thread_cpu_ns() - begin;
	s->due_ns = now_ns + (cost * SUMMARY_REST > SUMMARY_EVERY_S * NS_PER_S
				  ? cost * SUMMARY_REST
				  : SUMMARY_EVERY_S * NS_PER_S);
	if (!live)
		s->due_ns = now_ns;
}

/* When the headline of a run is to be made: now, later, INT64_MAX: it is there. */
static int64_t due_of(const struct shelf *s, const struct store_entry *run)
{
	const struct summary *old = summary_of(s, run->path);
	struct record_stamp stamp;

	if (run->problem[0])
		return INT64_MAX;
	if (!old)
		return 0;
	if (!record_stamp_of(run->path, &stamp) || record_stamp_same(&stamp, &old->stamp))
		return INT64_MAX;
	return old->due_ns;
}

bool shelf_summarise(struct shelf *s, int64_t now_ns, int64_t *ret_next_ns)
{
	*ret_next_ns = INT64_MAX;
	for (size_t i = s->runs.rows.n; i-- > first_shown(s);) {
		const struct store_entry *run = &s->runs.rows.v[i];
		int64_t due = due_of(s, run);
		struct summary *summary;

		if (due > now_ns) {
			*ret_next_ns = due < *ret_next_ns ? due : *ret_next_ns;
			continue;
		}
		summary = summary_of(s, run->path);
		if (!summary) {
			summary = vec_push(&s->summaries);
			if (!summary)
				return false;
			text_copy(summary->path, sizeof(summary->path), run->path);
			summary->round = s->round;
		}
		summarise(summary, run->state == RUN_GOING, now_ns);
		*ret_next_ns = now_ns;
		return true;
	}
	return false;
}

static void put_run(struct json *j, const struct shelf *s, const struct store_entry *run)
{
	const struct summary *summary = summary_of(s, run->path);
	const char *base = strrchr(run->path, '/');
	char text[160];

	json_begin(j, '{');
	/* One that no address can have is listed, and leads nowhere. */
	if (serve_id_ok(run->id, strlen(run->id)))
		json_key_str(j, "id", run->id);
	json_key_str(j, "name",
		     text_safe_copy(text, sizeof(text),
				    run->name[0] ? run->name : (base ? base + 1 : run->path)));
	json_key_int(j, "bytes", run->bytes);
	if (run->problem[0]) {
		json_key_str(j, "problem", text_safe_copy(text, sizeof(text), run->problem));
		json_end(j, '}');
		return;
	}
	json_key_str(j, "state", run_state_name(run->state));
	if (run->started_wall_ns > 0) {
		clock_iso(run->started_wall_ns, text, sizeof(text));
		json_key_str(j, "started", text);
	}
	story_key_number(j, "duration_s", run->duration_s);
	if (run->has_exit) {
		json_key_begin(j, "exit", '{');
		json_key_int(j, run->exit_signal ? "signal" : "code",
			     run->exit_signal ? run->exit_signal : run->exit_code);
		json_end(j, '}');
	}
	if (summary && summary->json.len) {
		json_key(j, "summary");
		json_raw(j, summary->json.data, summary->json.len);
	}
	json_end(j, '}');
}

void shelf_json(const struct shelf *s, struct buf *out)
{
	char folder[PATH_MAX] = "", shown[400];
	int64_t bytes = 0;
	struct json j;

	for (size_t i = 0; i < s->runs.rows.n; i++)
		bytes += s->runs.rows.v[i].bytes;
	(void)store_dir(false, folder, sizeof(folder), NULL);
	json_init(&j, out, false);
	json_begin(&j, '{');
	json_key_str(&j, "schema", "spotter.serve.runs/1");
	json_key_str(&j, "spotter", SPOTTER_VERSION);
	json_key_str(&j, "folder", text_safe_copy(shown, sizeof(shown), folder));
	json_key_int(&j, "count", (int64_t)s->runs.rows.n);
	json_key_int(&j, "bytes", bytes);
	json_key_begin(&j, "runs", '[');
	for (size_t i = s->runs.rows.n; i-- > first_shown(s);)
		put_run(&j, s, &s->runs.rows.v[i]);
	json_end(&j, ']');
	json_end(&j, '}');
}
