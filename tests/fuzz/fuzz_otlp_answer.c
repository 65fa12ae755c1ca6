/* SPDX-License-Identifier: MIT
 *
 * What a collector answers, from anywhere: a number of points that it may have refused, never an absurd one.
 */
#include "fuzz.h"
#include "push/otlp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	must(otlp_rejected(data, n) <= UINT32_MAX, "a number of points");
	return 0;
}
