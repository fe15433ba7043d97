// Calls of the server. Nothing here sends a request to the service but `run`.

/** An answer that is an error: a line for people, and the place in the statement if it is known. */
export class Refusal extends Error {
  constructor(told) {
    super(told.error?.message ?? "the server does not answer");
    Object.assign(this, { code: told.error?.code, place: told.error?.place, requests: told.error?.requests });
  }
}

let login = async () => {};
/** Sets what asks for a login; it resolves once somebody has logged in. */
export function onLogin(ask) {
  login = ask;
}

async function answer(path, body, signal) {
  const options = { signal, headers: {}, cache: "no-store" };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  for (;;) {
    let response;
    try {
      response = await fetch(`api/${path}`, options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refusal({ error: { message: "the server cannot be reached; is it still running?" } });
    }
    if (response.ok) return response;
    const text = await response.text();
    let told;
    try {
      told = JSON.parse(text);
    } catch {
      told = { error: { message: text.trim() } };
    }
    if (response.status !== 401 || path === "login") throw new Refusal(told);
    await login(told.login);
  }
}

export async function call(path, body, signal) {
  return (await answer(path, body, signal)).json();
}

/**
 * Runs a query. Yields `{ columns, query }`, then `{ rows }` and `{ progress }`, and `{ end }` at last. An abort of the signal closes
 * the connection, which ends the query on the server; a caller that takes its time stops the paging.
 */
export async function* run(question, signal) {
  const reader = (await answer("query", question, signal)).body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let ended = false;
  for (;;) {
    const { value, done } = await reader.read();
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
  if (!ended) throw new Refusal({ error: { message: "the connection was closed before the result was complete" } });
}

/** The rows of a query that is short. */
export async function all(question, signal) {
  const result = { columns: [], rows: [], end: null };
  for await (const part of run(question, signal)) {
    if (part.columns) result.columns = part.columns;
    if (part.rows) result.rows.push(...part.rows);
    if (part.end) result.end = part.end;
  }
  return result;
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
