/* SPDX-License-Identifier: MIT
 *
 * steps_as FORMAT: the run of steps_source.h in that format, for check_steps.py.
 */
#include "../unit.h"

#include "base/auto.h"
#include "steps_source.h"

int main(int argc, char **argv)
{
	const struct sink_type *sink = argc > 1 ? sink_by_name(argv[1]) : NULL;
	auto_done(buf) struct buf out = { 0 };

	if (!sink || !sink->step)
		return 2;
	steps_source_write(sink, &out);
	return fwrite(buf_text(&out), 1, out.len, stdout) != out.len;
}
