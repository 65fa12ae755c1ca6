// SPDX-License-Identifier: MIT
// What states and roles are called, and their colours: one colour for one thing, wherever it is drawn. The colours
// themselves are in report.css (and, for pictures that the program draws, in src/web/svg_*.c).

const STATES = {
	data_wait: "waiting for data",
	data_load: "loading data itself",
	transfer: "copying to or from the GPU",
	dispatch: "framework code",
	python: "other code on the CPU",
	gpu_wait: "waiting for the GPU",
	comm_wait: "waiting for other ranks",
	io: "reading or writing files",
	cpu_queue: "queued for a CPU",
	memory_stall: "stalled on memory",
	lock_wait: "waiting for a lock",
	idle: "idle or waiting for events",
	other: "other",
};

// role: [one, many, counted by, colour of this state]
const ROLES = {
	main: ["main thread", "main threads", "threads", "python"],
	loader_worker: ["loader worker", "loader workers", "processes", "data_wait"],
	pin_thread: ["pinning thread", "pinning threads", "threads", "transfer"],
	blas_threads: ["BLAS thread", "BLAS threads", "threads", "dispatch"],
	comm_threads: ["communication thread", "communication threads", "threads", "comm_wait"],
	spin_wait: ["spinning on the GPU", null, null, "gpu_wait"],
	framework_threads: ["framework thread", "framework threads", "threads", "lock_wait"],
	tokenizer_threads: ["tokenizer thread", "tokenizer threads", "threads", "data_load"],
	child: ["child", "children", "processes", "io"],
	kernel_side: ["kernel side", null, null, "memory_stall"],
	other: ["other", null, null, "other"],
};

const LEVELS = {
	L3: "stacks, waits and native code",
	L2: "stacks and waits",
	L1: "/proc only",
	L0: "cgroup and machine only",
};

function known(rows, key) {
	return Object.hasOwn(rows, key) ? rows[key] : undefined;
}

function stateColor(state) {
	return `var(--s-${known(STATES, state) ? state : "other"})`;
}

function roleColor(role) {
	const row = known(ROLES, role);
	return `var(--s-${row ? row[3] : "other"})`;
}

// "2 loader workers"; processes that lived between two looks cannot be counted.
function roleWords(line) {
	const row = known(ROLES, line.role);
	if (!row)
		return line.role;
	if (line.role === "other" && line.processes === undefined)
		return "short-lived processes";
	const n = row[2] ? line[row[2]] : 0;
	if (!row[1] || line.role === "main" && !(n > 1))
		return row[0];
	return n > 0 ? `${n} ${n === 1 ? row[0] : row[1]}` : row[1];
}

function plural(n, one, many) {
	return `${count(n)} ${n === 1 ? one : many || one + "s"}`;
}

// First letter of a sentence; "os.cpu_count() says 2" and figures stay, and figures keep their unit.
function sentence(text) {
	const s = String(text).replace(/(\d) (?=%|[kMGT]?B\b|m?s\b|cores?\b)/g, "$1" + NBSP);
	return /^(?!and |but |of )[a-z-]+[,:;]?(\s|$)/.test(s) ? s.charAt(0).toUpperCase() + s.slice(1) : s;
}
