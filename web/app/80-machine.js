// SPDX-License-Identifier: MIT
// Where it ran and with which settings; what watching it cost.

function pairs(title, rows) {
	return h("div.card", null, h("h3", null, title), list(rows).length
		? h("dl.pairs", null, list(rows).map(([key, value]) => h("div", null, h("dt", null, key), h("dd", null, value))))
		: absent("Not recorded."));
}

function commandLine(run) {
	const quote = (word) => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${String(word).replaceAll("'", "'\\''")}'`;
	const argv = list(run?.argv).map(quote);
	return argv.length > 0 && h("div.card.wide", null, h("h3", null, "Command"), snippet(argv.join(" "), "command"));
}

function costCard({ overhead: cost, level, level_why: why }, version) {
	const rows = [];
	if (cost && finite(cost.cpu_share_of_core))
		rows.push(["CPU", percent(cost.cpu_share_of_core) + " of one core"]);
	if (cost && finite(cost.rss_bytes))
		rows.push(["Memory", bytes(cost.rss_bytes)]);
	if (cost && finite(cost.samples))
		rows.push(["Samples", `${count(cost.samples)}, ${cost.samples_skipped > 0 ? count(cost.samples_skipped) : "none"} skipped`]);
	if (cost && finite(cost.stack_samples))
		rows.push(["Stack samples", count(cost.stack_samples) +
			(cost.stack_unproven > 0 ? `, ${count(cost.stack_unproven)} not proven` : "")]);
	if (level)
		rows.push(["Saw", `${level}: ${known(LEVELS, level) || ""}${why ? "; " + why : ""}`]);
	if (version)
		rows.push(["Version", "spotter " + version]);
	return pairs("Spotter's own cost", rows);
}

component("machine", "Machine and settings", (body, story) => {
	const command = commandLine(story.verdict.run);
	const machine = list(story.machine).filter(([key]) => !command || key !== "Command");
	add(body, h("div.cards", null, command, pairs("Machine", machine), pairs("Settings", story.settings),
		costCard(story.verdict, story.spotter)));
}, (story) => [story.machine, story.settings, story.verdict.overhead, story.verdict.run, story.spotter]);
