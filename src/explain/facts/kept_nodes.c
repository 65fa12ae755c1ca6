/* SPDX-License-Identifier: MIT
 *
 * Which of the lines that may keep something are in a stack: of all stacks of a book at once, each from its caller's
 * answer. A day has millions of rows, and each may be asked for all lines.
 */
#include "explain/facts/kept.h"

#include "base/auto.h"

#include <errno.h>
#include <string.h>

/* What a place says: bits of lines. */
struct place_bits {
	uint64_t in, line;
	bool known, python;
	bool own; /* code of the program's own */
	bool
	    body; /* where a forked process begins: it still has the frames of its parent below its own */
};

static void read_place(const struct place *p, const struct kept_lines *c, struct place_bits *ret)
{
	*ret = (struct place_bits){ .known = true };
	if (!p || p->kind != PLACE_PYTHON || !p->file)
		return;
	ret->python = true;
	ret->own = !place_is_library(p);
	ret->body = strstr(p->file, "/multiprocessing/process.py") != NULL;
	for (size_t i = 0; i < c->n; i++) {
		const struct keep *k = &c->v[i].keep;

		/* texts of a book are each once */
		if (p->file != c->v[i].file || p->line < k->from || p->line > k->to)
			continue;
		ret->in |= UINT64_C(1) << i;
		ret->line |= p->line == k->line ? UINT64_C(1) << i : 0;
	}
}

static struct kept_node step(const struct kept_node *up, const struct place_bits *p)
{
	if (!p->python)
		return *up;
	if (p->body)
		return (struct kept_node){ 0 };
	return (struct kept_node){
		.in = up->in | p->in,
		.calls = up->calls | (p->own ? up->itself : 0),
		.itself = (p->own ? 0 : up->itself) | p->line,
	};
}

int kept_nodes_open(struct kept_nodes *ret, const struct stack_book *b, const struct kept_lines *c)
{
	auto_free struct place_bits *places = calloc(b->places.n + 1, sizeof(*places));

	*ret = (struct kept_nodes){ .n = b->nodes.n + 1 };
	ret->v = calloc(ret->n, sizeof(*ret->v));
	if (!ret->v || !places) {
		kept_nodes_done(ret);
		return -ENOMEM;
	}
	/* parents are below their children; the first has none */
	for (size_t id = 1; id < ret->n; id++) {
		const struct stack_node *n = &b->nodes.v[id - 1];

		/* not known: a stack ends there */
		if (!n->place || n->place > b->places.n || n->parent >= id)
			continue;
		if (!places[n->place].known)
			read_place(stack_book_find_place(b, n->place), c, &places[n->place]);
		ret->v[id] = step(&ret->v[n->parent], &places[n->place]);
	}
	return 0;
}

void kept_nodes_done(struct kept_nodes *k)
{
	free(k->v);
	*k = (struct kept_nodes){ 0 };
}
