/* SPDX-License-Identifier: MIT */
#include "model/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void free_argv(char **argv)
{
	for (size_t i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free(argv);
}

void run_info_done(struct run_info *r)
{
	free_argv(r->argv);
	free(r->cwd);
	r->argv = NULL;
	r->cwd = NULL;
}

int run_info_set_argv(struct run_info *r, char *const *argv)
{
	size_t n = 0;
	char **copy;

	while (argv && argv[n])
		n++;
	copy = calloc(n + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++) {
		copy[i] = strdup(argv[i]);
		if (copy[i])
			continue;
		free_argv(copy);
		copy = NULL;
	}
	if (!copy)
		return -ENOMEM;
	free_argv(r->argv);
	r->argv = copy;
	return 0;
}

int run_info_copy(struct run_info *dst, const struct run_info *src)
{
	struct run_info copy = *src;

	copy.argv = NULL;
	copy.cwd = src->cwd ? strdup(src->cwd) : NULL;
	if ((src->cwd && !copy.cwd) || run_info_set_argv(&copy, src->argv) < 0) {
		free(copy.cwd);
		return -ENOMEM;
	}
	*dst = copy;
	return 0;
}

static const char *const state_names[] = {
	[RUN_GOING] = "going",
	[RUN_ENDED] = "ended",
	[RUN_DETACHED] = "detached",
	[RUN_INTERRUPTED] = "interrupted",
};

const char *run_state_name(enum run_state s)
{
	return state_names[s];
}

enum run_state run_state_by_name(const char *name)
{
	for (int i = RUN_GOING; i <= RUN_INTERRUPTED; i++)
		if (strcmp(state_names[i], name) == 0)
			return (enum run_state)i;
	return RUN_INTERRUPTED;
}
