/* SPDX-License-Identifier: MIT
 *
 * What the files of this folder share about an attached process. Addresses are the target's.
 */
#ifndef SPOTTER_STACK_PY_PROCESS_H
#define SPOTTER_STACK_PY_PROCESS_H

#include "base/map.h"
#include "base/vec.h"
#include "stack/mem.h"
#include "stack/py/locate.h"
#include "stack/py/py.h"

#define PY_DEPTH_MAX   4096       /* frames of a stack, loops included */
#define PY_THREADS_MAX 4096       /* of an interpreter */
#define PY_INTERPS_MAX 64         /* of a process */
#define PY_CHUNKS_MAX  64         /* of a stack */
#define PY_WINDOW_MAX  (1u << 20) /* bytes of chunks read a thread; 10,000 frames */
#define PY_SPOTS_MAX   2048       /* frames outside chunks, a thread */
#define PY_CODES_MAX   (1u << 14) /* functions seen on stacks, a process; some 1,000 */
#define PY_TEXTS_MAX   (8u << 20) /* bytes of their names, files and line tables */
#define PY_LINES_MAX   (1u << 20) /* bytes of one line table */
#define PY_RECENT      128        /* a power of two */
#define PY_CHECKS      4          /* cached functions looked at again in a sample */

/* Memory that a thread's sample is expected to need. `offset`: where it stands in a copy. */
struct py_window {
	uint64_t at;
	uint32_t n, offset;
};

struct py_spot {
	uint64_t at;
	uint32_t n, offset;
	uint32_t piece; /* within the copy: neighbours share one */
	uint32_t used;  /* tick of its last use */
};

struct py_tstate {
	uint64_t at;
	uint64_t pthread, native; /* identity: another thread may get the same address */
	uint32_t interp;
	pid_t tid;
	uint64_t base; /* where the first frame of its stack must be; 0: no chunk yet */
	VEC(struct py_window) windows; /* chunks, the newest first */
	VEC(struct py_spot) spots;     /* by address */
	uint32_t copy[3];              /* where the copies begin in the arena */
	uint32_t piece[3];
	bool generators; /* on its stack of late: the next batch has a third copy */
	bool third;      /* this batch has it: of the single frames at least */
	bool thrice;     /* and of all else, with the thread's own structure before it: */
	uint32_t last, last_piece;
	uint32_t before,
	    before_piece; /* the same before the first of them, where frames are objects */
	uint32_t tstate, tstate_piece; /* the thread's own structure, read between the two */
	uint32_t tid_piece; /* to 3.10: where its id was read, behind the second copy; 0: not */
	bool read;          /* the copies are of this attempt */
	uint32_t learned;   /* the sample in which it was met first */
	bool seen;          /* in the list of threads just walked */
	bool done;
	struct py_thread result;
};

struct py_interp {
	uint64_t at, gil;
	uint32_t span_piece, gil_piece; /* in the batch */
	uint32_t span, gil_copy;        /* in the arena */
	uint64_t holder;
};

#define PY_OWNER_THREAD    0
#define PY_OWNER_GENERATOR 1
/* To 3.10, in place of an owner: the frame is being entered or left. Only the innermost one may be. */
#define PY_NOT_RUNNING 254

/* One frame as found. */
struct py_link {
	uint64_t at, code, instr, previous;
	uint8_t owner;
	bool calling;  /* has put its stack by for a frame called without C code; or unknown */
	bool from_c;   /* 3.11: called by C code; later ones have a shim there */
	uint32_t slot; /* of its code + 1, if that has not changed since; 0: not looked for */
};

enum py_end {
	PY_END_FIRST,   /* came to a frame without a caller */
	PY_END_MISSING, /* an address that was not read */
	PY_END_BROKEN,  /* cannot be */
};

struct py_chain {
	VEC(struct py_link) links; /* innermost first, shims included */
	enum py_end end;
};

/* What is known about the code object at an address, and how to notice that it is another one. */
struct py_slot {
	uint64_t at;
	/* Needed for each frame of each sample, and cold then: next to each other. */
	uint32_t bytes;     /* of bytecode */
	uint32_t traceable; /* bytes before which the frame has not begun */
	uint32_t id;
	uint32_t seen;    /* tick */
	uint32_t counted; /* tick of the last sighting that was counted */
	uint32_t sightings;
	uint32_t interval, due; /* looked at again after so many sightings */
	bool hidden;            /* the interpreter's own, not a function */
	bool restless;          /* at this address code has come and gone before */

	uint32_t born;        /* batch after which it was read */
	uint32_t frame_words; /* 0: not known */
	int32_t first_line;
	uint64_t filename, name, lines, type;
};

struct py_text {
	uint32_t id;       /* never given to another one */
	char *name, *file; /* one allocation, owned by name */
	uint8_t *lines;    /* NULL: not kept, the table is too long */
	uint32_t lines_n;
	int32_t first_line;
	uint32_t
	    left; /* tick when code of it was found to be gone; a frame may have been given before */
	uint64_t hash;
};

struct py_codes {
	VEC(struct py_slot) slots;
	struct map by_address;      /* -> slot */
	uint32_t recent[PY_RECENT]; /* slots found last, by a hash of the address; or outdated */
	struct map restless;        /* addresses found reused */
	VEC(struct py_text) texts;  /* by id */
	struct map by_content;      /* hash -> index in texts */
	size_t bytes;               /* of all texts */
	uint32_t next_id;
	uint32_t cleared; /* tick of the last time that old ones made room; 0: never */
	uint32_t checks[PY_CHECKS];
	unsigned checks_n;
	uint64_t reused;
};

struct py_process {
	struct mem own, *mem;
	struct py_place place;
	struct py_codes codes;
	VEC(struct py_interp) interps;
	VEC(struct py_tstate) threads;
	uint32_t
	    pthread_tid; /* where struct pthread holds the thread id, to 3.10; PY_ABSENT: unknown */
	bool nested;     /* it lives in a pid namespace of its own */
	uint32_t tick, batch; /* samples begun, batches read */
	uint32_t moving;      /* samples in a row whose list of threads could not be read */
	size_t find_hint;     /* threads mostly come in the order in which they were found last */
	/* The batch: pieces of this attempt and the bytes they are read into. */
	VEC(struct mem_piece) pieces;
	VEC(uint8_t) arena;
	VEC(uint8_t) scratch;
	VEC(struct mem_piece) verify;
	VEC(uint32_t) verified; /* slots of those pieces */
	uint32_t runtime_copy, checks_copy, checks_piece;
	/* What a piece or page takes at least, of late, ns: [1] in the first batch of a sample, when
	 * caches are cold, [0] in later ones. */
	uint64_t pace[2];
	bool late; /* the batch took much longer: we were interrupted; two copies prove nothing */
	uint32_t wary; /* the next so many samples have three copies of all */
	struct py_chain chain[2];
	struct py_counts counts;
};

/* code.c */
/* The slot of a code object, -1 when it is not in the cache. */
int64_t py_slot_find(struct py_codes *c, uint64_t at);
/* Reads a code object and its texts: 0; -EBADMSG: this is none; or -errno. */
int py_slot_learn(struct py_process *p, uint64_t at);
/* Is the slot still about the same object? `head` is what the address holds now. */
bool py_slot_same(const struct py_process *p, const struct py_slot *slot, const uint8_t *head);
/* It is not: another one may be learned for that address. */
void py_slot_reused(struct py_process *p, uint32_t slot);
void py_codes_done(struct py_codes *c);

/* thread.c: lists and predictions */
int py_interps_list(struct py_process *p);
/* After a batch: follows the list of threads, learning new ones and dropping those that ended. */
int py_threads_list(struct py_process *p);
/* After a list that made no sense: back to the threads that were known before it. */
void py_threads_drop_new(struct py_process *p);
/* The list of interpreters is the same as when it was learned. */
bool py_interps_unchanged(const struct py_process *p);
struct py_tstate *py_thread_find(struct py_process *p, uint64_t at);
/* What the next batch must read for this thread, from its copies and, where they fall short, from
 * reads of its own. */
int py_thread_predict(struct py_process *p, struct py_tstate *t);
void py_thread_forget_old(struct py_process *p, struct py_tstate *t);
void py_thread_done(struct py_tstate *t);
/* tid.c */
pid_t py_tid_outside(struct py_process *p, uint64_t native);
void py_tid_infer(struct py_process *p);
int py_tid_read(struct py_process *p, struct py_tstate *t);

/* batch.c */
int py_batch_read(struct py_process *p, bool first);
const uint8_t *py_copy_tstate(const struct py_process *p, const struct py_tstate *t);
/* As it was before the first copy of the frames, where that was read; else the same. */
const uint8_t *py_copy_before(const struct py_process *p, const struct py_tstate *t);
/* As it was between the second and the third copy; NULL: that was not read. */
const uint8_t *py_copy_last(const struct py_process *p, const struct py_tstate *t);
/* NULL: none; *ret_place, if wanted: where it is or would have to stand. */
struct py_spot *py_spot_find(const struct py_tstate *t, uint64_t at, size_t *ret_place);
/* Are both copies of a thread the same, byte for byte? Then one of them tells all. */
bool py_copies_equal(const struct py_process *p, const struct py_tstate *t);
/* The same of the second and the third. */
bool py_copies_equal_still(const struct py_process *p, const struct py_tstate *t);
/* n bytes at an address from one of the thread's copies; NULL: not there. */
const uint8_t *py_copy_at(struct py_process *p, struct py_tstate *t, unsigned which, uint64_t at,
			  uint32_t n);

/* walk.c */
void py_link_parse(const struct py_layout *l, const uint8_t *bytes, uint64_t at,
		   struct py_link *ret);
/* The first frame's address from a copy: 0: none. False: not in the copy. */
bool py_walk_first(struct py_process *p, struct py_tstate *t, unsigned which, uint64_t *ret);
void py_walk(struct py_process *p, struct py_tstate *t, unsigned which, struct py_chain *chain);
/* Is each link such as a running thread has them, and is the last one the thread's first frame? */
bool py_chain_whole(const struct py_process *p, const struct py_tstate *t,
		    const struct py_chain *c);
/* Is each frame that was called without C code between called by one that says that it calls? */
bool py_chain_linked(const struct py_process *p, const struct py_chain *c);
/* Do both chains tell the same story, but for where the innermost frame is? */
bool py_chain_same(const struct py_chain *a, const struct py_chain *b);
/* Looks at the frames of generators once more: they are single objects that Python uses again and again, so
 * that two stacks mixed in the same way twice are less unlikely than elsewhere. How many of the innermost
 * links are not proven: up to the outermost generator that is another now. */
size_t py_chain_restless(struct py_process *p, struct py_tstate *t, const struct py_chain *c);
/* Puts the common outer part of chain[0] and [1] into chain[1], or what can be followed upwards from
 * the first frame; false: nothing. The innermost frame's instruction is then unknown. */
bool py_chain_salvage(struct py_process *p, struct py_tstate *t);

static inline uint64_t py_u64(const uint8_t *p, uint32_t offset)
{
	uint64_t v;

	memcpy(&v, p + offset, sizeof(v));
	return v;
}

static inline int32_t py_i32(const uint8_t *p, uint32_t offset)
{
	int32_t v;

	memcpy(&v, p + offset, sizeof(v));
	return v;
}

#endif
