/* SPDX-License-Identifier: MIT
 *
 * What an engine answers, to all that is asked: the fleet made of it is in order, judging it ends, and nothing it says moves a
 * cursor.
 */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "fleet/answer.h"
#include "fleet/query.h"
#include "fleet/render.h"
#include "fuzz.h"

#include <math.h>

static int take_all(const struct fleet_sample *s, void *arg)
{
	struct fleet *f = arg;
	int r = 0;

	must(isfinite(s->value), "a value is a number");
	for (size_t i = 0; r == 0 && i < queries_n; i++)
		r = fleet_take(f, &queries[i], s);
	return r;
}

static void check_shown(const struct buf *out)
{
	for (size_t i = 0; i < out->len; i++)
		must((unsigned char)out->data[i] >= ' ' || out->data[i] == '\n',
		     "it is safe to show");
}

static void check_judged(const struct ask *a)
{
	const struct fleet_judged *j = &a->judged;

	must(j->runs.n == a->fleet.runs.n, "every run is judged");
	for (size_t i = 0; i < j->runs.n; i++)
		must(j->runs.v[i].lost_share >= 0 && j->runs.v[i].lost_share <= 1,
		     "a share is one");
	for (size_t i = 0; i < j->suspects.n; i++)
		must(j->suspects.v[i].worst < a->fleet.ranks.n &&
			 j->suspects.v[i].members_from + j->suspects.v[i].members <= j->members.n,
		     "a suspect is a rank");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	auto_done(buf) struct buf out = { 0 };
	struct answer_notes notes = { 0 };
	struct ask a = { 0 };
	struct err e = { 0 };

	fleet_begin(&a.fleet, 600);
	if (answer_read((const char *)data, n, take_all, &a.fleet, &notes, &e) < 0)
		must(e.text[0], "what failed is said");
	if (!isfinite(a.fleet.now_s))
		a.fleet.now_s = 1763280000;
	must(fleet_order(&a.fleet) == 0 && fleet_judge(&a.fleet, &a.judged) == 0, "it is judged");
	check_judged(&a);
	fleet_text(&a, &(struct fleet_page){ .engine = "http://x", .one_run = true }, &out);
	check_shown(&out);
	buf_reset(&out);
	fleet_json(&a, "http://x", &out);
	check_shown(&out);
	ask_done(&a);
	return 0;
}
