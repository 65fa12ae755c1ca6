/* SPDX-License-Identifier: MIT
 *
 * The process that loads vendors' GPU libraries (gpu/client.h). Started by Spotter itself, never by a
 * person: without the memory and the pipe it is given it ends at once.
 */
#include "cli/command.h"

#include "gpu/client.h"

struct gpu_helper_options {
	struct common_options common;
};

static int run_gpu_helper(struct cli *cli, void *options, const struct opt_rest *rest)
{
	(void)cli, (void)options;
	return gpu_helper_main(rest->n, rest->v);
}

static const struct opt opts[] = {
	COMMON_OPTS,
	OPT_END,
};

const struct command gpu_helper_command = {
	.name = "gpu-helper",
	.group = "about",
	.summary = "reads GPUs for another spotter (started by it)",
	.words = "",
	.description = "Loads the vendors' GPU libraries in a process of its own, so that a driver "
		       "call that blocks or crashes harms nothing else. Spotter starts it itself.",
	.opts = opts,
	.options_size = sizeof(struct gpu_helper_options),
	.max_words = -1,
	.hidden = true,
	.run = run_gpu_helper,
};
