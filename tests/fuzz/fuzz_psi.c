/* SPDX-License-Identifier: MIT
 *
 * Pressure files: at least one total, none negative; a failed parse writes nothing.
 */
#include "collect/psi.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct psi p = { 4711, 4711 };

	if (psi_parse((const char *)data, n, &p) == 0)
		must(p.some_us >= -1 && p.full_us >= -1 && (p.some_us >= 0 || p.full_us >= 0),
		     "one of the two is there");
	else
		must(p.some_us == 4711 && p.full_us == 4711, "a result is written only on success");
	return 0;
}
