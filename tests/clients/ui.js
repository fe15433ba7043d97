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
const NAME = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>";

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

async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/status of (401|422)/.test(message.text())) page.problems.push(message.text());
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
  if (UI_FILES) await page.reload();
  return page;
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

async function firstQuery(browser, url) {
  const page = await open(browser, url);
  await page.waitForFunction(() => document.querySelector("#cost").textContent.includes("request"));
  assert(!page.url().includes("token"), "the token disappears from the address");
  await type(page, DAYS);
  await page.waitForFunction(() => /^(at least )?\d+ request|^1 request/.test(document.querySelector("#cost").textContent));
  const cost = await page.textContent("#cost");
  assert.match(cost, /1 per 100 mentions/, "what the least number depends on");
  await page.waitForSelector("#tables summary");
  await accessible(page, "ask, before");
  await page.click("#run");
  await page.waitForFunction(() => document.querySelector("#summary").textContent.includes("complete"));
  const summary = await page.textContent("#summary");
  assert.match(summary, /rows · .* · \d+ requests? · .*complete/);
  const spent = Number(/(\d+) requests?/.exec(summary)[1]);
  assert(Number(/\d+/.exec(cost)[0]) <= spent, `${cost}: ${summary}`);
  assert((await page.locator("#rows .body .row").count()) > 5);
  await accessible(page, "ask, with rows");
  await picture(page, "rows");
  await page.click("#tab-chart");
  const chart = page.locator("#chart img");
  await chart.waitFor();
  await page.waitForFunction(() => document.querySelector("#chart img").naturalWidth > 100);
  await page.selectOption("#chart select", "stacked");
  await page.waitForFunction(() => document.querySelector("#chart img").src.includes("stacked") && document.querySelector("#chart img").naturalWidth > 100);
  await accessible(page, "chart");
  await picture(page, "ui-ask");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#downloads a:has-text('CSV')")]);
  const text = fs.readFileSync(await download.path(), "utf8");
  assert(text.startsWith("day,sentiment,mentions\n") && text.split("\n").length > 20, text.slice(0, 200));
  for (const format of ["XLSX", "PARQUET"]) {
    const [file] = await Promise.all([page.waitForEvent("download"), page.click(`#downloads a:has-text('${format}')`)]);
    assert(fs.statSync(await file.path()).size > 500, format);
  }
  const [png] = await Promise.all([page.waitForEvent("download"), page.click("#chart .downloads a:has-text('PNG')")]);
  assert(fs.readFileSync(await png.path()).subarray(1, 4).toString() === "PNG");
  await ask(page, "SELECT published_at FROM mentions WHERE aid = '183772'");
  await page.waitForFunction(() => document.querySelector("#summary").textContent.includes("complete"));
  await page.click("#tab-chart");
  await page.selectOption("#chart select", "heatmap");
  assert.strictEqual(await page.locator("#chart svg.heat rect").count(), 168);
  // The zone of its title is that of the run.
  await page.fill("#zone", "Asia/Tokyo");
  await page.fill("#limit", "77");
  await page.selectOption("#chart select", "chart");
  await page.selectOption("#chart select", "heatmap");
  assert.match(await page.textContent("#chart .heading"), /, UTC$/);
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
  await type(page, "");
  await page.focus("#sql");
  await page.keyboard.type("SELECT * FROM ment");
  await page.waitForSelector("#words:visible");
  await accessible(page, "completion");
  await page.keyboard.press("Enter");
  assert.strictEqual(await page.inputValue("#sql"), "SELECT * FROM mentions");
  // Parameters, and a query that is saved in the browser.
  await type(page, "SELECT :'word' AS word");
  await page.fill("#variables input", "héllo");
  await page.keyboard.press("Tab");
  await page.click("#keep");
  await page.fill("#saved form input", "A word");
  await page.click("#saved form button");
  await ask(page, "SELECT :'word' AS word");
  await page.waitForSelector(".body .row:has-text('héllo')");
  assert.strictEqual(await page.locator("#saved li:has-text('A word')").count(), 1);
  await page.click("#tab-history");
  assert((await page.locator("#history li").count()) > 2);
  await accessible(page, "history");
  // What other programs have written is left out.
  await page.evaluate(() => {
    const key = Object.keys(localStorage).find((name) => name.endsWith(".history"));
    localStorage.setItem(key, JSON.stringify([{ sql: 1 }, null, "x", ...JSON.parse(localStorage.getItem(key))]));
  });
  await page.reload();
  await page.waitForSelector("#history li", { state: "attached" });
  await page.waitForFunction(() => document.querySelector("#cost").textContent.includes("request"));
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
  await page.click("#tab-chart");
  await page.waitForSelector("#chart .picture p");
  await ask(page, "SELECT source, count(*) AS n FROM mentions WHERE aid = '7' AND duration = '2026-01-01T00:00:00Z..2026-02-01T00:00:00Z' GROUP BY source");
  await page.waitForFunction(() => document.querySelector("#summary").textContent.includes("complete"));
  await page.click("#tab-chart");
  await page.waitForFunction(() => document.querySelector("#chart img")?.naturalWidth > 100);
  await ask(page, "SELECT name FROM saved_searches");
  await type(page, "");
  await page.focus("#sql");
  await page.keyboard.type("SELECT * FROM mentions WHERE aid = '");
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

async function many(page) {
  await ask(page, "SELECT value AS n, 'text ' || value AS t, value % 7 AS m FROM generate_series(1, 200000)");
  await page.waitForFunction(() => document.querySelector("#rows .count").textContent === "200,000 rows");
  const elements = () => page.locator("#rows .body .row").count();
  assert((await elements()) < 100);
  await page.evaluate(() => {
    document.querySelector(".grid").scrollTop = 1e9;
  });
  await page.waitForSelector(".body .row:has-text('text 200000')");
  assert((await elements()) < 100);
  for (const order of ["ascending", "descending"]) {
    await page.click(".names button >> nth=0");
    await page.waitForSelector(`.names [aria-sort=${order}]`);
  }
  await page.evaluate(() => {
    document.querySelector(".grid").scrollTop = 0;
  });
  await page.waitForFunction(() => document.querySelector("#rows .body .row").textContent.startsWith("200000"));
  await page.fill(".filters input >> nth=2", "= 3");
  await page.waitForFunction(() => document.querySelector("#rows .count").textContent === "28,572 of 200,000 rows");
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
  await page.waitForSelector("#refresh");
  assert.match(await page.textContent("#refresh"), /^Refresh: \d+ requests$/, "known once the list was read");
  await accessible(page, "overview");
  await picture(page, "ui-overview");
  await page.click("nav a:has-text('Service')");
  await page.waitForSelector("#service table >> nth=1");
  await accessible(page, "service");
  await picture(page, "service");
  await page.click("nav a:has-text('Dashboards')");
  await page.click("#dashboards a:has-text('Brand')");
  await page.waitForSelector("#run-all");
  assert.match(await page.textContent("#run-all"), /^Run: (at least )?\d+ request/);
  await page.click("#run-all");
  await page.waitForFunction(() => document.querySelectorAll("#dashboards .panel-body img, #dashboards .panel-body .total, #dashboards .heat, #dashboards .grid").length === 4);
  await page.waitForFunction(() => document.querySelector("#run-all")?.textContent.startsWith("Refresh"));
  await page.waitForFunction(() => [...document.querySelectorAll("#dashboards img")].every((image) => image.naturalWidth > 100));
  await accessible(page, "dashboard");
  await picture(page, "ui-dashboard");
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
    if (name === "dark") {
      const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.strictEqual(dark, "rgb(20, 23, 28)");
      await page.click("#theme");
      assert.notStrictEqual(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), dark, "light on demand");
    }
    await page.context().close();
  }
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
  const records = [0, 1, 2].map((number) => JSON.stringify({
    aid: "7", id: `${number}${NAME}`, publishedAt: "2026-01-05T12:00:00Z", title: NAME, text: NAME, snippet: NAME, language: NAME,
    source: { name: NAME }, author: { name: NAME, handle: NAME }, url: "javascript:window.hacked=1", hashtags: [NAME], [NAME]: NAME,
  }));
  fs.writeFileSync(path.join(folder, "data.ndjson"), records.join("\n"));
  fs.writeFileSync(path.join(folder, "saved_searches.json"), JSON.stringify([{ aid: "7", name: NAME, query: NAME }]));
  const hash = spawnSync(SAVEDSEARCH, ["serve", "--hash-password"], { input: "swordfish\n", encoding: "utf8" }).stdout.trim();
  fs.writeFileSync(path.join(folder, "users.txt"), `[users.ada]\n${hash}\n[users.bob]\n${hash}\n`);
  const slow = await start("simulate", "--listen", "127.0.0.1:0", "--mentions", "20000", "--delay-ms", "200", "--rate-limit", "500/60");
  const other = await start("simulate", "--listen", "127.0.0.1:0", "--data", path.join(folder, "data.ndjson"));
  const [demo, delayed, hostileOne, users] = await Promise.all([
    start("ui", folder, "--listen", "127.0.0.1:0"),
    start("--base-url", `http://${slow["listening on"]}/v4`, "ui", "--listen", "127.0.0.1:0"),
    start("--base-url", `http://${other["listening on"]}/v4`, "ui", "--listen", "127.0.0.1:0"),
    start("ui", "--listen", "127.0.0.1:0", "--auth", "users", "--users-file", path.join(folder, "users.txt")),
  ]);
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const step = async (name, done) => {
    await done;
    console.log(`ok ${name}`);
  };
  try {
    const page = await firstQuery(browser, demo["page on"]);
    await step("the first query, its cost, chart and files", page);
    await step("errors, completion, parameters and history", editing(page));
    await step("hostile texts", hostile(page));
    await step("a hostile service", hostileService(browser, hostileOne["page on"]));
    await step("200,000 rows", many(page));
    assert.deepStrictEqual(page.problems, []);
    await step("cancel", cancelled(browser, delayed["page on"]));
    await step("overview, service and dashboards", views(browser, demo["page on"]));
    await step("dark, small and large", looks(browser, demo["page on"]));
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
