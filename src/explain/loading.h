/* SPDX-License-Identifier: MIT
 *
 * What rules about loading data share: what bounds a gain from the other side, and how a loader is
 * told to load ahead.
 */
#ifndef SPOTTER_EXPLAIN_LOADING_H
#define SPOTTER_EXPLAIN_LOADING_H

#include "explain/rule.h"

/* A GPU this busy has no time to lose: waiting for data meanwhile is no stall. */
static const double loading_gpu_busy = 0.90;
/* Of its units while a kernel runs: with no more it is busy with little. */
static const double loading_gpu_narrow = 0.25;
/* Fewer workers at a time are none: those of a short evaluation. */
static const double loading_workers_least = 0.5;

/* Least share of the present time that is ever promised: what is left may be too little to be measured. */
static const double loading_least_left = 0.05;

/* Of the training thread's time: in loops that hand out work for one element at a time (dispatch.elements). */
static const double loading_elements_least = 0.3;

enum loading_case { LOADING_BEST, LOADING_LIKELY, LOADING_WORST };

/* Least share of the present time that the GPU leaves: what it is busy now, and the gaps that a GPU has which is
 * what a training waits for. */
double loading_gpu_floor(const struct facts *f, enum loading_case c);
/* The same where ranks wait for a late one: a GPU is busy, too, while its rank waits in a collective. That of the late rank waits
 * for nobody, and the least busy one has no more to do than that. 0: ranks share GPUs, or have none. */
double loading_late_gpu_floor(const struct facts *f, enum loading_case c);
/* Least share of the present time that a loader leaves which is waited for: what its workers have to do now they have to do
 * then, whatever the training thread is spared. 0: nobody waits for it. */
double loading_supply_floor(const struct facts *f, enum loading_case c);
/* Cores that helping threads of math libraries spin away (cores.spinning); 0 where that is not known. */
double loading_cores_spinning(const struct facts *f);
/* Evidence: the cores that are free, and those that are spun away. */
struct finding;
void loading_because_cores(struct finding *x, const struct facts *f);
/* Least share of the present time that the GPU and the cores leave, whatever the loader does: a GPU
 * that is busy for 0.7 s of a second is so for 0.7 s, and CPU time must be had from somewhere. `more`:
 * processes that are to be started for it. */
double loading_floor(const struct facts *f, enum loading_case c, double more);
/* The cores' part of it. */
double loading_cores_floor(const struct facts *f, enum loading_case c, double more);
/* "GPU-bound", "the cores it may use", or `otherwise`: what holds it once a second takes `then`. */
const char *loading_then(const struct facts *f, double then, double more, const char *otherwise);
/* Wall time of the training thread for a second it runs: it is queued for a CPU as often as it wants
 * one, so what it no longer runs it is no longer queued for either. */
double loading_wall_per_cpu(const struct facts *f);
/* What a second takes when a step of pipeline.h that takes `now` takes `after`, and the GPU and what is least promised
 * are seen to. What the what-if does not know of stays in proportion; the GPU's work, which is known, does not. */
double loading_played(const struct facts *f, enum loading_case c, double now, double after);
/* Of the time of loading, the part on a CPU (the rest waits for storage): in the workers, else in the training. */
double loading_cpu_part(const struct facts *f);
/* Is there somebody who uses the data: the GPU, a framework, or a program that does something else with it
 * than loading and whose loading is plainly a training's? Without one there is no cause here. */
enum answer loading_is_for_training(const struct facts *f, struct opinion *o);
/* Do the ranks wait for each other? Trainings that a launcher started side by side are told apart from ranks by
 * when their steps end, else by collectives and by numbers. */
enum answer loading_ranks_in_step(const struct facts *f, struct opinion *o);
/* Is it one rank alone whose data is late, and the others wait for it? Then what differs there is to be mended
 * (input_straggler), and how all ranks load is worth a note. */
bool loading_of_one_rank(const struct facts *f);
/* "the training thread", or "the main thread" where no training was recognised. */
const char *loading_thread(const struct facts *f);
/* "the training" or "the program" */
const char *loading_program(const struct facts *f);
/* "WHAT in decode (87 %), hottest at data.py:33": evidence from load.place. */
void loading_because_place(struct finding *x, const struct facts *f, const char *what);
/* What a second takes when this share of the CPU time of loading becomes `times` as fast: Amdahl. Where the
 * training loads itself that is a part of its own time (`stretch`: wall time of its for a second on a CPU);
 * where it waits for workers, a step takes as long as they need, down to what the training takes itself. */
double loading_stage_faster(const struct facts *f, enum loading_case c, double share, double times,
			    double stretch);
/* Is somebody held up by the loading? It waits for workers 5 % of its time, or loads 5 % of it itself,
 * and the GPU is not busy meanwhile. */
enum answer loading_holds_up(const struct facts *f, struct opinion *o);
/* That, or: is it queued for a CPU that its workers have? */
enum answer loading_in_the_way(const struct facts *f, struct opinion *o);
/* Evidence of who is held up and for how long. */
void loading_because_held_up(struct finding *x, const struct facts *f);
/* The loading as a what-if of pipeline.h, in shares of the present time of a step; false: too little is
 * known. */
struct pipeline;
bool loading_pipeline(const struct facts *f, enum loading_case c, struct pipeline *ret);
/* One kind of work inside of loading that could be done faster or beforehand. */
struct loading_stage {
	enum fact_id share;     /* of the time of loading, with its line */
	double least;           /* from here on it is what loading is about */
	const char *what;       /* "unpacking compressed data" */
	const char *fix, *edit; /* "": none */
	double little, likely,
	    much; /* times as fast as it may become; INFINITY: it is no longer done */
	double confidence;
};
/* The whole rule for a stage: loading holds somebody up, and this is what it does. */
enum answer loading_stage_check(const struct loading_stage *g, const struct facts *f,
				struct opinion *o);
/* Are workers replaced again and again, and is what the training waits for each generation no longer than a start takes? */
bool loading_restarts(const struct facts *f);
/* Are workers replaced so often that few steps have most of the waiting? Those that begin an epoch: what such workers do
 * first is over before their stacks are seen. */
bool loading_waits_for_starts(const struct facts *f);
/* That, or: do workers have time to spare, and does the training wait in few steps? Then it waits for single batches, and not for
 * what they cost on average. */
bool loading_waits_for_few(const struct facts *f);
/* The line that makes the loader or its workers, where it was read; else the one that takes the data, or loads it. */
void loading_where_made(struct finding *x, const struct facts *f);
/* How to have n workers load, in the words of the program's own loader. */
void loading_fix_workers(struct finding *x, const struct facts *f, int n, bool more);

#endif
