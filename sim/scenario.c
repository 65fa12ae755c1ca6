/* SPDX-License-Identifier: MIT
 *
 * The scenario's parser: lines into words, words by the tables of scenario_words.c.
 */
#include "scenario.h"

#include "base/err.h"
#include "base/num.h"
#include "base/scan.h"
#include "base/text.h"
#include "scenario_words.h"

#include <errno.h>

int scenario_wrong(struct scenario_line *l, const char *what, const char *word)
{
	char safe[80];

	if (word)
		return err_set(l->err, -EINVAL, "line %d: %s: '%s'", l->number, what,
			       text_safe_copy(safe, sizeof(safe), word));
	return err_set(l->err, -EINVAL, "line %d: %s", l->number, what);
}

/* One word, or a text in double quotes without them; false at a stray quote or a long word. */
static bool take_word(struct scan *s, char *ret, size_t size)
{
	const char *from = s->p;
	bool quoted = scan_lit(s, "\"");
	size_t n = 0;

	for (; !scan_end(s); s->p++) {
		if (quoted ? *s->p == '"' : (*s->p == ' ' || *s->p == '\t'))
			break;
		if (n + 1 >= size || (unsigned char)*s->p < ' ' || *s->p == 127)
			return false;
		ret[n++] = *s->p;
	}
	ret[n] = '\0';
	if (!quoted)
		return s->p > from && !strchr(ret, '"');
	return scan_lit(s, "\"") && n > 0 && (scan_end(s) || *s->p == ' ' || *s->p == '\t');
}

/* Where the comment starts: a "#" outside of quotes. */
static void cut_comment(struct scan *s)
{
	bool quoted = false;

	for (const char *p = s->p; p < s->end; p++) {
		quoted ^= *p == '"';
		if (*p == '#' && !quoted) {
			s->end = p;
			return;
		}
	}
}

static int take_words(struct scan s, struct scenario_line *l)
{
	l->indented = !scan_end(&s) && (*s.p == ' ' || *s.p == '\t');
	l->n = l->at = 0;
	cut_comment(&s);
	if (s.end > s.p && s.end[-1] == '\r')
		s.end--;
	for (;;) {
		scan_blank(&s);
		if (scan_end(&s))
			return 0;
		if (l->n == SCENARIO_LINE_WORDS)
			return scenario_wrong(l, "too many words on one line", NULL);
		if (!take_word(&s, l->word[l->n], sizeof(l->word[0])))
			return scenario_wrong(l, "a word is too long or a quote has no end", NULL);
		l->n++;
	}
}

static int take_line(struct scan s, struct scenario_line *l)
{
	int r = take_words(s, l);

	if (r || !l->n)
		return r;
	r = scenario_statement(l);
	if (!r && l->at < l->n)
		return scenario_wrong(l, "not understood here", l->word[l->at]);
	return r;
}

/* Alike GPUs differ in uuid, serial, place on the bus and minor number. */
static void tell_apart(struct scenario *s)
{
	for (int i = 0; i < s->n_devices; i++) {
		struct vgpu_about *a = &s->device[i].about;

		if (!a->uuid[0])
			snprintf(a->uuid, sizeof(a->uuid), "GPU-%08x-5107-7e12-9a3c-%012x",
				 0x4d1c2a00u + (unsigned)i * 0x111u, 0x1005u + (unsigned)i);
		if (!a->serial[0])
			snprintf(a->serial, sizeof(a->serial), "%llu",
				 1650123000100ull + (unsigned)i);
		if (!a->bus)
			a->bus = 0x0f + (uint32_t)i * 8; /* 0000:0f:00.0, 0000:17:00.0, ... */
		if (a->minor < 0)
			a->minor = i;
		for (int p = 0; p < a->n_partitions; p++)
			snprintf(a->partition[p].uuid, sizeof(a->partition[p].uuid),
				 "MIG-%08x-5107-5b6d-8e21-%08x%04x", 0x7b20c100u + (unsigned)p,
				 0x4d1c2a00u + (unsigned)i * 0x111u, (unsigned)p);
	}
}

static void defaults(struct scenario *s)
{
	memset(s, 0, sizeof(*s));
	text_copy(s->driver.version, sizeof(s->driver.version), "590.48.01");
	text_copy(s->driver.nvml_version, sizeof(s->driver.nvml_version), "13.590.48.01");
	s->driver.cuda = 13010;
	s->driver.process_layout = 3;
	s->driver.pcie_read_ms = 20;
}

/* What only the whole of a device can tell. */
static int check_device(const struct scenario_device *d, struct scenario_line *l)
{
	uint64_t left = d->about.memory_total;
	uint64_t taken[] = { d->about.memory_reserved, d->ghost };

	for (int i = 0; i < 2; i++) {
		if (taken[i] > left)
			return scenario_wrong(l, "more memory is reserved and used than there is",
					      d->about.name);
		left -= taken[i];
	}
	for (int i = 0; i < d->n_guests; i++) {
		const struct scenario_guest *g = &d->guest[i];

		if (g->memory != UINT64_MAX && g->memory > left / (uint64_t)g->count)
			return scenario_wrong(l, "its processes hold more memory than it has",
					      d->about.name);
		if (g->memory != UINT64_MAX)
			left -= g->memory * (uint64_t)g->count;
	}
	return 0;
}

int scenario_parse(const char *text, size_t n, struct scenario *ret, struct err *e)
{
	struct scan s = scan_of(text, n), one;
	struct scenario_line l = { .err = e, .scenario = ret };
	int r = 0;

	defaults(ret);
	if (n > SCENARIO_BYTES)
		return err_set(e, -EINVAL, "a scenario of %zu bytes; %d at most", n,
			       SCENARIO_BYTES);
	if (memchr(text, '\0', n))
		return err_set(e, -EINVAL, "not a text: it has a NUL byte");
	while (!r && scan_line(&s, &one)) {
		l.number++;
		r = take_line(one, &l);
	}
	for (int i = 0; !r && i < ret->n_devices; i++)
		r = check_device(&ret->device[i], &l);
	if (!r)
		tell_apart(ret);
	return r;
}
