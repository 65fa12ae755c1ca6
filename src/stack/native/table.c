/* SPDX-License-Identifier: MIT
 *
 * Finding the unwind rule of a program counter: .eh_frame_hdr is a sorted index of functions
 *	u8 version 1, u8 encodings[3] (1b 03 3b), i32 eh_frame, u32 n, n * { i32 function, i32 fde }
 * whose entries count from the section's own address. It leads to an FDE in .eh_frame, and that to
 * its CIE. All of it is mapped, and read piece by piece: a new program counter costs some twenty
 * small reads, and its rule is kept.
 */
#include "stack/native/process.h"

#include <elf.h>
#include <errno.h>

#define ENCODING_COUNT 0x03 /* u32 */
#define ENCODING_TABLE 0x3b /* i32 from the section's address; all linkers write this */
#define BLOCK          64   /* entries read at once when so few are left */
#define ENTRIES_MAX    (1u << 24)
#define RECORD_MAX     16384 /* bytes of an FDE or CIE; above 2,000 is rare */

struct entry {
	int32_t function, record;
};

int native_index_read(struct mem *m, const struct elf_image *elf, uint64_t section,
		      struct native_index *ret)
{
	uint8_t head[12];
	uint32_t n;
	unsigned at;
	int r = mem_read(m, section, head, sizeof(head));

	if (r < 0)
		return r;
	/* The pointer to .eh_frame is not used; it is 4 bytes, or absent, in every known file. */
	if (head[0] != 1 || head[2] != ENCODING_COUNT || head[3] != ENCODING_TABLE)
		return -ENOENT;
	if ((head[1] & 0x0f) == 0x0b || (head[1] & 0x0f) == 0x03)
		at = 8;
	else if (head[1] == 0xff)
		at = 4;
	else
		return -ENOENT;
	memcpy(&n, head + at, sizeof(n));
	if (section < elf->start || section >= elf->end ||
	    n > (elf->end - section) / sizeof(struct entry) || n > ENTRIES_MAX)
		return -ENOENT;
	*ret = (struct native_index){ .header = section, .entries = section + at + 4, .n = n };
	return 0;
}

/* The FDE of the last function that begins at or below pc. */
static int find_record(struct mem *m, const struct native_index *index, uint64_t pc, uint64_t *ret)
{
	struct entry block[BLOCK];
	int64_t key = (int64_t)(pc - index->header);
	uint32_t low = 0, high = index->n, i;
	int r;

	while (high - low > BLOCK) {
		uint32_t middle = low + (high - low) / 2;

		r = mem_read(m, index->entries + 8ull * middle, block, sizeof(block[0]));
		if (r < 0)
			return r;
		if (block[0].function <= key)
			low = middle;
		else
			high = middle;
	}
	if (low == high)
		return -ENOENT;
	r = mem_read(m, index->entries + 8ull * low, block, (high - low) * sizeof(block[0]));
	if (r < 0)
		return r;
	for (i = high - low; i && block[i - 1].function > key; i--)
		;
	if (!i)
		return -ENOENT;
	*ret = index->header + (uint64_t)(int64_t)block[i - 1].record;
	return 0;
}

/* The contents of an FDE or CIE (behind its length). */
static int read_record(struct mem *m, const struct elf_image *elf, uint64_t at, uint8_t *to,
		       struct bytes *ret)
{
	uint32_t n;
	int r;

	if (at < elf->start || at >= elf->end)
		return -ENOENT;
	r = mem_read(m, at, &n, sizeof(n));
	if (r < 0)
		return r;
	if (n < 4 || n > RECORD_MAX) /* also 0xffffffff: a 64-bit length, which nobody writes */
		return -ENOENT;
	r = mem_read(m, at + 4, to, n);
	*ret = (struct bytes){ .p = to, .end = to + n, .at = at + 4 };
	return r;
}

/* "zPLR" and the like; the letters say what follows. */
static void parse_augmentation(struct bytes *b, const uint8_t *letters, struct rules_common *ret)
{
	struct bytes data;
	uint64_t n;

	if (!*letters)
		return;
	if (*letters != 'z') {
		b->bad = true;
		return;
	}
	ret->augmented = true;
	n = bytes_uleb(b);
	data = *b;
	bytes_skip(b, n);
	for (letters++; *letters && !b->bad; letters++) {
		switch (*letters) {
		case 'R':
			ret->pointer_encoding = (uint8_t)bytes_unsigned(&data, 1);
			break;
		case 'P':
			(void)bytes_pointer(&data, (uint8_t)bytes_unsigned(&data, 1));
			break;
		case 'L':
			(void)bytes_unsigned(&data, 1);
			break;
		case 'S':
			ret->signal = true;
			break;
		case 'B': /* return addresses are signed with the other key */
		case 'G':
			break;
		default:
			b->bad = true;
		}
	}
	b->bad |= data.bad;
}

static bool parse_common(struct bytes *b, struct rules_common *ret)
{
	const uint8_t *letters, *end;
	uint64_t id = bytes_unsigned(b, 4), version = bytes_unsigned(b, 1);

	if (b->bad || id != 0 || (version != 1 && version != 3))
		return false;
	letters = b->p;
	end = memchr(b->p, 0, (size_t)(b->end - b->p));
	if (!end)
		return false;
	bytes_skip(b, (uint64_t)(end - letters) + 1);
	ret->code_align = bytes_uleb(b);
	ret->data_align = bytes_sleb(b);
	ret->return_column = (uint8_t)(version == 1 ? bytes_unsigned(b, 1) : bytes_uleb(b));
	parse_augmentation(b, letters, ret);
	return !b->bad && ret->return_column < COLUMNS;
}

/* A function with unwind rules, and the records that have them. */
struct function {
	uint64_t begin, size;
	struct rules_common common;
	struct bytes fde, cie; /* their instructions */
	uint8_t record[RECORD_MAX], common_record[RECORD_MAX];
};

static int find_function(struct mem *m, const struct native_image *image, uint64_t pc,
			 struct function *f)
{
	uint64_t at, distance;
	int r = image->index.n ? find_record(m, &image->index, pc, &at) : -ENOENT;

	if (r == 0)
		r = read_record(m, &image->elf, at, f->record, &f->fde);
	if (r < 0)
		return r;
	at = f->fde.at;
	distance = bytes_unsigned(&f->fde, 4); /* back to the CIE; 0: this is one */
	if (!distance)
		return -ENOENT;
	r = read_record(m, &image->elf, at - distance, f->common_record, &f->cie);
	if (r < 0)
		return r;
	f->common = (struct rules_common){ .aarch64 = image->elf.machine == EM_AARCH64 };
	if (!parse_common(&f->cie, &f->common))
		return -ENOENT;
	f->begin = bytes_pointer(&f->fde, f->common.pointer_encoding);
	f->size = bytes_pointer(&f->fde, f->common.pointer_encoding & 0x0f);
	if (f->common.augmented)
		bytes_skip(&f->fde, bytes_uleb(&f->fde));
	return f->fde.bad || pc < f->begin || pc - f->begin >= f->size ? -ENOENT : 0;
}

int native_row_find(struct mem *m, const struct native_image *image, uint64_t pc,
		    struct native_row *ret)
{
	struct native_row row = { 0 }, initial;
	struct function f;
	int r = find_function(m, image, pc, &f);

	if (r < 0)
		return r;
	row.return_column = f.common.return_column;
	row.signal = f.common.signal;
	if (!rules_run(f.cie, &f.common, 0, UINT64_MAX, NULL, &row))
		return -ENOENT;
	initial = row;
	if (!rules_run(f.fde, &f.common, f.begin, pc, &initial, &row))
		return -ENOENT;
	*ret = row;
	return 0;
}

int native_function(struct mem *m, const struct native_image *image, uint64_t pc,
		    uint64_t *ret_begin, uint64_t *ret_end)
{
	struct function f;
	int r = find_function(m, image, pc, &f);

	if (r < 0)
		return r;
	*ret_begin = f.begin;
	*ret_end = f.begin + f.size;
	return *ret_end > pc && *ret_end <= image->elf.end ? 0 : -ENOENT;
}

int native_function_end(struct mem *m, const struct native_image *image, uint64_t pc, uint64_t *ret)
{
	uint64_t begin;

	return native_function(m, image, pc, &begin, ret);
}
