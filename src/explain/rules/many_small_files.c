/* SPDX-License-Identifier: MIT
 *
 * many_small_files: loading opens, lists and asks for files more than it reads them, or waits for storage with
 * every few kilobytes it reads.
 *
 * Not to be taken for it: few large files that are read in pieces (those who load are in their reading then,
 * not in opening them), and calls that open a file and decode all of it in one line.
 *
 * Gain: shards leave a tenth of it.
 */
#include "explain/reading.h"

#include "base/num.h"
#include "explain/loading.h"

#include <stdio.h>

static enum answer check(const struct facts *f, struct opinion *o)
{
	static const double left[] = { 0, 0.1, 0.5 };
	struct finding *x = &o->finding;
	enum answer r = reading_small_files(f, o);
	/* opening them, or reading them from storage that gives few a second */
	bool opens = fact_or(f, FACT_LOAD_FILES, 0) >= fact_or(f, FACT_LOAD_DISK, 0);
	enum fact_id what = opens ? FACT_LOAD_FILES : FACT_LOAD_DISK;
	const struct fact *files = &f->v[what];
	char a[24];

	if (r != ANSWER_YES)
		return r;
	rule_where(x, f, what);
	num_percent(files->value, a, sizeof(a));
	snprintf(x->title, sizeof(x->title), "%s is %s of the time of loading%s%s",
		 opens ? "opening files" : "waiting for small files", a,
		 files->place ? ", at " : "", files->text);
	rule_because(x, f, FACT_LOAD_FILES,
		     "%s of the time of loading, files are opened or asked for",
		     num_percent(fact_or(f, FACT_LOAD_FILES, 0), a, sizeof(a)));
	rule_because(x, f, FACT_LOAD_READ_SIZE, "a read call gets %s on average",
		     num_bytes(fact_or(f, FACT_LOAD_READ_SIZE, 0), a, sizeof(a)));
	rule_because(x, f, FACT_LOAD_DISK, "%s of the time of loading is waiting for storage",
		     num_percent(fact_or(f, FACT_LOAD_DISK, 0), a, sizeof(a)));
	loading_because_held_up(x, f);
	snprintf(x->fix, sizeof(x->fix),
		 "pack the samples into few large files and read them in a row (WebDataset tar "
		 "shards, TFRecord, LMDB, Parquet, one .npy that is mapped)");
	reading_gain(x, f, files->value, left);
	x->confidence = 0.7;
	return ANSWER_YES;
}

const struct rule many_small_files_rule = { .cause = "many_small_files",
					    .needs_s = 5,
					    .check = check };
