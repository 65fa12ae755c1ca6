/* SPDX-License-Identifier: MIT
 *
 * What the training of a scenario says: steps, phases, scalars.
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

static uint32_t first_process(const struct scenario *s)
{
	for (size_t i = 0; i < s->entities.n; i++)
		if (s->entities.v[i].kind == ENTITY_PROC)
			return s->entities.v[i].id;
	fail_msg("marks before any process");
	return 0;
}

static void add(struct scenario *s, double t, struct frame_mark m, const char *name)
{
	struct scenario_mark *x = vec_push(&s->marks);

	assert_non_null(x);
	*x = (struct scenario_mark){ .t = t, .order = s->marks.n, .mark = m };
	snprintf(x->name, sizeof(x->name), "%s", name);
}

struct steps_line {
	double every, from, loss0, loss1, wait, slow_takes, slow_wait;
	uint64_t first, slow;
	const char *source;
	struct frame_mark mark;
};

static void parse_steps_words(struct steps_line *l, char *const *words, size_t n)
{
	for (size_t i = 2; i + 1 < n; i += 2) {
		const char *key = words[i];

		if (strcmp(key, "every") == 0)
			l->every = number(words[i + 1]);
		else if (strcmp(key, "from") == 0)
			l->from = number(words[i + 1]);
		else if (strcmp(key, "of") == 0)
			l->mark.entity = (uint32_t)number(words[i + 1]);
		else if (strcmp(key, "rank") == 0)
			l->mark.rank = (int32_t)number(words[i + 1]);
		else if (strcmp(key, "loss") == 0)
			l->loss0 = number(words[i + 1]);
		else if (strcmp(key, "to") == 0)
			l->loss1 = number(words[i + 1]);
		else if (strcmp(key, "wait") == 0)
			l->wait = number(words[i + 1]);
		else if (strcmp(key, "source") == 0)
			l->source = words[i + 1];
		else if (strcmp(key, "first") == 0)
			l->first = (uint64_t)number(words[i + 1]);
		else if (strcmp(key, "but") == 0)
			l->slow = (uint64_t)number(words[i + 1]);
		else if (strcmp(key, "takes") == 0)
			l->slow_takes = number(words[i + 1]);
		else if (strcmp(key, "with") == 0)
			l->slow_wait = number(words[i + 1]);
		else
			fail_msg("steps: '%s'?", key);
	}
}

static void parse_steps(struct scenario *s, char *const *words, size_t n)
{
	struct steps_line l = { .every = NAN,
				.from = 0,
				.loss0 = NAN,
				.loss1 = NAN,
				.wait = NAN,
				.slow_wait = NAN,
				.first = 1,
				.mark = { .rank = -1, .entity = first_process(s) } };
	size_t count = (size_t)number(words[1]);
	double t;

	parse_steps_words(&l, words, n);
	assert_true(l.every > 0);
	t = l.from;
	if (l.source) {
		l.mark.type = SAID_SOURCE;
		add(s, t, l.mark, l.source);
	}
	for (size_t i = 0; i < count; i++) {
		struct frame_mark m = l.mark;
		bool slow = l.slow && l.first + i == l.slow;
		double wait = slow && isfinite(l.slow_wait) ? l.slow_wait : l.wait;

		if (isfinite(wait)) {
			m.type = SAID_DATA_WAIT;
			m.value = wait;
			add(s, t + wait, m, "");
		}
		t += slow ? l.slow_takes : l.every;
		m.type = SAID_STEP;
		m.number = l.first + i;
		m.value = count > 1
			      ? l.loss0 + (l.loss1 - l.loss0) * (double)i / (double)(count - 1)
			      : l.loss0;
		add(s, t, m, "");
	}
}

static void parse_said(struct scenario *s, char *const *words, size_t n, bool phase)
{
	struct frame_mark m = { .rank = -1, .entity = first_process(s) };

	assert_true(n == 4 || (n == 6 && strcmp(words[4], "of") == 0));
	if (n == 6)
		m.entity = (uint32_t)number(words[5]);
	if (!phase) {
		m.type = strcmp(words[0], "setting") == 0 ? SAID_SETTING : SAID_SCALAR;
		m.value = number(words[3]);
		add(s, number(words[2]), m, words[1]);
		return;
	}
	m.type = SAID_PHASE_BEGIN;
	add(s, number(words[2]), m, words[1]);
	m.type = SAID_PHASE_END;
	add(s, number(words[3]), m, words[1]);
}

static int by_time(const void *x, const void *y)
{
	const struct scenario_mark *a = x, *b = y;

	if (a->t != b->t)
		return a->t < b->t ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

bool scenario_mark_line(struct scenario *s, char *const *words, size_t n)
{
	if (strcmp(words[0], "steps") == 0)
		parse_steps(s, words, n);
	else if (strcmp(words[0], "phase") == 0 || strcmp(words[0], "scalar") == 0 ||
		 strcmp(words[0], "setting") == 0)
		parse_said(s, words, n, words[0][0] == 'p');
	else
		return false;
	qsort(s->marks.v, s->marks.n, sizeof(*s->marks.v), by_time);
	return true;
}

void scenario_put_marks(const struct scenario *s, struct frame *f, double t, double step)
{
	for (size_t i = 0; i < s->marks.n; i++) {
		const struct scenario_mark *x = &s->marks.v[i];
		struct frame_mark m = x->mark;

		if (x->t > t + 1e-9 || x->t <= t - step + 1e-9)
			continue;
		m.t_ns = s->run.started_mono_ns + llround(x->t * 1e9);
		frame_mark(f, &m, x->name);
	}
}
