/* SPDX-License-Identifier: MIT
 *
 * What the frames of stacks say: each node of the book that is needed, outermost first, so that a node
 * finds its caller's answer ready.
 */
#include "explain/activity_part.h"

#include "explain/ledger/roles.h"
#include "explain/ledger/topics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Answers for places, + 2: 0 is "not asked yet", 1 "none". */
struct place_memo {
	int16_t frame, line, role;
	bool topics_known;
	uint32_t topics, line_topics, text_topics, named_topics; /* named: without those by text */
};

/* Folders of a project that scripts are kept in, beside the code they use. */
static const char script_folders[] = "scripts|script|bin|tools|examples|example|experiments|"
				     "experiment|jobs|cli|apps|recipes|tasks";

/* Length of a path without its last part, 0: it has no folder. */
static size_t folder_of(const char *path, size_t n)
{
	while (n > 0 && path[n - 1] != '/')
		n--;
	return n > 1 ? n - 1 : 0;
}

static bool keeps_scripts(const char *path, size_t n)
{
	size_t up = folder_of(path, n);
	const char *name = path + (up ? up + 1 : 0);
	size_t len = n - (size_t)(name - path), k;

	for (const char *p = script_folders; *p; p += k + (p[k] == '|')) {
		k = strcspn(p, "|");
		if (k == len && strncmp(p, name, len) == 0)
			return true;
	}
	return false;
}

/* Is this file of the project the script is of? What is imported from elsewhere (PYTHONPATH, an editable
 * install) is not what its user would change, though no package manager put it there. Notebooks' cells and
 * scripts by a relative name do not tell where the project is. */
static bool of_project(const struct place *root, bool module, const char *file)
{
	size_t n = folder_of(root->file, strlen(root->file));

	if (root->file[0] != '/' || file[0] != '/' || strstr(root->file, "/ipykernel_") || n == 0)
		return true;
	if (module || keeps_scripts(root->file, n))
		n = folder_of(root->file, n);
	return n == 0 || (strncmp(root->file, file, n) == 0 && file[n] == '/');
}

/* What plain programs call it. */
static const char training_names[] =
    "train|train_*|training_*|*_train|fit|fit_*|forward|backward|*backprop*|update_weights|"
    "optimizer_step|gradient_step|sgd_step";

/* "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>" */
bool activity_imports(const struct place *p)
{
	return p->kind == PLACE_PYTHON && strncmp(p->file, "<frozen importlib._bootstrap", 28) == 0;
}

static int memo(int16_t *slot, int (*match)(const struct place *, bool), const struct place *p,
		bool arg)
{
	if (!*slot)
		*slot = (int16_t)(match(p, arg) + 2);
	return *slot - 2;
}

static int match_role(const struct place *p, bool unused)
{
	(void)unused;
	return role_of_place(p);
}

static void learn_topics(const struct node_reader *r, struct place_memo *m, const struct place *p,
			 uint32_t id)
{
	if (m->topics_known)
		return;
	m->topics = topics_match(p, false);
	if (p->kind == PLACE_PYTHON && place_is_library(p))
		m->topics &= ~TOPIC_BIT(TOPIC_HAND_OUT);
	m->line_topics = p->kind == PLACE_PYTHON ? topics_match(p, true) : 0;
	m->named_topics = m->topics;
	m->text_topics = text_topics(&r->text, p, id);
	m->topics |= m->text_topics;
	m->topics_known = true;
}

static enum phase phase_at(int row)
{
	return row >= 0 ? phase_rules[row].phase : PHASE_NONE;
}

/* Without a GPU ".item()" and ".to(dtype)" are plain calls. */
static enum phase phase_of_line(const struct node_reader *r, const struct place *p,
				struct place_memo *m)
{
	enum phase x = phase_at(memo(&m->line, phase_match, p, true));

	return !r->devices && (x == PHASE_DEVICE_SYNC || x == PHASE_TRANSFER) ? PHASE_NONE : x;
}

/* A process that was forked has the stack of whoever forked it below its own, a loader's __iter__ say: that is
 * its parent's past and says nothing of what it does itself. */
static void forget_parent(struct node_facts *up)
{
	up->phase = up->leaf_phase = PHASE_NONE;
	up->topics = up->leaf_topics = up->own_topics = up->text_topics = up->written = 0;
	up->sure = up->pooled = up->importing = up->trains = up->teaches = up->learns = up->module =
	    false;
	up->root = 0;
}

static bool is_body(const struct place *p)
{
	return phase_function("_bootstrap", p->function, true) &&
	       phase_file("multiprocessing/process.py", p->file);
}

static void read_own(const struct node_reader *r, struct node_facts *f, const struct place *p,
		     uint32_t id, uint32_t line_topics)
{
	/* A script that another one runs (runpy, exec) is where a project begins anew; an import is not. */
	bool script = !f->importing && strcmp(p->function, "<module>") == 0;
	const struct place *root = script ? NULL : stack_book_find_place(r->book, f->root);

	f->teaches |= text_trains(&r->text, p);
	f->trains |= f->teaches || phase_function(training_names, p->function, true);
	f->learns |= r->text.learners && r->text.learners[id];
	if (root && !of_project(root, f->module, p->file))
		return;
	f->root = root ? f->root : id;
	f->place = id;
	f->own_topics = line_topics;
}

/* A function that writes may run an experiment besides: what it calls of the program's own is no writing by that. */
static void forget_written(struct node_facts *f, struct node_facts *up, const struct place_memo *m)
{
	const uint32_t writes = TOPIC_BIT(TOPIC_LOG) | TOPIC_BIT(TOPIC_CHECKPOINT);

	up->topics &= ~up->written;
	up->text_topics &= ~up->written;
	f->written = m->text_topics & writes & ~m->named_topics & ~up->topics;
}

static void read_python(const struct node_reader *r, struct node_facts *f, struct node_facts *up,
			const struct place *p, uint32_t id, struct place_memo *m)
{
	int row = memo(&m->frame, phase_match, p, false);

	learn_topics(r, m, p, id);
	if (is_body(p)) {
		forget_parent(f);
		forget_parent(up);
		f->spawned = true;
	}
	f->python = true;
	f->sure |= row >= 0 && phase_is_training(&phase_rules[row]);
	f->pooled |= phase_at(row) == PHASE_WORKER && !phase_is_training(&phase_rules[row]);
	f->importing |= activity_imports(p);
	f->phase = phase_step(up->phase, phase_at(row), PHASE_BY_FRAME);
	f->leaf_phase = phase_step(f->phase, phase_of_line(r, p, m), PHASE_BY_LINE);
	f->by_line = f->leaf_phase != f->phase;
	f->leaf = id;
	f->native = 0;
	if (!place_is_library(p))
		forget_written(f, up, m);
	/* What a tokenizer calls is tokenising, whatever its functions are called. */
	f->topics = up->topics | m->topics | (m->line_topics & TOPIC_BIT(TOPIC_TOKENIZE));
	f->leaf_topics = f->topics | m->line_topics;
	f->text_topics = up->text_topics | m->text_topics;
	if (!place_is_library(p))
		read_own(r, f, p, id, m->line_topics);
	else
		f->module |= strcmp(p->function, "_run_module_as_main") == 0;
}

/* What is innermost runs: only there does a library without a device mean anything. */
static void read_native(const struct node_reader *r, struct node_facts *f,
			const struct node_facts *up, const struct place *p, uint32_t id,
			struct place_memo *m)
{
	enum phase own = phase_at(memo(&m->frame, phase_match, p, false));
	enum phase outer = up->native ? up->phase : up->leaf_phase;

	f->phase = own == PHASE_HOST ? outer : phase_step(outer, own, PHASE_BY_NATIVE);
	f->leaf_phase =
	    own == PHASE_HOST && !f->by_line ? outer : phase_step(outer, own, PHASE_BY_NATIVE);
	f->native = id;
	learn_topics(r, m, p, id);
	f->topics = f->leaf_topics = up->leaf_topics | m->topics;
}

static void read_node(struct node_reader *r, uint32_t id, struct place_memo *memos)
{
	const struct stack_node *n = stack_book_find_node(r->book, id);
	const struct place *p = stack_book_find_place(r->book, n->place);
	struct node_facts up = *node_of(r, n->parent), *f = &r->nodes[id];
	int role;

	*f = up;
	f->needed = true;
	if (!p || !p->function || !p->file || !p->source)
		return;
	if (p->kind == PLACE_NATIVE)
		read_native(r, f, &up, p, n->place, &memos[n->place]);
	else
		read_python(r, f, &up, p, n->place, &memos[n->place]);
	/* The outermost that says something, but for a server that others run in; a library only
	 * where there is no Python. */
	if ((f->role < 0 || role_rules[f->role].role == ROLE_CHILD) &&
	    !(p->kind == PLACE_NATIVE && f->python)) {
		role = memo(&memos[n->place].role, match_role, p, false);
		f->role = role >= 0 ? (int16_t)role : f->role;
	}
}

int nodes_open(struct node_reader *r, const struct stack_book *book, bool devices,
	       const struct act_row *rows, size_t n_rows)
{
	struct place_memo *memos = calloc(book->places.n + 1, sizeof(*memos));

	*r = (struct node_reader){ .book = book, .n = book->nodes.n + 1, .devices = devices };
	r->nodes = calloc(r->n, sizeof(*r->nodes));
	if (!r->nodes || !memos) {
		free(memos);
		return -ENOMEM;
	}
	r->nodes[0].role = -1;
	for (size_t i = 0; i < n_rows; i++)
		for (uint32_t id = rows[i].node; id && id < r->n && !r->nodes[id].needed;) {
			r->nodes[id].needed = true;
			id = book->nodes.v[id - 1].parent;
		}
	if (!text_sense_open(&r->text, book, r->nodes, r->n)) {
		free(memos);
		return -ENOMEM;
	}
	/* Parents are below their children. */
	for (size_t id = 1; id < r->n; id++)
		if (r->nodes[id].needed)
			read_node(r, (uint32_t)id, memos);
	free(memos);
	return 0;
}

void nodes_done(struct node_reader *r)
{
	free(r->nodes);
	text_sense_done(&r->text);
	*r = (struct node_reader){ 0 };
}

const struct node_facts *node_of(const struct node_reader *r, uint32_t node)
{
	return &r->nodes[node < r->n ? node : 0];
}
