/* SPDX-License-Identifier: MIT
 *
 * stacks_as FORMAT: the run of stack_source.h in that format, for check_stacks.py.
 * stacks_as seconds: what its stacks stand for.
 */
#include "../unit.h"

#include "base/auto.h"
#include "stack_source.h"

int main(int argc, char **argv)
{
	const struct sink_type *sink = argc > 1 ? sink_by_name(argv[1]) : NULL;
	auto_done(buf) struct buf out = { 0 };

	if (argc > 1 && strcmp(argv[1], "seconds") == 0)
		return printf("%.9f\n", (double)TOTAL_NS / 1e9) < 0;
	if (!sink || !sink->stack)
		return 2;
	stack_source_write(sink, &out);
	return fwrite(buf_text(&out), 1, out.len, stdout) != out.len;
}
