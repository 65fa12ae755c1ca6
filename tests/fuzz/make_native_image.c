/* SPDX-License-Identifier: MIT
 *
 * Writes the first inputs of fuzz_native: what unwinding a real, waiting thread and looking up its
 * symbols read, with the folders taken out of maps, and the whole vdso. Of libc only the unwind tables
 * are read, its symbols are many.
 *
 *	make_native_image PID TID > tests/fuzz/corpus/native/waiting
 */
#include "base/io.h"
#include "memory.h"
#include "stack/native/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

static struct mem process;
static struct memory known;

/* Paths and versions of the machine it is made on are nobody's business; names of functions stay. */
static void blank_words(uint8_t *p, uint32_t n)
{
	for (uint32_t i = 0, from; i < n; i++) {
		bool place = false;

		for (from = i; i < n && p[i] >= ' ' && p[i] < 127; i++)
			place |= p[i] == '/' || p[i] == '-';
		if (i - from >= 6 && place)
			memset(p + from, 'x', i - from);
	}
}

static void put(uint64_t at, const void *bytes, uint32_t n)
{
	uint8_t *copy = malloc(n + 1);

	if (!copy)
		abort();
	memcpy(copy, bytes, n);
	if (at)
		blank_words(copy, n);
	fwrite(&at, 8, 1, stdout);
	fwrite(&n, 4, 1, stdout);
	fwrite(copy, 1, n, stdout);
	free(copy);
}

static int read_and_note(void *arg, struct mem_piece *pieces, size_t n)
{
	int r = mem_read_pieces(&process, pieces, n);

	(void)arg;
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct mem_piece seen = pieces[i];
		uint8_t *copy = malloc(seen.n + 1), *probe = malloc(seen.n + 1);

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

/* What a thread needs: code of libc and of our own libraries, the vdso, and its stack. */
static char *short_maps(const char *maps, uint64_t sp)
{
	size_t size = strlen(maps) + 1, at = 0;
	char *out = calloc(1, size);

	for (const char *line = maps; out && *line;) {
		size_t n = strcspn(line, "\n");
		char text[512], *name, *base;

		snprintf(text, sizeof(text), "%.*s", (int)n, line);
		line += n + (line[n] == '\n');
		name = strpbrk(text, "/[");
		base = strrchr(text, '/');
		if (strstr(text, "native") || strstr(text, "libc.so") || strstr(text, "[vdso]") ||
		    (strtoull(text, NULL, 16) <= sp &&
		     strtoull(strchr(text, '-') + 1, NULL, 16) > sp)) {
			if (base && name)
				memmove(name, base, strlen(base) + 1);
			at += (size_t)snprintf(out + at, size - at, "%s\n", text);
		}
	}
	return out;
}

static void put_vdso(const char *maps)
{
	static uint8_t bytes[1 << 16];
	const char *line = strstr(maps, "[vdso]");
	uint64_t start, end;

	while (line && line > maps && line[-1] != '\n')
		line--;
	if (!line)
		return;
	start = strtoull(line, NULL, 16);
	end = strtoull(strchr(line, '-') + 1, NULL, 16);
	if (end - start <= sizeof(bytes) && mem_read(&process, start, bytes, end - start) == 0) {
		memory_add(&known, start, bytes, end - start);
		put(start, bytes, (uint32_t)(end - start));
	}
}

/* The last two words of /proc/PID/task/TID/syscall. */
static bool registers(const char *pid, const char *tid, uint64_t ret[2])
{
	char path[96], text[256], *pc, *sp;

	snprintf(path, sizeof(path), "/proc/%s/task/%s/syscall", pid, tid);
	if (io_read(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return false;
	pc = strrchr(text, ' ');
	if (!pc)
		return false;
	*pc = '\0';
	sp = strrchr(text, ' ');
	ret[0] = strtoull(pc + 1, NULL, 16);
	ret[1] = sp ? strtoull(sp + 1, NULL, 16) : 0;
	return sp != NULL;
}

int main(int argc, char **argv)
{
	uint64_t at[2], found[NATIVE_FRAMES_MAX];
	struct native_process *p;
	struct native_place place;
	char path[64], *maps;
	struct mem m;
	size_t n;
	int r;

	if (argc != 3 || !registers(argv[1], argv[2], at))
		return 2;
	mem_open(&process, (pid_t)strtol(argv[1], NULL, 10));
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)process.pid);
	maps = io_slurp(AT_FDCWD, path, 1 << 20, &n, &r);
	maps = maps ? short_maps(maps, at[1]) : NULL;
	if (!maps)
		return 1;
	fputc(0, stdout);
	fwrite(at, 8, 2, stdout);
	put(0, maps, (uint32_t)strlen(maps));
	put_vdso(maps);
	mem_open_source(&m, read_and_note, NULL);
	if (native_open_memory(&p, &m, maps, strlen(maps)) < 0)
		return 1;
	n = native_unwind(p, at[0], at[1], 0, found, NATIVE_FRAMES_MAX);
	for (size_t i = 0; i < n; i++) {
		const struct elf_mapping *mapping = native_mapping(p, found[i] - (i > 0), 0);
		struct native_image *image =
		    mapping ? native_image(p, mapping, found[i] - (i > 0)) : NULL;

		if (image && !image->libc)
			native_place(p, found[i] - (i > 0), 0, &place);
	}
	native_close(p);
	return 0;
}
