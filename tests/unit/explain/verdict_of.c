/* SPDX-License-Identifier: MIT
 *
 * verdict_of FILE.scn [json | WIDTH LINES [color]]: the verdict of a scenario, as JSON or as text.
 */
#include "../unit.h"

#include "scenario.h"

#include "base/buf.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
	struct scenario s = { 0 };
	struct verdict v = { 0 };
	struct render_style style = { .width = 100, .max_lines = 12 };
	struct history *h;
	struct window w;
	struct buf out;

	if (argc < 2)
		return 2;
	scenario_load(&s, argv[1]);
	h = scenario_play(&s, M_NONE, 0);
	w = history_window(h, 0);
	if (explain(&w, &v) < 0)
		return 1;
	buf_init(&out, 0);
	if (argc > 3) {
		style.width = (unsigned)strtoul(argv[2], NULL, 10);
		style.max_lines = (unsigned)strtoul(argv[3], NULL, 10);
		style.color = argc > 4;
	}
	if (argc > 2 && strcmp(argv[2], "json") == 0)
		render_json(&v, &out);
	else
		render_text(&v, &style, &out);
	fwrite(buf_text(&out), 1, out.len, stdout);
	buf_done(&out);
	verdict_done(&v);
	history_free(h);
	scenario_done(&s);
	return 0;
}
