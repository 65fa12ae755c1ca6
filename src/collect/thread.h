/* SPDX-License-Identifier: MIT
 *
 * Threads of one process of the job. The first in proc.threads is the process's own (tid == pid):
 * it lasts as long as the process, and its state and name come with the process's stat.
 */
#ifndef SPOTTER_COLLECT_THREAD_H
#define SPOTTER_COLLECT_THREAD_H

#include "collect/jobtree.h"

/* At the end of the list, not announced; NULL without memory. */
struct thread *thread_new(struct collect *c, struct proc *p, pid_t tid);
void thread_announce(struct frame *f, const struct proc *p, const struct thread *t,
		     enum life_change change);
/* Tells the frame and closes; the caller takes it off the list. */
void thread_end(struct jobtree *j, struct frame *f, struct proc *p, struct thread *t);

/* The first thread's times, to be read before the process's state. 0 or -errno. */
int thread_read_first(struct jobtree *j, struct proc *p, struct schedstat *ret);
/* Puts what changed; false when nothing did: it has not run. */
bool thread_put(struct jobtree *j, struct frame *f, struct proc *p, struct thread *t,
		const struct schedstat *times);
void thread_put_state(struct jobtree *j, struct frame *f, struct proc *p, struct thread *t,
		      const struct stat_head *head);
/* All but the first, given how many the kernel counts. proc.own_ns must be of this tick. */
void thread_read_others(struct jobtree *j, struct collect *c, struct frame *f, struct proc *p,
			int64_t count);

#endif
