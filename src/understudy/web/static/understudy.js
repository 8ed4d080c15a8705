"use strict";
// Small helps for pages that work without them: no page needs this file to do its work.

const find = (selector, root = document) => root.querySelector(selector);

// The plan: moving something shows what would come of it, before anything is spent.
const plan = find("[data-plan]");
if (plan) {
  const forecast = find("#forecast");
  const text = plan.elements.epsilon;
  const slider = plan.elements.slider;
  const stops = slider.dataset.stops.split(" ");
  const target = plan.elements.target;
  let timer = 0;
  let asked = null;

  const nearest = () => {
    const value = Math.log(parseFloat(text.value) || 1);
    const gaps = stops.map((stop) => Math.abs(Math.log(parseFloat(stop)) - value));
    slider.value = gaps.indexOf(Math.min(...gaps));
    slider.setAttribute("aria-valuetext", "ε = " + text.value);
  };
  const show = async (target) => {
    if (asked) asked.abort();
    asked = new AbortController();
    const form = new FormData(plan);
    for (const name of ["csrf", "once", "begun", "slider", "name", "owner", "size", "sure"]) form.delete(name);
    if (!target) form.set("target", "");
    forecast.classList.add("waiting");
    forecast.setAttribute("aria-busy", "true");
    find("#planning").hidden = false;
    try {
      const address = plan.dataset.plan + "?" + new URLSearchParams(form);
      const answer = await fetch(address, { signal: asked.signal, headers: { Accept: "text/html" } });
      forecast.innerHTML = await answer.text();
      const found = find("[data-epsilon]", forecast);
      if (target && found) {
        text.value = found.dataset.epsilon;
        nearest();
      }
      forecast.classList.remove("waiting");
      forecast.removeAttribute("aria-busy");
      find("#planning").hidden = true;
    } catch (error) {
      if (error.name !== "AbortError") {
        forecast.textContent = "The server does not answer; is it still running?";
        forecast.classList.remove("waiting");
        find("#planning").hidden = true;
      }
    }
  };
  const soon = (target) => {
    clearTimeout(timer);
    timer = setTimeout(() => show(target), 250);
  };
  slider.parentElement.hidden = false;
  find("#replan").hidden = true;
  nearest();
  slider.addEventListener("input", () => {
    text.value = stops[slider.value];
    slider.setAttribute("aria-valuetext", "ε = " + text.value);
    target.value = "";
    soon(false);
  });
  text.addEventListener("change", () => { nearest(); target.value = ""; soon(false); });
  const purpose = find("#purpose");
  const about = find("#about");
  const columns = find("#columns");
  const aimed = () => { about.hidden = !purpose.value; };
  aimed();
  purpose.addEventListener("change", () => {
    aimed();
    if (purpose.value && !columns.value) columns.focus();  // there is nothing to plan before it is named
    else soon(target.value.trim() !== "");
  });
  for (const name of ["workload", "columns", "method", "rows", "delta", "variations"]) {
    find("#" + name).addEventListener("change", () => soon(target.value.trim() !== ""));
  }
  find("#find").addEventListener("click", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    show(target.value.trim() !== "");
  });
  if (!forecast.children.length) soon(false);
  target.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); find("#find").click(); }
  });
}

// Steps that take a while say so; going back to a page finds it as it was.
for (const step of document.querySelectorAll("[data-wait]")) {
  const said = step.textContent;
  step.addEventListener("click", () => {
    if (step.form && !step.formNoValidate && !step.form.checkValidity()) return;  // nothing is sent
    setTimeout(() => { step.textContent = step.dataset.wait; });
  });
  addEventListener("pageshow", () => { step.textContent = said; });
}

// Fresh rows take a while before the browser has any of them to save.
find("#more")?.addEventListener("submit", () => { find("#making").hidden = false; });

// An error has a page of its own; what was typed stands on the one before.
for (const back of document.querySelectorAll("[data-back]")) {
  back.hidden = history.length < 2;
  back.addEventListener("click", () => history.back());
}

// The schema has many forms, and keeping one loads the page again: what was typed into the others, or
// into one that was refused, is put back and marked. It stays in this tab, until somebody logs in.
const drafts = find("[data-drafts]");
if (drafts) {
  const store = drafts.dataset.drafts;
  const forms = [...drafts.querySelectorAll("form")];
  const named = "input[type=hidden]:not([name=csrf]):not([name=version])";
  const nameOf = (form) => form.action.split("#")[0] + [...form.querySelectorAll(named)].map((each) => each.value);
  // Columns of a question are numbered, and move up when one is answered: their labels tell them apart.
  const called = (field) => field.name.replace(/-\d+$/, "") + (field.labels?.[0]?.textContent ?? "");
  const box = (field) => ["checkbox", "radio"].includes(field.type);
  const changed = (field) => {
    if (box(field)) return field.checked !== field.defaultChecked;
    if (!field.options) return field.value !== field.defaultValue;
    return field.selectedIndex !== Math.max(0, [...field.options].findIndex((o) => o.defaultSelected));
  };
  const fieldsOf = (form) => form.querySelectorAll("input:not([type=hidden]), select, textarea");
  const restored = new Set();
  let sent = null;
  for (const kept of JSON.parse(sessionStorage.getItem(store) || "[]")) {
    const form = forms.find((each) => nameOf(each) === kept.form);
    if (!form || (kept.sent && !find("[role=alert]"))) continue;
    for (const field of fieldsOf(form)) {
      const typed = kept.fields[called(field)];
      if (typed === undefined) continue;
      field[box(field) ? "checked" : "value"] = typed;
      restored.add(field);
      for (let at = field; at !== drafts; at = at.parentElement) if (at.matches("details")) at.open = true;
      form.closest("details")?.classList.add("unsaved");
    }
  }
  addEventListener("submit", (event) => { sent = event.target; });
  addEventListener("pagehide", () => {
    const every = forms.map((form) => {
      const typed = [...fieldsOf(form)].filter((field) => changed(field) || restored.has(field));
      const fields = typed.map((field) => [called(field), box(field) ? field.checked : field.value]);
      return { form: nameOf(form), fields: Object.fromEntries(fields), sent: form === sent };
    });
    const some = every.filter((each) => Object.keys(each.fields).length);
    sessionStorage.setItem(store, JSON.stringify(some));
  });
} else if (find("#token, #password")) {
  sessionStorage.clear();
}

// A job: how far it is, asked for again and again; a server that is away is waited for.
const job = find("[data-job]");
if (job) {
  const state = job.dataset.state;
  const cancel = find(".ask-first", job);
  if (cancel) cancel.open = location.hash === "#cancel";
  const look = async () => {
    try {
      const answer = await fetch(job.dataset.job, { headers: { Accept: "application/json" } });
      if (answer.status === 401) { location.reload(); return; }
      const told = await answer.json();
      find("#away").hidden = true;
      if (told.state !== state) {
        if (cancel?.open) location.hash = "cancel";  // stays open while somebody reads what it costs
        location.reload();
        return;
      }
      for (const name of ["clock", "step", "cost"]) {
        const shown = find("#" + name);
        if (shown && shown.textContent !== told[name]) shown.textContent = told[name];
      }
      const bar = find("#share");
      if (bar && told.share !== null) bar.setAttribute("width", String(100 * told.share));
      const stages = [...job.querySelectorAll("[data-stage]")];
      const at = stages.findIndex((stage) => stage.dataset.stage === told.stage);
      if (at >= 0) {
        stages.forEach((stage, n) => {
          stage.className = n < at ? "done" : n === at ? "now" : "ahead";
          if (n === at) stage.setAttribute("aria-current", "step");
          else stage.removeAttribute("aria-current");
        });
        const said = find("#said");
        if (said.textContent !== told.doing) said.textContent = told.doing;
      }
    } catch {
      find("#away").hidden = false;
    }
    setTimeout(look, 700);
  };
  setTimeout(look, 500);
}

// Questions: each answer is put above the earlier ones.
for (const ask of document.querySelectorAll("[data-ask]")) {
  ask.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = find("button", ask);
    button.disabled = true;
    try {
      const address = ask.dataset.ask + "?" + new URLSearchParams({ q: ask.elements[0].value });
      const answer = await fetch(address, { headers: { Accept: "text/html" } });
      const piece = document.createElement("div");
      piece.innerHTML = await answer.text();
      find("#answers").prepend(...piece.children);
      find("#answers").firstElementChild.scrollIntoView({ block: "nearest" });
      if (answer.ok) ask.elements[0].select();
    } finally {
      button.disabled = false;
    }
  });
}

// Uploads: how much has arrived, and a file that is too large is not sent at all.
const upload = find("[data-most]");
if (upload) {
  upload.addEventListener("submit", (event) => {
    const files = [...upload.elements].flatMap((each) => [...(each.files || [])]);
    const size = files.reduce((sum, file) => sum + file.size, 0);
    const problem = find("#problem");
    problem.hidden = true;
    if (!files.length) return;
    event.preventDefault();
    const tell = (text) => {
      problem.querySelector("p").textContent = text;
      problem.hidden = false;
      problem.focus();
    };
    if (size > Number(upload.dataset.most)) {
      tell(`${files.map((file) => file.name).join(" and ")} ${files.length > 1 ? "have" : "has"} ` +
        `${(size / 1e6).toFixed(0)} MB; files are taken up to ` +
        `${(Number(upload.dataset.most) / 1e6).toFixed(0)} MB. The limit is set with --max-upload.`);
      return;
    }
    const button = find("button", upload);
    const progress = find("#progress");
    button.disabled = true;
    progress.hidden = false;
    const sending = new XMLHttpRequest();
    sending.open("POST", upload.action);
    sending.upload.onprogress = (sent) => {
      const share = sent.total ? sent.loaded / sent.total : 0;
      find("#sent").setAttribute("width", String(100 * share));
      find("#sending").textContent = share < 1
        ? `${Math.round(100 * share)} % of the file has arrived`
        : upload.dataset.arrived;
    };
    sending.onload = () => {
      if (sending.status < 300) { location.assign(sending.responseURL); return; }
      button.disabled = false;
      progress.hidden = true;
      const page = new DOMParser().parseFromString(sending.responseText, "text/html");
      const text = page.querySelector("[data-error]");
      if (text) tell(text.textContent);
      else find("main").replaceWith(page.querySelector("main"));
    };
    sending.onerror = () => {
      button.disabled = false;
      progress.hidden = true;
      tell("The upload was broken off: the server went away, or refused it. Try again.");
    };
    sending.send(new FormData(upload));
  });
}
