/* SPDX-License-Identifier: MIT */
#include "explain/keeps/keeps.h"

#include "base/scan.h"
#include "base/text.h"
#include "model/stacks.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *why, *why_long;
} whats[KEEP_WHATS] = {
	[KEEP_LIST] = { "list", "made outside of the loop, gets an entry each time",
			"outlives the function, gets an entry each time" },
	[KEEP_DICT] = { "dict", "made outside of the loop, gets a key each time",
			"outlives the function, gets a key each time" },
	[KEEP_SUM] = { "sum", "adds up tensors together with their graphs",
		       "adds up tensors together with their graphs" },
	[KEEP_GRAPH] = { "graph", "keeps the graph of each backward()",
			 "keeps the graph of each backward()" },
	[KEEP_CACHE] = { "cache", "keeps each result for ever", "keeps each result for ever" },
	[KEEP_OBJECTS] = { "objects",
			   "Python objects, whose pages each forked worker copies as it looks at "
			   "them",
			   "Python objects, whose pages each forked worker copies as it looks at "
			   "them" },
};

void keep_write(const struct keep *k, char *ret, size_t size)
{
	snprintf(ret, size, "%s %s %d %d-%d %s", whats[k->what].name, k->local ? "local" : "long",
		 k->score, (int)k->from, (int)k->to, k->text);
}

static bool read_what(struct scan *s, struct keep *k)
{
	const char *word;
	size_t n;

	if (!scan_word(s, &word, &n))
		return false;
	for (int i = 0; i < KEEP_WHATS; i++)
		if (strlen(whats[i].name) == n && memcmp(whats[i].name, word, n) == 0) {
			k->what = (enum keep_what)i;
			return true;
		}
	return false;
}

static bool read_line_number(struct scan *s, int32_t *ret)
{
	uint64_t v;

	if (!scan_u64(s, &v) || v > INT32_MAX)
		return false;
	*ret = (int32_t)v;
	return true;
}

bool keep_read(const struct place *p, struct keep *ret)
{
	struct scan s;
	const char *word;
	uint64_t score;
	size_t n;

	if (p->kind != PLACE_KEEPS || !p->source || !p->file || !p->file[0] || p->line <= 0)
		return false;
	s = scan_of(p->source, strlen(p->source));
	*ret = (struct keep){ .line = p->line };
	if (!read_what(&s, ret) || !scan_word(&s, &word, &n) || !scan_u64(&s, &score) ||
	    score > 9 || !read_line_number(&s, &ret->from) || !scan_lit(&s, "-") ||
	    !read_line_number(&s, &ret->to))
		return false;
	ret->local = n == 5 && memcmp(word, "local", 5) == 0;
	ret->score = (int)score;
	scan_blank(&s);
	text_safe_copy(ret->text, sizeof(ret->text), s.p);
	return true;
}

const char *keep_why(const struct keep *k)
{
	return k->local ? whats[k->what].why : whats[k->what].why_long;
}
