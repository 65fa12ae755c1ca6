/* SPDX-License-Identifier: MIT
 *
 * What rules about reading data share. Waiting for storage has more special causes (reading_*): where one of
 * them holds, the general one is only a note.
 */
#ifndef SPOTTER_EXPLAIN_READING_H
#define SPOTTER_EXPLAIN_READING_H

#include "explain/rule.h"

/* Those who load wait for files a fifth of their time or more, and somebody is held up by them. */
enum answer reading_waits(const struct facts *f, struct opinion *o);
/* The same, and the bytes come from storage. */
enum answer reading_fetches(const struct facts *f, struct opinion *o);
/* What is read was in the page cache and was dropped for want of room. */
enum answer reading_again(const struct facts *f, struct opinion *o);
/* It comes over a network: by its file system, or by sockets. */
enum answer reading_over_network(const struct facts *f, struct opinion *o);
/* Opening files costs more than reading them. */
enum answer reading_small_files(const struct facts *f, struct opinion *o);
/* Is one of the three surely at work? */
bool reading_has_a_name(const struct facts *f);

/* The gain when of this share of the time of loading (what it waits first, then what it runs)
 * a part is left: best, likely and worst case. */
void reading_gain(struct finding *x, const struct facts *f, double share, const double left[3]);

#endif
