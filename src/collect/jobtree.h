/* SPDX-License-Identifier: MIT
 *
 * The processes and threads of the job, between ticks: the state of the process collector (proc.c)
 * and what its parts share. Who belongs to the job is found in jobtree.c, what its CPU adds up to
 * in jobtree_cpu.c, one process is read in proc_read.c, its threads in thread.c, rare and dear
 * readings in proc_slow.c.
 *
 * Everything lies in arrays that grow and are then reused, so a tick does not allocate once warm:
 * a process that ended leaves its slot, with the memory of its thread list, to the next one. A
 * slot is an index, as pointers move when the array grows.
 */
#ifndef SPOTTER_COLLECT_JOBTREE_H
#define SPOTTER_COLLECT_JOBTREE_H

#include "base/io.h"
#include "base/map.h"
#include "base/vec.h"
#include "collect/collector.h"
#include "collect/proc_file.h"
#include "collect/proc_parse.h"

/* Numbers as they were put last; -1 before the first time. */
struct thread {
	pid_t tid;
	uint32_t id;            /* entity */
	int sched_fd, stat_fd;  /* kept descriptors, or -1 */
	struct schedstat times; /* run_ns, delay_ns, slices */
	int64_t switches, preemptions;
	char state;    /* 0 before the first reading */
	uint8_t still; /* readings in a row in which it had not run; stops at THREAD_COLD */
	bool ran;      /* since its switches were read */
	bool listed;
	char name[32];
};

struct proc_values {
	int64_t cpu, user, kernel, children;
	int64_t rss, shared, virtual, peak, swap, pss, uss;
	int64_t threads, minor_faults, major_faults;
	int64_t read_chars, write_chars, reads, writes, read_bytes, written_bytes;
	int64_t switches, preemptions, state;
};

/* CPU time of the children of one process that ended and were waited for; see jobtree_cpu.c. */
struct account {
	int64_t kids_ns;  /* as the kernel said, and accepted */
	int64_t next_ns;  /* as it says now */
	int64_t owed_ns;  /* seen of children that ended, but not in kids_ns */
	int64_t dead_ns;  /* this tick: seen of children that ended since the last */
	int64_t spare_ns; /* this tick: growth that no known child explains */
	bool mixed;       /* this tick: a child and its parent ended together */
	bool doubted;     /* the last tick's growth was not accepted yet */
};

/* Where a process's own time goes when it has ended. */
enum { PARENT_NONE = -1, PARENT_REAPER = -2 };

/* Whether a file that needs the right to look into a process can be read. */
enum io_access { IO_UNKNOWN, IO_OK, IO_REFUSED, IO_RETRY };

struct proc {
	bool used;
	bool gone;     /* found ended in this tick */
	bool fresh;    /* not read yet */
	bool orphaned; /* its parent ended: look who has it now */
	bool zombie;
	bool ran;     /* since its last slow reading */
	bool ran_pss; /* since its last PSS */
	pid_t pid, ppid;
	int parent; /* slot, or PARENT_* */
	uint32_t id, parent_id;
	uint64_t start; /* ticks */
	uint64_t image;
	int64_t own_ns;    /* CPU time of all its threads, dead ones too */
	int64_t exit_code; /* wait status of a zombie, -1 unknown */
	struct account account;
	int stat_fd, statm_fd, io_fd;
	enum io_access io, smaps;
	struct proc_values last;
	VEC(struct thread) threads; /* the first is the process's own; in the kernel's order */
	int64_t threads_ns;         /* sum of their run_ns */
	int64_t dead_threads_ns;    /* CPU time of its dead threads, at least; see thread.c */
	int64_t ended_switches, ended_preemptions;
	int64_t pss_at_ns, pss_cost_ns,
	    pss_cost_rss; /* last reading: when, its price, and RSS then */
	unsigned pss_round;
	char name[64];
};

struct newcomer {
	pid_t pid, ppid;
	uint64_t start;
	bool taken;
	bool silent; /* its end is told by no signal: a helper of the reaper's own (launch.h) */
	char name[64];
};

/* Looking for new processes. */
struct tree_scan {
	VEC(struct newcomer) found;
	VEC(uint64_t) stale;
	struct map others; /* pid -> round in which it was seen: not of the job */
	uint32_t round;
	int loadavg_fd;
	bool started, root_seen;
	pid_t mark, mark_before; /* last pid of the machine, at the last scan and the one before */
	int64_t seek;            /* listing position of pid 0, or -1: not known */
	int64_t next_ns, next_full_ns;
};

/* Job-wide numbers as they were put last. */
struct job_values {
	int64_t cpu, ended, processes, threads, runnable, rss, pss;
};

struct jobtree {
	struct proc_files files;
	bool gate; /* the kernel tells the CPU clock of another process */
	int64_t ns_per_tick, page_kb;
	uint32_t ticks;
	VEC(struct proc) procs; /* by slot */
	VEC(int) free_slots, dead;
	struct map by_pid; /* pid -> slot */
	struct tree_scan scan;
	struct account reaper;
	int reaper_fd;
	bool reaper_exact;    /* we are it */
	bool orphans;         /* some process is orphaned */
	bool no_io;           /* this kernel counts no IO */
	bool no_smaps;        /* nor has it smaps_rollup */
	bool kids_moved;      /* some account has next_ns != kids_ns */
	int64_t lost_ns;      /* time of members that no account has and none will get */
	int64_t ended_own_ns; /* own time of members that ended, as last seen */
	int64_t base_ns, base_own_ns;
	bool based;
	int runnable;
	bool sched_gap;
	int slow_at;
	unsigned pss_round;
	int64_t pss_credit_ns;
	struct job_values last;
	char text[1024];  /* one stat, statm, io or schedstat */
	char page[16384]; /* one status, cmdline or smaps_rollup */
	struct io_dir dir;
};

/* A fixture may hold any number: sums stop at a large one instead of overflowing. */
static inline int64_t add_up(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX / 2 : sum;
}

/* Clock ticks of the kernel in ns. An absurd number (a fixture's) becomes a large one, no
 * overflow. */
static inline int64_t ticks_ns(const struct jobtree *j, int64_t ticks)
{
	return ticks < INT64_MAX / 16 / j->ns_per_tick ? ticks * j->ns_per_tick : INT64_MAX / 16;
}

/* A counter is put when it grew. One that went back is held: a counter of a living thing only
 * grows, and where the kernel's does not (cancelled writes, scaled times) a held value is the
 * smaller lie. */
static inline void put_counter(struct frame *f, enum metric_id metric, uint32_t id, int64_t *last,
			       int64_t v)
{
	if (v > *last) {
		*last = v;
		frame_put(f, metric, id, v);
	}
}

static inline void put_gauge(struct frame *f, enum metric_id metric, uint32_t id, int64_t *last,
			     int64_t v)
{
	if (v != *last) {
		*last = v;
		frame_put(f, metric, id, v);
	}
}

/* jobtree.c: membership. Adds the processes that became members since the last tick. */
int jobtree_scan(struct jobtree *j, struct collect *c, struct frame *f);
/* Slot of the process with this pid, or who else gets the time of its children (PARENT_*). */
int jobtree_parent(const struct jobtree *j, const struct collect *c, pid_t ppid);
/* After parents have ended: whose child is each orphan now? */
void jobtree_adopt(struct jobtree *j, const struct collect *c);
void jobtree_scan_done(struct tree_scan *s);

/* proc_table.c: slots. */
int proc_born(struct jobtree *j, struct collect *c, struct frame *f, const struct newcomer *n);
/* Notes that it ended; it is buried at the end of the tick. */
void proc_mark_gone(struct jobtree *j, int slot);
/* Ends of those noted, told to the frame. Slots are free afterwards. */
void proc_bury(struct jobtree *j, struct frame *f);
/* Its arguments, NUL shown as blank, in j->page. */
const char *proc_cmdline(struct jobtree *j, pid_t pid);
void proc_announce(struct jobtree *j, struct frame *f, const struct proc *p,
		   enum life_change change, const char *detail);
/* Closes what it keeps; the next reads open again. */
void proc_release(struct jobtree *j, struct proc *p);
void proc_table_done(struct jobtree *j);
/* Names may hold anything; ours are cut to size and never empty. */
void proc_name_copy(char *dst, size_t size, const char *name, size_t n);
bool proc_name_same(const char *ours, size_t size, const char *name, size_t n);

/* proc_read.c: everything of an active process. own_ns: its CPU clock, -1 when there is none (then
 * stat's ticks are taken). 0, or -ESRCH when it has ended. */
int proc_read(struct jobtree *j, struct collect *c, struct frame *f, int slot, int64_t own_ns);
/* stat alone, for the account of its children: 0, or -ESRCH when it has ended. */
int proc_read_kids(struct jobtree *j, struct proc *p);
void proc_put_statm(struct jobtree *j, struct frame *f, struct proc *p);

/* jobtree_cpu.c: squares the accounts with those that ended (j->dead may grow). */
void cpu_settle(struct jobtree *j, const struct collect *c);
/* Puts job.cpu and job.cpu_ended. */
void cpu_put(struct jobtree *j, const struct collect *c, struct frame *f);

/* proc_slow.c: peak memory, swap, switches, PSS; on ticks where c->slow. */
void proc_slow(struct jobtree *j, const struct collect *c, struct frame *f);

#endif
