/* SPDX-License-Identifier: MIT
 *
 * What looking at the stacks of one process costs: the calls that the recorder makes in a tick, alone
 * in a process of their own, by the same kind of clock (never regular).
 *
 *	bench/stack_sample split HZ SECONDS PID          takes turns in blocks of 0.25 s, in random order:
 *		an empty tick; stacks; stacks and what each thread waits for. CPU of a tick of each kind.
 *	bench/stack_sample run|stacks HZ SECONDS PID [FILE]     stacks and waits, or stacks alone, in every
 *		tick, until the time is over or the process has ended. FILE: its stacks, "outer;inner COUNT"
 *		a line.
 *
 * Prints "ready" when it has attached, and one line of JSON at the end. CPU is that of the whole
 * process, which has one thread. A run may be stopped and continued (SIGSTOP, SIGCONT): ticks that
 * were missed are not made up for.
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/num.h"
#include "stack/py/py.h"
#include "stack/wait/wait.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum kind { EMPTY, STACKS, WAITS, KINDS };

#define BLOCK_NS (NS_PER_S / 4)
/* So late it was stopped. To be late for want of a CPU is no reason not to look. */
#define STOPPED_NS (15 * NS_PER_MS)
#define WARM_NS    (NS_PER_S / 2) /* functions are read and threads opened once: no steady state */

struct fold {
	uint32_t first, n; /* frames, innermost first */
	uint64_t count;
};

/* Folded stacks: the frames of all different ones behind each other, found by a hash of them. Two that
 * share a hash of 64 bits would be counted as one. */
struct folded {
	struct map by_hash;
	VEC(struct fold) stacks;
	VEC(struct py_frame) frames;
};

struct bench {
	double hz;
	int64_t until_ns, due_ns;
	uint64_t random;
	struct py_process *py;
	struct wait_job *job;
	struct wait_process *wait;
	struct py_stacks stacks;
	struct folded *fold; /* NULL: not kept */
	struct {
		uint64_t ticks, stacks;
		int64_t cpu_ns;
	} of[KINDS];
	uint64_t calls, retries; /* of reading, in ticks that did */
};

static double next_random(struct bench *b)
{
	b->random ^= b->random << 13;
	b->random ^= b->random >> 7;
	b->random ^= b->random << 17;
	return (double)(b->random >> 11) * 0x1p-53;
}

/* Half to one and a half of a period after the last one was due: nothing can keep step with it, and the
 * mean rate is what was asked for. After a pause of more than a period it begins anew, also when the pause came
 * while it waited: a look at once would be one that nobody asked for. */
static void wait_for_tick(struct bench *b)
{
	int64_t period = (int64_t)((double)NS_PER_S / b->hz), length, now;
	struct timespec ts;

	do {
		length = (int64_t)((0.5 + next_random(b)) * (double)period);
		now = clock_mono_ns();
		b->due_ns += length;
		if (b->due_ns < now - period)
			b->due_ns = now + length;
		ts = (struct timespec){ .tv_sec = b->due_ns / NS_PER_S,
					.tv_nsec = b->due_ns % NS_PER_S };
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
			;
	} while (clock_mono_ns() - b->due_ns > STOPPED_NS);
}

static int fold_one(struct folded *f, const struct py_frame *frames, uint32_t n)
{
	uint64_t hash = n;
	struct fold *new;
	uint32_t at;

	for (uint32_t i = 0; i < n; i++)
		hash =
		    map_mix(hash ^ ((uint64_t)frames[i].code << 32 | (uint32_t)frames[i].offset));
	if (map_get(&f->by_hash, hash, &at)) {
		f->stacks.v[at].count++;
		return 0;
	}
	new = vec_push(&f->stacks);
	if (!new || !vec_reserve(&f->frames, f->frames.n + n) ||
	    !map_put(&f->by_hash, hash, (uint32_t)f->stacks.n - 1))
		return -ENOMEM;
	*new = (struct fold){ .first = (uint32_t)f->frames.n, .n = n, .count = 1 };
	memcpy(f->frames.v + f->frames.n, frames, n * sizeof(*frames));
	f->frames.n += n;
	return 0;
}

static int fold_write(const struct bench *b, const char *path)
{
	FILE *out = fopen(path, "we");

	if (!out)
		return -errno;
	for (size_t i = 0; i < b->fold->stacks.n; i++) {
		const struct fold *s = &b->fold->stacks.v[i];

		for (uint32_t k = s->n; k > 0; k--) {
			const struct py_frame *f = &b->fold->frames.v[s->first + k - 1];
			struct py_function function;

			fprintf(out, "%s%s:%d", k < s->n ? ";" : "",
				py_code(b->py, f->code, &function) ? function.name : "?",
				py_line(b->py, f->code, f->offset));
		}
		fprintf(out, " %llu\n", (unsigned long long)s->count);
	}
	return fclose(out) ? -errno : 0;
}

static int tick(struct bench *b, enum kind kind)
{
	int64_t now = clock_mono_ns();
	int r;

	b->of[kind].ticks++;
	if (kind == EMPTY)
		return 0;
	r = py_sample(b->py, &b->stacks);
	if (r < 0)
		return r;
	for (size_t i = 0; i < b->stacks.threads.n; i++) {
		const struct py_thread *t = &b->stacks.threads.v[i];
		struct wait_state state;

		if (t->status == PY_COMPLETE || t->status == PY_PARTIAL)
			b->of[kind].stacks++;
		if (kind == WAITS && t->tid > 0 &&
		    wait_see(b->wait, t->tid, now, &state) == -ENOMEM)
			return -ENOMEM;
		if (b->fold && t->n && fold_one(b->fold, b->stacks.frames.v + t->first, t->n) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Ticks of one kind for a while, and their CPU. The clock is read at both ends only: reading it costs. */
static int block(struct bench *b, enum kind kind, int64_t until_ns)
{
	int64_t cpu = clock_self_cpu_ns();
	struct py_counts before = py_counts(b->py), after;
	int r = 0;

	while (r == 0 && clock_mono_ns() < until_ns) {
		wait_for_tick(b);
		r = tick(b, kind);
	}
	b->of[kind].cpu_ns += clock_self_cpu_ns() - cpu;
	after = py_counts(b->py);
	b->calls += after.calls - before.calls;
	b->retries += after.retries - before.retries;
	return r;
}

static int run_split(struct bench *b)
{
	int r = 0;

	while (r == 0 && clock_mono_ns() < b->until_ns) {
		unsigned begin = (unsigned)(next_random(b) * KINDS);
		unsigned step = next_random(b) < 0.5 ? 1 : 2;

		/* All kinds in every round, in one of the six orders. At least ten ticks a block, for at
		 * 50 Hz the borders would count. */
		for (unsigned i = 0; r == 0 && i < KINDS; i++) {
			int64_t length = (int64_t)(10 / b->hz * (double)NS_PER_S);

			if (length < BLOCK_NS)
				length = BLOCK_NS;
			r = block(b, (enum kind)((begin + i * step) % KINDS),
				  clock_mono_ns() + length);
		}
	}
	return r;
}

static int run_all(struct bench *b, enum kind kind)
{
	int64_t swept = clock_mono_ns();
	int r = 0;

	while (r == 0 && clock_mono_ns() < b->until_ns) {
		int64_t end = swept + NS_PER_S;

		r = block(b, kind, end < b->until_ns ? end : b->until_ns);
		wait_sweep(b->wait);
		swept = clock_mono_ns();
	}
	return r;
}

static int attach(struct bench *b, pid_t pid, struct err *e)
{
	struct py_range gil;
	int r;

	for (int i = 0; i < 100; i++) {
		r = py_attach(&b->py, pid, NULL, e);
		if (r != -EAGAIN)
			break;
		wait_for_tick(b);
		*e = (struct err){ 0 };
	}
	if (r < 0)
		return r;
	r = wait_job_open(&b->job, 1024);
	if (r == 0)
		r = wait_open(&b->wait, b->job, pid);
	if (r < 0)
		return err_set(e, r, "no memory");
	wait_job_set(b->job, &pid, 1);
	if (py_gil(b->py, 0, &gil))
		wait_set_gils(b->wait, &gil, 1);
	return 0;
}

/* Looks often for a while, whatever the rate is to be. */
static int warm(struct bench *b, struct err *e)
{
	int64_t end = clock_mono_ns() + WARM_NS;
	double hz = b->hz;
	int r = 0;

	b->hz = 500;
	while (r == 0 && clock_mono_ns() < end) {
		wait_for_tick(b);
		r = tick(b, WAITS);
	}
	b->hz = hz;
	if (r < 0)
		return err_set(e, r, "the process cannot be sampled: %s", strerror(-r));
	memset(b->of, 0, sizeof(b->of));
	return 0;
}

static void report(const struct bench *b)
{
	static const char *const names[KINDS] = { "empty", "stacks", "waits" };
	struct py_counts c = py_counts(b->py);
	uint64_t reading = b->of[STACKS].ticks + b->of[WAITS].ticks;

	printf("{\"python\": \"3.%u\"", py_version(b->py) >> 16 & 0xff);
	for (int k = 0; k < KINDS; k++) {
		if (!b->of[k].ticks)
			continue;
		printf(", \"%s\": {\"ticks\": %llu, \"stacks\": %llu, \"us\": %.3f}", names[k],
		       (unsigned long long)b->of[k].ticks, (unsigned long long)b->of[k].stacks,
		       (double)b->of[k].cpu_ns / 1e3 / (double)b->of[k].ticks);
	}
	if (reading)
		printf(", \"calls\": %.4f, \"retries\": %.4f", (double)b->calls / (double)reading,
		       (double)b->retries / (double)reading);
	printf(", \"complete\": %llu, \"partial\": %llu, \"unproven\": %llu}\n",
	       (unsigned long long)c.complete, (unsigned long long)c.partial,
	       (unsigned long long)c.unproven);
}

static void done(struct bench *b)
{
	if (b->fold) {
		map_done(&b->fold->by_hash);
		vec_done(&b->fold->stacks);
		vec_done(&b->fold->frames);
	}
	py_stacks_done(&b->stacks);
	if (b->wait)
		wait_close(b->wait);
	if (b->job)
		wait_job_close(b->job);
	if (b->py)
		py_detach(b->py);
}

static int usage(void)
{
	fprintf(stderr, "stack_sample split|run|stacks HZ SECONDS PID [FILE]\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct bench b = { .random = 88172645463325252ull ^ (uint64_t)clock_mono_ns() };
	struct folded fold = { 0 };
	struct err e = { 0 };
	int64_t pid, seconds, hz;
	bool split = argc > 1 && strcmp(argv[1], "split") == 0;
	bool waits = argc > 1 && strcmp(argv[1], "run") == 0;
	int r;

	if (argc < 5 || argc > 6 || (!split && !waits && strcmp(argv[1], "stacks") != 0) ||
	    !num_parse_i64(argv[2], &hz) || hz < 1 || hz > 100000 ||
	    !num_parse_i64(argv[3], &seconds) || seconds < 1 || seconds > 86400 ||
	    !num_parse_i64(argv[4], &pid) || pid < 1 || pid > INT32_MAX)
		return usage();
	b.hz = (double)hz;
	r = attach(&b, (pid_t)pid, &e);
	if (r == 0)
		r = warm(&b, &e);
	if (r < 0) {
		fprintf(stderr, "stack_sample: %s\n", e.text);
		done(&b);
		return 1;
	}
	printf("ready\n");
	fflush(stdout);
	if (argc == 6)
		b.fold = &fold; /* after the warm-up, which is in no count */
	b.until_ns = clock_mono_ns() + seconds * NS_PER_S;
	r = split ? run_split(&b) : run_all(&b, waits ? WAITS : STACKS);
	if (r == -ESRCH && !split)
		r = 0;
	if (r == 0 && argc == 6)
		r = fold_write(&b, argv[5]);
	if (r < 0)
		fprintf(stderr, "stack_sample: %s\n", strerror(-r));
	else
		report(&b);
	done(&b);
	return r < 0;
}
