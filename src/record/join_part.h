/* SPDX-License-Identifier: MIT
 *
 * The inside of joining, shared by its files: join.c (who belongs where), join_clock.c (times),
 * join_write.c (frames), join_sum.c (what all machines did together) and join_said.c (stacks, steps).
 */
#ifndef SPOTTER_RECORD_JOIN_PART_H
#define SPOTTER_RECORD_JOIN_PART_H

#include "model/frame.h"
#include "record/join.h"

/* The joined run begins here on its own clock. */
#define JOIN_BEGIN_NS 1000000000ll
/* Nine years: beyond it no monotonic clock is, and sums of a few stay in range. */
#define JOIN_TIME_MOST (INT64_C(1) << 58)

/* Times of a record are foreign: llabs() of the least number there is has no answer. */
static inline bool join_time_sane(int64_t t_ns)
{
	return t_ns < JOIN_TIME_MOST && t_ns > -JOIN_TIME_MOST;
}

void join_note(struct join *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* join_clock.c: clocks of all machines against the first; then where each part lies. */
int join_clocks(struct join *j);
void join_shifts(struct join *j);
static inline int64_t join_time(const struct join_part *p, int64_t t_ns)
{
	return t_ns + p->shift_ns; /* both were checked to be far from the limits */
}

/* Entity of the joined run, 0: it is not in it. */
static inline uint32_t join_id(const struct join_part *p, uint32_t id)
{
	uint32_t is = 0;

	return map_get(&p->ids, id, &is) ? is : 0;
}

/* join_map.c: the first machine that has measured the host of this one, the last so far; itself: none has. */
size_t join_same_host(const struct join *j, size_t machine);
/* Ids for all that is in the joined run. 0 or -ENOMEM. */
int join_give_ids(struct join *j);
/* Of several records of a machine the first tells of the machine itself. */
bool join_is_of_machine(enum entity_kind kind);
bool join_is_kept(const struct join *j, size_t part, const struct entity *e);
int64_t join_key(const struct join *j, size_t part, const struct entity *e);

/* join_sum.c: what ID_HOST, ID_JOB and ID_SELF are in the joined run. */
struct join_value {
	bool has;
	int64_t first, last; /* raw */
};

struct join_sums {
	bool dirty[METRICS];
	int64_t put_ns;
};

/* Takes a value of a part; entity is ID_HOST, ID_JOB or ID_SELF of its record. */
void join_sum_take(struct join *j, struct join_sums *s, size_t part, enum metric_id m, int64_t raw);
/* A part is over: what it had, nobody has any more; what it used stays used. */
void join_sum_end(struct join *j, struct join_sums *s, size_t part);
/* Puts what has changed into a frame; unless now, at most ten times a second. */
void join_sum_put(const struct join *j, struct join_sums *s, struct frame *f, bool now);
/* Metrics of machines that have no sum: pressure, load. */
bool join_has_sum(enum metric_id m);

/* join_said.c: stacks, and what the training said. 0 or -errno. */
int join_stacks(struct join *j, struct record_writer *w, void (*tell)(void *arg, double share),
		void *arg);
int join_said(struct join *j, struct record_writer *w);
/* Table node: who the machines are, and their clocks. */
int join_nodes(const struct join *j, struct record_writer *w);

#endif
