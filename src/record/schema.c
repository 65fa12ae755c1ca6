/* SPDX-License-Identifier: MIT */
#include "record/schema.h"

#include <stddef.h>

/* Pages freed by retention go back to the file system bit by bit (auto_vacuum). NORMAL in WAL mode:
 * a commit is in the page cache at once (a killed recorder loses nothing of it), and only our own
 * checkpoints call fsync. Debian's SQLite overwrites deleted rows with zeros unless told not to. */
const char schema_pragmas[] = "PRAGMA page_size = 4096;"
			      "PRAGMA auto_vacuum = INCREMENTAL;"
			      "PRAGMA journal_mode = WAL;"
			      "PRAGMA synchronous = NORMAL;"
			      "PRAGMA wal_autocheckpoint = 0;"
			      "PRAGMA journal_size_limit = 4194304;"
			      "PRAGMA secure_delete = OFF;"
			      "PRAGMA cache_size = -768;"
			      "PRAGMA temp_store = MEMORY;"
			      "PRAGMA foreign_keys = OFF;";

/* clang-format off */
const char schema_tables[] =
	/* One row. argv is a JSON array; recorder_* and boot_id say who writes it, and *_to_ns up to
	 * where roll-ups are complete. */
	"CREATE TABLE run (id TEXT, name TEXT, argv TEXT, cwd TEXT, hostname TEXT, kernel TEXT,"
	" cpu_model TEXT, cpus INTEGER, threads_per_core INTEGER, memory_bytes INTEGER,"
	" virtualisation TEXT, version TEXT, started TEXT, started_wall_ns INTEGER,"
	" started_mono_ns INTEGER, ended_mono_ns INTEGER, hz REAL, level INTEGER, attached INTEGER,"
	" pid INTEGER, state TEXT, exit_code INTEGER, exit_signal INTEGER, rusage_cpu_ns INTEGER,"
	" rusage_maxrss_bytes INTEGER, recorder_pid INTEGER, recorder_start INTEGER,"
	" recorder_namespace INTEGER, boot_id TEXT, fine_to_ns INTEGER, coarse_to_ns INTEGER);"

	/* The vocabulary as it was when this was written: value = raw * scale. */
	"CREATE TABLE metric (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, unit TEXT NOT NULL,"
	" kind TEXT NOT NULL, entity TEXT NOT NULL, scale REAL NOT NULL, help TEXT);"

	/* Things that are measured. Their ids are one space: `entity` elsewhere is one of them. */
	"CREATE TABLE process (id INTEGER PRIMARY KEY, pid INTEGER, parent INTEGER,"
	" start_ns INTEGER, born_ns INTEGER, gone_ns INTEGER, name TEXT, argv TEXT);"
	"CREATE TABLE thread (id INTEGER PRIMARY KEY, tid INTEGER, process INTEGER,"
	" start_ns INTEGER, born_ns INTEGER, gone_ns INTEGER, name TEXT, detail TEXT);"
	"CREATE TABLE device (id INTEGER PRIMARY KEY, kind TEXT, key INTEGER, parent INTEGER,"
	" start_ns INTEGER, born_ns INTEGER, gone_ns INTEGER, name TEXT, detail TEXT);"

	"CREATE TABLE event (t_ns INTEGER, kind TEXT, entity INTEGER, value REAL, text TEXT);"
	"CREATE INDEX event_time ON event (t_ns);"
	"CREATE TABLE gap (metric INTEGER, entity INTEGER, why TEXT, from_ns INTEGER,"
	" to_ns INTEGER);"
	"CREATE INDEX gap_series ON gap (metric, entity);"

	/* What the training itself says. step: begin_ns NULL when it is not known when it began;
	 * micro: batches in it, NULL not known; source: NULL, trainer says it once for all. mark:
	 * phases, end_ns NULL while they go on (or went on when their process ended). scalar: step is the
	 * last one before it, 0 before the first. Never thinned. */
	"CREATE TABLE step (rank INTEGER, n INTEGER, begin_ns INTEGER, end_ns INTEGER,"
	" source TEXT, entity INTEGER, loss REAL, data_wait_ns INTEGER, micro INTEGER);"
	"CREATE TABLE mark (t_ns INTEGER, end_ns INTEGER, entity INTEGER, name TEXT,"
	" id INTEGER PRIMARY KEY);"
	"CREATE TABLE scalar (t_ns INTEGER, rank INTEGER, step INTEGER, name TEXT, value REAL,"
	" entity INTEGER);"
	"CREATE TABLE setting (t_ns INTEGER, entity INTEGER, rank INTEGER, name TEXT, value REAL);"
	/* Who marks steps in this process: 'torch', 'api'... */
	"CREATE TABLE trainer (entity INTEGER PRIMARY KEY, rank INTEGER, source TEXT, t_ns INTEGER);"

	/* What threads did: places, stacks as chains of them (parent 0: outermost), and slices
	 * (record/stack_block.h) of level 'second', later packed to 'minute', later added up to
	 * 'thin'. stack_word: what the codes of states and flags in slices mean. */
	"CREATE TABLE place (id INTEGER PRIMARY KEY, kind TEXT, function TEXT, file TEXT,"
	" line INTEGER, source TEXT);"
	"CREATE TABLE stack (id INTEGER PRIMARY KEY, parent INTEGER, place INTEGER);"
	"CREATE TABLE stack_word (what TEXT, id INTEGER, name TEXT);"
	"CREATE TABLE stack_slice (id INTEGER PRIMARY KEY, level TEXT, t0_ns INTEGER,"
	" t1_ns INTEGER, samples INTEGER, data BLOB);"
	"CREATE INDEX stack_slice_time ON stack_slice (t0_ns, t1_ns);"

	"CREATE TABLE verdict (json TEXT);"
	"CREATE TABLE finding (cause TEXT, family TEXT, title TEXT, cost REAL, confidence REAL,"
	" json TEXT);"

	/* Time series (record/block.h): one blob a group (kind of entity) and stretch of time.
	 * level: 'second', later compacted to 'minute', later thinned to 'thin'. */
	"CREATE TABLE block (id INTEGER PRIMARY KEY, level TEXT, grp TEXT, t0_ns INTEGER,"
	" t1_ns INTEGER, ticks INTEGER, samples INTEGER, data BLOB);"
	"CREATE INDEX block_time ON block (grp, t0_ns);"
	/* Roll-ups (record/rollup.h): t0 is the start of the first bucket, t1 the end of the last. */
	"CREATE TABLE rollup (id INTEGER PRIMARY KEY, level TEXT, grp TEXT, t0_ns INTEGER,"
	" t1_ns INTEGER, ticks INTEGER, samples INTEGER, data BLOB);"
	"CREATE INDEX rollup_time ON rollup (level, grp, t0_ns);"
	/* What retention has deleted: nothing of this level and group is left from before from_ns. */
	"CREATE TABLE kept (level TEXT, grp TEXT, from_ns INTEGER, PRIMARY KEY (level, grp))"
	" WITHOUT ROWID;"

	"CREATE VIEW processes AS SELECT p.id, p.pid, q.pid AS parent_pid, p.name, p.argv,"
	" (p.born_ns - r.started_mono_ns) / 1e9 AS t, (p.gone_ns - r.started_mono_ns) / 1e9 AS t_end"
	" FROM run r JOIN process p LEFT JOIN process q ON q.id = p.parent;"

	"CREATE VIEW threads AS SELECT t.id, p.pid, t.tid, t.name, p.name AS process,"
	" (t.born_ns - r.started_mono_ns) / 1e9 AS t, (t.gone_ns - r.started_mono_ns) / 1e9 AS t_end"
	" FROM run r JOIN thread t LEFT JOIN process p ON p.id = t.process;"

	"CREATE VIEW devices AS SELECT d.id, d.kind, d.key, d.name, d.detail,"
	" (d.born_ns - r.started_mono_ns) / 1e9 AS t, (d.gone_ns - r.started_mono_ns) / 1e9 AS t_end"
	" FROM run r JOIN device d;"

	"CREATE VIEW events AS SELECT (e.t_ns - r.started_mono_ns) / 1e9 AS t, e.kind, e.entity,"
	" coalesce(p.name, h.name, d.name) AS name, e.value, e.text FROM run r JOIN event e"
	" LEFT JOIN process p ON p.id = e.entity LEFT JOIN thread h ON h.id = e.entity"
	" LEFT JOIN device d ON d.id = e.entity;"

	"CREATE VIEW stacks AS SELECT s.id, nullif(s.parent, 0) AS parent, p.function, p.file,"
	" p.line, p.kind, p.source FROM stack s LEFT JOIN place p ON p.id = s.place;"

	"CREATE VIEW steps AS SELECT s.rank, s.n AS step,"
	" (s.begin_ns - r.started_mono_ns) / 1e9 AS t, (s.end_ns - r.started_mono_ns) / 1e9 AS t_end,"
	" (s.end_ns - s.begin_ns) / 1e9 AS seconds, s.loss, s.data_wait_ns / 1e9 AS data_wait,"
	" s.micro, p.pid, coalesce(s.source, q.source) AS source, s.entity FROM run r JOIN step s"
	" LEFT JOIN process p ON p.id = s.entity LEFT JOIN trainer q ON q.entity = s.entity;"

	"CREATE VIEW phases AS SELECT m.name, (m.t_ns - r.started_mono_ns) / 1e9 AS t,"
	" (m.until_ns - r.started_mono_ns) / 1e9 AS t_end, (m.until_ns - m.t_ns) / 1e9 AS seconds,"
	" m.pid, m.entity FROM run r JOIN (SELECT m.name, m.t_ns, m.entity, p.pid,"
	" coalesce(m.end_ns, max(p.gone_ns, m.t_ns), iif(r.state = 'going', NULL,"
	" max(r.ended_mono_ns, m.t_ns))) AS until_ns FROM run r JOIN mark m"
	" LEFT JOIN process p ON p.id = m.entity) m;"

	"CREATE VIEW scalars AS SELECT c.rank, c.step, (c.t_ns - r.started_mono_ns) / 1e9 AS t,"
	" c.name, c.value, p.pid, c.entity FROM run r JOIN scalar c"
	" LEFT JOIN process p ON p.id = c.entity;"

	"CREATE VIEW settings AS SELECT c.rank, (c.t_ns - r.started_mono_ns) / 1e9 AS t, c.name,"
	" c.value, p.pid, c.entity FROM run r JOIN setting c LEFT JOIN process p ON p.id = c.entity;"

	"CREATE VIEW gaps AS SELECT (g.from_ns - r.started_mono_ns) / 1e9 AS t,"
	" (g.to_ns - r.started_mono_ns) / 1e9 AS t_end, m.name AS metric, g.entity, g.why"
	" FROM run r JOIN gap g LEFT JOIN metric m ON m.id = g.metric;";
/* clang-format on */

const char *const schema_required[] = { "run", "metric", "process", "thread", "device",  "event",
					"gap", "block",  "rollup",  "kept",   "verdict", NULL };
