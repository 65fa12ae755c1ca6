/* SPDX-License-Identifier: MIT */
#include "explain/place.h"

#include "base/map.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* Files of the interpreter, of installed packages and of no file at all. */
bool place_is_library(const struct place *p)
{
	const char *file = p->file;

	static const char *const parts[] = { "/site-packages/", "/dist-packages/",
					     "/lib/python3",    "/lib64/python3",
					     "/python3.zip/",   "/spotter/_hooks/" };

	if (strncmp(file, "<frozen ", 8) == 0 || strncmp(file, "<__array_function__", 19) == 0)
		return true;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(file, parts[i]))
			return true;
	return false;
}

uint64_t place_code(const struct place *p)
{
	return map_mix(map_mix((uint64_t)(uintptr_t)p->file) ^ (uint64_t)(uintptr_t)p->function);
}

/* Length of the name of the function that `name` belongs to: "walk" of "walk.<locals>.<listcomp>". */
static size_t enclosing(const char *name)
{
	static const char *const inner[] = { ".<locals>.<listcomp>", ".<locals>.<genexpr>",
					     ".<locals>.<dictcomp>", ".<locals>.<setcomp>" };
	size_t n = strlen(name);

	for (size_t i = 0; n && name[n - 1] == '>' && i < sizeof(inner) / sizeof(inner[0]);) {
		size_t k = strlen(inner[i]);

		if (n > k && memcmp(name + n - k, inner[i], k) == 0) {
			n -= k;
			i = 0; /* one may stand in another */
		} else {
			i++;
		}
	}
	return n;
}

uint64_t place_function(const struct place *p)
{
	uint64_t key = map_mix((uint64_t)(uintptr_t)p->file);
	size_t n = enclosing(p->function);

	for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
		uint64_t part = 0;

		memcpy(&part, p->function + i, n - i < sizeof(part) ? n - i : sizeof(part));
		key = map_mix(key ^ part);
	}
	return key;
}

void place_function_name(const struct place *p, char *buf, size_t size)
{
	char name[256];

	snprintf(name, sizeof(name), "%.*s", (int)enclosing(p->function), p->function);
	text_safe_copy(buf, size, name);
}

const char *place_file_name(const struct place *p)
{
	const char *slash = strrchr(p->file, '/');

	return slash ? slash + 1 : p->file;
}

bool place_is_interpreter(const struct place *p)
{
	const char *name = place_file_name(p);

	return strncmp(name, "libpython", 9) == 0 || strncmp(name, "python", 6) == 0;
}
