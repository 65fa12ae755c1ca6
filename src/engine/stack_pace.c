/* SPDX-License-Identifier: MIT */
#include "engine/stack_pace.h"

#include "base/clock.h"

enum {
	GOVERN_MS = 250, /* workers start all at once, and a second would be long then */
	FIRST_LOOKS = 8,
	MEAN_LOOKS = 8,
	PAYBACK_S = 15,
	STRIDE_MAX = 8,
	FILL_S = 10, /* no longer stretch fills a purse: the machine may have slept */
};

/* Looks a second below which it makes no sense to go on saving; a good deal more while they are cheap, so that a
 * run of some seconds can be judged. */
static const double hz_least = 2, hz_fair = 6, fair_share = 0.005;
/* Of its share: what is left to it while debts are paid. */
static const double share_least = 0.6;
/* A smaller change is none: every change costs the weight of samples some precision. */
static const double change_least = 0.05;

void stack_pace_init(struct stack_pace *p, double hz)
{
	*p = (struct stack_pace){ .hz = hz, .hz_now = hz, .stride = 1 };
}

/* The first looks are the dearest, as all names are new then: the cheapest of them counts. Later a single
 * dear one moves the mean little, and in a job that grew all of them do. What looks cost above their mean
 * is a debt like any other. */
void stack_pace_look(struct stack_pace *p, int64_t cpu_ns)
{
	double cost = cpu_ns > 1 ? (double)cpu_ns : 1;

	p->looks++;
	if (p->looks <= FIRST_LOOKS) {
		p->cost_ns = p->looks == 1 || cost < p->cost_ns ? cost : p->cost_ns;
		return;
	}
	cost = cost < 2 * p->cost_ns ? cost : 2 * p->cost_ns;
	p->cost_ns += (cost - p->cost_ns) / MEAN_LOOKS;
}

/* Saves first on those who take turns; while debts are paid the clock alone is slower, as that passes. */
static void take_turns(struct stack_pace *p, double affordable, size_t followers)
{
	double over = p->hz / affordable;

	if (over > 1 && followers && p->stride < STRIDE_MAX) {
		unsigned next = (unsigned)(p->stride * (over < 4 ? over : 4) + 0.999);

		p->stride = next > STRIDE_MAX ? STRIDE_MAX : next;
	} else if (over < 0.6 && p->stride > 1) {
		p->stride--;
	}
}

static double least_of(const struct stack_pace *p)
{
	double least = p->cost_ns > 0 ? fair_share * 1e9 / p->cost_ns : hz_fair;

	least = least > hz_fair ? hz_fair : least < hz_least ? hz_least : least;
	return p->hz < least ? p->hz : least;
}

bool stack_pace_govern(struct stack_pace *p, int64_t now_ns, const struct stack_allowance *a,
		       size_t followers)
{
	double least = least_of(p), before = p->hz_now, share, hz;

	if (!p->since_ns)
		p->since_ns = now_ns;
	if (now_ns - p->since_ns < GOVERN_MS * NS_PER_MS)
		return false;
	p->since_ns = now_ns;
	if (a->share <= 0 || p->cost_ns <= 0)
		return false;
	take_turns(p, a->share * 1e9 / p->cost_ns, followers);
	share = a->share - (double)a->debt_ns / (PAYBACK_S * 1e9);
	share = share < share_least * a->share ? share_least * a->share : share;
	hz = share * 1e9 / p->cost_ns;
	hz = hz > p->hz ? p->hz : hz < least ? least : hz;
	if (hz > before * (1 - change_least) && hz < before * (1 + change_least) && hz < p->hz)
		return false;
	p->hz_now = hz;
	return hz != before;
}

bool stack_purse_fill(struct stack_purse *p, int64_t now_ns, double share)
{
	int64_t since = p->at_ns ? now_ns - p->at_ns : 0;

	since = since < 0 ? 0 : since > FILL_S * NS_PER_S ? FILL_S * NS_PER_S : since;
	p->at_ns = now_ns;
	if (share <= 0) {
		p->left_ns = p->most_ns;
		return true;
	}
	p->left_ns += (int64_t)(share * (double)since);
	if (p->left_ns > p->most_ns)
		p->left_ns = p->most_ns;
	return p->left_ns > 0;
}
