/* SPDX-License-Identifier: MIT
 *
 * The parts of reading stacks (activity.h), for activity_*.c only.
 */
#ifndef SPOTTER_EXPLAIN_ACTIVITY_PART_H
#define SPOTTER_EXPLAIN_ACTIVITY_PART_H

#include "explain/activity.h"
#include "explain/does/does.h"
#include "explain/ledger/phases.h"

struct entity;

/* What the frames of a stack say, whatever its thread was doing. */
struct node_facts {
	bool needed;        /* a row is in it, or in one inside of it */
	bool python;        /* has a Python frame */
	bool spawned;       /* of a process that multiprocessing started */
	bool sure;          /* a frame that only a training's loading has */
	bool pooled;        /* the work of a pool that serves anybody */
	bool importing;     /* a module is being imported */
	bool trains;        /* a function of the program's own that is called as trainings are */
	bool teaches;       /* of these: by its text arrays go down a gradient in it */
	bool learns;        /* a line of the program's own that learns, or calls what does */
	bool by_line;       /* leaf_phase is from the text of a line: weaker than a frame */
	uint8_t phase;      /* if there may be more frames inside of it */
	uint8_t leaf_phase; /* if it is the innermost */
	int16_t role;       /* row of the role table, -1: none */
	uint32_t place, leaf, native;
	uint32_t root; /* outermost place of the program's own: its script, or what a thread runs */
	bool module;   /* it was started as `python -m`: that is inside of a package */
	/* TOPIC_BIT()s; leaf_topics: if it is the innermost Python frame, its line counts as well */
	uint32_t topics, leaf_topics;
	uint32_t text_topics; /* of topics: by what is written around lines of the program's own */
	uint32_t
	    written; /* of these: of its innermost own frame alone, and by no name: logs, checkpoints */
	uint32_t
	    own_topics; /* by the text of the program's own innermost line, whatever it calls */
};

/* What lines of the program are for, by their text. */
struct text_range {
	const char *file; /* of the book */
	struct does does;
	bool learns; /* the model was seen to learn inside of it: it is something else */
};

struct text_sense {
	VEC(struct text_range) ranges;
	bool *learners; /* by place: it learns, or what it calls does */
};

/* False: out of memory; done() is due in any case. Nodes that are needed are known by then. */
bool text_sense_open(struct text_sense *t, const struct stack_book *book,
		     const struct node_facts *nodes, size_t n);
void text_sense_done(struct text_sense *t);
/* TOPIC_BIT()s of a place. */
uint32_t text_topics(const struct text_sense *t, const struct place *p, uint32_t id);
/* Is the line in a loop that trains with arrays alone? */
bool text_trains(const struct text_sense *t, const struct place *p);

/* Each node and each place is held against the tables once. */
struct node_reader {
	const struct stack_book *book;
	bool devices;             /* there is a GPU: lines may mean it */
	struct node_facts *nodes; /* by id, 0 is the empty stack */
	struct text_sense text;
	size_t n;
};

int nodes_open(struct node_reader *r, const struct stack_book *book, bool devices,
	       const struct act_row *rows, size_t n_rows);
void nodes_done(struct node_reader *r);
const struct node_facts *node_of(const struct node_reader *r, uint32_t node);

/* Fills state, on_cpu, unknown, matched and the places of a row. Roles are known by then. */
void row_classify(const struct scene *s, const struct node_reader *r, const struct act_thread *t,
		  struct act_row *row);
/* Where a thread trains. By hand: it has no framework, and functions of its own learn with arrays alone. */
struct learnt {
	uint64_t function; /* place_code() */
	const char *name;  /* what it changes, in the text of the line */
	size_t n;
};

struct loop_sense {
	bool by_hand;
	bool surely; /* a line that learns takes a rate times a gradient away, by its names */
	VEC(struct learnt) learnt;
	struct map places; /* lines of the program that learn */
	struct map asked;  /* lines that were asked whether they do */
};

/* Behind row_classify(). False: out of memory; done() is due in any case. */
bool loop_sense_open(const struct activity *a, const struct act_thread *t, struct loop_sense *ret);
void loop_sense_done(struct loop_sense *s);
/* Rows of a training thread that load and write, by the text of the program. */
void rows_of_text(struct activity *a, const struct act_thread *t);
/* Rows of a training thread that make its batches, by the loop they are called from. */
void rows_of_loop(struct activity *a, const struct act_thread *t, const struct loop_sense *sense);
/* The same by what its lines hand to the framework. Behind rows_of_loop(). */
void rows_that_feed(struct activity *a, const struct act_thread *t, const struct loop_sense *sense);

/* Rows of a training thread that wait for helpers which compute, and that prepare calls of the driver. */
void rows_of_pool(struct activity *a, const struct act_thread *t);
void rows_of_driver(struct activity *a, const struct act_thread *t);
/* Rows of a training thread with a device at lines that hand out work to it. Behind those by the text of the program. */
void rows_of_orders(struct activity *a, const struct act_thread *t);
/* Rows of a rank that wait for the others without a library for it. */
void rows_of_ranks(struct activity *a, const struct act_thread *t);
/* Rows whose innermost frames are not known, by what was seen below the same call. Behind all of the above. */
void rows_of_calls(struct activity *a, const struct act_thread *t);

/* For both: is it the program's own code, is it the head of a `for` loop, which function is it of? */
bool loop_place_is_own(const struct place *p);
bool loop_place_is_head(const struct place *p);
/* Is it about the framework, or about what stands for one? Has it nothing else to be called: Python on a CPU, or a file that is
 * read or mapped? */
bool row_is_framework(const struct activity *a, const struct loop_sense *sense,
		      const struct act_row *r);
bool row_is_nameless(const struct act_row *r);
/* Does it wait for the end or the news of a process it started? Then the training is elsewhere. */
bool row_waits_for_child(const struct node_reader *r, const struct act_row *row);

/* Roles of all threads but for what depends on the critical one. */
void roles_give(struct scene *s, const struct node_reader *r);
/* Fills activity.critical. */
void critical_find(struct scene *s, const struct node_reader *r);
/* The critical thread, and its likes in other ranks, are main. */
void roles_main(struct scene *s, const struct node_reader *r);

/* Fills state, unaccounted, gil_wait and gil_held of a thread from its rows. */
void thread_weigh(struct act_thread *t, struct act_row *rows);

/* Called by the census for each thread of the job that lived in the window. */
int activity_thread(struct activity *a, const struct entity *e, bool first, double alive,
		    double run, double queue);

#endif
