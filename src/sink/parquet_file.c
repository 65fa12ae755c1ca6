/* SPDX-License-Identifier: MIT */
#include "sink/parquet_file.h"

#include "base/text.h"
#include "sink/parquet_page.h"
#include "sink/thrift.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Numbers of parquet.thrift. */
enum { REQUIRED = 0, OPTIONAL = 1 };
enum { CONVERTED_UTF8 = 0, CONVERTED_TIMESTAMP_MICROS = 10 };
enum { LOGICAL_STRING = 1, LOGICAL_TIMESTAMP = 8, UNIT_MICROS = 2 };
enum { VERSION = 1, TEXTS_MOST = 8 << 20 };

static bool has_column(const struct parquet *p, const char *name)
{
	for (size_t i = 0; i < p->columns.n; i++)
		if (strcmp(p->columns.v[i].name, name) == 0)
			return true;
	return false;
}

/* Readers address columns by name: two of the same would hide each other. */
void parquet_column(struct parquet *p, const char *name, enum parquet_type type, bool optional)
{
	char safe[160], unique[200];
	struct parquet_column *c;

	text_safe_copy(safe, sizeof(safe), name[0] ? name : "_");
	text_copy(unique, sizeof(unique), safe);
	for (unsigned i = 2; has_column(p, unique); i++)
		snprintf(unique, sizeof(unique), "%s_%u", safe, i);
	c = vec_push(&p->columns);
	if (!c) {
		p->failed = true;
		return;
	}
	c->type = type;
	c->optional = optional;
	c->name = strdup(unique);
	if (!c->name) {
		p->columns.n--;
		p->failed = true;
	}
}

void parquet_begin(struct parquet *p, struct buf *out)
{
	/* A record of 256 MB may have some thousand groups; each takes about 120 bytes a column. */
	buf_init(&p->groups, (size_t)256 << 20);
	buf_str(out, "PAR1");
	p->at = 4;
}

/* The column, when this row has no value in it yet. */
static struct parquet_column *fresh(struct parquet *p, size_t column)
{
	struct parquet_column *c = column < p->columns.n ? &p->columns.v[column] : NULL;

	return c && c->there.n <= p->rows ? c : NULL;
}

static void note(struct parquet *p, struct parquet_column *c, bool is_there)
{
	uint8_t *there = vec_push(&c->there);

	if (there)
		*there = is_there;
	else
		p->failed = true;
}

void parquet_int(struct parquet *p, size_t column, int64_t v)
{
	struct parquet_column *c = fresh(p, column);
	int64_t *slot = c ? vec_push(&c->ints) : NULL;

	p->failed |= c && !slot;
	if (!slot)
		return;
	*slot = v;
	note(p, c, true);
}

void parquet_double(struct parquet *p, size_t column, double v)
{
	struct parquet_column *c = fresh(p, column);
	double *slot;

	if (!c || (c->optional && !isfinite(v)))
		return;
	slot = vec_push(&c->doubles);
	p->failed |= !slot;
	if (!slot)
		return;
	*slot = v;
	note(p, c, true);
}

/* The number of a text in the dictionary of its group; new ones are added. */
static bool word_id(struct parquet_column *c, const char *s, size_t n, uint32_t *ret)
{
	uint64_t hash = 1469598103934665603ull; /* FNV-1a */
	uint32_t length = (uint32_t)n, *word;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (unsigned char)s[i]) * 1099511628211ull;
	for (hash = map_mix(hash); map_get(&c->word_of, hash, ret); hash++) {
		const char *have = c->texts.data + c->words.v[*ret];

		if (memcmp(have, &length, sizeof(length)) == 0 &&
		    memcmp(have + sizeof(length), s, n) == 0)
			return true;
	}
	word = vec_push(&c->words);
	if (!word)
		return false;
	*word = (uint32_t)c->texts.len;
	*ret = (uint32_t)(c->words.n - 1);
	buf_put(&c->texts, &length, sizeof(length)); /* little-endian, as are we */
	buf_put(&c->texts, s, n);
	return buf_ok(&c->texts) && map_put(&c->word_of, hash, *ret);
}

void parquet_text(struct parquet *p, size_t column, const char *s)
{
	struct parquet_column *c = fresh(p, column);
	uint32_t id, *slot;

	if (!c || !s)
		return;
	buf_reset(&p->safe);
	text_safe(&p->safe, s, strlen(s));
	slot = vec_push(&c->ids);
	if (!slot || !buf_ok(&p->safe) || !word_id(c, buf_text(&p->safe), p->safe.len, &id)) {
		p->failed = true;
		return;
	}
	*slot = id;
	note(p, c, true);
}

/* A value for a column that may not be without. */
static void put_nothing(struct parquet *p, size_t column)
{
	struct parquet_column *c = &p->columns.v[column];

	if (c->optional)
		note(p, c, false);
	else if (c->type == PARQUET_TEXT)
		parquet_text(p, column, "");
	else if (c->type == PARQUET_DOUBLE)
		parquet_double(p, column, 0);
	else
		parquet_int(p, column, 0);
}

static void empty(struct parquet_column *c)
{
	c->there.n = c->ints.n = c->doubles.n = c->ids.n = c->words.n = 0;
	buf_reset(&c->texts);
	map_clear(&c->word_of);
}

/* RowGroup: 1 columns, 2 bytes before packing, 3 rows, 5 where it begins, 6 bytes. */
static int end_group(struct parquet *p, struct buf *out)
{
	struct thrift group = { .out = &p->groups };
	uint64_t begin = p->at, unpacked = 0;
	int r = 0;

	if (!p->rows)
		return 0;
	thrift_list(&group, 1, THRIFT_STRUCT, p->columns.n);
	for (size_t i = 0; i < p->columns.n && r == 0; i++) {
		r = parquet_chunk(p, &p->columns.v[i], &unpacked, out);
		empty(&p->columns.v[i]);
	}
	thrift_i64(&group, 2, (int64_t)unpacked);
	thrift_i64(&group, 3, p->rows);
	thrift_i64(&group, 5, (int64_t)begin);
	thrift_i64(&group, 6, (int64_t)(p->at - begin));
	thrift_end(&group);
	p->n_groups++;
	p->rows = 0;
	return r < 0 ? r : buf_ok(&p->groups) ? 0 : -ENOMEM;
}

int parquet_row(struct parquet *p, struct buf *out)
{
	size_t texts = 0;

	for (size_t i = 0; i < p->columns.n; i++) {
		if (p->columns.v[i].there.n <= p->rows)
			put_nothing(p, i);
		texts += p->columns.v[i].texts.len;
	}
	p->rows++;
	p->all_rows++;
	if (p->failed)
		return -ENOMEM;
	return p->rows >= PARQUET_GROUP_ROWS || texts > TEXTS_MOST ? end_group(p, out) : 0;
}

/* SchemaElement: 1 type, 3 optional or not, 4 name, 5 children, 6 and 10 what it means, as readers of
 * before and after 2018 ask for it. */
static void put_schema(const struct parquet_column *c, struct buf *out)
{
	struct thrift t = { .out = out }, logical, kind, unit;

	thrift_i32(&t, 1, parquet_physical(c->type));
	thrift_i32(&t, 3, c->optional ? OPTIONAL : REQUIRED);
	thrift_text(&t, 4, c->name);
	if (c->type == PARQUET_TEXT || c->type == PARQUET_TIME) {
		thrift_i32(&t, 6,
			   c->type == PARQUET_TEXT ? CONVERTED_UTF8 : CONVERTED_TIMESTAMP_MICROS);
		logical = thrift_struct(&t, 10);
		kind = thrift_struct(&logical,
				     c->type == PARQUET_TEXT ? LOGICAL_STRING : LOGICAL_TIMESTAMP);
		if (c->type == PARQUET_TIME) {
			thrift_bool(&kind, 1, true); /* UTC */
			unit = thrift_struct(&kind, 2);
			struct thrift micros = thrift_struct(&unit, UNIT_MICROS);

			thrift_end(&micros);
			thrift_end(&unit);
		}
		thrift_end(&kind);
		thrift_end(&logical);
	}
	thrift_end(&t);
}

/* KeyValue: 1 key, 2 value. */
static void put_words(struct thrift *t, const struct parquet_word *words, struct parquet *p)
{
	size_t n = 0;

	while (words[n].key)
		n++;
	thrift_list(t, 5, THRIFT_STRUCT, n);
	for (size_t i = 0; i < n; i++) {
		struct thrift word = { .out = t->out };

		buf_reset(&p->safe);
		text_safe(&p->safe, words[i].value, strlen(words[i].value));
		thrift_text(&word, 1, words[i].key);
		thrift_text(&word, 2, buf_text(&p->safe));
		thrift_end(&word);
	}
}

/* FileMetaData: 1 version, 2 schema, 3 rows, 4 groups, 5 words, 6 who wrote it. */
int parquet_end(struct parquet *p, const struct parquet_word *words, struct buf *out)
{
	struct thrift t = { .out = out }, root = { .out = out };
	size_t before;
	uint32_t length;
	int r = end_group(p, out);

	if (r < 0 || p->failed)
		return r < 0 ? r : -ENOMEM;
	before = out->len;
	thrift_i32(&t, 1, VERSION);
	thrift_list(&t, 2, THRIFT_STRUCT, p->columns.n + 1);
	thrift_text(&root, 4, "spotter");
	thrift_i32(&root, 5, (int32_t)p->columns.n);
	thrift_end(&root);
	for (size_t i = 0; i < p->columns.n; i++)
		put_schema(&p->columns.v[i], out);
	thrift_i64(&t, 3, (int64_t)p->all_rows);
	thrift_list(&t, 4, THRIFT_STRUCT, p->n_groups);
	buf_put(out, buf_text(&p->groups), p->groups.len);
	put_words(&t, words, p);
	thrift_text(&t, 6, "spotter version " SPOTTER_VERSION);
	thrift_end(&t);
	length = (uint32_t)(out->len - before);
	buf_put(out, &length, sizeof(length));
	buf_str(out, "PAR1");
	return 0;
}

void parquet_done(struct parquet *p)
{
	for (size_t i = 0; i < p->columns.n; i++) {
		struct parquet_column *c = &p->columns.v[i];

		free(c->name);
		vec_done(&c->there);
		vec_done(&c->ints);
		vec_done(&c->doubles);
		vec_done(&c->ids);
		vec_done(&c->words);
		buf_done(&c->texts);
		map_done(&c->word_of);
	}
	vec_done(&p->columns);
	buf_done(&p->groups);
	buf_done(&p->page);
	buf_done(&p->packed);
	buf_done(&p->header);
	buf_done(&p->safe);
	parquet_zstd_done(p);
}
