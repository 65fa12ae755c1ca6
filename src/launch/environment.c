/* SPDX-License-Identifier: MIT */
#include "launch/program.h"

#include <stdlib.h>
#include <string.h>

static size_t length(char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	return n;
}

/* "NAME=" and "NAME=x" name the same; an entry without "=" (they exist) names nothing. */
static bool same_name(const char *a, const char *b)
{
	const char *eq = strchr(a, '=');

	return eq && strncmp(a, b, (size_t)(eq - a) + 1) == 0;
}

char **program_env(char *const *found, char *const *add)
{
	size_t n_add = length(add), n = 0;
	char **env = calloc(length(found) + n_add + 1, sizeof(*env));

	if (!env)
		return NULL;
	for (size_t i = 0; found && found[i]; i++) {
		size_t a = 0;

		while (a < n_add && !same_name(add[a], found[i]))
			a++;
		if (a == n_add)
			env[n++] = found[i];
	}
	for (size_t a = 0; a < n_add; a++)
		env[n++] = add[a];
	return env;
}
