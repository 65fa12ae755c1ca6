/* SPDX-License-Identifier: MIT
 *
 * What lines of a program are for, by what is written in them and not by what their functions are called:
 *
 *	def development(self, batches):          <- evaluates: no gradients, a loop, a sum, and nothing is learnt
 *	    with torch.no_grad():
 *	        for x, y in batches:
 *	            total += self.loss(x, y)
 *
 *	def keep(step, net):                     <- saves: what has the model's state and writes
 *	    blob = zlib.compress(pickle.dumps(net.state_dict()))
 *	    open(path, "wb").write(blob)
 *
 * Names are a list that is never complete (ledger/topics.c); what evaluating, saving, logging and loading are made of
 * is much the same in all programs. The recorder looks each file of the program's own through when it reads it for the
 * text of lines, and tells ranges of lines as places of the kind "does", which no stack is in: then a record says the
 * same on any machine. A function that is seen to learn is none of these, whatever its text says (activity_node.c).
 */
#ifndef SPOTTER_EXPLAIN_DOES_H
#define SPOTTER_EXPLAIN_DOES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct place;

/* Of a file: in all, and of these ranges; the rest is for single statements. */
enum { DOES_OF_FILE = 48, DOES_RANGES = 36 };

enum does_what {
	DOES_EVALUATE, /* asks the model without teaching it, again and again */
	DOES_SAVE,     /* writes the state of the model */
	DOES_LOG,      /* writes anything else, and gives nothing back */
	DOES_LOAD,     /* reads files, and gives back what it made of them */
	DOES_TOKENIZE, /* takes text apart and looks its pieces up */
	DOES_TRAIN, /* has a loop in which arrays go down a gradient, or up, or makes the gradient of matrices itself: a training
		     * without a framework */
	DOES_ELEMENTS, /* goes over arrays one element at a time */
	/* single statements, where something is to be changed */
	DOES_LOADER, /* makes a loader: DataLoader(data, num_workers=2) */
	DOES_POOL,   /* makes a pool of workers */
	DOES_STARTS, /* starts a process or a thread of its own, also by another name: make(target=f, args=(k,)) */
	DOES_THREADS, /* says how many threads libraries may use */
	DOES_DEVICE,  /* chooses a device: torch.device("cuda:0"), jax.devices()[0] */
	DOES_WATCH,   /* computes what nobody learns from, in a loop that learns */
	DOES_AHEAD,   /* makes what is learnt from in the next turn of the loop */
	DOES_WHATS
};

struct does {
	enum does_what what;
	int32_t from, to; /* lines, both included */
};

/* What a file does, in the order of its lines: how many. Any text will do; the time is bounded. */
size_t does_scan(const char *text, size_t n, struct does ret[DOES_OF_FILE]);

/* As the text of a place: "evaluate 34-41". */
void does_write(const struct does *d, char *ret, size_t size);
/* False: not the text of such a place. */
bool does_read(const struct place *p, struct does *ret);
const char *does_name(enum does_what what);

#endif
