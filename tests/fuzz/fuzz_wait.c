/* SPDX-License-Identifier: MIT
 *
 * The same bytes as each of the files and arrays that tell what a thread waits for.
 */
#include "fuzz.h"
#include "stack/wait/calls.h"
#include "stack/wait/parse.h"

#include <string.h>

#define FDS 8

static void check_sets(const uint8_t *data, size_t n)
{
	int32_t fds[FDS + 1];
	size_t found;

	fds[FDS] = -7;
	found = wait_parse_epoll((const char *)data, n, fds, FDS);
	for (size_t i = 0; i < found && i < FDS; i++)
		must(fds[i] >= 0, "descriptors are not negative");
	found = wait_pollfds(data, n, fds, FDS);
	must(found <= n / 8, "no more than there are entries");
	for (size_t i = 0; i < found && i < FDS; i++)
		must(fds[i] >= 0, "descriptors are not negative");
	found = wait_bitmap(data, n, n ? (uint64_t)data[0] * n : 0, fds, found, FDS);
	must(found <= n / 8 + n * 8, "no more than there are bits");
	must(fds[FDS] == -7, "nothing is written behind the array");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	/* Exactly as long as the input: a reader that goes on behind it is seen. */
	char *text = malloc(n ? n : 1);
	struct wait_call call;
	struct wait_sched sched;
	struct wait_switches switches;
	uint64_t a = 0;
	char letter;

	if (!text)
		return 0;
	if (n)
		memcpy(text, data, n);
	if (wait_parse_call(text, n, &call)) {
		must(call.nr >= -1, "a number, or none");
		(void)call_find(CALL_X86_64, call.nr);
		(void)call_find(CALL_AARCH64, call.nr);
	}
	(void)wait_parse_sched(text, n, &sched);
	(void)wait_parse_switches(text, n, &switches);
	letter = wait_parse_letter(text, n);
	must(letter == 0 || (letter >= 'A' && letter <= 'z'), "a letter or none");
	must(wait_link_kind(text, n, &a) < WAIT_KINDS, "a kind");
	must(wait_wchan_kind(text, n) < WAIT_KINDS, "a kind");
	check_sets((const uint8_t *)text, n);
	free(text);
	return 0;
}
