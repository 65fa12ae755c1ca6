/* SPDX-License-Identifier: MIT */
#include "model/history_stacks.h"

#include <stdlib.h>
#include <string.h>

void history_stacks_done(struct history_stacks *h)
{
	for (size_t i = h->gone; i < h->slices.n; i++)
		free((struct stack_row *)h->slices.v[i].rows);
	vec_done(&h->slices);
	stack_book_done(&h->book);
	h->gone = h->rows = 0;
}

static void forget_first(struct history_stacks *h)
{
	struct stack_slice *s = &h->slices.v[h->gone++];

	free((struct stack_row *)s->rows);
	h->rows -= s->n;
	/* Half of the array is past: the rest moves up, so each slice is moved once on average. */
	if (h->gone * 2 < h->slices.n)
		return;
	h->slices.n -= h->gone;
	memmove(h->slices.v, h->slices.v + h->gone, h->slices.n * sizeof(*h->slices.v));
	h->gone = 0;
}

void history_stacks_forget(struct history_stacks *h, int64_t before_ns)
{
	while (h->gone < h->slices.n && h->slices.v[h->gone].to_ns <= before_ns)
		forget_first(h);
}

static int add_slice(struct history_stacks *h, const struct frame *f)
{
	size_t n = f->stacks.n;
	struct stack_row *rows;
	struct stack_slice *s;

	if (f->stacks_to_ns <= f->stacks_from_ns)
		return 0;
	rows = malloc((n + 1) * sizeof(*rows));
	s = rows ? vec_push(&h->slices) : NULL;
	if (!s) {
		free(rows);
		return -ENOMEM;
	}
	if (n)
		memcpy(rows, f->stacks.v, n * sizeof(*rows));
	n = stack_rows_merge(rows, n);
	*s = (struct stack_slice){
		.from_ns = f->stacks_from_ns, .to_ns = f->stacks_to_ns, .rows = rows, .n = n
	};
	h->rows += n;
	while (h->rows > HISTORY_STACK_ROWS && h->gone + 1 < h->slices.n)
		forget_first(h);
	return 0;
}

int history_stacks_frame(struct history_stacks *h, const struct frame *f)
{
	int r = 0, q;

	/* Numbers that make no sense (-EINVAL) mean nothing. */
	for (size_t i = 0; i < f->places.n; i++) {
		const struct frame_place *p = &f->places.v[i];
		struct place place = { .kind = p->kind,
				       .line = p->line > 0 ? p->line : 0,
				       .function = frame_text(f, p->function),
				       .file = frame_text(f, p->file),
				       .source = frame_text(f, p->source) };

		q = stack_book_set_place(&h->book, p->id, &place);
		r = q == -ENOMEM ? q : r;
	}
	for (size_t i = 0; i < f->nodes.n; i++) {
		const struct frame_node *n = &f->nodes.v[i];

		q = stack_book_set_node(&h->book, n->id, n->parent, n->place);
		r = q == -ENOMEM ? q : r;
	}
	q = add_slice(h, f);
	return r < 0 ? r : q;
}

int history_stacks_each(const struct history_stacks *h, int64_t from, int64_t to,
			window_slice_fn fn, void *arg)
{
	bool any = false;

	for (size_t i = h->gone; i < h->slices.n; i++) {
		const struct stack_slice *s = &h->slices.v[i];

		if (s->to_ns <= from || s->from_ns >= to)
			continue;
		any = true;
		if (!fn(s, arg))
			break;
	}
	return any ? 0 : -ENODATA;
}
