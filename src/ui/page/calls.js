// Calls of the server. Nothing here sends a request to the service but `run`.

import { el, slices } from "./draw.js";

/** Queries that run at once in all tabs: browsers have six connections to a server, and other calls need some of them. */
const AT_ONCE = 4;
/** Milliseconds after which a query counts as waiting for others. */
const SOON = 150;
/** What the page shows meanwhile. */
export const WAITING = "waiting: four other queries are running";
/** Milliseconds for which a place in the storage is taken. Browsers let tabs in the background renew it once a minute. */
const LEASE = 90_000;
/** Milliseconds after which a place in the storage is read again, and after which one is looked for again. */
const [SETTLED, AGAIN] = [50, 300];

/** An answer that is an error: a line for people, the place in the statement if it is known, and the login that is needed. */
export class Refusal extends Error {
  constructor(told) {
    super(told.error?.message ?? "the server does not answer");
    Object.assign(this, { code: told.error?.code, place: told.error?.place, requests: told.error?.requests });
  }
}

/** What is thrown if the server is gone: whatever failed can be tried again once it is back. */
const gone = (message) => Object.assign(new Refusal({ error: { message } }), { gone: true });
const CLOSED = "the connection was closed before the result was complete; is the server still running?";

let login = async () => {};
/** Sets what asks for the login that a refusal needs; it resolves once somebody has logged in. */
export const onLogin = (ask) => void (login = ask);

/** The answer to one call. */
async function once(path, body, signal) {
  const json = { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  let response;
  try {
    response = await fetch(`api/${path}`, { signal, cache: "no-store", ...(body !== undefined && json) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw gone("the server cannot be reached; is it still running?");
  }
  const type = response.headers.get("content-type") ?? "";
  // The server itself answers no call with a page: this one is of a proxy, for a server that is gone, or for its own login.
  if (type.startsWith("text/html")) {
    throw gone(`the server cannot be reached: a proxy answers with a page (status ${response.status}); reload if it has a login`);
  }
  if (response.ok) return response;
  const told = /json/.test(type) ? await response.json() : { error: { message: (await response.text()).trim() } };
  const refusal = new Refusal(told);
  if (response.status === 401 && path !== "login") Object.assign(refusal, { login: told.login, stale: told.stale });
  throw refusal;
}

/** The response to a call, after a login if it needs one. */
export async function answer(path, body, signal) {
  for (;;) {
    try {
      return await once(path, body, signal);
    } catch (error) {
      if (!error.login || path === "logout") throw error;
      await login(error);
    }
  }
}

export const call = async (path, body, signal) => (await answer(path, body, signal)).json();

/**
 * Waits for a place among the queries of all tabs. Resolves to what gives the place back; an abort of the signal ends the wait.
 */
async function place(signal) {
  signal?.throwIfAborted();
  // Only addresses of this machine, and those with TLS, have locks.
  return navigator.locks ? locked(signal) : leased(signal);
}

function locked(signal) {
  const { promise, resolve, reject } = Promise.withResolvers();
  const others = new AbortController();
  let settled = false;
  const cancelled = () => {
    settled = true;
    others.abort();
    reject(new DOMException("cancelled", "AbortError"));
  };
  const granted = () => {
    // Of several places that are free, one is taken.
    if (settled) return undefined;
    settled = true;
    others.abort();
    signal?.removeEventListener("abort", cancelled);
    const held = Promise.withResolvers();
    resolve(held.resolve);
    return held.promise;
  };
  signal?.addEventListener("abort", cancelled, { once: true });
  for (let number = 0; number < AT_ONCE; number += 1) {
    navigator.locks.request(`savedsearch.query.${number}`, { signal: others.signal }, granted).catch(() => {});
  }
  return promise;
}

/**
 * A place without locks: an entry of the storage, which all tabs share. It is renewed while the query runs, so that a tab that is
 * gone keeps none. If two tabs take a place at the same time, the one that wrote last has it. The server cannot count instead: it
 * does not know which connections are those of one browser.
 */
async function leased(signal) {
  const own = String(Math.random());
  const read = (key) => {
    const [until, owner] = (localStorage.getItem(key) ?? "").split(" ");
    const left = Number(until) - Date.now();
    // A clock that was set back keeps nobody waiting.
    return left > 0 && left <= LEASE ? owner : undefined;
  };
  const write = (key) => localStorage.setItem(key, `${Date.now() + LEASE} ${own}`);
  const leave = (key) => {
    if (read(key) === own) localStorage.removeItem(key);
  };
  for (let number = 0; ; number = (number + 1) % AT_ONCE) {
    signal?.throwIfAborted();
    const key = `savedsearch.place.${number}`;
    try {
      if (!read(key)) {
        write(key);
        await wait(SETTLED);
        if (signal?.aborted) leave(key);
        else if (read(key) === own) return renewed(() => write(key), () => leave(key));
      }
    } catch {
      // A browser that keeps nothing cannot count its tabs.
      return () => {};
    }
    if (number === AT_ONCE - 1) await wait(AGAIN);
  }
}

/** Renews a place until it is given back, or the page is closed. */
function renewed(renew, leave) {
  const renewing = setInterval(renew, LEASE / 3);
  const left = () => {
    clearInterval(renewing);
    window.removeEventListener("pagehide", left);
    leave();
  };
  window.addEventListener("pagehide", left);
  return left;
}

const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/**
 * Runs a query. Yields `{ queued: true }` if it waits for those of other tabs, and `{ queued: false }` once it no longer does;
 * then `{ columns, query }`, `{ rows }` and `{ progress }`, and `{ end }` at last. An abort of the signal closes the connection,
 * which ends the query on the server; a caller that takes its time stops the paging.
 */
export async function* run(question, signal) {
  for (;;) {
    try {
      yield* placed(question, signal);
      return;
    } catch (error) {
      // Only before its first line. No place is held meanwhile, since other tabs may be logged in.
      if (!error.login) throw error;
      await login(error);
    }
  }
}

async function* placed(question, signal) {
  const turn = place(signal);
  try {
    const waits = await Promise.race([turn.then(() => false), wait(SOON).then(() => true)]);
    if (waits) yield { queued: true };
    await turn;
    if (waits) yield { queued: false };
    yield* streamed(question, signal);
  } finally {
    // A place that is granted after all is given back as well.
    turn.then((leave) => leave(), () => {});
  }
}

async function* streamed(question, signal) {
  const reader = (await once("query", question, signal)).body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let ended = false;
  const pause = slices();
  try {
    for (;;) {
      await pause();
      const closed = (error) => Promise.reject(error.name === "AbortError" ? error : gone(CLOSED));
      const { value, done } = await reader.read().catch(closed);
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const end = rest.lastIndexOf("\n") + 1;
      const lines = rest.slice(0, end).split("\n");
      rest = rest.slice(end);
      let rows = [];
      for (const line of lines) {
        if (line.startsWith("[")) {
          rows.push(line);
        } else if (line) {
          if (rows.length) yield { rows: JSON.parse(`[${rows.join(",")}]`) };
          rows = [];
          const told = JSON.parse(line);
          if (told.error) throw new Refusal(told);
          ended ||= told.end !== undefined;
          yield told;
        }
      }
      if (rows.length) yield { rows: JSON.parse(`[${rows.join(",")}]`) };
      if (done) break;
    }
  } finally {
    // Whoever stops reading ends the query.
    reader.cancel().catch(() => {});
  }
  if (!ended) throw gone(CLOSED);
}

/** The rows of a query that is short. `shown` is an element that shows while it waits for those of other tabs. */
export async function all(question, signal, shown) {
  const result = { columns: [], rows: [], end: null };
  const words = shown?.textContent.split(" · ")[0];
  for await (const part of run(question, signal)) {
    if (shown) shown.textContent = part.queued ? WAITING : words + waitInWords(part.progress);
    if (part.columns) result.columns = part.columns;
    for (const row of part.rows ?? []) result.rows.push(row);
    if (part.end) result.end = part.end;
  }
  return result;
}

/** How long the rate limit of the service keeps a query waiting, or kept it. */
export function waitInWords({ waits_ms: waiting = 0, wait_ms: waited = 0 } = {}) {
  if (waiting >= 500) return ` · waiting ${Math.ceil(waiting / 1000)} s for the rate limit`;
  return waited >= 500 ? ` · waited ${(waited / 1000).toFixed(1)} s for the rate limit` : "";
}

/** Which of some limits a cost exceeds, in words; nothing if it exceeds none. */
export function excess({ at_least: least, likely }, limits) {
  const beyond = (needed, words) => limits.filter(([most]) => needed > most).map(([, which]) => `${words} ${which}`)[0];
  return beyond(least, "more than") ?? beyond(likely ?? 0, "probably more than") ?? "";
}

/** What stands beside a button with a cost: a warning if less is left, and more words. */
export function beside(cost, more = "") {
  const over = excess(cost, [[cost.left?.remaining ?? Infinity, "is left"]]);
  return el("p", { class: over ? "cost problem" : "cost" }, [over, over && leftInWords(cost.left), more].filter(Boolean).join(" · "));
}

export const estimate = (question, signal) => call("estimate", question, signal);

/** Cost in words, as on a button: `13 requests`. */
export function inWords(cost) {
  if (cost.exact && cost.at_least === 0) return "no requests";
  // What the number rests on is in the details.
  const words = cost.requests.replace(/ \(.*\)$/, "");
  return `${words} request${/(^|\D)1$/.test(words) ? "" : "s"}`;
}

/** What is left of the closest limit: `900 of 1,000 left in 24 h`. */
export function leftInWords(left) {
  if (!left) return "";
  const of = left.requests ? ` of ${left.requests.toLocaleString("en")}` : "";
  return `${left.remaining.toLocaleString("en")}${of} left${left.seconds ? ` in ${period(left.seconds)}` : ""}`;
}

function period(seconds) {
  const units = [[86400, "d"], [3600, "h"], [60, "min"]];
  const unit = units.find(([length]) => seconds % length === 0 && seconds >= length) ?? [1, "s"];
  return `${seconds / unit[0]} ${unit[1]}`;
}
