// SPDX-License-Identifier: MIT
// Playwright, as a person at a notebook: opens it, runs its cells one after the other with Shift+Enter, and watches the
// last one until the verdict is there; then saves, and loads it again.
//
//   browser.js URL CELLS     prints JSON, for which see browser.py; leaves live.png, end.png, again.png, or failed.png
//
// playwright-core is found through NODE_PATH; CHROMIUM names the browser, which it does not bring.
"use strict";
const { chromium } = require("playwright-core");

// Notebook 6 and JupyterLab (as which Notebook 7 is built) name the same things differently.
const CELL = ".code_cell, .jp-Notebook .jp-CodeCell";
const PROMPT = ".input_prompt, .jp-InputPrompt";
const WRITING = ".CodeMirror, .cm-content";
const CHART = 'svg[aria-label^="spotter"]';
const VERDICT = '[style*="pre-wrap"]:has-text("Record")';
const SECONDS = 1000;

// In [3]: has run; In [*]: runs. The brackets are all that both have.
async function finished(cell, seconds) {
	const prompt = cell.locator(PROMPT).first();
	for (const end = Date.now() + seconds * SECONDS; Date.now() < end;) {
		if (/\[\d+\]/.test(await prompt.innerText()))
			return;
		await cell.page().waitForTimeout(100);
	}
	throw new Error("a cell did not end: " + await prompt.innerText());
}

// The chart that is there, as markup and as drawn; null before the first.
async function look(cell) {
	const chart = cell.locator(CHART);
	if (!await chart.count())
		return null;
	try {
		const markup = await chart.first().evaluate((svg) => svg.outerHTML);
		const pixels = (await chart.first().screenshot({ timeout: 5 * SECONDS })).toString("base64");
		return { markup, pixels };
	} catch {
		return null; // replaced by the next one while we looked
	}
}

// Every different drawing until the cell has ended.
async function watch(page, cell) {
	const seen = [];
	for (const end = Date.now() + 120 * SECONDS; Date.now() < end;) {
		const chart = await look(cell);
		if (chart && chart.markup !== (seen.at(-1) || {}).markup) {
			seen.push(chart);
			if (seen.length === 3)
				await page.screenshot({ path: "live.png" });
		}
		if (await cell.locator(VERDICT).count())
			return seen;
		await page.waitForTimeout(150);
	}
	throw new Error("there is no verdict");
}

async function open(page, url) {
	await page.goto(url, { waitUntil: "commit" });
	await page.locator(CELL).first().waitFor();
	// Before the kernel has started, Lab would ask for one.
	await page.locator(".kernel_idle_icon").or(page.getByText("| Idle")).first().waitFor();
}

async function drive(page, url, count) {
	const errors = [];
	await open(page, url);
	page.on("pageerror", (error) => errors.push(String(error)));
	page.on("console", (said) => said.type() === "error" && errors.push(said.text()));
	await page.locator(CELL).first().locator(WRITING).first().click();
	for (let i = 0; i < count - 1; i++) {
		await page.keyboard.press("Shift+Enter");
		await finished(page.locator(CELL).nth(i), 60);
	}
	const cell = page.locator(CELL).nth(count - 1);
	await page.keyboard.press("Control+Enter");
	const charts = await watch(page, cell);
	await finished(cell, 20);
	await cell.locator(VERDICT).scrollIntoViewIfNeeded();
	await page.screenshot({ path: "end.png" });
	const verdict = await cell.locator(VERDICT).innerText();
	const ended = (await look(cell)).markup;
	const saved = page.waitForResponse((answer) => answer.request().method() === "PUT" && answer.ok());
	await page.keyboard.press("Control+s");
	await saved;
	page.removeAllListeners("console"); // Notebook 6 looks for extensions that are not installed
	await page.reload({ waitUntil: "commit" });
	await page.locator(CHART).first().waitFor();
	await page.screenshot({ path: "again.png" });
	return { charts, verdict, ended, again: await page.locator(CHART).count(), errors };
}

async function main(url, count) {
	const browser = await chromium.launch({
		executablePath: process.env.CHROMIUM,
		args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
	});
	try {
		const page = await browser.newPage({ viewport: { width: 1100, height: 900 } });
		page.setDefaultTimeout(120 * SECONDS);
		const found = await drive(page, url, count).catch(async (error) => {
			await page.screenshot({ path: "failed.png" });
			throw error;
		});
		console.log(JSON.stringify(found));
	} finally {
		await browser.close();
	}
}

main(process.argv[2], Number(process.argv[3])).catch((error) => {
	console.error(error);
	process.exitCode = 1;
});
