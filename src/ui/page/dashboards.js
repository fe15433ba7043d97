// Dashboards: queries of a file with their charts. Opening one shows its cost; running it is a click, or its own refresh.

import { all, call, estimate, inWords } from "./calls.js";
import { picture } from "./ask.js";
import { el, failed, number, running, tell } from "./draw.js";
import { bySentiment, quoted } from "./editor.js";
import { AGAIN } from "./overview.js";
import { Table } from "./table.js";

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
    const shown = entries.length ? el("div", { class: "cards" }, entries.map(card)) : el("div", { class: "quiet" },
      el("p", {}, "A dashboard is a file in a folder: start the page with savedsearch ui DIR. Such as DIR/brand.toml:"),
      el("pre", { class: "sample", tabindex: "0" }, sample(this.state.search ?? "AID")));
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
    await this.offer({ dashboard, panels, controls, visit }, true);
  }

  /** The button with the cost of all queries; what the store has is shown at once. */
  async offer(shown, first) {
    const { dashboard, panels, controls } = shown;
    const settings = { freshness: first ? dashboard.refresh ?? "1d" : "0s" };
    const costs = await Promise.all(panels.map(async ({ query, foot }) => {
      try {
        const cost = await estimate({ sql: query.sql, settings }, shown.visit);
        if (first) Object.assign(foot, { className: "quiet", textContent: inWords(cost) });
        return cost;
      } catch (error) {
        foot.className = "problem";
        tell(foot, error, () => this.offer(shown, first));
        return { at_least: 0, exact: true };
      }
    }));
    if (shown.visit.aborted) return;
    const least = costs.reduce((sum, cost) => sum + cost.at_least, 0);
    const exact = costs.every((cost) => cost.exact);
    // What a panel needed last time says more than the least that it can need.
    const probable = (cost, { spent = 0 }) => cost.likely ?? (cost.exact ? cost.at_least : Math.max(spent, cost.at_least));
    const total = costs.reduce((sum, cost, at) => sum + probable(cost, panels[at]), 0);
    const known = costs.every((cost, at) => cost.exact || cost.likely || panels[at].spent);
    const requests = exact ? String(least) : known ? `about ${total}` : `at least ${total}`;
    if (first && exact && least === 0) {
      await this.run(shown, settings.freshness);
      return;
    }
    const again = dashboard.refresh_seconds ? `again every ${dashboard.refresh} while this page is in view` : "";
    controls.replaceChildren(el("button", { type: "button", class: "main", id: "run-all", onclick: () => this.run(shown, AGAIN) },
      `${first ? "Run" : "Refresh"}: ${inWords({ at_least: least, exact, requests })}`), el("p", { class: "cost" }, again));
  }

  async run(shown, freshness) {
    const { dashboard, panels, controls } = shown;
    clearTimeout(this.next);
    const loading = new AbortController();
    const { signal } = loading;
    this.loading = loading;
    const progress = running("Running…");
    controls.replaceChildren(el("button", { type: "button", onclick: () => loading.abort() }, "Cancel"), progress);
    for (const panel of panels) {
      try {
        const result = await all({ sql: panel.query.sql, settings: { freshness } }, signal, progress);
        if (shown.visit.aborted) return;
        panel.spent = result.end.requests;
        fill(panel, result);
      } catch (error) {
        if (error.name === "AbortError" || shown.visit.aborted) break;
        panel.foot.className = "problem";
        tell(panel.foot, error, () => this.run(shown, freshness));
      }
    }
    if (shown.visit.aborted) return;
    await this.offer(shown, false);
    if (shown.visit.aborted) return;
    if (!dashboard.refresh_seconds || signal.aborted) return;
    const again = () => {
      // Other tabs may have filled the store meanwhile.
      if (!shown.visit.aborted) this.run(shown, dashboard.refresh);
    };
    this.next = setTimeout(() => {
      // Nothing is requested for a page that nobody sees.
      if (document.hidden) document.addEventListener("visibilitychange", again, { once: true });
      else again();
    }, dashboard.refresh_seconds * 1000);
  }
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
  } else {
    body.replaceChildren(picture({ kind: query.chart, result: end.result, title: "" }, columns, rows, body.clientWidth));
  }
}
