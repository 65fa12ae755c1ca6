/* SPDX-License-Identifier: MIT
 *
 * A thread that waits does not move: its callers are found once a wait, by unwinding, and their node is
 * kept; of helpers without Python also when they come back to it. So how many there are costs nothing in later looks, and the book has each stack once.
 */
#include "engine/stack_callers.h"

#include <string.h>

enum { AGAIN_EVERY = 8 };

/* Their order is innermost first. */
struct callers {
	uint32_t places[STACK_LEAF_DEPTH];
	size_t n;
	bool cut; /* further ones are not known, or too many */
};

static bool is_interpreter(const char *file)
{
	const char *base = strrchr(file, '/');

	base = base ? base + 1 : file;
	return strncmp(base, "python", 6) == 0 || strncmp(base, "libpython", 9) == 0;
}

static uint32_t native_id(struct stack_job *j, const struct native_place *n)
{
	return stack_book_place(&j->tally->book, &(struct place){ .kind = PLACE_NATIVE,
								  .function = n->symbol,
								  .file = n->file,
								  .source = "" });
}

/* Where callers of a native stack are not known. */
static uint32_t cut_place(struct stack_job *j)
{
	return native_id(j, &(struct native_place){ .symbol = "[...]", .file = "" });
}

/* Puts them inside of a node. A book that is full counts what is new in the stack it came from. */
static uint32_t put_callers(struct stack_job *j, const struct callers *c, bool cut, uint32_t node)
{
	uint32_t next = node;

	if (cut)
		next = stack_book_node(&j->tally->book, node, cut_place(j));
	for (size_t i = c->n; i > 0 && (next || !node); i--) {
		node = next;
		next = stack_book_node(&j->tally->book, node, c->places[i - 1]);
		if (!next)
			break;
	}
	return next ? next : node;
}

/* From the C library's call outwards until the interpreter, or the program's begin. What waits inside the C
 * library is said by the kind of wait: its own function is kept only where there is neither another nor
 * Python. */
static void find_callers(struct stack_job *j, struct stack_proc *p, struct stack_thread *t,
			 int64_t now_ns, size_t max, struct callers *ret)
{
	uint64_t at[NATIVE_FRAMES_MAX];
	size_t k =
	    native_unwind(p->native, t->state.pc, t->state.sp, now_ns, at, NATIVE_FRAMES_MAX);
	bool whole = native_unwound(p->native), behind_libc = false;
	struct native_place n;
	uint32_t libc = 0;
	size_t i;

	*ret = (struct callers){ 0 };
	for (i = 0; i < k; i++) {
		/* A return address may be the first byte of the next function. */
		if (!native_place(p->native, at[i] - (i > 0), now_ns, &n))
			break;
		if (p->py && is_interpreter(n.file)) {
			whole = true;
			break;
		}
		t->nameless |= n.pending;
		/* _start, which the C library's begin calls back to main: says nothing. */
		if (i + 1 == k && whole && behind_libc && ret->n)
			continue;
		behind_libc = n.libc;
		if (n.libc)
			libc = libc ? libc : native_id(j, &n);
		else if (ret->n < max)
			ret->places[ret->n++] = native_id(j, &n);
		else
			ret->cut = true;
	}
	ret->cut |= !whole;
	if (!ret->n && libc && !p->py)
		ret->places[ret->n++] = libc;
}

/* A helper without Python (of a pool, of a network) comes back to one wait all day, at the same depth in the same call; finding
 * its callers costs ten times as much as all else about it. So they are looked for anew only now and then. A thread
 * that runs Python is asked each time. */
static bool came_back(struct stack_thread *t, uint32_t node)
{
	if (node || ++t->returns % AGAIN_EVERY == 0)
		return false;
	t->run_ns = t->state.run_ns;
	return true;
}

void stack_callers_add(struct stack_job *j, struct stack_proc *p, struct stack_thread *t,
		       int64_t now_ns, struct stack_row *row)
{
	const struct wait_state *s = &t->state;
	uint32_t node = row->node;
	struct callers c;

	if (!p->native || row->flags & (STACK_PARTIAL | STACK_UNPROVEN) ||
	    s->kind == WAIT_RUNNING || s->kind == WAIT_RUNNABLE || s->kind == WAIT_GIL || !s->pc ||
	    !s->sp) {
		t->nameless = false;
		return;
	}
	if (t->pc != s->pc || t->sp != s->sp || t->callers_of != row->node || t->nameless ||
	    (t->run_ns != s->run_ns && !came_back(t, node))) {
		t->nameless = false;
		find_callers(j, p, t, now_ns, node ? STACK_NATIVE_DEPTH - 1 : STACK_LEAF_DEPTH, &c);
		/* Inside of a Python line it is not said that the nearest are not known: it called them all
		 * the same. */
		t->callers = put_callers(
		    j, &c, c.cut && c.n && (!node || c.n == STACK_NATIVE_DEPTH - 1), node);
		t->pc = s->pc;
		t->sp = s->sp;
		t->run_ns = s->run_ns;
		t->callers_of = node;
	}
	row->node = t->callers;
}

/* In the interpreter itself the Python line is the leaf. It ran then, whatever it looked like before. */
void stack_callers_sampled(struct stack_job *j, const struct stack_proc *p,
			   const struct stack_leaf *leaf, struct stack_row *row)
{
	uint32_t node = row->node;

	row->kind = WAIT_RUNNING;
	row->flags |= STACK_JOINED;
	if (p->py && row->node && is_interpreter(leaf->places[0].file))
		return;
	if (leaf->cut)
		node = stack_book_node(&j->tally->book, node, cut_place(j));
	for (size_t i = leaf->n; i > 0 && (node || i == leaf->n); i--)
		node = stack_book_node(&j->tally->book, node, native_id(j, &leaf->places[i - 1]));
	row->node = node;
}
