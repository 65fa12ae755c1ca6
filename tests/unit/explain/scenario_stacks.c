/* SPDX-License-Identifier: MIT
 *
 * Stacks of a scenario: places, stacks, and what threads do, as slices of a second.
 */
#include "../unit.h"

#include "scenario.h"

#include <math.h>
#include <stdlib.h>

static double number(const char *word)
{
	char *end;
	double v = strtod(word, &end);

	if (*end || end == word)
		fail_msg("not a number: '%s'", word);
	return v;
}

/* The rest of a line as one text. */
static void join(char *const *words, size_t n, char *text, size_t size)
{
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < n && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%s", i ? " " : "", words[i]);
}

static void parse_place(struct scenario *s, char *const *words, size_t n)
{
	char source[200] = "", file[300];
	struct place p = { .kind = PLACE_PYTHON, .source = source };

	if (strcmp(words[0], "keeps") == 0)
		p.kind = PLACE_KEEPS;
	else if (strcmp(words[0], "range") == 0)
		p.kind = PLACE_DOES;
	assert_true(n >= 5);
	snprintf(file, sizeof(file), "%s", words[2]);
	for (char *c = file; *c; c++)
		*c = *c == '~' ? ' ' : *c;
	p.file = file;
	p.line = (int32_t)number(words[3]);
	p.function = words[4];
	if (n > 6 && strcmp(words[5], "source") == 0)
		join(words + 6, n - 6, source, sizeof(source));
	else if (n > 5)
		fail_msg("place: '%s'?", words[5]);
	assert_int_equal(stack_book_set_place(&s->book, (uint32_t)number(words[1]), &p), 0);
}

static void parse_native(struct scenario *s, char *const *words, size_t n)
{
	struct place p = { .kind = PLACE_NATIVE, .source = "" };

	assert_true(n == 3 || n == 4);
	p.file = words[2];
	p.function = n > 3 ? words[3] : "";
	assert_int_equal(stack_book_set_place(&s->book, (uint32_t)number(words[1]), &p), 0);
}

static void parse_stack(struct scenario *s, char *const *words, size_t n)
{
	struct scenario_stack *x = vec_push(&s->stacks);

	assert_true(x && n > 3 && strcmp(words[2], "=") == 0);
	*x = (struct scenario_stack){ .id = (uint32_t)number(words[1]) };
	for (size_t i = 3; i < n; i++) {
		uint32_t place = (uint32_t)number(words[i]);

		if (!stack_book_find_place(&s->book, place))
			fail_msg("stack: no place %u", place);
		x->node = stack_book_node(&s->book, x->node, place);
		assert_true(x->node > 0);
	}
}

static uint32_t node_of(const struct scenario *s, uint32_t id)
{
	for (size_t i = 0; id && i < s->stacks.n; i++)
		if (s->stacks.v[i].id == id)
			return s->stacks.v[i].node;
	if (id)
		fail_msg("no stack %u", id);
	return 0;
}

static uint8_t kind_of(const char *word)
{
	enum wait_kind k = wait_kind_by_name(word);

	if (k == WAIT_UNKNOWN && strcmp(word, wait_kind_name(WAIT_UNKNOWN)) != 0)
		fail_msg("nothing a thread does: '%s'", word);
	return (uint8_t)k;
}

static uint8_t flag_of(const char *word)
{
	static const struct {
		const char *name;
		enum stack_flag flag;
	} flags[] = {
		{ "gil", STACK_GIL },           { "gc", STACK_GC },
		{ "partial", STACK_PARTIAL },   { "joined", STACK_JOINED },
		{ "unproven", STACK_UNPROVEN }, { "held", STACK_HELD },
		{ "python", STACK_PYTHON },
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (strcmp(flags[i].name, word) == 0)
			return (uint8_t)flags[i].flag;
	fail_msg("does: '%s'?", word);
	return 0;
}

static void parse_does(struct scenario *s, char *const *words, size_t n)
{
	struct scenario_does x = { .to = -1 };

	assert_true(n >= 5);
	x.row.node = node_of(s, (uint32_t)number(words[2]));
	x.row.kind = kind_of(words[3]);
	x.row.flags = x.row.node ? STACK_PYTHON : 0;
	x.share = number(words[4]);
	for (size_t i = 5; i < n; i++) {
		bool more = i + 1 < n;

		if (more && strcmp(words[i], "peer") == 0)
			x.row.peer = (uint32_t)number(words[++i]);
		else if (more && strcmp(words[i], "on") == 0)
			x.row.on = kind_of(words[++i]);
		else if (more && strcmp(words[i], "from") == 0)
			x.from = number(words[++i]);
		else if (more && strcmp(words[i], "to") == 0)
			x.to = number(words[++i]);
		else
			x.row.flags |= flag_of(words[i]);
	}
	for (const char *p = words[1]; *p;) {
		struct scenario_does *slot = vec_push(&s->does);
		char *end;

		assert_non_null(slot);
		*slot = x;
		slot->row.entity = (uint32_t)strtoul(p, &end, 10);
		assert_true(end > p && (!*end || *end == ','));
		p = *end ? end + 1 : end;
	}
}

bool scenario_stack_line(struct scenario *s, char *const *words, size_t n)
{
	/* what was found in source files is told as a place is */
	if (strcmp(words[0], "place") == 0 || strcmp(words[0], "keeps") == 0 ||
	    strcmp(words[0], "range") == 0)
		parse_place(s, words, n);
	else if (strcmp(words[0], "native") == 0)
		parse_native(s, words, n);
	else if (strcmp(words[0], "stack") == 0)
		parse_stack(s, words, n);
	else if (strcmp(words[0], "does") == 0)
		parse_does(s, words, n);
	else
		return false;
	return true;
}

static void put_book(const struct stack_book *b, struct frame *f)
{
	for (uint32_t i = 1; i <= b->places.n; i++)
		frame_place(f, i, stack_book_find_place(b, i));
	for (uint32_t i = 1; i <= b->nodes.n; i++)
		frame_node(f, i, stack_book_find_node(b, i));
}

/* Samples up to a second: rounded there and not in each slice, so that shares stay exact. */
static double samples_until(const struct scenario_does *x, double hz, double from, double to)
{
	return to > from ? floor(hz * x->share * (to - from) + 0.5) : 0;
}

void scenario_put_stacks(const struct scenario *s, struct frame *f, double to)
{
	double hz = s->stack_hz > 0 ? s->stack_hz : SCENARIO_STACK_HZ;

	if (s->no_stacks || !s->does.n)
		return;
	if (to < 1.5)
		put_book(&s->book, f);
	f->stacks_to_ns = s->run.started_mono_ns + llround(to * 1e9);
	f->stacks_from_ns = f->stacks_to_ns - 1000000000;
	for (size_t i = 0; i < s->does.n; i++) {
		const struct scenario_does *x = &s->does.v[i];
		struct stack_row row = x->row;
		double from, end;

		scenario_life(s, row.entity, &from, &end);
		from = fmax(from, x->from);
		end = x->to >= 0 ? fmin(end, x->to) : end;
		row.count = (uint32_t)(samples_until(x, hz, from, fmin(to, end)) -
				       samples_until(x, hz, from, fmin(to - 1, end)));
		row.weight_ns = llround(row.count * (1e9 / hz));
		if (row.count)
			frame_stack(f, &row);
	}
}
