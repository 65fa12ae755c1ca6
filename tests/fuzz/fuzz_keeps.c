/* SPDX-License-Identifier: MIT
 *
 * Whatever a source file is: what is found in it is inside of it, is text, and is read back as it was written.
 */
#include "explain/does/does.h"
#include "explain/keeps/keeps.h"
#include "explain/keeps/source.h"
#include "fuzz.h"
#include "model/stacks.h"

static void check_blocks(const char *text, size_t n)
{
	struct py_source s;

	if (py_source_read(&s, text, n) == 0) {
		for (uint32_t i = 1; i < s.blocks.n; i++)
			must(s.blocks.v[i].parent < i && s.blocks.v[i].from <= s.blocks.v[i].to,
			     "blocks are inside of earlier ones");
		for (size_t i = 0; i < s.statements.n; i++)
			must(s.statements.v[i].n > 0 && s.statements.v[i].block < s.blocks.n &&
				 s.statements.v[i].text + s.statements.v[i].n <= s.clean + n,
			     "statements are in the text");
	}
	py_source_done(&s);
}

static void check_keep(const struct keep *k, int32_t lines)
{
	char text[200];
	struct place p = {
		.kind = PLACE_KEEPS, .line = k->line, .file = "x.py", .function = "", .source = text
	};
	struct keep back;

	must(k->line >= 1 && k->line <= lines, "the line is in the file");
	must(k->from >= 1 && k->from <= k->to && k->to <= lines, "so is what must run");
	must(k->score >= 1 && k->score <= 9, "the weight is one digit");
	must(strlen(k->text) < sizeof(k->text) && !strchr(k->text, '\n'), "the text is one line");
	keep_write(k, text, sizeof(text));
	must(keep_read(&p, &back), "it is read back");
	must(back.what == k->what && back.local == k->local && back.score == k->score &&
		 back.from == k->from && back.to == k->to,
	     "as it was");
}

static void check_does(const uint8_t *data, size_t n, int32_t lines)
{
	struct does d[DOES_OF_FILE], back;
	size_t found = does_scan((const char *)data, n, d);
	char text[64];
	struct place p = {
		.kind = PLACE_DOES, .line = 1, .file = "x.py", .function = "", .source = text
	};

	must(found <= DOES_OF_FILE, "there are not too many ranges");
	for (size_t i = 0; i < found; i++) {
		must(d[i].from >= 1 && d[i].from <= d[i].to && d[i].to <= lines,
		     "the range is in the file");
		does_write(&d[i], text, sizeof(text));
		must(does_read(&p, &back) && back.what == d[i].what && back.from == d[i].from &&
			 back.to == d[i].to,
		     "it is read back as it was");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct keep k[KEEPS_OF_FILE];
	int32_t lines = 1;
	size_t found;

	for (size_t i = 0; i < n; i++)
		lines += data[i] == '\n';
	check_blocks((const char *)data, n);
	check_does(data, n, lines);
	found = keeps_scan((const char *)data, n, k);
	must(found <= KEEPS_OF_FILE, "there are not too many");
	for (size_t i = 0; i < found; i++) {
		check_keep(&k[i], lines);
		must(!i || k[i].score <= k[i - 1].score, "the best come first");
	}
	return 0;
}
