/* SPDX-License-Identifier: MIT
 *
 * Every collector, in running order. Processes come first: what they did is read as close to the
 * tick's clock as can be.
 */
#include "collect/cgroup.h"
#include "collect/collector.h"
#include "collect/cpu.h"
#include "collect/disk.h"
#include "collect/load.h"
#include "collect/mem.h"
#include "collect/mount.h"
#include "collect/net.h"
#include "collect/proc.h"
#include "collect/psi.h"
#include "collect/vmstat.h"

/* clang-format off */
const struct collector *const collectors[] = {
	&proc_collector,
	&cpu_collector,
	&cgroup_collector,
	&psi_collector,
	&mem_collector,
	&vmstat_collector,
	&disk_collector,
	&net_collector,
	&load_collector,
	&mount_collector,
	NULL,
};
/* clang-format on */
