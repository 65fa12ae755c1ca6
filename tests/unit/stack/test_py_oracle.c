/* SPDX-License-Identifier: MIT
 *
 * No stack may be wrong: targets in which every function has one legal caller (oracle.py), sampled
 * while their stacks are replaced every 0.6 ms and every 60 us, sampler and target on different CPUs
 * (on the same one nothing could ever tear). $SPOTTER_ORACLE_SAMPLES: samples in all, 50,000 by
 * default and a million with $SPOTTER_LONG, shared by the targets on all Pythons of the machine.
 */
#include "../unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "stack/mem.h"
#include "stack/py/py.h"
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How many stacks must be whole depends on how fast they are read: not with sanitizers in the way. That none
 * is wrong does not. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COMPLETE 0.9
#else
#define COMPLETE 0.995
#endif
#define RECURSION 30 /* as in oracle.py */
#define ATTACH_S  20

struct tally {
	unsigned long complete, partial, unproven, wrong;
	char example[600], kind[16];
};

static struct pythons pythons;
static unsigned long samples; /* of one target */
static unsigned long taken;   /* in all */

static const struct {
	const char *kind, *period;
} targets[] = {
	{ "chain", "600" }, { "chain", "60" }, { "gen", "60" },   { "deep", "60" },
	{ "rec", "60" },    { "coro", "60" },  { "async", "60" },
};

#define TARGETS (sizeof(targets) / sizeof(targets[0]))

static const char *name_of(const struct py_process *p, const struct py_frame *f)
{
	struct py_function function;

	return py_code(p, f->code, &function) ? function.name : "?";
}

static bool starts(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
	size_t n = strlen(text), m = strlen(with);

	return n >= m && strcmp(text + n - m, with) == 0;
}

/* "chain_3_7" -> 7, with everything before the last '_' in *ret_n bytes; -1: not one of those. */
static long depth_of(const char *name, size_t *ret_n)
{
	const char *last = strrchr(name, '_');
	bool known = false;

	for (size_t i = 0; i < TARGETS; i++)
		known |= starts(name, targets[i].kind);
	if (!known || !last || last[1] < '0' || last[1] > '9')
		return -1;
	*ret_n = (size_t)(last - name);
	return strtol(last + 1, NULL, 10);
}

static bool is_loop(const char *name)
{
	return strcmp(name, "loop") == 0 || strcmp(name, "coro_loop") == 0 ||
	       strcmp(name, "task_loop") == 0;
}

static bool may_call(const char *caller, const char *callee)
{
	size_t n, m = 0;
	long depth = depth_of(callee, &n), above = depth_of(caller, &m);
	bool same_set = above >= 0 && n == m && memcmp(caller, callee, n) == 0;

	if (depth > 0)
		return same_set && above == depth - 1;
	if (depth == 0 && starts(callee, "rec_") && above >= 0)
		return same_set && above == 2; /* once round the circle */
	if (depth == 0)
		return is_loop(caller);
	if (strcmp(callee, "spin") == 0)
		return starts(caller, "rec_") || above >= 6 || strcmp(caller, "<module>") == 0;
	if (strcmp(callee, "loop") == 0)
		return strcmp(caller, "<module>") == 0;
	if (is_loop(callee)) /* a step of a task, from the event loop: asyncio/events.py */
		return ends(caller, "_run");
	return true;
}

/* A recursion that has come to its end has the depth of its set. */
static bool recursion_whole(const struct py_process *p, const struct py_stacks *s,
			    const struct py_thread *t)
{
	const struct py_frame *f = &s->frames.v[t->first];
	const char *last = t->n > 1 ? name_of(p, &f[1]) : "";
	unsigned long n = 0;

	if (strcmp(name_of(p, &f[0]), "spin") != 0 || !starts(last, "rec_"))
		return true;
	for (uint32_t i = 1; i < t->n; i++)
		n += starts(name_of(p, &f[i]), "rec_");
	return n == RECURSION + strtoul(last + 4, NULL, 10) + 1;
}

/* A frame that has called another stands in the line behind its `def`. */
static bool line_right(const struct py_process *p, const struct py_frame *f)
{
	struct py_function function;
	size_t n;

	if (!py_code(p, f->code, &function) || depth_of(function.name, &n) < 0)
		return true;
	return py_line(p, f->code, f->offset) == function.first_line + 1;
}

static bool stack_right(const struct py_process *p, const struct py_stacks *s,
			const struct py_thread *t)
{
	const struct py_frame *f = &s->frames.v[t->first];
	bool partial = t->status == PY_PARTIAL;

	if (!t->n || strcmp(name_of(p, &f[t->n - 1]), "<module>") != 0)
		return false;
	for (uint32_t i = 0; i + 1 < t->n; i++) {
		if (!may_call(name_of(p, &f[i + 1]), name_of(p, &f[i])))
			return false;
		if (!line_right(p, &f[i + 1]))
			return false;
	}
	/* Only the innermost frame of a partial stack may have no line. */
	return partial ? f[0].offset == PY_OFFSET_UNKNOWN : recursion_whole(p, s, t);
}

static void note_wrong(const struct py_process *p, const struct py_stacks *s,
		       const struct py_thread *t, struct tally *tally)
{
	size_t at = 0;

	if (tally->wrong++)
		return;
	at = (size_t)snprintf(tally->example, sizeof(tally->example),
			      "%s, %s, %u frames: ", tally->kind,
			      t->status == PY_PARTIAL ? "partial" : "complete", t->n);
	for (uint32_t i = 0; i < t->n && at < sizeof(tally->example) - 100; i++) {
		const struct py_frame *f = &s->frames.v[t->first + i];

		at += (size_t)snprintf(tally->example + at, 100, "%.60s:%d ", name_of(p, f),
				       py_line(p, f->code, f->offset));
	}
}

static void take(struct py_process *p, struct py_stacks *s, struct tally *tally)
{
	taken++;
	if (py_sample(p, s) < 0 || s->threads.n != 1) {
		tally->unproven++;
		return;
	}
	switch (s->threads.v[0].status) {
	case PY_COMPLETE:
		tally->complete++;
		break;
	case PY_PARTIAL:
		tally->partial++;
		break;
	default:
		tally->unproven++;
		return;
	}
	if (!stack_right(p, s, &s->threads.v[0]))
		note_wrong(p, s, &s->threads.v[0], tally);
}

/* A pause of 0 to 60 us, so that samples do not keep step with the target. */
static void wait_a_little(uint64_t *random)
{
	int64_t until;

	*random = *random * 6364136223846793005ull + 1442695040888963407ull;
	until = clock_mono_ns() + (int64_t)(*random >> 33) % 60000;
	while (clock_mono_ns() < until)
		;
}

/* A stack that never stands still may not be proven at once: -EAGAIN says to come again, so we do, for as
 * long as a test may take at most. Any other answer is a failure. */
static struct py_process *attach(const char *python, const char *kind, pid_t pid)
{
	int64_t until = clock_mono_ns() + ATTACH_S * NS_PER_S;
	struct py_process *p = NULL;
	struct err e = { 0 };
	int r = -EAGAIN;

	for (unsigned tries = 1; r == -EAGAIN && clock_mono_ns() < until; tries++) {
		e = (struct err){ 0 };
		r = py_attach(&p, pid, NULL, &e);
		if (r == -EAGAIN)
			usleep(1000);
		else if (tries > 1)
			print_message("%s %s: attached at the %uth try\n", python, kind, tries);
	}
	if (r < 0)
		fail_msg("%s %s: cannot attach (%d): %s", python, kind, r, e.text);
	return p;
}

static void run(const char *python, const char *kind, const char *period, struct tally *tally)
{
	struct py_stacks stacks = { 0 };
	struct py_process *p;
	struct target target;
	uint64_t random = 1;
	char line[64];

	snprintf(tally->kind, sizeof(tally->kind), "%s %s us", kind, period);
	target_start(&target, python, 0, SCRIPTS "/oracle.py", kind, period);
	if (!fgets(line, sizeof(line), target.out))
		fail_msg("%s %s: the target says nothing", python, kind);
	p = attach(python, kind, target.pid);
	usleep(20000); /* out of the module's preparations */
	for (unsigned long i = 0; i < samples; i++) {
		take(p, &stacks, tally);
		wait_a_little(&random);
	}
	target_end(&target);
	py_stacks_done(&stacks);
	py_detach(p);
}

/* No wrong one is excused. How many are complete also hangs on who else uses the two CPUs: the best of
 * three must be good. */
static void check(const char *kind, const char *period)
{
	for (size_t i = 0; i < pythons.n; i++) {
		bool good = false;

		for (int try = 0; try < 3 && !good; try++) {
			struct tally tally = { 0 };

			run(pythons.path[i], kind, period, &tally);
			print_message(
			    "3.%-2u %-5s %4s us: %lu complete, %lu partial, %lu unproven, "
			    "%lu wrong\n",
			    pythons.minor[i], kind, period, tally.complete, tally.partial,
			    tally.unproven, tally.wrong);
			if (tally.wrong)
				fail_msg("%s: no such stack: %s", pythons.path[i], tally.example);
			good = (double)tally.complete >= COMPLETE * (double)samples;
		}
		assert_true(good);
	}
}

static void check_all(const char *kind)
{
	for (size_t i = 0; i < TARGETS; i++)
		if (strcmp(targets[i].kind, kind) == 0)
			check(kind, targets[i].period);
}

static void test_chains(void **state)
{
	(void)state;
	check_all("chain");
	check_all("deep");
}

static void test_generators(void **state)
{
	(void)state;
	check_all("gen");
}

static void test_recursion(void **state)
{
	(void)state;
	check_all("rec");
}

static void test_coroutines(void **state)
{
	(void)state;
	check_all("coro");
	check_all("async");
}

/* Faster than any sampler can follow: little is complete, nothing may be wrong. */
static void test_absurd(void **state)
{
	(void)state;
	for (size_t i = 0; i < pythons.n; i++) {
		struct tally tally = { 0 };

		run(pythons.path[i], "chain", "1", &tally);
		run(pythons.path[i], "gen", "1", &tally);
		run(pythons.path[i], "rec", "1", &tally);
		print_message("3.%-2u absurd: %lu complete, %lu partial, %lu unproven, %lu wrong\n",
			      pythons.minor[i], tally.complete, tally.partial, tally.unproven,
			      tally.wrong);
		if (tally.wrong)
			fail_msg("%s: no such stack: %s", pythons.path[i], tally.example);
	}
}

/* Memory of a process whose readings are held up once in every other call, for longer than what is usual:
 * somewhere in the middle of it or of one of its pieces, for up to two rounds of a target's loop. */
struct slow_memory {
	struct mem process;
	uint64_t random;
	bool on;
};

static void spend(int64_t ns)
{
	int64_t until = clock_mono_ns() + ns;

	while (clock_mono_ns() < until)
		;
}

static int read_slowly(void *arg, struct mem_piece *pieces, size_t n)
{
	struct slow_memory *m = arg;
	struct mem_piece part, *cut;
	size_t first;
	int r;

	m->random = m->random * 6364136223846793005ull + 1442695040888963407ull;
	if (!m->on || n < 4 || m->random >> 63)
		return mem_read_pieces(&m->process, pieces, n);
	first = 1 + (size_t)(m->random >> 33) % (n - 1);
	cut = &pieces[first - 1];
	part = *cut;
	cut->n = (uint32_t)(m->random >> 17) % (part.n + 1);
	r = mem_read_pieces(&m->process, pieces, first);
	spend(60000 + (int64_t)(m->random >> 20) % 640000);
	part.at += cut->n;
	part.to = (uint8_t *)part.to + cut->n;
	part.n -= cut->n;
	if (r == 0)
		r = mem_read_pieces(&m->process, &part, 1);
	cut->n += part.n;
	cut->failed |= part.failed;
	return r < 0 ? r : mem_read_pieces(&m->process, pieces + first, n - first);
}

/* How many readings were made again in `n` samples. */
static uint64_t run_slowly(const char *python, const char *kind, const char *period,
			   unsigned long n, struct tally *tally)
{
	struct slow_memory slow = { .random = 1 };
	struct mem m;
	struct py_stacks stacks = { 0 };
	struct py_process *p = NULL;
	struct target target;
	char line[64], path[64], *maps;
	int64_t until = clock_mono_ns() + ATTACH_S * NS_PER_S;
	uint64_t again;
	size_t maps_n;
	int r = -EAGAIN, error;

	snprintf(tally->kind, sizeof(tally->kind), "%s %s slow", kind, period);
	target_start(&target, python, 0, SCRIPTS "/oracle.py", kind, period);
	assert_non_null(fgets(line, sizeof(line), target.out));
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)target.pid);
	maps = io_slurp(AT_FDCWD, path, 1 << 20, &maps_n, &error);
	assert_non_null(maps);
	mem_open(&slow.process, target.pid);
	mem_open_source(&m, read_slowly, &slow);
	m.timed = true;
	while (r == -EAGAIN && clock_mono_ns() < until)
		r = py_attach_memory(&p, &m, maps, maps_n, NULL);
	assert_int_equal(r, 0);
	for (int i = 0; i < 200; i++) /* what is usual, and the functions */
		take(p, &stacks, &(struct tally){ 0 });
	slow.on = true;
	for (int i = 0; i < 10; i++) /* one that is late makes it wary */
		take(p, &stacks, tally);
	again = py_counts(p).retries;
	for (unsigned long i = 0; i < n; i++)
		take(p, &stacks, tally);
	again = py_counts(p).retries - again;
	target_end(&target);
	py_stacks_done(&stacks);
	py_detach(p);
	mem_close(&slow.process);
	free(maps);
	return again;
}

/* A reading that was held up proves a stack only if that is what was there; and where nothing moved it is
 * not made again. Frames that are objects (to 3.10) are always read again. */
static void test_interrupted(void **state)
{
	static const char *const kinds[] = { "chain", "rec", "deep", "gen" };
	unsigned long n = getenv("SPOTTER_LONG") ? 20000 : 400;

	(void)state;
	for (size_t i = 0; i < pythons.n; i++) {
		struct tally tally = { 0 }, still = { 0 };
		uint64_t again;

		if (pythons.minor[i] < 11)
			continue;
		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
			run_slowly(pythons.path[i], kinds[k], k % 2 ? "1" : "60", n, &tally);
		again = run_slowly(pythons.path[i], "chain", "1000000", 200, &still);
		print_message("3.%-2u interrupted: %lu complete, %lu partial, %lu unproven, %lu "
			      "wrong; standing still: %lu complete, %llu read again\n",
			      pythons.minor[i], tally.complete, tally.partial, tally.unproven,
			      tally.wrong, still.complete, (unsigned long long)again);
		if (tally.wrong || still.wrong)
			fail_msg("%s: no such stack: %s%s", pythons.path[i], tally.example,
				 still.example);
		assert_true(tally.complete > 0);
		/* Who else uses the CPUs interrupts us, too. */
		assert_true(still.complete > 150 && again < 50);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chains),    cmocka_unit_test(test_generators),
		cmocka_unit_test(test_recursion), cmocka_unit_test(test_coroutines),
		cmocka_unit_test(test_absurd),    cmocka_unit_test(test_interrupted),
	};
	const char *more = getenv("SPOTTER_ORACLE_SAMPLES");

	unsigned long goal = getenv("SPOTTER_LONG") ? 1000000 : 50000;
	int r;

	if (more)
		goal = strtoul(more, NULL, 10);
	pythons_find(&pythons);
	if (!pythons.n) {
		print_message(
		    "no Python 3.8 or later that this user may run: nothing was tested\n");
		return 77;
	}
	if (!pin(1)) {
		print_message("one CPU only: sampler and target cannot run at the same time\n");
		return 77;
	}
	samples = goal / (TARGETS * pythons.n) + 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	print_message("%lu samples on %zu Pythons\n", taken, pythons.n);
	return r;
}
