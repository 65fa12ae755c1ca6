/* SPDX-License-Identifier: MIT
 *
 * Steps as sections of a report: ranks, scalars, the slowest; and one step alone.
 */
#ifndef SPOTTER_CLI_REPORT_STEPS_H
#define SPOTTER_CLI_REPORT_STEPS_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct cli;
struct err;
struct steps;
struct window;

/* Nothing when the training said nothing. */
void report_steps(const struct window *w, const struct steps *s, bool color, struct buf *out);
/* `report --step N`: 0, or -ENOENT with a sentence. */
int report_step(struct cli *cli, const struct window *w, const struct steps *s, uint64_t number,
		bool json, struct err *e);

#endif
