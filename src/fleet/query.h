/* SPDX-License-Identifier: MIT
 *
 * What is asked, as a table: one instant query a row, and where its numbers go. Everything is aggregated by the labels of
 * the agent's own series, so that what a scraper adds (instance, job, replica) changes nothing, and two engines that scrape
 * the same node count it once. Only what Prometheus and VictoriaMetrics both understand.
 */
#ifndef SPOTTER_FLEET_QUERY_H
#define SPOTTER_FLEET_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* What a row of the answer is about, by which labels it is told. */
enum query_of {
	OF_NOW,
	OF_RUN,
	OF_RUN_INFO,
	OF_PLACE, /* a run on a node */
	OF_RANK,
	OF_LEDGER, /* a state of a rank */
	OF_HOLD,   /* a rank on a GPU */
	OF_GPU,
	OF_GPU_REASON,
	OF_NODE,
	OF_VERDICT,
};

enum query_when {
	ASK_ALWAYS,
	ASK_DETAIL, /* of runs that something is wrong with */
	ASK_HUNG,   /* of runs that stand still */
};

/* How numbers of several series of the same labels become one. */
enum query_join { JOIN_MAX, JOIN_MIN };

struct query {
	enum query_of of;
	enum query_when when;
	enum query_join join;
	size_t offset; /* of the double in the struct of fleet.h that `of` names */
	/* $W: the window. $R: matchers of runs, "" all; $C: the same with a comma behind. $G, $N: only GPUs, only nodes of
	 * those runs. */
	const char *text;
};

extern const struct query queries[];
extern const size_t queries_n;

struct query_scope {
	int64_t window_s;
	const char *matcher; /* run_id="4711.0"; "" none */
};

void query_text(const struct query *q, const struct query_scope *s, struct buf *out);

/* A matcher of these runs. False: nothing was put, as there are none. */
bool query_matcher(const char *const *ids, size_t n, struct buf *out);
/* For the part of an address behind '?'. */
void query_escape(const char *text, struct buf *out);

#endif
