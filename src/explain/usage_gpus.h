/* SPDX-License-Identifier: MIT
 *
 * What GPUs did over the run, as rows of the verdict's usage.
 */
#ifndef SPOTTER_EXPLAIN_USAGE_GPUS_H
#define SPOTTER_EXPLAIN_USAGE_GPUS_H

struct scene;
struct usage;

int usage_gpus(const struct scene *s, struct usage *u); /* 0 or -ENOMEM */

#endif
