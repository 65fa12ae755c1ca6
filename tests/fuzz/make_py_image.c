/* SPDX-License-Identifier: MIT
 *
 * Writes the first inputs of fuzz_py_image: what attaching to a real process and two samples of it
 * read, with the names taken out of maps.
 *
 *	make_py_image PID > tests/fuzz/corpus/py_image/3.12
 */
#include "base/err.h"
#include "base/io.h"
#include "memory.h"
#include "stack/py/py.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static struct mem process;
static struct memory known;

static void put(uint64_t at, const void *bytes, uint32_t n)
{
	fwrite(&at, 8, 1, stdout);
	fwrite(&n, 4, 1, stdout);
	fwrite(bytes, 1, n, stdout);
}

static int read_and_note(void *arg, struct mem_piece *pieces, size_t n)
{
	int r = mem_read_pieces(&process, pieces, n);

	(void)arg;
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct mem_piece seen = pieces[i];
		uint8_t *copy = malloc(seen.n ? seen.n : 1), *probe = malloc(seen.n ? seen.n : 1);

		if (!copy || !probe)
			abort();
		memcpy(copy, seen.to, seen.n);
		seen.to = probe;
		if (!pieces[i].failed && !memory_piece(&known, &seen)) {
			memory_add(&known, seen.at, copy, seen.n);
			put(seen.at, copy, seen.n);
		}
		free(probe); /* the copies last as long as the program */
	}
	return r;
}

/* "start-end mode offset device inode", for what is mapped from the start of a file. */
static char *maps_without_names(const char *maps)
{
	size_t size = strlen(maps) + 1, at = 0;
	char *out = calloc(1, size);

	for (const char *line = maps; out && *line;) {
		size_t n = strcspn(line, "\n"), words = 0, keep = 0;

		for (; keep < n && words < 5; keep++)
			words += line[keep] == ' ';
		at += (size_t)snprintf(out + at, size - at, "%.*s\n", (int)keep, line);
		line += n + (line[n] == '\n');
	}
	return out;
}

int main(int argc, char **argv)
{
	struct py_process *p = NULL;
	struct py_stacks stacks = { 0 };
	struct err e = { 0 };
	struct mem m;
	char path[64], *maps, *bare;
	size_t n;
	int r;

	if (argc != 2)
		return 2;
	mem_open(&process, (pid_t)strtol(argv[1], NULL, 10));
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)process.pid);
	maps = io_slurp(AT_FDCWD, path, 1 << 20, &n, &r);
	bare = maps ? maps_without_names(maps) : NULL;
	if (!bare)
		return 1;
	put(0, bare, (uint32_t)strlen(bare));
	mem_open_source(&m, read_and_note, NULL);
	r = py_attach_memory(&p, &m, bare, strlen(bare), &e);
	for (int i = 0; r == 0 && i < 2; i++)
		r = py_sample(p, &stacks);
	if (r < 0)
		fprintf(stderr, "%d %s\n", r, e.text);
	py_stacks_done(&stacks);
	py_detach(p);
	free(maps);
	free(bare);
	return r < 0;
}
