/* SPDX-License-Identifier: MIT
 *
 * Signs of what one statement is for, by the pieces of text in it. scan.c adds them up over functions and loops.
 */
#ifndef SPOTTER_EXPLAIN_DOES_SIGNS_H
#define SPOTTER_EXPLAIN_DOES_SIGNS_H

#include "explain/keeps/words.h"

#include <stdbool.h>

enum sign {
	SIGN_LEARNS = 1 << 0, /* gradients, an optimiser, or a call of something that trains */
	SIGN_NO_GRAD =
	    1 << 1, /* gradients are switched off, or the model is set to be asked only */
	SIGN_CHANGES = 1 << 2,   /* tensors are changed in place: averages of weights are kept so */
	SIGN_PLAYS = 1 << 3,     /* an environment is asked for its next state */
	SIGN_LOOPS = 1 << 4,     /* has a loop */
	SIGN_TALLIES = 1 << 5,   /* adds up, collects, compares */
	SIGN_STATE = 1 << 6,     /* names the state of the model */
	SIGN_SAVES = 1 << 7,     /* writes objects or arrays */
	SIGN_WRITES = 1 << 8,    /* writes anything */
	SIGN_READS = 1 << 9,     /* reads files */
	SIGN_GIVES = 1 << 10,    /* gives back a value */
	SIGN_RESTORES = 1 << 11, /* gives the model its state back */
	SIGN_SPLITS = 1 << 12,   /* takes text apart */
	SIGN_LOOKS_UP = 1 << 13, /* in a vocabulary */
	SIGN_WEIGHTS = 1 << 14,  /* goes over the model's weights, for whatever it is */
	SIGN_RAW = 1 << 15,      /* bytes as they are, or what is in them */
	SIGN_TEACHES = 1 << 16,  /* arrays are changed by a rate times a gradient */
	SIGN_MATRIX = 1 << 17,   /* multiplies matrices */
	SIGN_SURELY =
	    1 << 18, /* teaches, and calls the rate first of all, or the gradient, by its name */
	SIGN_LESSENS = 1 << 19, /* weights, called so, are changed by what was computed elsewhere */
	SIGN_RATE = 1 << 20,    /* multiplies what is there by a rate */
	SIGN_EACH = 1 << 21,    /* goes over words within a statement */
	SIGN_WORDS = 1 << 22,   /* takes text apart into words: no lists of numbers with commas */
	SIGN_IDS = 1 << 23,     /* names numbers of things */
	SIGN_STRETCH = 1 << 24, /* looks a stretch of a text up */
	SIGN_ASKS = 1 << 25,    /* the model is set to be asked only */
	SIGN_LESSONS = 1 << 26, /* what was played is kept to be learned from */
	SIGN_SENDS = 1 << 27,   /* hands something to a server */
	SIGN_ANSWERS = 1 << 28, /* asks a model what it makes of something */
	SIGN_TRUTH = 1 << 29,   /* holds the likeliest answer against the true one */
	SIGN_BACK = 1 << 30     /* goes back through the model: gradients by hand */
};

/* SIGN_* of a statement; raw: the same as it was written, with its strings. */
unsigned signs_of(struct span s, struct span raw);
bool signs_have_word(struct span s, const char *word);

#endif
