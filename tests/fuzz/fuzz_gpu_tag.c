/* SPDX-License-Identifier: MIT
 *
 * What a record says of a GPU: anything may stand there. What was understood of it is written and read
 * again as the same.
 */
#include "fuzz.h"
#include "model/gpu_tag.h"

#include <string.h>

static void check_text(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	must(n < size, "texts end");
	for (size_t i = 0; i < n; i++)
		must((unsigned char)text[i] >= ' ' && text[i] != 0x7f, "texts can be shown");
}

#define CHECK(member)                                                                     \
	do {                                                                              \
		check_text(t.member, sizeof(t.member));                                   \
		must(strcmp(t.member, again.member) == 0, "as it was written: " #member); \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = malloc(n + 1), out[1024];
	struct gpu_tag t, again;

	if (!text)
		return 0;
	memcpy(text, data, n);
	text[n] = '\0';
	gpu_tag_read(text, &t);
	gpu_tag_write(&t, out, sizeof(out));
	gpu_tag_read(out, &again);
	CHECK(uuid);
	CHECK(pci);
	CHECK(vendor);
	CHECK(driver);
	CHECK(runtime);
	CHECK(mode);
	CHECK(profile);
	must(t.simulated == again.simulated && t.unified == again.unified &&
		 t.partitioned == again.partitioned,
	     "as they were written: flags");
	/* Cut anywhere it is still a text. */
	gpu_tag_write(&t, out, n % sizeof(out) + 1);
	must(strlen(out) <= n % sizeof(out), "cut to size");
	gpu_tag_read(out, &again);
	free(text);
	return 0;
}
