/* SPDX-License-Identifier: MIT
 *
 * slow_startup: much of the run was over before its first step. A note: it happens once, and a longer run has
 * it once as well.
 *
 * Not to be taken for it: a program of which steps are not marked, and whose imports are quick: what it does
 * behind them is not told apart from training.
 */
#include "explain/rule.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double seconds_least = 5, share_least = 0.2;

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	enum answer r = answer_and(rule_at_least(f, FACT_START_SECONDS, seconds_least, o),
				   rule_at_least(f, FACT_START_SHARE, share_least, o));
	bool steps = strcmp(f->v[FACT_START_SECONDS].text, "steps") == 0;
	char a[32], b[32];

	if (r != ANSWER_YES)
		return r;
	rule_where(x, f, FACT_START_SECONDS);
	num_seconds(f->v[FACT_START_SECONDS].value, a, sizeof(a));
	num_percent(f->v[FACT_START_SHARE].value, b, sizeof(b));
	snprintf(x->title, sizeof(x->title), "the start took %s, %s of the run", a, b);
	rule_because(x, f, FACT_START_SECONDS, "%s after %s",
		     steps ? "the first step began" : "the imports were over", a);
	if (fact_or(f, FACT_START_IMPORTS, 0) > 0)
		rule_because(x, f, FACT_START_IMPORTS, "importing modules took up to %s",
			     num_seconds(f->v[FACT_START_IMPORTS].value, b, sizeof(b)));
	snprintf(
	    x->fix, sizeof(x->fix),
	    "keep what the start finds out (lists of files, vocabularies, prepared data, compiled "
	    "models) in a file; install packages into the image, not at the start; import what is "
	    "needed");
	x->note = true;
	x->cost = NAN;
	x->confidence = 0.8;
	return ANSWER_YES;
}

const struct rule slow_startup_rule = { .cause = "slow_startup", .needs_s = 0, .check = check };
