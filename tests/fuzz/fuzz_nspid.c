/* SPDX-License-Identifier: MIT
 *
 * NSpid of /proc/PID/status, and whose GPU work it is by what stands there.
 */
#include "fuzz.h"
#include "gpu/owner.h"

#include <string.h>

enum { HERE = 4312, UNTOUCHED = 42 };

static void check_owner(const struct gpu_candidate *c)
{
	const struct gpu_candidate all[] = { *c, { .pid = 17, .gpu_known = true } };

	for (int i = 0; i < 4; i++) {
		int32_t pid = c->inner[i];
		struct gpu_owner o = gpu_owner_find(pid, false, all, 2);

		must(o.pid == 0 || o.pid == HERE, "who has no GPU code is never the owner");
		must(!o.pid == !!o.why, "who is not known has a reason");
		must(pid <= 0 || o.pid == HERE, "an inner number leads to its process");
		o = gpu_owner_find(pid, true, all, 2);
		must(o.pid == 0 || o.pid == pid || o.pid == HERE,
		     "in the first namespace numbers are ours, or of one with GPU code");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = malloc(n ? n : 1); /* no byte more: what is read beyond it is seen */
	struct gpu_candidate c = {
		.pid = HERE, .inner = { UNTOUCHED }, .gpu_code = true, .gpu_known = true
	};

	if (!text)
		return 0;
	memcpy(text, data, n);
	if (gpu_nspid(text, n, &c)) {
		for (int i = 0; i < 4; i++)
			must(c.inner[i] >= 0 && (i == 0 || !c.inner[i] || c.inner[i - 1]),
			     "numbers without a hole");
		check_owner(&c);
	} else {
		must(c.inner[0] == UNTOUCHED, "a result is written only on success");
	}
	free(text);
	return 0;
}
