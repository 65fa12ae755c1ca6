// SPDX-License-Identifier: MIT
// The processes of the job, by what they used; a click on a heading sorts.

const PROCESS_COLUMNS = [
	["name", "Process", null],
	["role", "Role", null],
	["cpu_s", "CPU time", seconds],
	["lived_s", "Lived", seconds],
	["peak_bytes", "Peak memory", bytes],
	["read_bytes", "Read", bytes],
	["written_bytes", "Written", bytes],
];
const PROCESSES_SHOWN = 15; // at first
const processes = { by: "cpu_s", down: true, all: false };

function processOrder(a, b) {
	const { by, down } = processes, x = a[by], y = b[by];
	if (x === undefined || y === undefined) // absent ones stay below
		return (x === undefined) - (y === undefined);
	return (typeof x === "number" ? x - y : String(x).localeCompare(String(y))) * (down ? -1 : 1);
}

function processHead([key, words, say], again) {
	const sorted = processes.by === key, way = processes.down ? "descending" : "ascending";
	return h(say ? "th.number" : "th", { scope: "col", "aria-sort": sorted && way },
		button([sorted && h("span", { "aria-hidden": "true" }, processes.down ? "↓ " : "↑ "), words], () => {
			Object.assign(processes, { by: key, down: sorted ? !processes.down : Boolean(say) });
			again();
		}, { class: "plain", "data-key": "sort-" + key }));
}

function processRow(p) {
	const role = p.role && h("span.label", null, swatch(roleColor(p.role)), known(ROLES, p.role)?.[0] || p.role);
	return h("tr", null,
		h("th", { scope: "row" }, h("span.process", null, name(p.name || "?"), h("span.id", null, "pid " + p.pid)),
			p.command && p.command !== p.name && h("code.command", { title: p.command }, p.command)),
		h("td", null, role || "–"),
		PROCESS_COLUMNS.slice(2).map(([key, , say]) => h("td.number", null, finite(p[key]) ? say(p[key]) : "–")));
}

component("processes", "Processes", function draw(body, story) {
	const rows = list(story.processes), folded = processes.all ? 0 : Math.max(0, rows.length - PROCESSES_SHOWN);
	if (!rows.length)
		return add(body, absent("Absent: no process of it was seen."));
	const again = () => redraw(body, () => draw(body, story));
	return add(body, table("Processes", PROCESS_COLUMNS.map((column) => processHead(column, again)),
		[...rows].sort(processOrder).slice(0, rows.length - folded).map(processRow)),
	folded > 0 && button(`Show ${plural(folded, "more process", "more processes")}`, () => {
		processes.all = true;
		again();
	}),
	story.processes_left > 0 && h("p.small", null, `The record has ${count(story.processes_left)} more, which used less.`));
}, (story) => [story.processes, story.processes_left]);
