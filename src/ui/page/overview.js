// The overview of all saved searches, and the view of the service: limits, requests, store and profile.

import { all, beside, call, estimate, inWords } from "./calls.js";
import { counted, el, failed, number, running, shares, sparkline, svg, time } from "./draw.js";
import { bySentiment, quoted } from "./editor.js";

const DAYS = 30;
/** Age up to which the store has what is shown at once. */
const AGE = "1d";
/** Age of a refresh: everything is read again, and kept by the store, which nothing is without an age. */
export const AGAIN = "1s";
/**
 * Names, totals and sources of the period, and the days of twice the period. One query: the list is requested once, and a
 * response of each saved search for both periods.
 */
const SQL = `SELECT 'name' AS part, aid, name AS label, NULL AS n, NULL AS positive, NULL AS neutral, NULL AS negative
FROM saved_searches
UNION ALL
SELECT 'totals', aid, NULL, total_mentions, positive, neutral, negative FROM overview WHERE duration = '${DAYS}d'
UNION ALL
SELECT 'both', aid, NULL, total_mentions, NULL, NULL, NULL FROM overview WHERE duration = '${2 * DAYS}d'
UNION ALL
SELECT 'source', aid, name, mentions, NULL, NULL, NULL FROM breakdowns
WHERE duration = '${DAYS}d' AND dimension = 'source' AND rank <= 3
UNION ALL
SELECT 'day', aid, bucket_start::text, mentions, NULL, NULL, NULL FROM volume WHERE duration = '${2 * DAYS}d'`;

const ABOUT = `Each saved search over the last ${DAYS} days, and the ${DAYS} days before.`;

/** A view that loads what it shows, which ends once it is left. */
class View {
  constructor(root, told) { Object.assign(this, { root, told }); }
  leave() { this.loading?.abort(); }
}

export class Overview extends View {
  /** Shows what the store has without a request; anything else only when somebody asks for it. */
  async show() {
    if (this.shown || this.loading) return;
    this.root.replaceChildren(el("h1", {}, "Overview"), el("p", { class: "quiet" }, ABOUT));
    this.controls = el("div", { class: "bar" });
    this.cards = el("div", { class: "cards" });
    this.root.append(this.controls, this.cards);
    await this.offer(true);
  }

  /** The button with its cost. */
  async offer(first) {
    try {
      const cost = await estimate({ sql: SQL, settings: { freshness: first ? AGE : "0s" } });
      if (first && cost.exact && cost.at_least === 0) return await this.load(AGE);
      const words = `${this.shown ? "Refresh" : "Load"}: ${inWords(cost)}`;
      this.controls.replaceChildren(
        el("button", { type: "button", class: "main", id: "refresh", onclick: () => this.load(AGAIN) }, words),
        beside(cost, cost.exact ? "" : "two more for each saved search"));
    } catch (error) {
      this.controls.replaceChildren(failed(error, () => this.offer(first)));
    }
    return undefined;
  }

  async load(freshness) {
    this.loading = new AbortController();
    const { signal } = this.loading;
    const progress = running("Loading…");
    this.controls.replaceChildren(el("button", { type: "button", onclick: () => this.loading?.abort() }, "Cancel"), progress);
    try {
      const { rows, end } = await all({ sql: SQL, settings: { freshness } }, signal, progress);
      this.draw(rows, Date.parse((await call("state")).now ?? new Date().toISOString()));
      this.shown = true;
      this.root.querySelector("p").textContent = `${ABOUT} ${end.summary}, at ${time(Date.now())}.`;
      this.told({ left: (await estimate({ sql: "SELECT 1" })).left });
      await this.offer(false);
    } catch (error) {
      await this.offer(false);
      // One line is enough about a server that is still gone.
      if (error.name === "AbortError" || (error.gone && this.controls.querySelector("[role=alert]"))) return;
      this.controls.append(el("p", { class: "problem", role: "alert" }, error.message));
    } finally {
      this.loading = null;
    }
  }

  draw(rows, now) {
    const searches = new Map();
    const of = (aid) => {
      const none = { aid, name: aid, days: [], sources: [], total: null, both: null, sentiment: [0, 0, 0] };
      if (!searches.has(aid)) searches.set(aid, none);
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
      search.days = lastDays(search.days, now);
    }
    const sorted = [...searches.values()].sort((one, other) => other.total - one.total);
    this.cards.replaceChildren(...sorted.map((search) => this.card(search)));
    if (!sorted.length) this.cards.replaceChildren(el("p", { class: "quiet" }, "There are no saved searches."));
  }

  card({ aid, name, both, days, sources, total, sentiment }) {
    const earlier = Math.max(both - total, 0);
    const change = earlier ? Math.round(((total - earlier) / earlier) * 100) : null;
    const words = both === null ? "the period before is unknown" : change === null ? "no mentions before"
      : `${change > 0 ? "+" : ""}${change} % compared with the ${DAYS} days before`;
    const [positive, neutral, negative] = sentiment;
    const source = ([name, n]) => el("li", { dir: "auto" }, `${name ?? "unknown"} ${number(n)}`);
    return el("article", { class: "card" },
      el("h2", { dir: "auto" }, el("a", { href: `#/ask?sql=${encodeURIComponent(bySentiment(quoted(aid)))}` }, name)),
      el("p", { class: "quiet" }, aid),
      el("p", { class: "total" }, number(total), el("span", {}, words)),
      days && sparkline(days, `Mentions a day, the last ${DAYS} days, at most ${number(Math.max(...days))}`),
      shares([["positive", positive], ["neutral", neutral], ["negative", negative]]), el("ul", { class: "sources" }, sources.map(source)));
  }
}

/** Mentions of each of the last days, from days with mentions; null if there are none. A day begins at midnight of its zone. */
function lastDays(known, now) {
  if (!known.length) return null;
  const starts = known.map(([start, mentions]) => [Date.parse(start), mentions]);
  const latest = Math.max(...starts.map(([start]) => start));
  const today = latest + Math.floor((now - latest) / DAY) * DAY;
  const days = new Array(DAYS).fill(0);
  for (const [start, mentions] of starts) {
    // Days on which clocks change have 23 or 25 hours.
    const at = DAYS - 1 - Math.round((today - start) / DAY);
    if (at in days) days[at] += mentions;
  }
  return days;
}

const LIMITLESS = "No limit is known: the profile declares none, and the service has reported none.";
const STORELESS = "There is no store: start the server with --store DIR, and days that were read once need no further request.";
const STORE = "SELECT aid, filters, days, ranges FROM system.store ORDER BY aid, filters";
const REQUESTS = `SELECT time, endpoint, parameters, status, rows, elapsed, verdict
FROM system.requests ORDER BY time DESC LIMIT 50`;

export class Service extends View {
  async show() {
    this.leave();
    this.loading = new AbortController();
    const { signal } = this.loading;
    const progress = running("Loading…");
    this.root.replaceChildren(el("h1", {}, "Service"), progress);
    try {
      // System tables: no request.
      const { budget, profile, store, now } = await call("state", undefined, signal);
      const requests = await all({ sql: REQUESTS }, signal, progress);
      const days = store ? (await all({ sql: STORE }, signal, progress)).rows : null;
      const names = new Map(store ? await call("names", undefined, signal) : []);
      const quiet = (text) => el("p", { class: "quiet" }, text);
      const sent = requests.rows.map(([at, ...rest]) => [time(at), ...rest]);
      this.root.append(
        el("h2", {}, "Requests left"), budget.length ? el("div", { class: "cards" }, budget.map(limit)) : quiet(LIMITLESS),
        el("h2", {}, "Last requests"),
        list(["Time", "Endpoint", "Parameters", "Status", "Rows", "ms", "Verdict"], sent, "No request was sent yet."),
        el("h2", {}, "Store"), days ? calendar(days, now, names) : quiet(STORELESS),
        el("h2", {}, "Profile"), quiet("What the service supports, and what shows it."),
        list(["Dimension", "Value", "Evidence"], profile, ""));
    } catch (error) {
      if (!signal.aborted) this.root.append(failed(error, () => this.show()));
    } finally {
      progress.remove();
    }
  }
}

function limit({ source, requests, seconds, used, remaining }) {
  const most = requests ?? (used ?? 0) + (remaining ?? 0);
  const words = ` of ${number(most)} left${seconds ? ` in ${number(seconds)} s` : ""}`;
  return el("article", { class: "card" }, el("p", { class: "heading" }, source),
    el("p", { class: "total" }, remaining === null ? "unknown" : number(remaining), el("span", {}, words)),
    el("meter", { min: 0, max: most || 1, value: remaining ?? 0, "aria-label": `${source}: left` }));
}

function list(names, rows, none) {
  if (!rows.length) return el("p", { class: "quiet" }, none);
  const cell = (value) => el("td", { dir: "auto" }, value === null ? "" : String(value));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": names.join(", ") }, el("table", {},
    el("thead", {}, el("tr", {}, names.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell))))));
}

const DAY = 86_400_000;
/** Saved searches whose days are drawn: each has hundreds of elements. */
const CALENDARS = 50;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const dateOf = (day) => new Date(day * DAY).toISOString().slice(0, 10);
/** The Monday of a day's week. Day 0 was a Thursday. */
const mondayOf = (day) => day - ((day + 3) % 7);

/** Stored days by saved search: a square for each day of half a year or more, up to the day of the service's clock. */
function calendar(rows, now, names) {
  if (!rows.length) return el("p", { class: "quiet" }, "The store has no days yet.");
  const today = Math.floor(Date.parse(now) / DAY);
  const more = rows.length > CALENDARS ? el("p", {}, `${number(rows.length - CALENDARS)} more in system.store`) : null;
  return el("div", { class: "coverage" }, rows.slice(0, CALENDARS).map(([aid, filters, days, text]) => {
    const ranges = text.split(", ").map((range) => range.split("..").map((date) => Date.parse(date) / DAY));
    const begin = mondayOf(Math.max(Math.min(ranges[0][0], today - 181), today - 364));
    const inDates = ([from, to]) => (from === to ? dateOf(from) : `${dateOf(from)} to ${dateOf(to)}`);
    const words = ranges.slice(-6).map(inDates).join(", ");
    const name = names.get(aid) ? `${names.get(aid)} (${aid})` : aid;
    const label = `${name}: ${counted(days, "day")}, ${ranges.length > 6 ? "the last of them " : ""}${words}`;
    const conditions = filters ? el("span", { class: "quiet" }, ` ${filters}`) : null;
    return el("figure", {}, el("figcaption", { dir: "auto" }, label, conditions), calendarOf(begin, today, ranges, label));
  }), more);
}

/** Weeks as columns, from Monday on. */
function calendarOf(begin, today, ranges, label) {
  const [left, top, size] = [22, 11, 9];
  const parts = ["Mon", "Thu", "Sun"].map((name, at) => svg("text", { x: 0, y: top + at * 3 * size + 7 }, name));
  for (let day = begin; day <= today; day += 1) {
    const at = day - begin;
    const [x, y] = [left + Math.floor(at / 7) * size, top + (at % 7) * size];
    const date = new Date(day * DAY);
    if (date.getUTCDate() === 1) parts.push(svg("text", { x, y: 7 }, MONTHS[date.getUTCMonth()]));
    const stored = ranges.some(([from, to]) => day >= from && day <= to);
    parts.push(svg("rect", { x, y, width: size - 2, height: size - 2, rx: 1.5, class: stored ? "stored" : "none" },
      svg("title", {}, `${dateOf(day)}: ${stored ? "stored" : "not stored"}`)));
  }
  const width = left + Math.ceil((today - begin + 1) / 7) * size + 10;
  const viewBox = `0 0 ${width} ${top + 7 * size}`;
  return svg("svg", { viewBox, preserveAspectRatio: "xMinYMid", role: "img", "aria-label": label }, parts);
}
