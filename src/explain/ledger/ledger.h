/* SPDX-License-Identifier: MIT
 *
 * Accounts that must balance: what the kernel charged to the job, and who used it.
 */
#ifndef SPOTTER_EXPLAIN_LEDGER_LEDGER_H
#define SPOTTER_EXPLAIN_LEDGER_LEDGER_H

#include "explain/verdict.h"

struct facts;
struct scene;

/* Fills cpu_seconds, cpu_cores, cpu and cpu_unaccounted of the verdict: 0 or -ENOMEM. */
int ledger_cpu(const struct scene *s, const struct facts *f, struct verdict *v);
/* Fills time*, of the verdict: nothing when no stacks of the critical thread were recorded. */
int ledger_time(const struct scene *s, struct verdict *v);

#endif
