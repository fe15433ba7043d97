// The view to ask: editor, cost, rows and charts.

import { answer, call, excess, inWords, leftInWords, Refusal, run, WAITING, waitInWords } from "./calls.js";
import { counted, described, el, failed, find, number, remembered, tabs, tell, time } from "./draw.js";
import { bySentiment, Editor, quoted, variables } from "./editor.js";
import { Table } from "./table.js";

/** Queries to begin with. A saved search that is known takes the place of `:'aid'`, which is a parameter otherwise. */
const EXAMPLES = [
  ["Mentions a day by sentiment", bySentiment(":'aid'")],
  ["Latest mentions", "SELECT published_at, source, sentiment, title, url\nFROM mentions\nWHERE aid = :'aid'\n"
    + "ORDER BY published_at DESC\nLIMIT 100"],
  ["Saved searches", "SELECT aid, name\nFROM saved_searches"],
  ["Sources", "SELECT source, count(*) AS mentions\nFROM mentions\nWHERE aid = :'aid'\nGROUP BY source\nORDER BY mentions DESC"],
];
const HISTORY = 60;
/** Files of a result: name of the link, extension, and options. With decimal commas, spreadsheets expect semicolons. */
const FORMATS = [["CSV", "csv", {}],
  ["CSV (Excel)", "csv", { dialect: "excel", ...((1.5).toLocaleString().includes(",") && { separator: ";" }) }],
  ["XLSX", "xlsx", {}], ["PARQUET", "parquet", {}]];
/** Forms of charts, by their names in dashboards. */
const KINDS = [["chart", "Automatic"], ["lines", "Lines"], ["bars", "Bars"], ["stacked", "Stacked"], ["points", "Points"],
  ["heatmap", "Weekday and hour"]];
/** Pixels beside a picture in its frame, and most pixels across that it has. */
const [FRAME, WIDEST] = [26, 868];

let user = "";

/** Something that this browser remembers for a user: a text, or a list of queries. */
const stored = (name, value) => {
  const text = remembered(`savedsearch.${user}.${name}`, JSON.stringify(value));
  try {
    const known = value ?? JSON.parse(text);
    // Other programs may have written it.
    if (Array.isArray(known)) return known.filter((query) => typeof query?.sql === "string");
    return typeof known === "string" ? known : [];
  } catch {
    return [];
  }
};

/** Zone, limit and values of a saved query, as a link has them. */
function asInLink({ zone, limit, values }) {
  const named = Object.entries(values ?? {}).map(([name, value]) => [`:${name}`, value]);
  const parts = [["zone", zone], ["limit", limit], ...named];
  return new URLSearchParams(parts.filter(([, value]) => typeof value === "string"));
}

export class Ask {
  constructor(told) {
    this.told = told;
    this.editor = new Editor(find("editor"), { changed: () => this.changed(), run: () => this.run() });
    this.table = new Table(find("rows"));
    this.values = Object.create(null);
    this.chart = { kind: "chart", result: null };
    this.side = tabs(document.querySelector("#ask .side [role=tablist]"));
    this.show = tabs(document.querySelector("#result [role=tablist]"), (id) => {
      if (id === "tab-chart") this.draw();
      else this.table.later();
    });
    document.addEventListener("selectionchange", () => {
      const { area, statement } = this.editor;
      // The cursor may be in another statement.
      if (document.activeElement === area && statement.text !== this.priced) this.later();
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
    Object.assign(this.editor, { keywords: new Set(state.keywords), functions: new Set(state.functions) });
    find("limit").placeholder = state.max_requests;
    find("zone").placeholder = state.timezone;
    user = state.user;
    this.state = state;
    find("zone").value ||= stored("zone").toString();
    this.lists();
    const first = state.search ? this.example(EXAMPLES[0][1]) : EXAMPLES[2][1];
    if (!this.editor.text) this.editor.text = stored("draft").toString() || first;
    else this.editor.show();
    this.tables();
  }

  /** An example for the saved search that is known. */
  example(sql) { return this.state.search ? sql.replaceAll(":'aid'", () => quoted(this.state.search)) : sql; }

  /** Shows a query, of a link with its zone, limit and values. It is not run: its cost is seen first. */
  open(sql, given = new URLSearchParams()) {
    for (const id of ["zone", "limit"]) if (given.has(id)) find(id).value = given.get(id);
    for (const [name, value] of given) if (name.startsWith(":")) this.values[name.slice(1)] = value;
    this.named = undefined;
    this.editor.replace(0, this.editor.text.length, sql);
    history.replaceState(null, "", "#/ask");
  }

  question(sql) {
    const settings = {};
    const [zone, limit] = [find("zone").value.trim(), find("limit").value.trim().replace(/(?<=\d),(?=\d{3}(?!\d))/g, "")];
    if (zone) settings.timezone = zone;
    if (limit) settings.max_requests = limit;
    // Without a value it may be no variable: [from:to] is a slice. An empty text is one.
    const given = variables(sql).filter((name) => this.values[name] || (this.values[name] === "" && sql.includes(`:'${name}'`)));
    return { sql, settings, variables: Object.fromEntries(given.map((name) => [name, this.values[name]])) };
  }

  /** Asks for the cost of the statement at the cursor, once nobody types. */
  changed() {
    // An address with a query would bring that query back.
    if (this.copied) history.replaceState(null, "", "#/ask");
    this.copied = false;
    stored("draft", this.editor.text);
    stored("zone", find("zone").value);
    this.inputs();
    this.later();
  }

  /** Until the cost is known, the one that is shown is that of something else. `size` also requests the numbers of mentions. */
  later(path = "estimate") {
    this.priced = this.editor.statement.text;
    find("cost").setAttribute("aria-busy", "true");
    clearTimeout(this.soon);
    this.estimating?.abort();
    this.soon = setTimeout(() => this.price(false, path), 200);
  }

  /** Shows the cost. After a run its error stays, until the text changes. */
  async price(ran = false, path = "estimate") {
    const { text, from } = this.editor.statement;
    const cost = find("cost");
    this.priced = text;
    if (!ran) this.problem(null);
    const show = (name, ...parts) => {
      cost.className = name;
      cost.replaceChildren(...parts);
      cost.removeAttribute("aria-busy");
    };
    if (!text.trim()) return show("cost");
    this.estimating = new AbortController();
    const { signal } = this.estimating;
    try {
      const costs = await call(path, this.question(text), signal);
      const left = leftInWords(costs.left);
      const limits = [[Number(this.question(text).settings.max_requests ?? find("limit").placeholder), "“At most” allows"],
        [costs.left?.remaining ?? Infinity, "is left"]];
      const over = excess(costs, limits);
      // Without a probable number, the limits are the only upper bound.
      const most = Math.min(...limits.map(([number]) => number));
      const bounded = !costs.exact && !costs.likely && !over && most > 0;
      // What a number that is only the least depends on.
      const open = costs.exact || costs.likely ? [] : costs.scans.filter((scan) => /[a-z]/.test(scan.requests));
      const allowed = limits.every(([most]) => costs.unknown <= most);
      const unknown = costs.unknown && allowed && el("button", { type: "button", id: "size", onclick: (event) => {
        event.target.disabled = true;
        find("run").focus();
        this.later("size");
      } }, `Find out: ${counted(costs.unknown, "request")}`);
      show(over ? "cost problem" : "cost", el("strong", {}, inWords(costs)), bounded ? ` · at most ${number(most)} allowed` : "",
        ...open.map((scan) => ` · ${scan.table}: ${scan.requests}`),
        over && ` · ${over}`, left ? ` · ${left}` : "", ...(unknown ? [" ", unknown] : []));
      cost.title = costs.scans.map((scan) => `${scan.table}: ${scan.requests}${scan.sent ? ` (${scan.sent})` : ""}`).join("\n");
      this.told({ left: costs.left });
    } catch (error) {
      if (error.name === "AbortError") return undefined;
      show("cost");
      if (!ran) this.problem(error, () => this.later(path), text, from, false);
    }
    return undefined;
  }

  /** Shows an error, with a button that tries `again`, and its place in the statement that begins at `from`. */
  problem(error, again, text = "", from = 0, move = true) {
    find("problem").hidden = !error;
    if (error) tell(find("problem"), error, again);
    if (error?.place) this.editor.point(from + [...text].slice(0, error.place.before).join("").length, move);
  }

  /** Inputs for the variables of the text. */
  inputs() {
    const names = variables(this.editor.text);
    const root = find("variables");
    root.hidden = !names.length;
    if (names.join() === this.named) return;
    this.named = names.join();
    root.replaceChildren(...names.map((name) => el("label", { class: "field" }, `${name} `, el("input", {
      value: this.values[name] ?? "", dir: "auto",
      oninput: (event) => {
        this.values[name] = event.target.value;
        this.changed();
      },
    }))));
  }

  async run() {
    const { text, from } = this.editor.statement;
    if (this.running) return;
    if (!text.trim()) return this.problem(new Error("There is nothing to run: the editor has no statement."));
    clearTimeout(this.soon);
    this.estimating?.abort();
    this.problem(null);
    this.remember(text.trim());
    this.running = new AbortController();
    const progress = find("progress");
    this.busy(true);
    progress.textContent = "Running…";
    this.chart.result = null;
    Object.assign(this, { complete: false, shape: null });
    find("downloads").replaceChildren();
    find("notes").hidden = true;
    find("summary").textContent = "";
    let [rows, requests] = [0, 0];
    try {
      for await (const part of run(this.question(text), this.running.signal)) {
        if (part.columns) {
          this.shape = part.columns;
          this.table.reset(part.columns);
          find("result").hidden = false;
          // A chart needs a number or a time.
          const drawn = !find("chart").hidden && part.columns.some((column) => /^(number|time)$/.test(column.class));
          this.show(drawn ? "tab-chart" : "tab-rows");
        }
        if (part.rows) this.table.add(part.rows);
        rows += part.rows?.length ?? 0;
        if (part.progress) requests = part.progress.requests;
        if (part.end) this.ended(part.end);
        const spent = `${counted(requests, "request")} · ${counted(rows, "row")}${waitInWords(part.progress)}`;
        if (part.queued !== undefined) progress.textContent = part.queued ? WAITING : "Running…";
        else progress.textContent = part.end ? "" : `Running… ${spent}`;
      }
    } catch (error) {
      // The last part may be older than the error, which has the number at its end.
      const spent = counted(Math.max(requests, error.requests ?? 0), "request");
      // Rows of an earlier query do not stay below the error of this one.
      if (!this.shape) find("result").hidden = true;
      if (error.name === "AbortError") {
        progress.textContent = `Cancelled after ${counted(rows, "row")} and ${spent}.`;
        find("summary").textContent = rows ? "incomplete: cancelled" : "";
      } else {
        progress.textContent = error.requests === undefined ? "" : `Failed after ${counted(rows, "row")} and ${spent}.`;
        find("summary").textContent = rows ? "incomplete: the query failed" : "";
        const told = error instanceof Refusal ? error : new Error(`The page failed: ${error.message}`);
        this.problem(told, () => this.run(), text, from);
      }
    } finally {
      this.running = null;
      this.busy(false);
      if (!find("chart").hidden) this.draw();
      this.price(true).catch(() => {});
      // A first query may have read the list, which the examples need.
      if (!this.state.search) {
        call("state").then(({ search }) => {
          this.state.search = search;
          this.lists();
        }, () => {});
      }
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
    const { default_window: read } = end;
    if (read) notes.push(`No time filter: reading ${read}. Add published_at >= … or duration = '…' to change this.`);
    find("notes").hidden = !notes.length;
    find("notes").replaceChildren(...notes.map((note) => el("li", {}, note)));
    this.complete = true;
    this.chart.result = end.result;
    if (end.result) {
      const save = ([name, format, options]) => {
        const given = new URLSearchParams({ save: true, ...options });
        return this.link(name, `api/results/${end.result}/rows.${format}?${given}`, `savedsearch.${format}`);
      };
      find("downloads").replaceChildren(...FORMATS.map(save));
    }
  }

  /** A link that saves a file. */
  link(name, href, download) {
    const link = el("a", { href, download, onclick: (event) => {
      event.preventDefault();
      this.save(link.getAttribute("href"), download).catch((error) => this.problem(error, () => [this.problem(null), link.click()]));
    } }, name);
    return link;
  }

  /** Saves a file if its result is still kept. The server tells in a header what a file that shows less than everything lacks. */
  async save(href, download) {
    const whole = /\.(xlsx|png)\?/.test(href);
    const response = await answer((whole ? href : href.replace(/[^/]*$/, "kept")).slice(4));
    if (!whole) {
      el("a", { href, download }).click();
      return;
    }
    const file = URL.createObjectURL(await response.blob());
    el("a", { href: file, download }).click();
    setTimeout(() => URL.revokeObjectURL(file), 60_000);
    const note = decodeURIComponent(response.headers.get("savedsearch-note") ?? "").replace(/^(note|warning): /, "");
    const notes = find("notes");
    if (note && ![...notes.children].some((known) => known.textContent === note)) notes.append(el("li", {}, note));
    notes.hidden = !notes.children.length;
  }

  /** Draws the rows. The server has kept them, so that this needs no request. */
  draw() {
    const root = find("chart");
    if (!this.chart.result) {
      const why = this.running ? "A chart is drawn once the query has ended."
        : this.complete ? "There is no chart, because the server did not keep the result. The notes say why."
          : "There is no chart, because the result is incomplete.";
      root.replaceChildren(el("p", { class: "quiet" }, why));
      return;
    }
    const choose = el("select", { "aria-label": "Form of the chart", onchange: (event) => {
      this.chart.kind = event.target.value;
      this.draw();
    } }, KINDS.map(([kind, name]) => el("option", { value: kind, selected: kind === this.chart.kind }, name)));
    const value = this.chart.title ?? "";
    const drawn = () => picture(this.chart, this.shape, this.table.rows, root.clientWidth);
    const file = (format) => pictureOf(this.chart.result, format, this.chart, { save: true });
    const files = ["svg", "png"].map((format) => this.link(format.toUpperCase(), file(format), `chart.${format}`));
    const title = el("input", { "aria-label": "Title of the chart", placeholder: "Title", dir: "auto", value, onchange: (event) => {
      this.chart.title = event.target.value || undefined;
      // The links stay: the click that ends the typing may be one on them.
      for (const link of files) link.setAttribute("href", file(link.textContent.toLowerCase()));
      root.lastChild.replaceWith(drawn());
    } });
    root.replaceChildren(el("div", { class: "bar" }, choose, title, el("div", { class: "downloads" }, files)), drawn());
  }

  async copyLink() {
    const { sql, settings, variables: values } = this.question(this.editor.text);
    const given = asInLink({ zone: settings.timezone, limit: settings.max_requests, values });
    const url = `${location.origin}${location.pathname}#/ask?${new URLSearchParams([["sql", sql], ...given])}`;
    history.replaceState(null, "", url);
    this.copied = true;
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
      const { sql, variables: values } = this.question(this.editor.text);
      const query = { name, sql, zone: find("zone").value.trim(), limit: find("limit").value.trim(), values };
      if (name) stored("queries", [query, ...stored("queries").filter((known) => known.name !== name)]);
      this.lists();
    } }, el("label", {}, "Name ", el("input", { value: first, required: true, dir: "auto" })), el("button", { class: "main" }, "Save"));
    find("saved").querySelector("form")?.remove();
    find("saved").prepend(form);
    this.side("tab-saved");
    form.querySelector("input").select();
  }

  remember(sql) {
    stored("history", [{ sql, at: Date.now() }, ...stored("history").filter((known) => known.sql !== sql)].slice(0, HISTORY));
    this.lists();
  }

  lists() {
    const item = (name, sql, drop, given) => el("li", {},
      el("button", { type: "button", title: sql, dir: "auto", onclick: () => this.open(sql, given) }, name),
      drop && el("button", { type: "button", class: "drop", "aria-label": `Delete ${name}`, onclick: drop }, "✕"));
    const saved = stored("queries").map((query) => item(query.name, query.sql, () => {
      stored("queries", stored("queries").filter((known) => known.name !== query.name));
      this.lists();
    }, asInLink(query)));
    const listed = (items, none) => (items.length ? el("ul", { class: "list" }, items) : el("p", { class: "quiet" }, none));
    find("saved").replaceChildren(listed(saved, "Saved queries stay in this browser. :name and :'name' are parameters."),
      el("h2", {}, "Examples"), listed(EXAMPLES.map(([name, sql]) => item(name, this.example(sql)))));
    const past = stored("history").map(({ sql, at }) => el("li", {}, el("button", {
      type: "button", title: sql, onclick: () => this.open(sql),
    }, el("span", { class: "code" }, sql.replace(/\s+/g, " ").slice(0, 120)), el("time", {}, time(at)))));
    find("history").replaceChildren(listed(past, "Queries that you run are listed here."),
      ...(past.length ? [el("button", { type: "button", onclick: () => {
        stored("history", []);
        this.lists();
      } }, "Clear the history")] : []));
  }

  async tables() {
    const tables = await call("tables").catch((error) => find("tables").replaceChildren(failed(error, () => this.tables())));
    if (tables) find("tables").replaceChildren(...tables.map(({ name, about, columns }) => el("details", {},
      el("summary", {}, name, el("span", { class: "quiet" }, about["a row is"] ?? "")),
      el("ul", { class: "list columns" }, columns.map((column) => el("li", {}, el("button", {
        type: "button", title: column["pushed down"] || "evaluated here", onclick: () => this.editor.insert(column.column),
      }, column.column, el("span", { class: "quiet" }, column.type))))))));
  }
}

/** Address of a chart of a result. */
function pictureOf(result, format, { kind, title }, more = {}) {
  const form = kind === "chart" ? "auto" : kind;
  const options = new URLSearchParams({ form, ...(title !== undefined && { title }), ...more });
  return `api/results/${result}/chart.${format}?${options}`;
}

/** A chart of a result as an element, drawn by the server for a width, so that its letters have the size of others. */
export function picture(chart, columns, rows, room) {
  const frame = el("div", { class: "picture" });
  const words = described(chart.kind, columns, rows);
  const src = pictureOf(chart.result, "svg", chart, { width: Math.round(Math.min(Math.max(room - FRAME, 200), WIDEST)) });
  const image = el("img", { alt: chart.title ? `${chart.title}. ${words}` : words, src });
  image.addEventListener("error", async () => {
    const problem = await answer(src.slice(4)).then(() => "The chart cannot be shown.", (error) => error.message);
    frame.replaceChildren(el("p", { class: "quiet" }, problem));
  });
  frame.append(image);
  return frame;
}
