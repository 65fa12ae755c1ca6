/* SPDX-License-Identifier: MIT */
#include "base/opt.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/text.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool takes_value(const struct opt *o)
{
	return o->kind != OPT_FLAG && o->kind != OPT_UNFLAG;
}

static const struct opt *by_name(const struct opt *opts, const char *name, size_t n)
{
	for (const struct opt *o = opts; o->kind != OPT_NONE; o++)
		if (strlen(o->name) == n && memcmp(o->name, name, n) == 0)
			return o;
	return NULL;
}

static const struct opt *by_letter(const struct opt *opts, char letter)
{
	for (const struct opt *o = opts; o->kind != OPT_NONE; o++)
		if (o->letter && o->letter == letter)
			return o;
	return NULL;
}

static int unknown(const struct opt *opts, const char *word, struct err *e)
{
	const struct opt *best = NULL;
	unsigned best_distance = 3; /* a hint further off would puzzle */
	char name[64];

	text_safe_copy(name, sizeof(name), word);
	err_set(e, -EINVAL, "unknown option '%s'", name);
	name[strcspn(name, "=")] = '\0';
	for (const struct opt *o = opts; o->kind != OPT_NONE; o++) {
		const char *typed = name + strspn(name, "-");
		unsigned d = o->hidden ? 99 : text_distance(o->name, typed);

		if (d >= best_distance || d >= strlen(typed))
			continue;
		best_distance = d;
		best = o;
	}
	if (best)
		err_hint(e, "did you mean '--%s'?", best->name);
	return -EINVAL;
}

static int bad_value(const struct opt *o, const char *value, const char *want, struct err *e)
{
	char shown[80];

	text_safe_copy(shown, sizeof(shown), value);
	err_set(e, -EINVAL, "'--%s %s': %s", o->name, shown, want);
	return -EINVAL;
}

static const char *range_text(const struct opt *o, double v, char *buf, size_t size)
{
	switch (o->kind) {
	case OPT_SIZE:
		return num_bytes(v, buf, size);
	case OPT_DURATION:
		return num_seconds(v, buf, size);
	case OPT_RATIO:
		snprintf(buf, size, "%g %%", v * 100);
		return buf;
	default:
		snprintf(buf, size, "%g", v);
		return buf;
	}
}

static int check_range(const struct opt *o, const char *value, double v, struct err *e)
{
	char want[96], low[32], high[32];

	if (o->min >= o->max || (v >= o->min && v <= o->max))
		return 0;
	range_text(o, o->min, low, sizeof(low));
	range_text(o, o->max, high, sizeof(high));
	snprintf(want, sizeof(want), "must be between %s and %s", low, high);
	return bad_value(o, value, want, e);
}

static int store_number(const struct opt *o, const char *value, void *at, struct err *e)
{
	double number;
	int64_t integer;
	uint64_t size;
	int r;

	switch (o->kind) {
	case OPT_INT:
		if (!num_parse_i64(value, &integer))
			return bad_value(o, value, "expected a whole number", e);
		r = check_range(o, value, (double)integer, e);
		if (!r)
			*(int64_t *)at = integer;
		return r;
	case OPT_NUMBER:
		if (!num_parse_double(value, &number))
			return bad_value(o, value, "expected a number", e);
		r = check_range(o, value, number, e);
		if (!r)
			*(double *)at = number;
		return r;
	case OPT_RATIO:
		if (!num_parse_ratio(value, &number))
			return bad_value(o, value, "expected a share such as 1%", e);
		r = check_range(o, value, number, e);
		if (!r)
			*(double *)at = number;
		return r;
	case OPT_SIZE:
		if (!num_parse_size(value, &size))
			return bad_value(o, value, "expected a size such as 256M", e);
		r = check_range(o, value, (double)size, e);
		if (!r)
			*(uint64_t *)at = size;
		return r;
	default:
		if (!num_parse_duration(value, &integer))
			return bad_value(o, value, "expected a time such as 60s or 5m", e);
		r = check_range(o, value, (double)integer / 1e9, e);
		if (!r)
			*(int64_t *)at = integer;
		return r;
	}
}

bool opt_is_choice(const char *choices, const char *value)
{
	size_t n = strlen(value);

	for (const char *p = choices; *p;) {
		size_t len = strcspn(p, "|");

		if (len == n && memcmp(p, value, n) == 0)
			return true;
		p += len + (p[len] == '|');
	}
	return false;
}

static int store_string(const struct opt *o, const char *value, void *at, struct err *e)
{
	char want[120];

	if (o->choices && !opt_is_choice(o->choices, value)) {
		snprintf(want, sizeof(want), "expected one of %s", o->choices);
		return bad_value(o, value, want, e);
	}
	*(const char **)at = value;
	return 0;
}

static int store(const struct opt *o, const char *value, void *into, struct err *e)
{
	void *at = (char *)into + o->offset;
	struct opt_list *list = at;

	switch (o->kind) {
	case OPT_FLAG:
	case OPT_UNFLAG:
		*(bool *)at = o->kind == OPT_FLAG;
		return 0;
	case OPT_STRING:
		return store_string(o, value, at, e);
	case OPT_LIST:
		if (list->n >= sizeof(list->v) / sizeof(list->v[0]))
			return bad_value(o, value, "given too often", e);
		list->v[list->n++] = value;
		return 0;
	default:
		return store_number(o, value, at, e);
	}
}

/* "--every" without its value: the number stays as the command set it, a string becomes "". */
static int store_bare(const struct opt *o, void *into)
{
	if (o->kind == OPT_STRING)
		*(const char **)((char *)into + o->offset) = "";
	return 1;
}

/* Is the word behind an option whose value may be left out its value? */
static bool takes_next(const struct opt *o, int argc, char **argv)
{
	return !o->optional_arg || (o->next_word && argc >= 2 && argv[1][0] != '-');
}

/* "--name", "--name=VALUE" or "--name VALUE": how many words it took, or -EINVAL. */
static int named_option(const struct opt *o, const char *equals, int argc, char **argv, void *into,
			struct err *e)
{
	int r;

	if (!takes_value(o)) {
		if (equals)
			return err_set(e, -EINVAL, "option '--%s' takes no value", o->name);
		r = store(o, NULL, into, e);
		return r < 0 ? r : 1;
	}
	if (equals) {
		r = store(o, equals + 1, into, e);
		return r < 0 ? r : 1;
	}
	if (!takes_next(o, argc, argv))
		return store_bare(o, into);
	if (argc < 2)
		return err_set(e, -EINVAL, "option '--%s' needs a value: --%s %s", o->name, o->name,
			       o->arg);
	r = store(o, argv[1], into, e);
	return r < 0 ? r : 2;
}

static int long_option(const struct opt *opts, int argc, char **argv, void *into, struct err *e)
{
	const char *name = argv[0] + 2;
	const char *equals = strchr(name, '=');
	const struct opt *o = by_name(opts, name, equals ? (size_t)(equals - name) : strlen(name));

	return o ? named_option(o, equals, argc, argv, into, e) : unknown(opts, argv[0], e);
}

/* "-lms", where a table has such a name; NULL: letters. */
static const struct opt *by_dashed(const struct opt *opts, const char *word)
{
	size_t n = strcspn(word + 1, "=");

	for (const struct opt *o = opts; o->kind != OPT_NONE; o++)
		if (o->dashed && strlen(o->dashed) == n && memcmp(o->dashed, word + 1, n) == 0)
			return o;
	return NULL;
}

/* "-q", "-qn NAME", "-nNAME": how many words it took, or -EINVAL. */
static int short_options(const struct opt *opts, int argc, char **argv, void *into, struct err *e)
{
	const struct opt *dashed = by_dashed(opts, argv[0]);

	if (dashed)
		return named_option(dashed, strchr(argv[0], '='), argc, argv, into, e);
	for (const char *p = argv[0] + 1; *p; p++) {
		const struct opt *o = by_letter(opts, *p);
		const char *value = p + 1;
		int words = 1, r;

		if (!o)
			return unknown(opts, argv[0], e);
		if (!takes_value(o)) {
			r = store(o, NULL, into, e);
			if (r < 0)
				return r;
			continue;
		}
		if (!*value && !takes_next(o, argc, argv))
			return store_bare(o, into);
		if (!*value) {
			if (argc < 2)
				return err_set(e, -EINVAL, "option '-%c' needs a value: -%c %s", *p,
					       *p, o->arg);
			value = argv[1];
			words = 2;
		}
		r = store(o, value, into, e);
		return r < 0 ? r : words;
	}
	return 1;
}

int opt_parse(const struct opt *opts, int argc, char **argv, bool stop_at_word, void *into,
	      struct opt_rest *ret_rest, struct err *e)
{
	struct opt_rest rest = { .v = argv };
	int i = 0;

	while (i < argc) {
		int took;

		if (strcmp(argv[i], "--") == 0) {
			rest.dashes = true;
			i++;
			break;
		}
		if (argv[i][0] != '-' || !argv[i][1]) {
			if (stop_at_word)
				break;
			rest.v[rest.n++] = argv[i++];
			continue;
		}
		took = argv[i][1] == '-' ? long_option(opts, argc - i, argv + i, into, e)
					 : short_options(opts, argc - i, argv + i, into, e);
		if (took < 0)
			return took;
		i += took;
	}
	/* Words found before "--" stay in front; what is behind it follows them. */
	memmove(rest.v + rest.n, argv + i, (size_t)(argc - i) * sizeof(*argv));
	rest.n += argc - i;
	if (rest.n < argc)
		rest.v[rest.n] = NULL; /* it may be exec'ed as it is */
	*ret_rest = rest;
	return 0;
}

enum { HELP_LEFT = 26, HELP_COLUMNS = 80 };

/* The help text behind the left column, broken at blanks. */
static void wrap_help(const char *text, struct buf *out)
{
	size_t column = 0, room = HELP_COLUMNS - HELP_LEFT - 3;

	for (const char *p = text; *p;) {
		size_t n = strcspn(p, " ");

		if (column && column + 1 + n > room) {
			buf_printf(out, "\n%*s", HELP_LEFT + 3, "");
			column = 0;
		}
		buf_printf(out, "%s%.*s", column ? " " : "", (int)n, p);
		column += n + (column != 0);
		p += n + strspn(p + n, " ");
	}
	buf_char(out, '\n');
}

void opt_help(const struct opt *opts, struct buf *out)
{
	for (const struct opt *o = opts; o->kind != OPT_NONE; o++) {
		char left[96];
		const char *arg = o->arg ? o->arg : "";

		if (o->hidden)
			continue;
		snprintf(left, sizeof(left), "%c%c%c --%s%s%s%s", o->letter ? '-' : ' ',
			 o->letter ? o->letter : ' ', o->letter ? ',' : ' ', o->name,
			 o->optional_arg ? "[="
			 : *arg          ? " "
					 : "",
			 arg, o->optional_arg ? "]" : "");
		if (strlen(left) > HELP_LEFT)
			buf_printf(out, "  %s\n%*s", left, HELP_LEFT + 3, "");
		else
			buf_printf(out, "  %-*s ", HELP_LEFT, left);
		wrap_help(o->help, out);
	}
}
