/* SPDX-License-Identifier: MIT
 *
 * Sections of a report for a terminal: processes, GPUs and who was on them, events, what could not be
 * read.
 */
#ifndef SPOTTER_CLI_REPORT_TABLES_H
#define SPOTTER_CLI_REPORT_TABLES_H

struct cli;
struct usage;
struct window;

void report_tables(struct cli *cli, const struct window *w, const struct usage *u);

#endif
