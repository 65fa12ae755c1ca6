/* SPDX-License-Identifier: MIT
 *
 * A run from a few lines of text, for tests of facts, rules and renderers:
 *
 *	run 30                          seconds; also: run 30 hz 2 attached stacks 2.5 (a second)
 *	exit 0                          or: signal 9
 *	rusage 58.2                     CPU seconds the kernel charged
 *	machine 16 2                    CPUs, threads per core
 *	process 20 100 python3          entity, pid, name; then: from 3 to 12.5 (seconds it lived), of 20
 *					(the process that started it), command TEXT (its command line)
 *	thread 30 20 100 python3        entity, process, tid, name
 *	pool 20 8 2.5 7.5 900           8 threads of process 20: CPU s, run delay s, slices of each
 *	cgroup 40 docker-4f3a
 *	job.cpu 0 58                    a ramp over the entity's life
 *	cgroup.cpu_quota 2              a constant
 *	proc.rss@20 0:1e9 10:1e9 30:4e9 points in time, linear between them
 *	gap thread.run_delay not_supported
 *	mount 70 /data nfs4 server:/x   entity, where, file system, source
 *	gpu 50 0 H100                   entity, index, name; then: simulated, unified, part 1 of 50,
 *					profile 3g.40gb, vendor amd, to 20
 *	gpuproc 60 50 100 python3       entity, GPU, pid (0: not visible), name; then: from 3 to 12
 *	event oom_kill 20 29.5 text     entity, second, words; also: event xid 50 10 value 79 text
 *	place 1 train.py 48 train_loop  id, file, line, function; then: source for batch in loader:
 *					(a blank in the file is '~')
 *	native 9 libcuda.so.1 cuStreamSynchronize
 *					id, library, symbol (left out: not known)
 *	stack 5 = 1 7 9                 a stack of these places, outermost first
 *	does 30 5 pipe 0.61 peer 21     thread (or several: 31,32), stack (0: none), what it does
 *					(wait_kind_name), share of its time; then: peer PROCESS, on
 *					KIND, gil, gc, partial, unproven, joined, python, from 3 to 12
 *	steps 100 every 0.25 from 2     so many steps of 0.25 s, the first begins at 2; then: of 20
 *					(process), rank 0, loss 2.3 to 0.1, wait 0.01 (seconds for data
 *					in each), source torch, first 1 (its number), but 40 takes 3 (s),
 *					with 2.5 (s of waiting for data in that one)
 *	phase evaluate 10 12            name, seconds; then: of 20
 *	scalar accuracy 10 0.5          name, second, value; then: of 20
 *	setting dataloader.num_workers 1 4
 *					the same of what the program set
 *	expect cpu_quota yes            or no, note, blind
 *	expect limit cpu_bound          or: expect limit -
 *	include calm.inc                lines of a file beside this one
 *	# a comment
 *
 * Stacks are 50 samples a second unless said, a slice a second; time that no `does` tells of has no samples.
 *
 * Without @ID a metric is of the first entity of its kind.
 */
#ifndef SPOTTER_TESTS_SCENARIO_H
#define SPOTTER_TESTS_SCENARIO_H

#include "base/vec.h"
#include "explain/verdict.h"
#include "model/history.h"

enum { SCENARIO_CURVE = 16, SCENARIO_STACK_HZ = 50, SCENARIO_FILES = 400 };

struct scenario_series {
	enum metric_id metric;
	uint32_t entity;
	size_t n;
	struct {
		double t, v;
	} at[SCENARIO_CURVE];
};

struct scenario_entity {
	uint32_t id, parent;
	enum entity_kind kind;
	int64_t key;
	double from, to; /* to < 0: the end */
	char name[64], detail[320];
};

struct scenario_event {
	double t, value;
	enum event_kind kind;
	uint32_t entity;
	char text[120];
};

struct scenario_expect {
	char what[40], answer[16];
};

/* A stack by the number it has in the text. */
struct scenario_stack {
	uint32_t id, node;
};

struct scenario_does {
	struct stack_row row; /* without count and weight */
	double share;
	double from, to; /* to < 0: the end */
};

struct scenario_mark {
	double t;
	size_t order;
	struct frame_mark mark; /* without t_ns */
	char name[64];
};

struct scenario {
	char path[256];
	struct run_info run;
	double seconds;
	VEC(struct scenario_entity) entities;
	VEC(struct scenario_series) series;
	VEC(struct scenario_expect) expects;
	VEC(struct window_gap) gaps;
	VEC(struct scenario_event) events;
	struct stack_book book;
	VEC(struct scenario_stack) stacks;
	VEC(struct scenario_does) does;
	VEC(struct scenario_mark) marks;
	bool no_stacks;  /* plays as if none had been read */
	double stack_hz; /* 0: SCENARIO_STACK_HZ */
};

/* Fails the test with the line's number when it makes no sense. */
void scenario_parse(struct scenario *s, const char *text);
void scenario_load(struct scenario *s, const char *path);
void scenario_done(struct scenario *s);
/* Its frames in order, but without this metric (M_NONE: all) of this entity (0: any). */
void scenario_each(const struct scenario *s, enum metric_id without, uint32_t entity,
		   void (*fn)(const struct frame *f, void *arg), void *arg);
/* One of them, of so many. */
unsigned scenario_ticks(const struct scenario *s);
void scenario_frame(const struct scenario *s, unsigned tick, struct frame *f);
/* All of it but this metric (M_NONE: all) of this entity (0: any). Free with history_free(). */
struct history *scenario_play(const struct scenario *s, enum metric_id without, uint32_t entity);
/* The verdict on a whole one, FOLDER/NAME.scn. verdict_done(v), then scenario_done(s), which it speaks of. */
void scenario_judge(struct scenario *s, const char *folder, const char *name, struct verdict *v);
/* scenario_stacks.c. A line about stacks: false when it is about something else. */
bool scenario_stack_line(struct scenario *s, char *const *words, size_t n);
/* What threads did in [to - 1, to), with the whole book when `to` is 1. */
void scenario_put_stacks(const struct scenario *s, struct frame *f, double to);
/* scenario_steps.c. A line about what the training says: false when it is about something else. */
bool scenario_mark_line(struct scenario *s, char *const *words, size_t n);
/* What was said in (t - step, t]. */
void scenario_put_marks(const struct scenario *s, struct frame *f, double t, double step);
/* Seconds at which an entity came and went; a thread lives with its process. */
void scenario_life(const struct scenario *s, uint32_t id, double *from, double *to);
/* "yes", "note", "blind" or "no" */
const char *scenario_answer(const struct verdict *v, const char *cause);

/* Every *.scn of a folder, in order of name. Returns their number. */
size_t scenario_list(const char *folder, char paths[][256], size_t max);

#endif
