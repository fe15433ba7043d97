// The view to ask: editor, cost, rows and charts.

import { call, estimate, inWords, leftInWords, Refusal, run } from "./calls.js";
import { el, find, heatmap, number, tabs } from "./draw.js";
import { Editor, variables } from "./editor.js";
import { Table } from "./table.js";

const EXAMPLES = [
  ["Mentions a day by sentiment", "SELECT date_trunc('day', published_at) AS day, sentiment, count(*) AS mentions\nFROM mentions\nWHERE aid = '183772' AND duration = '30d'\nGROUP BY 1, 2\nORDER BY 1"],
  ["Latest mentions", "SELECT published_at, source, sentiment, title, url\nFROM mentions\nORDER BY published_at DESC\nLIMIT 100"],
  ["Saved searches", "SELECT aid, kind, name, query\nFROM saved_searches"],
  ["Sources", "SELECT source, count(*) AS mentions\nFROM mentions\nGROUP BY source\nORDER BY mentions DESC"],
];
const HISTORY = 60;
const FORMATS = ["csv", "xlsx", "parquet"];

let user = "";

/** Something that this browser remembers for a user: a text, or a list of queries. */
const stored = (name, value) => {
  const key = `savedsearch.${user}.${name}`;
  try {
    if (value === undefined) {
      const known = JSON.parse(localStorage.getItem(key));
      // Other programs may have written it.
      if (Array.isArray(known)) return known.filter((query) => typeof query?.sql === "string");
      return typeof known === "string" ? known : [];
    }
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // A browser that keeps nothing has no history.
  }
  return value ?? [];
};

export class Ask {
  constructor(told) {
    this.told = told;
    this.editor = new Editor(find("editor"), { changed: () => this.changed(), run: () => this.run() });
    this.table = new Table(find("rows"));
    this.values = {};
    this.chart = { kind: "chart", result: null };
    this.side = tabs(document.querySelector("#ask .side [role=tablist]"));
    this.show = tabs(document.querySelector("#result [role=tablist]"), (id) => {
      if (id === "tab-chart") this.draw();
      else this.table.later();
    });
    find("run").addEventListener("click", () => this.run());
    find("cancel").addEventListener("click", () => this.running?.abort());
    find("keep").addEventListener("click", () => this.keep());
    find("link").addEventListener("click", () => this.copyLink());
    for (const id of ["zone", "limit"]) find(id).addEventListener("input", () => this.changed());
    const zones = Intl.supportedValuesOf?.("timeZone") ?? [];
    find("zones").append(...zones.map((name) => el("option", { value: name })));
  }

  /** Begins once somebody is logged in. */
  start(state) {
    this.editor.keywords = new Set(state.keywords);
    this.editor.functions = new Set(state.functions);
    find("limit").placeholder = state.max_requests;
    find("zone").placeholder = state.timezone;
    user = state.user;
    find("zone").value ||= stored("zone").toString();
    this.lists();
    if (!this.editor.text) this.editor.text = stored("draft").toString() || EXAMPLES[0][1];
    else this.editor.show();
    call("tables").then((tables) => this.tables(tables), () => {});
  }

  /** Shows a query, of a link with its zone, limit and values. It is not run: its cost is seen first. */
  open(sql, given = new URLSearchParams()) {
    for (const id of ["zone", "limit"]) if (given.has(id)) find(id).value = given.get(id);
    for (const [name, value] of given) if (name.startsWith(":")) this.values[name.slice(1)] = value;
    this.named = undefined;
    this.editor.text = sql;
    find("sql").focus();
  }

  question(sql) {
    const settings = {};
    const [zone, limit] = [find("zone").value.trim(), find("limit").value.trim()];
    if (zone) settings.timezone = zone;
    if (limit) settings.max_requests = limit;
    // Without a value it may be no variable: [from:to] is a slice.
    const given = variables(sql).filter((name) => this.values[name]);
    return { sql, settings, variables: Object.fromEntries(given.map((name) => [name, this.values[name]])) };
  }

  /** Asks for the cost of the statement at the cursor, once nobody types. */
  changed() {
    stored("draft", this.editor.text);
    stored("zone", find("zone").value);
    this.inputs();
    clearTimeout(this.soon);
    this.estimating?.abort();
    this.soon = setTimeout(() => this.price(), 200);
  }

  /** Shows the cost. After a run its error stays, until the text changes. */
  async price(ran = false) {
    const { text, from } = this.editor.statement;
    const cost = find("cost");
    if (!ran) this.problem(null);
    if (!text.trim()) {
      cost.textContent = "";
      return;
    }
    this.estimating = new AbortController();
    const { signal } = this.estimating;
    try {
      const costs = await estimate(this.question(text), signal);
      const left = leftInWords(costs.left);
      const most = Number(find("limit").value || find("limit").placeholder);
      const refused = costs.at_least > most;
      cost.className = refused || (costs.left && costs.at_least > costs.left.remaining) ? "cost over" : "cost";
      // What a number that is only the least depends on.
      const open = costs.exact || costs.likely ? [] : costs.scans.filter((scan) => /[a-z]/.test(scan.requests));
      cost.replaceChildren(el("strong", {}, inWords(costs)), ...open.map((scan) => ` · ${scan.table}: ${scan.requests}`),
        refused ? ` · more than “At most” allows` : "", left ? ` · ${left}` : "");
      cost.title = costs.scans.map((scan) => `${scan.table}: ${scan.requests}${scan.sent ? ` (${scan.sent})` : ""}`).join("\n");
      this.told({ left: costs.left });
    } catch (error) {
      if (error.name === "AbortError") return;
      cost.className = "cost";
      cost.textContent = "";
      if (!ran) this.problem(error, text, from, false);
    }
  }

  /** Shows an error, and its place in the statement that begins at `from`. */
  problem(error, text = "", from = 0, move = true) {
    const shown = find("problem");
    shown.hidden = !error;
    shown.textContent = error ? error.message : "";
    if (!error?.place) return;
    const offset = from + [...text].slice(0, error.place.before).join("").length;
    shown.textContent = `Line ${error.place.line}, column ${error.place.column}: ${error.message}`;
    if (move) {
      this.editor.point(offset);
    } else {
      this.editor.mark = offset;
      this.editor.show();
    }
  }

  /** Inputs for the variables of the text. */
  inputs() {
    const names = variables(this.editor.text);
    const root = find("variables");
    root.hidden = !names.length;
    if (names.join() === this.named) return;
    this.named = names.join();
    root.replaceChildren(...names.map((name) => el("label", { class: "field" }, `${name} `, el("input", {
      value: this.values[name] ?? "",
      oninput: (event) => {
        this.values[name] = event.target.value;
        this.changed();
      },
    }))));
  }

  async run() {
    const { text, from } = this.editor.statement;
    if (!text.trim() || this.running) return;
    clearTimeout(this.soon);
    this.estimating?.abort();
    this.problem(null);
    this.remember(text.trim());
    this.running = new AbortController();
    this.zone = find("zone").value.trim() || find("zone").placeholder;
    const progress = find("progress");
    this.busy(true);
    progress.textContent = "Running…";
    this.chart.result = null;
    this.shape = null;
    find("downloads").replaceChildren();
    find("notes").hidden = true;
    find("summary").textContent = "";
    let rows = 0;
    let requests = 0;
    try {
      for await (const part of run(this.question(text), this.running.signal)) {
        if (part.columns) {
          this.shape = part.columns;
          this.table.reset(part.columns);
          find("result").hidden = false;
          this.show("tab-rows");
        }
        if (part.rows) {
          rows += part.rows.length;
          this.table.add(part.rows);
        }
        if (part.progress) requests = part.progress.requests;
        if (part.end) this.ended(part.end);
        const waits = part.progress?.waits_ms >= 500 ? ` · waiting ${Math.ceil(part.progress.waits_ms / 1000)} s for the rate limit`
          : part.progress?.wait_ms >= 500 ? ` · waited ${(part.progress.wait_ms / 1000).toFixed(1)} s for the rate limit` : "";
        progress.textContent = part.end ? "" : `Running… ${number(requests)} request${requests === 1 ? "" : "s"} · ${number(rows)} rows${waits}`;
      }
    } catch (error) {
      progress.textContent = "";
      // Rows of an earlier query do not stay below the error of this one.
      if (!this.shape) find("result").hidden = true;
      if (error.name === "AbortError") {
        progress.textContent = `Cancelled after ${number(rows)} rows.`;
        find("summary").textContent = rows ? "incomplete: cancelled" : "";
      } else {
        find("summary").textContent = rows ? "incomplete: the query failed" : "";
        this.problem(error instanceof Refusal ? error : new Error(`The page failed: ${error.message}`), text, from);
      }
    } finally {
      this.running = null;
      this.busy(false);
      this.price(true).catch(() => {});
    }
  }

  busy(running) {
    find("run").disabled = running;
    find("cancel").hidden = !running;
    find("progress").classList.toggle("running", running);
  }

  ended(end) {
    find("summary").textContent = end.summary;
    find("summary").className = end.incomplete ? "summary incomplete" : "summary";
    const notes = [...end.notes];
    if (end.default_window) notes.push(`No time filter: reading ${end.default_window}. Add published_at >= … or duration = '…' to change this.`);
    find("notes").hidden = !notes.length;
    find("notes").replaceChildren(...notes.map((note) => el("li", {}, note)));
    this.chart.result = end.result;
    if (end.result) {
      const save = (format) => el("a", { href: `api/results/${end.result}/rows.${format}?save=true`, download: `savedsearch.${format}` }, format.toUpperCase());
      find("downloads").replaceChildren(...FORMATS.map(save));
    }
  }

  /** Draws the rows. The server has kept them, so that this needs no request. */
  draw() {
    const root = find("chart");
    if (!this.chart.result) {
      root.replaceChildren(el("p", { class: "quiet" }, "A chart is drawn once the query has ended."));
      return;
    }
    const kinds = [["chart", "Lines or bars"], ["stacked", "Stacked"], ["heatmap", "Weekday and hour"]];
    const choose = el("select", { "aria-label": "Kind of chart", onchange: (event) => {
      this.chart.kind = event.target.value;
      this.draw();
    } }, kinds.map(([kind, name]) => el("option", { value: kind, selected: kind === this.chart.kind }, name)));
    const title = el("input", { "aria-label": "Title of the chart", placeholder: "Title", value: this.chart.title ?? "", onchange: (event) => {
      this.chart.title = event.target.value || undefined;
      this.draw();
    } });
    const files = this.chart.kind === "heatmap" ? [] : ["svg", "png"].map((format) =>
      el("a", { href: pictureOf(this.chart.result, format, this.chart, { save: true }), download: `chart.${format}` }, format.toUpperCase()));
    root.replaceChildren(el("div", { class: "bar" }, choose, title, el("div", { class: "downloads" }, files)),
      picture(this.chart, this.shape, this.table.rows, this.zone));
  }

  async copyLink() {
    const { sql, settings, variables: values } = this.question(this.editor.text);
    const named = Object.entries(values).map(([name, value]) => [`:${name}`, value]);
    const parts = Object.entries({ sql, zone: settings.timezone, limit: settings.max_requests, ...Object.fromEntries(named) });
    const query = parts.filter(([, value]) => value !== undefined).map((part) => part.map(encodeURIComponent).join("="));
    const url = `${location.origin}${location.pathname}#/ask?${query.join("&")}`;
    history.replaceState(null, "", url);
    let done = "The address of this page now has the query.";
    try {
      await navigator.clipboard.writeText(url);
      done = "Link copied.";
    } catch {
      // The clipboard is not available on every address.
    }
    find("progress").textContent = done;
  }

  keep() {
    const first = this.editor.text.trim().split("\n")[0].slice(0, 60);
    const form = el("form", { class: "naming", onsubmit: (event) => {
      event.preventDefault();
      const name = form.querySelector("input").value.trim();
      if (name) stored("queries", [{ name, sql: this.editor.text }, ...stored("queries").filter((known) => known.name !== name)]);
      this.lists();
    } }, el("label", {}, "Name ", el("input", { value: first, required: true })), el("button", { class: "main" }, "Save"));
    find("saved").prepend(form);
    this.side("tab-saved");
    form.querySelector("input").select();
  }

  remember(sql) {
    stored("history", [{ sql, at: Date.now() }, ...stored("history").filter((known) => known.sql !== sql)].slice(0, HISTORY));
    this.lists();
  }

  lists() {
    const item = (name, sql, drop) => el("li", {}, el("button", { type: "button", title: sql, onclick: () => this.open(sql) }, name),
      drop && el("button", { type: "button", class: "drop", "aria-label": `Delete ${name}`, onclick: drop }, "✕"));
    const saved = stored("queries").map(({ name, sql }) => item(name, sql, () => {
      stored("queries", stored("queries").filter((known) => known.name !== name));
      this.lists();
    }));
    find("saved").replaceChildren(
      saved.length ? el("ul", { class: "list" }, saved) : el("p", { class: "quiet" }, "Saved queries stay in this browser. :name and :'name' are parameters."),
      el("h2", {}, "Examples"), el("ul", { class: "list" }, EXAMPLES.map(([name, sql]) => item(name, sql))));
    const past = stored("history").map(({ sql, at }) => el("li", {}, el("button", { type: "button", title: sql, onclick: () => this.open(sql) },
      el("span", { class: "code" }, sql.replace(/\s+/g, " ").slice(0, 120)), el("time", {}, new Date(at).toLocaleString("en")))));
    find("history").replaceChildren(past.length ? el("ul", { class: "list" }, past) : el("p", { class: "quiet" }, "Queries that you run are listed here."),
      past.length ? el("button", { type: "button", onclick: () => {
        stored("history", []);
        this.lists();
      } }, "Clear the history") : null);
  }

  tables(tables) {
    find("tables").replaceChildren(...tables.map(({ name, about, columns }) => el("details", {},
      el("summary", {}, name, el("span", { class: "quiet" }, about["a row is"] ?? "")),
      el("ul", { class: "list columns" }, columns.map((column) => el("li", {}, el("button", {
        type: "button", title: column["pushed down"] || "evaluated here", onclick: () => this.editor.insert(column.column),
      }, column.column, el("span", { class: "quiet" }, column.type))))))));
  }
}

/** Address of a chart of a result. */
function pictureOf(result, format, { kind, title }, more = {}) {
  const options = new URLSearchParams({ ...(kind === "stacked" && { stacked: "true" }), ...(title !== undefined && { title }), ...more });
  return `api/results/${result}/chart.${format}?${options}`;
}

/** A chart of a result as an element: drawn by the server, or here for weekdays and hours. */
export function picture(chart, columns, rows, zone) {
  const frame = el("div", { class: "picture" });
  if (chart.kind === "heatmap") {
    const heat = heatmap(columns, rows, `By weekday and hour (${zone})`);
    frame.append(heat ?? el("p", { class: "quiet" }, "Expected an instant, or weekday, hour and a number: SELECT date_part('dow', published_at), date_part('hour', published_at), count(*)."));
    if (heat && chart.title !== "") frame.prepend(el("p", { class: "heading" }, chart.title ?? `By weekday and hour, ${zone}`));
    return frame;
  }
  const image = el("img", { alt: chart.title || `Chart of ${columns.map((column) => column.name).join(", ")}`, src: pictureOf(chart.result, "svg", chart) });
  image.addEventListener("error", async () => {
    const problem = await call(pictureOf(chart.result, "svg", chart).slice(4)).then(() => "The chart cannot be shown.", (error) => error.message);
    frame.replaceChildren(el("p", { class: "quiet" }, problem));
  });
  frame.append(image);
  return frame;
}
