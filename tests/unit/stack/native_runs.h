/* SPDX-License-Identifier: MIT
 *
 * A shared library whose exported functions run for ever, called by a chain that is known. It is built
 * twice, with frame pointers (framed_) and without (plain_).
 */
#ifndef SPOTTER_TESTS_STACK_NATIVE_RUNS_H
#define SPOTTER_TESTS_STACK_NATIVE_RUNS_H

enum run {
	RUN_CHAIN,  /* outer - middle - inner - spin */
	RUN_ARRAY,  /* outer - array (of a length not known before) - inner - spin */
	RUN_TAIL,   /* outer - inner - spin; outer called a function that jumped to inner */
	RUN_SORT,   /* outer - sort - C library - compare - spin */
	RUN_MEMORY, /* outer - memory - C library */
	RUN_SIGNAL, /* outer - signals - C library - handler - spin */
	RUN_BIG, /* outer - big (with 64 KB of frame) - inner - spin: nothing above big is in the copy */
	RUN_LIE, /* outer - lie: its unwind rule is not true, an address of code lies where it points */
	RUNS,
};

void plain_run(enum run how);
void framed_run(enum run how);

#endif
