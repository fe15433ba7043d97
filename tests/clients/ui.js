// The page in a browser: ui.js CHROMIUM [PICTURES]. With a folder for pictures, writes those of the documentation there.
const assert = require("node:assert");
const { spawn, spawnSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { chromium } = require("playwright-core");

const [executablePath, pictures] = process.argv.slice(2);
const { SAVEDSEARCH, UI_FILES } = process.env;
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "savedsearch-ui-"));
const processes = [];
/** Clock of the page with a store: the demo data moves with the clock otherwise. */
const NOW = "2026-11-26T12:00:00Z";
const NAME = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>";

/** Longest wait, in milliseconds; only failing tests reach it. */
const LONGEST = 180_000;

/** Starts the program, and returns what it prints: `listening on`, `page on`. */
function start(...options) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("SAVEDSEARCH_")));
  const child = spawn(SAVEDSEARCH, options, { env: { ...env, SAVEDSEARCH_API_KEY: "demo-key-comms" }, stdio: ["ignore", "ignore", "pipe"] });
  processes.push(child);
  return new Promise((done, failed) => {
    let text = "";
    child.stderr.on("data", (data) => {
      text += data;
      const told = Object.fromEntries([...text.matchAll(/^(.* on) (\S+)\n/gm)].map(([, name, value]) => [name, value]));
      if (told["listening on"]) done(told);
    });
    child.on("exit", () => failed(new Error(`${options.join(" ")}: ${text}`)));
  });
}

async function open(browser, url, { init, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(LONGEST);
  if (init) await context.addInitScript(init);
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/status of (401|404|422|429)/.test(message.text())) page.problems.push(message.text());
  });
  // While the page is worked on, its files are not those in the program.
  if (UI_FILES) {
    await page.route(/\.(js|css)$|\/$/, (route) => {
      const name = new URL(route.request().url()).pathname.slice(1) || "index.html";
      const headers = { "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'" };
      return route.fulfill({ path: path.join(UI_FILES, name), headers });
    });
  }
  await page.goto(url);
  // Redirections are not replaced.
  if (UI_FILES && url.includes("token=")) await page.reload();
  return page;
}

/** Text columns of mentions in the built-in profile, with the path and type of each. */
const columns = (() => {
  const profile = fs.readFileSync(path.join(__dirname, "../../src/profile/builtin/v4.toml"), "utf8");
  const table = profile.slice(profile.indexOf("[tables.mentions]"), profile.indexOf("[tables.overview]"));
  const lines = table.matchAll(/^ *\{ name = "(\w+)", type = "(\w+)".* at = "([^"]+)"/gm);
  return [...lines].map(([, name, type, at]) => ({ name, type, at }));
})();

/** A mention in which every text is hostile. */
function hostileRecord(number) {
  const values = { utf8: NAME, utf8_list: [NAME, NAME], timestamp: "2026-01-05T12:00:00Z", int64: 1, float64: 0.5 };
  const record = { aid: "7", [NAME]: NAME };
  for (const { type, at } of columns) {
    const parts = at.slice(1).split("/");
    const last = parts.pop();
    let inner = record;
    for (const part of parts) inner = inner[part] ??= {};
    inner[last] = values[type];
  }
  return { ...record, id: `${number}${NAME}`, url: "javascript:window.hacked=1" };
}

/** Replaces the text of the editor, as typing does. */
async function type(page, sql) {
  await page.fill("#sql", sql);
}

async function ask(page, sql) {
  await type(page, sql);
  await page.click("#run");
  await page.waitForSelector("#cancel[hidden]", { state: "attached" });
}

/** Fails with each violation that axe finds. */
async function accessible(page, where) {
  // The policy of the page allows no script from here; the debugger's protocol runs it in a world of its own.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document));
  const told = violations.flatMap(({ id, help, nodes }) => nodes.map((node) => `${where}: ${id}: ${help}: ${node.html.slice(0, 200)} ${node.failureSummary}`));
  assert.deepStrictEqual(told, []);
}

async function picture(page, name) {
  if (pictures) await page.screenshot({ path: path.join(pictures, `${name}.png`) });
}

const DAYS = "SELECT date_trunc('day', published_at) AS day, sentiment, count(*) AS mentions\nFROM mentions\nWHERE aid = '183772' AND duration = '30d'\nGROUP BY 1, 2\nORDER BY 1";

/** The query with which the page begins, of a saved search. */
function opening(aid) {
  const one = (name) => `SELECT date_trunc('day', published_at) AS day, '${name}' AS sentiment, count(*) AS mentions\n`
    + `FROM mentions WHERE aid = '${aid}' AND duration = '30d' AND sentiment = '${name}' GROUP BY 1`;
  const parts = ["positive", "neutral", "negative"].map(one).join("\nUNION ALL\n");
  return `-- Mentions a day by sentiment, with one request for each; mentions without a sentiment are not counted\n${parts}\nORDER BY 1`;
}

/** Waits for a cost that begins with these words, and returns all of them. */
async function costs(page, words) {
  await page.waitForFunction((words) => document.querySelector("#cost:not([aria-busy])")?.textContent.startsWith(words), words);
  return page.textContent("#cost");
}

async function firstQuery(browser, url) {
  const page = await open(browser, url);
  await page.waitForFunction(() => document.querySelector("#cost").textContent.includes("request"));
  assert(!page.url().includes("token"), "the token disappears from the address");
  // The list of the demo data is known, so that the page begins with mentions a day by sentiment of a saved search.
  const first = await page.inputValue("#sql");
  assert.strictEqual(first, opening(/aid = '(\d+)'/.exec(first)?.[1]));
  await costs(page, "3 requests");
  assert.strictEqual(await page.locator("#size").count(), 0, "nothing is left to be found out");
  await page.click("#run");
  await page.waitForFunction(() => document.querySelector("#summary").textContent.includes("complete"));
  assert.match(await page.textContent("#summary"), / · 3 requests · .*complete/, "it costs what was said before");
  await page.click("#tab-chart");
  await page.waitForFunction(() => document.querySelector("#chart img")?.naturalWidth > 100);
  await page.click("#tab-rows");
  await type(page, DAYS);
  const unknown = await costs(page, "at least");
  assert.match(unknown, /1 per 99 mentions/, "what the least number depends on");
  assert.match(unknown, /^at least .* · at most 1,000 allowed/, "the limit is an upper bound");
  await accessible(page, "a cost that can be found out");
  assert.strictEqual(await page.textContent("#size"), "Find out: 1 request");
  await page.click("#size");
  const cost = await costs(page, "at least 1, likely about");
  assert.strictEqual(await page.locator("#size").count(), 0);
  await page.waitForSelector("#tables summary");
  await accessible(page, "ask, before");
  await page.click("#run");
  await page.waitForFunction(() => document.querySelector("#summary").textContent.includes("complete"));
  const summary = await page.textContent("#summary");
  assert.match(summary, /rows · .* · \d+ requests? · .*complete/);
  const spent = Number(/(\d+) requests?/.exec(summary)[1]);
  assert(Math.abs(Number(/about (\d+)/.exec(cost)[1]) - spent) <= 1, `${cost}: ${summary}`);
  assert((await page.locator("#rows .body .row").count()) > 5);
  await accessible(page, "ask, with rows");
  await picture(page, "rows");
  await page.click("#tab-chart");
  const chart = page.locator("#chart img");
  await chart.waitFor();
  await page.waitForFunction(() => document.querySelector("#chart img").naturalWidth > 100);
  await page.selectOption("#chart select", "stacked");
  await page.waitForFunction(() => {
    const image = document.querySelector("#chart img");
    return image.src.includes("form=stacked") && image.naturalWidth > 100;
  });
  await accessible(page, "chart");
  await picture(page, "ui-ask");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#downloads a:text-is('CSV')")]);
  const text = fs.readFileSync(await download.path(), "utf8");
  for (const form of ["lines", "bars", "points"]) {
    await page.selectOption("#chart select", form);
    await page.waitForFunction((form) => {
      const image = document.querySelector("#chart img");
      return image?.src.includes(`form=${form}`) && image.naturalWidth > 100;
    }, form);
  }
  assert(text.startsWith("day,sentiment,mentions\n") && text.split("\n").length > 20, text.slice(0, 200));
  const [excel] = await Promise.all([page.waitForEvent("download"), page.click("#downloads a:text-is('CSV (Excel)')")]);
  assert(fs.readFileSync(await excel.path(), "utf8").startsWith("\ufeffday,sentiment,mentions\r\n"));
  for (const format of ["XLSX", "PARQUET"]) {
    const [file] = await Promise.all([page.waitForEvent("download"), page.click(`#downloads a:has-text('${format}')`)]);
    assert(fs.statSync(await file.path()).size > 500, format);
  }
  const [png] = await Promise.all([page.waitForEvent("download"), page.click("#chart .downloads a:has-text('PNG')")]);
  assert(fs.readFileSync(await png.path()).subarray(1, 4).toString() === "PNG");
  await ask(page, "SELECT published_at FROM mentions WHERE aid = '183772'");
  await page.waitForFunction(() => document.querySelector("#summary").textContent.includes("complete"));
  await page.click("#tab-chart");
  const drawn = async (form) => {
    await page.selectOption("#chart select", form);
    await page.waitForFunction((form) => {
      const image = document.querySelector("#chart img");
      return image?.src.includes(`form=${form}`) && image.naturalWidth > 100;
    }, form);
    return page.evaluate(async () => (await fetch(document.querySelector("#chart img").src)).text());
  };
  // A square for each hour of the week, on a background; below the title, the period that was read.
  const map = await drawn("heatmap");
  assert.strictEqual(map.match(/<rect/g).length, 169);
  assert.match(map, />\d+ \w+ (\d{4} )?to \d+ \w+ \d{4}, UTC</);
  const [heat] = await Promise.all([page.waitForEvent("download"), page.click("#chart .downloads a:has-text('SVG')")]);
  assert.match(fs.readFileSync(await heat.path(), "utf8"), /, UTC</);
  // The zone of the picture is that of the run.
  await page.fill("#zone", "Asia/Tokyo");
  await page.fill("#limit", "77");
  assert.match(await drawn("heatmap"), /, UTC</);
  // A link has the query with its zone and limit, and does not run it.
  await page.click("#link");
  const linked = await open(browser, `${await page.evaluate(() => navigator.clipboard.readText())}`, { storageState: await page.context().storageState() });
  await linked.waitForFunction(() => document.querySelector("#sql").value.includes("published_at"));
  assert.strictEqual(await linked.locator("#result").isVisible(), false);
  assert.deepStrictEqual([await linked.inputValue("#zone"), await linked.inputValue("#limit")], ["Asia/Tokyo", "77"]);
  await page.fill("#zone", "");
  await page.fill("#limit", "");
  assert.deepStrictEqual([...page.problems, ...linked.problems], []);
  await linked.context().close();
  return page;
}

async function editing(page) {
  await type(page, "SELECT title\nFROM mentions\nWHERE titel = 'x'");
  await page.waitForSelector("#problem:visible");
  assert.match(await page.textContent("#problem"), /Line 3, column 7: .*title/);
  await page.waitForSelector(".paint .wrong");
  assert.strictEqual(await page.textContent(".paint .wrong"), "titel");
  await accessible(page, "error");
  await page.click("#run");
  await page.waitForSelector("#problem:visible");
  assert.strictEqual(await page.evaluate(() => document.querySelector("#sql").selectionStart), 33, "the cursor is at the mistake");
  // Behind a parameter the place is that of the typed text.
  await type(page, "SELECT :'long', titel FROM mentions");
  await page.fill("#variables input", "a value that is longer than its name");
  await page.waitForFunction(() => document.querySelector(".paint .wrong")?.textContent === "titel");
  await type(page, "");
  await page.focus("#sql");
  // At once: between slow keys, the words for a part of it are shown.
  await page.keyboard.insertText("SELECT * FROM ment");
  await page.waitForSelector("#words:visible");
  await accessible(page, "completion");
  await page.keyboard.press("Tab");
  assert.strictEqual(await page.inputValue("#sql"), "SELECT * FROM mentions");
  // Parameters, and a query that is saved in the browser.
  await type(page, "SELECT :'word' AS word");
  await page.fill("#variables input", "héllo");
  await page.fill("#zone", "Asia/Tokyo");
  await page.fill("#limit", "55");
  await page.keyboard.press("Tab");
  await page.click("#keep");
  await page.fill("#saved form input", "A word");
  await page.click("#saved form button");
  await ask(page, "SELECT :'word' AS word");
  await page.waitForSelector(".body .row:has-text('héllo')");
  assert.strictEqual(await page.locator("#saved li:has-text('A word')").count(), 1);
  // It keeps its value, zone and limit.
  for (const [field, value] of [["#variables input", "other"], ["#zone", ""], ["#limit", ""]]) await page.fill(field, value);
  await page.click("#saved li button:has-text('A word')");
  const kept = ["#variables input", "#zone", "#limit"].map((field) => page.inputValue(field));
  assert.deepStrictEqual(await Promise.all(kept), ["héllo", "Asia/Tokyo", "55"]);
  for (const field of ["#zone", "#limit"]) await page.fill(field, "");
  await page.click("#tab-history");
  assert((await page.locator("#history li").count()) > 2);
  await accessible(page, "history");
  // What other programs have written is left out.
  await page.evaluate(() => {
    const key = Object.keys(localStorage).find((name) => name.endsWith(".history"));
    localStorage.setItem(key, JSON.stringify([{ sql: 1 }, null, "x", ...JSON.parse(localStorage.getItem(key))]));
    const queries = key.replace(/history$/, "queries");
    const odd = { name: "odd", sql: "SELECT 1", zone: 1, values: null };
    localStorage.setItem(queries, JSON.stringify([odd, ...JSON.parse(localStorage.getItem(queries))]));
  });
  await page.reload();
  await page.waitForSelector("#history li", { state: "attached" });
  // A parameter without a value has no cost.
  await page.fill("#variables input", "héllo");
  await page.waitForFunction(() => document.querySelector("#cost").textContent.includes("request"));
}

const UNKEPT_COLUMNS = [{ name: "n", type: "Int64", class: "number" }];
/** The response to a query whose rows the server did not keep. */
const UNKEPT = (() => {
  const notes = ["no charts or downloads: the result is larger than 512 MiB"];
  const lines = [{ columns: UNKEPT_COLUMNS }, [1], { end: { rows: 1, requests: 0, summary: "1 row", notes, result: null } }];
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
})();

/** A result that the server did not keep has no chart, and says why. */
async function unkept(page) {
  await page.route("**/api/query", (route) => route.fulfill({ contentType: "application/x-ndjson", body: UNKEPT }));
  await ask(page, "SELECT 1 AS n");
  await page.unroute("**/api/query");
  assert.match(await page.textContent("#notes"), /larger than 512 MiB/);
  await page.click("#tab-chart");
  assert.match(await page.textContent("#chart"), /did not keep the result/);
  assert.strictEqual(await page.locator("#downloads a").count(), 0);
  await page.click("#tab-rows");
}

async function hostile(page) {
  const sql = `SELECT '${NAME}' AS "${NAME}", 'javascript:alert(1)' AS url, 'https://example.com/?a=<b>' AS link, 'שלום עולם' AS text, 1 AS n`;
  await ask(page, sql);
  await page.waitForSelector(".body .row");
  const links = await page.locator(".body a").evaluateAll((all) => all.map((link) => [link.href, link.rel]));
  assert.deepStrictEqual(links, [["https://example.com/?a=%3Cb%3E", "noopener noreferrer"]]);
  await page.click(".body .row .number");
  await page.waitForSelector("#record[open]");
  assert((await page.textContent("#record")).includes(NAME));
  await accessible(page, "a row");
  await page.click("#record-close");
  await page.click("#tab-history");
  assert.strictEqual(await page.evaluate(() => window.hacked), undefined);
}

/** Saved searches and mentions whose every text is hostile. */
async function hostileService(browser, url) {
  const page = await open(browser, url);
  await page.waitForFunction(() => document.querySelector("#cost").textContent.includes("request"));
  await ask(page, "SELECT * FROM mentions WHERE aid = '7' AND duration = '2026-01-01T00:00:00Z..2026-02-01T00:00:00Z'");
  await page.waitForFunction(() => document.querySelectorAll("#rows .body .row").length === 3);
  // Every text is shown as a text, and no address of a script is a link.
  await page.click("#rows .body .row >> nth=0", { position: { x: 8, y: 8 } });
  await page.waitForSelector("#record[open]");
  const texts = columns.filter(({ type }) => type.startsWith("utf8"));
  assert(texts.length > 15, "all columns of the profile");
  const shown = await page.locator("#record dd").evaluateAll((all) => all.map((value) => value.textContent));
  const names = await page.locator("#record dt").allTextContents();
  for (const { name } of texts) {
    const value = shown[names.indexOf(name)];
    assert(name === "url" ? value === "javascript:window.hacked=1" : value.includes(NAME), `${name}: ${value}`);
  }
  assert.strictEqual(await page.locator("#record a, #rows .body a").count(), 0);
  await page.click("#record-close");
  await page.click("#tab-chart");
  await page.waitForSelector("#chart .picture p");
  await ask(page, "SELECT source, count(*) AS n FROM mentions WHERE aid = '7' AND duration = '2026-01-01T00:00:00Z..2026-02-01T00:00:00Z' GROUP BY source");
  await page.waitForFunction(() => document.querySelector("#summary").textContent.includes("complete"));
  await page.click("#tab-chart");
  await page.waitForFunction(() => document.querySelector("#chart img")?.naturalWidth > 100);
  await ask(page, "SELECT name FROM saved_searches");
  await type(page, "");
  await page.focus("#sql");
  await page.keyboard.insertText("SELECT * FROM mentions WHERE aid = '");
  await page.waitForSelector("#words:visible");
  assert((await page.textContent("#words")).includes(NAME));
  await page.click("nav a:has-text('Overview')");
  await page.click("#refresh");
  await page.waitForSelector("#overview .card");
  assert.strictEqual(await page.textContent("#overview .card h2"), NAME);
  assert.strictEqual(await page.evaluate(() => window.hacked), undefined);
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** From the first load to a chart and an opened row, without a mouse. */
async function keys(browser, url) {
  const page = await open(browser, url);
  await page.waitForFunction(() => document.querySelector("#cost").textContent.includes("request"));
  const tabTo = async (selector) => {
    for (let pressed = 0; pressed < 80; pressed += 1) {
      if (await page.evaluate((selector) => document.activeElement.matches(selector), selector)) return;
      await page.keyboard.press("Tab");
    }
    assert.fail(`${selector} is not reached by Tab`);
  };
  await tabTo("#sql");
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(DAYS);
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => document.querySelector("#summary").textContent.includes("complete"));
  await tabTo("#tab-rows");
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.querySelector("#chart img")?.naturalWidth > 100);
  const words = await page.getAttribute("#chart img", "alt");
  const day = "\\(\\d{4}-\\d\\d-\\d\\d\\)";
  assert.match(words, new RegExp(`mentions of positive: first \\d+ ${day}, last \\d+ ${day}, highest \\d+ ${day}(;|$)`));
  await tabTo("#chart select");
  await page.keyboard.press("Shift+Tab");
  await tabTo("#tab-chart");
  await page.keyboard.press("ArrowLeft");
  await tabTo(".grid");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  const active = () => page.evaluate(() => {
    const row = document.getElementById(document.querySelector(".grid").getAttribute("aria-activedescendant"));
    return [row.getAttribute("role"), row.getAttribute("aria-rowindex"), row.classList.contains("active")];
  });
  // The names and the filters are the first two rows.
  assert.deepStrictEqual(await active(), ["row", "4", true]);
  await accessible(page, "an active row");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#record[open]");
  assert.match(await page.textContent("#record-title"), /^Row 2 of /);
  await page.keyboard.press("ArrowRight");
  assert.match(await page.textContent("#record-title"), /^Row 3 of /);
  await page.keyboard.press("Escape");
  await page.waitForSelector("#record:not([open])", { state: "attached" });
  assert.deepStrictEqual(await active(), ["row", "5", true]);
  assert(await page.evaluate(() => document.activeElement.matches(".grid")), "the table has the focus again");
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

async function many(page) {
  await page.evaluate(() => {
    window.longest = 0;
    const observer = new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration);
    });
    observer.observe({ entryTypes: ["longtask"] });
  });
  await ask(page, "SELECT value AS n, 'text ' || value AS t, value % 7 AS m FROM generate_series(1, 1000000)");
  await page.waitForFunction(() => document.querySelector("#rows .count").textContent === "1,000,000 rows");
  const elements = () => page.locator("#rows .body .row").count();
  const sorted = async (order) => {
    await page.waitForSelector(`.names [aria-sort=${order}]`);
    await page.waitForSelector(".grid:not([aria-busy])");
  };
  assert((await elements()) < 100);
  await page.evaluate(() => {
    document.querySelector(".grid").scrollTop = 1e9;
  });
  await page.waitForSelector(".body .row:has-text('text 1000000')");
  assert((await elements()) < 100);
  for (const order of ["ascending", "descending"]) {
    await page.click(".names button >> nth=0");
    await sorted(order);
  }
  // The scroll position of so many rows is scaled.
  await page.focus(".grid");
  for (const [key, row] of [["End", "1,000,000"], ["PageUp", null], ["Home", "1"]]) {
    await page.keyboard.press(key);
    const active = await page.evaluate(() => document.querySelector(".row.active").firstChild.textContent);
    await page.keyboard.press("Enter");
    await page.waitForSelector("#record[open]");
    const title = await page.textContent("#record-title");
    assert.strictEqual(title, `Row ${row ?? Number(1_000_001 - Number(active)).toLocaleString("en")} of 1,000,000`);
    assert.strictEqual(await page.textContent("#record dd >> nth=0"), active);
    await page.keyboard.press("Escape");
    await page.waitForSelector("#record:not([open])", { state: "attached" });
  }
  await page.evaluate(() => {
    document.querySelector(".grid").scrollTop = 0;
  });
  await page.waitForFunction(() => document.querySelector("#rows .body .row").textContent.startsWith("1000000"));
  await page.fill(".filters input >> nth=2", "= 3");
  await page.waitForFunction(() => document.querySelector("#rows .count").textContent === "142,857 of 1,000,000 rows");
  console.log(`1,000,000 rows: the longest task took ${await page.evaluate(() => Math.round(window.longest))} ms`);
}

async function cancelled(browser, url) {
  const page = await open(browser, url);
  await page.waitForFunction(() => document.querySelector("#cost").textContent.includes("request"));
  await ask(page, "SELECT aid FROM saved_searches");
  await page.waitForFunction(() => /^4\d\d of 500 left/.test(document.querySelector("#left").textContent));
  await type(page, "SELECT * FROM mentions WHERE duration = '90d'");
  await page.waitForFunction(() => /at least .* · 4\d\d of 500 left/.test(document.querySelector("#cost").textContent));
  await page.click("#run");
  await page.waitForFunction(() => /Running… [1-9]/.test(document.querySelector("#progress").textContent));
  await page.click("#cancel");
  await page.waitForFunction(() => document.querySelector("#progress").textContent.startsWith("Cancelled"));
  const sent = async () => {
    await ask(page, "SELECT count(*) AS n FROM system.requests");
    await page.waitForFunction(() => document.querySelector("#summary").textContent.includes("no requests"));
    return page.textContent("#rows .body .row");
  };
  await page.waitForTimeout(1500);
  const before = await sent();
  await page.waitForTimeout(1500);
  assert.strictEqual(await sent(), before, "no request follows");
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** What the script of a page finds at an address that is neither of this machine nor has TLS. */
const withoutLocks = () => Object.defineProperty(Navigator.prototype, "locks", { get: () => undefined });

/** Seven tabs of a browser: four run queries, the fifth waits, and all others still work. */
async function tabs(browser, url, options) {
  const first = await open(browser, url, options);
  const pages = [first];
  for (let number = 1; number < 7; number += 1) {
    const page = await first.context().newPage();
    await page.goto(new URL("/", url).href);
    pages.push(page);
  }
  for (const page of pages) await page.waitForFunction(() => document.querySelector("#cost").textContent.includes("request"));
  const progress = (page, part) =>
    page.waitForFunction((part) => document.querySelector("#progress").textContent.includes(part), part);
  for (const page of pages.slice(0, 4)) {
    await type(page, "SELECT * FROM mentions WHERE duration = '365d'");
    await page.click("#run");
    await progress(page, "Running");
  }
  for (const page of pages.slice(4, 6)) {
    await type(page, "SELECT 5 AS n");
    await page.click("#run");
    await progress(page, "waiting: four other queries are running");
  }
  // The other views wait as well.
  const go = (hash) => pages[6].evaluate((hash) => {
    location.hash = hash;
  }, hash);
  const waits = (view) => pages[6].waitForFunction((view) =>
    document.querySelector(`${view} .progress`)?.textContent === "waiting: four other queries are running", view);
  await go("#/service");
  await waits("#service");
  for (const [view, hash, button] of [["#overview", "#/overview", "#refresh"], ["#dashboards", "#/dashboards/brand", "#run-all"]]) {
    await go(hash);
    await pages[6].click(button);
    await waits(view);
  }
  await go("#/ask");
  // A tab that runs nothing has a connection left.
  await type(pages[6], "SELECT 1, 2");
  await pages[6].waitForFunction(() => document.querySelector("#cost").textContent.startsWith("no requests"));
  await pages[4].click("#cancel");
  await progress(pages[4], "Cancelled");
  assert.strictEqual(await pages[5].textContent("#progress"), "waiting: four other queries are running");
  // Once a query ends, the next one begins.
  await pages[2].click("#cancel");
  await progress(pages[2], "Cancelled");
  await pages[5].waitForFunction(() => document.querySelector("#summary").textContent.includes("1 row"));
  for (const page of [pages[0], pages[1], pages[3]]) {
    await page.click("#cancel");
    await progress(page, "Cancelled");
  }
  assert.deepStrictEqual(first.problems, []);
  await first.context().close();
}

/** Tabs that ask for a login hold no place: another one, which is logged in, runs its query. */
async function expired(browser, url) {
  const first = await open(browser, url);
  const pages = [first];
  for (let number = 1; number < 5; number += 1) {
    const page = await first.context().newPage();
    await page.goto(new URL("/", url).href);
    pages.push(page);
  }
  for (const page of pages) await page.waitForFunction(() => document.querySelector("#cost").textContent.includes("request"));
  const body = JSON.stringify({ login: "token", error: { message: "the login has expired" } });
  for (const page of pages.slice(0, 4)) {
    await page.route("**/api/query", (route) => route.fulfill({ status: 401, contentType: "application/json", body }));
    await type(page, "SELECT 1 AS n");
    await page.click("#run");
    await page.waitForSelector("#login[open]");
  }
  await ask(pages[4], "SELECT 5 AS n");
  await pages[4].waitForFunction(() => document.querySelector("#summary").textContent.includes("1 row"));
  assert.deepStrictEqual(first.problems, []);
  await first.context().close();
}

/** A dashboard that is left writes nothing into the next one, and a panel whose rows were not kept says why. */
async function dashboards(browser, url) {
  const page = await open(browser, url);
  await page.waitForFunction(() => document.querySelector("#cost").textContent.includes("request"));
  const go = (name) => page.evaluate((name) => {
    location.hash = `#/dashboards/${name}`;
  }, name);
  // Never answered.
  await page.route("**/api/query", () => {});
  await go("brand");
  await page.click("#run-all");
  await page.waitForSelector("#dashboards .running");
  await go("other");
  await page.waitForSelector("#dashboards h1:has-text('Other')");
  await page.waitForSelector("#run-all");
  await page.waitForTimeout(1000);
  assert.match(await page.textContent("#run-all"), /^Run: /, "the other dashboard has not run");
  await page.unroute("**/api/query");
  await page.route("**/api/query", (route) => route.fulfill({ contentType: "application/x-ndjson", body: UNKEPT }));
  await page.click("#run-all");
  await page.waitForSelector("#dashboards .panel-body li");
  assert.match(await page.textContent("#dashboards .panel-body"), /larger than 512 MiB/);
  assert.strictEqual(await page.locator("#dashboards .panel-body img").count(), 0);
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

async function views(browser, url) {
  const page = await open(browser, url);
  await page.waitForFunction(() => document.querySelector("#cost").textContent.includes("request"));
  await page.click("nav a:has-text('Overview')");
  await page.waitForSelector("#refresh");
  assert.match(await page.textContent("#refresh"), /Load: (at least )?\d+ request/);
  await accessible(page, "overview, before");
  await page.click("#refresh");
  await page.waitForSelector("#overview .card svg.spark");
  assert((await page.locator("#overview .card").count()) > 3);
  assert.match(await page.textContent("#overview .card p.sources"), /^positive \d+ %, neutral \d+ %, negative \d+ %$/);
  await page.waitForSelector("#refresh");
  assert.match(await page.textContent("#refresh"), /^Refresh: \d+ requests$/, "known once the list was read");
  await accessible(page, "overview");
  await picture(page, "ui-overview");
  // The link to the content stays in the view.
  await page.focus(".skip");
  await page.keyboard.press("Enter");
  assert.deepStrictEqual(await page.evaluate(() => [location.hash, document.activeElement.id]), ["#/overview", "main"]);
  await page.click("nav a:has-text('Service')");
  await page.waitForSelector("#service table >> nth=1");
  await accessible(page, "service");
  await picture(page, "service");
  await page.click("nav a:has-text('Dashboards')");
  await page.click("#dashboards a:has-text('Brand')");
  await page.waitForSelector("#run-all");
  assert.match(await page.textContent("#run-all"), /^Run: (at least )?\d+ request/);
  await page.click("#run-all");
  await page.waitForFunction(() => document.querySelectorAll(".panel-body img, .panel-body .total, .panel-body .grid").length === 4);
  await page.waitForFunction(() => document.querySelector("#run-all")?.textContent.startsWith("Refresh"));
  await page.waitForFunction(() => [...document.querySelectorAll("#dashboards img")].every((image) => image.naturalWidth > 100));
  const promised = Number(/^Refresh: (?:about )?(\d+) request/.exec(await page.textContent("#run-all"))[1]);
  await page.evaluate(() => document.querySelector("#run-all").classList.add("before"));
  await page.click("#run-all");
  await page.waitForSelector("#run-all:not(.before)");
  const feet = await page.locator("#dashboards .panel .bar p").allTextContents();
  const sent = feet.reduce((sum, foot) => sum + Number(/(\d+) requests?/.exec(foot)?.[1] ?? 0), 0);
  assert(sent > 4 && Math.abs(promised - sent) <= Math.max(2, sent / 5), `${promised} on the button, ${sent} sent: ${feet}`);
  await page.waitForFunction(() => [...document.querySelectorAll("#dashboards img")].every((image) => image.naturalWidth > 100));
  await accessible(page, "dashboard");
  await picture(page, "ui-dashboard");
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** A store with a gap of two days. */
async function stored(browser, url) {
  const page = await open(browser, url);
  await page.waitForFunction(() => document.querySelector("#cost").textContent.includes("request"));
  const day = (before) => new Date(Date.parse(NOW) - before * 86_400_000).toISOString().slice(0, 10);
  for (const [from, to] of [[22, 19], [17, 15]]) {
    const window = `published_at >= '${day(from)}' AND published_at < '${day(to)}'`;
    await ask(page, `SELECT id FROM mentions WHERE aid = '183772' AND ${window}`);
    await page.waitForFunction(() => document.querySelector("#summary").textContent.includes("complete"));
  }
  await page.click("nav a:has-text('Service')");
  await page.waitForSelector(".coverage svg");
  const caption = await page.textContent(".coverage figcaption");
  assert(caption.includes(`5 days, ${day(22)} to ${day(20)}, ${day(17)} to ${day(16)}`), caption);
  assert.strictEqual(await page.locator(".coverage rect.stored").count(), 5);
  const none = await page.locator(".coverage rect.none title").allTextContents();
  for (const missing of [day(19), day(18)]) assert(none.includes(`${missing}: not stored`), missing);
  const squares = await page.locator(".coverage rect").evaluateAll((all) =>
    all.map((square) => [square.getAttribute("y"), square.textContent]));
  assert.strictEqual(squares.at(-1)[1], `${day(0)}: not stored`, "the last square is today");
  const first = squares.filter(([y]) => y === squares[0][0]).map(([, text]) => new Date(text.slice(0, 10)).getUTCDay());
  assert(first.length > 20 && first.every((weekday) => weekday === 1), "weeks begin on Monday");
  assert((await page.locator(".coverage text").count()) >= 3 + 6, "the months have names");
  await accessible(page, "store");
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

async function looks(browser, url) {
  for (const [name, options] of [
    ["dark", { colorScheme: "dark" }],
    ["phone", { viewport: { width: 375, height: 740 } }],
    ["large", { viewport: { width: 3840, height: 2160 } }],
  ]) {
    const page = await open(browser, url, options);
    await page.waitForFunction(() => document.querySelector("#cost").textContent.includes("request"));
    await ask(page, DAYS);
    await page.waitForFunction(() => document.querySelector("#summary").textContent.includes("complete"));
    await accessible(page, name);
    await picture(page, `ui-${name}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.strictEqual(wide, 0, `${name} scrolls sideways`);
    await page.click("#tab-chart");
    await page.waitForFunction(() => document.querySelector("#chart img")?.naturalWidth > 100);
    await picture(page, `ui-${name}-chart`);
    for (const [hash, part] of [["#/overview", "#refresh"], ["#/service", "#service table"], ["#/dashboards/brand", "#run-all"]]) {
      await page.evaluate((hash) => {
        location.hash = hash;
      }, hash);
      await page.waitForSelector(part);
      const beyond = await page.evaluate(() => [document.documentElement, document.querySelector(".view:not([hidden])")]
        .map((element) => element.scrollWidth - element.clientWidth));
      assert.deepStrictEqual(beyond, [0, 0], `${name}: ${hash} scrolls sideways`);
    }
    await page.evaluate(() => {
      location.hash = "#/ask";
    });
    if (name === "dark") {
      const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.strictEqual(dark, "rgb(20, 23, 28)");
      await page.click("#theme");
      assert.notStrictEqual(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), dark, "light on demand");
    }
    await page.context().close();
  }
}

/** Texts of the six languages of the demo data on a phone: the direction is that of the text, and nothing scrolls sideways. */
async function languages(browser, url) {
  const page = await open(browser, url, { viewport: { width: 375, height: 740 } });
  await page.waitForFunction(() => document.querySelector("#cost").textContent.includes("request"));
  const wide = () => page.evaluate(() => {
    const beyond = (element) => element.scrollWidth - element.clientWidth;
    const record = document.querySelector("#record");
    return [beyond(document.documentElement), record.open ? beyond(record) : 0];
  });
  for (const language of ["en", "de", "fr", "es", "ja", "ar"]) {
    const conditions = `aid = '183772' AND duration = '30d' AND language = '${language}'`;
    await ask(page, `SELECT text, language FROM mentions WHERE ${conditions} LIMIT 12`);
    await page.waitForFunction(() => document.querySelector("#summary").textContent.includes("row"));
    const cells = await page.locator("#rows .body .row > div:first-child").evaluateAll((all) =>
      all.map((cell) => [getComputedStyle(cell).direction, /\p{L}/u.exec(cell.textContent)?.[0] ?? ""]));
    assert(cells.length > 0, language);
    for (const [direction, letter] of cells) {
      assert.strictEqual(direction, /\p{Script=Arabic}/u.test(letter) ? "rtl" : "ltr", `${language}: ${letter}`);
    }
    const row = language === "ar" ? cells.findIndex(([direction]) => direction === "rtl") : 0;
    assert(row >= 0, "a text from right to left");
    assert.deepStrictEqual(await wide(), [0, 0], language);
    await page.focus(".grid");
    for (let pressed = 0; pressed <= row; pressed += 1) await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#record[open]");
    const opened = await page.evaluate(() => getComputedStyle(document.querySelector("#record dd")).direction);
    assert.strictEqual(opened, cells[row][0], language);
    assert.deepStrictEqual(await wide(), [0, 0], language);
    if (language === "ar") await accessible(page, "an Arabic mention");
    await page.keyboard.press("Escape");
  }
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

async function login(browser, url) {
  const page = await open(browser, url);
  await page.waitForSelector("#login[open]");
  await accessible(page, "login");
  await page.fill("#login input[name=name]", "ada");
  await page.fill("#login input[name=secret]", "wrong");
  await page.click("#login button");
  await page.waitForSelector("#login-problem:visible");
  await page.fill("#login input[name=secret]", "swordfish");
  await page.click("#login button");
  await page.waitForSelector("#login", { state: "hidden" });
  await page.waitForFunction(() => document.querySelector("#cost").textContent.includes("request"));
  await ask(page, "SELECT 1 AS n");
  await page.waitForSelector(".body .row");
  await page.click("#logout");
  await page.waitForSelector("#login[open]");
  // Another user of this browser does not see what was asked.
  await page.fill("#login input[name=name]", "bob");
  await page.fill("#login input[name=secret]", "swordfish");
  await page.click("#login button");
  await page.waitForSelector("#login", { state: "hidden" });
  await page.waitForFunction(() => document.querySelector("#cost").textContent.includes("request"));
  assert(!(await page.inputValue("#sql")).includes("SELECT 1 AS n"));
  assert.strictEqual(await page.locator("#history li").count(), 0);
  await page.context().close();
}

async function framed(browser, url) {
  const page = await (await browser.newContext()).newPage();
  await page.setContent(`<iframe src="${url}"></iframe>`);
  await page.waitForTimeout(500);
  assert.strictEqual(await page.frames()[1].evaluate(() => document.querySelector("#sql")).catch(() => null), null, "it is not shown in a frame");
  await page.context().close();
}

/** A page of its own whose calls are answered here: `answers` has the response to each path below `api/`, or what gives it. */
async function answering(browser, url, answers, options) {
  const page = await open(browser, url, options);
  const routes = Object.entries(answers).map(([path, answer]) => page.route(`**/api/${path}`, (route) => {
    if (typeof answer === "function") return answer(route);
    return route.fulfill(typeof answer === "string" ? { contentType: "application/x-ndjson", body: answer } : { json: answer });
  }));
  await Promise.all(routes);
  await page.waitForFunction(() => document.querySelector("#cost").textContent.includes("request"));
  return page;
}

/** Shows a view, as a click on its name does. */
const go = (page, hash) => page.evaluate((hash) => {
  location.hash = hash;
}, hash);

/** Waits until a condition of this script holds. */
async function until(holds, what) {
  const end = Date.now() + LONGEST;
  while (Date.now() < end) {
    if (await holds()) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.fail(what);
}

/** The response to a query, line by line. */
function response(columns, rows, end = {}) {
  const complete = { rows: rows.length, requests: 0, summary: `${rows.length} rows`, notes: [], result: null };
  const lines = [{ columns }, ...rows, { end: { ...complete, ...end } }];
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}
const FREE = { requests: "0", at_least: 0, exact: true, likely: null, scans: [], left: null };

/** A dashboard runs again only while somebody sees it, and takes what other tabs have stored. */
async function refreshed(browser, url) {
  const asked = [];
  const queries = [{ title: "n", sql: "SELECT 1 AS n", chart: "number" }];
  const page = await answering(browser, url, {
    "dashboards/often": { title: "Often", refresh: "1m", refresh_seconds: 0.2, queries },
    query: (route) => {
      asked.push(route.request().postDataJSON().settings.freshness);
      return route.fulfill({ contentType: "application/x-ndjson", body: UNKEPT });
    },
  });
  const hide = (hidden) => page.evaluate((hidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
  await hide(true);
  await page.route("**/api/estimate", (route) => route.fulfill({ json: FREE }));
  await go(page, "#/dashboards/often");
  await page.waitForSelector("#run-all");
  await page.waitForTimeout(1000);
  assert.deepStrictEqual(asked, ["1m"], "nobody sees it");
  await hide(false);
  await until(() => asked.length > 2, "it runs again");
  assert.deepStrictEqual([...new Set(asked)], ["1m"]);
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** The cost is that of the statement at the cursor, or of the selection; until it is known, the one that is shown is marked. */
async function repriced(browser, url) {
  let held = null;
  const page = await answering(browser, url, {
    estimate: async (route) => {
      const { sql } = route.request().postDataJSON();
      if (held) await held.promise;
      return route.fulfill({ json: { ...FREE, at_least: sql.trim().length, requests: String(sql.trim().length) } });
    },
  });
  const costs = (words) => page.waitForFunction((words) => {
    const cost = document.querySelector("#cost");
    return cost.textContent === words && !cost.hasAttribute("aria-busy");
  }, words);
  await type(page, "SELECT 1;\nSELECT 22");
  await costs("9 requests");
  await page.keyboard.press("Control+Home");
  await costs("8 requests");
  await page.keyboard.press("Shift+End");
  await costs("9 requests");
  held = {};
  held.promise = new Promise((done) => Object.assign(held, { done }));
  await page.keyboard.press("Control+End");
  await page.waitForSelector("#cost[aria-busy]");
  await accessible(page, "a cost that is awaited");
  held.done();
  await page.waitForSelector("#cost:not([aria-busy])");
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** Tab leaves a table with links, and rows that arrive leave those in view as they are. */
async function tabbed(browser, url) {
  const columns = [{ name: "url", type: "Utf8", class: "text" }];
  const rows = Array.from({ length: 500 }, (_, at) => [`https://example.com/${at}`]);
  const page = await answering(browser, url, { query: response(columns, rows) });
  await ask(page, "SELECT url FROM mentions");
  await page.waitForSelector("#rows .body a");
  await page.focus(".grid");
  for (let pressed = 0; pressed < 4; pressed += 1) await page.keyboard.press("Tab");
  assert.strictEqual(await page.evaluate(() => document.activeElement.closest(".grid")), null, "the table is left");
  // A table of the page itself, which parts reach one after the other.
  const kept = await page.evaluate(async () => {
    const { Table } = await import("/table.js");
    const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const table = new Table(document.querySelector("#rows"));
    table.reset([{ name: "n", type: "Int64", class: "number" }]);
    table.add(Array.from({ length: 200 }, (_, at) => [at]));
    await frame();
    const first = document.querySelector("#rows .body .row");
    table.add([[200], [201]]);
    await frame();
    const streamed = first === document.querySelector("#rows .body .row");
    table.sort(0);
    table.sort(0);
    return streamed;
  });
  assert.strictEqual(kept, true, "the element is the same");
  await page.waitForFunction(() => document.querySelector("#rows .body .row").textContent === "201");
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** Another text can be undone, and an address with a query does not bring it back after an edit. */
async function undone(browser, url) {
  const page = await answering(browser, url, {});
  await type(page, "SELECT 'mine'");
  await page.click("#tab-saved");
  await page.click("#saved li:has-text('Saved searches') button");
  assert.match(await page.inputValue("#sql"), /FROM saved_searches$/);
  await page.keyboard.press("Control+Z");
  assert.strictEqual(await page.inputValue("#sql"), "SELECT 'mine'");
  await page.click("#link");
  await page.waitForFunction(() => document.querySelector("#progress").textContent.length > 0);
  const link = await page.evaluate(() => location.hash);
  assert.match(link, /^#\/ask\?sql=/);
  await page.focus("#sql");
  await page.keyboard.press("Control+End");
  await page.keyboard.type(", 2");
  assert.strictEqual(await page.evaluate(() => location.hash), "#/ask");
  await page.reload();
  const shows = (sql) => page.waitForFunction((sql) => document.querySelector("#sql").value === sql, sql);
  await shows("SELECT 'mine', 2");
  // A link that is opened, and edited.
  await go(page, link);
  await shows("SELECT 'mine'");
  await page.keyboard.press("Control+End");
  await page.keyboard.type(", 3");
  await page.reload();
  await shows("SELECT 'mine', 3");
  await go(page, "#/overview");
  await page.goBack();
  await shows("SELECT 'mine', 3");
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** Days without mentions are zeros in the lines of the overview, and an unknown period before is told. */
async function gaps(browser, url) {
  const names = ["part", "aid", "label", "n", "positive", "neutral", "negative"];
  const columns = names.map((name) => ({ name, type: "Utf8", class: "text" }));
  const day = (before) => new Date(Date.parse(NOW) - before * 86_400_000).toISOString().slice(0, 10);
  const rows = ["1", "2"].flatMap((aid) => [["name", aid, `Name ${aid}`, null, null, null, null], ["totals", aid, null, 9, 3, 3, 3],
    // The first and the last of the 30 days, and one before; the day that has not ended has none.
    ...[[40, 7], [29, 5], [1, 4]].map(([before, n]) => ["day", aid, `${day(before)}T00:00:00Z`, n, null, null, null])]);
  rows.push(["both", "1", null, 18, null, null, null], ["both", "2", null, null, null, null, null]);
  const page = await answering(browser, url, {
    query: response(columns, rows),
    state: async (route) => {
      const reply = await route.fetch();
      return route.fulfill({ json: { ...(await reply.json()), now: NOW } });
    },
  });
  await page.route("**/api/estimate", (route) => route.fulfill({ json: FREE }));
  await go(page, "#/overview");
  await page.waitForSelector("#overview .card svg.spark");
  const changes = await page.locator("#overview .total span").allTextContents();
  assert.deepStrictEqual(changes, ["0 % compared with the 30 days before", "the period before is unknown"]);
  const points = await page.getAttribute("#overview .spark polygon >> nth=0", "points");
  // Without the two corners; the larger, the higher: 33 is the bottom.
  const heights = points.split(" ").slice(1, -1).map((point) => Number(point.split(",")[1]));
  const above = heights.flatMap((height, at) => (height < 33 ? [at] : []));
  assert.deepStrictEqual([heights.length, above, heights[0]], [30, [0, 28], 3]);
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** A page whose first calls are refused says so, and tries again. */
async function refusedAtFirst(browser, url) {
  const page = await answering(browser, url, {});
  const refuse = (route) => route.fulfill({ status: 429, contentType: "text/plain", body: "too many concurrent calls\n" });
  await page.route("**/api/state", refuse);
  await page.route("**/api/tables", refuse);
  await page.reload();
  await page.waitForSelector("main > .problem[role=alert]");
  assert.match(await page.textContent("main > .problem"), /^too many concurrent calls/);
  await page.unroute("**/api/state");
  await page.click("main > .problem button");
  await page.waitForSelector("#tables .problem button");
  await accessible(page, "refused tables");
  assert.strictEqual(await page.locator("main > .problem").count(), 0);
  await page.unroute("**/api/tables");
  await page.click("#tables .problem button");
  await page.waitForSelector("#tables summary");
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** The question for a login stays, another user who answers it begins anew, and an expired login can be ended. */
async function relogin(browser, url) {
  let [user, valid] = ["ada", true];
  const json = { login: "password", error: { message: "the login has expired" } };
  const refuse = (route) => route.fulfill({ status: 401, json });
  const asked = [];
  const page = await answering(browser, url, {
    state: async (route) => {
      const reply = await route.fetch();
      return route.fulfill({ json: { ...(await reply.json()), user, login: "password" } });
    },
    query: (route) => {
      if (!valid) return refuse(route);
      asked.push(user);
      return route.fulfill({ contentType: "application/x-ndjson", body: UNKEPT });
    },
    login: (route) => {
      valid = true;
      return route.fulfill({ json: {} });
    },
    logout: (route) => (valid ? route.fulfill({ json: {} }) : refuse(route)),
  });
  await page.reload();
  await page.waitForSelector("#logout:visible");
  const answer = async (name) => {
    await page.waitForSelector("#login[open]");
    for (let pressed = 0; pressed < 3; pressed += 1) await page.keyboard.press("Escape");
    await page.waitForSelector("#login[open]");
    user = name;
    await page.fill("#login input[name=name]", name);
    await page.fill("#login input[name=secret]", "swordfish");
    await page.click("#login button");
    await page.waitForSelector("#login", { state: "hidden" });
  };
  valid = false;
  await type(page, "SELECT 'of ada'");
  await page.click("#run");
  await answer("ada");
  await page.waitForSelector("#rows .body .row");
  assert.strictEqual(await page.inputValue("#sql"), "SELECT 'of ada'");
  valid = false;
  await page.click("#run");
  await answer("bob");
  await page.waitForFunction(() => document.querySelector("#logout").title === "Logged in as bob");
  assert(!(await page.inputValue("#sql")).includes("ada"));
  assert.strictEqual(await page.locator("#history li").count(), 0);
  assert.deepStrictEqual(asked, ["ada"], "a query of another user is not run");
  valid = false;
  const [begun] = await Promise.all([page.waitForEvent("load"), page.click("#logout")]);
  assert(begun);
  assert.strictEqual(await page.locator("#login[open]").count(), 0);
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** Numbers, times and booleans of filters are read as people write them. A comparison with anything else is marked, and filters nothing. */
async function filtered(browser, url) {
  const columns = [{ name: "n", type: "Float64", class: "number" }, { name: "t", type: "Timestamp", class: "time" },
    { name: "b", type: "Boolean", class: "boolean" }, { name: "s", type: "Utf8", class: "text" }];
  const rows = [[0.5, "2026-07-01T04:00:00Z", true, "> x"], [5, "2026-07-01T05:30:00Z", false, "y"],
    [1500, "2026-07-02T00:00:00Z", true, "z"], [null, null, null, null]];
  const page = await answering(browser, url, { query: response(columns, rows) });
  await ask(page, "SELECT n, t FROM mentions");
  await page.waitForSelector("#rows .body .row");
  for (const [column, text, count] of [
    [0, "< 1,0", /a number/], [0, ">", /a number/], [0, "< 1.0", "1 of 4 rows"], [0, ">= 1,500", "1 of 4 rows"], [0, "> 1_000", "1 of 4 rows"],
    [0, "> x", /a number, as in > 1,000/], [0, "1500", "1 of 4 rows"],
    [1, "> 2026-07-01 05:00", "2 of 4 rows"], [1, "= 2026-07-01", "2 of 4 rows"], [1, "< 2026-07-01 07:00+02:00", "1 of 4 rows"],
    [1, "> yesterday", /a date or a time/], [1, "> 2024", /a date or a time/], [1, ">= 2026-07", "3 of 4 rows"],
    [2, "= true", "2 of 4 rows"], [2, "<> TRUE", "1 of 4 rows"], [2, "= yes", /true/], [3, "> x", "1 of 4 rows"],
    // Parts that no value has, and those that are written otherwise.
    [0, "abc", /a number/], [0, "1,500", "1 of 4 rows"], [0, "nul", "1 of 4 rows"], [1, "yesterday", /a date or a time/],
    [1, "2026-07-01 05", "1 of 4 rows"], [2, "yes", /true/], [2, "tru", "2 of 4 rows"],
  ]) {
    const field = page.locator(`.filters input >> nth=${column}`);
    for (const [typed, shown] of [[text, count], ["", "4 rows"]]) {
      await field.fill(typed);
      const valid = typeof shown === "string";
      const words = valid ? shown : `4 rows · ${"ntb"[column]}: expected `;
      await page.waitForFunction(([words, valid]) => {
        const told = document.querySelector("#rows .count").textContent;
        return valid ? told === words : told.startsWith(words);
      }, [words, valid]);
      assert.strictEqual(await field.getAttribute("aria-invalid"), String(!valid), typed);
      assert.match(await field.getAttribute("title"), valid ? /^$/ : shown);
    }
    if (text === "> 2024") {
      await field.fill(text);
      await accessible(page, "a filter that is not understood");
      await field.fill("");
    }
  }
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** Charts are drawn for the width that they have, so that their letters are as high as those of the page. */
async function widths(browser, url) {
  const page = await answering(browser, url, { query: response(UNKEPT_COLUMNS, [[1]], { result: "r" }) });
  const drawn = [];
  await page.route("**/api/results/r/*", (route) => {
    const width = Number(new URL(route.request().url()).searchParams.get("width"));
    drawn.push(width);
    const body = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="300"></svg>`;
    return route.fulfill({ contentType: "image/svg+xml", body });
  });
  await ask(page, "SELECT 1 AS n");
  for (const wide of [375, 1280, 3840]) {
    await page.setViewportSize({ width: wide, height: 800 });
    await page.click("#tab-chart");
    await page.waitForFunction(() => document.querySelector("#chart img")?.naturalWidth > 100);
    const [shown, natural] = await page.evaluate(() => {
      const image = document.querySelector("#chart img");
      return [image.getBoundingClientRect().width, image.naturalWidth];
    });
    assert(Math.abs(shown - natural) < 3 && natural === drawn.at(-1), `${wide}: ${natural} shown as ${shown}`);
    await page.click("#tab-rows");
  }
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** A query of a dashboard that is wrong says so in its frame, with the place; the others run. */
async function misplaced(browser, url) {
  const queries = [{ title: "Wrong", sql: "SELECT 1,\n  titel FROM mentions", chart: "chart" }, { title: "n", sql: "SELECT 7 AS n", chart: "number" }];
  const page = await answering(browser, url, {
    "dashboards/wrong": { title: "Wrong", refresh: null, refresh_seconds: null, queries },
  });
  await go(page, "#/dashboards/wrong");
  await page.waitForSelector("#dashboards .total:text-is('7')");
  assert.match(await page.textContent("#dashboards .panel:has-text('Wrong') .problem"), /^Line 2, column 3: .*title/);
  assert.strictEqual(await page.locator("#dashboards .problem").count(), 1);
  await accessible(page, "a dashboard with a mistake");
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** Nothing of a dashboard runs as long as a cost is unknown, and what a server that is gone has not run is run alone, after its cost is seen. */
async function lost(browser, url) {
  const queries = [1, 2, 3].map((n) => ({ title: `n${n}`, sql: `SELECT ${n} AS n`, chart: "number" }));
  const asked = [];
  let [priced, gone, free] = [[], [], true];
  const numberOf = (route) => Number(/SELECT (\d)/.exec(route.request().postDataJSON().sql)[1]);
  const page = await answering(browser, url, {
    "dashboards/lost": { title: "Lost", refresh: null, refresh_seconds: null, queries },
    query: (route) => {
      const n = numberOf(route);
      asked.push(n);
      if (gone.includes(n)) return route.abort("connectionrefused");
      return route.fulfill({ contentType: "application/x-ndjson", body: response(UNKEPT_COLUMNS, [[n]], { requests: n }) });
    },
  });
  const bad = { status: 502, contentType: "text/html", body: "<h1>Bad Gateway</h1>" };
  const busy = { status: 429, contentType: "text/plain", body: "too many concurrent calls\n" };
  let refusal = bad;
  await page.route("**/api/estimate", (route) => {
    const n = numberOf(route);
    const cost = { ...FREE, requests: String(n), at_least: n };
    return route.fulfill(priced.includes(n) ? { json: free ? FREE : cost } : refusal);
  });
  // No panel, or not each of them, has an estimate.
  for (const [known, answer, words] of [[[], bad, "status 502"], [[1, 2], bad, "status 502"], [[], busy, "too many concurrent calls"]]) {
    [priced, refusal] = [known, answer];
    await go(page, "#/dashboards");
    await page.waitForSelector("#dashboards h1:text-is('Dashboards')");
    await go(page, "#/dashboards/lost");
    await page.waitForFunction((words) => document.querySelector("#dashboards .bar .problem")?.textContent.includes(words), words);
    assert.strictEqual(await page.locator("#dashboards .problem").count(), 1);
    assert.deepStrictEqual(asked, [], words);
  }
  [priced, free] = [[1, 2, 3], false];
  await page.click("#dashboards .problem button");
  await page.waitForSelector("#run-all");
  assert.strictEqual(await page.textContent("#run-all"), "Run: 6 requests");
  assert.strictEqual(await page.locator("#run-lost").count(), 0);
  gone = [2, 3];
  await page.click("#run-all");
  await page.waitForSelector("#run-lost");
  assert.strictEqual(await page.textContent("#run-lost"), "Run what failed: 5 requests");
  assert.strictEqual(await page.textContent("#run-all"), "Refresh: 6 requests");
  assert.strictEqual(await page.locator("#dashboards .panel .problem").count(), 2);
  await accessible(page, "a dashboard of which a part failed");
  gone = [3];
  await page.click("#run-lost");
  await page.waitForSelector("#run-lost:text-is('Run what failed: 3 requests')");
  gone = [];
  await page.click("#run-lost");
  await page.waitForSelector("#run-lost", { state: "detached" });
  await page.waitForSelector("#run-all");
  assert.deepStrictEqual(asked, [1, 2, 3, 2, 3, 3]);
  assert.deepStrictEqual(await page.locator("#dashboards .total").allTextContents(), ["1", "2", "3"]);
  await page.context().close();
}

/** The overview says that its run failed, also if the server is back by then. */
async function interrupted(browser, url) {
  const page = await answering(browser, url, { query: (route) => route.abort("connectionrefused") });
  await page.route("**/api/estimate", (route) => route.fulfill({ json: { ...FREE, requests: "25", at_least: 25 } }));
  await go(page, "#/overview");
  await page.click("#refresh");
  await page.waitForSelector("#overview .problem");
  assert.match(await page.textContent("#overview .problem"), /cannot be reached/);
  assert.strictEqual(await page.textContent("#refresh"), "Load: 25 requests");
  await page.context().close();
}

/** After a failed run, Try again runs it; nothing that the limits forbid is offered to be found out. */
async function retried(browser, url) {
  const asked = [];
  let cost = FREE;
  const page = await answering(browser, url, {
    query: (route) => {
      asked.push(route.request().postDataJSON().sql);
      if (asked.length === 1) return route.abort("connectionrefused");
      return route.fulfill({ contentType: "application/x-ndjson", body: response(UNKEPT_COLUMNS, [[1]]) });
    },
    estimate: (route) => route.fulfill({ json: cost }),
  });
  await type(page, "SELECT 1 AS n");
  await costs(page, "no requests");
  await page.click("#run");
  await page.click("#problem button");
  await page.waitForSelector("#rows .body .row");
  assert.deepStrictEqual(asked, ["SELECT 1 AS n", "SELECT 1 AS n"]);
  assert.strictEqual(await page.locator("#problem:visible").count(), 0);
  const left = (remaining) => ({ remaining, requests: 500, seconds: null });
  const open = { requests: "at least 1", at_least: 1, exact: false, likely: null, scans: [], unknown: 4 };
  for (const [limit, remaining, offered] of [["", 90, 1], ["4", 90, 1], ["3", 90, 0], ["", 4, 1], ["", 3, 0]]) {
    cost = { ...open, left: left(remaining) };
    await page.fill("#limit", limit);
    await type(page, `SELECT '${limit}', ${remaining}`);
    await costs(page, `at least 1 request · at most ${Math.min(Number(limit || 90), remaining)} allowed`);
    assert.strictEqual(await page.locator("#size").count(), offered, `${limit}, ${remaining}`);
  }
  await page.context().close();
}

/** A server that is gone is told as such, also behind a login, and the page goes on once it is back. */
async function goneServer(browser) {
  const users = ["--auth", "users", "--users-file", path.join(folder, "users.txt")];
  const starting = start("ui", "--listen", "127.0.0.1:0", ...users);
  const child = processes.at(-1);
  const url = (await starting)["page on"];
  const page = await open(browser, url);
  const logIn = async () => {
    await page.waitForSelector("#login[open]");
    await page.fill("#login input[name=name]", "ada");
    await page.fill("#login input[name=secret]", "swordfish");
    await page.click("#login button.main");
  };
  const told = (part) => page.waitForFunction((part) => document.querySelector(part)?.textContent.includes("cannot be reached"), part);
  await logIn();
  await page.waitForFunction(() => document.querySelector("#cost").textContent.includes("request"));
  await type(page, "SELECT 1 AS n");
  await costs(page, "no requests");
  child.removeAllListeners("exit");
  const ended = new Promise((done) => child.on("exit", done));
  child.kill("SIGKILL");
  await ended;
  await page.click("#run");
  await told("#problem");
  assert.strictEqual(await page.locator("#login[open]").count(), 0, "a login would help nobody");
  await accessible(page, "a server that is gone");
  for (const view of ["overview", "dashboards", "service"]) {
    await go(page, `#/${view}`);
    await told(`#${view} .problem`);
    assert.strictEqual(await page.locator(`#${view} .problem button`).count(), 1, view);
  }
  await go(page, "#/ask");
  await start("ui", "--listen", new URL(url).host, ...users);
  // It has forgotten the login. While it is unreachable again, the question says so, and can be answered once more.
  await page.click("#problem button");
  await page.route("**/api/login", (route) => route.abort("connectionrefused"));
  await logIn();
  await told("#login-problem");
  await page.unroute("**/api/login");
  await page.click("#login-problem button");
  await page.waitForSelector("#login", { state: "hidden" });
  await costs(page, "no requests");
  assert.strictEqual(await page.locator("#problem:visible").count(), 0);
  // A proxy answers with a page.
  await page.route("**/api/estimate", (route) => route.fulfill({ status: 502, contentType: "text/html", body: "<h1>Bad Gateway</h1>" }));
  await type(page, "SELECT 2 AS n");
  // The line about the server may still be there, hidden.
  await page.waitForSelector("#problem:visible:has-text('status 502')");
  assert.match(await page.textContent("#problem"), /^[^<]*status 502[^<]*Try again$/);
  await page.context().close();
}

/** A chart that is higher than the window scrolls with its view: it is not squeezed, which would make its bars and letters tiny. */
async function high(browser, url) {
  const queries = [{ title: "Bars", sql: "SELECT 1 AS n", chart: "bars" }];
  const page = await answering(browser, url, {
    "dashboards/high": { title: "High", refresh: null, refresh_seconds: null, queries },
    query: response(UNKEPT_COLUMNS, [[1]], { result: "r" }),
  });
  await page.route("**/api/results/r/*", (route) => {
    const width = new URL(route.request().url()).searchParams.get("width");
    const body = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="4000"></svg>`;
    return route.fulfill({ contentType: "image/svg+xml", body });
  });
  await page.route("**/api/estimate", (route) => route.fulfill({ json: FREE }));
  await page.setViewportSize({ width: 375, height: 740 });
  await ask(page, "SELECT 1 AS n");
  await page.click("#tab-chart");
  const height = async (image) => {
    await page.waitForFunction((image) => document.querySelector(image)?.naturalHeight === 4000, image);
    return page.evaluate((image) => document.querySelector(image).getBoundingClientRect().height, image);
  };
  const shown = [await height("#chart img")];
  await go(page, "#/dashboards/high");
  shown.push(await height("#dashboards img"));
  assert(shown.every((height) => height > 3_900), `4000 pixels are shown as ${shown}`);
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** Small fractions are no zeros, and decimals, which are sent as texts, are numbers. */
async function fractions(browser, url) {
  const values = [[0.0004, "0.0004"], [1234567.891, "1,234,567.891"], ["12500.50", "12,500.5"],
    ["9007199254740993", "9007199254740993"], ["NaN", "NaN"], [null, "none"]];
  const queries = values.map(([value]) => ({ title: "n", sql: JSON.stringify(value), chart: "number" }));
  const page = await answering(browser, url, {
    "dashboards/small": { title: "Small", refresh: null, refresh_seconds: null, queries },
    query: (route) => {
      const value = JSON.parse(route.request().postDataJSON().sql);
      const body = response([{ name: "n", type: "Decimal", class: "number" }], [[value]]);
      return route.fulfill({ contentType: "application/x-ndjson", body });
    },
  });
  await page.route("**/api/estimate", (route) => route.fulfill({ json: FREE }));
  await go(page, "#/dashboards/small");
  await page.waitForFunction((all) => document.querySelectorAll("#dashboards .total").length === all, values.length);
  assert.deepStrictEqual(await page.locator("#dashboards .total").allTextContents(), values.map(([, shown]) => shown));
  const words = await page.evaluate(async () => {
    const { described } = await import("/draw.js");
    return described("lines", [{ name: "day", class: "text" }, { name: "share", class: "number" }], [["a", 0.0004]]);
  });
  assert.match(words, /share: 0\.0004$/);
  const [series, points] = await page.evaluate(async () => {
    const { described } = await import("/draw.js");
    const column = (name, kind) => ({ name, class: kind });
    const days = [["2026-07-01T00:00:00Z", "a", 8], ["2026-07-01T00:00:00Z", "b", 1], ["2026-07-02T00:00:00Z", "b", 12]];
    return [described("chart", [column("day", "time"), column("kind", "text"), column("n", "number")], days),
      described("points", [column("x", "number"), column("n", "number")], [[1, 8], [null, 900], [3, 9]])];
  });
  assert.strictEqual(series, "Chart of day, kind, n; 3 rows. n of a: 8; " +
    "n of b: first 1 (2026-07-01), last 12 (2026-07-02), highest 12 (2026-07-02)");
  assert.strictEqual(points, "Chart of x, n; 3 rows, 1 of them without a number and not drawn. n: first 8 (1), last 9 (3), highest 9 (3)");
  // 1 and 8 July 2026 are Wednesdays.
  const heat = await page.evaluate(async () => {
    const { described } = await import("/draw.js");
    const [at, n] = [{ name: "at", class: "time" }, { name: "n", class: "number" }];
    const times = ["2026-07-01T05:10:00+02:00", "2026-07-08T05:59:59+02:00", "2026-07-02T23:00:00+02:00", null];
    const all = (columns, more) => described("heatmap", columns, times.map((time, row) => [time, ...more(row)]));
    return [all([at], () => []), all([at, n], (row) => [row * row * 1000]), described("heatmap", [at], [])];
  });
  assert.deepStrictEqual(heat, ["Chart of at; 4 rows. Highest: Wednesday 05:00 (2), Thursday 23:00 (1)",
    "Chart of at, n; 4 rows. Highest: Thursday 23:00 (4,000), Wednesday 05:00 (1,000)", "Chart of at; 0 rows. Highest: none"]);
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** A dashboard table takes many rows that arrive at once. */
async function manyAtOnce(browser, url) {
  const rows = new Array(400_000).fill([1]);
  const queries = [{ title: "n", sql: "SELECT 1", chart: "table" }];
  const page = await answering(browser, url, {
    "dashboards/rows": { title: "Rows", refresh: null, refresh_seconds: null, queries },
    query: response(UNKEPT_COLUMNS, rows),
  });
  await page.route("**/api/estimate", (route) => route.fulfill({ json: FREE }));
  await go(page, "#/dashboards/rows");
  await page.waitForFunction(() => document.querySelector("#dashboards .count")?.textContent === "400,000 rows");
  assert.strictEqual(await page.locator("#dashboards .problem").count(), 0);
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** Enter takes a completion that was chosen, and is a line break otherwise; keys of an input method are left to it. */
async function completions(browser, url) {
  const complete = { replaces: 2, words: [["ORDER BY", "ORDER BY"], ["OR", "OR"], ["OVER", "OVER"]] };
  const page = await answering(browser, url, { complete });
  const typed = async (keys, expected) => {
    await type(page, "");
    await page.focus("#sql");
    await page.keyboard.type("a OR");
    await page.waitForSelector("#words:visible");
    await keys();
    assert.strictEqual(await page.inputValue("#sql"), expected);
  };
  const press = (...keys) => async () => {
    for (const key of keys) await page.keyboard.press(key);
  };
  await typed(press("Enter"), "a OR\n");
  await typed(press("Tab"), "a ORDER BY");
  await typed(press("ArrowDown", "Enter"), "a ORDER BY");
  await typed(press("ArrowUp", "Enter"), "a OVER");
  await typed(press("ArrowDown", "ArrowDown", "Enter"), "a OVER");
  await typed(async () => {
    await press("ArrowDown")();
    await page.evaluate(() => {
      document.querySelector("#sql").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", isComposing: true }));
    });
  }, "a OR");
  await type(page, "a OR");
  await page.focus("#sql");
  await page.keyboard.press("Control+End");
  await page.keyboard.press("Control+Space");
  await page.waitForSelector("#words [aria-selected=true]");
  await page.keyboard.press("Enter");
  assert.strictEqual(await page.inputValue("#sql"), "a ORDER BY");
  // Words for a part of what was typed by now take the place of all of it.
  await page.route("**/api/complete", (route) => (route.request().postDataJSON().before === "a OR" ? route.fallback() : null));
  await typed(async () => {
    await page.keyboard.insertText("D");
    await page.keyboard.press("Tab");
  }, "a ORDER BY");
  await page.unroute("**/api/complete");
  // So many that the list scrolls.
  const long = { replaces: 2, words: Array.from({ length: 60 }, (_, at) => [`OR${at}`, `OR${at}`]) };
  await page.route("**/api/complete", (route) => route.fulfill({ json: long }));
  await typed(async () => {
    await page.waitForSelector("#words li >> nth=59");
    await accessible(page, "many completions");
    await page.click("#words li >> nth=59");
  }, "a OR59");
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** Until a saved search is known, the page begins with the list of all, and its examples have a parameter. */
async function unknownSearch(browser, url) {
  let search = null;
  const page = await answering(browser, url, {
    state: async (route) => {
      const reply = await route.fetch();
      return route.fulfill({ json: { ...(await reply.json()), search, user: "newcomer" } });
    },
  });
  await page.reload();
  await page.waitForFunction(() => /^SELECT aid, name\s+FROM saved_searches$/.test(document.querySelector("#sql").value));
  const example = "#saved li:has-text('Mentions a day by sentiment') button";
  assert.match(await page.getAttribute(example, "title"), /aid = :'aid'/);
  search = "183772";
  await page.click("#run");
  await page.waitForFunction(() => /aid = '183772'/.test(document.querySelector("#saved ul:last-of-type li button").title));
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** A query that fails says what it has spent. */
async function spent(browser, url) {
  const body = [{ columns: UNKEPT_COLUMNS }, [1], { error: { code: "Unavailable", message: "the service failed", requests: 7 } }];
  const page = await answering(browser, url, { query: body.map((line) => `${JSON.stringify(line)}\n`).join("") });
  await ask(page, "SELECT 1 AS n");
  assert.strictEqual(await page.textContent("#progress"), "Failed after 1 row and 7 requests.");
  assert.strictEqual(await page.textContent("#problem"), "the service failed");
  assert.strictEqual(await page.textContent("#summary"), "incomplete: the query failed");
  // One that is refused before it starts has spent nothing.
  const refused = { error: { message: "unknown column" } };
  await page.route("**/api/query", (route) => route.fulfill({ status: 422, json: refused }));
  await page.click("#run");
  await page.waitForFunction(() => document.querySelector("#problem").textContent === "unknown column");
  assert.strictEqual(await page.textContent("#progress"), "");
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** Times have one form, with their date and the zone of the browser. */
async function times(browser, url) {
  const names = ["time", "endpoint", "parameters", "status", "rows", "elapsed", "verdict"];
  const columns = names.map((name) => ({ name, type: "Utf8", class: "text" }));
  const rows = [["2026-07-01T23:30:00.123456789Z", "search", "", 200, 1, 2, "complete"]];
  const page = await answering(browser, url, {
    query: response(columns, rows),
    state: async (route) => {
      const reply = await route.fetch();
      return route.fulfill({ json: { ...(await reply.json()), store: false } });
    },
  }, { timezoneId: "Europe/Berlin" });
  await page.reload();
  await ask(page, "SELECT 1");
  assert.match(await page.textContent("#history time"), /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d CES?T$/);
  await go(page, "#/service");
  assert.strictEqual(await page.textContent("#service td >> nth=0"), "2026-07-02 01:30:00 CEST");
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** A large store has the days of its first saved searches drawn, with their names. */
async function largeStore(browser, url) {
  const columns = ["aid", "filters", "days", "ranges"].map((name) => ({ name, type: "Utf8", class: "text" }));
  const rows = Array.from({ length: 1_060 }, (_, at) => [String(at), "", 2, "2026-11-01..2026-11-02"]);
  const page = await answering(browser, url, {
    names: [["0", "Brand"]],
    query: (route) => {
      const stored = route.request().postDataJSON().sql.includes("system.store");
      return route.fulfill({ contentType: "application/x-ndjson", body: response(columns, stored ? rows : []) });
    },
    state: async (route) => {
      const reply = await route.fetch();
      return route.fulfill({ json: { ...(await reply.json()), now: NOW, store: true } });
    },
  });
  await go(page, "#/service");
  await page.waitForSelector(".coverage svg");
  assert.strictEqual(await page.locator(".coverage figure").count(), 50);
  assert.match(await page.textContent(".coverage figcaption >> nth=0"), /^Brand \(0\): 2 days, /);
  assert.match(await page.textContent(".coverage figcaption >> nth=1"), /^1: 2 days, /);
  assert.strictEqual(await page.textContent(".coverage > p"), "1,010 more in system.store");
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** A file or chart of a result that is no longer kept says so. */
async function dropped(browser, url) {
  const page = await answering(browser, url, { query: response(UNKEPT_COLUMNS, [[1]], { result: "gone" }) });
  const line = "this result is no longer kept; run the query again";
  const gone = { status: 404, contentType: "text/plain", body: `${line}\n` };
  await page.route("**/api/results/gone/*", (route) => route.fulfill(gone));
  for (const name of ["CSV", "XLSX"]) {
    await ask(page, "SELECT 1 AS n");
    await page.click(`#downloads a:text-is('${name}')`);
    await page.waitForFunction((line) => document.querySelector("#problem").textContent === line, line);
  }
  await page.click("#tab-chart");
  await page.waitForFunction((line) => document.querySelector("#chart .picture").textContent === line, line);
  // An image that cannot be shown, although it is there.
  await page.route("**/api/results/gone/*", (route) => route.fulfill({ contentType: "image/svg+xml", body: "<svg" }));
  await page.selectOption("#chart select", "lines");
  await page.waitForFunction(() => document.querySelector("#chart .picture").textContent === "The chart cannot be shown.");
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** The tab of a result stays if the next one can be drawn, and a click that ends the typing of a title is not lost. */
async function kept(browser, url) {
  const page = await answering(browser, url, { query: response(UNKEPT_COLUMNS, [[1]], { result: "r" }) });
  const body = `<svg xmlns="http://www.w3.org/2000/svg" width="300" height="300"></svg>`;
  await page.route("**/api/results/r/*", (route) => route.fulfill({ contentType: "image/svg+xml", body }));
  assert.strictEqual(await page.textContent("#history"), "Queries that you run are listed here.");
  const chosen = () => page.getAttribute("#result [aria-selected=true]", "id");
  await ask(page, "SELECT 1 AS n");
  assert.strictEqual(await chosen(), "tab-rows");
  await page.click("#tab-chart");
  await ask(page, "SELECT 2 AS n");
  await page.waitForSelector("#chart img");
  assert.strictEqual(await chosen(), "tab-chart");
  for (const [name, typed] of [["SVG", "One"], ["PNG", "Two"]]) {
    await page.fill("#chart input", "");
    await page.keyboard.type(typed);
    const link = `#chart a:text-is('${name}')`;
    await Promise.all([page.waitForRequest(/results\/r\/(kept|chart\.png)/), page.click(link)]);
    assert.match(await page.getAttribute(link, "href"), new RegExp(`&title=${typed}&`));
    assert.match(await page.getAttribute("#chart img", "alt"), new RegExp(`^${typed}\\. `));
  }
  await page.route("**/api/query", (route) => route.fulfill({ body: response([{ name: "s", type: "Utf8", class: "text" }], [["a"]]) }));
  await ask(page, "SELECT 'a' AS s");
  assert.strictEqual(await chosen(), "tab-rows");
  await page.click("#tab-history");
  await page.click("#history > button");
  assert.strictEqual(await page.textContent("#history"), "Queries that you run are listed here.");
  await page.focus(".skip");
  await page.keyboard.press("Enter");
  assert.deepStrictEqual(await page.evaluate(() => [location.hash, document.activeElement.id]), ["", "sql"]);
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** Numbers and ids in view are never cut. */
async function uncut(browser, url) {
  const columns = [{ name: "n", type: "Int64", class: "number" }, { name: "id", type: "Utf8", class: "text" },
    { name: "text", type: "Utf8", class: "text" }];
  const [large, id] = ["-1234567890123456789012345678901234567.8901234567", "WWWWWWWW-9007-4740-9930-123456789012"];
  const rows = Array.from({ length: 500 }, (_, at) => (at === 300 ? [large, id, "a text ".repeat(40)] : [at, String(at), "x"]));
  rows[1] = ["9007199254740993", "1000000000000000001", "x"];
  const page = await answering(browser, url, { query: response(columns, rows, { result: "r" }) });
  await ask(page, "SELECT n, id FROM mentions");
  const cut = () => page.locator("#rows .body .row").evaluateAll((all) => all.flatMap((row) => [...row.children].slice(0, 2))
    .filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent));
  await page.waitForSelector("#rows .body .row:has-text('9007199254740993')");
  assert.deepStrictEqual(await cut(), []);
  const width = () => page.locator(".names > div >> nth=2").evaluate((cell) => cell.clientWidth);
  const before = await width();
  // Rows that are drawn behind the chart have no width until they are seen.
  await page.click("#tab-chart");
  await page.evaluate((top) => document.querySelector("#rows .grid").scrollTo(0, top), 298 * 28);
  await page.click("#tab-rows");
  await page.evaluate((top) => document.querySelector("#rows .grid").scrollTo(0, top), 298 * 28);
  await page.waitForSelector(`#rows .body .row:has-text('${large}')`);
  assert.deepStrictEqual(await cut(), []);
  assert.strictEqual(await width(), before, "a long text is cut");
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** The estimates of a dashboard end with its view. */
async function abandoned(browser, url) {
  const queries = Array.from({ length: 30 }, (_, at) => ({ title: `${at}`, sql: `SELECT ${at} AS n`, chart: "number" }));
  const page = await answering(browser, url, { "dashboards/many": { title: "Many", refresh: null, refresh_seconds: null, queries } });
  let [asked, aborted] = [0, 0];
  page.on("request", (request) => {
    asked += request.url().endsWith("estimate") ? 1 : 0;
  });
  page.on("requestfailed", (request) => {
    aborted += request.url().endsWith("estimate") ? 1 : 0;
  });
  // Never answered.
  await page.route("**/api/estimate", () => {});
  await go(page, "#/dashboards/many");
  await until(() => asked === 30, "all are asked for");
  await go(page, "#/service");
  await until(() => aborted === 30, "all are aborted");
  await page.waitForSelector("#service table");
  assert.strictEqual(await page.locator("#dashboards [role=alert]").count(), 0);
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** The cost warns in words of what exceeds the limit of the query, or what is left. */
async function warned(browser, url) {
  let cost = FREE;
  const page = await answering(browser, url, { estimate: (route) => route.fulfill({ json: cost }) });
  const left = (remaining) => ({ remaining, requests: 500, seconds: null });
  const scan = [{ table: "mentions", requests: "1 per 99 mentions" }];
  const open = { requests: "at least 3", at_least: 3, exact: false, likely: null, scans: scan };
  const likely = { requests: "about 80", at_least: 3, exact: false, likely: 80, scans: [] };
  for (const [given, limit, words, warns] of [
    [{ ...open, left: left(90) }, "", "at least 3 requests · at most 90 allowed · mentions: 1 per 99 mentions · 90 of 500 left", false],
    [{ ...open, left: left(90) }, "50", "at least 3 requests · at most 50 allowed · mentions: 1 per 99 mentions · 90 of 500 left", false],
    [{ ...open, left: null }, "", "at least 3 requests · at most 1,000 allowed · mentions: 1 per 99 mentions", false],
    [{ ...open, left: left(2) }, "", "at least 3 requests · mentions: 1 per 99 mentions · more than is left · 2 of 500 left", true],
    [{ ...open, left: left(2) }, "1",
      "at least 3 requests · mentions: 1 per 99 mentions · more than “At most” allows · 2 of 500 left", true],
    [{ ...likely, left: left(80) }, "80", "about 80 requests · 80 of 500 left", false],
    [{ ...likely, left: left(79) }, "80", "about 80 requests · probably more than is left · 79 of 500 left", true],
    [{ ...likely, left: left(90) }, "79", "about 80 requests · probably more than “At most” allows · 90 of 500 left", true],
  ]) {
    cost = given;
    await page.fill("#limit", "");
    await page.fill("#limit", limit);
    await type(page, `SELECT ${JSON.stringify(words).length}`);
    await page.waitForFunction((words) => document.querySelector("#cost").textContent === words, words)
      .catch(async () => assert.strictEqual(await page.textContent("#cost"), words));
    assert.strictEqual(await page.evaluate(() => document.querySelector("#cost").classList.contains("problem")), warns, words);
  }
  await accessible(page, "a cost that warns");
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** The button of a dashboard warns of a cost that is more than is left, a wait is explained, and a changed file is opened again. */
async function beyondLeft(browser, url) {
  const file = { title: "Old", refresh: null, refresh_seconds: null, queries: [{ title: "n", sql: "SELECT 1 AS n", chart: "number" }] };
  const page = await answering(browser, url, {
    query: `${JSON.stringify({ columns: UNKEPT_COLUMNS })}\n${JSON.stringify({ progress: { requests: 0, rows: 0, waits_ms: 407_100 } })}\n`,
  });
  await page.route("**/api/dashboards/file", (route) => route.fulfill({ json: file }));
  const left = { remaining: 2, requests: 60, seconds: 600 };
  await page.route("**/api/estimate", (route) => route.fulfill({ json: { ...FREE, requests: "3", at_least: 3, left } }));
  await go(page, "#/dashboards/file");
  await page.waitForSelector("#run-all");
  assert.strictEqual(await page.textContent("#dashboards .cost.problem"), "more than is left · 2 of 60 left in 10 min");
  await page.evaluate(() => {
    window.seen = [];
    const watch = () => window.seen.push(document.querySelector("#dashboards .progress")?.textContent);
    new MutationObserver(watch).observe(document.querySelector("#dashboards"), { childList: true, subtree: true, characterData: true });
  });
  await page.click("#run-all");
  await page.waitForFunction(() => window.seen.includes("Running… · waiting 408 s for the rate limit"));
  file.title = "New";
  await page.click("#run-all");
  await page.waitForSelector("#dashboards h1:text-is('New')");
  await page.waitForSelector("#run-all:has-text('Run: 3 requests')");
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** Nothing of a dashboard runs if a user's budget would refuse a part of it; what runs is what was estimated; the header follows. */
async function withinBudget(browser, url) {
  const queries = [1, 2].map((n) => ({ title: `n${n}`, sql: `SELECT ${n} AS n`, chart: "number" }));
  const asked = [];
  let [allowance, sizes] = [3, 0];
  const left = () => ({ source: "caller", remaining: allowance, requests: 10, seconds: 3600 });
  const page = await answering(browser, url, {
    "dashboards/own": { title: "Own", refresh: "1h", refresh_seconds: 3600, queries },
    query: (route) => {
      asked.push(route.request().postDataJSON().settings.freshness);
      allowance -= 2;
      return route.fulfill({ contentType: "application/x-ndjson", body: response(UNKEPT_COLUMNS, [[1]], { requests: 2 }) });
    },
  });
  const open = { ...FREE, requests: "at least 2", at_least: 2, exact: false, unknown: 1 };
  const priced = (route, more) => route.fulfill({ json: { ...open, allowance, left: left(), ...more } });
  await page.route("**/api/estimate", (route) => priced(route));
  await page.route("**/api/size", (route) => {
    sizes += 1;
    return priced(route, { requests: "about 2", likely: 2, unknown: 0 });
  });
  await go(page, "#/dashboards/own");
  await page.waitForSelector("#run-all:text-is('Run: at least 4 requests')");
  assert.strictEqual(await page.isDisabled("#run-all"), true);
  assert.match(await page.textContent("#dashboards .cost.problem"), /more than is left · 3 of 10 left in 1 h · your budget would refuse/);
  await accessible(page, "a dashboard beyond the budget");
  allowance = 9;
  await go(page, "#/dashboards");
  await go(page, "#/dashboards/own");
  await page.waitForSelector("#run-all:enabled");
  assert.strictEqual(await page.textContent("#left"), "9 of 10 left in 1 h");
  await page.click("#size-all:text-is('Find out: at most 2 requests')");
  await page.waitForSelector("#run-all:text-is('Run: about 4 requests')");
  assert.deepStrictEqual([sizes, await page.locator("#size-all").count()], [2, 0]);
  await page.click("#run-all");
  await page.waitForSelector("#run-all:has-text('Refresh')");
  assert.strictEqual(await page.textContent("#left"), "5 of 10 left in 1 h");
  assert.deepStrictEqual(asked, ["1h", "1h"], "the age that was estimated");
  await page.click("#run-all");
  await page.waitForFunction(() => document.querySelector("#left").textContent === "1 of 10 left in 1 h");
  assert.deepStrictEqual(asked, ["1h", "1h", "1s", "1s"]);
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** Without dashboards, the view shows a sample and its place. */
async function noDashboards(browser, url) {
  let folder = null;
  const page = await answering(browser, url, {
    dashboards: [],
    state: async (route) => {
      const reply = await route.fetch();
      return route.fulfill({ json: { ...(await reply.json()), dashboards: folder } });
    },
  });
  for (const [path, words] of [[null, /start the page with savedsearch ui DIR/], ["/srv/boards", /^The folder \/srv\/boards has no dashboards/]]) {
    folder = path;
    await go(page, "#/dashboards");
    await page.reload();
    await page.waitForSelector("#dashboards pre");
    assert.match(await page.textContent("#dashboards .quiet"), words);
    await accessible(page, "no dashboards");
  }
  assert.deepStrictEqual(page.problems, []);
  await page.context().close();
}

/** A link from an earlier start is named as such, with the line that has the new one. A first visit without a token is not. */
async function stale(browser, url) {
  for (const [address, told] of [[url.replace(/token=.*/, "token=wrong"), true], [new URL("/", url).href, false]]) {
    const page = await open(browser, address);
    await page.waitForSelector("#login[open]");
    const help = await page.textContent("#login-help");
    assert.strictEqual(help.includes("earlier start of the server"), told, help);
    assert.match(help, /the line “page on …”/);
    await accessible(page, "a token");
    await page.context().close();
  }
}

/** The fields below the editor stay where they are while the cost changes, and the frame of a table ends with its columns. */
async function steady(browser, url) {
  for (const width of [375, 1280, 3840]) {
    let cost = FREE;
    const page = await answering(browser, url, {
      estimate: (route) => route.fulfill(cost.error ? { status: 422, json: cost } : { json: cost }),
      query: response(UNKEPT_COLUMNS, [[1]]),
    }, { viewport: { width, height: 900 } });
    const places = [];
    const scans = [{ table: "mentions", requests: "1 per 99 mentions of a window whose number of mentions is not known yet" }];
    for (const next of [FREE, { ...FREE, requests: "at least 1", at_least: 1, exact: false, unknown: 1, scans }, { error: { message: "wrong" } }]) {
      cost = next;
      await type(page, `SELECT ${places.length}`);
      const words = cost.error ? "wrong" : cost.exact ? "no requests" : "at least";
      await page.waitForFunction((words) => ["#cost:not([aria-busy])", "#problem"].some((part) =>
        document.querySelector(part)?.textContent.startsWith(words)), words);
      places.push(await page.evaluate(() => ["zone", "run"].map((id) => document.getElementById(id).getBoundingClientRect().top)));
    }
    assert.deepStrictEqual(places, [places[0], places[0], places[0]], `${width}`);
    await ask(page, "SELECT 1 AS n");
    const [frame, columns, seen] = await page.evaluate(() => [document.querySelector("#rows .grid").offsetWidth,
      document.querySelector("#rows .names > div").offsetWidth, document.querySelector(".editor").getBoundingClientRect().right]);
    assert(frame < columns + 320 && seen <= width, `${width}: ${frame} for ${columns}, the editor ends at ${seen}`);
    await page.context().close();
  }
}

async function main() {
  fs.writeFileSync(path.join(folder, "brand.toml"), `title = "Brand"
refresh = "1h"
[[queries]]
title = "Mentions of 30 days"
chart = "number"
sql = "SELECT count(*) AS mentions FROM mentions WHERE aid = '183772' AND duration = '30d'"
[[queries]]
title = "Mentions a day by sentiment"
chart = "stacked"
sql = """${DAYS}"""
[[queries]]
title = "By weekday and hour"
chart = "heatmap"
sql = "SELECT published_at FROM mentions WHERE aid = '183772' AND duration = '7d'"
[[queries]]
title = "Sources"
chart = "table"
sql = "SELECT source, count(*) AS mentions FROM mentions WHERE aid = '183772' GROUP BY source ORDER BY mentions DESC"
`);
  fs.writeFileSync(path.join(folder, "other.toml"), `title = "Other"
[[queries]]
title = "Sources"
chart = "bars"
sql = "SELECT source, count(*) AS mentions FROM mentions WHERE aid = '183772' AND title LIKE '%a%' GROUP BY source"
`);
  const records = [0, 1, 2].map((number) => JSON.stringify(hostileRecord(number)));
  fs.writeFileSync(path.join(folder, "data.ndjson"), records.join("\n"));
  fs.writeFileSync(path.join(folder, "saved_searches.json"), JSON.stringify([{ aid: "7", name: NAME, query: NAME }]));
  const hash = spawnSync(SAVEDSEARCH, ["serve", "--hash-password"], { input: "swordfish\n", encoding: "utf8" }).stdout.trim();
  fs.writeFileSync(path.join(folder, "users.txt"), `[users.ada]\n${hash}\n[users.bob]\n${hash}\n`);
  const slow = await start("simulate", "--listen", "127.0.0.1:0", "--mentions", "20000", "--delay-ms", "200", "--rate-limit", "500/60");
  const other = await start("simulate", "--listen", "127.0.0.1:0", "--data", path.join(folder, "data.ndjson"));
  const [demo, delayed, hostileOne, users, storing] = await Promise.all([
    start("ui", folder, "--listen", "127.0.0.1:0"),
    start("--base-url", `http://${slow["listening on"]}/v4`, "ui", folder, "--listen", "127.0.0.1:0"),
    start("--base-url", `http://${other["listening on"]}/v4`, "ui", "--listen", "127.0.0.1:0"),
    start("ui", "--listen", "127.0.0.1:0", "--auth", "users", "--users-file", path.join(folder, "users.txt")),
    start("--now", NOW, "--store", path.join(folder, "store"), "ui", "--listen", "127.0.0.1:0"),
  ]);
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"], timeout: LONGEST });
  const step = async (name, done) => {
    await done;
    console.log(`ok ${name}`);
  };
  try {
    const page = await firstQuery(browser, demo["page on"]);
    await step("the first query, its cost, chart and files", page);
    await step("errors, completion, parameters and history", editing(page));
    await step("a result that is not kept", unkept(page));
    await step("hostile texts", hostile(page));
    await step("without a mouse", keys(browser, demo["page on"]));
    await step("a hostile service", hostileService(browser, hostileOne["page on"]));
    await step("1,000,000 rows", many(page));
    assert.deepStrictEqual(page.problems, []);
    await step("cancel", cancelled(browser, delayed["page on"]));
    await step("seven tabs", tabs(browser, delayed["page on"]));
    await step("seven tabs without locks", tabs(browser, delayed["page on"], { init: withoutLocks }));
    await step("overview, service and dashboards", views(browser, demo["page on"]));
    await step("two dashboards", dashboards(browser, demo["page on"]));
    await step("a dashboard that runs again", refreshed(browser, demo["page on"]));
    await step("the cost of the statement at the cursor", repriced(browser, demo["page on"]));
    await step("a table with links", tabbed(browser, demo["page on"]));
    await step("a text that was replaced", undone(browser, demo["page on"]));
    await step("days without mentions", gaps(browser, demo["page on"]));
    await step("a first call that is refused", refusedAtFirst(browser, demo["page on"]));
    await step("another login", relogin(browser, demo["page on"]));
    await step("filters", filtered(browser, demo["page on"]));
    await step("the width of charts", widths(browser, demo["page on"]));
    await step("a mistake in a dashboard", misplaced(browser, demo["page on"]));
    await step("a high chart", high(browser, demo["page on"]));
    await step("small numbers", fractions(browser, demo["page on"]));
    await step("many rows of a dashboard", manyAtOnce(browser, demo["page on"]));
    await step("completions", completions(browser, demo["page on"]));
    await step("no saved search is known", unknownSearch(browser, demo["page on"]));
    await step("what a failed query has spent", spent(browser, demo["page on"]));
    await step("times", times(browser, demo["page on"]));
    await step("a large store", largeStore(browser, demo["page on"]));
    await step("a result that is no longer kept", dropped(browser, demo["page on"]));
    await step("the tab of a result, a title, an empty history and the link to the content", kept(browser, demo["page on"]));
    await step("numbers and ids in view", uncut(browser, demo["page on"]));
    await step("a dashboard of which a part failed", lost(browser, demo["page on"]));
    await step("an overview that was interrupted", interrupted(browser, demo["page on"]));
    await step("a query that is tried again", retried(browser, demo["page on"]));
    await step("estimates of a dashboard that is left", abandoned(browser, demo["page on"]));
    await step("a cost that is too high", warned(browser, demo["page on"]));
    await step("a dashboard beyond the limit, and one that has changed", beyondLeft(browser, demo["page on"]));
    await step("a dashboard within the budget", withinBudget(browser, demo["page on"]));
    await step("no dashboards", noDashboards(browser, demo["page on"]));
    await step("a link of an earlier start", stale(browser, demo["page on"]));
    await step("fields that keep their place", steady(browser, demo["page on"]));
    await step("an expired login", expired(browser, demo["page on"]));
    await step("the days of a store", stored(browser, storing["page on"]));
    await step("dark, small and large", looks(browser, demo["page on"]));
    await step("six languages", languages(browser, demo["page on"]));
    await step("a server that is gone", goneServer(browser));
    await step("login", login(browser, users["page on"]));
    await step("frames", framed(browser, demo["page on"]));
  } catch (error) {
    const open = browser.contexts().flatMap((context) => context.pages());
    for (const [number, page] of open.entries()) await picture(page, `failed-${number}`);
    throw error;
  } finally {
    await browser.close();
  }
}

main()
  .catch((error) => {
    console.error(error);
    process.exitCode = 1;
  })
  .finally(() => {
    for (const child of processes) {
      child.removeAllListeners("exit");
      child.kill("SIGTERM");
    }
    fs.rmSync(folder, { recursive: true });
  });
