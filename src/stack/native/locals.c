/* SPDX-License-Identifier: MIT
 *
 * Functions that an image does not export, as its file names them (files.h): those that were asked for,
 * and the addresses that none covers. An address that is not known yet is put on the table's list, which
 * is asked about as a whole when the answer to the last question is there and some time has passed: the
 * longer that took, the longer.
 */
#include "stack/native/files.h"
#include "stack/native/process.h"

#include <errno.h>

#define LOCALS_MAX   8192       /* functions, and addresses without one, of an image: 200 KB */
#define ASK_AGAIN    20000000ll /* ns */
#define ASK_SHARE    200
#define PATIENCE     5000000000ll /* ns; storage that hangs: then there are no names */
#define REFUSALS_MAX 3 /* processes that were gone or hide their root; or no thread to ask */

/* The last function at or below an address, or NULL. */
static const struct native_local *below(const struct native_table *t, uint32_t at, size_t *ret)
{
	size_t low = 0, high = t->locals.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->locals.v[middle].start <= at)
			low = middle + 1;
		else
			high = middle;
	}
	*ret = low;
	return low ? &t->locals.v[low - 1] : NULL;
}

/* Keeps a function, or that there is none (size 1, no name). */
static void keep(struct native_table *t, uint32_t start, uint32_t size, const char *name)
{
	const struct native_local *have;
	struct native_local *slot;
	size_t place;

	have = below(t, start, &place);
	if ((have && have->start == start) || t->locals.n >= LOCALS_MAX || !vec_push(&t->locals))
		return;
	slot = &t->locals.v[place];
	memmove(slot + 1, slot, (t->locals.n - 1 - place) * sizeof(*slot));
	*slot = (struct native_local){ start, size, name };
}

static struct native_table *table_of(struct native_shared *s, uint32_t number)
{
	for (size_t i = 0; i < s->tables.n; i++)
		if (s->tables.v[i]->number == number)
			return s->tables.v[i];
	return NULL;
}

/* Which failures are of the file, and not of the process it was asked through? */
static bool is_final(int result)
{
	return result == -ENOENT || result == -ENOEXEC || result == -ESTALE;
}

static void take_answer(struct native_shared *s, struct native_lookup *q, int64_t now_ns)
{
	struct native_table *t = table_of(s, q->table);

	if (!t)
		return; /* gone in the meantime */
	t->asked_ns = 0;
	t->again_ns = now_ns + ASK_AGAIN + ASK_SHARE * q->cost_ns;
	if (q->result < 0) {
		t->no_file = is_final(q->result) || ++t->refusals >= REFUSALS_MAX;
		return;
	}
	for (size_t i = 0; i < q->n; i++) {
		const struct symtab_place *p = &q->of[i];

		if (p->size)
			keep(t, p->start, p->size, names_keep(&s->names, p->name, strlen(p->name)));
		else
			keep(t, p->at, 1, "");
	}
}

static void take_answers(struct native_shared *s, int64_t now_ns)
{
	struct native_lookup *q;

	while (s->files && (q = native_files_next(s->files)) != NULL) {
		take_answer(s, q, now_ns);
		native_lookup_free(q);
	}
}

static int by_address(const void *a, const void *b)
{
	const struct symtab_place *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static void ask(struct native_process *p, const struct native_image *image, int64_t now_ns)
{
	struct native_table *t = image->table;
	struct native_lookup *q = calloc(1, sizeof(*q));

	if (!p->shared->files)
		p->shared->files = native_files_open();
	if (!q || !p->shared->files)
		goto fail;
	q->path = strdup(image->file);
	if (!q->path)
		goto fail;
	q->table = t->number;
	q->pid = p->mem->pid;
	q->headers = image->headers;
	q->device = image->device;
	q->inode = image->inode;
	q->low = image->elf.start - image->elf.bias;
	q->span = image->elf.end - image->elf.start;
	q->n = t->wanted.n;
	for (size_t i = 0; i < q->n; i++)
		q->of[i].at = t->wanted.v[i];
	qsort(q->of, q->n, sizeof(q->of[0]), by_address);
	t->wanted.n = 0;
	if (native_files_ask(p->shared->files, q)) {
		t->asked_ns = now_ns;
		return;
	}
	q = NULL; /* freed */
fail:
	native_lookup_free(q);
	t->again_ns = now_ns + ASK_AGAIN;
	t->no_file = ++t->refusals >= REFUSALS_MAX;
}

static void want(struct native_table *t, uint32_t at)
{
	uint32_t *slot;

	for (size_t i = 0; i < t->wanted.n; i++)
		if (t->wanted.v[i] == at)
			return;
	slot = t->wanted.n < NATIVE_LOOKUP_MAX ? vec_push(&t->wanted) : NULL;
	if (slot)
		*slot = at;
}

bool native_local(struct native_process *p, const struct native_image *image, uint64_t address,
		  int64_t now_ns, struct native_local *ret)
{
	struct native_table *t = image->table;
	uint64_t at = address - image->elf.start;
	const struct native_local *have;
	size_t place;

	*ret = (struct native_local){ .name = "" };
	if (p->fixed_maps || t->no_file || image->file[0] != '/' || !image->headers.hash ||
	    at > UINT32_MAX)
		return true;
	if (t->asked_ns)
		take_answers(p->shared, now_ns);
	have = below(t, (uint32_t)at, &place);
	/* A short one may be inside of a long one: a few steps back are looked at. */
	for (unsigned i = 0; i < 4 && have && place; i++, place--, have--) {
		if (at - have->start >= have->size)
			continue;
		*ret = *have;
		return true;
	}
	if (t->no_file || t->locals.n >= LOCALS_MAX)
		return true;
	if (t->asked_ns && now_ns - t->asked_ns > PATIENCE) {
		t->no_file = true;
		return true;
	}
	want(t, (uint32_t)at);
	if (!t->asked_ns && now_ns >= t->again_ns)
		ask(p, image, now_ns);
	return false;
}

void native_locals_done(struct native_table *t)
{
	vec_done(&t->locals);
	vec_done(&t->wanted);
}
