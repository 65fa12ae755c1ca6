/* SPDX-License-Identifier: MIT */
#include "tui/ui.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/text.h"
#include "tui/view.h"

#include <string.h>

/* Milliseconds a point of the graphs stands for; those shorter than a tick stand for a tick. */
static const int zooms[] = { 100,   200,   500,    1000,   2000,   5000,    10000,
			     30000, 60000, 120000, 300000, 600000, 1800000, 3600000 };

const char *task_sort_name(enum task_sort s)
{
	static const char *const names[SORTS] = { "cores", "memory", "IO", "number", "name" };

	return names[s < SORTS ? s : 0];
}

void ui_init(struct ui *u, int64_t tick_ns)
{
	*u = (struct ui){ .view = views[0], .tree = true, .tick_ns = tick_ns, .graph_cols = 40 };
}

int64_t ui_step_ns(const struct ui *u)
{
	int64_t step = zooms[u->zoom] * NS_PER_MS;

	return step < u->tick_ns ? u->tick_ns : step;
}

void ui_zoom_to(struct ui *u, int64_t length_ns)
{
	u->zoom = 0;
	while (u->zoom + 1 < ARRAY_LEN(zooms) &&
	       ui_step_ns(u) * 2 * (u->graph_cols > 1 ? u->graph_cols - 1 : 1) < length_ns)
		u->zoom++;
}

/* The right edge lies on a whole step, so that points do not change as time goes on. */
static int64_t round_up(int64_t t, int64_t step)
{
	return (t + step - 1) / step * step;
}

void ui_when(const struct ui *u, int64_t first_ns, int64_t last_ns, struct board_when *ret)
{
	int64_t step = ui_step_ns(u), at = u->at_ns ? u->at_ns : last_ns;
	int64_t right = u->right_ns ? u->right_ns : last_ns, wide = 2 * step * u->graph_cols;

	if (at < first_ns + u->tick_ns)
		at = first_ns + u->tick_ns;
	if (at > last_ns)
		at = last_ns;
	if (right < at)
		right = at;
	if (right - wide > at - step)
		right = at - step + wide;
	*ret = (struct board_when){
		.at_ns = at, .interval_ns = step, .right_ns = round_up(right, step), .step_ns = step
	};
}

static void look_at(struct ui *u, const struct board *b, int64_t at)
{
	if (!u->right_ns)
		u->right_ns = b->last_ns;
	if (at < b->first_ns + u->tick_ns)
		at = b->first_ns + u->tick_ns;
	if (at > u->right_ns && at < b->last_ns)
		u->right_ns = at;
	u->at_ns = at;
	u->paused = true;
	/* At the end of what is live it goes on by itself. */
	if (at >= b->last_ns) {
		u->at_ns = u->right_ns = 0;
		u->paused = false;
	}
}

static void move_in_time(struct ui *u, const struct board *b, int steps)
{
	look_at(u, b, (u->at_ns ? u->at_ns : b->last_ns) + steps * ui_step_ns(u));
}

void ui_play(struct ui *u, const struct board *b)
{
	move_in_time(u, b, 1);
	if (!u->at_ns)
		u->playing = false;
}

/* Of what goes on, stop and go on; of a record, play it: from the beginning when it is at its end. */
static void pause_here(struct ui *u, const struct board *b)
{
	if (b->replay && !b->live) {
		u->playing = !u->playing;
		if (u->playing && !u->at_ns)
			look_at(u, b, b->first_ns);
		return;
	}
	u->paused = !u->paused;
	u->at_ns = u->right_ns = u->paused ? b->last_ns : 0;
}

static void set_zoom(struct ui *u, int by)
{
	int64_t before = ui_step_ns(u);
	int next = (int)u->zoom + by;

	for (; next >= 0 && next < (int)ARRAY_LEN(zooms); next += by) {
		u->zoom = (unsigned)next;
		if (ui_step_ns(u) != before)
			return;
	}
}

static void move_in_list(struct ui *u, int by)
{
	if (u->view == &why_view || u->view == &help_view) {
		u->text_scroll = u->text_scroll + by < 0 ? 0 : u->text_scroll + by;
		return;
	}
	u->selected += by;
	if (u->selected >= u->listed)
		u->selected = u->listed - 1;
	if (u->selected < 0)
		u->selected = 0;
}

/* The filter as it is typed. */
static bool type(struct ui *u, uint32_t key)
{
	size_t n = strlen(u->filter);
	char utf8[4];
	size_t len;

	switch (key) {
	case UI_ESCAPE:
		u->filter[0] = '\0';
		u->typing = false;
		return true;
	case UI_ENTER:
	case '\n':
		u->typing = false;
		return true;
	case UI_BACKSPACE:
	case 0x7f:
	case 0x08:
		while (n && ((unsigned char)u->filter[n - 1] & 0xc0) == 0x80)
			n--;
		u->filter[n ? n - 1 : 0] = '\0';
		return true;
	default:
		break;
	}
	if (key < ' ' || key > 0x10ffff)
		return false;
	len = glyph_utf8(key, utf8);
	if (text_width(u->filter) < UI_FILTER_MAX && n + len < sizeof(u->filter)) {
		memcpy(u->filter + n, utf8, len);
		u->filter[n + len] = '\0';
	}
	u->selected = u->scroll = 0;
	return true;
}

static void show(struct ui *u, const struct view *v)
{
	if (v == &help_view && u->view != &help_view)
		u->back = u->view;
	/* The key that opened it closes it as well. */
	u->view = u->view == v ? (v == &help_view && u->back ? u->back : views[0]) : v;
	u->text_scroll = 0;
}

static void next_view(struct ui *u)
{
	size_t i = 0;

	while (views[i] && views[i] != u->view)
		i++;
	show(u, views[i] && views[i + 1] ? views[i + 1] : views[0]);
}

static bool move(struct ui *u, const struct board *b, uint32_t key)
{
	int page = u->page > 1 ? u->page - 1 : 1;

	switch (key) {
	case UI_UP:
	case 'k':
		move_in_list(u, -1);
		return true;
	case UI_DOWN:
	case 'j':
		move_in_list(u, 1);
		return true;
	case UI_PAGE_UP:
		move_in_list(u, -page);
		return true;
	case UI_PAGE_DOWN:
		move_in_list(u, page);
		return true;
	case UI_LEFT:
	case '<':
		move_in_time(u, b, key == '<' ? -10 : -1);
		return true;
	case UI_RIGHT:
	case '>':
		move_in_time(u, b, key == '>' ? 10 : 1);
		return true;
	case UI_HOME:
		look_at(u, b, b->first_ns);
		return true;
	case UI_END:
		u->at_ns = u->right_ns = 0;
		u->paused = false;
		return true;
	case '+':
	case '=':
		set_zoom(u, -1);
		return true;
	case '-':
		set_zoom(u, 1);
		return true;
	default:
		return false;
	}
}

static bool change(struct ui *u, const struct board *b, uint32_t key)
{
	switch (key) {
	case ' ':
		pause_here(u, b);
		return true;
	case 's':
		u->sort = (u->sort + 1) % SORTS;
		return true;
	case 'S':
		u->sort = (u->sort + SORTS - 1) % SORTS;
		return true;
	case 't':
		u->tree = !u->tree;
		return true;
	case 'H':
		u->threads = !u->threads;
		return true;
	case '/':
		u->typing = true;
		return true;
	case UI_ENTER:
	case '\n':
		if (!u->can_open || u->chosen_pid <= 0)
			return false;
		u->open_pid = u->chosen_pid;
		return true;
	case 'm':
	case UI_BACKSPACE:
		u->leave = u->can_leave;
		return u->can_leave;
	case 0x0c: /* Ctrl-L */
		u->redraw = true;
		return true;
	default:
		return false;
	}
}

bool ui_key(struct ui *u, const struct board *b, uint32_t key)
{
	const struct view *v;

	if (u->typing)
		return type(u, key);
	if (u->view->on_key && u->view->on_key(u, b, key))
		return true;
	if (move(u, b, key) || change(u, b, key))
		return true;
	v = view_by_key(key);
	if (v) {
		show(u, v);
		return true;
	}
	switch (key) {
	case 'q':
	case 'Q':
		u->quit = true;
		return true;
	case UI_TAB:
		next_view(u);
		return true;
	case UI_ESCAPE:
		if (u->filter[0])
			u->filter[0] = '\0';
		else if (u->view == &help_view && u->back)
			show(u, u->back);
		else
			u->view = views[0];
		return true;
	default:
		return false;
	}
}
