/* SPDX-License-Identifier: MIT
 *
 * A snapshot of the machine as lines, tables and JSON: `top` for pipes, logs and programs. The screen for
 * people is in src/tui.
 */
#ifndef SPOTTER_CLI_TOP_SHOW_H
#define SPOTTER_CLI_TOP_SHOW_H

#include "tui/snapshot.h"

struct buf;
struct cli;

/* Tables for --once; one line for --plain; one line of JSON, "spotter.top/1". limit: processes. */
void top_put_screen(const struct cli *cli, const struct snapshot *v, size_t limit, struct buf *out);
void top_put_line(const struct snapshot *v, struct buf *out);
void top_put_json(const struct snapshot *v, size_t limit, struct buf *out);
/* Lines for --once, a few words for --plain; nothing without a GPU. */
void top_put_gpus(const struct snapshot *v, struct buf *out);
void top_put_gpu_words(const struct snapshot *v, struct buf *out);

#endif
