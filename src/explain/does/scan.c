/* SPDX-License-Identifier: MIT
 *
 * Signs of each statement, added up over the function and the blocks it is in; then a row of conditions on the sums.
 */
#include "explain/does/ahead.h"
#include "explain/does/does.h"
#include "explain/does/elements.h"
#include "explain/does/held.h"
#include "explain/does/makes.h"
#include "explain/does/seldom.h"
#include "explain/does/signs.h"
#include "explain/does/trainers.h"
#include "explain/does/watch.h"

#include <stdlib.h>
#include <string.h>

/* A file that was made to take long is left half done: a tenth of a second or two. */
enum { LOOKS_MAX = 20 * 1000 * 1000, DECORATORS_MAX = 8 };

/* What loops over single elements do not do: learn from what was computed, ask, save, write and read. */
static const unsigned not_elements = SIGN_LEARNS | SIGN_NO_GRAD | SIGN_PLAYS | SIGN_STATE |
				     SIGN_SAVES | SIGN_WRITES | SIGN_READS | SIGN_RESTORES |
				     SIGN_TEACHES;

/* Where gradients are there to be switched off. */
static const char *const frameworks =
    "import torch|from torch|import jax|from jax|tensorflow|import keras|from keras|"
    "mxnet|lightning|import flax|from flax|paddle|tinygrad|mindspore|autograd";

struct sums {
	unsigned signs;
	bool
	    head; /* gradients are off by the head of the block itself, or by a decorator of the function */
	bool held; /* the loop goes over what was held out */
	bool yields;
};

struct scanner {
	struct py_source s;
	const char *raw;
	size_t n, left;
	struct sums *of; /* by block */
	struct does *ret;
	size_t found;
	bool framework; /* it imports one that makes gradients */
};

/* The statement as it was written, with its strings. Clean text has the same length. */
static struct span raw_of(const struct scanner *x, const struct py_statement *t)
{
	size_t at = (size_t)(t->text - x->s.clean);

	return at + t->n <= x->n ? (struct span){ x->raw + at, t->n } : (struct span){ 0 };
}

/* `for x, y in self.val_loader:` */
static bool goes_over_held(const struct py_statement *t)
{
	struct span s = span_of(t);
	const char *in = s.n ? memmem(s.p, s.n, " in ", 4) : NULL;

	return in && text_names_held_out(in + 4, s.n - (size_t)(in + 4 - s.p));
}

/* To the block it is in and all around that, up to the function. The head of a block is a statement of the one
 * around it; what it says is said inside of it as well. */
static void add_up(struct scanner *x, const struct py_statement *t, unsigned signs, bool yields)
{
	uint32_t def = py_def_of(&x->s, t->block), b = t->block;

	for (int depth = 0; depth <= SOURCE_DEPTH_MAX; depth++) {
		x->of[b].signs |= signs;
		x->of[b].yields |= yields;
		if (b == def || b == 0)
			return;
		b = x->s.blocks.v[b].parent;
	}
}

static bool decorated(const struct scanner *x, uint32_t head)
{
	for (uint32_t i = 1; i <= DECORATORS_MAX && i <= head; i++) {
		struct span s = span_of(&x->s.statements.v[head - i]);

		if (!s.n || s.p[0] != '@')
			return false;
		if (span_has_any(s, "no_grad|inference_mode"))
			return true;
	}
	return false;
}

static void read_heads(struct scanner *x)
{
	for (size_t b = 1; b < x->s.blocks.n; b++) {
		const struct py_block *k = &x->s.blocks.v[b];
		const struct py_statement *head = &x->s.statements.v[k->head];
		struct span s = span_of(head);

		if (k->kind == PY_DEF)
			x->of[b].head = decorated(x, k->head);
		else if (k->kind == PY_LOOP)
			x->of[b].held = goes_over_held(head);
		else
			x->of[b].head =
			    span_begins(s, "with ") && span_has_any(s, "no_grad(|inference_mode(");
	}
}

/* Of what is sent. */
static const unsigned no_log = SIGN_GIVES | SIGN_STATE | SIGN_WEIGHTS | SIGN_RAW | SIGN_RESTORES |
			       SIGN_CHANGES | SIGN_PLAYS | SIGN_NO_GRAD;

static bool has(const struct sums *k, unsigned all, unsigned none)
{
	return (k->signs & all) == all && !(k->signs & none);
}

/* What is run once, or runs everything. */
static bool is_outer(const struct scanner *x, uint32_t def)
{
	static const char *const names[] = { "__init__", "main",   "_main", "run",
					     "cli",      "launch", "serve" };
	const char *name = "";
	struct span s = { .n = py_name_of(&x->s, def, &name) };

	s.p = name;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (span_is(s, names[i]))
			return true;
	return false;
}

/* Pieces of text, each looked up, or each made numbers of. */
static bool takes_words(const struct sums *k)
{
	return (has(k, SIGN_SPLITS | SIGN_LOOKS_UP, 0) || has(k, SIGN_WORDS | SIGN_IDS, 0)) &&
	       k->signs & (SIGN_LOOPS | SIGN_EACH) &&
	       has(k, 0, SIGN_WRITES | SIGN_NO_GRAD | SIGN_PLAYS | SIGN_READS);
}

/* The model is asked, and nothing learnt. */
static bool evaluates(const struct scanner *x, uint32_t b)
{
	const struct sums *k = &x->of[b];
	const unsigned no_test = SIGN_LEARNS | SIGN_CHANGES | SIGN_PLAYS;
	bool def = x->s.blocks.v[b].kind == PY_DEF;

	if (k->held && has(k, 0, no_test))
		return true;
	if (k->yields)
		return false;
	if ((k->head ||
	     (def && k->signs & SIGN_NO_GRAD && k->signs & (SIGN_TALLIES | SIGN_GIVES))) &&
	    has(k, SIGN_LOOPS, no_test))
		return true;
	/* how often it is right: arrays alone need no switch for their gradients */
	if (def && !x->framework &&
	    has(k, SIGN_TRUTH | SIGN_ANSWERS | SIGN_LOOPS | SIGN_GIVES,
		no_test | SIGN_TEACHES | SIGN_LESSENS | SIGN_BACK))
		return true;
	/* how often it wins: it plays, and keeps nothing of it */
	return def && has(k, SIGN_ASKS | SIGN_PLAYS | SIGN_LOOPS | SIGN_GIVES,
			  SIGN_LEARNS | SIGN_CHANGES | SIGN_LESSONS);
}

/* The first that holds. */
static bool judge(const struct scanner *x, uint32_t b, enum does_what *ret)
{
	const struct sums *k = &x->of[b];
	bool def = x->s.blocks.v[b].kind == PY_DEF;

	if (evaluates(x, b)) {
		*ret = DOES_EVALUATE;
		return true;
	}
	if (def && has(k, SIGN_LESSENS | SIGN_RATE | SIGN_MATRIX, SIGN_LEARNS)) {
		*ret = DOES_TRAIN;
		return true;
	}
	if (has(k, SIGN_TEACHES, SIGN_LEARNS) &&
	    (def ? k->signs & SIGN_LOOPS || has(k, SIGN_MATRIX | SIGN_SURELY, 0) ||
		       has(k, SIGN_CHANGES | SIGN_SURELY, 0)
		 : x->s.blocks.v[b].kind == PY_LOOP)) {
		*ret = DOES_TRAIN;
		return true;
	}
	if (!def || k->signs & SIGN_LEARNS || is_outer(x, b))
		return false;
	/* weights that become text are looked at: norms, histograms, a summary */
	if (has(k, SIGN_WRITES, SIGN_READS | SIGN_RESTORES) && !k->yields &&
	    (k->signs & (SIGN_SAVES | SIGN_STATE) || has(k, SIGN_WEIGHTS | SIGN_RAW, 0))) {
		*ret = DOES_SAVE;
		return true;
	}
	/* whoever sends reads the reply; weights that are exchanged, and answers that are used, are no logs */
	if ((has(k, SIGN_WRITES, SIGN_READS | SIGN_GIVES) || has(k, SIGN_SENDS, no_log)) &&
	    !k->yields) {
		*ret = DOES_LOG;
		return true;
	}
	*ret = DOES_TOKENIZE;
	if (takes_words(k) && (k->yields || k->signs & SIGN_GIVES))
		return true;
	*ret = DOES_LOAD;
	return has(k, SIGN_READS, SIGN_WRITES | SIGN_RESTORES | SIGN_NO_GRAD | SIGN_PLAYS) &&
	       (k->yields || k->signs & SIGN_GIVES);
}

/* Blocks come behind what they are in. */
static bool is_told(const struct scanner *x, enum does_what what, const struct py_block *k)
{
	for (size_t i = 0; i < x->found; i++)
		if (x->ret[i].what == what && x->ret[i].from <= k->from && x->ret[i].to >= k->to)
			return true;
	return false;
}

static void tell(struct scanner *x)
{
	for (size_t b = 1; b < x->s.blocks.n && x->found < DOES_RANGES; b++) {
		const struct py_block *k = &x->s.blocks.v[b];
		enum does_what what;

		if (k->kind != PY_CLASS && k->to >= k->from && judge(x, (uint32_t)b, &what) &&
		    !is_told(x, what, k))
			x->ret[x->found++] = (struct does){ what, k->from, k->to };
	}
}

/* The outermost loop of each nest: blocks come behind what they are in. */
static void tell_elements(struct scanner *x)
{
	for (size_t b = 1; b < x->s.blocks.n && x->found < DOES_OF_FILE; b++) {
		const struct py_block *k = &x->s.blocks.v[b];

		if (k->kind == PY_LOOP && k->to >= k->from && has(&x->of[b], 0, not_elements) &&
		    has(&x->of[py_def_of(&x->s, (uint32_t)b)], 0, SIGN_TEACHES | SIGN_MATRIX) &&
		    !is_told(x, DOES_ELEMENTS, k) && elements_loop(&x->s, (uint32_t)b) && x->left)
			x->ret[x->found++] = (struct does){ DOES_ELEMENTS, k->from, k->to };
	}
}

/* What is made for asking only is none of the training's. */
static void tell_makers(struct scanner *x)
{
	struct span all = { x->raw, x->n };
	bool crews = span_has_any(all, "Process|Thread");
	bool chosen = false; /* a device: what follows goes to the same */

	for (size_t i = 0; i < x->s.statements.n && x->found < DOES_OF_FILE; i++) {
		const struct py_statement *t = &x->s.statements.v[i];
		struct span s = span_of(t);
		enum does_what what;

		if (!py_look(&x->s, 2 * t->n))
			return;
		if (span_begins(s, "class ") || span_begins(s, "def ") ||
		    span_begins(s, "async def ") || span_begins(s, "import ") ||
		    span_begins(s, "from "))
			continue;
		what = makes_what(s, raw_of(x, t), crews);
		if (what == DOES_WHATS || (what == DOES_DEVICE && chosen) ||
		    text_names_held_out(s.p, s.n))
			continue;
		chosen |= what == DOES_DEVICE;
		x->ret[x->found++] = (struct does){ what, t->line, t->line };
	}
}

static void tell_line(struct scanner *x, enum does_what what, size_t statement)
{
	int32_t line = x->s.statements.v[statement].line;

	if (x->found < DOES_OF_FILE)
		x->ret[x->found++] = (struct does){ what, line, line };
}

/* In loops that learn: what only watches, and what loads ahead. */
static void tell_of_loops(struct scanner *x)
{
	bool *learns = calloc(x->s.blocks.n, 1), *watch = calloc(x->s.statements.n + 1, 1);

	for (size_t b = 1; learns && b < x->s.blocks.n; b++)
		learns[b] = x->s.blocks.v[b].kind == PY_LOOP && x->of[b].signs & SIGN_LEARNS;
	if (learns && watch && x->n == x->s.n && watch_find(&x->s, x->raw, learns, watch))
		for (size_t i = 0; i < x->s.statements.n; i++)
			if (watch[i])
				tell_line(x,
					  seldom_evaluates(&x->s, learns, i) ? DOES_EVALUATE
									     : DOES_WATCH,
					  i);
	for (size_t i = 0; learns && i < x->s.statements.n && x->left; i++)
		if (ahead_made(&x->s, learns, i))
			tell_line(x, DOES_AHEAD, i);
	free(learns);
	free(watch);
}

static void read_statements(struct scanner *x)
{
	for (size_t i = 0; i < x->s.statements.n; i++) {
		const struct py_statement *t = &x->s.statements.v[i];
		unsigned signs;

		/* some sixty pieces are looked for */
		if (!py_look(&x->s, 8 * t->n))
			return;
		signs = signs_of(span_of(t), raw_of(x, t));
		add_up(x, t, signs, signs_have_word(span_of(t), "yield"));
	}
	for (size_t b = 1; b < x->s.blocks.n; b++)
		if (x->s.blocks.v[b].kind == PY_LOOP)
			add_up(x, &x->s.statements.v[x->s.blocks.v[b].head], SIGN_LOOPS, false);
}

/* The loop that calls a function of this file that trains by hand learns as well. */
static void mark_callers(struct scanner *x)
{
	struct trainers by_hand = { 0 };
	enum does_what what;

	for (size_t b = 1; b < x->s.blocks.n; b++)
		if (x->s.blocks.v[b].kind == PY_DEF && x->of[b].signs & SIGN_TEACHES &&
		    judge(x, (uint32_t)b, &what) && what == DOES_TRAIN)
			trainers_add(&by_hand, &x->s, (uint32_t)b);
	for (size_t i = 0; by_hand.n && i < x->s.statements.n; i++) {
		const struct py_statement *t = &x->s.statements.v[i];

		if (!py_look(&x->s, by_hand.n * t->n))
			return;
		if (trainers_called(&by_hand, span_of(t)))
			add_up(x, t, SIGN_LEARNS, false);
	}
}

size_t does_scan(const char *text, size_t n, struct does ret[DOES_OF_FILE])
{
	struct scanner x = { .raw = text, .n = n, .left = LOOKS_MAX, .ret = ret };

	if (py_source_read(&x.s, text, n) == 0) {
		x.s.left = &x.left;
		x.of = calloc(x.s.blocks.n, sizeof(*x.of));
		x.framework = span_has_any((struct span){ x.s.clean, x.s.n }, frameworks);
	}
	if (x.of) {
		read_heads(&x);
		read_statements(&x);
		mark_callers(&x);
		/* what speaks against it may not have been seen */
		if (x.left) {
			tell(&x);
			tell_makers(&x);
			tell_of_loops(&x);
			tell_elements(&x);
		}
	}
	free(x.of);
	py_source_done(&x.s);
	return x.found;
}
