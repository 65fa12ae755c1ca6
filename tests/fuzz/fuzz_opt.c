/* SPDX-License-Identifier: MIT
 *
 * The bytes are a command line, words ended by NUL or newline; the first byte says whether the first
 * word ends the options. Whatever it is: no word is lost or invented, what was accepted is in range,
 * and a refusal has a sentence that can be shown.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/opt.h"
#include "base/text.h"
#include "fuzz.h"

#include <errno.h>
#include <string.h>

enum { WORDS_MAX = 64 };

struct options {
	bool quiet, hooks;
	const char *name, *color, *html;
	int64_t count, every;
	double hz, budget;
	uint64_t size;
	struct opt_list tags;
};

static const struct opt table[] = {
	OPT("quiet", 'q', OPT_FLAG, NULL, struct options, quiet, "say nothing"),
	OPT("no-hooks", 0, OPT_UNFLAG, NULL, struct options, hooks, "leave the program alone"),
	OPT("name", 'n', OPT_STRING, "NAME", struct options, name, "call the run NAME"),
	OPT("color", 0, OPT_STRING, "WHEN", struct options, color, "when to use colour",
	    .choices = "auto|always|never"),
	OPT("html", 'H', OPT_STRING, "FILE", struct options, html, "write a page",
	    .optional_arg = true),
	OPT("count", 'c', OPT_INT, "N", struct options, count, "how often", .min = 1, .max = 9),
	OPT("every", 'e', OPT_DURATION, "TIME", struct options, every, "time between lines",
	    .min = 0.1, .max = 60),
	OPT("hz", 0, OPT_NUMBER, "HZ", struct options, hz, "samples a second", .min = 0.1,
	    .max = 100),
	OPT("budget", 0, OPT_RATIO, "SHARE", struct options, budget, "share of one core"),
	OPT("max-size", 0, OPT_SIZE, "SIZE", struct options, size, "largest file", .min = 1024,
	    .max = 1e12),
	OPT("tag", 't', OPT_LIST, "TAG", struct options, tags, "a word to find it by"),
	OPT("secret", 0, OPT_FLAG, NULL, struct options, quiet, "not shown", .hidden = true),
	OPT_END,
};

/* Cuts text into words in place. */
static int split(char *text, size_t n, char **argv)
{
	int argc = 0;
	char *start = text;

	for (size_t i = 0; i < n && argc < WORDS_MAX; i++) {
		if (text[i] != '\n' && text[i] != '\0')
			continue;
		text[i] = '\0';
		argv[argc++] = start;
		start = text + i + 1;
	}
	return argc;
}

static bool is_one_of(char *word, char *const *words, int n)
{
	for (int i = 0; i < n; i++)
		if (words[i] == word)
			return true;
	return false;
}

static void check_values(const struct options *o)
{
	must(!o->color || opt_is_choice("auto|always|never", o->color), "a choice is one of them");
	must(o->count == 5 || (o->count >= 1 && o->count <= 9), "an accepted number is in range");
	must(o->every == 7 || (o->every >= 100000000 && o->every <= 60000000000ll),
	     "an accepted time is in range");
	must(o->hz >= 0.1 && o->hz <= 100, "an accepted rate is in range");
	must(o->tags.n <= sizeof(o->tags.v) / sizeof(o->tags.v[0]), "a list has an end");
	for (size_t i = 0; i < o->tags.n; i++)
		must(o->tags.v[i] != NULL, "a value of a list is a word");
}

static void check_refusal(const struct err *e)
{
	must(e->code == -EINVAL, "wrong usage is -EINVAL");
	must(e->text[0] != '\0', "a refusal has a sentence");
	must(strlen(e->text) < sizeof(e->text) && strlen(e->hint) < sizeof(e->hint), "it fits");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct options o = { .count = 5, .every = 7, .hz = 10 };
	char *argv[WORDS_MAX + 1], *before[WORDS_MAX + 1];
	struct buf text = { 0 };
	struct opt_rest rest = { .n = -1 };
	struct err e = { 0 };
	int argc, r;

	if (!n)
		return 0;
	buf_put(&text, data + 1, n - 1);
	buf_char(&text, '\n');
	argc = split(text.data, text.len, argv);
	memcpy(before, argv, sizeof(*argv) * (size_t)argc);
	r = opt_parse(table, argc, argv, data[0] & 1, &o, &rest, &e);
	must(r == 0 || r == -EINVAL, "it parses or it is wrong usage");
	if (r < 0) {
		check_refusal(&e);
	} else {
		check_values(&o);
		must(e.code == 0, "no error without a refusal");
		must(rest.n >= 0 && rest.n <= argc, "no more words come out than went in");
		for (int i = 0; i < rest.n; i++)
			must(is_one_of(rest.v[i], before, argc), "a word that is left was given");
		for (int i = 0; i + 1 < rest.n && rest.dashes && (data[0] & 1); i++)
			must(rest.v[i] < rest.v[i + 1], "words stay in order");
	}
	buf_done(&text);
	return 0;
}
