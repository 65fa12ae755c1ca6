/* SPDX-License-Identifier: MIT
 *
 * How much an expression is likely to keep alive, by its words: a number, a tensor, a tensor with the graph it came from.
 */
#ifndef SPOTTER_EXPLAIN_KEEPS_VALUE_H
#define SPOTTER_EXPLAIN_KEEPS_VALUE_H

#include "explain/keeps/birth.h"

enum weight {
	WEIGHT_SMALL, /* a number, a flag, a length */
	WEIGHT_TEXT,
	WEIGHT_PLAIN, /* nothing is known */
	WEIGHT_MADE,  /* made anew in each turn, by a call or from a part of something */
	WEIGHT_ARRAY, /* an array, a tensor without its graph, a copy */
	WEIGHT_GRAPH, /* most likely a tensor with its graph */
};

/* The heaviest of the parts of a list of expressions. torch: the file has to do with tensors that have graphs. */
enum weight value_weight(const struct py_source *s, const struct py_statement *use,
			 struct span list, bool torch);

#endif
