// SPDX-License-Identifier: MIT
// The top of the page: what holds the training up, what to change, what that gains; then what it used.

// Why a rule wanted a longer run, or undefined.
function tooShort(verdict) {
	return list(verdict.cannot_tell).map((row) => row.why).find((why) => /^only /.test(why));
}

// { tone, tag, title }: tone is "found", "good" or "unsure".
function headline(verdict) {
	const findings = list(verdict.findings), used = verdict.usage?.cpu || {};
	if (findings.length)
		return { tone: "found", tag: plural(findings.length, "finding"), title: sentence(findings[0].title) };
	const note = list(verdict.notes).find((n) => verdict.limit && n.cause === verdict.limit);
	if (note)
		return { tone: "good", tag: "Nothing to fix", title: sentence(note.title) };
	if (verdict.limit === "cpu_bound") {
		const busy = finite(verdict.cpu?.cores) && used.cores_allowed > 0
			? `it kept ${percent(Math.min(1, verdict.cpu.cores / used.cores_allowed))} of its cores busy, and ` : "";
		return { tone: "good", tag: "Nothing to fix", title: `CPU-bound: ${busy}nothing was found that holds it up` };
	}
	if (tooShort(verdict))
		return { tone: "unsure", tag: "Cannot tell", title: "Too short to judge: " + tooShort(verdict) };
	if (verdict.healthy === undefined)
		return { tone: "unsure", tag: "Cannot tell", title: "Too little was seen to judge" };
	const blind = list(verdict.cannot_tell).length ? ", as far as could be seen" : "";
	return { tone: "good", tag: "Nothing found", title: "Nothing was found that holds it up" + blind };
}

// Now and then, as bars on one scale; the interval as a whisker.
function gainPicture(gain, rate) {
	const high = Math.max(gain.high, gain.speedup), width = (x) => x / high * 100 + "%";
	const say = (x) => rate ? stepRate(rate * x)[0] : digits(x, 1) + "×";
	const unit = rate ? stepRate(rate * gain.speedup)[1] : "the speed";
	const row = (kind, label, figure, length, whisker) => h(`div.gain-row.${kind}`, null,
		h("span.gain-label", null, label),
		h("span.gain-track", { "aria-hidden": "true" },
			h("span.gain-bar", { vars: { width: width(length) } }), whisker),
		h("span.gain-figure", null, figure));
	const whisker = h("span.whisker", { vars: { left: width(gain.low), width: width(Math.max(0, gain.high - gain.low)) } });
	const now = rate ? [h("b", null, stepRate(rate)[0]), " " + stepRate(rate)[1]] : [h("b", null, "1×")];
	const least = gain.low >= gain.speedup && gain.high > gain.speedup * 1.01; // the figure is a bound from below
	let range = "";
	if (gain.high - gain.low >= 0.005)
		range = least ? ` (up to ${say(gain.high)})` : ` (${say(gain.low)} to ${say(gain.high)})`;
	const then = [h("b", null, (least ? "at least " : "about ") + say(gain.speedup)), ` ${unit}${range}`];
	return h("div.gain", null, row("now", "now", now, 1), row("then", "then", then, gain.speedup, whisker));
}

function heroAdvice(verdict) {
	const first = list(verdict.findings)[0];
	if (!first) {
		const note = list(verdict.notes).find((n) => n.cause === verdict.limit);
		return note?.fix?.summary && h("p.lead", null, sentence(note.fix.summary));
	}
	const gain = first.gain || {};
	return [
		first.fix?.summary && h("p.lead", null, sentence(first.fix.summary)),
		first.fix?.edit && snippet(first.fix.edit, "hero-edit"),
		finite(gain.speedup) && gainPicture(gain, verdict.steps?.rate_hz),
		h("p.small", null, sentence(gainWords(gain)), finite(first.confidence) && ` · ${percent(first.confidence)} sure`,
			" · ", h("a", { href: "#findings" }, "why Spotter thinks so")),
	];
}

function howItEnded(run) {
	if (run.live) // as a dashboard knows
		return "still going";
	if (run.exit && finite(run.exit.signal))
		return "killed by signal " + run.exit.signal;
	if (run.exit && finite(run.exit.code))
		return "exit " + run.exit.code;
	return run.complete ? "its end was not seen" : "had not ended when this was recorded";
}

function heroLine(run) {
	return h("p.run", null, [
		h("strong", null, name(run.name || "run")),
		moment(run.started) && h("time", { datetime: run.started }, moment(run.started)),
		finite(run.duration_s) && seconds(run.duration_s), howItEnded(run),
		run.ranks > 1 && `${run.ranks} ranks`, run.host && ["on ", name(run.host)],
	].filter(Boolean).map((part, i, all) => h("span", null, part, i < all.length - 1 && " ·")));
}

function tile(title, figure, unit, share, color, ...lines) {
	return h("div.tile", null, h("h2", null, title),
		h("p.figure", null, figure, unit && h("span.unit", null, " " + unit)),
		finite(share) && h("div.meter", { "aria-hidden": "true", vars: { "--c": color } },
			h("span", { vars: { width: Math.min(100, Math.max(0, share * 100)) + "%" } })),
		lines.filter((line) => line && line.length !== 0).map((line) => h("p.small", null, line)));
}

function absentTile(title, why) {
	return h("div.tile", null, h("h2", null, title), h("p.figure.none", null, "absent"), h("p.small", null, why));
}

function speedTile(steps) {
	if (!steps || !finite(steps.rate_hz))
		return absentTile("Speed", "no steps were marked, and no loop was seen that repeats");
	const [figure, unit] = stepRate(steps.rate_hz), about = steps.source === "inferred" ? "about " : "";
	const loss = finite(steps.first_loss) ? quantity(steps.first_loss, "") + " to " : "";
	return tile("Speed", about + figure, unit, undefined, "",
		[finite(steps.count) && about + plural(steps.count, "step"),
			finite(steps.median_s) && ", median " + seconds(steps.median_s),
			finite(steps.p95_s) && `, 95${NBSP}% under ` + seconds(steps.p95_s)],
		about ? "inferred: nobody marks them, but the loop repeats" : steps.marker && ["marked by ", name(steps.marker)],
		finite(steps.last_loss) && `loss ${loss}${quantity(steps.last_loss, "")}`);
}

function gpuTile(gpus) {
	const mine = list(gpus).filter((g) => g.used_by_job !== false || gpus.length === 1);
	const seen = (mine.length ? mine : list(gpus)).filter((g) => finite(g.busy));
	if (!seen.length)
		return absentTile("GPU", list(gpus).length ? "how busy it was could not be read"
			: "none was seen: there is none, or none could be read");
	const sum = (key) => seen.reduce((all, g) => all + (finite(g[key]) ? g[key] : 0), 0);
	const busy = sum("busy"), used = sum("memory_peak_bytes") || sum("memory_used_bytes"), one = seen[0];
	const least = seen.some((g) => g.busy_at_least) ? "at least " : "";
	const [figure, unit] = seen.length > 1 ? [cores(busy), `of ${seen.length} busy`] : [percent(busy), "busy"];
	const ended = (g) => `GPU ${g.index} was ${g.state === "not read" ? "not read to the end" : g.state}. `;
	return tile("GPU", least + figure, unit, busy / seen.length, "var(--s-gpu_wait)", "share of the time a kernel ran",
		[finite(one.memory_total_bytes) && `${bytes(used)} of ${bytes(sum("memory_total_bytes"))}`,
			finite(one.power_w) && `, ${three(sum("power_w"))}${NBSP}W`,
			finite(one.temperature_c) && `, ${digits(Math.max(...seen.map((g) => g.temperature_c || 0)), 0)}${NBSP}°C`],
		[name(one.name || ""), seen.some((g) => g.simulated) && " (simulated)"],
		list(gpus).filter((g) => g.state).map(ended));
}

function cpuTile(cpu) {
	if (!cpu || !finite(cpu.cores_used))
		return absentTile("CPU", "how much it used could not be read");
	if (!(cpu.cores_allowed > 0))
		return tile("CPU", cores(cpu.cores_used), "cores", undefined, "", "how many it may use is not known");
	const share = cpu.cores_used / cpu.cores_allowed;
	return tile("CPU", cores(cpu.cores_used), `of ${cores(cpu.cores_allowed)} cores`, share, "var(--s-python)",
		[percent(share), " of what it may use", cpu.limit && ` (limit: ${cpu.limit})`],
		[h("code", null, "top"), ` calls this ${digits(cpu.cores_used * 100, 0)}${NBSP}%`],
		cpu.steal >= 0.01 && `the hypervisor took ${percent(cpu.steal)} for other guests`);
}

function memoryTile(memory) {
	if (!memory || !finite(memory.peak_bytes))
		return absentTile("Memory", "how much it used could not be read");
	const [figure, unit] = bytes(memory.peak_bytes).split(NBSP), allowed = memory.allowed_bytes;
	return tile("Memory", figure, unit + " peak", allowed > 0 ? memory.peak_bytes / allowed : undefined, "var(--s-memory_stall)",
		allowed > 0 && [`of ${bytes(allowed)} allowed`, memory.limit && ` (${memory.limit})`],
		finite(memory.used_bytes) && bytes(memory.used_bytes) + " used on average");
}

function diskTile(storage) {
	if (!storage || !finite(storage.read_bytes))
		return absentTile("Disk", "what it read and wrote could not be read");
	const [figure, unit] = bytes(storage.read_bytes).split(NBSP);
	return tile("Disk", figure, unit + " read", undefined, "",
		finite(storage.written_bytes) && bytes(storage.written_bytes) + " written");
}

component("verdict", null, (body, { verdict }) => {
	const { tone, tag, title } = headline(verdict), usage = verdict.usage || {};
	add(body,
		h(`div.hero.${tone}`, null, heroLine(verdict.run || {}), h("p.tag", null, tag), h("h1", null, title),
			heroAdvice(verdict)),
		h("div.tiles", null, speedTile(verdict.steps), gpuTile(usage.gpus), cpuTile(usage.cpu), memoryTile(usage.memory),
			diskTile(usage.storage)));
}, (story) => [story.verdict]);
