/* SPDX-License-Identifier: MIT
 *
 * What a thread is for. One table (roles.c): by a frame of its stacks, by its name, by the library it
 * runs in, by the command line of its process.
 */
#ifndef SPOTTER_EXPLAIN_LEDGER_ROLES_H
#define SPOTTER_EXPLAIN_LEDGER_ROLES_H

#include "explain/activity.h"
#include "model/stacks.h"

enum role_by {
	ROLE_BY_FRAME, /* file (as in phases.h) and function of a Python frame, anywhere in a stack */
	ROLE_BY_THREAD, /* name of the thread, at most 15 bytes as the kernel keeps it */
	ROLE_BY_SYMBOL, /* a native function anywhere in a stack, of a thread that runs no Python; before its library */
	ROLE_BY_LIBRARY, /* beginning of the library's name, of a thread that runs no Python */
	ROLE_BY_PROGRAM, /* name of the process */
	ROLE_BY_COMMAND, /* a piece of its command line */
};

/* Alternatives are parted by '|', and '*' stands for anything. */
struct role_rule {
	enum cpu_role role;
	enum role_by by;
	const char *file; /* of BY_FRAME only */
	const char *name;
};

extern const struct role_rule role_rules[];
extern const size_t n_role_rules;

/* The first row that holds, -1: none. */
int role_of_place(const struct place *p);
int role_of_text(enum role_by by, const char *text);

#endif
