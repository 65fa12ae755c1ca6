/* SPDX-License-Identifier: MIT
 *
 * Runs and ranks over time, with real records: counters never fall whoever records and however often, and two users' runs are
 * two even where they have one id.
 */
#include "../unit.h"

#include "agent/jobs.h"
#include "base/clock.h"
#include "base/err.h"
#include "model/frame.h"
#include "small_record.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A machine of a few processes, made up. */
struct machine_of {
	struct notes notes;
	struct world world;
	struct frame frame;
	struct records *records;
	struct jobs *jobs;
	struct agent_view view;
	struct map no_gpus;
	int64_t now_ns;
};

static void machine_open(struct machine_of *m)
{
	struct err e = { 0 };

	*m = (struct machine_of){ .now_ns = START };
	m->jobs = calloc(1, sizeof(*m->jobs));
	assert_non_null(m->jobs);
	assert_int_equal(records_open(&(struct records_options){ .look_ns = 1 }, &m->records, &e),
			 0);
}

static void machine_close(struct machine_of *m)
{
	records_close(m->records);
	jobs_done(m->jobs);
	free(m->jobs);
	notes_done(&m->notes);
	world_done(&m->world);
	frame_done(&m->frame);
	agent_view_done(&m->view);
	map_done(&m->no_gpus);
}

static void index_notes(struct notes *n)
{
	map_clear(&n->by_id);
	map_clear(&n->by_pid);
	for (size_t i = 0; i < n->v.n; i++) {
		assert_true(map_put(&n->by_id, n->v.v[i].id, (uint32_t)i));
		assert_true(map_put(&n->by_pid, (uint64_t)n->v.v[i].pid, (uint32_t)i));
	}
}

/* A process of this user, by its environment this rank of this run; rank -1, id "": it says nothing. */
static struct note *born(struct machine_of *m, int64_t pid, uint32_t parent, uid_t uid,
			 const char *id, int32_t rank)
{
	struct note *x = vec_push(&m->notes.v);
	uint32_t entity = (uint32_t)(pid % 1000 + 10);

	assert_non_null(x);
	*x = (struct note){ .id = entity,
			    .pid = pid,
			    .uid = uid,
			    .identity = (uint64_t)pid,
			    .asked = true,
			    .rank_hint = -1 };
	job_env_none(&x->env);
	x->env.rank = rank;
	x->env.world = rank >= 0 ? 8 : -1;
	x->env.source = id[0] ? SOURCE_TORCHELASTIC : SOURCE_NONE;
	snprintf(x->env.run_id, sizeof(x->env.run_id), "%s", id);
	frame_begin(&m->frame, m->now_ns, m->now_ns);
	frame_life(&m->frame,
		   &(struct life){ .change = LIFE_BORN,
				   .id = entity,
				   .parent = parent,
				   .kind = ENTITY_PROC,
				   .key = pid,
				   .start_ns = m->now_ns },
		   "python3", "train.py");
	assert_int_equal(world_frame(&m->world, &m->frame), 0);
	index_notes(&m->notes);
	return note_of_pid(&m->notes, pid);
}

static void died(struct machine_of *m, int64_t pid)
{
	struct note *x = note_of_pid(&m->notes, pid);

	assert_non_null(x);
	*x = m->notes.v.v[--m->notes.v.n];
	index_notes(&m->notes);
}

/* Some seconds later. */
static void tick(struct machine_of *m, int64_t seconds)
{
	m->now_ns += seconds * NS_PER_S;
	frame_begin(&m->frame, m->now_ns, m->now_ns);
	assert_int_equal(world_frame(&m->world, &m->frame), 0);
	assert_int_equal(jobs_tick(m->jobs, &m->notes, &m->world, &m->frame, m->now_ns, m->records),
			 0);
	agent_view_reset(&m->view);
	assert_int_equal(
	    jobs_view(m->jobs, &m->notes, &m->world, m->records, &m->no_gpus, &m->view), 0);
}

/* Whatever was written is read; twice, as what a record says of processes is known one tick later. */
static void look(struct machine_of *m)
{
	records_look(m->records);
	tick(m, 1);
	tick(m, 1);
}

static const struct view_rank *rank_row(const struct machine_of *m, const char *id, int32_t rank)
{
	for (size_t i = 0; i < m->view.ranks.n; i++)
		if (m->view.ranks.v[i].rank == rank &&
		    strcmp(m->view.runs.v[m->view.ranks.v[i].run].id, id) == 0)
			return &m->view.ranks.v[i];
	fail_msg("there is no rank %d of '%s'", rank, id);
	return NULL;
}

/* Every way to count them. */
static void assert_steps(const struct machine_of *m, const char *id, int32_t rank, unsigned n)
{
	const struct view_rank *r = rank_row(m, id, rank);
	uint64_t timed = 0;

	assert_true(r->has_steps);
	assert_int_equal(r->steps.count, n);
	for (size_t i = 0; i <= STEP_BOUNDS; i++)
		timed += r->steps.bucket[i];
	assert_int_equal(timed, r->steps.timed);
	assert_true(near(r->steps.data_wait, 0.002 * n, 1e-6));
}

static void offer(struct machine_of *m, const struct set_up *s)
{
	assert_true(records_offer(m->records, getpid(), geteuid(), s->path, true));
}

/* One recorder from the beginning, and another one attached for a while: each has all steps of its time, and each step is
 * counted once, also when the second has gone and is forgotten. */
static void a_second_recorder(void **state)
{
	struct machine_of m;
	struct set_up a, b;

	(void)state;
	machine_open(&m);
	set_up_as(&a, "a", 4000);
	born(&m, 4000, 0, geteuid(), "exp", 0);
	born(&m, 4001, 0, geteuid(), "exp", 1);
	steps(&a, 3);
	offer(&m, &a);
	look(&m);
	assert_steps(&m, "exp", 0, 3);
	assert_steps(&m, "exp", 1, 3);
	set_up_as(&b, "b", 4000);
	offer(&m, &b);
	steps(&a, 2);
	steps(&b, 2);
	look(&m);
	assert_steps(&m, "exp", 0, 5);
	assert_steps(&m, "exp", 1, 5);
	assert_int_equal(m.view.runs.n, 1);
	finish(&b);
	steps(&a, 1);
	look(&m);
	assert_steps(&m, "exp", 0, 6);
	records_forget(m.records, 2);
	look(&m);
	assert_steps(&m, "exp", 0, 6);
	assert_steps(&m, "exp", 1, 6);
	tear_down(&b);
	/* the other way round: the first ends, the second goes on */
	set_up_as(&b, "c", 4000);
	offer(&m, &b);
	steps(&b, 4);
	steps(&a, 4);
	look(&m);
	assert_steps(&m, "exp", 0, 10);
	finish(&a);
	look(&m);
	assert_steps(&m, "exp", 0, 10);
	records_forget(m.records, 1);
	steps(&b, 7);
	look(&m);
	assert_steps(&m, "exp", 0, 17);
	assert_steps(&m, "exp", 1, 17);
	finish(&b);
	look(&m);
	records_forget(m.records, 3);
	tick(&m, 1);
	assert_steps(&m, "exp", 1, 17);
	tear_down(&a);
	tear_down(&b);
	machine_close(&m);
}

/* A run that has its id from its record keeps it when another one is written, too. */
static void attached_to(void **state)
{
	struct machine_of m;
	struct set_up a, b;

	(void)state;
	machine_open(&m);
	set_up_as(&a, "20261115-211209-4f3a", 4000);
	set_up_as(&b, "20261115-221209-aaaa", 4000);
	born(&m, 4000, 0, geteuid(), "", -1);
	steps(&a, 1);
	offer(&m, &a);
	look(&m);
	assert_int_equal(m.view.runs.n, 1);
	assert_string_equal(m.view.runs.v[0].id, a.run.id);
	assert_true(m.view.runs.v[0].up);
	offer(&m, &b);
	look(&m);
	assert_int_equal(m.view.runs.n, 1);
	assert_string_equal(m.view.runs.v[0].id, a.run.id);
	records_forget(m.records, 1);
	look(&m);
	assert_int_equal(m.view.runs.n, 1);
	assert_string_equal(m.view.runs.v[0].id, a.run.id);
	assert_true(m.view.runs.v[0].up);
	tear_down(&a);
	tear_down(&b);
	machine_close(&m);
}

static double ledger(const struct machine_of *m, const char *state)
{
	double sum = NAN;

	for (size_t i = 0; i < m->jobs->ledger.n; i++)
		if (strcmp(m->jobs->ledger.v[i].state, state) == 0)
			view_add_known(&sum, m->jobs->ledger.v[i].seconds);
	return sum;
}

/* Lines of two records of one program: the older tells, the other only what is its own. */
static void ledgers(void **state)
{
	static struct record_news a = { .serial = 1, .pid = 4000, .here = true, .since_ms = 5 };
	static struct record_news b = { .serial = 2, .pid = 4001, .here = true, .since_ms = 9 };
	struct set_up first, second;
	struct machine_of m;

	(void)state;
	machine_open(&m);
	set_up_as(&first, "a", 4000);
	set_up_as(&second, "b", 4001);
	born(&m, 4000, 0, geteuid(), "exp", 0);
	born(&m, 4001, 10, geteuid(), "", -1); /* below the other */
	offer(&m, &first);
	look(&m);
	a.uid = b.uid = geteuid();
	a.n_ledger = b.n_ledger = 2;
	a.ledger[0] = b.ledger[0] = (struct record_line){ .ledger = "cpu", .state = "python" };
	a.ledger[1] = b.ledger[1] =
	    (struct record_line){ .ledger = "time", .state = "compute", .pid = 4000 };
	a.ledger[0].seconds = 10;
	a.ledger[1].seconds = 3;
	b.ledger[0].seconds = b.ledger[1].seconds = 100;
	told_begin(m.jobs, &m.notes, m.records);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(told_line(m.jobs, &m.notes, &a, i, 0, -1), 0);
	assert_true(near(ledger(&m, "python"), 10, 1e-9));
	offer(&m, &second);
	look(&m);
	told_begin(m.jobs, &m.notes, m.records);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(told_line(m.jobs, &m.notes, &b, i, 0, -1), 0);
	assert_true(near(ledger(&m, "python"), 10, 1e-9));
	assert_true(near(ledger(&m, "compute"), 3, 1e-9));
	/* once the first is over, what the other one says from then on counts */
	records_forget(m.records, 1);
	told_begin(m.jobs, &m.notes, m.records);
	b.ledger[0].seconds = 101;
	assert_int_equal(told_line(m.jobs, &m.notes, &b, 0, 0, -1), 0);
	assert_true(near(ledger(&m, "python"), 11, 1e-9));
	told_end(m.jobs);
	assert_true(near(ledger(&m, "python"), 11, 1e-9));
	assert_int_equal(m.jobs->told.n, 1);
	tear_down(&first);
	tear_down(&second);
	machine_close(&m);
}

static bool has_run(const struct machine_of *m, const char *id)
{
	for (size_t i = 0; i < m->view.runs.n; i++)
		if (strcmp(m->view.runs.v[i].id, id) == 0)
			return true;
	return false;
}

static void two_users(void **state)
{
	struct machine_of m;

	(void)state;
	machine_open(&m);
	born(&m, 4000, 0, 1000, "exp1", 0);
	born(&m, 4001, 0, 1000, "exp1", 1);
	tick(&m, 1);
	assert_int_equal(m.view.runs.n, 1);
	assert_true(has_run(&m, "exp1"));
	born(&m, 4002, 0, 1001, "exp1", 0);
	born(&m, 4003, 0, 1001, "exp1", 1);
	tick(&m, 1);
	assert_int_equal(m.view.runs.n, 2);
	assert_true(has_run(&m, "exp1") && has_run(&m, "exp1~1001"));
	assert_int_equal(m.view.ranks.n, 4);
	assert_int_equal(rank_row(&m, "exp1", 1)->use[VIEW_TRAINER].processes, 1);
	assert_int_equal(rank_row(&m, "exp1~1001", 1)->use[VIEW_TRAINER].processes, 1);
	/* nobody gets into it by calling a run like that */
	born(&m, 4004, 0, 1002, "exp1~1001", 0);
	tick(&m, 1);
	assert_int_equal(m.view.runs.n, 3);
	assert_true(has_run(&m, "exp1~1001~1002"));
	/* the first has ended: the others stay what they are */
	died(&m, 4000);
	died(&m, 4001);
	tick(&m, 1);
	tick(&m, RUN_LINGER_S + 1);
	tick(&m, 1);
	assert_int_equal(m.view.runs.n, 2);
	assert_true(has_run(&m, "exp1~1001") && has_run(&m, "exp1~1001~1002"));
	/* and its id is free */
	born(&m, 4005, 0, 1003, "exp1", 0);
	tick(&m, 1);
	assert_true(has_run(&m, "exp1"));
	machine_close(&m);
}

/* A container's first process begins as root and goes on as a user: it is the same run, and the same rank. */
static void becomes_a_user(void **state)
{
	struct machine_of m;

	(void)state;
	machine_open(&m);
	born(&m, 4000, 0, 0, "exp1", 0);
	born(&m, 4001, 0, 0, "exp1", 1);
	tick(&m, 1);
	note_of_pid(&m.notes, 4000)->uid = 1000;
	tick(&m, 1);
	assert_int_equal(m.view.runs.n, 1);
	assert_int_equal(m.view.ranks.n, 2);
	note_of_pid(&m.notes, 4001)->uid = 1000;
	tick(&m, 1);
	/* by now all of it is the user's, and so is what is started */
	born(&m, 4002, 0, 1000, "exp1", 2);
	tick(&m, 1);
	assert_int_equal(m.view.runs.n, 1);
	assert_int_equal(m.view.ranks.n, 3);
	/* and one whose user cannot be told any more */
	note_of_pid(&m.notes, 4001)->uid = NO_UID;
	tick(&m, 1);
	assert_int_equal(m.view.runs.n, 1);
	assert_int_equal(m.view.ranks.n, 3);
	assert_true(has_run(&m, "exp1"));
	machine_close(&m);
}

/* One process of a run becomes another user: the run stays whose it was, and that user's others stay outside. */
static void takes_no_run_over(void **state)
{
	struct machine_of m;

	(void)state;
	machine_open(&m);
	born(&m, 4000, 0, 0, "exp7", 0);
	born(&m, 4001, 0, 0, "exp7", 1);
	tick(&m, 1);
	note_of_pid(&m.notes, 4001)->uid = 1000;
	tick(&m, 1);
	tick(&m, 1);
	born(&m, 4002, 0, 0, "exp7", 2);
	tick(&m, 1);
	assert_int_equal(m.view.runs.n, 1);
	assert_int_equal(m.view.ranks.n, 3);
	born(&m, 4003, 0, 1000, "exp7", 3);
	tick(&m, 1);
	assert_int_equal(m.view.runs.n, 2);
	assert_true(has_run(&m, "exp7") && has_run(&m, "exp7~1000"));
	assert_int_equal(rank_row(&m, "exp7~1000", 3)->use[VIEW_TRAINER].processes, 1);
	machine_close(&m);
}

/* Nobody knows whose it is: it is in no run, neither one that is there nor its own, which others would join. */
static void of_nobody_known(void **state)
{
	struct machine_of m;

	(void)state;
	machine_open(&m);
	born(&m, 4000, 0, 0, "exp1", 0);
	born(&m, 4001, 0, NO_UID, "exp1", 1);
	born(&m, 4002, 0, NO_UID, "exp2", 0);
	tick(&m, 1);
	assert_int_equal(m.view.runs.n, 1);
	assert_int_equal(m.view.ranks.n, 1);
	assert_true(has_run(&m, "exp1"));
	machine_close(&m);
}

static void put_file(int folder, const char *name, const char *text, mode_t mode)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

/* A program that acts for another user is of whoever started it; one whose file has the bit for it may have become that user
 * altogether, and is nobody's. */
static void whose_a_process_is(void **state)
{
	static const struct {
		const char *uids;
		mode_t exe;
		uid_t uid;
	} cases[] = {
		{ "1000\t1000\t1000\t1000", 0755, 1000 },
		{ "1000\t0\t0\t0", 0755, 1000 },
		{ "0\t1000\t1000\t1000", 0755, 0 },
		{ "0\t0\t0\t0", 04755, NO_UID },
		{ "", 0755, NO_UID },
	};
	const char *top = getenv("TMPDIR");
	char folder[200], status[128];
	struct machine_of m;
	struct host host = { .live = true };

	(void)state;
	snprintf(folder, sizeof(folder), "%s/spotter-users.XXXXXX", top ? top : "/tmp");
	assert_non_null(mkdtemp(folder));
	host.root = open(folder, O_RDONLY | O_DIRECTORY);
	assert_true(host.root >= 0);
	assert_int_equal(mkdirat(host.root, "proc", 0700), 0);
	assert_int_equal(mkdirat(host.root, "proc/4000", 0700), 0);
	put_file(host.root, "proc/4000/environ", "", 0600);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(status, sizeof(status), "Name:\tUid:\nUmask:\t0022\nUid:\t%s\nGid:\t1\n",
			 cases[i].uids);
		put_file(host.root, "proc/4000/status", status, 0600);
		put_file(host.root, "proc/4000/exe", "", cases[i].exe);
		machine_open(&m);
		born(&m, 4000, 0, 0, "exp1", 0);
		vec_done(&m.notes.v);
		map_done(&m.notes.by_id);
		map_done(&m.notes.by_pid);
		notes_open(&m.notes, &host);
		assert_int_equal(notes_tick(&m.notes, &m.world, &m.frame, NULL), 0);
		assert_int_equal(note_of_pid(&m.notes, 4000)->uid, cases[i].uid);
		machine_close(&m);
	}
	static const char *const files[] = { "environ", "status", "exe" };
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(status, sizeof(status), "proc/4000/%s", files[i]);
		assert_int_equal(unlinkat(host.root, status, 0), 0);
	}
	assert_int_equal(unlinkat(host.root, "proc/4000", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(host.root, "proc", AT_REMOVEDIR), 0);
	close(host.root);
	assert_int_equal(rmdir(folder), 0);
}

/* An id as long as they get, in letters of several bytes. */
static void long_ids(void **state)
{
	char id[RUN_ID_SIZE] = "";
	struct machine_of m;

	(void)state;
	for (size_t i = 0; i + 2 < sizeof(id); i += 2)
		memcpy(id + i, "\xc3\xa9", 3);
	machine_open(&m);
	born(&m, 4000, 0, 1000, id, 0);
	born(&m, 4001, 0, 1001, id, 0);
	tick(&m, 1);
	assert_int_equal(m.view.runs.n, 2);
	for (size_t i = 0; i < 2; i++) {
		const char *shown = m.view.runs.v[i].id, *tail = strchr(shown, '~');
		size_t letters = tail ? (size_t)(tail - shown) : strlen(shown);

		assert_int_equal(letters % 2, 0);
		assert_int_equal(strncmp(shown, id, letters), 0);
		assert_true(letters > RUN_ID_SIZE - 16);
	}
	machine_close(&m);
}

/* Those there was no place for are in the view, which /metrics shows. */
static void left_out(void **state)
{
	struct machine_of m;
	char path[64];

	(void)state;
	machine_open(&m);
	for (int i = 0; i < RECORDS_MAX + 3; i++) {
		snprintf(path, sizeof(path), "/nowhere/%d.spot", i);
		assert_int_equal(records_offer(m.records, 0x3fffffff - i, geteuid(), path, true),
				 i < RECORDS_MAX);
	}
	tick(&m, 1);
	assert_true(near(m.view.dropped_records, 3, 1e-9));
	machine_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_second_recorder), cmocka_unit_test(attached_to),
		cmocka_unit_test(ledgers),           cmocka_unit_test(two_users),
		cmocka_unit_test(becomes_a_user),    cmocka_unit_test(long_ids),
		cmocka_unit_test(left_out),          cmocka_unit_test(takes_no_run_over),
		cmocka_unit_test(of_nobody_known),   cmocka_unit_test(whose_a_process_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
