/* SPDX-License-Identifier: MIT
 *
 * Loops of Python that go over arrays one element at a time, where a library would do it for all of them at once:
 *
 *	for k in range(len(u)):              <- elements: what it writes has the loop's own index
 *	    w2 = w[k] + 3 * u[k] * 0.05
 *	    r[k] = -(w2 ** 2)
 *
 *	for i in range(1, len(wave)):        <- and so it is where single ones are held against something
 *	    if wave[i] > level and wave[i - 1] <= level:
 *	        rises.append(i)
 *
 * Not so a loop over batches, epochs or files, whose steps are large: it takes slices, multiplies matrices, learns,
 * reads or writes.
 */
#ifndef SPOTTER_EXPLAIN_DOES_ELEMENTS_H
#define SPOTTER_EXPLAIN_DOES_ELEMENTS_H

#include "explain/keeps/source.h"

/* Is this block such a loop? */
bool elements_loop(const struct py_source *s, uint32_t block);

#endif
