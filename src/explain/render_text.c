/* SPDX-License-Identifier: MIT
 *
 * The verdict for people: what it used, what held it up, what to change. At the end of `run` only
 * the twelve lines that matter most; in full for `report`.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/num.h"
#include "explain/page.h"
#include "explain/render.h"
#include "model/stack_text.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>

static const char *how_it_ended(const struct run_info *r, char *buf, size_t size)
{
	const char *name = r->exit_signal > 0 ? sigabbrev_np(r->exit_signal) : NULL;

	if (r->has_exit && r->exit_signal && name)
		snprintf(buf, size, "killed by SIG%s", name);
	else if (r->has_exit && r->exit_signal)
		snprintf(buf, size, "killed by signal %d", r->exit_signal);
	else if (r->has_exit)
		snprintf(buf, size, "exit %d", r->exit_code);
	else if (r->state == RUN_DETACHED)
		snprintf(buf, size, "still running when the recording ended");
	else if (r->state == RUN_INTERRUPTED)
		snprintf(buf, size, "the recording broke off here");
	else
		snprintf(buf, size, "still running");
	return buf;
}

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

static void put_head(struct page *p, const struct verdict *v)
{
	char seconds[32], ended[64];

	page_add(p, W_HEAD, PAGE_BOLD, "Run", "%s: %s, %s", v->run->name,
		 num_seconds((double)(end_of(v) - start_of(v)) / 1e9, seconds, sizeof(seconds)),
		 how_it_ended(v->run, ended, sizeof(ended)));
}

static const char *few_cores(double cores, char *buf, size_t size)
{
	return cores > 0 && cores < 0.01 ? "under 0.01" : num_cores(cores, buf, size);
}

static void put_cpu(struct page *p, const struct usage *u)
{
	char used[24], allowed[24], machine[24], share[24], part[24], steal[24];
	const char *few;
	double cores;

	if (!isfinite(u->cores_used))
		return;
	few = few_cores(u->cores_used, used, sizeof(used));
	if (!isfinite(u->cores_allowed) || u->cores_allowed <= 0) {
		page_add(p, W_CPU, PAGE_PLAIN, "CPU", "%s cores; `top` calls this %.0f %%", few,
			 u->cores_used * 100);
		return;
	}
	page_add(p, W_CPU, PAGE_PLAIN, "CPU",
		 "%s of %s cores allowed (%s), %s in the machine; `top` calls this %.0f %%%s%s%s",
		 few, num_cores(u->cores_allowed, allowed, sizeof(allowed)),
		 num_percent(u->cores_used / u->cores_allowed, share, sizeof(share)),
		 isfinite(u->cores_machine) ? num_cores(u->cores_machine, machine, sizeof(machine))
					    : "an unknown number",
		 u->cores_used * 100, u->cpu_limit ? " [limit: " : "",
		 u->cpu_limit ? u->cpu_limit : "", u->cpu_limit ? "]" : "");
	/* Two threads of one core share it: above one per core the next "core" is worth less. Which
	 * CPUs an affinity picks is not known here. */
	cores = u->threads_per_core > 1 ? u->cores_machine / u->threads_per_core : NAN;
	if (u->cores_used > cores && u->cpu_limit && strcmp(u->cpu_limit, "machine") == 0)
		page_add(
		    p, W_DETAIL, PAGE_PLAIN, "",
		    "the machine's %s CPUs are %s cores with %d threads each: beyond %s a CPU is "
		    "worth less",
		    machine, num_cores(cores, part, sizeof(part)), u->threads_per_core, part);
	if (u->steal >= 0.01)
		page_add(p, W_OTHERS, PAGE_PLAIN, "",
			 "the hypervisor gave %s of the machine's CPU time to other guests (steal)",
			 num_percent(u->steal, steal, sizeof(steal)));
}

/* In short, nothing about GPUs that have nothing to do with the job. */
static void put_gpus(struct page *p, const struct usage *u, bool all)
{
	struct buf b;
	bool concerned = all;

	for (size_t i = 0; i < u->gpus.n; i++)
		concerned |= u->gpus.v[i].job != 0 || u->gpus.v[i].allowed >= 0;
	if (!concerned)
		return;
	buf_init(&b, 2048);
	usage_gpus_text(u, &b);
	if (b.len)
		page_add(p, W_GPU, PAGE_PLAIN, "GPU", "%s", buf_text(&b));
	buf_done(&b);
}

static void put_memory(struct page *p, const struct usage *u)
{
	char used[32], peak[32], allowed[32];

	if (!isfinite(u->memory_peak))
		return;
	page_add(p, W_MEMORY, PAGE_PLAIN, "Memory", "%s%s%s%s peak%s%s%s%s%s",
		 u->memory_at_most ? "at most " : "",
		 isfinite(u->memory_used) ? num_bytes(u->memory_used, used, sizeof(used)) : "",
		 isfinite(u->memory_used) ? " used, " : "",
		 num_bytes(u->memory_peak, peak, sizeof(peak)),
		 isfinite(u->memory_allowed) ? ", of " : "",
		 isfinite(u->memory_allowed)
		     ? num_bytes(u->memory_allowed, allowed, sizeof(allowed))
		     : "",
		 isfinite(u->memory_allowed) ? " allowed (" : "",
		 isfinite(u->memory_allowed) && u->memory_limit ? u->memory_limit : "",
		 isfinite(u->memory_allowed) ? ")" : "");
}

static void put_disk(struct page *p, const struct usage *u, bool all)
{
	char read[32], written[32];

	if (!isfinite(u->read_bytes) || !isfinite(u->written_bytes) ||
	    (!all && u->read_bytes + u->written_bytes < 1e6))
		return;
	page_add(p, W_DISK, PAGE_PLAIN, "Disk", "%s read, %s written",
		 num_bytes(u->read_bytes, read, sizeof(read)),
		 num_bytes(u->written_bytes, written, sizeof(written)));
}

/* "about 34 % faster (20 to 48 %)", "about 2.1 times as fast (1.6 to 2.9)"; where the figure is a
 * bound from below, "at least ... (up to ...)"; where nobody knows how fast the better code will be, "about 34 %
 * faster (20 to 48 %, 62 % if that work cost nothing)". */
static void gain_text(const struct finding *x, char *buf, size_t size)
{
	bool is_least = x->low >= x->speedup, is_most = x->high <= x->speedup * 1.01;
	/* A range whose ends are written alike is none. */
	bool is_point = (x->high - x->low) < 0.005;
	bool times = x->speedup >= 1.95 || (!is_most && x->high >= 2.95);
	double scale = times ? 1 : 100, less = times ? 0 : 1;
	int digits = times && x->speedup < 9.95;
	const char *unit = times ? "" : " %";
	char range[96] = "", free[56] = "";

	if (x->speedup < 1.005) {
		snprintf(buf, size, "next to nothing (up to %.0f %%)", (x->high - 1) * 100);
		return;
	}
	if (x->most > x->high * 1.02)
		snprintf(free, sizeof(free), ", %.*f%s if that work cost nothing", digits,
			 (x->most - less) * scale, unit);
	else if (x->most > 0)
		snprintf(free, sizeof(free), " if that work cost nothing");
	if (is_least && !is_most)
		snprintf(range, sizeof(range), " (up to %.*f%s%s)", digits,
			 (x->high - less) * scale, unit, free);
	else if (!is_least && !is_point)
		snprintf(range, sizeof(range), " (%.*f to %.*f%s%s)", digits,
			 (x->low - less) * scale, digits, (x->high - less) * scale, unit, free);
	snprintf(buf, size, "%s %.*f%s %s%s", is_least && !is_most ? "at least" : "about", digits,
		 (x->speedup - less) * scale, unit, times ? "times as fast" : "faster", range);
}

static void put_gain(struct page *p, const struct finding *x, unsigned lighter)
{
	char gain[192];

	if (x->has_gain) {
		gain_text(x, gain, sizeof(gain));
		page_add(p, W_GAIN - lighter, PAGE_PLAIN, "Gain", "%s%s%s", gain,
			 x->then[0] ? "; then " : "", x->then);
	} else if (x->then[0]) {
		page_add(p, W_GAIN - lighter, PAGE_PLAIN, "Gain", "%s", x->then);
	}
}

/* In short: the first pieces, which are the strongest, as far as two rows go. */
static void put_evidence(struct page *p, const struct finding *x, unsigned lighter, bool all)
{
	struct buf b;

	if (all) {
		for (size_t i = 0; i < x->n_evidence; i++)
			page_add(p, W_BECAUSE, PAGE_PLAIN, i ? "" : "Because", "- %s",
				 x->evidence[i].text);
		return;
	}
	buf_init(&b, 2048);
	for (size_t i = 0; i < x->n_evidence; i++)
		if (!i || b.len + strlen(x->evidence[i].text) + 2 < 2 * (size_t)(p->width - 10))
			buf_printf(&b, "%s%s", i ? "; " : "", x->evidence[i].text);
	if (x->n_evidence)
		page_add(p, W_BECAUSE - lighter, PAGE_PLAIN, "Because", "%s", buf_text(&b));
	buf_done(&b);
}

/* ", called at hooks.py:57 from train.py:120" */
static void put_callers(const struct finding *x, char *buf, size_t size)
{
	for (size_t i = 0, n = 0; i < x->where.n_callers && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s:%d", i ? " from " : ", called at ",
				      stack_short_file(x->where.callers[i].file),
				      x->where.callers[i].line);
}

/* Where in the program: "train.py:41, in decode"; unless the title says it, then only who calls it. */
static void put_at(struct page *p, const struct finding *x, unsigned weight)
{
	const char *file = strrchr(x->where.file, '/'), *said;
	char place[320], line[24] = "", caller[700] = "";

	if (!x->where.file[0] && !x->where.function[0])
		return;
	if (x->where.line > 0)
		snprintf(line, sizeof(line), ":%d", x->where.line);
	snprintf(place, sizeof(place), "%s%s", file ? file + 1 : x->where.file, line);
	put_callers(x, caller, sizeof(caller));
	said = x->where.file[0] ? strstr(x->title, place) : NULL;
	/* "x.py:4" is not said by "x.py:41" */
	if (said &&
	    !(line[0] && strchr("0123456789", said[strlen(place)]) && said[strlen(place)])) {
		if (caller[0])
			page_add(p, weight - W_AT + W_CALLED, PAGE_PLAIN, "Called", "at %s",
				 caller + strlen(", called at "));
		return;
	}
	page_add(p, weight, PAGE_PLAIN, "At", "%s%s%s%s%s%s", x->where.file,
		 x->where.file[0] ? line : "",
		 x->where.file[0] && x->where.function[0] ? ", in " : "", x->where.function,
		 x->where.guess ? " (a guess)" : "", caller);
}

/* Title of the note that says what the limit is, or NULL. */
static const char *limit_note(const struct verdict *v)
{
	for (size_t i = 0; v->limit && i < v->notes.n; i++)
		if (strcmp(v->notes.v[i].cause, v->limit) == 0)
			return v->notes.v[i].title;
	return NULL;
}

/* Several findings: their gains are not to be added up. */
static void put_together(struct page *p, const struct verdict *v)
{
	struct finding x = { .has_gain = true,
			     .speedup = v->together,
			     .low = v->together_low,
			     .high = v->together_high };
	char gain[192];

	if (v->findings.n < 2 || !isfinite(v->together) || v->together < 1.005)
		return;
	gain_text(&x, gain, sizeof(gain));
	page_add(p, W_TOGETHER, PAGE_PLAIN, "All", "of them mended: %s", gain);
}

static void put_findings(struct page *p, const struct verdict *v, bool all)
{
	for (size_t i = 0; i < v->findings.n; i++) {
		const struct finding *x = &v->findings.v[i];
		unsigned nth = i < 20 ? (unsigned)i : 20, lighter = nth ? W_LATER + nth : 0;

		page_add(p, W_VERDICT - nth, PAGE_WARN, "Finding", "%s (%s)", x->title, x->cause);
		put_at(p, x, W_AT - lighter);
		put_evidence(p, x, nth, all);
		page_add(p, W_FIX - lighter, PAGE_PLAIN, "Fix", "%s", x->fix);
		put_gain(p, x, lighter);
	}
	put_together(p, v);
	for (size_t i = 0; i < v->notes.n; i++) {
		const struct finding *x = &v->notes.v[i];

		/* It is the verdict's own line. */
		if (v->healthy && !all && x->title == limit_note(v))
			continue;
		page_add(p, W_NOTE, PAGE_PLAIN, "Note", "%s (%s)", x->title, x->cause);
		if (!all)
			continue;
		put_at(p, x, W_NOTE);
		put_evidence(p, x, 0, true);
		page_add(p, W_NOTE, PAGE_PLAIN, "Fix", "%s", x->fix);
		put_gain(p, x, 0);
	}
}

/* The reason of a rule that wanted a longer run, or NULL. */
static const char *too_short(const struct verdict *v)
{
	for (size_t i = 0; i < v->blind.n; i++)
		if (strncmp(v->blind.v[i].why, "only ", 5) == 0)
			return v->blind.v[i].why;
	return NULL;
}

static void put_healthy(struct page *p, const struct verdict *v)
{
	char busy[24];

	if (!v->healthy)
		return;
	if (limit_note(v)) {
		page_add(p, W_VERDICT, PAGE_GOOD, "Verdict", "%s", limit_note(v));
		return;
	}
	if (v->limit && strcmp(v->limit, "cpu_bound") == 0)
		page_add(p, W_VERDICT, PAGE_GOOD, "Verdict",
			 "CPU-bound: it kept %s of its cores busy, and nothing was found that "
			 "holds it up",
			 num_percent(fmin(1, v->cpu_cores / v->usage.cores_allowed), busy,
				     sizeof(busy)));
	else if (too_short(v))
		page_add(p, W_VERDICT, PAGE_PLAIN, "Verdict", "too short to judge: %s",
			 too_short(v));
	else
		page_add(p, W_VERDICT, PAGE_GOOD, "Verdict", "nothing was found that holds it up%s",
			 v->blind.n ? ", as far as could be seen" : "");
}

/* Names of the causes that could not be told for this reason: in short the first few of them. */
static void list_blind(struct buf *b, const struct verdict *v, const char *why, bool all)
{
	size_t n = 0, most = all ? SIZE_MAX : 3;

	for (size_t i = 0; i < v->blind.n; i++) {
		if (strcmp(v->blind.v[i].why, why) != 0)
			continue;
		if (n++ < most)
			buf_printf(b, "%s%s", n > 1 ? ", " : "", v->blind.v[i].cause);
	}
	if (n > most)
		buf_printf(b, " and %zu more", n - most);
}

/* Causes that could not be told for the same reason share a line. */
static void put_blind(struct page *p, const struct verdict *v, bool all)
{
	struct buf b;

	for (size_t i = 0; i < v->blind.n; i++) {
		const char *why = v->blind.v[i].why;
		bool said = false;

		for (size_t j = 0; j < i; j++)
			said |= strcmp(v->blind.v[j].why, why) == 0;
		if (said)
			continue;
		buf_init(&b, 2048);
		list_blind(&b, v, why, all);
		page_add(p, W_UNKNOWN, PAGE_DIM, "Unknown", "cannot tell %s (%s)", buf_text(&b),
			 why);
		buf_done(&b);
	}
}

static void put_others(struct page *p, const struct usage *u)
{
	char cores[24];

	if (u->others_cores >= 0.05)
		page_add(p, W_OTHERS, PAGE_PLAIN, "Others",
			 "%s cores of the machine were used by other programs",
			 num_cores(u->others_cores, cores, sizeof(cores)));
}

/* Of a short run a share says little: starting costs the same in any. */
static void put_overhead(struct page *p, const struct verdict *v)
{
	const struct overhead *o = &v->overhead;
	double seconds = (double)(v->to_ns - start_of(v)) / 1e9;
	char cost[64], rss[32], a[32], b[32], skipped[96] = "";

	if (!isfinite(o->cpu_share_of_core) || !isfinite(o->rss_bytes))
		return;
	num_percent(o->cpu_share_of_core, a, sizeof(a));
	snprintf(cost, sizeof(cost), "%s of one core", a);
	if (seconds < 5)
		snprintf(cost, sizeof(cost), "%s of CPU time",
			 num_seconds(o->cpu_share_of_core * seconds, a, sizeof(a)));
	if (o->samples_skipped > 0 && isfinite(o->samples))
		snprintf(skipped, sizeof(skipped), "; %s of %s samples skipped",
			 num_count(o->samples_skipped, a, sizeof(a)),
			 num_count(o->samples + o->samples_skipped, b, sizeof(b)));
	page_add(p, W_COST, PAGE_DIM, "Spotter", "cost %s, %s%s", cost,
		 num_bytes(o->rss_bytes, rss, sizeof(rss)), skipped);
}

static void put_window(struct page *p, const struct verdict *v)
{
	double start = (double)(v->from_ns - start_of(v)) / 1e9;
	char from[32], to[32];

	page_add(p, W_DETAIL, PAGE_DIM, "Window", "findings are about %s to %s: %s",
		 start < 0.001 ? "0" : num_seconds(start, from, sizeof(from)),
		 num_seconds((double)(v->to_ns - start_of(v)) / 1e9, to, sizeof(to)),
		 v->window_why);
}

/* In short only when stacks are missing and something can be said about it. */
static void put_level(struct page *p, const struct verdict *v, bool all)
{
	static const char *const levels[] = { "cgroup and machine only", "/proc only",
					      "stacks and waits", "stacks, waits and native code" };
	int level = v->level & 3;

	if (all || (level < 2 && v->level_refused && v->level_why[0]))
		page_add(p, all ? W_DETAIL : W_LEVEL, PAGE_DIM, "Level", "L%d: %s%s%s", level,
			 levels[level], v->level_why[0] ? "; " : "", v->level_why);
}

void render_text(const struct verdict *v, const struct render_style *style, struct buf *out)
{
	bool all = style->max_lines == 0;
	struct page p = { .width = style->width ? style->width : 100 };

	put_head(&p, v);
	render_steps(&p, v, all);
	put_cpu(&p, &v->usage);
	put_gpus(&p, &v->usage, all);
	put_memory(&p, &v->usage);
	put_disk(&p, &v->usage, all);
	render_where(&p, v);
	render_time(&p, v, all);
	put_others(&p, &v->usage);
	put_healthy(&p, v);
	put_findings(&p, v, all);
	if (all && !style->no_tables)
		render_cpu(&p, v);
	if (all)
		put_window(&p, v);
	put_level(&p, v, all);
	/* Too short to judge is said already. */
	if (all || !v->healthy || !too_short(v))
		put_blind(&p, v, all);
	put_overhead(&p, v);
	page_write(&p, style->max_lines, style->color, out);
	page_done(&p);
}
