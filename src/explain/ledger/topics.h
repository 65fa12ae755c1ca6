/* SPDX-License-Identifier: MIT
 *
 * What kind of work a stack is in, whatever state its thread is in: unpacking, tokenising, writing a
 * checkpoint, ... One table of frames says it (topics.c). Phases (phases.h) are exclusive and make the
 * time ledger; topics are not: a stack may be in several, and rules ask how much time one has.
 */
#ifndef SPOTTER_EXPLAIN_LEDGER_TOPICS_H
#define SPOTTER_EXPLAIN_LEDGER_TOPICS_H

#include "explain/ledger/phases.h"

enum topic {
	TOPIC_DECOMPRESS,    /* zip, gzip, npz, hdf5 filters */
	TOPIC_DECODE,        /* pictures, sound, video */
	TOPIC_TOKENIZE,      /* text to numbers */
	TOPIC_PARSE,         /* csv, json, xml */
	TOPIC_FILES,         /* opening, listing, asking for files: not their contents */
	TOPIC_CHECKPOINT,    /* the model is written or read */
	TOPIC_LOG,           /* metrics, prints, event files */
	TOPIC_UPLOAD,        /* something goes over the network: trackers, buckets */
	TOPIC_PROGRESS,      /* progress bars, plots */
	TOPIC_EVALUATE,      /* validation, testing */
	TOPIC_COMPILE,       /* tracing, compiling, autotuning */
	TOPIC_READ_BACK,     /* a value of the device is asked for: .item(), .cpu() */
	TOPIC_COPY_IN,       /* data goes to the device */
	TOPIC_START_WORKERS, /* loader workers are being started or ended */
	TOPIC_DATA_PARALLEL, /* one process copies its model to several GPUs each step */
	TOPIC_HAND_OUT,      /* the same by hand, by the names of the program's own functions */
	TOPIC_OPTIMIZER,
	TOPIC_LOADS, /* files are read and something is made of them: by the text of the program */
	TOPIC_WATCH, /* metrics that nobody learns from: by the text of the program */
	TOPIC_INSTALL, /* packages are installed, downloaded */
	TOPIC_GC,      /* the interpreter collects garbage: by a flag, no frame says it */
	TOPICS,
};

#define TOPIC_BIT(t) (1u << (t))

/* What has a cause of its own, and is no other work of the loop. */
enum {
	TOPICS_NAMED = TOPIC_BIT(TOPIC_CHECKPOINT) | TOPIC_BIT(TOPIC_LOG) |
		       TOPIC_BIT(TOPIC_UPLOAD) | TOPIC_BIT(TOPIC_PROGRESS) |
		       TOPIC_BIT(TOPIC_COMPILE) | TOPIC_BIT(TOPIC_GC) | TOPIC_BIT(TOPIC_EVALUATE) |
		       TOPIC_BIT(TOPIC_START_WORKERS)
};

struct topic_rule {
	enum topic topic;
	enum phase_by by;
	const char *file, *name; /* as in a row of phases */
};

extern const struct topic_rule topic_rules[];
extern const size_t n_topic_rules;

/* Bits of all rows that hold: with by_line those of lines, otherwise those of its kind. */
uint32_t topics_match(const struct place *p, bool by_line);
const char *topic_name(enum topic t);

#endif
