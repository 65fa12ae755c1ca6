/* SPDX-License-Identifier: MIT
 *
 * Where the thing behind a name is made, how long it lives, and whether anything is ever taken from it.
 */
#ifndef SPOTTER_EXPLAIN_KEEPS_BIRTH_H
#define SPOTTER_EXPLAIN_KEEPS_BIRTH_H

#include "explain/keeps/words.h"

enum made_as {
	MADE_UNKNOWN,
	MADE_LIST,
	MADE_DICT,
	MADE_SET,
	MADE_NUMBER,
	MADE_BOUNDED,
	MADE_OTHER
};

enum life {
	LIFE_NONE, /* no longer than one turn: nothing is kept in it */
	LIFE_TURN, /* made anew in each turn of an outer loop, or by a method that is called again */
	LIFE_LOOP, /* a local variable that lives as long as a loop runs */
	LIFE_LONG, /* of an object, of the module, of a function around, or a parameter */
};

struct birth {
	enum life life;
	enum made_as as;
	uint32_t
	    loop; /* LIFE_TURN, LIFE_LOOP of a local: the outermost loop it lives through; else 0 */
	int loops;     /* that are around the statement and inside of where it is made */
	bool trimmed;  /* something is taken from it, or it is emptied */
	bool measured; /* its length is asked for in an if: it may be bounded */
};

/* Of the name as the statement uses it. */
struct birth birth_of(const struct py_source *s, const struct py_statement *use, struct span name);
/* Is it a variable of a loop around the statement, or assigned in the innermost one? What it gets, n 0: a variable of
 * the loop's head. */
bool birth_in_turn(const struct py_source *s, const struct py_statement *use, struct span name,
		   struct span *ret_value);

#endif
