/* SPDX-License-Identifier: MIT
 *
 * nodes_as FOLDER RANK data|work: records of four machines, in which this rank gets its data late or has
 * more to compute.
 */
#include "../unit.h"

#include "nodes_made.h"

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	make_nodes(argv[1], SCENARIOS, (int)strtol(argv[2], NULL, 10),
		   strcmp(argv[3], "data") == 0 ? RANK_LATE_DATA : RANK_SLOW);
	return 0;
}
