/* SPDX-License-Identifier: MIT
 *
 * The reader of .symtab on files: 8 bytes of the image's lowest address, 8 of its span, 4 of the first
 * address that is asked for, and the file. Names are given only of functions that cover what was asked
 * for, and reads are bounded.
 */
#include "fuzz.h"
#include "stack/native/symtab.h"

#include <stdlib.h>
#include <string.h>

#define HEAD      20
#define ASKED     8
#define READS_MAX 10000u

struct file {
	const uint8_t *bytes;
	size_t n;
	unsigned reads;
};

static int read_file(void *arg, struct mem_piece *pieces, size_t n)
{
	struct file *f = arg;

	f->reads += (unsigned)n;
	for (size_t i = 0; i < n; i++) {
		pieces[i].failed = pieces[i].at > f->n || pieces[i].n > f->n - (size_t)pieces[i].at;
		if (!pieces[i].failed)
			memcpy(pieces[i].to, f->bytes + pieces[i].at, pieces[i].n);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct symtab_place of[ASKED] = { 0 };
	uint64_t low, span;
	uint32_t first;
	struct file file = { 0 };
	struct mem m;
	int r;

	if (n < HEAD)
		return 0;
	file.bytes = data + HEAD;
	file.n = n - HEAD;
	memcpy(&low, data, 8);
	memcpy(&span, data + 8, 8);
	memcpy(&first, data + 16, 4);
	for (uint32_t i = 0; i < ASKED; i++)
		of[i].at = first < UINT32_MAX - (i << 6) ? first + (i << 6) : UINT32_MAX;
	mem_open_source(&m, read_file, &file);
	r = symtab_find(&m, low, span, of, ASKED);
	must(r <= 0, "an answer or an error");
	must(file.reads < READS_MAX, "reads are bounded");
	for (size_t i = 0; i < ASKED; i++) {
		must(!of[i].name == !of[i].size, "a function has a name");
		if (!of[i].name)
			continue;
		must(r == 0, "no names where it fails");
		must(of[i].at >= of[i].start && of[i].at - of[i].start < of[i].size, "it covers");
		must(of[i].start < span && of[i].size <= span - of[i].start, "within the image");
		must(*of[i].name && strlen(of[i].name) < 4096, "names are bounded");
		free(of[i].name);
	}
	return 0;
}
