/* SPDX-License-Identifier: MIT
 *
 * Code objects: read once, then known by their address. Python frees them, too (exec, lambdas of a
 * reloaded module, compilers), and another may come to stand where one was; so code that is new, was
 * not met for a while or stands where there was other code before is compared with what was read each
 * time it is met, and all other code now and then. Texts are kept by content: code
 * that is made again and again is one function. A program that makes ever new ones (templates, notebooks)
 * has those forgotten that were not met for a while.
 */
#include "base/auto.h"
#include "stack/py/lines.h"
#include "stack/py/process.h"
#include "stack/py/unicode.h"

#include <errno.h>

#define HEAD_MAX 4096
/* Trampolines of the interpreter have 3 or 4 instructions and no name. */
#define HIDDEN_BYTES_MAX 16
#define OBJECT_MAX       (256u << 20) /* bytes: a size above that is none */
#define OLD              64u          /* ticks without being met, until a function may make room */
#define CLEAR_AGAIN      64u          /* ticks */
#define TEXT_COST        (sizeof(struct py_text) + 48) /* and two allocations */

int64_t py_slot_find(struct py_codes *c, uint64_t at)
{
	uint32_t *recent = &c->recent[(at >> 4 ^ at >> 11) % PY_RECENT];

	if (*recent < c->slots.n && c->slots.v[*recent].at == at && at)
		return *recent;
	return map_get(&c->by_address, at, recent) ? (int64_t)*recent : -1;
}

static struct py_text *text_find(const struct py_codes *c, uint32_t id)
{
	size_t low = 0, high = c->texts.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->texts.v[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < c->texts.n && c->texts.v[low].id == id ? &c->texts.v[low] : NULL;
}

void py_slot_reused(struct py_process *p, uint32_t slot)
{
	struct py_codes *c = &p->codes;
	struct py_text *t = text_find(c, c->slots.v[slot].id);

	if (!c->slots.v[slot].at)
		return;
	if (t)
		t->left = p->tick;
	c->reused++;
	if (c->restless.n >= PY_CODES_MAX)
		map_clear(&c->restless);
	(void)map_put(&c->restless, c->slots.v[slot].at, 1);
	map_del(&c->by_address, c->slots.v[slot].at);
	c->slots.v[slot].at = 0;
}

/* What a code object says without following its pointers. */
static void slot_parse(const struct py_layout *l, const uint8_t *head, uint64_t at,
		       struct py_slot *ret)
{
	*ret = (struct py_slot){ .at = at,
				 .type = py_u64(head, l->object_type),
				 .filename = py_u64(head, l->code_filename),
				 .name = py_u64(head, l->code_name),
				 .lines = py_u64(head, l->code_lines),
				 .first_line = py_i32(head, l->code_first_line),
				 .interval = 1,
				 .due = 1 };
	if (l->frames == PY_FRAMES_HEAP)
		return; /* the bytecode is an object of its own */
	if (py_u64(head, l->object_size) <= 1u << 28)
		ret->bytes = 2 * (uint32_t)py_u64(head, l->object_size);
	ret->traceable = 2 * (uint32_t)py_i32(head, l->code_traceable);
	if (l->code_frame_words != PY_ABSENT)
		ret->frame_words = (uint32_t)py_i32(head, l->code_frame_words);
	else
		ret->frame_words = (uint32_t)py_i32(head, l->code_locals) +
				   (uint32_t)py_i32(head, l->code_stack) + l->locals;
	if (ret->frame_words < l->locals || ret->frame_words > PY_WINDOW_MAX / 8)
		ret->frame_words = 0;
	ret->hidden = ret->bytes <= HIDDEN_BYTES_MAX && ret->traceable >= ret->bytes;
}

bool py_slot_same(const struct py_process *p, const struct py_slot *slot, const uint8_t *head)
{
	struct py_slot now;

	slot_parse(&p->place.layout, head, slot->at, &now);
	return now.type == slot->type && now.filename == slot->filename && now.name == slot->name &&
	       now.lines == slot->lines && now.first_line == slot->first_line &&
	       now.bytes == slot->bytes;
}

/* Is `type` the type "code"? Known from the symbol table, or else learned by its name. */
static int type_check(struct py_process *p, uint64_t type)
{
	uint64_t name;
	char text[5];
	int r;

	if (p->place.code_type)
		return type == p->place.code_type ? 0 : -EBADMSG;
	r = mem_read_u64(p->mem, type + p->place.layout.type_name, &name);
	if (r == 0)
		r = mem_read(p->mem, name, text, sizeof(text));
	if (r < 0)
		return r == -EFAULT ? -EBADMSG : r;
	if (memcmp(text, "code", 5) != 0)
		return -EBADMSG;
	p->place.code_type = type;
	return 0;
}

static int read_texts(struct py_process *p, const struct py_slot *slot, uint64_t name,
		      struct py_text *ret)
{
	auto_done(buf) struct buf text = { 0 };
	size_t file;
	int r;

	buf_init(&text, 64 << 10);
	r = py_unicode_read(p->mem, &p->place.layout, name, &text);
	if (r < 0)
		return r;
	buf_char(&text, '\0');
	file = text.len;
	r = py_unicode_read(p->mem, &p->place.layout, slot->filename, &text);
	if (r < 0)
		return r;
	buf_char(&text, '\0');
	if (!buf_ok(&text))
		return -ENOMEM;
	ret->name = malloc(text.len);
	if (!ret->name)
		return -ENOMEM;
	memcpy(ret->name, text.data, text.len);
	ret->file = ret->name + file;
	return 0;
}

static int read_lines(struct py_process *p, uint64_t at, struct py_text *ret)
{
	const struct py_layout *l = &p->place.layout;
	uint64_t n;
	int r = mem_read_u64(p->mem, at + l->object_size, &n);

	if (r < 0)
		return r == -EFAULT ? -EBADMSG : r;
	if (n > OBJECT_MAX)
		return -EBADMSG;
	if (n > PY_LINES_MAX) /* the function is known, its lines are not */
		return 0;
	ret->lines = malloc(n ? n : 1);
	if (!ret->lines)
		return -ENOMEM;
	r = n ? mem_read(p->mem, at + l->bytes_data, ret->lines, n) : 0;
	ret->lines_n = (uint32_t)n;
	return r == -EFAULT ? -EBADMSG : r;
}

static void text_free(struct py_text *t)
{
	free(t->name);
	free(t->lines);
	*t = (struct py_text){ 0 };
}

static uint64_t hash_bytes(uint64_t h, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	while (n--)
		h = (h ^ *p++) * 0x100000001b3ull;
	return h;
}

static bool text_equal(const struct py_text *a, const struct py_text *b)
{
	return a->first_line == b->first_line && a->lines_n == b->lines_n &&
	       !a->lines == !b->lines && strcmp(a->name, b->name) == 0 &&
	       strcmp(a->file, b->file) == 0 &&
	       (!a->lines_n || memcmp(a->lines, b->lines, a->lines_n) == 0);
}

static size_t text_cost(const struct py_text *t)
{
	return strlen(t->name) + strlen(t->file) + 2 + t->lines_n + TEXT_COST;
}

/* Slots that are empty, or whose function was not met for a while. What was met in this sample, or may be
 * believed without looking at it again, stays. */
static void drop_slots(struct py_process *p)
{
	struct py_codes *c = &p->codes;
	size_t n = 0;

	map_clear(&c->by_address);
	for (size_t i = 0; i < c->slots.n; i++) {
		if (!c->slots.v[i].at || p->tick - c->slots.v[i].seen > OLD)
			continue;
		c->slots.v[n] = c->slots.v[i];
		(void)map_put(&c->by_address, c->slots.v[n].at, (uint32_t)n);
		n++;
	}
	c->slots.n = n;
	c->checks_n = 0;
}

/* Texts that no slot names, nor a frame of this sample. */
static int drop_texts(struct py_process *p)
{
	struct py_codes *c = &p->codes;
	auto_free bool *used = calloc(c->texts.n + 1, sizeof(*used));
	const struct py_text *t;
	size_t n = 0;

	if (!used)
		return -ENOMEM;
	for (size_t i = 0; i < c->slots.n; i++)
		if ((t = text_find(c, c->slots.v[i].id)))
			used[t - c->texts.v] = true;
	map_clear(&c->by_content);
	for (size_t i = 0; i < c->texts.n; i++) {
		if (!used[i] && c->texts.v[i].left != p->tick) {
			c->bytes -= text_cost(&c->texts.v[i]);
			text_free(&c->texts.v[i]);
			continue;
		}
		c->texts.v[n] = c->texts.v[i];
		(void)map_put(&c->by_content, c->texts.v[n].hash, (uint32_t)n);
		n++;
	}
	c->texts.n = n;
	return 0;
}

/* Old ones make room. Not often: who has more functions at work than we can keep has the rest unknown. */
static int make_room(struct py_process *p)
{
	struct py_codes *c = &p->codes;

	if (c->cleared && p->tick - c->cleared < CLEAR_AGAIN)
		return -ENOSPC;
	c->cleared = p->tick ? p->tick : 1;
	drop_slots(p);
	return drop_texts(p);
}

static bool has_room(const struct py_codes *c, size_t bytes)
{
	return c->slots.n < PY_CODES_MAX && c->texts.n < PY_CODES_MAX && bytes <= PY_TEXTS_MAX &&
	       c->bytes <= PY_TEXTS_MAX - bytes && c->next_id < UINT32_MAX;
}

/* Takes the text over: its id, that of an equal one, or -ENOSPC when there are too many. */
static int64_t text_intern(struct py_process *p, struct py_text *t)
{
	struct py_codes *c = &p->codes;
	size_t bytes = text_cost(t);
	struct py_text *slot;
	uint32_t known;

	t->hash = hash_bytes(0xcbf29ce484222325ull, t->name, strlen(t->name) + 1);
	t->hash = hash_bytes(t->hash, t->file, strlen(t->file));
	t->hash = hash_bytes(t->hash, t->lines, t->lines_n) + (uint32_t)t->first_line;
	if (map_get(&c->by_content, t->hash, &known) && text_equal(&c->texts.v[known], t)) {
		text_free(t);
		return c->texts.v[known].id;
	}
	if (!has_room(c, bytes) && (make_room(p) < 0 || !has_room(c, bytes)))
		return -ENOSPC;
	slot = vec_push(&c->texts);
	if (!slot)
		return -ENOMEM;
	*slot = *t;
	*t = (struct py_text){ 0 };
	slot->id = c->next_id++;
	c->bytes += bytes;
	(void)map_put(&c->by_content, slot->hash, (uint32_t)(c->texts.n - 1));
	return slot->id;
}

static int slot_add(struct py_process *p, const struct py_slot *slot)
{
	struct py_codes *c = &p->codes;
	struct py_slot *place;
	uint32_t known;

	place = c->slots.n < PY_CODES_MAX ? vec_push(&c->slots) : NULL;
	if (!place)
		return -ENOSPC;
	*place = *slot;
	place->restless = map_get(&c->restless, slot->at, &known);
	if (map_put(&c->by_address, slot->at, (uint32_t)(c->slots.n - 1)))
		return 0;
	c->slots.n--;
	return -ENOMEM;
}

/* Name, file and lines, taken only if the object is unchanged behind the reading. */
static int slot_read(struct py_process *p, struct py_slot *slot, const uint8_t *head,
		     uint8_t *again)
{
	const struct py_layout *l = &p->place.layout;
	uint64_t name = l->code_qualname == PY_ABSENT ? slot->name : py_u64(head, l->code_qualname);
	struct py_text text = { .first_line = slot->first_line };
	int64_t id;
	int r = read_texts(p, slot, name, &text);

	if (r == 0)
		r = read_lines(p, slot->lines, &text);
	if (r == 0)
		r = mem_read(p->mem, slot->at, again, l->code_size);
	if (r == 0 && !py_slot_same(p, slot, again))
		r = -EBADMSG;
	if (r == 0) {
		id = text_intern(p, &text);
		slot->id = (uint32_t)id;
		r = id < 0 ? (int)id : 0;
	}
	text_free(&text);
	return r == -EFAULT ? -EBADMSG : r;
}

int py_slot_learn(struct py_process *p, uint64_t at)
{
	const struct py_layout *l = &p->place.layout;
	uint8_t head[HEAD_MAX], again[HEAD_MAX];
	struct py_slot slot;
	int r;

	if (l->code_size > HEAD_MAX || at % 8 || !at)
		return -EBADMSG;
	if (p->codes.slots.n >= PY_CODES_MAX && make_room(p) < 0)
		return -ENOSPC;
	r = mem_read(p->mem, at, head, l->code_size);
	if (r < 0)
		return r == -EFAULT ? -EBADMSG : r;
	slot_parse(l, head, at, &slot);
	slot.seen = p->tick;
	slot.born = p->batch;
	/* 3.13's _Py_InitCleanup is static: it has neither type nor name. */
	if (!slot.type && !slot.name && slot.hidden)
		return slot_add(p, &slot);
	r = type_check(p, slot.type);
	if (r == 0)
		r = slot_read(p, &slot, head, again);
	return r < 0 ? r : slot_add(p, &slot);
}

void py_codes_done(struct py_codes *c)
{
	for (size_t i = 0; i < c->texts.n; i++)
		text_free(&c->texts.v[i]);
	vec_done(&c->texts);
	vec_done(&c->slots);
	map_done(&c->by_address);
	map_done(&c->restless);
	map_done(&c->by_content);
}

const struct py_function *py_code(const struct py_process *p, uint32_t code,
				  struct py_function *ret)
{
	const struct py_text *t = text_find(&p->codes, code);

	if (!t)
		return NULL;
	*ret =
	    (struct py_function){ .name = t->name, .file = t->file, .first_line = t->first_line };
	return ret;
}

int32_t py_line(const struct py_process *p, uint32_t code, int32_t offset)
{
	const struct py_text *t = text_find(&p->codes, code);

	if (!t || !t->lines || offset == PY_OFFSET_UNKNOWN)
		return 0;
	return py_line_of(p->place.layout.lines, t->lines, t->lines_n, t->first_line, offset);
}
