// The page: views by address, login, colours and what is left of the limits.

import { Ask } from "./ask.js";
import { call, leftInWords, onLogin } from "./calls.js";
import { Dashboards } from "./dashboards.js";
import { failed, find, remembered, tell } from "./draw.js";
import { Overview, Service } from "./overview.js";

const THEMES = { "": ["◐", "automatic"], light: ["☀", "light"], dark: ["☾", "dark"] };

/** Takes what calls learn: the closest limit. */
const told = ({ left }) => void (find("left").textContent = leftInWords(left));

/** Asks for a login until one is accepted. Calls that wait share the question. */
let asking = null;
/** Who is logged in, once it is known. */
let user = null;
function logIn({ login: form, stale }) {
  asking ??= new Promise((done) => {
    const dialog = find("login");
    const texts = {
      token: ["Token", `${stale || location.search === "?stale" ? "The link is from an earlier start of the server, or incomplete. " : ""}`
        + "Open the address in the line “page on …” that the server printed when it started, or enter the token from it."],
      password: ["Password", "Your name and password on this server. Without a name, a token."],
      key: ["API key", "Your API key of the service. It stays on the server until you log out."],
    }[form];
    [find("login-label").textContent, find("login-help").textContent] = texts;
    find("login-name").hidden = form !== "password";
    find("login-problem").hidden = true;
    // A browser closes a dialog on the second Escape, whatever the page says.
    dialog.onclose = () => asking && !dialog.open && dialog.showModal();
    find("login-form").onsubmit = async (event) => {
      event.preventDefault();
      const { name, secret } = event.target.elements;
      try {
        await call("login", { name: name.value, secret: secret.value });
        secret.value = "";
        asking = null;
        dialog.close();
        // Another user does not see, run or keep what this one wrote.
        if (user !== null && (await call("state").catch(() => ({}))).user !== user) location.reload();
        else done();
      } catch (error) {
        tell(find("login-problem"), error, () => find("login-form").requestSubmit());
      }
    };
    if (!dialog.open) dialog.showModal();
  });
  return asking;
}
onLogin(logIn);

function theme(name) {
  const [sign, words] = THEMES[name] ?? THEMES[""];
  document.documentElement.dataset.theme = name;
  find("theme").textContent = sign;
  find("theme").title = `Colours: ${words}`;
  remembered("savedsearch.theme", name);
}
theme(remembered("savedsearch.theme") ?? "");
find("theme").addEventListener("click", () => {
  const names = Object.keys(THEMES);
  theme(names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length]);
});

const ask = new Ask(told);
const views = {
  ask,
  overview: new Overview(find("overview"), told),
  dashboards: new Dashboards(find("dashboards"), told),
  service: new Service(find("service"), told),
};

/** A part of the address; as it is, if it is no valid encoding. */
const decoded = (part) => new URLSearchParams(`part=${part.replace(/[+&]/g, encodeURIComponent)}`).get("part");

/** Shows the view of the address: `#/ask?sql=…`, `#/dashboards/NAME`. */
function route() {
  const [path, query] = location.hash.replace(/^#\//, "").split("?");
  const [name, ...rest] = path.split("/");
  const view = Object.hasOwn(views, name) ? name : "ask";
  for (const other in views) {
    find(other).hidden = other !== view;
    // Nothing is requested for a view that nobody sees.
    if (other !== view) views[other].leave?.();
  }
  for (const link of document.querySelectorAll("nav a")) link.ariaCurrent = link.hash === `#/${view}` ? "page" : null;
  document.title = `${view[0].toUpperCase()}${view.slice(1)} · savedsearch`;
  const given = new URLSearchParams(query ?? "");
  if (view === "ask" && given.has("sql")) ask.open(given.get("sql"), given);
  if (view === "ask") ask.editor.show();
  else views[view].show(decoded(rest.join("/")));
}

// As an address it would be that of a view.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  find(find("ask").hidden ? "main" : "sql").focus();
});
find("logout").addEventListener("click", async () => {
  try {
    await call("logout", {});
  } catch (error) {
    // A login that has expired needs no end.
    if (!error.login) return find("main").prepend(failed(error, () => find("logout").click()));
  }
  return location.reload();
});

/** Shows the view of the address once the server has told who asks, and what the page needs. */
async function begin() {
  const state = await call("state");
  user = state.user;
  find("logout").hidden = state.login === "token";
  find("logout").title = `Logged in as ${state.user}`;
  const limits = state.budget.filter((limit) => limit.remaining !== null);
  told({ left: limits.sort((one, other) => one.remaining - other.remaining)[0] });
  ask.start(state);
  views.dashboards.state = state;
  window.addEventListener("hashchange", route);
  route();
}
/** Begins, or says why not. */
const tried = () => begin().catch((error) => find("main").append(failed(error, tried)));
await tried();
