/* SPDX-License-Identifier: MIT
 *
 * The offset table that an interpreter carries: what is accepted lies within bounds.
 */
#include "fuzz.h"
#include "stack/py/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct py_layout l;

	if (py_layout_parse(data, n, &l, NULL) < 0)
		return 0;
	must(l.thread_size <= 4096 && l.thread_frame + 8 <= l.thread_size &&
		 l.thread_top + 8 <= l.thread_size && l.thread_native + 8 <= l.thread_size,
	     "thread");
	must(l.frame_size <= 4096 && l.frame_instr + 8 <= l.frame_size &&
		 l.frame_owner < l.frame_size && l.frame_previous + 8 <= l.frame_size,
	     "frame");
	must(l.code_size <= 4096 && l.code_lines + 8 <= l.code_size &&
		 l.code_traceable + 4 <= l.code_size && l.object_type + 8 <= l.code_size,
	     "code");
	must(l.text_ascii_size <= 128, "text");
	return 0;
}
