/* SPDX-License-Identifier: MIT
 *
 * gpu_lost: a GPU of the job's fell off the bus, reported a fault of its hardware, or its driver does
 * not answer.
 *
 * Not to be taken for it: errors the driver reports for what the program did (XID 13, 31, 43, 45),
 * memory that was put aside in time (63), a call that blocked and came back, and GPUs of others: notes.
 */
#include "explain/rule.h"

#include "base/num.h"
#include "model/xid.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const fix_it = "look at `dmesg` for NVRM/Xid or amdgpu lines; drain the node, "
				  "reset the GPU (nvidia-smi -r) or "
				  "reboot, and go on from the last checkpoint; if it comes again, "
				  "have card, riser and power checked";

static const char *words_of(double xid)
{
	const char *words = xid_words((int64_t)xid);

	return words ? words : "an error";
}

static void say_why(struct finding *x, const struct facts *f)
{
	double fault = fact_or(f, FACT_GPU_FAULT, 0), hang = fact_or(f, FACT_GPU_HANG, 0);
	char a[32];

	if (fact_or(f, FACT_GPU_LOST, 0) > 0)
		rule_because(x, f, FACT_GPU_LOST, "the driver lost %s", f->v[FACT_GPU_LOST].text);
	if (fault > 0)
		rule_because(x, f, FACT_GPU_FAULT, "%s: XID %d, %s", f->v[FACT_GPU_FAULT].text,
			     (int)fault, words_of(fault));
	if (hang > 0)
		rule_because(x, f, FACT_GPU_HANG, "driver call blocked for %s in %s",
			     num_seconds(hang, a, sizeof(a)), f->v[FACT_GPU_HANG].text);
}

static void lost(struct finding *x, const struct facts *f, bool hangs)
{
	double fault = fact_or(f, FACT_GPU_FAULT, 0);
	char a[32];

	if (fault > 0)
		snprintf(x->title, sizeof(x->title), "%s: %s (XID %d)", f->v[FACT_GPU_FAULT].text,
			 words_of(fault), (int)fault);
	else if (!hangs && fact_or(f, FACT_GPU_LOST, 0) > 0)
		snprintf(x->title, sizeof(x->title), "%s was lost: its driver cannot reach it",
			 f->v[FACT_GPU_LOST].text);
	else
		snprintf(x->title, sizeof(x->title), "driver call blocked for %s in %s",
			 num_seconds(f->v[FACT_GPU_HANG].value, a, sizeof(a)),
			 f->v[FACT_GPU_HANG].text);
	say_why(x, f);
	snprintf(x->fix, sizeof(x->fix), "%s", fix_it);
	snprintf(x->then, sizeof(x->then), "the run can go on");
	x->cost = 1;
	x->confidence = fault > 0 || fact_or(f, FACT_GPU_LOST, 0) > 0 ? 0.95 : 0.8;
}

/* Worth a word, and not why the run stands still. */
static bool note(struct finding *x, const struct facts *f)
{
	double other = fact_or(f, FACT_GPU_FAULT_PROGRAM, 0), hang = fact_or(f, FACT_GPU_HANG, 0);
	double foreign = fact_or(f, FACT_GPU_FAULT_FOREIGN, 0);
	char a[32];

	x->note = true;
	x->cost = NAN;
	x->confidence = 0.8;
	if (other > 0) {
		snprintf(x->title, sizeof(x->title), "%s reported XID %d: %s",
			 f->v[FACT_GPU_FAULT_PROGRAM].text, (int)other, words_of(other));
		rule_because(x, f, FACT_GPU_FAULT_PROGRAM, "XID %d on %s", (int)other,
			     f->v[FACT_GPU_FAULT_PROGRAM].text);
		snprintf(x->fix, sizeof(x->fix), "%s",
			 xid_kind((int)other) == XID_PROGRAM
			     ? "look for the error in the program (compute-sanitizer, "
			       "CUDA_LAUNCH_BLOCKING=1); the GPU itself is not at fault"
			     : "look the number up in NVIDIA's list of XID errors, and at dmesg");
	} else if (hang > 0) {
		snprintf(x->title, sizeof(x->title),
			 "driver call blocked for %s in %s, then it answered again",
			 num_seconds(hang, a, sizeof(a)), f->v[FACT_GPU_HANG].text);
		rule_because(x, f, FACT_GPU_HANG, "driver call blocked for %s in %s",
			     num_seconds(hang, a, sizeof(a)), f->v[FACT_GPU_HANG].text);
		snprintf(x->fix, sizeof(x->fix), "look at `dmesg` for lines of its driver");
	} else if (foreign > 0) {
		hang = fact_or(f, FACT_GPU_HANG_FOREIGN, 0);
		if (hang > 0)
			snprintf(x->title, sizeof(x->title),
				 "driver call blocked for %s in %s, which the job does not use",
				 num_seconds(hang, a, sizeof(a)), f->v[FACT_GPU_HANG_FOREIGN].text);
		else
			snprintf(x->title, sizeof(x->title),
				 "%s, which the job does not use, has a fault",
				 f->v[FACT_GPU_FAULT_FOREIGN].text);
		rule_because(x, f, FACT_GPU_FAULT_FOREIGN, "faults reported of %s: %.0f",
			     f->v[FACT_GPU_FAULT_FOREIGN].text, foreign);
		snprintf(x->fix, sizeof(x->fix), "tell whoever runs the machine");
	} else {
		*x = (struct finding){ 0 };
		return false;
	}
	return true;
}

static enum answer check(const struct facts *f, struct opinion *o)
{
	struct finding *x = &o->finding;
	bool hangs = fact_or(f, FACT_GPU_HANG, 0) > 0 && fact_or(f, FACT_GPU_HANG_OVER, 0) < 0.5;
	enum answer a = answer_or(rule_at_least(f, FACT_GPU_LOST, 1, o),
				  rule_at_least(f, FACT_GPU_FAULT, 1, o));

	if (a == ANSWER_YES || hangs) {
		lost(x, f, hangs);
		return ANSWER_YES;
	}
	if (note(x, f))
		return ANSWER_YES;
	if (a == ANSWER_NO && fact_or(f, FACT_GPU_SILENT, 0) > 0)
		return rule_cannot_tell(o, "%s could not be read at the end, and nothing said why",
					f->v[FACT_GPU_SILENT].text);
	return a;
}

const struct rule gpu_lost_rule = { .cause = "gpu_lost", .check = check, .about_gpus = true };
