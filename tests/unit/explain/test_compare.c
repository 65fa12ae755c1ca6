/* SPDX-License-Identifier: MIT
 *
 * Two runs side by side: figures, what came and went, texts against golden files (UPDATE=1 rewrites those: read
 * the difference), JSON that holds no number that is none.
 */
#include "../unit.h"

#include "scenario.h"

#include "base/buf.h"
#include "base/text.h"
#include "explain/compare.h"

#include <math.h>
#include <stdlib.h>

struct played {
	struct scenario s;
	struct history *h;
	struct window w;
	struct verdict v;
};

static void play(struct played *p, const char *name)
{
	char path[512];

	*p = (struct played){ 0 };
	snprintf(path, sizeof(path), "%s/%s.scn", SCENARIOS, name);
	scenario_load(&p->s, path);
	p->h = scenario_play(&p->s, M_NONE, 0);
	p->w = history_window(p->h, 0);
	assert_int_equal(explain(&p->w, &p->v), 0);
}

static void play_done(struct played *p)
{
	verdict_done(&p->v);
	history_free(p->h);
	scenario_done(&p->s);
}

static void pair(const struct played *a, const struct played *b, struct comparison *c)
{
	const struct compare_side side[COMPARE_SIDES] = { { &a->v, &a->w }, { &b->v, &b->w } };

	assert_int_equal(compare_runs(side, c), 0);
}

static const struct compare_row *row(const compare_rows *rows, const char *name)
{
	for (size_t i = 0; i < rows->n; i++)
		if (strcmp(rows->v[i].name, name) == 0)
			return &rows->v[i];
	return NULL;
}

static const struct compare_cause *cause(const struct comparison *c, const char *id)
{
	for (size_t i = 0; i < c->causes.n; i++)
		if (strcmp(c->causes.v[i].cause, id) == 0)
			return &c->causes.v[i];
	return NULL;
}

static bool has_remark(const struct comparison *c, const char *code)
{
	for (size_t i = 0; i < c->remarks.n; i++)
		if (strcmp(c->remarks.v[i].code, code) == 0)
			return true;
	return false;
}

/* 0.4 s a step with the loading in it, 0.17 s without. */
static void mended(void **state)
{
	struct played a, b;
	struct comparison c;
	const struct compare_row *r;

	(void)state;
	play(&a, "compare-before");
	play(&b, "compare-after");
	pair(&a, &b, &c);
	assert_int_equal(c.speed.basis, COMPARE_BY_STEPS);
	assert_true(near(c.speed.ratio, 0.4 / 0.17, 0.03));
	assert_true(c.speed.low > 2.1 && c.speed.low < c.speed.ratio);
	assert_true(c.speed.high < 2.6 && c.speed.high > c.speed.ratio);
	/* what explains most comes first, in seconds of a step */
	assert_true(c.per_step);
	assert_string_equal(c.time.v[0].name, "data_load");
	assert_true(near(c.time.v[0].v[COMPARE_A], 0.24, 0.03));
	assert_true(c.time.v[0].v[COMPARE_B] == 0);
	assert_true(near(compare_change(&c.time.v[0]), -0.24, 0.03));
	r = row(&c.cpu, "loader_worker");
	assert_non_null(r);
	assert_true(near(r->v[COMPARE_B], 56.0 / 40 * 0.17, 0.06));
	assert_int_equal(cause(&c, "no_workers")->change, CHANGE_GONE);
	assert_string_equal(c.causes.v[0].cause, "no_workers");
	assert_int_equal(c.settings.n, 1);
	assert_string_equal(c.settings.v[0].name, "dataloader.num_workers");
	assert_true(c.settings.v[0].v[COMPARE_A] == 0 && c.settings.v[0].v[COMPARE_B] == 4);
	comparison_done(&c);
	/* the other way round it is the inverse, and the cause is new */
	pair(&b, &a, &c);
	assert_true(near(c.speed.ratio, 0.17 / 0.4, 0.03));
	assert_true(c.speed.low < c.speed.ratio && c.speed.ratio < c.speed.high &&
		    c.speed.high < 1);
	assert_int_equal(cause(&c, "no_workers")->change, CHANGE_NEW);
	comparison_done(&c);
	play_done(&a);
	play_done(&b);
}

/* Of a run with itself nothing changed. */
static void same(void **state)
{
	struct played a;
	struct comparison c;

	(void)state;
	play(&a, "compare-before");
	pair(&a, &a, &c);
	assert_true(c.speed.ratio == 1 && c.speed.low < 1 && c.speed.high > 1);
	for (size_t i = 0; i < c.time.n; i++)
		assert_true(compare_change(&c.time.v[i]) == 0);
	for (size_t i = 0; i < c.causes.n; i++)
		assert_int_equal(c.causes.v[i].change, CHANGE_NONE);
	assert_int_equal(c.settings.n, 0);
	comparison_done(&c);
	play_done(&a);
}

/* Without stacks a cause is not gone, it cannot be told; and ledgers are not held against nothing. */
static void unseen(void **state)
{
	struct played a, b;
	struct comparison c;

	(void)state;
	play(&a, "no-workers-yes");
	play(&b, "sync-blind");
	pair(&a, &b, &c);
	assert_int_equal(cause(&c, "no_workers")->change, CHANGE_UNKNOWN_B);
	assert_true(cause(&c, "no_workers")->why[0] != '\0');
	assert_int_equal(c.time.n, 0);
	assert_true(has_remark(&c, "stacks") && has_remark(&c, "steps") && has_remark(&c, "level"));
	/* the same program, both came to their end */
	assert_int_equal(c.speed.basis, COMPARE_BY_WALL);
	assert_false(isfinite(c.speed.low));
	assert_true(has_remark(&c, "wall"));
	/* A has no GPU: that is not one that does nothing */
	assert_non_null(row(&c.usage, "gpu.busy"));
	assert_false(isfinite(compare_change(row(&c.usage, "gpu.busy"))));
	comparison_done(&c);
	pair(&b, &a, &c);
	assert_int_equal(cause(&c, "no_workers")->change, CHANGE_UNKNOWN_A);
	comparison_done(&c);
	play_done(&a);
	play_done(&b);
}

/* One that was killed has no length to compare; another machine is said. */
static void unfair(void **state)
{
	struct played a, b;
	struct comparison c;

	(void)state;
	play(&a, "oom-yes-limit");
	play(&b, "quota-yes");
	snprintf(history_run(b.h)->machine.hostname, sizeof(b.s.run.machine.hostname), "other");
	b.v.run = history_run(b.h);
	pair(&a, &b, &c);
	assert_int_equal(c.speed.basis, COMPARE_BY_NOTHING);
	assert_false(isfinite(c.speed.ratio));
	assert_false(c.per_step);
	assert_true(has_remark(&c, "machine") && has_remark(&c, "speed") && has_remark(&c, "exit"));
	assert_int_equal(cause(&c, "oom_killed")->change, CHANGE_GONE);
	comparison_done(&c);
	play_done(&a);
	play_done(&b);
}

static void golden(const char *a, const char *b, const char *name, unsigned width)
{
	char file[512], have[8192];
	struct played x, y;
	struct comparison c;
	struct buf out;
	size_t n;
	FILE *f;

	buf_init(&out, 0);
	play(&x, a);
	play(&y, b);
	pair(&x, &y, &c);
	compare_text(&c, width, false, &out);
	snprintf(file, sizeof(file), "%s/compare-%s-%u.txt", GOLDEN, name, width);
	if (getenv("UPDATE")) {
		f = fopen(file, "we");
		assert_non_null(f);
		fwrite(buf_text(&out), 1, out.len, f);
		fclose(f);
	}
	f = fopen(file, "re");
	if (!f)
		fail_msg("no golden file '%s'", file);
	n = fread(have, 1, sizeof(have) - 1, f);
	fclose(f);
	have[n] = '\0';
	assert_string_equal(buf_text(&out), have);
	comparison_done(&c);
	play_done(&x);
	play_done(&y);
	buf_done(&out);
}

static void texts(void **state)
{
	(void)state;
	for (unsigned width = 80; width <= 100; width += 20) {
		golden("compare-before", "compare-after", "mended", width);
		golden("quota-yes", "oom-yes-limit", "unlike", width);
		golden("ranks-input-yes-2", "ranks-exchange-yes-2", "ranks", width);
	}
}

/* No row is wider than asked for, at any width. */
static void fits(const struct comparison *c, unsigned width)
{
	struct buf out;

	buf_init(&out, 0);
	compare_text(c, width, false, &out);
	assert_true(buf_ok(&out));
	for (const char *s = buf_text(&out); *s; s += strcspn(s, "\n") + 1) {
		char line[1024];

		snprintf(line, sizeof(line), "%.*s", (int)strcspn(s, "\n"), s);
		if (text_width(line) > width)
			fail_msg("wider than %u: '%s'", width, line);
	}
	buf_done(&out);
}

/* Any two scenarios: no crash, rows that fit, no number that is none. */
static void any_two(void **state)
{
	static char paths[SCENARIO_FILES][256];
	size_t n = scenario_list(SCENARIOS, paths, SCENARIO_FILES);
	struct played last = { 0 };

	(void)state;
	for (size_t i = 0; i < n; i += 3) {
		char name[256];
		struct played now;
		struct comparison c;
		struct buf out;

		snprintf(name, sizeof(name), "%s", strrchr(paths[i], '/') + 1);
		*strstr(name, ".scn") = '\0';
		play(&now, name);
		if (last.h) {
			pair(&last, &now, &c);
			fits(&c, 80);
			fits(&c, 132);
			buf_init(&out, 0);
			compare_json(&c, &out);
			assert_true(buf_ok(&out));
			assert_null(strstr(buf_text(&out), "nan"));
			assert_null(strstr(buf_text(&out), "inf,"));
			assert_non_null(strstr(buf_text(&out), "\"spotter.compare/1\""));
			buf_done(&out);
			comparison_done(&c);
			play_done(&last);
		}
		last = now;
	}
	play_done(&last);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mended), cmocka_unit_test(same),  cmocka_unit_test(unseen),
		cmocka_unit_test(unfair), cmocka_unit_test(texts), cmocka_unit_test(any_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
