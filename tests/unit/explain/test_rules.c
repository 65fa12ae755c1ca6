/* SPDX-License-Identifier: MIT
 *
 * Every scenario gets the answers it expects; and taking away what was measured only ever makes an
 * answer "cannot tell".
 */
#include "../unit.h"

#include "scenario.h"

#include "base/buf.h"
#include "explain/loading.h"
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
	static char paths[SCENARIO_FILES][256];
	size_t n = scenario_list(SCENARIOS, paths, SCENARIO_FILES);
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
			    strrchr(s->path, '/') + 1,
			    s->no_stacks ? "stacks" : metrics[without].name, entity,
			    rules[r]->cause, was, is);
		wrong++;
	}
	verdict_done(&v);
	return wrong;
}

/* Without gpu.allowed it is said that no mask is set, which is another thing than not knowing. */
static void less_is_never_more(void **state)
{
	static char paths[SCENARIO_FILES][256];
	size_t n = scenario_list(SCENARIOS, paths, SCENARIO_FILES);
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
		s.no_stacks = true;
		wrong += s.does.n ? compare(&s, &all, M_NONE, 0) : 0;
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
		       "mem.total -5\nsignal 2000000000\n"
		       "thread 30 20 100 x\nthread.cpu@30 0 9e8\nthread.run_delay@30 0 9e8\n"
		       "place 9 a.py 2147483647 load_batch\nplace 2 /x/../ -5 <module>\n"
		       "stack 1 = 2 9\nstack 2 = 2 2 2 2\ndoes 30 1 running 1e6 gil\n"
		       "does 30 2 gil 3\ndoes 30,77 0 unknown 1 unproven\n");
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
	size_t asked = 0;

	(void)state;
	for (size_t i = 0; rules[i]; i++)
		asked += !rules[i]->about_gpus;
	assert_int_equal(explain(&w, &v), 0);
	assert_int_equal(v.blind.n, asked);
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

/* Twenty times as fast at most: what is left was not measured well enough for more. And without a framework,
 * a GPU or a function that trains, nobody is called a training. */
static void sane_gain(void **state)
{
	struct scenario s = { 0 }, plain = { 0 };
	struct verdict v;

	(void)state;
	judge_file("no-workers-yes-tiny", &s, &v);
	for (size_t i = 0; i < v.findings.n; i++)
		assert_true(v.findings.v[i].high <= 20 + 1e-9);
	assert_non_null(strstr(found(&v, "no_workers")->title, "the training thread"));
	verdict_done(&v);
	scenario_done(&s);
	judge_file("few-workers-yes-forkserver", &plain, &v);
	assert_non_null(strstr(found(&v, "too_few_workers")->title, "the program waits"));
	verdict_done(&v);
	scenario_done(&plain);
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

/* The line the exception came from, in the folder its file is known to be in. */
static void last_line(void **state)
{
	struct scenario s = { 0 };
	struct verdict v;
	const struct finding *x;

	(void)state;
	judge_file("gpu-oom-yes-said", &s, &v);
	x = found(&v, "gpu_oom");
	assert_string_equal(x->where.file, "/home/u/train.py");
	assert_int_equal(x->where.line, 71);
	verdict_done(&v);
	scenario_done(&s);
}

/* 60 % of the time is loading: with workers beside it, the training takes the other 40 %. */
static void no_workers_gain(void **state)
{
	struct scenario s = { 0 };
	struct verdict v;
	const struct finding *x;

	(void)state;
	judge_file("no-workers-yes", &s, &v);
	x = found(&v, "no_workers");
	assert_string_equal(x->where.file, "/home/u/train.py");
	assert_int_equal(x->where.line, 48);
	assert_string_equal(x->where.function, "train");
	assert_true(x->high > 2.5 && x->high < 2.7);
	assert_true(x->speedup > 2.2 && x->speedup < 2.5);
	assert_true(x->low > 1.8 && x->low < x->speedup);
	assert_non_null(strstr(x->edit, "num_workers=2"));
	assert_non_null(strstr(x->title, "60 %"));
	verdict_done(&v);
	scenario_done(&s);
	/* the same line by a plain loader, whose fix is not torch's; and the loop inside of it */
	judge_file("no-workers-yes-plain", &s, &v);
	x = found(&v, "no_workers");
	assert_int_equal(x->where.line, 48);
	assert_string_equal(x->edit, "");
	assert_non_null(strstr(x->fix, "multiprocessing"));
	x = found(&v, "python_loop_preprocessing");
	assert_string_equal(x->where.file, "/home/u/data.py");
	assert_int_equal(x->where.line, 33);
	assert_string_equal(x->where.function, "decode");
	assert_true(x->low > 1.5 && x->speedup > 3 && x->speedup < 3.7 && x->high > 4);
	verdict_done(&v);
	scenario_done(&s);
}

/* A step is a batch of one of 4 workers; the training itself needs 40 % of it. */
static void more_workers_gain(void **state)
{
	struct scenario s = { 0 };
	struct verdict v;
	const struct finding *x;

	(void)state;
	judge_file("few-workers-yes", &s, &v);
	x = found(&v, "too_few_workers");
	assert_non_null(strstr(x->edit, "num_workers=11"));
	assert_true(x->high <= 1 / (1 - 0.65) && x->high > 2.4);
	assert_true(x->speedup > 1.9 && x->speedup < 2.4);
	assert_true(x->low > 1.5);
	assert_int_equal(x->where.line, 48);
	verdict_done(&v);
	scenario_done(&s);
	judge_file("gil-yes", &s, &v);
	x = found(&v, "gil_contention");
	assert_string_equal(x->where.file, "/home/u/plain.py");
	assert_int_equal(x->where.line, 30);
	assert_true(near(x->speedup, 1 / 0.6, 0.03));
	verdict_done(&v);
	scenario_done(&s);
}

/* A fix speaks the program's framework. */
static void in_its_own_words(void **state)
{
	static const struct {
		const char *framework, *edit;
	} rows[] = {
		{ "torch", "DataLoader(..., num_workers=3, persistent_workers=True)" },
		{ "tf.data", "ds.map(f, num_parallel_calls=3).prefetch(tf.data.AUTOTUNE)" },
		{ "gluon", "gluon.data.DataLoader(..., num_workers=3)" },
		{ "pool", "multiprocessing.Pool(3).imap(load, indices)" },
		{ "", "" },
	};
	static struct facts f;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct finding x = { 0 };

		fact_set(&f, FACT_LOADER_FRAMEWORK, rows[i].framework[0] != '\0');
		fact_set_subject(&f, FACT_LOADER_FRAMEWORK, 0, rows[i].framework);
		loading_fix_workers(&x, &f, 3, false);
		assert_string_equal(x.edit, rows[i].edit);
		assert_non_null(strstr(x.fix, "3 worker"));
		loading_fix_workers(&x, &f, 1, true);
		assert_non_null(strstr(x.fix, "1 worker"));
		assert_null(strstr(x.fix, "1 workers"));
	}
}

/* What the GPU and the cores leave, whatever the loader does. */
static void bounds(void **state)
{
	static struct facts f;

	(void)state;
	fact_set(&f, FACT_CORES_ALLOWED, 4);
	fact_set(&f, FACT_CORES_USED, 1);
	fact_set(&f, FACT_CORES_FREE, 3);
	fact_set(&f, FACT_GPU_BUSY, 0);
	assert_true(near(loading_floor(&f, LOADING_BEST, 2), 0.25, 1e-9));
	assert_true(near(loading_floor(&f, LOADING_WORST, 2), 0.25 * 1.3, 1e-9));
	/* a GPU that is the limit is not busy all the time; what it says of itself may be off by 2 % */
	fact_set(&f, FACT_GPU_BUSY, 0.7);
	assert_true(near(loading_floor(&f, LOADING_BEST, 2), 0.7 / 1.02, 1e-9));
	assert_true(near(loading_floor(&f, LOADING_WORST, 2), 0.7 / 0.9, 1e-9));
	fact_set(&f, FACT_GPU_BUSY, 1);
	assert_true(near(loading_floor(&f, LOADING_LIKELY, 2), 1, 1e-9));
	fact_set(&f, FACT_GPU_BUSY, 0.7);
	assert_string_equal(loading_then(&f, 0.7, 2, "x"), "GPU-bound");
	assert_string_equal(loading_then(&f, 0.8, 2, "x"), "x");
	/* others fill the machine: two more get their turns as the thread that is there, at best */
	fact_set(&f, FACT_GPU_BUSY, 0);
	fact_set(&f, FACT_CORES_FREE, 0);
	fact_set(&f, FACT_TIME_RUNNING, 0.5);
	fact_set(&f, FACT_TIME_QUEUED, 0.5);
	assert_true(near(loading_floor(&f, LOADING_BEST, 2), 0.5, 1e-9));
	assert_true(near(loading_floor(&f, LOADING_WORST, 2), 1, 1e-9));
	assert_true(near(loading_wall_per_cpu(&f), 2, 1e-9));
}

/* Pauses that no rule speaks of, because a GPU is too busy to lose by them, leave nothing to fix either. */
static void nothing_to_fix(void **state)
{
	static const struct {
		const char *scenario;
		bool nothing;
	} rows[] = {
		{ "gpu-bound-note", true },
		{ "gpu-bound-note-uneven", true },
		{ "gc-no-busy", true },
		{ "checkpoint-yes-drains", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct scenario s = { 0 };
		struct verdict v;
		bool said = false;

		judge_file(rows[i].scenario, &s, &v);
		for (size_t k = 0; k < v.notes.n; k++)
			said |= strcmp(v.notes.v[k].cause, "gpu_bound") == 0 &&
				strstr(v.notes.v[k].title, "nothing to fix here");
		if (said != rows[i].nothing)
			fail_msg("%s", rows[i].scenario);
		verdict_done(&v);
		scenario_done(&s);
	}
}

/* Orders of a backward pass are those of lines before it. */
static void orders_have_a_line(void **state)
{
	struct scenario s = { 0 };
	struct verdict v;

	(void)state;
	judge_file("launch-yes-scan", &s, &v);
	assert_int_equal(found(&v, "launch_bound")->where.line, 61);
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
		cmocka_unit_test(last_line),
		cmocka_unit_test(sane_gain),
		cmocka_unit_test(orders_have_a_line),
		cmocka_unit_test(no_workers_gain),
		cmocka_unit_test(more_workers_gain),
		cmocka_unit_test(in_its_own_words),
		cmocka_unit_test(bounds),
		cmocka_unit_test(nothing_to_fix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
