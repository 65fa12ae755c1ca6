/* SPDX-License-Identifier: MIT
 *
 * Stacks as a run keeps them. A place (function, file, line) is told once and has a number; so has a
 * stack, which is a place and the stack that called it ("node"), so that stacks which share their
 * outer frames share their rows. What threads did is counted a second at a time: which thread, in
 * which stack, running or waiting for what, how often.
 *
 *	main.py:12 <module>  <-  loop.py:40 train  <-  loader.py:7 decode  <-  [libjpeg.so.62] jpeg_read
 *	      node 1                 node 2                 node 3                   node 4
 *
 * Native places come inside of the Python frame that called them: at most as many as were proven.
 */
#ifndef SPOTTER_MODEL_STACKS_H
#define SPOTTER_MODEL_STACKS_H

#include "base/map.h"
#include "base/vec.h"
#include "model/wait_kind.h"

#include <stdbool.h>
#include <stdint.h>

enum place_kind {
	PLACE_PYTHON,
	PLACE_NATIVE, /* function: symbol, or ""; file: path of the library or program; line 0 */
	/* A line that may keep something of every step (explain/keeps/keeps.h): in no stack; source says why. */
	PLACE_KEEPS,
	/* A range of lines that evaluates, saves, logs or loads (explain/does/does.h): in no stack; source says which. */
	PLACE_DOES,
};

/* Most places and nodes of a run. What comes later is counted in the stack it came from. */
enum { STACK_PLACES_MAX = 1 << 18, STACK_NODES_MAX = 1 << 19, STACK_DEPTH_MAX = 256 };

/* Texts are foreign: shown only after they were made safe. */
struct place {
	enum place_kind kind;
	int32_t line; /* 0: not known */
	const char *function, *file;
	const char *source; /* text of the line as it was then, trimmed; "" not known */
};

struct stack_node {
	uint32_t parent; /* 0: outermost */
	uint32_t place;
};

enum stack_flag {
	STACK_PARTIAL = 1,  /* the outer frames only: what they called was not proven */
	STACK_UNPROVEN = 2, /* it has a Python stack, and nothing of it was proven */
	/* Asked for its native leaf between two equal readings of its stack. No native node: it was in the
	 * interpreter itself. */
	STACK_JOINED = 4,
	STACK_GIL = 8,   /* it held the GIL */
	STACK_HELD = 16, /* not read again: it had not run since it was (told by no sampler yet) */
	STACK_GC = 64,   /* it held the GIL while its interpreter collected garbage */
	STACK_PYTHON = 32, /* a thread of an interpreter; without a node it runs no Python code */
};

/* One thread in one stack during one slice. */
struct stack_row {
	uint32_t entity;   /* thread */
	uint32_t node;     /* 0: not known, or none */
	uint32_t peer;     /* process at the other end of the pipe it waits for; 0: not known */
	uint8_t kind, on;  /* enum wait_kind */
	uint8_t flags;     /* enum stack_flag */
	uint32_t count;    /* samples */
	int64_t weight_ns; /* wall time these samples stand for */
};

/* "python", "native", "keeps", "does"; a name that is not known is PLACE_NATIVE. */
const char *place_kind_name(enum place_kind kind);
enum place_kind place_kind_by_name(const char *name);
/* "partial", "gil"... of one bit; NULL for a bit that has no name. By name: the bit, 0 unknown. */
const char *stack_flag_name(unsigned bit);
unsigned stack_flag_by_name(const char *name);

struct stack_slice {
	int64_t from_ns, to_ns;
	const struct stack_row *rows;
	size_t n;
};

/* Puts rows in order (entity, node, kind, on, peer, flags) and adds up those that are alike: how many
 * are left. The order in which every source gives the rows of a slice. */
size_t stack_rows_merge(struct stack_row *rows, size_t n);

/* The numbers of a run, with their meaning. {0} is empty. Ids are dense and begin at 1. */
struct stack_book {
	VEC(struct place) places;     /* id - 1; texts owned by the book */
	VEC(struct stack_node) nodes; /* id - 1 */
	struct map by_node;           /* parent << 32 | place -> id */
	struct map by_place;          /* hash -> first id with it */
	VEC(uint32_t) place_next;     /* further ids of the same hash, 0: none */
	VEC(char *) texts;            /* each once */
	size_t text_bytes;  /* in all of them: bounded, whatever programs call their functions */
	struct map by_text; /* hash -> place in texts */
	VEC(uint32_t) text_next;
};

void stack_book_done(struct stack_book *b);
/* Id of a place, of a node: as it has it, or a new one. 0: the book is full, or no memory. Texts are
 * copied (cut at 255 bytes for a function, 1023 for a file). */
uint32_t stack_book_place(struct stack_book *b, const struct place *p);
uint32_t stack_book_node(struct stack_book *b, uint32_t parent, uint32_t place);
/* For readers: sets what an id means; ids may come in any order and leave holes (a hole reads as a
 * place without names, a node without parent). Refuses (-EINVAL) ids that are too large, parents not
 * below their child; -ENOMEM. A place that is set again gets the new texts (a source line that became
 * known). */
int stack_book_set_place(struct stack_book *b, uint32_t id, const struct place *p);
int stack_book_set_node(struct stack_book *b, uint32_t id, uint32_t parent, uint32_t place);
/* NULL: none with this id. */
const struct place *stack_book_find_place(const struct stack_book *b, uint32_t id);
const struct stack_node *stack_book_find_node(const struct stack_book *b, uint32_t id);
/* The places of a node, innermost first: how many were put (at most max, at most STACK_DEPTH_MAX). Ends
 * where a node is not known. A place may still be unknown: find_place then gives NULL. */
size_t stack_book_walk(const struct stack_book *b, uint32_t node, uint32_t *places, size_t max);

#endif
