/* SPDX-License-Identifier: MIT
 *
 * What is used of what there is, a line each.
 */
#include "tui/section.h"

#include "base/num.h"
#include "base/text.h"
#include "model/gpu_tag.h"
#include "tui/graph.h"
#include "tui/words.h"

#include <math.h>
#include <stdio.h>

enum { LABEL = 8, SPARK = 10, CORE_ROWS_MAX = 3 };

/* Writes one phrase after another on a row, with two blanks between. One that does not fit is left out:
 * half a number is a wrong one. */
struct row_pen {
	struct canvas *c;
	int row, at, end;
};

static void say(struct row_pen *p, unsigned look, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void say(struct row_pen *p, unsigned look, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (p->at + (int)text_width(text) <= p->end)
		p->at += canvas_text(p->c, p->row, p->at, p->end - p->at, look, text) + 2;
}

static struct row_pen label(struct canvas *c, struct area a, int row, const char *text)
{
	canvas_text(c, row, a.col + 1, LABEL - 1, TONE_TITLE | LOOK_BOLD, text);
	return (struct row_pen){ c, row, a.col + LABEL, a.col + a.cols - 1 };
}

static void meter(struct row_pen *p, int cols, unsigned look, double share)
{
	graph_meter(p->c, p->row, p->at, cols, look, share);
	p->at += cols + 2;
}

static int meter_cols(struct area a)
{
	return a.cols >= 140 ? 30 : a.cols >= 100 ? 24 : 14;
}

static void put_cpu(const struct board *b, struct canvas *c, struct area a, int row)
{
	const struct snap_machine *m = &b->snap.machine;
	const struct snap_job *j = &b->snap.job;
	double used = b->job ? j->cores : m->cores_used;
	double of = b->job ? j->cores_allowed : m->cpus;
	struct row_pen p = label(c, a, row, "CPU");
	char x[24], y[24];

	meter(&p, meter_cols(a), palette_load(used / of), used / of);
	if (isnan(used)) {
		say(&p, TONE_DIM, "measuring");
		return;
	}
	if (isnan(of))
		say(&p, TONE_PLAIN, "%.2f cores", used);
	else if (b->job)
		say(&p, LOOK_BOLD, "%.2f of %s cores allowed", used, num_cores(of, x, sizeof(x)));
	else
		say(&p, LOOK_BOLD, "%.2f of %s cores", used, num_cores(of, x, sizeof(x)));
	if (b->job && j->cpu_limit)
		say(&p, TONE_DIM, "limit: %s", j->cpu_limit);
	say(&p, TONE_DIM, "top calls it %.0f %%", used * 100);
	if (b->job && j->throttled >= 0.01)
		say(&p, TONE_BAD, "the quota stops it: %.2f cores", j->throttled);
	if (m->steal >= 0.01)
		say(&p, TONE_WARN, "stolen %.2f", m->steal);
	if (b->job && !isnan(m->cores_used) && !isnan(m->cpus))
		say(&p, TONE_DIM, "machine %.2f of %s", m->cores_used,
		    num_cores(m->cpus, y, sizeof(y)));
	if (!b->job && !isnan(m->load1))
		say(&p, TONE_DIM, "load %.2f %.2f %.2f", m->load1, m->load5, m->load15);
}

static void put_memory(const struct board *b, struct canvas *c, struct area a, int row)
{
	const struct snap_machine *m = &b->snap.machine;
	const struct snap_job *j = &b->snap.job;
	double used = b->job ? j->memory : m->memory_used;
	double of = b->job ? j->memory_allowed : m->memory_total;
	struct row_pen p = label(c, a, row, "Memory");
	char x[24], y[24];

	meter(&p, meter_cols(a), used / of >= 0.9 ? TONE_BAD : TONE_MEMORY, used / of);
	if (isnan(used)) {
		say(&p, TONE_DIM, "not known");
		return;
	}
	if (isnan(of))
		say(&p, LOOK_BOLD, "%s", num_bytes(used, x, sizeof(x)));
	else
		say(&p, LOOK_BOLD, "%s of %s", num_bytes(used, x, sizeof(x)),
		    num_bytes(of, y, sizeof(y)));
	if (b->job && j->memory_limit)
		say(&p, TONE_DIM, "limit: %s", j->memory_limit);
	if (b->job && j->memory_at_most)
		say(&p, TONE_DIM, "at most: shared pages counted for each");
	if (b->job && !isnan(m->memory_used))
		say(&p, TONE_DIM, "machine %s of %s", num_bytes(m->memory_used, x, sizeof(x)),
		    num_bytes(m->memory_total, y, sizeof(y)));
	if (m->swap_used > 0)
		say(&p, TONE_WARN, "swap %s", num_bytes(m->swap_used, x, sizeof(x)));
}

static void put_rate(struct row_pen *p, const char *label_text, double v)
{
	char x[24];

	if (!isnan(v))
		say(p, TONE_PLAIN, "%s %s/s", label_text, v < 1 ? "0" : num_bytes(v, x, sizeof(x)));
}

static void put_wait(struct row_pen *p, const char *label_text, double v)
{
	char x[24];

	/* The kernel's clock of waiting and ours differ a little: all of the time is all there is. */
	v = v > 1 ? 1 : v;
	if (!isnan(v))
		say(p,
		    v >= 0.5   ? TONE_BAD
		    : v >= 0.1 ? TONE_WARN
			       : TONE_PLAIN,
		    "%s %s", label_text, v < 0.0005 ? "0 %" : num_percent(v, x, sizeof(x)));
}

/* Rows used: 1, or 2 where the row is narrow. */
static int put_io(const struct board *b, struct canvas *c, struct area a, int row)
{
	const struct snap_machine *m = &b->snap.machine;
	const struct snap_job *j = &b->snap.job;
	bool own = b->job && !isnan(j->read);
	struct row_pen p = label(c, a, row, "IO");
	bool waits = !isnan(m->psi_cpu) || !isnan(m->psi_io);

	put_rate(&p, "read", own ? j->read : m->disk_read);
	put_rate(&p, "written", own ? j->written : m->disk_written);
	if (a.cols >= 120) {
		put_rate(&p, "received", m->net_rx);
		put_rate(&p, "sent", m->net_tx);
	}
	if (p.at == a.col + LABEL)
		say(&p, TONE_DIM, "not known");
	if (!waits)
		return 1;
	if (a.cols - p.at < 42 && a.rows > row - a.row + 1) {
		p = label(c, a, row + 1, "Waits");
	} else {
		say(&p, TONE_TITLE | LOOK_BOLD, "Waits");
	}
	put_wait(&p, "CPU", m->psi_cpu);
	put_wait(&p, "memory", m->psi_memory);
	put_wait(&p, "IO", m->psi_io);
	say(&p, TONE_DIM, "of the time (machine)");
	return p.row - row + 1;
}

static void put_gpu_words(struct row_pen *p, const struct snap_gpu *g)
{
	char x[24], y[24];

	if (isnan(g->busy))
		say(p, TONE_DIM, "busy not known");
	else
		say(p, LOOK_BOLD, "%3.0f %% busy", g->busy * 100);
	if (!isnan(g->memory_used) && !isnan(g->memory_total))
		say(p, g->memory_used > 0.95 * g->memory_total ? TONE_WARN : TONE_PLAIN, "%s of %s",
		    num_bytes(g->memory_used, x, sizeof(x)),
		    num_bytes(g->memory_total, y, sizeof(y)));
	if (g->slowed)
		say(p, TONE_BAD, "slowed down");
	if (g->simulated)
		say(p, TONE_WARN, "simulated");
	if (!isnan(g->power))
		say(p, TONE_DIM, "%.0f W", g->power);
	if (!isnan(g->temperature))
		say(p, TONE_DIM, "%.0f C", g->temperature);
	if (!isnan(g->job_memory))
		say(p, TONE_DIM, "job %s", num_bytes(g->job_memory, x, sizeof(x)));
	say(p, TONE_DIM, "%s", g->entity->name);
}

static void put_gpu(const struct board *b, struct canvas *c, struct area a, int row, size_t i,
		    size_t line)
{
	const struct snap_gpu *g = &b->snap.gpus.v[i];
	struct row_pen p;
	char text[32];

	if (g->whole)
		snprintf(text, sizeof(text), " part %d", (int)(g->entity->key % GPU_PARTITION_KEY));
	else
		snprintf(text, sizeof(text), "GPU %lld", (long long)g->entity->key);
	p = label(c, a, row, text);
	meter(&p, meter_cols(a), TONE_GPU, g->busy);
	if (a.cols >= 100 && !g->whole && line < LINE_GPUS) {
		graph_area(c, (struct area){ row, p.at, 1, SPARK }, TONE_GPU,
			   b->lines[LINE_GPU + line].v, LINE_POINTS, 1, -1);
		p.at += SPARK + 2;
	}
	put_gpu_words(&p, g);
}

/* Many GPUs on a row: one bar each. */
static void put_gpus_short(const struct board *b, struct canvas *c, struct area a, int row)
{
	struct row_pen p = label(c, a, row, "GPUs");
	double used = 0, total = 0, busy = 0;
	int n = 0;
	char x[24], y[24];

	for (size_t i = 0; i < b->snap.gpus.n; i++) {
		const struct snap_gpu *g = &b->snap.gpus.v[i];

		if (g->whole)
			continue;
		if (p.at < p.end - 40)
			graph_level(c, row, p.at++, g->busy);
		used += g->memory_used;
		total += g->memory_total;
		busy += g->busy;
		n++;
	}
	p.at += 2;
	say(&p, TONE_PLAIN, "%d GPUs", n);
	if (n && !isnan(busy))
		say(&p, LOOK_BOLD, "%.0f %% busy (mean)", busy / n * 100);
	if (!isnan(used) && !isnan(total))
		say(&p, TONE_PLAIN, "%s of %s", num_bytes(used, x, sizeof(x)),
		    num_bytes(total, y, sizeof(y)));
}

static int put_gpus(const struct board *b, struct canvas *c, struct area a, int row, int most)
{
	size_t line = 0, n = b->snap.gpus.n;
	int first = row;

	if (!n)
		return 0;
	if (n > (size_t)most) {
		put_gpus_short(b, c, a, row);
		return 1;
	}
	for (size_t i = 0; i < n; i++) {
		put_gpu(b, c, a, row++, i, line);
		line += !b->snap.gpus.v[i].whole;
	}
	return row - first;
}

static int put_cores(const struct board *b, struct canvas *c, struct area a, int row)
{
	int room = a.cols - LABEL - 1, n = (int)b->snap.cores.n, rows;

	if (!n || room < 8)
		return 0;
	rows = (n + room - 1) / room;
	rows = rows > CORE_ROWS_MAX ? CORE_ROWS_MAX : rows;
	label(c, a, row, "Cores");
	for (int i = 0; i < n && i < rows * room; i++) {
		int at = i;

		/* Few cores have room between them. */
		if (2 * n <= room)
			at = 2 * i;
		graph_level(c, row + at / room, a.col + LABEL + at % room, b->snap.cores.v[i].busy);
	}
	return rows;
}

static int put_event(const struct board *b, struct canvas *c, struct area a, int row)
{
	char when[24];

	if (!b->event[0])
		return 0;
	label(c, a, row, "Event");
	canvas_printf(c, row, a.col + LABEL, a.cols - LABEL - 1, TONE_WARN, "%s ago: %s",
		      words_span(b->event_ago, when, sizeof(when)), b->event);
	return 1;
}

int section_use(const struct board *b, struct canvas *c, struct area a, int gpus_most)
{
	int row = a.row;

	put_cpu(b, c, a, row++);
	row += put_cores(b, c, a, row);
	put_memory(b, c, a, row++);
	row += put_gpus(b, c, a, row, gpus_most);
	row += put_io(b, c, a, row);
	row += put_event(b, c, a, row);
	return row - a.row;
}
