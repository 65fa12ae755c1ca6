/* SPDX-License-Identifier: MIT
 *
 * The verdict as JSON, schema spotter.verdict/1: keys are only ever added. Absent values are absent
 * keys, shares are 0..1, times seconds, sizes bytes.
 */
#include "explain/verdict.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "explain/fact.h"
#include "explain/render.h"

#include <math.h>

/* A window on a live process may have no start of a run; times of a record may be anything. */
static int64_t start_of(const struct verdict *v)
{
	int64_t start = v->run->started_mono_ns;

	return start > 0 && start <= v->from_ns ? start : v->from_ns;
}

static int64_t end_of(const struct verdict *v)
{
	int64_t end = v->run->ended_mono_ns;

	return end > v->to_ns && end < INT64_MAX / 4 ? end : v->to_ns;
}

static void put_run(struct json *j, const struct run_info *r, const struct verdict *v)
{
	char iso[40];

	json_key_begin(j, "run", '{');
	json_key_str(j, "id", r->id[0] ? r->id : NULL);
	json_key_str(j, "name", r->name);
	json_key_begin(j, "argv", '[');
	for (size_t i = 0; r->argv && r->argv[i]; i++)
		json_str(j, r->argv[i]);
	json_end(j, ']');
	json_key_str(j, "host", r->machine.hostname[0] ? r->machine.hostname : NULL);
	if (r->started_wall_ns > 0) {
		clock_iso(r->started_wall_ns, iso, sizeof(iso));
		json_key_str(j, "started", iso);
	}
	json_key_num(j, "duration_s", (double)(end_of(v) - start_of(v)) / 1e9);
	if (r->has_exit) {
		json_key_begin(j, "exit", '{');
		if (r->exit_signal)
			json_key_int(j, "signal", r->exit_signal);
		else
			json_key_int(j, "code", r->exit_code);
		json_end(j, '}');
	}
	if (v->steps.ranks)
		json_key_int(j, "ranks", v->steps.ranks);
	json_key_bool(j, "complete", r->state == RUN_ENDED);
	json_end(j, '}');
}

/* Sizes and counts are whole numbers; absent ones are left out. */
static void put_whole(struct json *j, const char *key, double v)
{
	if (isfinite(v) && fabs(v) < 9e18)
		json_key_int(j, key, llround(v));
}

static void put_gpu_processes(struct json *j, const struct usage *u, const struct usage_gpu *g)
{
	/* Empty: the driver said that there is none. */
	if (!g->listed && !g->n_processes)
		return;
	json_key_begin(j, "processes", '[');
	for (size_t i = 0; i < g->n_processes; i++) {
		const struct usage_gpu_process *p = &u->gpu_processes.v[g->first_process + i];

		json_begin(j, '{');
		if (p->pid > 0)
			json_key_int(j, "pid", p->pid);
		put_whole(j, "memory_bytes", p->memory);
		json_key_num(j, "busy", p->busy);
		if (p->job >= 0)
			json_key_bool(j, "job", p->job > 0);
		json_key_str(j, "name", p->name[0] ? p->name : NULL);
		json_end(j, '}');
	}
	json_end(j, ']');
	if (g->left_out)
		json_key_int(j, "processes_left_out", (int64_t)g->left_out);
}

/* A partition has the index of its GPU, and its own number. */
static void put_gpu(struct json *j, const struct usage *u, const struct usage_gpu *g)
{
	json_begin(j, '{');
	json_key_int(j, "index", g->index);
	if (g->partition >= 0)
		json_key_int(j, "partition", g->partition);
	json_key_str(j, "profile", g->profile[0] ? g->profile : NULL);
	json_key_str(j, "uuid", g->uuid[0] ? g->uuid : NULL);
	json_key_str(j, "name", g->name);
	json_key_str(j, "vendor", g->vendor[0] ? g->vendor : NULL);
	json_key_bool(j, "simulated", g->simulated);
	if (g->allowed >= 0)
		json_key_bool(j, "allowed", g->allowed > 0);
	if (g->job >= 0)
		json_key_bool(j, "used_by_job", g->job > 0);
	json_key_str(j, "state", g->state);
	json_key_num(j, "seen_s", g->seen);
	json_key_num(j, "busy", g->busy);
	if (g->busy_at_least)
		json_key_bool(j, "busy_at_least", true);
	json_key_num(j, "sm_active", g->sm_active);
	put_whole(j, "memory_used_bytes", g->memory_used);
	put_whole(j, "memory_peak_bytes", g->memory_peak);
	put_whole(j, "memory_total_bytes", g->memory_total);
	if (g->unified)
		json_key_bool(j, "unified_memory", true);
	json_key_num(j, "power_w", g->power);
	json_key_num(j, "energy_j", g->energy);
	json_key_num(j, "temperature_c", g->temperature);
	json_key_num(j, "clock_hz", g->clock);
	json_key_num(j, "clock_max_hz", g->clock_max);
	json_key_str(j, "held_by", g->held[0] ? g->held : NULL);
	put_gpu_processes(j, u, g);
	json_end(j, '}');
}

static void put_usage(struct json *j, const struct usage *u)
{
	json_key_begin(j, "usage", '{');
	json_key_begin(j, "cpu", '{');
	json_key_num(j, "cores_used", u->cores_used);
	json_key_num(j, "cores_allowed", u->cores_allowed);
	json_key_num(j, "cores_machine", u->cores_machine);
	if (u->threads_per_core > 0)
		json_key_int(j, "threads_per_core", u->threads_per_core);
	json_key_num(j, "steal", u->steal);
	json_key_num(j, "percent_of_one_core", fact_round(u->cores_used * 100));
	json_key_num(j, "percent_of_allowed",
		     u->cores_allowed > 0 ? fact_round(u->cores_used / u->cores_allowed * 100)
					  : NAN);
	json_key_str(j, "limit", u->cpu_limit);
	json_end(j, '}');
	json_key_begin(j, "memory", '{');
	put_whole(j, "used_bytes", u->memory_used);
	put_whole(j, "peak_bytes", u->memory_peak);
	put_whole(j, "allowed_bytes", u->memory_allowed);
	json_key_str(j, "limit", u->memory_limit);
	json_end(j, '}');
	json_key_begin(j, "storage", '{');
	put_whole(j, "read_bytes", u->read_bytes);
	put_whole(j, "written_bytes", u->written_bytes);
	json_end(j, '}');
	/* Absent, not empty: whether there is none or none could be read is not known. */
	if (u->gpus.n) {
		json_key_begin(j, "gpus", '[');
		for (size_t i = 0; i < u->gpus.n; i++)
			put_gpu(j, u, &u->gpus.v[i]);
		json_end(j, ']');
	}
	json_key_begin(j, "others", '{');
	json_key_num(j, "cpu_cores", u->others_cores);
	json_end(j, '}');
	json_end(j, '}');
}

static void put_top(struct json *j, const struct ledger_line *l)
{
	/* Absent, not empty: no stack said what it did. */
	if (!l->n_top)
		return;
	json_key_begin(j, "top", '[');
	for (size_t i = 0; i < l->n_top; i++) {
		const struct ledger_top *t = &l->top[i];

		json_begin(j, '{');
		json_key_str(j, "function", t->function[0] ? t->function : NULL);
		json_key_str(j, "file", t->file[0] ? t->file : NULL);
		if (t->line > 0)
			json_key_int(j, "line", t->line);
		json_key_num(j, "share", t->share);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_time(struct json *j, const struct verdict *v)
{
	if (!v->time_tid)
		return;
	json_key_begin(j, "time", '{');
	json_key_int(j, "pid", v->time_pid);
	json_key_int(j, "tid", v->time_tid);
	json_key_str(j, "name", v->time_name[0] ? v->time_name : NULL);
	json_key_begin(j, "ledger", '[');
	for (size_t i = 0; i < v->time.n; i++) {
		const struct ledger_line *l = &v->time.v[i];

		json_begin(j, '{');
		json_key_str(j, "state", l->role);
		json_key_num(j, "share", l->share);
		json_key_num(j, "seconds", l->seconds);
		json_key_num(j, "seconds_per_step",
			     v->step_wall_s > 0 ? fact_round(l->share * v->step_wall_s) : NAN);
		put_top(j, l);
		json_end(j, '}');
	}
	json_end(j, ']');
	json_key_num(j, "unaccounted", v->time_unaccounted);
	json_key_num(j, "error", fact_round(v->time_error));
	json_end(j, '}');
}

static void put_ledger(struct json *j, const struct verdict *v)
{
	json_key_begin(j, "cpu", '{');
	json_key_num(j, "cores", v->cpu_cores);
	json_key_begin(j, "ledger", '[');
	for (size_t i = 0; i < v->cpu.n; i++) {
		const struct ledger_line *l = &v->cpu.v[i];

		json_begin(j, '{');
		json_key_str(j, "role", l->role);
		if (l->processes >= 0)
			json_key_int(j, "processes", l->processes);
		if (l->threads >= 0)
			json_key_int(j, "threads", l->threads);
		json_key_num(j, "cores", l->cores);
		json_key_num(j, "share", l->share);
		put_top(j, l);
		json_end(j, '}');
	}
	json_end(j, ']');
	if (isfinite(v->cpu_cores))
		json_key_num(j, "unaccounted", v->cpu_unaccounted);
	json_end(j, '}');
}

static void put_where(struct json *j, const struct finding *x)
{
	if (!x->where.file[0] && !x->where.function[0])
		return;
	json_key_begin(j, "where", '{');
	json_key_str(j, "file", x->where.file[0] ? x->where.file : NULL);
	if (x->where.line > 0)
		json_key_int(j, "line", x->where.line);
	json_key_str(j, "function", x->where.function[0] ? x->where.function : NULL);
	if (x->where.n_callers)
		json_key_begin(j, "callers", '[');
	for (size_t i = 0; i < x->where.n_callers; i++) {
		json_begin(j, '{');
		json_key_str(j, "file", x->where.callers[i].file);
		json_key_int(j, "line", x->where.callers[i].line);
		json_key_str(j, "function", x->where.callers[i].function);
		json_end(j, '}');
	}
	if (x->where.n_callers)
		json_end(j, ']');
	if (x->where.guess)
		json_key_bool(j, "guess", true);
	json_end(j, '}');
}

static void put_finding(struct json *j, const struct finding *x)
{
	json_begin(j, '{');
	json_key_str(j, "cause", x->cause);
	json_key_str(j, "family", x->family);
	json_key_str(j, "title", x->title);
	json_key_num(j, "cost", fact_round(x->cost));
	json_key_num(j, "confidence", fact_round(x->confidence));
	put_where(j, x);
	json_key_begin(j, "evidence", '[');
	for (size_t i = 0; i < x->n_evidence; i++) {
		const struct evidence *e = &x->evidence[i];

		json_begin(j, '{');
		json_key_str(j, "text", e->text);
		json_key_str(j, "metric", e->metric);
		json_key_num(j, "value", e->value);
		json_key_str(j, "unit", e->unit);
		json_end(j, '}');
	}
	json_end(j, ']');
	json_key_begin(j, "fix", '{');
	json_key_str(j, "summary", x->fix);
	json_key_str(j, "edit", x->edit[0] ? x->edit : NULL);
	json_end(j, '}');
	if (x->has_gain || x->then[0]) {
		json_key_begin(j, "gain", '{');
		json_key_num(j, "speedup", x->has_gain ? fact_round(x->speedup) : NAN);
		json_key_num(j, "low", x->has_gain ? fact_round(x->low) : NAN);
		json_key_num(j, "high", x->has_gain ? fact_round(x->high) : NAN);
		json_key_num(j, "most", x->has_gain && x->most > 0 ? fact_round(x->most) : NAN);
		json_key_str(j, "then", x->then[0] ? x->then : NULL);
		json_end(j, '}');
	}
	json_end(j, '}');
}

static void put_findings(struct json *j, const char *key, const struct finding *v, size_t n)
{
	json_key_begin(j, key, '[');
	for (size_t i = 0; i < n; i++)
		put_finding(j, &v[i]);
	json_end(j, ']');
}

static void put_rest(struct json *j, const struct verdict *v)
{
	if (v->judged || !v->healthy)
		json_key_bool(j, "healthy", v->healthy);
	json_key_str(j, "limit", v->limit);
	if (v->findings.n > 1 && isfinite(v->together)) {
		json_key_begin(j, "together", '{');
		json_key_num(j, "speedup", v->together);
		json_key_num(j, "low", v->together_low);
		json_key_num(j, "high", v->together_high);
		json_end(j, '}');
	}
	json_key_begin(j, "cannot_tell", '[');
	for (size_t i = 0; i < v->blind.n; i++) {
		json_begin(j, '{');
		json_key_str(j, "cause", v->blind.v[i].cause);
		json_key_str(j, "why", v->blind.v[i].why);
		json_end(j, '}');
	}
	json_end(j, ']');
	json_key_begin(j, "overhead", '{');
	json_key_num(j, "cpu_share_of_core", v->overhead.cpu_share_of_core);
	put_whole(j, "rss_bytes", v->overhead.rss_bytes);
	put_whole(j, "samples", v->overhead.samples);
	put_whole(j, "samples_skipped", v->overhead.samples_skipped);
	put_whole(j, "stack_samples", v->overhead.stack_samples);
	put_whole(j, "stack_unproven", v->overhead.stack_unproven);
	put_whole(j, "stack_partial", v->overhead.stack_partial);
	json_end(j, '}');
}

void render_json(const struct verdict *v, struct buf *out)
{
	int64_t start = start_of(v);
	char level[4] = { 'L', (char)('0' + (v->level & 3)), '\0' };
	struct json j;

	json_init(&j, out, true);
	json_begin(&j, '{');
	json_key_str(&j, "schema", "spotter.verdict/1");
	put_run(&j, v->run, v);
	json_key_begin(&j, "window", '{');
	json_key_num(&j, "from_s", (double)(v->from_ns - start) / 1e9);
	json_key_num(&j, "to_s", (double)(v->to_ns - start) / 1e9);
	json_key_str(&j, "why", v->window_why);
	json_end(&j, '}');
	json_key_str(&j, "level", level);
	json_key_str(&j, "level_why", v->level_why[0] ? v->level_why : NULL);
	render_steps_json(&j, v);
	put_usage(&j, &v->usage);
	put_time(&j, v);
	put_ledger(&j, v);
	render_ranks_json(&j, v);
	put_findings(&j, "findings", v->findings.v, v->findings.n);
	put_findings(&j, "notes", v->notes.v, v->notes.n);
	put_rest(&j, v);
	json_end(&j, '}');
	buf_char(out, '\n');
}
