/* SPDX-License-Identifier: MIT
 *
 * Lines of a program that keep something of every turn of a loop: a guess from its source. Who allocated cannot be seen
 * from outside; but memory that grows with every step is held by something that gets an entry each step, and those lines
 * can be read:
 *
 *	history = []
 *	for x, y in loader:
 *	    out = model(x)
 *	    history.append(out)         <- a list that is made outside of the loop, and nothing is taken from it
 *
 * The recorder scans each file of the program's own when it reads it for the text of lines (engine/source_text.h), and
 * tells the best few as places of the kind "keeps", which no stack is in: then a record says the same on any
 * machine. Which of them it is, if memory grows, is chosen when a verdict is made (facts/kept.c), by what the
 * stacks of the process that grows have.
 */
#ifndef SPOTTER_EXPLAIN_KEEPS_H
#define SPOTTER_EXPLAIN_KEEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct place;

enum { KEEPS_OF_FILE = 8 };

enum keep_what {
	KEEP_LIST,  /* a list, a deque, a set that gets an entry, an array that gets longer */
	KEEP_DICT,  /* a dict that gets a key */
	KEEP_SUM,   /* a running total of tensors that have their graphs */
	KEEP_GRAPH, /* backward() that is told to keep the graph */
	KEEP_CACHE, /* a function whose results are kept for ever */
	KEEP_OBJECTS, /* no growth by itself: Python objects of a data set, which forked workers copy as they look */
	KEEP_WHATS
};

struct keep {
	enum keep_what what;
	bool local; /* a local variable: it lives only as long as the lines below run */
	int score;  /* 1 to 9: how much it looks like what grows */
	int32_t line;
	int32_t from, to;             /* the loop, or the function, that must run for it to grow */
	char function[80], text[120]; /* foreign */
};

/* The best of a file, best first: how many. Any text will do. The time is bounded: of a file that would take longer, the
 * best of what was looked at by then. */
size_t keeps_scan(const char *text, size_t n, struct keep ret[KEEPS_OF_FILE]);

/* As the text of a place: "list local 7 50-61 history.append(out)". */
void keep_write(const struct keep *k, char *ret, size_t size);
/* False: not the text of such a place. The function is not set. */
bool keep_read(const struct place *p, struct keep *ret);
/* The same as a reason: "a list that is made outside of the loop". */
const char *keep_why(const struct keep *k);

#endif
