/* SPDX-License-Identifier: MIT
 *
 * From an address to the function that covers it: an image's dynamic symbols, sorted by address, read
 * once. Names stay in the target until somebody asks for one. A function without a size covers
 * nothing: what comes behind it may be another one that is not exported.
 */
#include "stack/native/process.h"

#include <elf.h>
#include <errno.h>

#define READ_AT_ONCE 2048       /* symbols, 48 KB */
#define SYMBOLS_MAX  (1u << 21) /* of a file: 48 MB are read over */
#define NAME_MAX_N   4096
#define INDIRECT_MAX 1024
#define ALIASES_MAX  32 /* names of one address that are compared */

/* The largest index in a hash bucket. */
static int largest_bucket(struct mem *m, uint64_t buckets, uint32_t n, uint32_t *ret)
{
	uint32_t some[1024];

	*ret = 0;
	for (uint32_t i = 0; i < n;) {
		uint32_t part = n - i < 1024 ? n - i : 1024;
		int r = mem_read(m, buckets + 4ull * i, some, part * 4);

		if (r < 0)
			return r;
		for (uint32_t k = 0; k < part; k++)
			*ret = some[k] > *ret ? some[k] : *ret;
		i += part;
	}
	return 0;
}

/* No field says how many dynamic symbols there are. Those of the GNU hash table lie bucket behind
 * bucket, a set lowest bit ends each: the last one's end is the end. */
static int count_gnu(struct mem *m, const struct elf_image *elf, uint32_t *ret_first, uint32_t *ret)
{
	uint32_t head[4], last, link, step;
	uint64_t buckets;
	int r = mem_read(m, elf->gnu_hash, head, sizeof(head));

	if (r < 0)
		return r;
	if (head[0] > SYMBOLS_MAX || head[2] > SYMBOLS_MAX)
		return -ENOENT;
	buckets = elf->gnu_hash + sizeof(head) + 8ull * head[2];
	r = largest_bucket(m, buckets, head[0], &last);
	if (r < 0)
		return r;
	*ret_first = *ret = head[1];
	if (last < head[1] || last > SYMBOLS_MAX)
		return last > SYMBOLS_MAX ? -ENOENT : 0;
	for (step = 0; step < 4096; step++, last++) {
		r = mem_read(m, buckets + 4ull * head[0] + 4ull * (last - head[1]), &link, 4);
		if (r < 0)
			return r;
		if (link & 1) {
			*ret = last + 1;
			return 0;
		}
	}
	return -ENOENT;
}

static int count(struct mem *m, const struct elf_image *elf, uint32_t *ret_first, uint32_t *ret)
{
	uint32_t head[2];
	int r;

	if (elf->gnu_hash)
		return count_gnu(m, elf, ret_first, ret);
	r = elf->old_hash ? mem_read(m, elf->old_hash, head, sizeof(head)) : -ENOENT;
	if (r < 0)
		return r;
	*ret_first = 1;
	*ret = head[1];
	return head[1] <= SYMBOLS_MAX ? 0 : -ENOENT;
}

static bool keep(const struct elf_image *elf, native_symbols *symbols, native_symbols *indirect,
		 const Elf64_Sym *symbol)
{
	uint64_t start = symbol->st_value + elf->bias - elf->start, span = elf->end - elf->start;
	unsigned type = ELF64_ST_TYPE(symbol->st_info);
	struct native_symbol *slot;

	if (symbol->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC) ||
	    !symbol->st_size || start >= span || symbol->st_size > span - start ||
	    start > UINT32_MAX || symbol->st_size > UINT32_MAX || symbol->st_name >= elf->strings_n)
		return true;
	if (symbols->n == NATIVE_SYMBOLS || indirect->n == INDIRECT_MAX)
		return false;
	slot = type == STT_FUNC ? vec_push(symbols) : vec_push(indirect);
	if (!slot)
		return false;
	*slot =
	    (struct native_symbol){ (uint32_t)start, (uint32_t)symbol->st_size, symbol->st_name };
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct native_symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* By address, 11 bits at a time: of the 6 ms that 35,000 symbols took with qsort(), 2 are left; libtorch
 * has four times as many. The result takes no more room than it needs. */
static void sort_symbols(native_symbols *s)
{
	struct native_symbol *to = malloc(s->n * sizeof(*to)), *from = s->v;
	size_t i, k;

	if (!to) {
		qsort(s->v, s->n, sizeof(s->v[0]), by_start);
		return;
	}
	for (unsigned shift = 0; shift < 33; shift += 11) {
		uint32_t next[2049] = { 0 };
		struct native_symbol *swap = from;

		for (i = 0; i < s->n; i++)
			next[(from[i].start >> shift & 2047) + 1]++;
		for (i = 0; i < 2048; i++)
			next[i + 1] += next[i];
		for (i = 0; i < s->n; i++)
			to[next[from[i].start >> shift & 2047]++] = from[i];
		from = to;
		to = swap;
	}
	free(to); /* three passes: the result is in the new one */
	s->v = from;
	s->cap = s->n;
	for (i = 0; i < s->n; i = k) { /* names of one address, by size */
		for (k = i + 1; k < s->n && s->v[k].start == s->v[i].start; k++)
			;
		if (k - i > 1)
			qsort(s->v + i, k - i, sizeof(s->v[0]), by_start);
	}
}

/* 0; -errno: the process is gone, or hides them. What was read before that is right. */
static int read_symbols(struct mem *m, const struct elf_image *elf, native_symbols *symbols,
			native_symbols *indirect)
{
	Elf64_Sym some[READ_AT_ONCE];
	uint32_t i, n;
	int r = count(m, elf, &i, &n);

	while (r == 0 && i < n) {
		uint32_t part = n - i < READ_AT_ONCE ? n - i : READ_AT_ONCE;

		r = mem_read(m, elf->symbols + i * sizeof(some[0]), some, part * sizeof(some[0]));
		for (uint32_t k = 0; r == 0 && k < part; k++)
			if (!keep(elf, symbols, indirect, &some[k]))
				n = i; /* the table is full: what is in it stays right */
		i += part;
	}
	return r;
}

/* What one process cannot give, another one may: others are not left with the part that was read. */
static void fill(struct native_process *p, struct native_image *image)
{
	struct native_table *t = image->table;
	native_symbols symbols = { 0 }, indirect = { 0 };
	int r = read_symbols(p->mem, &image->elf, &symbols, &indirect);

	image->unreadable = r < 0;
	if (r == 0 || !t->key.inode) {
		t->early = !native_chosen(p->mem, image, &indirect, &symbols);
		t->early_n += t->early;
		if (symbols.n)
			sort_symbols(&symbols);
		t->symbols = symbols;
		native_table_filled(p->shared, t);
	} else {
		vec_done(&symbols);
	}
	vec_done(&indirect);
}

uint32_t native_symbol(struct native_process *p, struct native_image *image, uint64_t address)
{
	struct native_table *t = image->table;
	uint64_t at = address - image->elf.start;
	size_t low = 0, high;

	if (!t->symbols_read && !image->unreadable && image->elf.symbols)
		fill(p, image);
	t->used = ++p->shared->uses;
	high = t->symbols.n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->symbols.v[middle].start <= at)
			low = middle + 1;
		else
			high = middle;
	}
	/* The nearest below may be a short one inside a long one: a few steps back are looked at. */
	for (unsigned i = 0; i < 4 && low; i++, low--) {
		const struct native_symbol *s = &t->symbols.v[low - 1];

		if (at - s->start < s->size)
			return (uint32_t)(low - 1);
	}
	return NATIVE_NONE;
}

/* Length of the name, 0: unreadable. */
static size_t read_name(struct mem *m, const struct elf_image *elf, uint32_t name,
			char to[NAME_MAX_N])
{
	static const size_t tries[] = { 128, NAME_MAX_N };

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		uint64_t n = elf->strings_n - name < tries[i] ? elf->strings_n - name : tries[i];
		const char *end;

		if (mem_read(m, elf->strings + name, to, n) < 0)
			return 0;
		end = memchr(to, 0, n);
		if (end)
			return (size_t)(end - to);
	}
	return 0; /* a name that long is not shown in part: a part may be another's */
}

/* How little a name is wanted where an address has several: "poll", not "__poll"; names of old BSD
 * that hardly anybody writes come last. */
static size_t oddness(const char *name)
{
	static const char *const old[] = { "bcmp", "index", "rindex" };

	for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++)
		if (strcmp(name, old[i]) == 0)
			return 1;
	return 2 * strspn(name, "_");
}

/* The least odd, the shortest, the first in the alphabet: so that it is always the same. Where memcpy
 * and memmove are one piece of code, it is called memcpy. */
static bool better(const char *a, size_t a_n, const char *b, size_t b_n)
{
	if (oddness(a) != oddness(b))
		return oddness(a) < oddness(b);
	if (a_n != b_n)
		return a_n < b_n;
	return strcmp(a, b) < 0;
}

const char *native_symbol_name(struct native_process *p, const struct native_image *image,
			       uint32_t symbol)
{
	const native_symbols *of = &image->table->symbols;
	const struct native_symbol *all = of->v, is = all[symbol];
	char best[NAME_MAX_N], next[NAME_MAX_N];
	const char *kept = native_name_find(p->shared, image->table, &is);
	size_t best_n = 0, n;

	if (kept)
		return kept;
	while (symbol && all[symbol - 1].start == is.start && all[symbol - 1].size == is.size)
		symbol--;
	for (unsigned i = 0; i < ALIASES_MAX && symbol < of->n; i++, symbol++) {
		if (all[symbol].start != is.start || all[symbol].size != is.size)
			break;
		n = read_name(p->mem, &image->elf, all[symbol].name, next);
		if (!n || (best_n && !better(next, n, best, best_n)))
			continue;
		memcpy(best, next, n + 1);
		best_n = n;
	}
	kept = native_name_keep(p->shared, image->table, &is, best, best_n);
	return kept ? kept : names_keep(&p->names, best, best_n);
}
