/* SPDX-License-Identifier: MIT
 *
 * `_PyRuntime` is a dynamic symbol of every CPython since 3.7 that can load extension modules, also
 * of stripped and static ones. So the images are asked by the hash tables that the loader itself
 * uses. 100 to 400 us for a process with 15 of them.
 */
#include "stack/py/locate.h"

#include "base/auto.h"
#include "base/err.h"
#include "stack/image.h"

#include <elf.h>
#include <errno.h>

#define SCAN_STEP  (1u << 20)
#define SCAN_BYTES (256u << 20) /* writable file mappings and what follows them */

/* Up to 3.10 there is no Py_Version, but each version brought functions of its own. */
static const struct {
	const char *symbol;
	unsigned minor;
} brought[] = {
	{ "PyModule_AddObjectRef", 10 },
	{ "PyFrame_GetCode", 9 },
	{ "PyCode_NewWithPosOnlyArgs", 8 },
	{ "_PyRuntime", 7 },
};

static int find_minor(struct mem *m, const struct elf_image *image, uint32_t *ret_version)
{
	uint64_t at, version;

	if (elf_symbol(m, image, "Py_Version", &at) == 0) {
		int r = mem_read_u64(m, at, &version);

		if (r < 0)
			return r;
		if (version >> 24 != 3 || py_minor((uint32_t)version) < 11)
			return -ENOTSUP;
		*ret_version = (uint32_t)version;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(brought); i++) {
		if (elf_symbol(m, image, brought[i].symbol, &at) == 0) {
			*ret_version = 3u << 24 | brought[i].minor << 16;
			return 0;
		}
	}
	return -ENOTSUP;
}

static int parse_table(struct mem *m, uint64_t runtime, struct py_place *ret, struct err *e)
{
	uint8_t table[PY_TABLE_MAX];
	int r = mem_read(m, runtime, table, sizeof(table));

	if (r < 0)
		return r;
	r = py_layout_parse(table, sizeof(table), &ret->layout, e);
	if (r == 0)
		ret->runtime = runtime;
	return r;
}

static int from_image(struct mem *m, const struct elf_image *image, uint64_t runtime,
		      struct py_place *ret, struct err *e)
{
	uint8_t head[24];
	uint32_t version;
	int r = mem_read(m, runtime, head, sizeof(head));

	if (r < 0)
		return r;
	if (elf_symbol(m, image, "PyCode_Type", &ret->code_type) < 0)
		ret->code_type = 0;
	if (py_layout_cookie(head, sizeof(head)))
		return parse_table(m, runtime, ret, e);
	r = find_minor(m, image, &version);
	if (r == -ENOTSUP)
		return err_set(e, r, "a Python of unknown version");
	if (r < 0)
		return r;
	r = py_layout_known(py_minor(version), image->machine, &ret->layout, e);
	if (r < 0)
		return r;
	ret->layout.version = version & 0xffff ? version : 0;
	ret->runtime = runtime;
	return 0;
}

/* Last resort, from 3.13 on: the table says of itself what it is. */
static int scan_mappings(struct mem *m, const elf_mappings *maps, struct py_place *ret)
{
	auto_free uint8_t *bytes = malloc(SCAN_STEP);
	uint64_t budget = SCAN_BYTES;

	if (!bytes)
		return -ENOMEM;
	for (size_t i = 0; i < maps->n && budget; i++) {
		const struct elf_mapping *map = &maps->v[i];

		/* The runtime is initialised data: a private writable mapping of a file. */
		if (!map->readable || !map->writable || !map->inode)
			continue;
		for (uint64_t at = map->start; at < map->end && budget; at += SCAN_STEP) {
			uint64_t n = map->end - at < SCAN_STEP ? map->end - at : SCAN_STEP;

			budget -= n < budget ? n : budget;
			if (mem_read(m, at, bytes, n) < 0)
				break;
			for (uint64_t k = 0; k + 24 <= n; k += 8)
				if (py_layout_cookie(bytes + k, n - k) &&
				    parse_table(m, at + k, ret, NULL) == 0)
					return 0;
		}
	}
	return -ENOENT;
}

/* Python 2 and 3.0 to 3.6 have no _PyRuntime: to be told apart from no Python at all. */
static bool too_old(struct mem *m, const struct elf_image *image)
{
	uint64_t at;

	return elf_symbol(m, image, "PyEval_EvalFrameEx", &at) == 0;
}

int py_locate(struct mem *m, const char *maps, size_t maps_n, struct py_place *ret, struct err *e)
{
	elf_mappings list = { 0 };
	struct py_place place = { 0 };
	struct elf_image image;
	unsigned images = 0;
	bool old = false;
	int r = elf_parse_maps(maps, maps_n, &list), found = -ENOENT;

	for (size_t i = 0; r == 0 && i < list.n && images < ELF_IMAGES_MAX; i++) {
		uint64_t runtime;

		/* Code that a compiler made, thousands of mappings: not one is looked at. */
		if (!list.v[i].inode && !list.v[i].name)
			continue;
		r = elf_image_at(m, &list, i, &image);
		if (r == -ESRCH || r == -EPERM)
			break;
		if (r == 0) {
			images++;
			if (elf_symbol(m, &image, "_PyRuntime", &runtime) == 0) {
				found = from_image(m, &image, runtime, &place, e);
				break;
			}
			old = old || too_old(m, &image);
		}
		r = 0;
	}
	if (r == 0 && found == -ENOENT)
		found = scan_mappings(m, &list, &place);
	vec_done(&list);
	if (r < 0)
		return r;
	if (found == -ENOENT && old)
		return err_set(e, -ENOTSUP,
			       "a Python older than 3.8, whose stacks are not supported");
	if (found == -ENOENT)
		return err_set(e, -ENOENT, "no Python in this process");
	if (found == 0)
		*ret = place;
	return found;
}
