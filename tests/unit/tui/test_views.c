/* SPDX-License-Identifier: MIT
 *
 * Every view, at two sizes, in every colour mode and in ASCII, against tests/golden/screens. UPDATE=1 writes
 * what came out as what is expected; read the difference before you keep it.
 */
#include "../unit.h"

#include "model.h"

#include "base/auto.h"
#include "base/io.h"

#include <fcntl.h>
#include <time.h>

static void compare(const char *name, const struct buf *got)
{
	char path[400];
	size_t n = 0;
	int r = 0;

	snprintf(path, sizeof(path), "%s/%s.txt", GOLDEN_DIR, name);
	if (getenv("UPDATE")) {
		auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

		assert_true(fd >= 0);
		assert_int_equal(io_write_all(fd, got->data, got->len), 0);
		return;
	}
	{
		auto_free char *want = io_slurp(AT_FDCWD, path, 1 << 20, &n, &r);

		if (!want)
			fail_msg("%s is not there: UPDATE=1 writes it", path);
		if (n != got->len || memcmp(want, got->data, n) != 0)
			fail_msg("%s differs. It is now:\n%s", path, buf_text(got));
	}
}

static void one(struct model *m, const struct view *v, int rows, int cols, const char *suffix,
		enum color_mode mode, bool ascii)
{
	static const char *const modes[] = { "mono", "16", "256", "true" };
	struct canvas c = { 0 };
	auto_done(buf) struct buf out = { 0 };
	struct ui u;
	char name[120];

	ui_init(&u, MODEL_S);
	u.view = v;
	u.threads = v == &processes_view;
	u.at_ns = m->board.replay ? m->board.at_ns : 0;
	assert_int_equal(canvas_size(&c, rows, cols), 0);
	c.ascii = ascii;
	c.mono = mode == COLOR_NONE;
	screen_draw(&m->board, &u, &c);
	canvas_dump(&c, mode, &out);
	/* Whatever the names of processes hold, no control byte is left. */
	for (size_t i = 0; i < out.len; i++)
		assert_true((unsigned char)out.data[i] >= ' ' || out.data[i] == '\n');
	snprintf(name, sizeof(name), "%s%s-%dx%d-%s", v->name, suffix, cols, rows,
		 ascii ? "ascii" : modes[mode]);
	compare(name, &out);
	canvas_done(&c);
}

static void every_view(void **state)
{
	struct model *m = model_new(true);

	(void)state;
	for (size_t i = 0; views[i]; i++) {
		for (enum color_mode mode = COLOR_NONE; mode <= COLOR_TRUE; mode++) {
			one(m, views[i], 24, 80, "", mode, false);
			one(m, views[i], 50, 160, "", mode, false);
		}
		one(m, views[i], 24, 80, "", COLOR_NONE, true);
		one(m, views[i], 50, 160, "", COLOR_NONE, true);
	}
	model_free(m);
}

static void the_machine(void **state)
{
	struct model *m = model_new(false);

	(void)state;
	one(m, &overview_view, 24, 80, "-machine", COLOR_NONE, false);
	one(m, &overview_view, 50, 160, "-machine", COLOR_NONE, false);
	model_free(m);
}

/* A moment of a record: the cursor stands in the graphs. */
static void a_replay(void **state)
{
	struct model *m = model_new(true);

	(void)state;
	m->board.replay = true;
	m->board.live = false;
	m->board.at_ns -= 20 * MODEL_S;
	one(m, &overview_view, 24, 80, "-replay", COLOR_16, false);
	model_free(m);
}

/* What docs/top.svg is made from: tools/screen_svg.py. */
static void for_the_documents(void **state)
{
	struct model *m = model_new(true);

	(void)state;
	m->procs[6].detail = m->procs[5].detail;
	m->board.snap.gpus.v[1].slowed = false;
	m->board.event[0] = '\0';
	*vec_push(&m->board.verdict.roles) = (struct thread_role){ 52, 18, true, "main" };
	*vec_push(&m->board.verdict.roles) = (struct thread_role){ 53, 21, true, "loader_worker" };
	*vec_push(&m->board.verdict.roles) = (struct thread_role){ 54, 22, true, "loader_worker" };
	one(m, &overview_view, 38, 132, "-docs", COLOR_TRUE, false);
	model_free(m);
}

/* Whatever the size, nothing is drawn outside and nothing fails. */
static void every_size(void **state)
{
	struct model *m = model_new(true);
	struct canvas c = { 0 };
	struct ui u;

	(void)state;
	for (int rows = 1; rows < 70; rows += 3) {
		for (int cols = 1; cols < 260; cols += 7) {
			assert_int_equal(canvas_size(&c, rows, cols), 0);
			for (size_t i = 0; views[i]; i++) {
				ui_init(&u, MODEL_S);
				u.view = views[i];
				u.threads = true;
				screen_draw(&m->board, &u, &c);
			}
		}
	}
	canvas_done(&c);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_view), cmocka_unit_test(the_machine),
		cmocka_unit_test(a_replay),   cmocka_unit_test(for_the_documents),
		cmocka_unit_test(every_size),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
