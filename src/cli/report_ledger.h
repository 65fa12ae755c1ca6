/* SPDX-License-Identifier: MIT
 *
 * The two ledgers as sections of a report. At most 80 columns.
 */
#ifndef SPOTTER_CLI_REPORT_LEDGER_H
#define SPOTTER_CLI_REPORT_LEDGER_H

#include <stdbool.h>

struct buf;
struct verdict;

/* "Where the time went": nothing when no stacks of the critical thread were read. */
void report_time(const struct verdict *v, bool color, struct buf *out);
/* "Who used the CPU", with the functions that used most of it. */
void report_cpu(const struct verdict *v, bool color, struct buf *out);

#endif
