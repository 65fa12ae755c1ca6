/* SPDX-License-Identifier: MIT
 *
 * `spotter smi`: what scripts ask nvidia-smi for, answered from a snapshot of the GPUs of any vendor.
 * Everything here but smi_source.c is a pure function of a snapshot and the options.
 */
#ifndef SPOTTER_CLI_SMI_H
#define SPOTTER_CLI_SMI_H

#include "gpu/gpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

/* Exit statuses of nvidia-smi, which are NVML's error numbers. */
enum {
	SMI_OK = 0,
	SMI_INVALID = 2,
	SMI_NO_PERMISSION = 4,
	SMI_NO_DEVICE = 6,
	SMI_NO_DRIVER = 9,
	SMI_NO_LIBRARY = 12,
	SMI_LOST = 15,
	SMI_MISMATCH = 18,
	SMI_OTHER = 255,
};

enum smi_query { SMI_GPU, SMI_APPS, SMI_ACCOUNTED, SMI_PAGES, SMI_QUERIES };

/* How a value is written; smi_value.c has one row each. */
enum smi_writing {
	SMI_TEXT,
	SMI_BARE_TEXT,  /* missing: N/A without brackets */
	SMI_EMPTY_TEXT, /* missing: nothing */
	SMI_COUNT,
	SMI_BARE_COUNT,
	SMI_PERCENT, /* of 1e-4 */
	SMI_MIB_KB,  /* of kB */
	SMI_MIB_BYTES,
	SMI_WATT, /* of mW */
	SMI_WATT_PER_S,
	SMI_MHZ,
	SMI_US,
	SMI_MS,
	SMI_SECONDS,
	SMI_HEX, /* 0x3 */
	SMI_HEX2,
	SMI_HEX4,
	SMI_HEX8,
	SMI_HEX16,
	SMI_ENABLED,
	SMI_ACTIVE,
	SMI_YESNO,
	SMI_VALID,
	SMI_SUPPORTED,
	SMI_PSTATE,
	SMI_COMPUTE_MODE,
	SMI_COMPUTE_CAP,
	SMI_WRITINGS
};

enum smi_source {
	SMI_FROM_NONE,
	SMI_FROM_METRIC,
	SMI_FROM_PROPERTY,
	SMI_FROM_DEVICE,
	SMI_FROM_APP
};

enum smi_device_part {
	SMI_D_TIMESTAMP,
	SMI_D_DRIVER,
	SMI_D_COUNT,
	SMI_D_NAME,
	SMI_D_UUID,
	SMI_D_PCI,
	SMI_D_PCI_DOMAIN,
	SMI_D_PCI_BUS,
	SMI_D_PCI_DEVICE,
	SMI_D_INDEX,
};

enum smi_app_part { SMI_A_PID, SMI_A_NAME, SMI_A_MEMORY };

struct smi_field {
	const char *name, *alias; /* alias "": none */
	enum smi_writing writing;
	enum smi_source source;
	int id; /* metric, property, or one of the parts above */
};

enum { SMI_FIELDS_MAX = 1024 };

struct smi_fields {
	const struct smi_field **v;
	size_t n;
};

/* --- fields: smi_field.c */
extern const char *const smi_query_names[SMI_QUERIES]; /* "gpu", "compute-apps", ... */
const struct smi_field *smi_fields_of(enum smi_query q, size_t *ret_n);
const struct smi_field *smi_field_find(enum smi_query q, const char *name, size_t n); /* NULL */
/* "index, name": 0; -EINVAL with the bad one in bad (cut); -E2BIG, -ENOMEM. */
int smi_fields_parse(enum smi_query q, const char *list, struct smi_fields *ret, char *bad,
		     size_t bad_size);
void smi_fields_done(struct smi_fields *f);
/* What was probably meant by a name that is none, as words for the user; "" when nobody knows. */
void smi_field_hint(enum smi_query q, const char *bad, struct buf *out);
/* Does any of them need the depth at which properties are read? */
bool smi_fields_deep(const struct smi_fields *f);
/* --help-query-gpu and the like. */
void smi_fields_help(enum smi_query q, struct buf *out);

/* "csv,noheader,nounits" in any order, blanks allowed. */
struct smi_format {
	bool csv, noheader, nounits;
};
int smi_format_parse(const char *text, struct smi_format *ret, struct err *e);

/* --- which GPUs: smi_select.c */
struct smi_selection {
	bool row[GPU_DEVICES]; /* whole GPUs only; partitions follow theirs */
	size_t n;
};
/* ids NULL: all. -ENODEV: one of them is no GPU, or names several; *e says which. */
int smi_select(const struct gpu_snapshot *s, const char *ids, struct smi_selection *ret,
	       struct err *e);
/* Rows of the selected GPUs by that number; how many. */
int smi_order(const struct gpu_snapshot *s, const struct smi_selection *sel, int ret[GPU_DEVICES]);
/* The GPU a row belongs to: itself, or that of the partition. */
int smi_whole(const struct gpu_snapshot *s, int row);
/* "0000:83:00.0" and the like: domain, bus, device, function. */
bool smi_pci_parse(const char *text, unsigned ret[4]);

/* --- values: smi_value.c */
struct smi_context {
	const struct gpu_snapshot *snapshot;
	int64_t wall_ns;
	int root; /* for names of processes; -1: no /proc to look into */
	bool nounits;
};
const char *smi_unit(enum smi_writing w); /* "MiB"; "" none */
int64_t smi_mib(int64_t kb);              /* whole MiB as nvidia-smi counts them */
/* The token nvidia-smi shows for a value that is not there. */
const char *smi_missing(enum smi_writing w, enum gpu_have why);
/* One value of GPU `row`; app NULL unless it is a query of processes. */
void smi_value(const struct smi_context *x, const struct smi_field *f, int row,
	       const struct gpu_process *app, struct buf *out);
/* "2026/07/03 22:10:46.109", local time. */
void smi_timestamp(int64_t wall_ns, char *buf, size_t size);
/* First argument of a process as nvidia-smi shows it, or "[Not Found]". */
void smi_process_name(const struct smi_context *x, const struct gpu_process *p, struct buf *out);

/* --- whole answers: smi_csv.c, smi_table.c, smi_json.c */
void smi_csv_header(const struct smi_fields *f, struct buf *out);
void smi_csv_rows(const struct smi_context *x, enum smi_query q, const struct smi_fields *f,
		  const struct smi_selection *sel, struct buf *out);
void smi_list(const struct gpu_snapshot *s, const struct smi_selection *sel, struct buf *out);
void smi_table(const struct smi_context *x, const struct smi_selection *sel, struct buf *out);
void smi_json(const struct smi_context *x, const struct smi_selection *sel, struct buf *out);
/* The same where there is nothing to show: the exit status and the words. */
void smi_json_error(int status, const char *words, struct buf *out);
/* "13.1" of the newest CUDA the driver supports; "" when it does not say. */
const char *smi_cuda(const struct gpu_snapshot *s, char *buf, size_t size);
const char *smi_driver(const struct gpu_snapshot *s);

/* --- the GPUs themselves: smi_source.c */
struct smi_source_options {
	const char *root;  /* fixture, NULL: this machine */
	const char *nvml;  /* library to load, NULL: SPOTTER_NVML or as the loader finds it */
	bool deep;         /* properties as well */
	int64_t period_ns; /* of a loop, 0: one reading */
	bool (*asked_to_stop)(void); /* looked at every now and then while waiting; NULL: never */
};
struct smi_gpus;
int smi_open(const struct smi_source_options *o, struct smi_gpus **ret, struct err *e);
/* A new reading; to_end: of a fixture all states are read, the last is given. Where the driver does not
 * answer for 30 s: the GPUs that were read meanwhile, or those last seen as hung. NULL: none was ever
 * seen, or smi_stopped(). */
const struct gpu_snapshot *smi_read(struct smi_gpus *g, bool to_end, int64_t *ret_wall_ns);
/* Did asked_to_stop() end the last reading? */
bool smi_stopped(const struct smi_gpus *g);
/* The next thing that went wrong, in words; false when there is none. */
bool smi_trouble(struct smi_gpus *g, char *ret, size_t size);
/* nvidia-smi's words and status for why there is no GPU. */
int smi_no_gpus(const struct gpu_snapshot *s, bool driver_there, struct buf *out);
/* Is NVIDIA's kernel module loaded? */
bool smi_driver_there(const struct smi_gpus *g);
int smi_root(const struct smi_gpus *g);
/* Fixture: is there another state to read? Always true on a machine. */
bool smi_advance(struct smi_gpus *g);
void smi_close(struct smi_gpus *g);

#endif
