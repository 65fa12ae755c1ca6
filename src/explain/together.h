/* SPDX-License-Identifier: MIT */
#ifndef SPOTTER_EXPLAIN_TOGETHER_H
#define SPOTTER_EXPLAIN_TOGETHER_H

#include "explain/verdict.h"

struct facts;

/* Fills together* of a verdict whose findings are complete. */
void together(struct verdict *v, const struct facts *f);

#endif
