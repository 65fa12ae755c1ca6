// SPDX-License-Identifier: MIT
// The two ledgers: where the time went, who used the CPU. A bar for the eye and a table for the figures.

// parts: { key, words, share, color, hatched, figure }; figure is what stands for the share where it is not a percentage.
function stackedBar(label, parts) {
	const figure = (p) => p.figure || percent(p.share), says = (p) => `${figure(p)} ${p.words}`;
	return h("div.stack", { role: "img", "aria-label": label + ": " + parts.map(says).join(", ") },
		parts.filter((p) => p.share > 0.0005).map((p) => h(p.hatched ? `span.part.${p.hatched}` : "span.part",
			{ title: says(p), vars: { "--c": p.color || "", width: p.share * 100 + "%" } },
			h("b", null, figure(p)), h("span", null, p.words))));
}

const UNACCOUNTED = { words: "unaccounted", hatched: "unaccounted" };

function functionLine(f) {
	return h("li", null, h("span.share", null, finite(f.share) ? percent(f.share) : "–"),
		h("span", null, h("code", null, f.function || "?"), " ", place(f)));
}

// The hottest function, and the others folded.
function functions(top, key) {
	const rows = list(top);
	if (!rows.length)
		return null;
	return [h("ul.functions", null, functionLine(rows[0])), rows.length > 1 && fold(key,
		`${rows.length - 1} more`, h("ul.functions", null, rows.slice(1).map(functionLine)))];
}

function ledgerRow(part, figures, top) {
	const mark = part.color ? swatch(part.color) : h(`span.swatch.${part.hatched}`, { "aria-hidden": "true" });
	const words = h("span", null, sentence(part.words), part.key && h("code.id", null, part.key));
	return h("tr", null, h("th", { scope: "row" }, h("span.label", null, mark, words)),
		figures.map((figure) => h("td.number", null, figure)), h("td", null, top));
}

function timeLedger(time, perStep) {
	const rows = list(time.ledger).filter((l) => l.share > 0).sort((a, b) => b.share - a.share);
	const parts = rows.map((l) => ({ key: l.state, words: known(STATES, l.state) || l.state, share: l.share,
		color: stateColor(l.state) }));
	const rest = finite(time.unaccounted) ? { ...UNACCOUNTED, share: Math.max(0, time.unaccounted) } : null;
	const say = (s) => finite(s) ? seconds(s) : "–";
	const figures = (share, s, each) => [percent(share), say(s), ...(perStep ? [say(each)] : [])];
	const thread = time.pid === time.tid ? "main thread" : "thread " + time.tid;
	return [h("p", null, "The wall time of the thread that the training waits for: ", thread, " of ",
		name(time.name || "the program"), `, pid ${time.pid}.`, finite(time.error) && time.error > 0 &&
			` Shares are give or take ${digits(time.error * 100, time.error < 0.0095 ? 1 : 0)} points.`),
	stackedBar("Where the time went", rest ? [...parts, rest] : parts),
	table("Where the time went", ["State", "#Share", "#Time", ...(perStep ? ["#Per step"] : []), "Mostly in"], [
		...parts.map((part, i) => ledgerRow(part, figures(part.share, rows[i].seconds, rows[i].seconds_per_step),
			functions(rows[i].top, "time-" + part.key))),
		rest && ledgerRow(rest, figures(rest.share), null)])];
}

// The bar is as wide as the cores the job may use: what it leaves free can be seen.
function cpuLedger(cpu, allowed) {
	const rows = list(cpu.ledger).filter((l) => finite(l.cores)).sort((a, b) => b.cores - a.cores);
	const whole = Math.max(finite(allowed) ? allowed : 0, cpu.cores);
	const part = (n, more) => ({ share: Math.max(0, n) / whole, figure: cores(n), ...more });
	const parts = rows.map((l) => part(l.cores, { key: l.role, words: roleWords(l), color: roleColor(l.role) }));
	const rest = finite(cpu.unaccounted) ? part(cpu.unaccounted * cpu.cores, UNACCOUNTED) : null;
	const free = part(whole - cpu.cores, { words: "not used", hatched: "free" });
	return [h("p", null, `The job used ${cores(cpu.cores)} cores`, finite(allowed) && ` of the ${cores(allowed)} it may use`,
		": the CPU time the kernel charged to it, by who used it."),
	stackedBar("Cores", [...parts, rest, free].filter((p) => p && p.share > 0)),
	table("Who used the CPU", ["Role", "#Cores", "#Share", "#Processes", "#Threads", "Mostly in"], [
		...parts.map((p, i) => ledgerRow(p, [cores(rows[i].cores), finite(rows[i].share) ? percent(rows[i].share) : "–",
			rows[i].processes ?? "–", rows[i].threads ?? "–"], functions(rows[i].top, "cpu-" + p.key))),
		rest && ledgerRow(rest, [cores(Math.abs(cpu.unaccounted) * cpu.cores), percent(cpu.unaccounted), "–", "–"], null)])];
}

component("time", "Where the time went", (body, { verdict }) => {
	if (verdict.time && list(verdict.time.ledger).length)
		add(body, timeLedger(verdict.time, list(verdict.time.ledger).some((l) => finite(l.seconds_per_step))));
	else
		add(body, absent(`Absent: it takes stacks (level L2), and this record was made at ${verdict.level || "an unknown level"}` +
			(verdict.level_why ? `: ${verdict.level_why}.` : ".")));
	if (verdict.window)
		add(body, h("p.small", null, "Findings and ledgers are about ",
			`${clock(verdict.window.from_s || 0)} to ${clock(verdict.window.to_s || 0)}`,
			verdict.window.why && `: ${verdict.window.why}`, "."));
}, (story) => [story.verdict.time, story.verdict.window, story.verdict.level]);

component("cpu", "Who used the CPU", (body, { verdict }) => {
	const { cpu, usage } = verdict;
	if (cpu && finite(cpu.cores) && cpu.cores > 0 && list(cpu.ledger).length)
		add(body, cpuLedger(cpu, usage?.cpu?.cores_allowed));
	else
		add(body, absent(cpu && cpu.cores === 0 ? "It used no CPU time in this window."
			: "Absent: no process of it could be read."));
	if (finite(usage?.others?.cpu_cores) && usage.others.cpu_cores >= 0.05)
		add(body, h("p.small", null, `Other programs used ${cores(usage.others.cpu_cores)} cores of the machine.`));
}, (story) => [story.verdict.cpu, story.verdict.usage]);
