/* SPDX-License-Identifier: MIT
 *
 * What a GPU of a given name is like: figures of the published data sheets, rounded. A scenario need
 * only say in what it differs.
 */
#include "scenario.h"

#include "base/text.h"

#define GIB(n) ((uint64_t)(n) << 30)

/* NVML's numbers of architectures. */
enum { TURING = 6, AMPERE = 7, ADA = 8, HOPPER = 9, BLACKWELL = 10 };

struct product {
	const char *word; /* in the name; the first that is there counts */
	int architecture, cc_major, cc_minor, cores;
	uint64_t memory;
	uint32_t pci_id;
	uint32_t watts_idle, watts_max, sm_max, sm_idle, mem_max; /* W, MHz */
	int pcie_gen, nvlinks, fans;
	bool ecc, unified;
};

static const struct product products[] = {
	{ "GB10", BLACKWELL, 12, 1, 6144, GIB(120), 0x2e1210de, 5, 140, 2418, 208, 0, 5, 0, 0,
	  false, true },
	{ "B200", BLACKWELL, 10, 0, 18944, GIB(180), 0x290110de, 140, 1000, 1965, 120, 3996, 5, 18,
	  0, true, false },
	{ "GH200", HOPPER, 9, 0, 16896, GIB(96), 0x234210de, 80, 900, 1980, 345, 2619, 5, 18, 0,
	  true, false },
	{ "H200", HOPPER, 9, 0, 16896, GIB(141), 0x233510de, 75, 700, 1980, 345, 3201, 5, 18, 0,
	  true, false },
	{ "H100", HOPPER, 9, 0, 16896, GIB(80), 0x233010de, 70, 700, 1980, 345, 2619, 5, 18, 0,
	  true, false },
	{ "A100", AMPERE, 8, 0, 6912, GIB(80), 0x20b210de, 60, 400, 1410, 210, 1593, 4, 12, 0, true,
	  false },
	{ "A10", AMPERE, 8, 6, 9216, GIB(24), 0x223610de, 15, 150, 1695, 210, 6251, 4, 0, 0, true,
	  false },
	{ "A30", AMPERE, 8, 0, 3584, GIB(24), 0x20b710de, 30, 165, 1440, 210, 1215, 4, 4, 0, true,
	  false },
	{ "L40", ADA, 8, 9, 18176, GIB(48), 0x26b910de, 35, 350, 2520, 210, 9001, 4, 0, 0, true,
	  false },
	{ "L4", ADA, 8, 9, 7424, GIB(24), 0x27b810de, 16, 72, 2040, 210, 6251, 4, 0, 0, true,
	  false },
	{ "T4", TURING, 7, 5, 2560, GIB(16), 0x1eb810de, 10, 70, 1590, 300, 5001, 3, 0, 0, true,
	  false },
	{ "RTX 50", BLACKWELL, 12, 0, 21760, GIB(32), 0x2b8510de, 25, 575, 2407, 180, 14001, 5, 0,
	  2, false, false },
	{ "RTX 40", ADA, 8, 9, 16384, GIB(24), 0x268410de, 20, 450, 2520, 210, 10501, 4, 0, 2,
	  false, false },
	{ "RTX 30", AMPERE, 8, 6, 10496, GIB(24), 0x220410de, 20, 350, 1695, 210, 9751, 4, 0, 2,
	  false, false },
	{ "RTX 20", TURING, 7, 5, 4352, GIB(11), 0x1e0710de, 15, 250, 1545, 300, 7000, 3, 0, 1,
	  false, false },
	{ "", AMPERE, 8, 0, 6912, GIB(40), 0x20b010de, 50, 300, 1410, 210, 1215, 4, 0, 0, true,
	  false },
};

void scenario_product(const char *name, struct scenario_device *ret)
{
	const struct product *p = products;
	struct vgpu_about *a = &ret->about;

	while (*p->word && !strstr(name, p->word))
		p++;
	memset(ret, 0, sizeof(*ret));
	text_copy(a->name, sizeof(a->name), name);
	text_copy(a->vbios, sizeof(a->vbios), "96.00.89.00.01");
	a->architecture = p->architecture;
	a->cc_major = p->cc_major;
	a->cc_minor = p->cc_minor;
	a->cores = p->cores;
	a->gpm = p->architecture >= HOPPER;
	a->unified = p->unified;
	a->memory_total = p->memory;
	a->memory_reserved = p->memory / 128; /* 80 GB: 640 MB, about what drivers keep */
	a->pci_id = p->pci_id;
	a->subsystem_id = 0x16c110de;
	a->power_idle_mw = p->watts_idle * 1000;
	a->power_max_mw = a->power_limit_mw = p->watts_max * 1000;
	a->power_min_mw = a->power_max_mw / 2;
	a->clock_sm_max = p->sm_max;
	a->clock_sm_idle = p->sm_idle;
	a->clock_mem_max = p->mem_max;
	a->clock_video_max = p->sm_max * 9 / 10;
	a->temp_slowdown = 90;
	a->temp_shutdown = 95;
	a->temp_mem_max = 95;
	a->pcie_gen_max = p->pcie_gen;
	a->pcie_width_max = 16;
	a->nvlinks = p->nvlinks;
	a->fans = p->fans;
	a->ecc = p->ecc;
	a->persistence = true;
	a->numa_node = -1;
	ret->temp_idle = 30;
	ret->temp_full = 75;
}
