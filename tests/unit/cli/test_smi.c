/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "cli/smi.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define WHEN 1783116646109000000ll /* 2026-07-03 22:10:46.109 UTC */

static struct gpu_device *add_gpu(struct gpu_snapshot *s, int index, const char *pci)
{
	struct gpu_device *d = gpu_add_device(s, GPU_NVIDIA);

	d->index = (int16_t)index;
	snprintf(d->name, sizeof(d->name), "Virtual GPU");
	snprintf(d->uuid, sizeof(d->uuid), "GPU-%08x-1111-2222-3333-444444444444", 0xa0000 + index);
	snprintf(d->pci, sizeof(d->pci), "%s", pci);
	snprintf(d->driver, sizeof(d->driver), "590.48.01");
	return d;
}

/* Two GPUs; the first has a bit of everything, of the second nothing but its name is known. */
static int two_gpus(void **state)
{
	struct gpu_snapshot *s = calloc(1, sizeof(*s));
	struct gpu_device *d;

	if (!s)
		return -1;
	d = add_gpu(s, 0, "00000000:83:00.0");
	gpu_put(d, M_GPU_BUSY, 9950);
	gpu_put(d, M_GPU_MEM_TOTAL, 81559 * 1024ll);
	gpu_put(d, M_GPU_MEM_RESERVED, 478 * 1024ll + 64);
	gpu_put(d, M_GPU_MEM_USED, 0);
	gpu_put(d, M_GPU_POWER, 77705);
	gpu_put(d, M_GPU_CLOCK_SM, 1980);
	gpu_put(d, M_GPU_TEMPERATURE, 52);
	gpu_put(d, M_GPU_SLOW_IDLE, 0);
	gpu_put(d, M_GPU_SLOW_POWER, 1);
	gpu_lacks(d, M_GPU_TEMP_MEM, GPU_NOT_SUPPORTED);
	gpu_lacks(d, M_GPU_FAN, GPU_NO_PERMISSION);
	gpu_put_number(d, GPU_P_REASONS, 4);
	gpu_put_number(d, GPU_P_PCI_DEVICE_ID, 0x233510de);
	gpu_put_number(d, GPU_P_PCI_BASE_CLASS, 3);
	gpu_put_number(d, GPU_P_COMPUTE_CAP, 9 << 8);
	gpu_put_number(d, GPU_P_COMPUTE_MODE, 3);
	gpu_put_number(d, GPU_P_PSTATE, 0);
	gpu_put_number(d, GPU_P_PERSISTENCE, 1);
	gpu_put_number(d, GPU_P_INFOROM_VALID, 1);
	gpu_put_number(d, GPU_P_RETIRED_PENDING, 0);
	gpu_put_number(d, GPU_P_HELD_POWER_SW, 15814595384ll);
	gpu_put_text(d, GPU_P_SERIAL, "165");
	gpu_lacks_property(d, GPU_P_DISPLAY_MODE, GPU_DEPRECATED);
	add_gpu(s, 1, "0000:c4:00.0");
	*state = s;
	return 0;
}

static int drop(void **state)
{
	free(*state);
	return 0;
}

/* The rows of a query as one text. */
static char *ask(const struct gpu_snapshot *s, enum smi_query q, const char *list, bool nounits)
{
	struct smi_context x = { .snapshot = s, .wall_ns = WHEN, .root = -1, .nounits = nounits };
	struct smi_fields f = { 0 };
	struct smi_selection sel;
	struct buf out = { 0 };
	char bad[80];

	assert_int_equal(smi_fields_parse(q, list, &f, bad, sizeof(bad)), 0);
	assert_int_equal(smi_select(s, NULL, &sel, NULL), 0);
	smi_csv_rows(&x, q, &f, &sel, &out);
	smi_fields_done(&f);
	return out.data ? out.data : strdup("");
}

#define ASK(s, q, list, nounits, want)                         \
	do {                                                   \
		char *got_ = ask((s), (q), (list), (nounits)); \
		assert_string_equal(got_, (want));             \
		free(got_);                                    \
	} while (0)

static void writes_values_as_nvidia_smi(void **state)
{
	struct gpu_snapshot *s = *state;

	s->n_devices = 1;
	ASK(s, SMI_GPU, "timestamp,index,count,name,uuid,pci.bus_id,driver_version", false,
	    "2026/07/03 22:10:46.109, 0, 1, Virtual GPU, GPU-000a0000-1111-2222-3333-444444444444, "
	    "00000000:83:00.0, 590.48.01\n");
	ASK(s, SMI_GPU, "utilization.gpu,memory.total,memory.reserved,memory.used,power.draw",
	    false, "100 %, 81559 MiB, 479 MiB, 0 MiB, 77.70 W\n");
	ASK(s, SMI_GPU, "utilization.gpu,memory.total,memory.used,power.draw,clocks.sm", true,
	    "100, 81559, 0, 77.70, 1980\n");
	ASK(s, SMI_GPU, "pci.domain,pci.bus,pci.device,pci.baseClass,pci.device_id", false,
	    "0x0000, 0x83, 0x00, 0x3, 0x233510DE\n");
	ASK(s, SMI_GPU, "clocks_event_reasons.active,clocks_throttle_reasons.gpu_idle", false,
	    "0x0000000000000004, Not Active\n");
	ASK(s, SMI_GPU, "clocks_event_reasons.sw_power_cap,pstate,compute_cap,compute_mode", false,
	    "Active, P0, 9.0, Exclusive_Process\n");
	ASK(s, SMI_GPU, "persistence_mode,inforom.checksum_validation,retired_pages.pending,serial",
	    false, "Enabled, valid, No, 165\n");
	ASK(s, SMI_GPU, "clocks_event_reasons_counters.sw_power_cap,temperature.gpu", false,
	    "15814595384 us, 52\n");
}

static void says_why_a_value_is_missing(void **state)
{
	struct gpu_snapshot *s = *state;

	s->n_devices = 1;
	ASK(s, SMI_GPU, "fan.speed,display_mode,temperature.memory,utilization.memory", true,
	    "[Insufficient Permissions], [Requested functionality has been deprecated], N/A, "
	    "[N/A]\n");
	ASK(s, SMI_GPU, "fabric.health.summary,platform.chassis_serial_number,hostname", false,
	    "N/A, , [N/A]\n");
}

static void a_bad_gpu_spoils_no_other(void **state)
{
	struct gpu_snapshot *s = *state;

	s->device[1].state = GPU_LOST;
	ASK(s, SMI_GPU, "index,name,pci.bus_id,temperature.gpu,pstate,gom.current,count", false,
	    "0, Virtual GPU, 00000000:83:00.0, 52, P0, [N/A], 2\n"
	    "1, Virtual GPU, 00000000:C4:00.0, [GPU is lost], [GPU is lost], [GPU is lost], 2\n");
	s->device[0].state =
	    GPU_HUNG; /* what was read before it hung is not shown as if it were new */
	s->device[1].state = GPU_NEEDS_RESET;
	ASK(s, SMI_GPU, "index,temperature.gpu", false,
	    "0, [Unknown Error]\n1, [GPU requires reset]\n");
}

static void rows_follow_the_number(void **state)
{
	struct gpu_snapshot *s = *state;
	struct gpu_device *amd;

	s->device[0].index = 1;
	s->device[1].index = 0;
	amd = gpu_add_device(s, GPU_AMD);
	snprintf(amd->name, sizeof(amd->name), "Radeon");
	ASK(s, SMI_GPU, "index,pci.bus,name,uuid", false,
	    "0, 0xC4, Virtual GPU, GPU-000a0001-1111-2222-3333-444444444444\n"
	    "1, 0x83, Virtual GPU, GPU-000a0000-1111-2222-3333-444444444444\n"
	    "2, [N/A], Radeon, [N/A]\n");
}

static void header_has_the_first_name_and_the_unit(void **state)
{
	struct smi_fields f = { 0 };
	auto_done(buf) struct buf out = { 0 };
	char bad[80];

	(void)state;
	assert_int_equal(
	    smi_fields_parse(SMI_GPU, " gpu_name , clocks.gr,temperature.gpu,power.draw, fan.speed",
			     &f, bad, sizeof(bad)),
	    0);
	smi_csv_header(&f, &out);
	assert_string_equal(buf_text(&out), "name, clocks.current.graphics [MHz], temperature.gpu, "
					    "power.draw [W], fan.speed [%]\n");
	smi_fields_done(&f);
	buf_reset(&out);
	assert_int_equal(smi_fields_parse(SMI_ACCOUNTED, "pid,gpu_util,time", &f, bad, sizeof(bad)),
			 0);
	smi_csv_header(&f, &out);
	assert_string_equal(buf_text(&out), "pid, gpu_utilization [%], time [ms]\n");
	smi_fields_done(&f);
}

static void every_field_has_one_meaning(void **state)
{
	size_t n;
	const struct smi_field *all = smi_fields_of(SMI_GPU, &n);

	(void)state;
	assert_true(n >= 212);
	for (size_t i = 0; i < n; i++) {
		assert_ptr_equal(smi_field_find(SMI_GPU, all[i].name, strlen(all[i].name)),
				 &all[i]);
		if (*all[i].alias)
			assert_ptr_equal(
			    smi_field_find(SMI_GPU, all[i].alias, strlen(all[i].alias)), &all[i]);
	}
}

static void hint(const char *bad, const char *part)
{
	auto_done(buf) struct buf out = { 0 };

	smi_field_hint(SMI_GPU, bad, &out);
	if (!strstr(buf_text(&out), part))
		fail_msg("'%s': \"%s\" lacks \"%s\"", bad, buf_text(&out), part);
}

static void guesses_what_was_meant(void **state)
{
	struct smi_fields f = { 0 };
	char bad[8];

	(void)state;
	assert_int_equal(smi_fields_parse(SMI_GPU, "index,no.such.thing", &f, bad, sizeof(bad)),
			 -EINVAL);
	assert_string_equal(bad, "no.such");
	assert_int_equal(smi_fields_parse(SMI_GPU, "index,", &f, bad, sizeof(bad)), -EINVAL);
	assert_string_equal(bad, "");
	hint("0:utilization.gpu", "-i 0 --query-gpu=utilization.gpu");
	hint("3:utilisation.gpu", "-i 3 --query-gpu=utilization.gpu");
	hint("gpu.utilization", "'utilization.gpu'");
	hint("memory.usde", "'memory.used'");
	hint("temperature", "'temperature.gpu'");
	hint("power", "'power.draw'");
	hint("cuda_version", "smi --version");
	hint("used_memory", "--query-compute-apps=used_memory");
	hint("retired_pages.double_bit_ecc.count", "'retired_pages.");
	hint("zzz", "--help-query-gpu");
	hint("", "--help-query-gpu");
}

static void takes_formats_in_any_order(void **state)
{
	struct smi_format f = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(smi_format_parse("nounits, csv,noheader", &f, &e), 0);
	assert_true(f.csv && f.noheader && f.nounits);
	assert_int_equal(smi_format_parse("csv,", &f, &e), 0);
	assert_false(f.noheader || f.nounits);
	assert_int_equal(smi_format_parse("noheader", &f, &e), -EINVAL);
	assert_int_equal(smi_format_parse("csv,xml", &f, &e), -EINVAL);
}

static int pick(const struct gpu_snapshot *s, const char *ids)
{
	struct smi_selection sel;
	int mask = 0;

	if (smi_select(s, ids, &sel, NULL) < 0)
		return -1;
	for (int i = 0; i < s->n_devices; i++)
		mask |= sel.row[i] << i;
	return mask;
}

static void finds_gpus_by_every_id(void **state)
{
	struct gpu_snapshot *s = *state;
	struct gpu_device *d = gpu_add_device(s, GPU_NVIDIA);

	d->partition = 0;
	d->parent = 1;
	d->index = 1;
	assert_int_equal(pick(s, NULL), 3);
	assert_int_equal(pick(s, "0"), 1);
	assert_int_equal(pick(s, "1, 0,1"), 3);
	assert_int_equal(pick(s, "GPU-000A0001-1111-2222-3333-444444444444"), 2);
	assert_int_equal(pick(s, "GPU-000a0001"), 2);
	assert_int_equal(pick(s, "83:00.0"), 1);
	assert_int_equal(pick(s, "0000:C4:00.0"), 2);
	assert_int_equal(pick(s, "00000000:c4:00.0"), 2);
	assert_int_equal(pick(s, "GPU-000a"), -1); /* both begin so */
	assert_int_equal(pick(s, "GPU-"), -1);
	assert_int_equal(pick(s, "2"), -1);
	assert_int_equal(pick(s, "-1"), -1);
	assert_int_equal(pick(s, ""), -1);
	assert_int_equal(pick(s, "0,"), -1);
	assert_int_equal(pick(s, "0,7"), -1);
	assert_int_equal(pick(s, "99999999999999999999"), -1);
}

static void pci_addresses_are_checked(void **state)
{
	static const char *const bad[] = { "",         ":",        "::",      "83",
					   "83:00.",   "83:00.0x", "1:2:3:4", "123456789:83:00.0",
					   "100:00.0", "83:000.0", "83:00.10" };
	unsigned at[4];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (smi_pci_parse(bad[i], at))
			fail_msg("'%s' was taken", bad[i]);
	assert_true(smi_pci_parse("00010000:0a:1f.7", at));
	assert_int_equal(at[0], 0x10000);
	assert_int_equal(at[1], 0xa);
	assert_int_equal(at[2], 0x1f);
	assert_int_equal(at[3], 7);
}

static void lists_partitions(void **state)
{
	struct gpu_snapshot *s = *state;
	struct gpu_device *d;
	struct smi_selection sel;
	auto_done(buf) struct buf out = { 0 };

	s->device[1].uuid[0] = '\0';
	s->device[1].state = GPU_LOST;
	d = gpu_add_device(s, GPU_NVIDIA);
	d->parent = 0;
	d->partition = 0;
	snprintf(d->profile, sizeof(d->profile), "3g.40gb");
	snprintf(d->uuid, sizeof(d->uuid), "MIG-7");
	assert_int_equal(smi_select(s, NULL, &sel, NULL), 0);
	smi_list(s, &sel, &out);
	assert_string_equal(buf_text(&out),
			    "GPU 0: Virtual GPU (UUID: GPU-000a0000-1111-2222-3333-444444444444)\n"
			    "  MIG 3g.40gb     Device  0: (UUID: MIG-7)\n"
			    "GPU 1: Virtual GPU (UUID: [GPU is lost])\n");
}

static void processes_of_a_partition_are_its_gpus(void **state)
{
	struct gpu_snapshot *s = *state;
	struct gpu_device *d = gpu_add_device(s, GPU_NVIDIA);
	struct gpu_process *p;

	d->parent = 0;
	d->partition = 0;
	s->device[0].partitioned = true;
	p = gpu_add_process(s, 0, 100); /* the driver lists it for the GPU and for its instance */
	p->memory_kb = 2566 * 1024;
	snprintf(p->name, sizeof(p->name), "./train");
	p = gpu_add_process(s, 2, 100);
	p->memory_kb = 2566 * 1024;
	p = gpu_add_process(s, 2, 101);
	snprintf(p->name, sizeof(p->name), "a\n\033[2J, b");
	p = gpu_add_process(s, 1, 102);
	p->graphics = true;
	gpu_add_process(s, 1, 103);
	ASK(s, SMI_APPS, "gpu_uuid,pid,name,used_memory", false,
	    "GPU-000a0000-1111-2222-3333-444444444444, 100, ./train, 2566 MiB\n"
	    "GPU-000a0000-1111-2222-3333-444444444444, 101, a??[2J, b, [N/A]\n"
	    "GPU-000a0001-1111-2222-3333-444444444444, 103, [Not Found], [N/A]\n");
	ASK(s, SMI_PAGES, "timestamp,retired_pages.cause", false, "");
}

static void hostile_text_stays_on_its_line(void **state)
{
	struct gpu_snapshot *s = *state;

	s->n_devices = 1;
	memset(s->device[0].name, 0xff, sizeof(s->device[0].name));
	snprintf(s->device[0].uuid, sizeof(s->device[0].uuid), "a\r\nb\tc\x1b]0;x\a");
	snprintf(s->device[0].pci, sizeof(s->device[0].pci), "%%n%%n%%n");
	gpu_snapshot_check(s);
	s->device[0].name[3] = '\0';
	ASK(s, SMI_GPU, "name,uuid,pci.bus_id,pci.bus", false, "???, a??b?c?]0;x?, [N/A], [N/A]\n");
	gpu_put(&s->device[0], M_GPU_MEM_USED, INT64_MAX);
	gpu_put(&s->device[0], M_GPU_BUSY, INT64_MIN);
	gpu_put_number(&s->device[0], GPU_P_COMPUTE_MODE, -1);
	gpu_put_number(&s->device[0], GPU_P_REASONS, -1);
	ASK(s, SMI_GPU, "memory.used,compute_mode,clocks_event_reasons.active", true,
	    "9007199254740992, [Unknown Error], 0xFFFFFFFFFFFFFFFF\n");
}

static void no_gpu_has_its_reason(void **state)
{
	static const struct {
		const char *says;
		int status;
	} problems[] = {
		{ "the NVIDIA driver is not loaded: try 'modprobe nvidia'", SMI_NO_DRIVER },
		{ "cannot load '/x.so': no such file", SMI_NO_LIBRARY },
		{ "'x' is no NVIDIA management library: calls are missing", SMI_NO_LIBRARY },
		{ "(library and kernel module differ): reboot", SMI_MISMATCH },
		{ "no permission to use the NVIDIA driver", SMI_NO_PERMISSION },
		{ "nvmlInit says 999", SMI_OTHER },
	};
	struct gpu_snapshot *s = *state;
	auto_done(buf) struct buf out = { 0 };

	assert_int_equal(smi_no_gpus(s, false, &out), SMI_NO_DEVICE);
	assert_string_equal(buf_text(&out), "No devices were found\n");
	assert_int_equal(smi_no_gpus(NULL, true, &out), SMI_NO_DRIVER); /* it does not answer */
	assert_int_equal(smi_no_gpus(s, true, &out), SMI_NO_LIBRARY);
	for (size_t i = 0; i < ARRAY_LEN(problems); i++) {
		snprintf(s->problem[GPU_NVIDIA], sizeof(s->problem[0]), "%s", problems[i].says);
		assert_int_equal(smi_no_gpus(s, true, &out), problems[i].status);
	}
}

static void table_and_json_leave_out_the_unknown(void **state)
{
	struct gpu_snapshot *s = *state;
	struct smi_context x = { .snapshot = s, .wall_ns = WHEN, .root = -1 };
	struct smi_selection sel;
	auto_done(buf) struct buf out = { 0 };

	s->device[0].simulated = true;
	s->device[1].state = GPU_HUNG;
	assert_int_equal(smi_select(s, NULL, &sel, NULL), 0);
	smi_table(&x, &sel, &out);
	assert_non_null(strstr(buf_text(&out), "Driver Version: 590.48.01"));
	assert_non_null(strstr(buf_text(&out), "0 / 81559"));
	assert_non_null(strstr(buf_text(&out), "simulated"));
	assert_non_null(strstr(buf_text(&out), "driver call hangs"));
	assert_non_null(strstr(buf_text(&out), "No process is on a GPU."));
	buf_reset(&out);
	smi_json(&x, &sel, &out);
	assert_non_null(strstr(buf_text(&out), "\"gpu.busy\":0.995"));
	assert_null(strstr(buf_text(&out), "gpu.fan"));
	assert_non_null(strstr(buf_text(&out), "\"state\":\"hung\""));
}

#define WITH_GPUS(f) cmocka_unit_test_setup_teardown(f, two_gpus, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_GPUS(writes_values_as_nvidia_smi),
		WITH_GPUS(says_why_a_value_is_missing),
		WITH_GPUS(a_bad_gpu_spoils_no_other),
		WITH_GPUS(rows_follow_the_number),
		cmocka_unit_test(header_has_the_first_name_and_the_unit),
		cmocka_unit_test(every_field_has_one_meaning),
		cmocka_unit_test(guesses_what_was_meant),
		cmocka_unit_test(takes_formats_in_any_order),
		WITH_GPUS(finds_gpus_by_every_id),
		cmocka_unit_test(pci_addresses_are_checked),
		WITH_GPUS(lists_partitions),
		WITH_GPUS(processes_of_a_partition_are_its_gpus),
		WITH_GPUS(hostile_text_stays_on_its_line),
		WITH_GPUS(no_gpu_has_its_reason),
		WITH_GPUS(table_and_json_leave_out_the_unknown),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
