/* SPDX-License-Identifier: MIT
 *
 * Every scenario gets the answers it expects; and taking away what was measured only ever makes an
 * answer "cannot tell".
 */
#include "../unit.h"

#include "scenario.h"

#include "base/buf.h"
#include "explain/rule.h"

static void judge(const struct scenario *s, enum metric_id without, uint32_t entity,
		  struct verdict *ret)
{
	struct history *h = scenario_play(s, without, entity);
	struct window w = history_window(h, 0);

	*ret = (struct verdict){ 0 };
	assert_int_equal(explain(&w, ret), 0);
	/* what it borrows goes with the history */
	ret->run = &s->run;
	history_free(h);
}

static void expectations(void **state)
{
	static char paths[100][256];
	size_t n = scenario_list(SCENARIOS, paths, 100);
	int wrong = 0;

	(void)state;
	assert_true(n >= 30);
	for (size_t i = 0; i < n; i++) {
		struct scenario s = { 0 };
		struct verdict v;

		scenario_load(&s, paths[i]);
		judge(&s, M_NONE, 0, &v);
		assert_true(s.expects.n > 0);
		for (size_t k = 0; k < s.expects.n; k++) {
			const struct scenario_expect *x = &s.expects.v[k];
			const char *is = strcmp(x->what, "limit") ? scenario_answer(&v, x->what)
					 : v.limit                ? v.limit
								  : "-";

			if (strcmp(is, x->answer) == 0)
				continue;
			print_error("%s: %s is '%s', expected '%s'\n", strrchr(paths[i], '/') + 1,
				    x->what, is, x->answer);
			wrong++;
		}
		assert_int_equal(v.healthy, v.findings.n == 0);
		verdict_done(&v);
		scenario_done(&s);
	}
	assert_int_equal(wrong, 0);
}

/* 0 no, 1 blind, 2 yes or note: what can become of an answer when something is taken away. */
static int grade(const char *answer)
{
	return strcmp(answer, "no") == 0 ? 0 : strcmp(answer, "blind") == 0 ? 1 : 2;
}

static bool seen_before(const struct scenario *s, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (s->series.v[j].metric == s->series.v[i].metric)
			return true;
	return false;
}

static int compare(const struct scenario *s, const struct verdict *all, enum metric_id without,
		   uint32_t entity)
{
	struct verdict v;
	int wrong = 0;

	judge(s, without, entity, &v);
	for (size_t r = 0; rules[r]; r++) {
		const char *was = scenario_answer(all, rules[r]->cause);
		const char *is = scenario_answer(&v, rules[r]->cause);

		if (grade(is) == grade(was) || grade(is) == 1)
			continue;
		print_error("%s without %s@%u: %s turned from '%s' to '%s'\n",
			    strrchr(s->path, '/') + 1, metrics[without].name, entity,
			    rules[r]->cause, was, is);
		wrong++;
	}
	verdict_done(&v);
	return wrong;
}

/* Without gpu.allowed it is said that no mask is set, which is another thing than not knowing. */
static void less_is_never_more(void **state)
{
	static char paths[100][256];
	size_t n = scenario_list(SCENARIOS, paths, 100);
	int wrong = 0;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		struct scenario s = { 0 };
		struct verdict all;

		scenario_load(&s, paths[i]);
		judge(&s, M_NONE, 0, &all);
		for (size_t k = 0; k < s.series.n; k++)
			if (!seen_before(&s, k) && s.series.v[k].metric != M_GPU_ALLOWED)
				wrong += compare(&s, &all, s.series.v[k].metric, 0);
		verdict_done(&all);
		scenario_done(&s);
	}
	assert_int_equal(wrong, 0);
}

/* Nothing at all: every rule is blind, but for those about GPUs where there is none: nothing is printed as a number, nothing crashes. */
static void nothing_recorded(void **state)
{
	struct scenario s = { 0 };
	struct verdict v;

	(void)state;
	scenario_parse(&s, "run 30\nexit 0\n");
	judge(&s, M_NONE, 0, &v);
	for (size_t r = 0; rules[r]; r++)
		assert_string_equal(scenario_answer(&v, rules[r]->cause),
				    rules[r]->about_gpus ? "no" : "blind");
	for (size_t i = 0; i < v.blind.n; i++)
		assert_true(v.blind.v[i].why[0] != '\0');
	assert_null(v.limit);
	verdict_done(&v);
	scenario_done(&s);
}

static bool no_more(const struct point *p, void *arg)
{
	(void)p;
	(void)arg;
	return false;
}

/* Times and figures of a foreign record may be anything: no crash, no undefined behaviour. */
static void absurd(void **state)
{
	static const int64_t times[] = {
		INT64_MIN, -1, 0, 1000000000000, INT64_MAX / 4, INT64_MAX
	};
	struct scenario s = { 0 };
	struct history *h;

	(void)state;
	scenario_parse(&s,
		       "run 30\nexit 0\nmachine 8 2\nprocess 20 100 x\nproc.threads@20 1e15\n"
		       "proc.cpu@20 0 9e8\njob.cpu 0 9e8\njob.cores_allowed 1e12\ncpu.online 1e15\n"
		       "cgroup 40 g\ncgroup.cpu_quota 1e12\ncgroup.periods 0 300\n"
		       "cgroup.throttled_periods 0 9e15\ncgroup.throttled 0 9e8\n"
		       "pool 20 3 9e8 9e8 9e15\nvm.oom_kills 0 9e15\nproc.rss@20 9e17\n"
		       "mem.total -5\nsignal 2000000000\n");
	h = scenario_play(&s, M_NONE, 0);
	for (size_t i = 0; i < 6; i++)
		for (size_t k = 0; k < 36; k++) {
			struct window w = history_window(h, 0);
			struct verdict v = { 0 };
			struct buf out;

			w.from_ns = k < 18 ? w.from_ns : times[i];
			w.to_ns = k < 18 ? w.to_ns : times[k % 6];
			history_run(h)->started_mono_ns = times[k % 6];
			history_run(h)->ended_mono_ns = times[i];
			history_run(h)->started_wall_ns = times[(i + k) % 6];
			history_run(h)->exit_signal = k % 3 ? (int)(k * 100000000) : -5;
			if (explain(&w, &v) < 0)
				continue;
			buf_init(&out, 0);
			render_text(&v, &(struct render_style){ .max_lines = 12 }, &out);
			render_json(&v, &out);
			assert_true(buf_ok(&out));
			buf_done(&out);
			verdict_done(&v);
		}
	assert_int_equal(history_window(h, 0).ops->each(h, M_JOB_CPU, ID_JOB, INT64_MIN, INT64_MAX,
							0, no_more, NULL),
			 0);
	history_free(h);
	scenario_done(&s);
}

/* No tick at all, and one. */
static void next_to_nothing(void **state)
{
	struct run_info run = { .name = "x" };
	struct history *h = history_new(&run, 10);
	struct window w = history_window(h, 0);
	struct verdict v = { 0 };
	struct scenario s = { 0 };

	(void)state;
	assert_int_equal(explain(&w, &v), 0);
	assert_int_equal(v.blind.n, 5);
	verdict_done(&v);
	history_free(h);
	scenario_parse(&s, "run 0\nexit 0\nprocess 20 100 x\nthread 30 20 100 x\nthread.cpu@30 1\n"
			   "thread.run_delay@30 1\njob.cpu 1\n");
	judge(&s, M_NONE, 0, &v);
	assert_int_equal(v.findings.n, 0);
	verdict_done(&v);
	scenario_done(&s);
}

static void logic(void **state)
{
	(void)state;
	assert_int_equal(answer_and(ANSWER_YES, ANSWER_CANNOT_TELL), ANSWER_CANNOT_TELL);
	assert_int_equal(answer_and(ANSWER_NO, ANSWER_CANNOT_TELL), ANSWER_NO);
	assert_int_equal(answer_or(ANSWER_YES, ANSWER_CANNOT_TELL), ANSWER_YES);
	assert_int_equal(answer_or(ANSWER_NO, ANSWER_CANNOT_TELL), ANSWER_CANNOT_TELL);
	assert_int_equal(answer_not(ANSWER_NO), ANSWER_YES);
	assert_int_equal(answer_not(ANSWER_CANNOT_TELL), ANSWER_CANNOT_TELL);
}

static const struct finding *found(const struct verdict *v, const char *cause)
{
	for (size_t i = 0; i < v->findings.n; i++)
		if (strcmp(v->findings.v[i].cause, cause) == 0)
			return &v->findings.v[i];
	fail_msg("no finding %s", cause);
	return NULL;
}

static void judge_file(const char *name, struct scenario *s, struct verdict *v)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s.scn", SCENARIOS, name);
	scenario_load(s, path);
	judge(s, M_NONE, 0, v);
}

/* 16 threads on a quota of 2 of 16 CPUs: the threads stand still 7/8 of the time, so without the
 * quota it would be 8 times as fast; the machine has that room but for what others use. */
static void quota_gain(void **state)
{
	struct scenario s = { 0 };
	struct verdict v;
	const struct finding *x;

	(void)state;
	judge_file("quota-yes", &s, &v);
	x = found(&v, "cpu_quota");
	assert_true(x->has_gain);
	assert_true(x->speedup > 7 && x->speedup < 8);
	assert_true(x->low <= x->speedup && x->speedup <= x->high);
	assert_true(near(x->cost, 1 - 1 / x->speedup, 1e-9));
	assert_non_null(strstr(x->fix, "docker run --cpus"));
	assert_non_null(strstr(x->fix, "limits.cpu"));
	assert_non_null(strstr(x->edit, "OMP_NUM_THREADS=2"));
	assert_string_equal(x->family, "machine");
	verdict_done(&v);
	scenario_done(&s);
}

static void threads_fix(void **state)
{
	struct scenario s = { 0 };
	struct verdict v;
	const struct finding *x;

	(void)state;
	judge_file("threads-yes-pools", &s, &v);
	x = found(&v, "thread_oversubscription");
	/* 8 cores for 4 processes */
	assert_string_equal(x->edit, "OMP_NUM_THREADS=2");
	assert_true(x->low >= 1 && x->low < 1.1);
	assert_true(near(x->high, 4, 0.05));
	assert_true(x->speedup > 1.9 && x->speedup < 2.1);
	verdict_done(&v);
	scenario_done(&s);
}

static void certificate(void **state)
{
	struct scenario s = { 0 };
	struct verdict v;
	const struct finding *x;
	bool grew = false;

	(void)state;
	judge_file("oom-yes-limit", &s, &v);
	x = found(&v, "oom_killed");
	assert_false(x->has_gain);
	assert_false(x->note);
	assert_non_null(strstr(x->title, "python3"));
	assert_non_null(strstr(x->title, "8.0 GB"));
	for (size_t i = 0; i < x->n_evidence; i++)
		if (strcmp(x->evidence[i].metric, "memory.growth") == 0) {
			/* 6.9 GB in 30 s */
			assert_true(near(x->evidence[i].value, 0.23e9, 0.01));
			grew = true;
		}
	assert_true(grew);
	verdict_done(&v);
	scenario_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(logic),
		cmocka_unit_test(expectations),
		cmocka_unit_test(less_is_never_more),
		cmocka_unit_test(nothing_recorded),
		cmocka_unit_test(next_to_nothing),
		cmocka_unit_test(absurd),
		cmocka_unit_test(quota_gain),
		cmocka_unit_test(threads_fix),
		cmocka_unit_test(certificate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
