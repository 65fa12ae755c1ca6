/* SPDX-License-Identifier: MIT */
#include "collect/cpulist.h"

static bool at_end(const struct scan *s)
{
	return scan_end(s) || *s->p == '\n';
}

bool cpulist_parse(struct scan *s, struct cpulist *ret)
{
	struct cpulist l = { 0 };
	struct scan t = *s;
	uint64_t from, to;

	scan_blank(&t);
	while (!at_end(&t)) {
		if (!scan_u64(&t, &from))
			return false;
		to = from;
		if (scan_lit(&t, "-") && !scan_u64(&t, &to))
			return false;
		if (to < from || to >= CPULIST_CPUS)
			return false;
		for (; from <= to; from++)
			l.bits[from / 64] |= 1ull << from % 64;
		if (!scan_lit(&t, ",") && !at_end(&t))
			return false;
	}
	*s = t;
	*ret = l;
	return true;
}

unsigned cpulist_count(const struct cpulist *l)
{
	return cpulist_count_both(l, l);
}

unsigned cpulist_count_both(const struct cpulist *a, const struct cpulist *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < CPULIST_CPUS / 64; i++)
		n += (unsigned)__builtin_popcountll(a->bits[i] & b->bits[i]);
	return n;
}
