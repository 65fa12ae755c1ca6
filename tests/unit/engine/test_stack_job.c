/* SPDX-License-Identifier: MIT
 *
 * Who is looked at, from when on, and by whose number. The clock of looks is an argument: no test waits.
 */
#include "../unit.h"

#include "base/clock.h"
#include "engine/stack_job.h"
#include "engine/stack_lead.h"
#include "engine/stack_leaf.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOT = 20, ROOT_THREAD = 30, CHILD = 21, CHILD_THREAD = 31 };

struct rig {
	struct stack_tally tally;
	struct stack_job job;
	int64_t now_ns;
};

static void rig_open(struct rig *r)
{
	*r = (struct rig){ .now_ns = clock_mono_ns() };
	assert_int_equal(stack_job_open(&r->job, &r->tally, 50), 0);
}

static void rig_close(struct rig *r)
{
	stack_job_close(&r->job);
	stack_tally_done(&r->tally);
}

static void born(struct rig *r, enum entity_kind kind, uint32_t id, uint32_t parent, pid_t key,
		 int64_t age_ns)
{
	int64_t boot = clock_boot_ns();
	struct life l = { .change = LIFE_BORN,
			  .id = id,
			  .parent = parent,
			  .kind = kind,
			  .key = key,
			  .start_ns = boot - age_ns };

	stack_job_life(&r->job, &l, clock_wall_ns(), boot);
}

static struct stack_proc *proc(struct rig *r, uint32_t entity)
{
	uint32_t at = 0;

	assert_true(map_get(&r->job.by_entity, entity, &at));
	return r->job.procs.v[at];
}

static uint32_t samples_of(const struct rig *r, uint32_t thread)
{
	uint32_t n = 0;

	for (size_t i = 0; i < r->tally.rows.n; i++)
		n += r->tally.rows.v[i].entity == thread ? r->tally.rows.v[i].count : 0;
	return n;
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when an assertion ends the test first */
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Two processes: the program (this one) and what it started. */
static void family(struct rig *r, pid_t child, int64_t age_ns)
{
	rig_open(r);
	born(r, ENTITY_PROC, ROOT, ID_JOB, getpid(), 0);
	born(r, ENTITY_THREAD, ROOT_THREAD, ROOT, getpid(), 0);
	born(r, ENTITY_PROC, CHILD, ROOT, child, age_ns);
	born(r, ENTITY_THREAD, CHILD_THREAD, CHILD, child, age_ns);
}

static void a_young_child_is_left_alone(void **state)
{
	pid_t pid = start_child();
	struct rig r;

	(void)state;
	family(&r, pid, 0);
	stack_job_attach(&r.job, r.now_ns, 0);
	stack_job_look(&r.job, r.now_ns);
	assert_int_equal(samples_of(&r, ROOT_THREAD), 1);
	assert_int_equal(samples_of(&r, CHILD_THREAD), 0);
	assert_int_equal(proc(&r, CHILD)->access, ACCESS_UNKNOWN);
	assert_int_not_equal(proc(&r, ROOT)->access, ACCESS_UNKNOWN);
	/* Within 0.3 s of its birth it is looked at. */
	r.now_ns = clock_mono_ns() + 250 * NS_PER_MS;
	for (int i = 0; i < 10; i++)
		stack_job_attach(&r.job, r.now_ns, 0);
	stack_job_look(&r.job, r.now_ns);
	assert_int_equal(samples_of(&r, CHILD_THREAD), 1);
	assert_int_not_equal(proc(&r, CHILD)->access, ACCESS_UNKNOWN);
	rig_close(&r);
	end_child(pid);
}

/* As often as it takes: a call has 2 ms, and with sanitizers one process may need them all. */
static void attach_all(struct rig *r)
{
	for (int i = 0; i < 10; i++)
		stack_job_attach(&r->job, r->now_ns, 0);
}

/* Somebody attached to a job that has been running for long. */
static void an_old_child_is_looked_at_once(void **state)
{
	pid_t pid = start_child();
	struct rig r;

	(void)state;
	family(&r, pid, 5 * NS_PER_S);
	attach_all(&r);
	stack_job_look(&r.job, r.now_ns);
	assert_int_equal(samples_of(&r, CHILD_THREAD), 1);
	assert_int_not_equal(proc(&r, CHILD)->access, ACCESS_UNKNOWN);
	rig_close(&r);
	end_child(pid);
}

static void who_is_gone_is_not_looked_into(void **state)
{
	pid_t pid = start_child();
	struct rig r;

	(void)state;
	end_child(pid);
	family(&r, pid, NS_PER_S);
	attach_all(&r);
	assert_true(proc(&r, CHILD)->gone);
	assert_int_equal(proc(&r, CHILD)->access, ACCESS_UNKNOWN);
	stack_job_look(&r.job, r.now_ns);
	assert_int_equal(samples_of(&r, CHILD_THREAD), 0);
	rig_close(&r);
}

static void finding_has_a_budget(void **state)
{
	pid_t pid = start_child();
	int64_t seconds = 0;
	struct rig r;

	(void)state;
	family(&r, pid, NS_PER_S);
	r.job.purse.left_ns = -NS_PER_MS;
	stack_job_attach(&r.job, r.now_ns, 0.01 / 3);
	stack_job_attach(&r.job, r.now_ns + 100 * NS_PER_MS, 0.01 / 3); /* 0.5 ms came in */
	assert_int_equal(proc(&r, CHILD)->access, ACCESS_UNKNOWN);
	while (seconds < 8 && proc(&r, CHILD)->access == ACCESS_UNKNOWN)
		stack_job_attach(&r.job, r.now_ns + ++seconds * NS_PER_S, 0.01 / 3);
	assert_int_not_equal(proc(&r, CHILD)->access, ACCESS_UNKNOWN);
	/* What it cost was paid: 5 ms came in each second, to a debt of one. */
	assert_true(r.job.purse.left_ns < seconds * 5 * NS_PER_MS - NS_PER_MS);
	rig_close(&r);
	end_child(pid);
}

enum { DEPTH = 12 };

/* Not exported: its name is in the file of this test only. */
__attribute__((noinline, noclone)) static void go_down(int n)
{
	if (n > 1)
		go_down(n - 1);
	else
		while (getpid() > 0)
			pause();
	__asm__ volatile("" ::: "memory"); /* the call is no jump */
}

/* The places of the only stack of a thread, innermost first. */
static size_t stack_of(const struct rig *r, uint32_t thread, uint32_t *places)
{
	const struct stack_row *row = NULL;

	for (size_t i = 0; i < r->tally.rows.n; i++)
		row = r->tally.rows.v[i].entity == thread ? &r->tally.rows.v[i] : row;
	return row ? stack_book_walk(&r->tally.book, row->node, places, STACK_DEPTH_MAX) : 0;
}

static const char *function_of(const struct rig *r, uint32_t place)
{
	return stack_book_find_place(&r->tally.book, place)->function;
}

/* Sanitized code finds its frames by the frame pointer, which of a thread that waits is not known, and a sanitizer's
 * own functions lie between the kernel and the program. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* All callers of a thread that waits, with the names that only the file has. */
static void a_wait_has_all_its_callers(void **state)
{
	uint32_t places[STACK_DEPTH_MAX];
	int64_t until = clock_mono_ns() + 20 * NS_PER_S;
	size_t n = 0, down = 0;
	uint32_t node;
	struct rig r;
	pid_t pid;

	(void)state;
	if (SANITIZED)
		skip();
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		go_down(DEPTH);
	}
	family(&r, pid, 5 * NS_PER_S);
	attach_all(&r);
	do {
		usleep(2000);
		stack_job_look(&r.job, clock_mono_ns());
		n = stack_of(&r, CHILD_THREAD, places);
	} while ((n < DEPTH || proc(&r, CHILD)->threads.v[0].nameless) && clock_mono_ns() < until);
	for (size_t i = 0; i < n; i++)
		down += strncmp(function_of(&r, places[i]), "go_down", 7) == 0;
	assert_int_equal(down, DEPTH);
	assert_true(strncmp(function_of(&r, places[0]), "go_down", 7) == 0);
	/* What begins a program is left out. */
	assert_string_not_equal(function_of(&r, places[n - 1]), "_start");
	node = proc(&r, CHILD)->threads.v[0].callers;
	stack_job_look(&r.job, clock_mono_ns());
	assert_int_equal(proc(&r, CHILD)->threads.v[0].callers, node);
	assert_int_equal(proc(&r, CHILD)->threads.v[0].row.node, node);
	rig_close(&r);
	end_child(pid);
}

/* Its first thread has ended: by another one's number, and when there is none it is gone. */
static void memory_is_read_by_who_is_left(void **state)
{
	struct stack_proc *p;
	struct life gone = { .change = LIFE_GONE, .kind = ENTITY_THREAD, .parent = ROOT };
	struct rig r;

	(void)state;
	rig_open(&r);
	born(&r, ENTITY_PROC, ROOT, ID_JOB, 999999999, 0);
	born(&r, ENTITY_THREAD, 40, ROOT, 999999999, 0);
	born(&r, ENTITY_THREAD, 41, ROOT, 999999991, 0);
	born(&r, ENTITY_THREAD, 42, ROOT, 999999992, 0);
	p = proc(&r, ROOT);
	assert_int_equal(p->via, 999999999);
	stack_job_lost(&r.job, p, r.now_ns);
	assert_int_equal(p->via, 999999991);
	stack_job_lost(&r.job, p, r.now_ns);
	assert_int_equal(p->via, 999999992);
	stack_job_lost(&r.job, p, r.now_ns);
	assert_int_equal(p->via, 999999991);
	gone.id = 41;
	stack_job_life(&r.job, &gone, 0, 0);
	stack_job_lost(&r.job, p, r.now_ns);
	assert_int_equal(p->via, 999999992);
	assert_false(p->gone);
	gone.id = 42;
	stack_job_life(&r.job, &gone, 0, 0);
	stack_job_lost(&r.job, p, r.now_ns);
	assert_true(p->gone);
	rig_close(&r);
}

/* A launcher that only waits hands its lead to those it started, and takes it back when it works. Their clocks are set by
 * hand. */
static void who_waits_for_its_children_hands_over(void **state)
{
	pid_t pid = start_child();
	struct rig r;

	(void)state;
	family(&r, pid, 0);
	assert_true(proc(&r, ROOT)->leads && !proc(&r, CHILD)->leads);
	assert_int_equal(r.job.followers, 1);
	proc(&r, ROOT)->cpu_ns = proc(&r, CHILD)->cpu_ns = NS_PER_S;
	stack_lead_watch(&r.job, r.now_ns);
	for (int i = 1; i <= 3; i++) {
		assert_false(proc(&r, CHILD)->leads); /* too early to tell */
		proc(&r, ROOT)->cpu_ns += 5 * NS_PER_MS;
		proc(&r, CHILD)->cpu_ns += 900 * NS_PER_MS;
		stack_lead_watch(&r.job, r.now_ns + i * NS_PER_S - NS_PER_S / 2);
		stack_lead_watch(&r.job, r.now_ns + i * NS_PER_S);
	}
	assert_true(proc(&r, ROOT)->leads && proc(&r, CHILD)->leads);
	assert_int_equal(r.job.followers, 0);
	proc(&r, ROOT)->cpu_ns += 20 * NS_PER_MS; /* a little is not enough to take it back */
	stack_lead_watch(&r.job, r.now_ns + 4 * NS_PER_S);
	assert_true(proc(&r, CHILD)->leads);
	proc(&r, ROOT)->cpu_ns += 100 * NS_PER_MS;
	stack_lead_watch(&r.job, r.now_ns + 5 * NS_PER_S);
	assert_false(proc(&r, CHILD)->leads);
	assert_int_equal(r.job.followers, 1);
	rig_close(&r);
	end_child(pid);
}

/* More than a few take turns, whoever started them. */
static void many_children_take_turns(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r);
	born(&r, ENTITY_PROC, ROOT, ID_JOB, getpid(), 0);
	for (uint32_t i = 0; i < 12; i++)
		born(&r, ENTITY_PROC, 100 + i, ROOT, (pid_t)(2000000000 + i), 0);
	proc(&r, ROOT)->cpu_ns = NS_PER_S;
	for (int i = 0; i < 4; i++)
		stack_lead_watch(&r.job, r.now_ns + i * NS_PER_S);
	assert_true(proc(&r, ROOT)->rests);
	assert_int_equal(r.job.followers, 12);
	rig_close(&r);
}

/* Whatever the stride and its place, each process is asked for its native leaf, and those of a kind as often as each other. */
static void everybody_has_a_turn(void **state)
{
	enum { LEADERS = 2, FOLLOWERS = 5, PROCS = LEADERS + FOLLOWERS, LOOKS = 4000 };

	(void)state;
	for (unsigned stride = 1; stride <= 8; stride++) {
		struct stack_proc procs[PROCS] = { 0 };
		struct stack_job j = { .followers = FOLLOWERS, .stride = stride };
		unsigned asked[PROCS] = { 0 };

		for (size_t i = 0; i < PROCS; i++) {
			procs[i].leads = i < LEADERS;
			*vec_push(&j.procs) = &procs[i];
		}
		for (j.turn = 1; j.turn <= LOOKS; j.turn++) {
			j.asked = false;
			for (size_t i = 0; i < PROCS; i++) {
				if (!procs[i].leads && (j.turn + i) % stride)
					continue;
				procs[i].leaf_looks++;
				if (!stack_leaf_turn(&j, &procs[i]))
					continue;
				asked[i]++;
				procs[i].leaf_looks = 0;
				j.asked = true;
				j.leaf_turn++;
			}
		}
		for (size_t i = 0; i < PROCS; i++) {
			unsigned like = asked[i < LEADERS ? 0 : LEADERS];

			if (asked[i] < LOOKS / 8 / FOLLOWERS || asked[i] < like / 2 ||
			    asked[i] > like * 2)
				fail_msg("stride %u: process %zu was asked %u times, another %u",
					 stride, i, asked[i], like);
		}
		vec_done(&j.procs);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_young_child_is_left_alone),
		cmocka_unit_test(an_old_child_is_looked_at_once),
		cmocka_unit_test(who_is_gone_is_not_looked_into),
		cmocka_unit_test(finding_has_a_budget),
		cmocka_unit_test(memory_is_read_by_who_is_left),
		cmocka_unit_test(a_wait_has_all_its_callers),
		cmocka_unit_test(who_waits_for_its_children_hands_over),
		cmocka_unit_test(many_children_take_turns),
		cmocka_unit_test(everybody_has_a_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
