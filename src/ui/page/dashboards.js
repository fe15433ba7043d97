// Dashboards: queries of a file with their charts. Opening one shows its cost; running it is a click, or its own refresh.

import { all, beside, call, inWords } from "./calls.js";
import { picture } from "./ask.js";
import { counted, el, failed, number, running, tell } from "./draw.js";
import { bySentiment, quoted } from "./editor.js";
import { AGAIN } from "./overview.js";
import { Table } from "./table.js";

/** Codes of errors of a query, which costs nothing then. */
const WRONG = /^(invalid_argument|unimplemented|failed_precondition)$/;
/** A dashboard to begin with. */
const sample = (aid) => `title = "Brand"
refresh = "1h"

[[queries]]
title = "Mentions a day by sentiment"
chart = "stacked"
sql = """
${bySentiment(quoted(aid))}"""
`;

export class Dashboards {
  constructor(root, told) {
    // What an earlier visit awaits is aborted, and must not write into what is shown now.
    Object.assign(this, { root, told, visit: new AbortController() });
  }

  /** Ends what is requested for the dashboard. */
  leave() {
    this.visit.abort();
    clearTimeout(this.next);
    this.loading?.abort();
    this.loading = null;
  }

  async show(name) {
    this.leave();
    this.visit = new AbortController();
    const visit = this.visit.signal;
    try {
      if (name) await this.open(name, visit);
      else await this.list(visit);
    } catch (error) {
      if (!visit.aborted) this.root.append(failed(error, () => this.show(name)));
    }
  }

  async list(visit) {
    const entries = await call("dashboards", undefined, visit);
    if (visit.aborted) return;
    const card = ({ name, title, error }) => el("article", { class: "card" },
      el("h2", { dir: "auto" }, el("a", { href: `#/dashboards/${encodeURIComponent(name)}` }, title)),
      el("p", { class: error ? "problem" : "quiet" }, error ?? `${name}.toml`));
    const folder = this.state.dashboards;
    const words = folder ? `The folder ${folder} has no dashboards. Put a file there, such as brand.toml, and open this view again:`
      : "A dashboard is a file in a folder: start the page with savedsearch ui DIR. Such as DIR/brand.toml:";
    const shown = entries.length ? el("div", { class: "cards" }, entries.map(card)) : el("div", { class: "quiet" },
      el("p", {}, words), el("pre", { class: "sample", tabindex: "0" }, sample(this.state.search ?? "AID")));
    this.root.replaceChildren(el("h1", {}, "Dashboards"), shown);
  }

  async open(name, visit) {
    const dashboard = await call(`dashboards/${encodeURIComponent(name)}`, undefined, visit);
    if (visit.aborted) return;
    const panels = dashboard.queries.map((query) => {
      const body = el("div", { class: "panel-body" });
      const foot = el("p", { class: "quiet", role: "status" });
      const link = el("a", { href: `#/ask?sql=${encodeURIComponent(query.sql)}` }, "SQL");
      const parts = [el("h2", { dir: "auto" }, query.title), body, el("div", { class: "bar" }, foot, link)];
      return { query, body, foot, root: el("article", { class: `card panel ${query.chart}` }, parts) };
    });
    const controls = el("div", { class: "bar" });
    this.root.replaceChildren(el("p", { class: "quiet" }, el("a", { href: "#/dashboards" }, "Dashboards")),
      el("h1", { dir: "auto" }, dashboard.title), controls, el("div", { class: "panels" }, panels.map((panel) => panel.root)));
    await this.offer({ name, dashboard, panels, controls, visit }, true);
  }

  /**
   * Shows the buttons with their costs. Runs the panels at once if the store has all data, or if they are `due`. Nothing runs
   * without an estimate of each panel, or beyond the budget. With the path `size`, the numbers of mentions are requested as well.
   */
  async offer(shown, first, { path = "estimate", due = false } = {}) {
    const { dashboard, panels, controls, visit } = shown;
    const freshness = first ? dashboard.refresh ?? "1d" : "0s";
    if (path === "size") controls.replaceChildren(running("Requesting the numbers of mentions…"));
    try {
      await Promise.all(panels.map(async (panel) => {
        try {
          const question = { sql: panel.query.sql, settings: { freshness } };
          panel.cost = await call(panel.cost?.unknown ? path : "estimate", question, visit);
          if (first && !due) Object.assign(panel.foot, { className: "quiet", textContent: inWords(panel.cost) });
        } catch (error) {
          // It is the call that failed, not the query.
          if (!error.code) throw error;
          panel.cost = { at_least: 0, exact: WRONG.test(error.code) };
          panel.foot.className = "problem";
          tell(panel.foot, error);
        }
      }));
    } catch (error) {
      if (!visit.aborted) controls.replaceChildren(failed(error, () => this.offer(shown, first)));
      return this.wait(shown);
    }
    // A run that began meanwhile shows its own buttons.
    if (visit.aborted || this.loading) return undefined;
    const cost = sum(panels);
    this.told(cost);
    if (due && cost.refused) return this.offer(shown, false);
    if (due || (first && cost.exact && cost.at_least === 0)) return this.run(shown, freshness);
    // The age is the one of the estimate. With an age of 0, the store would not keep the result.
    const button = (id, words, some, own = sum(some)) => el("button", { type: "button", id, disabled: own.refused,
      class: id === "run-all" && "main", onclick: () => this.again(shown, some, first ? freshness : AGAIN) }, `${words}: ${inWords(own)}`);
    const lost = panels.filter((panel) => panel.lost);
    const open = panels.filter((panel) => panel.cost.unknown);
    const find = cost.unknown > 0 && cost.unknown <= (cost.left?.remaining ?? Infinity) && el("button", { type: "button", id: "size-all",
      onclick: () => this.offer(shown, first, { path: "size" }) }, `Find out: ${open.length > 1 ? "at most " : ""}${counted(cost.unknown, "request")}`);
    const again = dashboard.refresh_seconds ? `again every ${dashboard.refresh} while this page is in view` : "";
    controls.replaceChildren(button("run-all", first ? "Run" : "Refresh", panels), find || "",
      beside(cost, cost.refused ? "your budget would refuse a part of it, so nothing runs" : again),
      lost.length ? button("run-lost", "Run what failed", lost) : "");
    return this.wait(shown);
  }

  /** Runs panels. If the file has changed since it was opened, it is opened again instead, and shows its cost. */
  async again(shown, some, freshness) {
    const { name, dashboard, controls, visit } = shown;
    try {
      const file = await call(`dashboards/${encodeURIComponent(name)}`, undefined, visit);
      await (JSON.stringify(file) === JSON.stringify(dashboard) ? this.run(shown, freshness, some) : this.show(name));
    } catch (error) {
      if (!visit.aborted) controls.replaceChildren(failed(error, () => this.again(shown, some, freshness)));
    }
  }

  async run(shown, freshness, some = shown.panels) {
    const { controls } = shown;
    clearTimeout(this.next);
    this.loading?.abort();
    this.loading = new AbortController();
    const { signal } = this.loading;
    const progress = running("Running…");
    controls.replaceChildren(el("button", { type: "button", onclick: () => this.loading?.abort() }, "Cancel"), progress);
    for (const panel of some) {
      try {
        const result = await all({ sql: panel.query.sql, settings: { freshness } }, signal, progress);
        if (signal.aborted) break;
        Object.assign(panel, { spent: result.end.requests, lost: false });
        fill(panel, result);
      } catch (error) {
        if (signal.aborted) break;
        panel.lost = error.gone;
        panel.foot.className = "problem";
        tell(panel.foot, error);
      }
    }
    if (this.loading?.signal !== signal) return;
    this.loading = null;
    shown.ran = !signal.aborted;
    await this.offer(shown, false);
  }

  /** Waits for the next automatic refresh. Panels that were not run, or were cancelled, have none. */
  wait(shown) {
    const { dashboard, visit, ran } = shown;
    if (visit.aborted || !ran || !dashboard.refresh_seconds) return;
    clearTimeout(this.next);
    // Other tabs may have filled the store meanwhile, or spent the budget.
    const again = () => this.offer(shown, true, { due: true });
    this.next = setTimeout(() => {
      // Nothing is requested for a page that nobody sees.
      if (document.hidden) document.addEventListener("visibilitychange", again, { once: true, signal: visit });
      else again();
    }, dashboard.refresh_seconds * 1000);
  }
}

/** Cost of panels, as that of one. */
function sum(panels) {
  const costs = panels.map(({ cost, spent }) => ({ spent, ...cost }));
  const total = (of) => costs.reduce((total, cost) => total + of(cost), 0);
  const least = total((cost) => cost.at_least);
  // What a panel needed last time says more than the least that it can need.
  const probable = total(({ exact, at_least: least, likely, spent = 0 }) => likely ?? (exact ? least : Math.max(spent, least)));
  const exact = costs.every((cost) => cost.exact);
  const known = costs.every((cost) => cost.exact || cost.likely || cost.spent);
  const left = costs.map((cost) => cost.left).filter(Boolean).sort((one, other) => one.remaining - other.remaining)[0];
  const refused = costs.some((cost) => least > (cost.allowance ?? Infinity));
  return { at_least: least, exact, left, refused, unknown: total((cost) => cost.unknown ?? 0), likely: known && !exact ? probable : null,
    requests: exact ? String(least) : known ? `about ${probable}` : `at least ${least}` };
}

function fill({ query, body, foot }, { columns, rows, end }) {
  foot.className = end.incomplete ? "incomplete" : "quiet";
  foot.textContent = end.summary;
  if (query.chart === "number") {
    const value = rows[0]?.at(-1) ?? "none";
    // Decimals are texts.
    const written = String(value).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
    const exact = columns.at(-1)?.class === "number" && String(Number(value)) === written;
    body.replaceChildren(el("p", { class: "total" }, exact ? number(value) : String(value)));
  } else if (query.chart === "table") {
    const table = new Table(body);
    table.reset(columns);
    table.add(rows);
  } else if (!end.result) {
    // The server did not keep the rows, of which it draws pictures.
    body.replaceChildren(el("ul", { class: "quiet" }, end.notes.map((note) => el("li", {}, note))));
  } else body.replaceChildren(picture({ kind: query.chart, result: end.result, title: "" }, columns, rows, body.clientWidth));
}
