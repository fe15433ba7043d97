// The overview of all saved searches, and the view of the service: limits, requests, store and profile.

import { all, call, estimate, inWords } from "./calls.js";
import { el, number, shares, sparkline, svg } from "./draw.js";

const DAYS = 30;
/** Age of a refresh: everything is read again, and kept by the store, which nothing is without an age. */
export const AGAIN = "1s";
/**
 * Names, totals and sources of the period, and the days of twice the period. One query: the list is requested once, and a response of
 * each saved search for both periods.
 */
const SQL = `SELECT 'name' AS part, aid, name AS label, NULL AS n, NULL AS positive, NULL AS neutral, NULL AS negative FROM saved_searches
UNION ALL
SELECT 'totals', aid, NULL, total_mentions, positive, neutral, negative FROM overview WHERE duration = '${DAYS}d'
UNION ALL
SELECT 'both', aid, NULL, total_mentions, NULL, NULL, NULL FROM overview WHERE duration = '${2 * DAYS}d'
UNION ALL
SELECT 'source', aid, name, mentions, NULL, NULL, NULL FROM breakdowns WHERE duration = '${DAYS}d' AND dimension = 'source' AND rank <= 3
UNION ALL
SELECT 'day', aid, bucket_start::text, mentions, NULL, NULL, NULL FROM volume WHERE duration = '${2 * DAYS}d'`;

/**
 * Cost with what the last list says: each response of a saved search serves all scans of its window. The list may have changed since, so
 * that an estimate alone is not certain of it.
 */
function byList(cost) {
  const windows = new Map(cost.scans.filter((scan) => scan.sent?.startsWith("search")).map((scan) => [scan.sent, scan]));
  const scans = [...windows.values()];
  if (cost.exact || !scans.every((scan) => scan.requests.includes("in the last list"))) return cost;
  // The list counts in each of them.
  const least = scans.reduce((sum, scan) => sum + Math.max(scan.at_least - 1, 0), scans.some((scan) => scan.at_least > 0) ? 1 : 0);
  return { at_least: least, exact: true, requests: String(least) };
}

export class Overview {
  constructor(root, told) {
    Object.assign(this, { root, told, age: "1d" });
  }

  /** Shows what the store has without a request; anything else only when somebody asks for it. */
  /** Ends what is requested. */
  leave() {
    this.loading?.abort();
  }

  async show() {
    if (this.shown || this.loading) return;
    this.root.replaceChildren(el("h1", {}, "Overview"), el("p", { class: "quiet" }, `Each saved search over the last ${DAYS} days, and the ${DAYS} days before.`));
    this.controls = el("div", { class: "bar" });
    this.cards = el("div", { class: "cards" });
    this.root.append(this.controls, this.cards);
    await this.offer(true);
  }

  /** The button with its cost. */
  async offer(first) {
    try {
      const cost = byList(await estimate({ sql: SQL, settings: { freshness: first ? this.age : "0s" } }));
      if (first && cost.exact && cost.at_least === 0) {
        await this.load(this.age);
        return;
      }
      this.controls.replaceChildren(
        el("button", { type: "button", class: "main", id: "refresh", onclick: () => this.load(AGAIN) }, `${this.shown ? "Refresh" : "Load"}: ${inWords(cost)}`),
        el("p", { class: "cost" }, cost.exact ? "" : "two more for each saved search"));
    } catch (error) {
      this.controls.replaceChildren(el("p", { class: "problem", role: "alert" }, error.message));
    }
  }

  async load(freshness) {
    this.loading = new AbortController();
    const { signal } = this.loading;
    this.controls.replaceChildren(el("button", { type: "button", onclick: () => this.loading?.abort() }, "Cancel"), el("p", { class: "progress running", role: "status" }, "Loading…"));
    try {
      const { rows, end } = await all({ sql: SQL, settings: { freshness } }, signal);
      this.draw(rows);
      this.shown = true;
      this.root.querySelector("p").textContent = `Each saved search over the last ${DAYS} days, and the ${DAYS} days before. ${end.summary}, at ${new Date().toLocaleTimeString("en")}.`;
      this.told({ left: (await estimate({ sql: "SELECT 1" })).left });
      await this.offer(false);
    } catch (error) {
      await this.offer(false);
      if (error.name !== "AbortError") this.controls.append(el("p", { class: "problem", role: "alert" }, error.message));
    } finally {
      this.loading = null;
    }
  }

  draw(rows) {
    const searches = new Map();
    const of = (aid) => {
      if (!searches.has(aid)) searches.set(aid, { aid, name: aid, days: [], sources: [], total: null, both: null, sentiment: [0, 0, 0] });
      return searches.get(aid);
    };
    for (const [part, aid, label, n, ...sentiment] of rows) {
      if (part === "name") of(aid).name = label || aid;
      else if (part === "totals") Object.assign(of(aid), { total: n ?? 0, sentiment: sentiment.map((value) => value ?? 0) });
      else if (part === "both") of(aid).both = n;
      else if (part === "source") of(aid).sources.push([label, n]);
      else of(aid).days.push([label, n ?? 0]);
    }
    // Those of the search history have no response.
    for (const [aid, { total }] of searches) if (total === null) searches.delete(aid);
    for (const search of searches.values()) {
      search.sources.sort((one, other) => other[1] - one[1]);
      search.days = search.days.sort().map(([, mentions]) => mentions);
    }
    const sorted = [...searches.values()].sort((one, other) => other.total - one.total);
    this.cards.replaceChildren(...sorted.map((search) => this.card(search)));
    if (!sorted.length) this.cards.replaceChildren(el("p", { class: "quiet" }, "There are no saved searches."));
  }

  card({ aid, name, both, days, sources, total, sentiment }) {
    const recent = days.slice(-DAYS);
    const earlier = Math.max((both ?? total) - total, 0);
    const change = earlier ? Math.round(((total - earlier) / earlier) * 100) : null;
    const words = change === null ? "no mentions before" : `${change > 0 ? "+" : ""}${change} % to the period before`;
    const [positive, neutral, negative] = sentiment;
    const sql = `SELECT date_trunc('day', published_at) AS day, sentiment, count(*) AS mentions\nFROM mentions\nWHERE aid = '${aid.replaceAll("'", "''")}' AND duration = '${DAYS}d'\nGROUP BY 1, 2\nORDER BY 1`;
    return el("article", { class: "card" },
      el("h2", { dir: "auto" }, el("a", { href: `#/ask?sql=${encodeURIComponent(sql)}` }, name)),
      el("p", { class: "quiet" }, aid),
      el("p", { class: "total" }, number(total), el("span", { class: `change ${change > 0 ? "up" : change < 0 ? "down" : ""}` }, words)),
      sparkline(recent, `Mentions a day, the last ${DAYS} days, at most ${number(Math.max(...recent, 0))}`),
      shares([["positive", positive], ["neutral", neutral], ["negative", negative]]),
      el("ul", { class: "sources" }, sources.map(([source, n]) => el("li", { dir: "auto" }, `${source ?? "unknown"} ${number(n)}`))));
  }
}

const STORE = "SELECT aid, filters, first_day, last_day, days FROM system.store ORDER BY aid";
const REQUESTS = "SELECT time, endpoint, parameters, status, rows, elapsed, verdict FROM system.requests ORDER BY time DESC LIMIT 50";

export class Service {
  constructor(root, told) {
    Object.assign(this, { root, told });
  }

  async show() {
    this.root.replaceChildren(el("h1", {}, "Service"));
    try {
      // System tables: no request.
      const [{ budget, profile, store }, requests] = await Promise.all([call("state"), all({ sql: REQUESTS })]);
      this.root.append(el("h2", {}, "Requests left"), budget.length ? el("div", { class: "cards" }, budget.map(limit)) : el("p", { class: "quiet" }, "No limit is known: the profile declares none, and the service has reported none."));
      this.root.append(el("h2", {}, "Last requests"), list(["Time", "Endpoint", "Parameters", "Status", "Rows", "ms", "Verdict"], requests.rows.map(([time, ...rest]) => [time.slice(0, 19).replace("T", " "), ...rest]), "No request was sent yet."));
      this.root.append(el("h2", {}, "Store"));
      this.root.append(store ? calendar((await all({ sql: STORE })).rows) : el("p", { class: "quiet" }, "There is no store: start the server with --store DIR, and days that were read once need no further request."));
      this.root.append(el("h2", {}, "Profile"), el("p", { class: "quiet" }, "What the service supports, and what shows it."), list(["Dimension", "Value", "Evidence"], profile, ""));
    } catch (error) {
      this.root.append(el("p", { class: "problem", role: "alert" }, error.message));
    }
  }
}

function limit({ source, requests, seconds, used, remaining }) {
  const most = requests ?? (used ?? 0) + (remaining ?? 0);
  return el("article", { class: "card" }, el("p", { class: "heading" }, source),
    el("p", { class: "total" }, remaining === null ? "unknown" : number(remaining), el("span", {}, ` of ${number(most)} left${seconds ? ` in ${number(seconds)} s` : ""}`)),
    el("meter", { min: 0, max: most || 1, value: remaining ?? 0, "aria-label": `${source}: left` }));
}

function list(names, rows, none) {
  if (!rows.length) return el("p", { class: "quiet" }, none);
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": names.join(", ") }, el("table", {},
    el("thead", {}, el("tr", {}, names.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((value) => el("td", { dir: "auto" }, value === null ? "" : String(value))))))));
}

/** Stored days by saved search: a square for each of the last 26 weeks' days. */
function calendar(rows) {
  if (!rows.length) return el("p", { class: "quiet" }, "The store has no days yet.");
  const day = 86_400_000;
  const today = Math.floor(Date.now() / day);
  return el("div", { class: "coverage" }, rows.map(([aid, filters, first, last, days]) => {
    const [from, to] = [Date.parse(first) / day, Date.parse(last) / day];
    const begin = Math.max(Math.min(from, today - 181), today - 364);
    const width = today - begin + 1;
    const label = `${aid}: ${number(days)} days from ${first} to ${last}`;
    return el("figure", {}, el("figcaption", { dir: "auto" }, label, filters && filters !== "{}" ? el("span", { class: "quiet" }, ` ${filters}`) : null),
      calendarOf(begin, width, from, to, days, label));
  }));
}

function calendarOf(begin, width, from, to, days, label) {
  const weeks = Math.ceil(width / 7);
  const squares = [];
  const whole = days >= to - from + 1;
  for (let at = 0; at < width; at += 1) {
    const here = begin + at;
    const state = here < from || here > to ? "none" : whole ? "stored" : "some";
    squares.push(svg("rect", { x: Math.floor(at / 7) * 9, y: (at % 7) * 9, width: 7, height: 7, rx: 1.5, class: state }));
  }
  return svg("svg", { viewBox: `0 0 ${weeks * 9} 63`, preserveAspectRatio: "xMinYMid", role: "img", "aria-label": label }, squares);
}
