/* SPDX-License-Identifier: MIT
 *
 * What the text of a line says about numbers: not every training has a framework. One that is written with arrays alone is
 * known by lines that compute with them and by lines that change them by what was computed:
 *
 *	wrong = rate / (1 + np.exp(-(c @ n.T)))
 *	self.outer[bad] -= wrong.T @ c
 */
#ifndef SPOTTER_EXPLAIN_LEDGER_ARITHMETIC_H
#define SPOTTER_EXPLAIN_LEDGER_ARITHMETIC_H

#include <stdbool.h>
#include <stddef.h>

/* Does it compute with arrays? */
bool line_has_arrays(const char *text);
/* Does it add to, or take from, what is there, and with arrays? */
bool line_updates_arrays(const char *text);
/* Does it take from what is there what a rate is multiplied with, as descending a gradient does? Sums, means that are
 * taken away and filters do not. */
bool line_descends(const char *text);
/* Does it, beyond doubt: the rate or the gradient is called one? */
bool line_teaches(const char *text);
/* And nobody else would call it so: the rate is "lr" and comes first, or the gradient is called one. "interest += balance * rate"
 * is none. */
bool line_teaches_surely(const char *text);
/* Does it take something from what is called a weight or a bias: "weight -= step"? */
bool line_lessens_weight(const char *text);
/* Does it name a rate of learning: "step *= self.rate / len(x)"? */
bool line_names_rate(const char *text);
/* The name that such a line changes, in its text: "centres" of "self.centres[k] += ...". */
const char *line_updated(const char *text, size_t *ret_n);
/* Is that name in this line, as a word? */
bool line_names(const char *text, const char *name, size_t n);
/* Does it compute with a framework's tensors, as a model does? What only makes a tensor of numbers is not that. */
bool line_has_tensors(const char *text);

#endif
