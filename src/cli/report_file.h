/* SPDX-License-Identifier: MIT
 *
 * A report as a file: the HTML page, the picture.
 */
#ifndef SPOTTER_CLI_REPORT_FILE_H
#define SPOTTER_CLI_REPORT_FILE_H

#include "cli/outfile.h"

struct cli;
struct err;
struct judged;

/* Where they go: NULL none, "-" standard output. */
struct report_paths {
	const char *html, *svg;
	bool force;
};

struct report_files {
	struct outfile html, svg;
};

/* Refuses what cannot be written, or exists, before any work is done. record: the run's own file, "" of a
 * process. 0 or -errno with a sentence. */
int report_files_open(struct report_files *f, const struct report_paths *paths, const char *record,
		      struct err *e);
int report_files_write(struct cli *cli, struct report_files *f, const struct report_paths *paths,
		       const struct judged *j, struct err *e);
/* What was not written whole is gone. */
void report_files_done(struct report_files *f);

#endif
