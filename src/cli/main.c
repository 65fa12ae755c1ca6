/* SPDX-License-Identifier: MIT
 *
 * The list of commands. To add one: write cmd_NAME.c, add its row here and its file to meson.build,
 * and prove it with a golden test. Commands of a group stand together: help shows them in this order.
 */
#include "cli/command.h"

extern const struct command run_command, attach_command, why_command, report_command, top_command,
    runs_command, rm_command, sql_command, export_command, doctor_command, metrics_command,
    causes_command, help_command, completion_command, gpu_helper_command, smi_command, demo_command,
    compare_command, serve_command, agent_command, merge_command, fleet_command;

/* clang-format off */
static const struct command *const commands[] = {
	&run_command,
	&attach_command,
	&demo_command,
	&why_command,
	&report_command,
	&compare_command,
	&top_command,
	&serve_command,
	&smi_command,
	&runs_command,
	&rm_command,
	&sql_command,
	&export_command,
	&merge_command,
	&agent_command,
	&fleet_command,
	&doctor_command,
	&metrics_command,
	&causes_command,
	&help_command,
	&completion_command,
	&gpu_helper_command,
	NULL,
};
/* clang-format on */

int main(int argc, char **argv)
{
	struct cli cli = { .commands = commands };
	int status;

	cli_keep_std();
	status = cli_main(&cli, argc > 0 ? argc - 1 : 0, argv + 1);
	return cli_finish(&cli, status);
}
