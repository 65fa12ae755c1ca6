/* SPDX-License-Identifier: MIT
 *
 * A program that makes ever new functions: those that are at work are known, what is kept of the others
 * is bounded, and a number once given never means another one.
 */
#include "../unit.h"
#include "base/err.h"
#include "stack/py/process.h"
#include "target.h"

#include <stdlib.h>
#include <unistd.h>

#define STEPS 500 /* of 30 KB each: twice what is kept */
#define DEEP  400

static struct pythons pythons;

struct run {
	struct target t;
	struct py_process *p;
	struct py_stacks s;
};

static void told(struct run *r, char line[64])
{
	assert_non_null(fgets(line, 64, r->t.out));
}

static void tell(struct run *r, int functions)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "call %d\n", functions);

	assert_int_equal(write(r->t.in, line, (size_t)n), n);
}

static void begin(struct run *r, const char *python)
{
	struct err e = { 0 };
	char line[64];

	*r = (struct run){ 0 };
	target_start(&r->t, python, -1, SCRIPTS "/endless.py", NULL, NULL);
	told(r, line);
	assert_int_equal(py_attach(&r->p, r->t.pid, NULL, &e), 0);
}

static void end(struct run *r)
{
	target_end(&r->t);
	py_stacks_done(&r->s);
	py_detach(r->p);
}

static void check_bounds(const struct run *r)
{
	assert_true(r->p->codes.bytes <= PY_TEXTS_MAX);
	assert_true(r->p->codes.texts.n <= PY_CODES_MAX);
	assert_true(r->p->codes.slots.n <= PY_CODES_MAX);
}

static const char *name_of(const struct run *r, uint32_t frame)
{
	struct py_function f;

	return py_code(r->p, r->s.frames.v[frame].code, &f) ? f.name : "?";
}

/* The print may still be under way: until it waits within the function. */
static void sample(struct run *r)
{
	for (int i = 0; i < 20; i++) {
		assert_int_equal(py_sample(r->p, &r->s), 0);
		check_bounds(r);
		if (r->s.threads.n == 1 && r->s.threads.v[0].status == PY_COMPLETE)
			return;
		usleep(1000);
	}
}

/* wait(), made_N(), main(), <module> */
static void test_endless_functions(void **state)
{
	struct run r;
	char line[64], want[80];
	uint32_t outermost = 0, last = 0;
	unsigned wrong = 0;

	(void)state;
	for (size_t i = 0; i < pythons.n; i++) {
		begin(&r, pythons.path[i]);
		for (unsigned k = 0; k < STEPS; k++) {
			tell(&r, 1);
			told(&r, line);
			sample(&r);
			assert_int_equal(r.s.threads.v[0].status, PY_COMPLETE);
			assert_int_equal(r.s.threads.v[0].n, 4);
			line[strcspn(line, "\n")] = '\0';
			snprintf(want, sizeof(want), "made_%s", line);
			assert_string_equal(name_of(&r, 1), want);
			assert_int_equal(py_line(r.p, r.s.frames.v[1].code, r.s.frames.v[1].offset),
					 2);
			assert_true(!k || r.s.frames.v[1].code > last);
			last = r.s.frames.v[1].code;
			/* Those that are always there are never forgotten. */
			wrong += k && r.s.frames.v[3].code != outermost;
			outermost = r.s.frames.v[3].code;
		}
		assert_int_equal(wrong, 0);
		assert_true(r.p->codes.cleared > 0);
		assert_true(r.p->codes.texts.n < STEPS);
		end(&r);
	}
}

/* More at work than is kept: the outer ones are told, and all again when there is room. */
static void test_too_many_at_work(void **state)
{
	struct run r;
	char line[64];

	(void)state;
	for (size_t i = 0; i < pythons.n; i++) {
		begin(&r, pythons.path[i]);
		tell(&r, DEEP);
		told(&r, line);
		for (int k = 0; k < 3; k++) {
			sample(&r);
			assert_int_not_equal(r.s.threads.v[0].status, PY_COMPLETE);
			for (uint32_t n = 0; n < r.s.frames.n; n++)
				assert_string_not_equal(name_of(&r, n), "?");
		}
		for (int k = 0; k < 8; k++) {
			tell(&r, 1);
			told(&r, line);
			sample(&r);
		}
		assert_int_equal(r.s.threads.v[0].status, PY_COMPLETE);
		assert_int_equal(r.s.threads.v[0].n, 4);
		end(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_endless_functions),
		cmocka_unit_test(test_too_many_at_work),
	};

	pythons_find(&pythons);
	print_message("%zu Pythons\n", pythons.n);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
