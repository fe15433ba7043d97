// Dashboards: queries of a file with their charts. Opening one shows its cost; running it is a click, or its own refresh.

import { all, call, estimate, inWords } from "./calls.js";
import { picture } from "./ask.js";
import { el, number } from "./draw.js";
import { AGAIN } from "./overview.js";
import { Table } from "./table.js";

export class Dashboards {
  constructor(root, told) {
    Object.assign(this, { root, told });
  }

  /** Ends what is requested for the dashboard. */
  leave() {
    clearTimeout(this.next);
    this.loading?.abort();
  }

  async show(name) {
    this.leave();
    try {
      if (name) await this.open(name);
      else await this.list();
    } catch (error) {
      this.root.append(el("p", { class: "problem", role: "alert" }, error.message));
    }
  }

  async list() {
    const entries = await call("dashboards");
    const card = ({ name, title, error }) => el("article", { class: "card" },
      el("h2", {}, el("a", { href: `#/dashboards/${encodeURIComponent(name)}` }, title)), el("p", { class: error ? "problem" : "quiet" }, error ?? `${name}.toml`));
    this.root.replaceChildren(el("h1", {}, "Dashboards"), entries.length ? el("div", { class: "cards" }, entries.map(card)) : el("div", { class: "quiet" },
      el("p", {}, "A dashboard is a file in a folder: start the page with savedsearch ui DIR. Such as DIR/brand.toml:"),
      el("pre", { class: "sample", tabindex: "0" }, "title = \"Brand\"\nrefresh = \"1h\"\n\n[[queries]]\ntitle = \"Mentions a day by sentiment\"\nchart = \"stacked\"\nsql = \"\"\"\nSELECT date_trunc('day', published_at) AS day, sentiment, count(*) AS mentions\nFROM mentions WHERE aid = '183772' AND duration = '30d'\nGROUP BY 1, 2 ORDER BY 1\"\"\"\n")));
  }

  async open(name) {
    const dashboard = await call(`dashboards/${encodeURIComponent(name)}`);
    const panels = dashboard.queries.map((query) => {
      const body = el("div", { class: "panel-body" });
      const foot = el("p", { class: "quiet", role: "status" });
      const link = el("a", { href: `#/ask?sql=${encodeURIComponent(query.sql)}` }, "SQL");
      return { query, body, foot, root: el("article", { class: `card panel ${query.chart}` }, el("h2", { dir: "auto" }, query.title), body, el("div", { class: "bar" }, foot, link)) };
    });
    this.controls = el("div", { class: "bar" });
    this.root.replaceChildren(el("p", { class: "quiet" }, el("a", { href: "#/dashboards" }, "Dashboards")), el("h1", { dir: "auto" }, dashboard.title), this.controls,
      el("div", { class: "panels" }, panels.map((panel) => panel.root)));
    await this.offer(dashboard, panels, true);
  }

  /** The button with the cost of all queries; what the store has is shown at once. */
  async offer(dashboard, panels, first) {
    const settings = { freshness: first ? dashboard.refresh ?? "1d" : "0s" };
    const costs = await Promise.all(panels.map(async ({ query, foot }) => {
      try {
        const cost = await estimate({ sql: query.sql, settings });
        if (first) foot.textContent = inWords(cost);
        return cost;
      } catch (error) {
        foot.className = "problem";
        foot.textContent = error.message;
        return { at_least: 0, exact: true };
      }
    }));
    const sum = (of) => costs.reduce((all, cost) => all + of(cost), 0);
    const least = sum((cost) => cost.at_least);
    const exact = costs.every((cost) => cost.exact);
    const likely = costs.every((cost) => cost.exact || cost.likely) ? `, likely about ${sum((cost) => cost.likely ?? cost.at_least)}` : "";
    if (first && exact && least === 0) {
      await this.run(dashboard, panels, settings.freshness);
      return;
    }
    const again = dashboard.refresh_seconds ? `again every ${dashboard.refresh} while this page is open` : "";
    this.controls.replaceChildren(el("button", { type: "button", class: "main", id: "run-all", onclick: () => this.run(dashboard, panels, AGAIN) },
      `${first ? "Run" : "Refresh"}: ${inWords({ at_least: least, exact, requests: exact ? String(least) : `at least ${least}${likely}` })}`), el("p", { class: "cost" }, again));
  }

  async run(dashboard, panels, freshness) {
    clearTimeout(this.next);
    this.loading = new AbortController();
    const { signal } = this.loading;
    this.controls.replaceChildren(el("button", { type: "button", onclick: () => this.loading.abort() }, "Cancel"), el("p", { class: "progress running", role: "status" }, "Running…"));
    for (const panel of panels) {
      try {
        const result = await all({ sql: panel.query.sql, settings: { freshness } }, signal);
        fill(panel, result, this.state.timezone);
      } catch (error) {
        if (error.name === "AbortError") break;
        panel.foot.className = "problem";
        panel.foot.textContent = error.message;
      }
    }
    if (!this.root.contains(this.controls) || this.root.hidden) return;
    await this.offer(dashboard, panels, false);
    if (dashboard.refresh_seconds && !signal.aborted) {
      this.next = setTimeout(() => {
        if (!this.root.hidden && this.root.contains(this.controls)) this.run(dashboard, panels, AGAIN);
      }, dashboard.refresh_seconds * 1000);
    }
  }
}

function fill({ query, body, foot }, { columns, rows, end }, zone) {
  foot.className = end.incomplete ? "incomplete" : "quiet";
  foot.textContent = end.summary;
  if (query.chart === "number") {
    const value = rows[0]?.at(-1);
    body.replaceChildren(el("p", { class: "total" }, typeof value === "number" ? number(value) : String(value ?? "none")));
  } else if (query.chart === "table") {
    const table = new Table(body);
    table.reset(columns);
    table.add(rows);
  } else {
    body.replaceChildren(picture({ kind: query.chart, result: end.result, title: "" }, columns, rows, zone));
  }
}
