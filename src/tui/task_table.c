/* SPDX-License-Identifier: MIT
 *
 * The table of processes: as many columns as there is room for.
 */
#include "tui/tasks.h"

#include "base/auto.h"
#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum column {
	COL_PID,
	COL_CORES,
	COL_PERCENT,
	COL_MEMORY,
	COL_GPU,
	COL_READ,
	COL_WRITE,
	COL_THREADS,
	COL_STATE,
	COL_ROLE
};

struct column_row {
	enum column id;
	const char *title;
	int width, from_cols; /* shown where the table has so many columns */
	int sort;             /* enum task_sort it stands for, -1 none */
};

static const struct column_row columns[] = {
	{ COL_PID, "PID", 7, 0, SORT_PID },
	{ COL_CORES, "CORES", 6, 0, SORT_CPU },
	{ COL_PERCENT, "TOP'S %", 7, 96, -1 },
	{ COL_MEMORY, "MEMORY", 8, 0, SORT_MEMORY },
	{ COL_GPU, "GPU MEM", 8, 74, -1 },
	{ COL_READ, "READ/s", 8, 64, SORT_IO },
	{ COL_WRITE, "WRITE/s", 8, 84, SORT_IO },
	{ COL_THREADS, "THR", 4, 72, -1 },
	{ COL_STATE, "S", 1, 48, -1 },
	{ COL_ROLE, "ROLE", 13, 76, -1 },
};

static const char *bytes_text(double v, char *buf, size_t size)
{
	return isnan(v) ? "-" : v < 1 ? "0" : num_bytes(v, buf, size);
}

static const char *cell_text(const struct board *b, const struct task_row *r, enum column id,
			     char *buf, size_t size)
{
	const struct snap_task *t = r->task;

	buf[0] = '\0';
	switch (id) {
	case COL_PID:
		snprintf(buf, size, "%lld", (long long)t->entity->key);
		break;
	case COL_CORES:
		snprintf(buf, size, isnan(t->cores) ? "-" : "%.2f", t->cores);
		break;
	case COL_PERCENT:
		snprintf(buf, size, isnan(t->cores) ? "-" : "%.0f", t->cores * 100);
		break;
	case COL_MEMORY:
		return r->thread ? "" : bytes_text(t->rss, buf, size);
	case COL_GPU:
		return r->thread || isnan(t->gpu_memory) ? ""
							 : bytes_text(t->gpu_memory, buf, size);
	case COL_READ:
		return r->thread ? "" : bytes_text(t->read, buf, size);
	case COL_WRITE:
		return r->thread ? "" : bytes_text(t->written, buf, size);
	case COL_THREADS:
		if (!r->thread)
			snprintf(buf, size, isnan(t->threads) ? "-" : "%.0f", t->threads);
		break;
	case COL_STATE:
		snprintf(buf, size, "%c", t->state ? t->state : '-');
		break;
	case COL_ROLE:
		return board_role(b, t->entity, buf, size);
	}
	return buf;
}

/* Only of a job is it known what a process is for; with GPUs there is one column more, and less room. */
static bool is_shown(const struct board *b, const struct column_row *k, int cols)
{
	bool gpus = b->snap.gpus.n > 0;

	if ((k->id == COL_ROLE && !b->job) || (k->id == COL_GPU && !gpus))
		return false;
	return cols >= k->from_cols + (gpus && k->id == COL_READ ? 24 : 0);
}

static bool to_the_left(enum column id)
{
	return id == COL_STATE || id == COL_ROLE;
}

static unsigned cell_look(const struct board *b, const struct task_row *r, enum column id)
{
	double of = b->job ? b->snap.job.cores_allowed : b->snap.machine.cpus;

	if (id == COL_CORES && r->task->cores >= 0.05 && of > 0)
		return palette_load(fmax(r->task->cores / of, r->task->cores >= 0.9 ? 0.4 : 0));
	if (id == COL_ROLE)
		return TONE_KEY;
	if (id == COL_STATE && r->task->state == 'D')
		return TONE_BAD | LOOK_BOLD;
	return r->thread || id == COL_PID ? TONE_DIM : TONE_PLAIN;
}

static void draw_head(const struct board *b, const struct ui *u, struct canvas *c, struct area a)
{
	int at = a.col;

	for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
		const struct column_row *k = &columns[i];
		bool sorted = k->sort == (int)u->sort;
		unsigned look = sorted ? TONE_KEY | LOOK_BOLD : TONE_DIM;

		if (!is_shown(b, k, a.cols))
			continue;
		if (to_the_left(k->id))
			canvas_text(c, a.row, at, k->width, look, k->title);
		else
			canvas_right(c, a.row, at + k->width, k->width, look, k->title);
		at += k->width + 1;
	}
	at += canvas_text(c, a.row, at, a.col + a.cols - at,
			  u->sort == SORT_NAME ? TONE_KEY | LOOK_BOLD : TONE_DIM, "COMMAND");
	if (u->filter[0] || u->typing)
		canvas_printf(c, a.row, at + 2, a.col + a.cols - at - 2, TONE_WARN, "/%s%s",
			      u->filter, u->typing ? "_" : "");
}

/* The program without its folder, with its arguments. */
static const char *command_text(const struct entity *e)
{
	const char *s = e->detail && e->detail[0] ? e->detail : e->name;
	size_t n = strcspn(s, " ");

	for (size_t i = n; i-- > 0;)
		if (s[i] == '/' && i + 1 < n)
			return s + i + 1;
	return s;
}

static void draw_command(struct canvas *c, const struct task_row *r, int row, int at, int end,
			 bool tree, unsigned look)
{
	const struct entity *e = r->task->entity;
	int depth = r->depth < 12 ? r->depth : 12;
	char text[64];

	for (int i = 0; tree && i + 1 < depth; i++)
		at += canvas_text(c, row, at, end - at, TONE_FRAME | (look & LOOK_REVERSE), "  ");
	if (depth && (tree || r->thread)) {
		canvas_glyph(c, row, at, TONE_FRAME | (look & LOOK_REVERSE), 0x2514);
		canvas_glyph(c, row, at + 1, TONE_FRAME | (look & LOOK_REVERSE), 0x2500);
		at += 2;
	}
	if (at >= end)
		return;
	at += canvas_text(c, row, at, end - at, r->thread ? TONE_DIM | (look & LOOK_REVERSE) : look,
			  command_text(e));
	snprintf(text, sizeof(text), "waits for a CPU %.0f %%", r->task->run_delay * 100);
	if (r->thread && r->task->run_delay >= 0.005 && at + 2 + (int)strlen(text) <= end)
		canvas_text(c, row, at + 2, end - at - 2, TONE_WARN | (look & LOOK_REVERSE), text);
}

static void draw_row(const struct board *b, const struct ui *u, struct canvas *c, struct area a,
		     const struct task_row *r, bool chosen)
{
	unsigned flags = chosen ? LOOK_REVERSE : 0;
	char text[64];
	int at = a.col;

	if (chosen)
		canvas_fill(c, a, LOOK_REVERSE, ' ');
	for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
		const struct column_row *k = &columns[i];
		const char *s;
		unsigned look;

		if (!is_shown(b, k, a.cols))
			continue;
		s = cell_text(b, r, k->id, text, sizeof(text));
		look = chosen ? LOOK_REVERSE : cell_look(b, r, k->id);
		if (to_the_left(k->id))
			canvas_text(c, a.row, at, k->width, look, s);
		else
			canvas_right(c, a.row, at + k->width, k->width, look, s);
		at += k->width + 1;
	}
	draw_command(c, r, a.row, at, a.col + a.cols, u->tree && !u->filter[0], flags);
}

/* The selected row is always one of those shown. */
static void keep_in_sight(struct ui *u, int listed, int page)
{
	u->listed = listed;
	u->page = page;
	if (u->selected >= listed)
		u->selected = listed ? listed - 1 : 0;
	if (u->scroll > u->selected)
		u->scroll = u->selected;
	if (u->scroll < u->selected - page + 1)
		u->scroll = u->selected - page + 1;
	if (u->scroll > listed - page)
		u->scroll = listed > page ? listed - page : 0;
}

void tasks_draw(const struct board *b, struct ui *u, struct canvas *c, struct area a)
{
	struct task_rows rows = { 0 };
	int page = a.rows - 1;

	u->chosen = 0;
	u->chosen_pid = 0;
	if (page < 1 || tasks_order(b, u, &rows) < 0)
		return;
	draw_head(b, u, c, a);
	keep_in_sight(u, (int)rows.v.n, page);
	for (int i = 0; i < page && u->scroll + i < (int)rows.v.n; i++) {
		const struct task_row *r = &rows.v.v[u->scroll + i];
		bool chosen = u->scroll + i == u->selected;

		draw_row(b, u, c, (struct area){ a.row + 1 + i, a.col, 1, a.cols }, r, chosen);
		if (chosen && !r->thread) {
			u->chosen = r->task->entity->id;
			u->chosen_pid = r->task->entity->key;
		}
	}
	if (!rows.v.n)
		canvas_text(c, a.row + 1, a.col, a.cols, TONE_DIM,
			    u->filter[0] ? "no process is called so" : "no process to show yet");
	vec_done(&rows.v);
}
