/* SPDX-License-Identifier: MIT
 *
 * Values that nobody learns from, made of data from outside of the loop, and only now and then: that is an evaluation,
 * whatever it is called.
 *
 *	for step in range(steps):
 *	    train_step(inputs[pick])
 *	    if step % 500 == 0:
 *	        area = gini(network.score(everyone), truth)     <- this
 *	        print(step, area)
 */
#ifndef SPOTTER_EXPLAIN_DOES_SELDOM_H
#define SPOTTER_EXPLAIN_DOES_SELDOM_H

#include "explain/keeps/words.h"

/* `at`: a statement that watches (watch.h). learns: by block, as there. */
bool seldom_evaluates(const struct py_source *s, const bool *learns, size_t at);

#endif
