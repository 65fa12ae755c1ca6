/* SPDX-License-Identifier: MIT
 *
 * What frames of the program's own are for, by the text around their lines (does/does.h), with a proof by stacks: what
 * the model is seen to learn below of is no evaluation, no log and no loading, whatever is written there.
 */
#include "explain/activity_part.h"

#include "explain/does/held.h"
#include "explain/ledger/arithmetic.h"
#include "explain/ledger/topics.h"

#include <stdlib.h>
#include <string.h>

/* Ranges that are looked at: as many as a recorder tells of its files. */
enum { RANGES_MAX = 2048 };

static const uint32_t bits[DOES_WHATS] = {
	[DOES_EVALUATE] = TOPIC_BIT(TOPIC_EVALUATE), [DOES_SAVE] = TOPIC_BIT(TOPIC_CHECKPOINT),
	[DOES_LOG] = TOPIC_BIT(TOPIC_LOG),           [DOES_LOAD] = TOPIC_BIT(TOPIC_LOADS),
	[DOES_TOKENIZE] = TOPIC_BIT(TOPIC_TOKENIZE), [DOES_WATCH] = TOPIC_BIT(TOPIC_WATCH),
	[DOES_AHEAD] = TOPIC_BIT(TOPIC_LOADS),
};

static bool is_own(const struct place *p)
{
	return p && p->kind == PLACE_PYTHON && p->file && p->source && !place_is_library(p);
}

/* A backward pass, an optimiser, or arrays that descend. */
static bool learns_at(const struct place *p)
{
	int row;

	if (!p || p->kind != PLACE_PYTHON || !p->file || !p->function || !p->source)
		return false;
	if (is_own(p))
		return line_learns(p->source) || line_descends(p->source);
	row = phase_match(p, false);
	return (row >= 0 && phase_rules[row].phase == PHASE_ENGINE) ||
	       topics_match(p, false) & TOPIC_BIT(TOPIC_OPTIMIZER);
}

/* Each node that learns, and all that called it: by place. */
static void note_learners(struct text_sense *t, const struct stack_book *book,
			  const struct node_facts *nodes, size_t n)
{
	uint8_t *asked = calloc(book->places.n + 1, 1); /* 1: no, 2: yes */
	bool *learns = calloc(n + 1, 1);                /* by node: what it calls does */

	/* Parents are below their children: from the innermost outwards, each once. */
	for (size_t id = n; asked && learns && id-- > 1;) {
		const struct stack_node *x = &book->nodes.v[id - 1];

		if (!nodes[id].needed || x->place > book->places.n)
			continue;
		if (!asked[x->place])
			asked[x->place] = learns_at(stack_book_find_place(book, x->place)) ? 2 : 1;
		if (asked[x->place] != 2 && !learns[id])
			continue;
		t->learners[x->place] = true;
		if (x->parent < n)
			learns[x->parent] = true;
	}
	free(asked);
	free(learns);
}

static void drop_ranges(struct text_sense *t, const struct stack_book *book)
{
	for (size_t i = 1; i <= book->places.n; i++) {
		const struct place *p = stack_book_find_place(book, (uint32_t)i);
		size_t n = t->learners[i] && is_own(p) ? t->ranges.n : 0;

		for (size_t k = 0; k < n; k++) {
			struct text_range *r = &t->ranges.v[k];

			/* texts of a book are kept once */
			r->learns |=
			    r->file == p->file && p->line >= r->does.from && p->line <= r->does.to;
		}
	}
}

bool text_sense_open(struct text_sense *t, const struct stack_book *book,
		     const struct node_facts *nodes, size_t n)
{
	*t = (struct text_sense){ .learners = calloc(book->places.n + 1, 1) };
	if (!t->learners)
		return false;
	for (size_t i = 1; i <= book->places.n && t->ranges.n < RANGES_MAX; i++) {
		const struct place *p = stack_book_find_place(book, (uint32_t)i);
		struct text_range *slot;
		struct does d;

		if (!p || !does_read(p, &d))
			continue;
		slot = vec_push(&t->ranges);
		if (!slot)
			return false;
		*slot = (struct text_range){ .file = p->file, .does = d };
	}
	note_learners(t, book, nodes, n);
	drop_ranges(t, book);
	return true;
}

void text_sense_done(struct text_sense *t)
{
	vec_done(&t->ranges);
	free(t->learners);
	*t = (struct text_sense){ 0 };
}

uint32_t text_topics(const struct text_sense *t, const struct place *p, uint32_t id)
{
	uint32_t topics = 0;

	if (!t->learners || !is_own(p))
		return 0;
	for (size_t i = 0; i < t->ranges.n; i++) {
		const struct text_range *r = &t->ranges.v[i];

		if (!r->learns && r->file == p->file && p->line >= r->does.from &&
		    p->line <= r->does.to)
			topics |= bits[r->does.what];
	}
	if (!t->learners[id] && line_asks_held_out(p->source))
		topics |= TOPIC_BIT(TOPIC_EVALUATE);
	return topics;
}

bool text_trains(const struct text_sense *t, const struct place *p)
{
	for (size_t i = 0; is_own(p) && i < t->ranges.n; i++) {
		const struct text_range *r = &t->ranges.v[i];

		if (r->does.what == DOES_TRAIN && r->file == p->file && p->line >= r->does.from &&
		    p->line <= r->does.to)
			return true;
	}
	return false;
}

/* It reads what another program makes for it: frames from ffmpeg, lines from zcat. */
static bool awaits_input(const struct act_row *r)
{
	return !r->unknown && r->phase == PHASE_NONE && r->text_topics & TOPIC_BIT(TOPIC_LOADS) &&
	       !(r->text_topics & TOPIC_BIT(TOPIC_LOG)) &&
	       (r->kind == WAIT_PIPE || r->kind == WAIT_SOCKET || r->kind == WAIT_POLL) &&
	       (r->state == TIME_OTHER || r->state == TIME_IDLE);
}

void rows_of_text(struct activity *a, const struct act_thread *t)
{
	const uint32_t writes = TOPIC_BIT(TOPIC_LOG) | TOPIC_BIT(TOPIC_CHECKPOINT);

	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		struct act_row *r = &a->rows.v[k];

		if (awaits_input(r)) {
			r->state = TIME_DATA_WAIT;
			r->phase = PHASE_LOADER_WAIT;
			r->matched = true;
		}
		if (!row_is_nameless(r) || r->topics & TOPIC_BIT(TOPIC_EVALUATE))
			continue;
		/* a log that reads what it is answered is a log */
		if (r->topics & TOPIC_BIT(TOPIC_LOADS) &&
		    !(r->text_topics & TOPIC_BIT(TOPIC_LOG))) {
			r->state = TIME_DATA_LOAD;
			r->phase = PHASE_LOAD_GUESS;
			r->matched = true;
		} else if (r->text_topics & writes) {
			r->state = TIME_IO;
			r->phase =
			    r->text_topics & TOPIC_BIT(TOPIC_LOG) ? PHASE_LOG : PHASE_CHECKPOINT;
			r->matched = true;
		}
	}
}
