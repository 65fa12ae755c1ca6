/* SPDX-License-Identifier: MIT */
#include "stack/native/shared.h"

#include "stack/native/files.h"
#include "stack/native/process.h"

#include <errno.h>

int native_shared_open(struct native_shared **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->names.max = NATIVE_NAMES_BYTES;
	return 0;
}

static void drop_symbols(struct native_shared *s, struct native_table *t)
{
	s->counts.bytes -= t->symbols.n * sizeof(t->symbols.v[0]);
	vec_done(&t->symbols);
	t->symbols_read = false;
}

static void remove_table(struct native_shared *s, size_t i)
{
	struct native_table *t = s->tables.v[i];

	drop_symbols(s, t);
	native_locals_done(t);
	free(t);
	s->tables.v[i] = s->tables.v[--s->tables.n];
}

void native_shared_close(struct native_shared *s)
{
	if (!s)
		return;
	while (s->tables.n)
		remove_table(s, s->tables.n - 1);
	vec_done(&s->tables);
	vec_done(&s->rows);
	map_done(&s->row_by_pc);
	names_done(&s->names);
	vec_done(&s->called);
	map_done(&s->called_by_start);
	native_files_close(s->files);
	free(s);
}

struct native_counts native_shared_counts(const struct native_shared *s)
{
	struct native_counts c = s->counts;

	c.tables = s->tables.n;
	return c;
}

static bool same(const struct native_key *a, const struct native_key *b)
{
	return a->inode == b->inode && a->device == b->device && a->span == b->span &&
	       a->strings_n == b->strings_n && a->fingerprint == b->fingerprint &&
	       a->id_n == b->id_n && memcmp(a->id, b->id, a->id_n) == 0;
}

static struct native_table *find_table(struct native_shared *s, const struct native_key *key)
{
	for (size_t i = 0; key->inode && i < s->tables.n; i++)
		if (same(&s->tables.v[i]->key, key))
			return s->tables.v[i];
	return NULL;
}

static struct native_table *new_table(struct native_shared *s, const struct native_key *key)
{
	struct native_table *t = calloc(1, sizeof(*t)), **slot;

	slot = t ? vec_push(&s->tables) : NULL;
	if (!slot) {
		free(t);
		return NULL;
	}
	if (s->next == UINT32_MAX) { /* numbers begin again: what old ones had must be gone */
		map_clear(&s->row_by_pc);
		map_clear(&s->called_by_start);
		s->rows.n = s->called.n = s->next = 0;
		for (size_t i = 0; i + 1 < s->tables.n; i++)
			s->tables.v[i]->number = s->next++;
	}
	t->key = *key;
	t->number = s->next++;
	*slot = t;
	return t;
}

struct native_table *native_table_get(struct native_shared *s, const struct native_key *key)
{
	struct native_table *t = find_table(s, key);

	if (!t)
		t = new_table(s, key);
	if (!t)
		return NULL;
	t->users++;
	t->used = ++s->uses;
	/* In this process the loader may be done. */
	if (t->early && t->early_n < NATIVE_EARLY_MAX)
		drop_symbols(s, t);
	return t;
}

/* Workers are started anew every epoch: what they use is kept for the next ones. */
void native_table_put(struct native_shared *s, struct native_table *t)
{
	size_t idle = 0, oldest = 0;

	if (!t || --t->users)
		return;
	for (size_t i = 0; i < s->tables.n; i++) {
		const struct native_table *x = s->tables.v[i];

		if (x->users)
			continue;
		if (!x->key.inode) { /* nobody finds it again */
			remove_table(s, i);
			return;
		}
		if (!idle++ || x->used < s->tables.v[oldest]->used)
			oldest = i;
	}
	if (idle > NATIVE_IDLE_MAX)
		remove_table(s, oldest);
}

void native_table_filled(struct native_shared *s, struct native_table *t)
{
	s->counts.built++;
	s->counts.bytes += t->symbols.n * sizeof(t->symbols.v[0]);
	t->symbols_read = true;
	while (s->counts.bytes > NATIVE_BYTES_MAX) {
		struct native_table *least = NULL;

		for (size_t i = 0; i < s->tables.n; i++) {
			struct native_table *x = s->tables.v[i];

			if (x != t && x->symbols.n && (!least || x->used < least->used))
				least = x;
		}
		if (!least)
			return; /* one image is never too much: NATIVE_SYMBOLS */
		drop_symbols(s, least);
		s->counts.dropped++;
	}
}

static uint64_t name_key(const struct native_table *t, const struct native_symbol *symbol)
{
	return (uint64_t)t->number << 32 | symbol->start;
}

const char *native_name_find(const struct native_shared *s, const struct native_table *t,
			     const struct native_symbol *symbol)
{
	uint32_t at;

	if (!map_get(&s->called_by_start, name_key(t, symbol), &at) ||
	    s->called.v[at].size != symbol->size)
		return NULL;
	return s->called.v[at].text;
}

const char *native_name_keep(struct native_shared *s, const struct native_table *t,
			     const struct native_symbol *symbol, const char *text, size_t n)
{
	struct native_name *slot;
	const char *kept;
	uint32_t at;

	if (!t->key.inode || !n || s->called.n >= NATIVE_NAMES_MAX ||
	    map_get(&s->called_by_start, name_key(t, symbol), &at))
		return NULL;
	kept = names_keep(&s->names, text, n);
	if (!*kept || !vec_reserve(&s->called, s->called.n + 1) ||
	    !map_put(&s->called_by_start, name_key(t, symbol), (uint32_t)s->called.n))
		return NULL;
	slot = vec_push(&s->called);
	*slot = (struct native_name){ kept, symbol->size };
	return kept;
}

static void move_expression(struct rule *rule, uint64_t start)
{
	if (rule->kind == RULE_EXPRESSION || rule->kind == RULE_VAL_EXPRESSION)
		rule->value = (int64_t)((uint64_t)rule->value - start);
}

const struct native_row *native_row(struct native_shared *s, struct mem *m,
				    const struct native_image *image, uint64_t pc)
{
	uint64_t at = pc - image->elf.start, key = (uint64_t)image->table->number << 32 | at;
	struct native_row *row;
	uint32_t number;

	if (at <= UINT32_MAX && map_get(&s->row_by_pc, key, &number))
		return &s->rows.v[number];
	if (s->rows.n >= NATIVE_ROWS_MAX) {
		map_clear(&s->row_by_pc);
		s->rows.n = 0;
	}
	number = (uint32_t)s->rows.n;
	if (!vec_reserve(&s->rows, s->rows.n + 1))
		return NULL;
	row = &s->rows.v[number];
	if (native_row_find(m, image, pc, row) < 0)
		return NULL;
	move_expression(&row->cfa, image->elf.start);
	for (unsigned i = 0; i < COLUMNS; i++)
		move_expression(&row->of[i], image->elf.start);
	/* Without memory for the key it is found again next time, in the same room. */
	if (at <= UINT32_MAX && map_put(&s->row_by_pc, key, number))
		s->rows.n++;
	return row;
}
