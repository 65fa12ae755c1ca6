/* SPDX-License-Identifier: MIT
 *
 * The two ledgers for people.
 */
#include "explain/render.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/num.h"
#include "explain/page.h"

#include <math.h>
#include <stdio.h>

/* A line of the time ledger that is smaller is left out where there is little room. */
static const double least_share = 0.01;

const char *time_state_words(const struct verdict *v, const char *state)
{
	static const struct {
		const char *state, *words;
	} rows[] = {
		{ "data_wait", "waiting for data" },
		{ "data_load", "loading data itself" },
		{ "transfer", "copying to or from the GPU" },
		{ "dispatch", "framework code" },
		{ "python", "other code on the CPU" },
		{ "gpu_wait", "waiting for the GPU" },
		{ "comm_wait", "waiting for other ranks" },
		{ "io", "reading or writing files" },
		{ "cpu_queue", "queued for a CPU" },
		{ "memory_stall", "stalled on memory" },
		{ "lock_wait", "waiting for a lock" },
		{ "idle", "idle or waiting for events" },
		{ "other", "other" },
	};

	if (v && v->time_native && strcmp(state, "other") == 0)
		return "native code";
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].state, state) == 0)
			return rows[i].words;
	return state;
}

/* The largest first, equal ones as the ledger has them. */
static int by_share(const void *a, const void *b)
{
	const struct ledger_line *x = *(const struct ledger_line *const *)a;
	const struct ledger_line *y = *(const struct ledger_line *const *)b;

	if (x->share != y->share)
		return x->share < y->share ? 1 : -1;
	return x < y ? -1 : 1;
}

size_t time_ledger_sorted(const struct verdict *v, const struct ledger_line **ret, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < v->time.n && n < max; i++)
		if (v->time.v[i].share > 0)
			ret[n++] = &v->time.v[i];
	qsort(ret, n, sizeof(*ret), by_share);
	return n;
}

const char *time_ledger_thread(const struct verdict *v, char *buf, size_t size)
{
	const char *whose = v->time_pid == v->time_tid ? "main thread" : "thread";
	char tid[32] = "";

	if (v->time_pid != v->time_tid)
		snprintf(tid, sizeof(tid), " %lld", (long long)v->time_tid);
	snprintf(buf, size, "%s%s of %s%spid %lld", whose, tid, v->time_name,
		 v->time_name[0] ? ", " : "", (long long)v->time_pid);
	return buf;
}

void render_time(struct page *p, const struct verdict *v, bool all)
{
	const struct ledger_line *lines[TIME_LINES_MAX];
	size_t n = time_ledger_sorted(v, lines, TIME_LINES_MAX);
	char share[24], thread[128];
	double rest = 0;
	struct buf b;

	if (!n || !v->time_tid)
		return;
	buf_init(&b, 2048);
	for (size_t i = 0; i < n; i++) {
		/* what is small is still said, in one word */
		if (!all && i && lines[i]->share < least_share)
			rest += lines[i]->share;
		else
			buf_printf(&b, "%s%s %s", b.len ? ", " : "",
				   num_percent(lines[i]->share, share, sizeof(share)),
				   time_state_words(v, lines[i]->role));
	}
	if (rest >= least_share / 2)
		buf_printf(&b, ", %s in others", num_percent(rest, share, sizeof(share)));
	if (isfinite(v->time_unaccounted) && (all || v->time_unaccounted >= least_share))
		buf_printf(&b, ", %s unaccounted",
			   num_percent(fmax(0, v->time_unaccounted), share, sizeof(share)));
	buf_printf(&b, " (%s", time_ledger_thread(v, thread, sizeof(thread)));
	if (all && isfinite(v->time_error) && v->time_error > 0)
		buf_printf(&b, "; give or take %.*f points", v->time_error < 0.0095 ? 1 : 0,
			   v->time_error * 100);
	page_add(p, W_TIME, PAGE_PLAIN, "Time", "%s)", buf_text(&b));
	buf_done(&b);
}

/* Of a quiet run a share says little: the kernel counts ended processes in steps of 10 ms. */
static const char *unaccounted(const struct verdict *v, char *buf, size_t size)
{
	double seconds = v->cpu_seconds * v->cpu_unaccounted;

	if (fabs(v->cpu_unaccounted) < 0.00005)
		return "0 %";
	if (fabs(seconds) < 0.02 && fabs(v->cpu_unaccounted) >= 0.01)
		return num_seconds(seconds, buf, size);
	return num_percent(v->cpu_unaccounted, buf, size);
}

/* How a role is said with a number before it; none: without. */
struct role_words {
	const char *role;
	const char *one, *many;
	bool threads; /* counted by threads, not by processes */
};

static const struct role_words role_rows[] = {
	{ "loader_worker", "loader worker", "loader workers", false },
	{ "pin_thread", "pinning thread", "pinning threads", true },
	{ "blas_threads", "BLAS thread", "BLAS threads", true },
	{ "comm_threads", "communication thread", "communication threads", true },
	{ "framework_threads", "framework thread", "framework threads", true },
	{ "tokenizer_threads", "tokenizer thread", "tokenizer threads", true },
	{ "child", "child", "children", false },
	/* these are no threads of their own */
	{ "spin_wait", "spinning on the GPU", NULL, false },
	{ "kernel_side", "kernel side", NULL, false },
};

static void put_role(struct buf *b, const struct ledger_line *l)
{
	const struct role_words *w = NULL;
	int n;

	for (size_t i = 0; i < sizeof(role_rows) / sizeof(role_rows[0]); i++)
		if (strcmp(role_rows[i].role, l->role) == 0)
			w = &role_rows[i];
	n = w && w->threads ? l->threads : l->processes;
	/* Processes that lived between two looks cannot be counted. */
	if (!w)
		buf_str(b, strcmp(l->role, "other") == 0 && l->processes < 0 ? "short-lived"
									     : l->role);
	else if (!w->many || n <= 0)
		buf_str(b, w->many ? w->many : w->one);
	else
		buf_printf(b, "%d %s", n, n == 1 ? w->one : w->many);
}

void render_where(struct page *p, const struct verdict *v)
{
	int64_t start = v->run->started_mono_ns;
	char cores[24], share[24];
	struct buf b;

	if (!v->cpu.n || !isfinite(v->cpu_cores))
		return;
	buf_init(&b, 1024);
	for (size_t i = 0; i < v->cpu.n; i++) {
		const struct ledger_line *l = &v->cpu.v[i];

		buf_str(&b, i ? ", " : "");
		put_role(&b, l);
		buf_printf(&b, " %s%s",
			   l->cores > 0 && l->cores < 0.01
			       ? "under 0.01"
			       : num_cores(l->cores, cores, sizeof(cores)),
			   i ? "" : " cores");
	}
	buf_printf(&b, ", unaccounted %s", unaccounted(v, share, sizeof(share)));
	if (start > 0 && v->from_ns > start && v->from_ns - start > NS_PER_S)
		buf_printf(&b, " (after the first %s)",
			   num_seconds((double)(v->from_ns - start) / 1e9, cores, sizeof(cores)));
	page_add(p, W_WHERE, PAGE_PLAIN, "Where", "%s", buf_text(&b));
	buf_done(&b);
}

void render_cpu(struct page *p, const struct verdict *v)
{
	char share[24], processes[16], threads[16];
	int width = 12;

	if (!v->cpu.n || !isfinite(v->cpu_cores))
		return;
	for (size_t i = 0; i < v->cpu.n; i++)
		width = (int)fmax(width, (double)strlen(v->cpu.v[i].role));
	page_add(p, W_DETAIL, PAGE_DIM, "Ledger", "%-*s %8s %8s %10s %8s", width, "role", "cores",
		 "share", "processes", "threads");
	for (size_t i = 0; i < v->cpu.n; i++) {
		const struct ledger_line *l = &v->cpu.v[i];

		snprintf(processes, sizeof(processes), l->processes < 0 ? "-" : "%d", l->processes);
		snprintf(threads, sizeof(threads), l->threads < 0 ? "-" : "%d", l->threads);
		page_add(p, W_DETAIL, PAGE_PLAIN, "", "%-*s %8.2f %8s %10s %8s", width, l->role,
			 l->cores, num_percent(l->share, share, sizeof(share)), processes, threads);
	}
	page_add(p, W_DETAIL, PAGE_PLAIN, "", "%-*s %8.2f %8s", width, "unaccounted",
		 v->cpu_cores * v->cpu_unaccounted,
		 num_percent(v->cpu_unaccounted, share, sizeof(share)));
	page_add(p, W_DETAIL, PAGE_PLAIN, "", "%-*s %8.2f %8s", width, "charged", v->cpu_cores,
		 "100 %");
}
