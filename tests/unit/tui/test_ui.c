/* SPDX-License-Identifier: MIT
 *
 * Every key, and the order of processes, without a terminal.
 */
#include "../unit.h"

#include "model.h"
#include "tui/tasks.h"
#include "tui/words.h"

static struct ui begin(void)
{
	struct ui u;

	ui_init(&u, MODEL_S);
	return u;
}

static void views_by_key(void **state)
{
	struct model *m = model_new(true);
	struct ui u = begin();

	(void)state;
	for (size_t i = 1; views[i]; i++) {
		assert_true(ui_key(&u, &m->board, (uint32_t)views[i]->key));
		assert_ptr_equal(u.view, views[i]);
		assert_true(ui_key(&u, &m->board, UI_ESCAPE));
		assert_ptr_equal(u.view, views[0]);
	}
	/* Help leads back to where it was asked for. */
	ui_key(&u, &m->board, 'f');
	ui_key(&u, &m->board, '?');
	assert_ptr_equal(u.view, &help_view);
	ui_key(&u, &m->board, '?');
	assert_ptr_equal(u.view, &functions_view);
	ui_key(&u, &m->board, UI_ESCAPE);
	for (size_t i = 0; views[i]; i++)
		ui_key(&u, &m->board, UI_TAB);
	assert_ptr_equal(u.view, views[0]);
	assert_false(ui_key(&u, &m->board, 'Z'));
	assert_true(ui_key(&u, &m->board, 'q'));
	assert_true(u.quit);
	model_free(m);
}

static void filter_is_typed(void **state)
{
	struct model *m = model_new(true);
	struct task_rows rows;
	struct ui u = begin();

	(void)state;
	ui_key(&u, &m->board, '/');
	/* Keys are text now. */
	for (const char *s = "qTENSOR"; *s; s++)
		assert_true(ui_key(&u, &m->board, (uint32_t)*s));
	assert_false(u.quit);
	assert_string_equal(u.filter, "qTENSOR");
	for (int i = 0; i < 9; i++)
		ui_key(&u, &m->board, UI_BACKSPACE);
	assert_string_equal(u.filter, "");
	for (const char *s = "tensor"; *s; s++)
		ui_key(&u, &m->board, (uint32_t)*s);
	ui_key(&u, &m->board, UI_ENTER);
	assert_false(u.typing);
	assert_int_equal(tasks_order(&m->board, &u, &rows), 0);
	assert_int_equal(rows.v.n, 1);
	assert_int_equal(rows.v.v[0].task->entity->key, 4400);
	vec_done(&rows.v);
	ui_key(&u, &m->board, UI_ESCAPE);
	assert_string_equal(u.filter, "");
	/* It does not grow without end. */
	ui_key(&u, &m->board, '/');
	for (int i = 0; i < 1000; i++)
		ui_key(&u, &m->board, 0x6f22);
	assert_true(strlen(u.filter) < sizeof(u.filter));
	model_free(m);
}

static void order_of(const struct model *m, const struct ui *u, const int *pids, size_t n)
{
	struct task_rows rows;

	assert_int_equal(tasks_order(&m->board, u, &rows), 0);
	assert_int_equal(rows.v.n, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(rows.v.v[i].task->entity->key, pids[i]);
	vec_done(&rows.v);
}

static void sorted(void **state)
{
	struct model *m = model_new(true);
	struct ui u = begin();
	struct task_rows rows;

	(void)state;
	/* The tree: children below their parents, the busiest of them first. */
	order_of(m, &u, (int[]){ 4200, 4242, 4301, 4302, 4243, 4303, 4304, 4400 }, 8);
	ui_key(&u, &m->board, 't');
	order_of(m, &u, (int[]){ 4242, 4301, 4302, 4243, 4303, 4304, 4400, 4200 }, 8);
	ui_key(&u, &m->board, 's');
	order_of(m, &u, (int[]){ 4242, 4243, 4302, 4303, 4301, 4200, 4400, 4304 }, 8);
	ui_key(&u, &m->board, 's');
	assert_int_equal(u.sort, SORT_IO);
	ui_key(&u, &m->board, 's');
	order_of(m, &u, (int[]){ 4200, 4242, 4243, 4301, 4302, 4303, 4304, 4400 }, 8);
	ui_key(&u, &m->board, 'S');
	assert_int_equal(u.sort, SORT_IO);
	u.sort = SORT_CPU;
	ui_key(&u, &m->board, 'H');
	assert_int_equal(tasks_order(&m->board, &u, &rows), 0);
	assert_int_equal(rows.v.n, 8 + MODEL_THREADS);
	assert_true(rows.v.v[1].thread);
	vec_done(&rows.v);
	/* A record may claim that two are each other's parents. */
	u.tree = true;
	u.threads = false;
	m->procs[0].parent = m->procs[1].id;
	assert_int_equal(tasks_order(&m->board, &u, &rows), 0);
	vec_done(&rows.v);
	model_free(m);
}

static void time_keys(void **state)
{
	struct model *m = model_new(true);
	struct board *b = &m->board;
	struct board_when w;
	struct ui u = begin();

	(void)state;
	ui_when(&u, b->first_ns, b->last_ns, &w);
	assert_int_equal(w.at_ns, b->last_ns);
	assert_int_equal(w.interval_ns, MODEL_S);
	ui_key(&u, b, UI_LEFT);
	ui_key(&u, b, UI_LEFT);
	assert_true(u.paused);
	ui_when(&u, b->first_ns, b->last_ns, &w);
	assert_int_equal(w.at_ns, b->last_ns - 2 * MODEL_S);
	assert_true(w.right_ns >= b->last_ns);
	/* Time goes on; what is looked at does not. */
	ui_when(&u, b->first_ns, b->last_ns + 9 * MODEL_S, &w);
	assert_int_equal(w.at_ns, b->last_ns - 2 * MODEL_S);
	ui_key(&u, b, UI_RIGHT);
	ui_key(&u, b, UI_RIGHT);
	assert_false(u.paused); /* caught up */
	ui_key(&u, b, UI_HOME);
	ui_when(&u, b->first_ns, b->last_ns, &w);
	assert_int_equal(w.at_ns, b->first_ns + MODEL_S);
	ui_key(&u, b, UI_END);
	assert_false(u.paused);
	ui_key(&u, b, ' ');
	assert_true(u.paused);
	ui_key(&u, b, ' ');
	assert_false(u.paused);
	ui_key(&u, b, '-');
	assert_int_equal(ui_step_ns(&u), 2 * MODEL_S);
	ui_key(&u, b, '+');
	ui_key(&u, b, '+');
	assert_int_equal(ui_step_ns(&u), MODEL_S);
	/* A day fits. */
	ui_zoom_to(&u, 86400 * MODEL_S);
	assert_true(ui_step_ns(&u) * 2 * u.graph_cols >= 86400 * MODEL_S);
	/* ...and its beginning is where it was, however much a step is. */
	ui_key(&u, b, UI_HOME);
	ui_when(&u, b->first_ns, b->last_ns, &w);
	assert_int_equal(w.at_ns, b->first_ns + MODEL_S);
	model_free(m);
}

static void choosing(void **state)
{
	struct model *m = model_new(false);
	struct canvas c = { 0 };
	struct ui u = begin();

	(void)state;
	assert_int_equal(canvas_size(&c, 30, 100), 0);
	u.tree = false;
	screen_draw(&m->board, &u, &c);
	assert_int_equal(u.chosen_pid, 4242);
	assert_false(ui_key(&u, &m->board, UI_ENTER)); /* not here */
	u.can_open = true;
	for (int i = 0; i < 50; i++)
		ui_key(&u, &m->board, UI_DOWN);
	screen_draw(&m->board, &u, &c);
	assert_int_equal(u.chosen_pid, 4200);
	assert_true(ui_key(&u, &m->board, UI_ENTER));
	assert_int_equal(u.open_pid, 4200);
	for (int i = 0; i < 50; i++)
		ui_key(&u, &m->board, UI_PAGE_UP);
	assert_int_equal(u.selected, 0);
	assert_false(ui_key(&u, &m->board, 'm'));
	u.can_leave = true;
	assert_true(ui_key(&u, &m->board, 'm'));
	assert_true(u.leave);
	canvas_done(&c);
	model_free(m);
}

static void says(struct model *m, const char *words, unsigned tone)
{
	struct headline h;

	words_headline(&m->board, &h);
	if (!strstr(h.says, words))
		fail_msg("'%s' does not say '%s'", h.says, words);
	assert_int_equal(h.tone, tone);
}

static void headlines(void **state)
{
	struct model *m = model_new(true);
	struct verdict *v = &m->board.verdict;
	struct headline h;

	(void)state;
	says(m, "waits 61 %", TONE_BAD);
	words_headline(&m->board, &h);
	assert_non_null(strstr(h.then, "num_workers=8 in the DataLoader; about 2.1 times as fast"));
	v->findings.n = 0;
	v->healthy = true;
	v->level = 2;
	says(m, "Nothing was found that holds it up", TONE_GOOD);
	v->limit = "gpu_bound";
	says(m, "the GPU is the limit", TONE_GOOD);
	/* Who sees little does not say that all is well. */
	v->level = 1;
	text_copy(v->level_why, sizeof(v->level_why), "may not read process 1");
	says(m, "little can be seen", TONE_WARN);
	v->judged = false;
	says(m, "Looking: 95 s so far", TONE_KEY);
	m->board.job = false;
	says(m, "This machine uses 7.10 of its 16 cores", palette_load(7.1 / 16));
	m->board.snap.machine.cores_used = NAN;
	says(m, "Looking at this machine", TONE_KEY);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(views_by_key), cmocka_unit_test(filter_is_typed),
		cmocka_unit_test(sorted),       cmocka_unit_test(time_keys),
		cmocka_unit_test(choosing),     cmocka_unit_test(headlines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
