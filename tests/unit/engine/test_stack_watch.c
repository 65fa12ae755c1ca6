/* SPDX-License-Identifier: MIT
 *
 * The stack thread on a real Python: who is told to it is looked into, what it saw comes back in frames,
 * and its clock is not regular.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "engine/stack_watch.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESS = 20, THREAD = 21 };

static const char program[] = "import time\n"
			      "def spin(until):\n"
			      "    x = 0\n"
			      "    while time.monotonic() < until:\n"
			      "        x += 1\n"
			      "def rest():\n"
			      "    time.sleep(0.01)\n"
			      "def loop():\n"
			      "    while True:\n"
			      "        spin(time.monotonic() + 0.01)\n"
			      "        rest()\n"
			      "loop()\n";

static pid_t start_python(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 2);
		execl("/usr/bin/python3", "python3", "-I", "-S", "-c", program, (char *)NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	return pid;
}

static void tell(struct frame *f, enum life_change change, pid_t pid)
{
	struct life proc = { .change = change,
			     .id = PROCESS,
			     .parent = ID_JOB,
			     .kind = ENTITY_PROC,
			     .key = pid,
			     .start_ns = clock_boot_ns() };
	struct life thread = proc;

	thread.id = THREAD;
	thread.parent = PROCESS;
	thread.kind = ENTITY_THREAD;
	frame_life(f, &proc, "python3", "python3 -c");
	frame_life(f, &thread, "python3", NULL);
}

/* What came back over all frames. */
struct seen {
	struct stack_book book;
	double running, waiting, in_spin, in_rest, all;
	uint32_t samples;
	int64_t last_to_ns;
	unsigned slices, attached;
};

static bool stack_has(const struct seen *s, uint32_t node, const char *function)
{
	uint32_t places[STACK_DEPTH_MAX];
	size_t n = stack_book_walk(&s->book, node, places, STACK_DEPTH_MAX);

	for (size_t i = 0; i < n; i++)
		if (strcmp(stack_book_find_place(&s->book, places[i])->function, function) == 0)
			return true;
	return false;
}

static void take(struct seen *s, const struct frame *f)
{
	for (size_t i = 0; i < f->places.n; i++) {
		const struct frame_place *p = &f->places.v[i];

		stack_book_set_place(&s->book, p->id,
				     &(struct place){ .kind = p->kind,
						      .line = p->line,
						      .function = frame_text(f, p->function),
						      .file = frame_text(f, p->file) });
	}
	for (size_t i = 0; i < f->nodes.n; i++)
		assert_int_equal(stack_book_set_node(&s->book, f->nodes.v[i].id,
						     f->nodes.v[i].parent, f->nodes.v[i].place),
				 0);
	for (size_t i = 0; i < f->events.n; i++)
		s->attached += f->events.v[i].kind == EVENT_STACKS && f->events.v[i].value >= 2;
	if (f->stacks_to_ns > f->stacks_from_ns) {
		assert_true(f->stacks_from_ns >= s->last_to_ns);
		s->last_to_ns = f->stacks_to_ns;
		s->slices++;
	}
	for (size_t i = 0; i < f->stacks.n; i++) {
		const struct stack_row *r = &f->stacks.v[i];
		double w = (double)r->weight_ns / 1e9;

		assert_int_equal(r->entity, THREAD);
		s->all += w;
		s->samples += r->count;
		s->running += r->kind == WAIT_RUNNING || r->kind == WAIT_RUNNABLE ? w : 0;
		s->waiting += r->kind == WAIT_SLEEP ? w : 0;
		s->in_spin += stack_has(s, r->node, "spin") ? w : 0;
		s->in_rest += stack_has(s, r->node, "rest") ? w : 0;
	}
}

static void watch(struct seen *s, double hz, double budget, double seconds)
{
	struct stack_watch_options o = { hz, budget };
	struct stack_watch *w = NULL;
	struct err e = { 0 };
	struct frame f = { 0 };
	pid_t pid = start_python();
	int64_t end = clock_mono_ns() + (int64_t)(seconds * 1e9);

	assert_int_equal(stack_watch_start(&o, &w, &e), 0);
	for (unsigned i = 0; clock_mono_ns() < end; i++) {
		frame_begin(&f, clock_mono_ns(), clock_wall_ns());
		if (i == 0)
			tell(&f, LIFE_BORN, pid);
		stack_watch_tick(w, &f, false);
		take(s, &f);
		usleep(50000);
	}
	frame_begin(&f, clock_mono_ns(), clock_wall_ns());
	stack_watch_tick(w, &f, true);
	take(s, &f);
	assert_true(stack_watch_level(w) >= 2);
	assert_true(stack_watch_cpu_ns(w) > 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* Ended, and not told so yet. */
	usleep(60000);
	frame_begin(&f, clock_mono_ns(), clock_wall_ns());
	tell(&f, LIFE_GONE, pid);
	stack_watch_tick(w, &f, false);
	stack_watch_stop(w);
	frame_done(&f);
}

static void a_python_is_seen(void **state)
{
	struct seen s = { 0 };

	(void)state;
	if (access("/usr/bin/python3", X_OK) < 0)
		skip();
	watch(&s, 100, 1, 3);
	print_message(
	    "%u samples in %u slices, %.2f s: running %.2f, asleep %.2f, in spin %.2f, in "
	    "rest %.2f\n",
	    s.samples, s.slices, s.all, s.running, s.waiting, s.in_spin, s.in_rest);
	assert_int_equal(s.attached, 1);
	assert_true(s.samples > 30);
	assert_true(s.slices >= 2);
	/* Half and half by the clock, whatever the machine is doing besides. */
	assert_true(s.in_spin > 0.3 * s.all && s.in_spin < 0.7 * s.all);
	assert_true(s.in_rest > 0.3 * s.all && s.in_rest < 0.7 * s.all);
	assert_true(s.running > 0.3 * s.all && s.waiting > 0.3 * s.all);
	/* What samples stand for is the time that passed; where looks were missed, as on a machine that is
	 * very busy, less of it. */
	assert_true(s.all < 3.6 && s.all > 0.004 * s.samples);
	assert_true(s.all > 2.4 || s.samples < 250);
	stack_book_done(&s.book);
}

/* With next to no budget it looks twice a second. */
static void budget_is_kept(void **state)
{
	struct seen s = { 0 };

	(void)state;
	if (access("/usr/bin/python3", X_OK) < 0)
		skip();
	watch(&s, 500, 0.00001, 6);
	print_message("%u samples\n", s.samples);
	assert_true(s.samples < 500);
	stack_book_done(&s.book);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_python_is_seen),
		cmocka_unit_test(budget_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
