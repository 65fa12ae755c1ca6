/* SPDX-License-Identifier: MIT */
#include "engine/governor.h"

#include "base/clock.h"

enum {
	MEASURE_S = 4,     /* a mean over less would follow every burst */
	CALM_FIRST_S = 20, /* first wait before going up again */
	CALM_MOST_S = 600,
};

/* Going up must leave room: the higher rate is expected to cost in proportion. */
static const double room = 0.8;

void governor_init(struct governor *g, double hz, double budget, int64_t now_ns, int64_t cpu_ns)
{
	static const double steps[] = { 5, 2, 1 };

	*g = (struct governor){ .budget = budget,
				.since_ns = now_ns,
				.since_cpu_ns = cpu_ns,
				.moved_ns = now_ns,
				.share = -1 };
	g->calm_ns = CALM_FIRST_S * NS_PER_S;
	g->hz[g->n_hz++] = hz;
	for (unsigned i = 0; i < 3; i++)
		if (steps[i] < hz)
			g->hz[g->n_hz++] = steps[i];
}

static void move(struct governor *g, unsigned at, int64_t now_ns)
{
	g->at = at;
	g->moved_ns = now_ns;
}

bool governor_feed(struct governor *g, int64_t now_ns, int64_t cpu_ns)
{
	int64_t wall = now_ns - g->since_ns;
	double up;

	if (wall < MEASURE_S * NS_PER_S)
		return false;
	g->share = (double)(cpu_ns - g->since_cpu_ns) / (double)wall;
	g->since_ns = now_ns;
	g->since_cpu_ns = cpu_ns;
	if (g->budget <= 0)
		return false;
	if (g->share > g->budget && g->at + 1 < g->n_hz) {
		/* Fell back soon after going up: stay down longer next time. */
		if (g->at > 0 || now_ns - g->moved_ns < g->calm_ns)
			g->calm_ns = g->calm_ns * 2 < CALM_MOST_S * NS_PER_S
					 ? g->calm_ns * 2
					 : CALM_MOST_S * NS_PER_S;
		move(g, g->at + 1, now_ns);
		return true;
	}
	if (!g->at || now_ns - g->moved_ns < g->calm_ns)
		return false;
	up = g->share * g->hz[g->at - 1] / g->hz[g->at];
	if (up > g->budget * room)
		return false;
	move(g, g->at - 1, now_ns);
	return true;
}

double governor_hz(const struct governor *g)
{
	return g->hz[g->at];
}

unsigned governor_thrift(const struct governor *g)
{
	return 1u << g->at;
}
