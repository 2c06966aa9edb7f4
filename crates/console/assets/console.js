// Enhances the pages of the console; everything works without it.
"use strict";
(() => {
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const two = (number) => String(number).padStart(2, "0");

  // Times in the viewer's zone; UTC stays in the title. Days of periods are days of UTC and stay as they are.
  function showLocalTimes(root) {
    for (const time of all("time[datetime]", root)) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime()) || time.dataset.style === "day") continue;
      const year = time.dataset.style === "short" ? "" : ` ${at.getFullYear()}`;
      const { from } = time.dataset;
      const isSameDay = from && new Date(from).toDateString() === at.toDateString();
      const day = isSameDay ? "" : `${at.getDate()} ${months[at.getMonth()]}${year}, `;
      time.textContent = `${day}${two(at.getHours())}:${two(at.getMinutes())}`;
    }
  }

  // The zone by name: its offset is another one in summer.
  function showZone() {
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
    const zone = one("#zone");
    if (zone && timeZone) zone.textContent = `Times in ${timeZone.replace("Etc/UTC", "UTC").replaceAll("_", " ")}`;
  }

  function say(text, isVisible = false) {
    const status = one("#status");
    if (!status) return;
    status.textContent = text;
    status.className = isVisible ? "skip failed" : "visually-hidden";
  }

  // The links of the theme lead back to the address that is shown now.
  function updateThemeLinks() {
    for (const link of all(".foot a[href^='/console/theme']")) {
      const address = new URL(link.href);
      address.searchParams.set("back", location.pathname + location.search);
      link.href = address.pathname + address.search;
    }
  }

  // Buttons that copy need scripts: they are hidden until they are shown here.
  function showCopyButtons(root) {
    if (!navigator.clipboard) return;
    for (const button of all("[data-copy], [data-copy-text]", root)) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        const text = button.dataset.copyText ?? one(button.dataset.copy).textContent;
        try {
          await navigator.clipboard.writeText(text);
          say("Copied");
          const label = button.textContent;
          button.textContent = "Copied";
          setTimeout(() => { button.textContent = label; }, 1500);
        } catch {
          say("The browser did not allow copying");
        }
      });
    }
  }

  // A menu closes with Escape and with a click elsewhere.
  function closeMenus(except) {
    for (const menu of all("details.menu[open]")) {
      if (!except || !menu.contains(except)) menu.open = false;
    }
  }

  // Partial updates: the focus stays, and the status line says what changed.
  let focused = null;
  document.addEventListener("htmx:beforeSwap", () => { focused = document.activeElement?.id || null; });
  document.addEventListener("htmx:afterSwap", () => enhance(one("#result") ?? document));
  document.addEventListener("htmx:afterSettle", () => {
    const result = one("#result");
    if (!result) return;
    if (document.activeElement === document.body) {
      const same = focused && document.getElementById(focused);
      // The menu that the form was in is closed now: its button stands for it.
      const button = same?.closest("details")?.querySelector("summary") ?? one("#filters-button");
      (same?.checkVisibility() ? same : button)?.focus({ preventScroll: true });
    }
    updateThemeLinks();
    say(result.dataset.status);
  });
  // htmx discards errors, but the page of a refused filter (400) is shown.
  for (const step of ["htmx:beforeOnLoad", "htmx:beforeSwap"]) {
    document.addEventListener(step, (event) => {
      if (event.detail.xhr.status !== 400) return;
      event.detail.shouldSwap = true;
      event.detail.isError = false;
    });
  }
  document.addEventListener("htmx:sendError", () => say("Assay cannot be reached: what you see has not changed", true));
  document.addEventListener("htmx:responseError", (event) => {
    const advice = event.detail.xhr.status === 414 ? "the filter is too long, leave some values out" : "try again";
    say(`That did not work: what you see has not changed; ${advice}`, true);
  });

  // Keyboard shortcuts: ignored while typing, and with modifier keys.
  function isTyping(target) {
    return target.closest?.("input, textarea, select, [contenteditable], dialog") != null;
  }

  function moveRow(step) {
    const links = all("#rows tbody .subject a");
    if (links.length === 0) {
      one(step > 0 ? "#next" : "#previous")?.click();
      return;
    }
    const current = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
    const next = current < 0 ? (step > 0 ? 0 : links.length - 1) : current + step;
    const link = links[Math.min(Math.max(next, 0), links.length - 1)];
    link.focus();
    link.scrollIntoView({ block: "nearest" });
  }

  function moveQuote(step) {
    const quotes = all(".transcript .ref[id]");
    if (quotes.length === 0) return;
    const current = quotes.indexOf(document.activeElement);
    const next = current < 0 ? (step > 0 ? 0 : quotes.length - 1) : (current + step + quotes.length) % quotes.length;
    quotes[next].focus();
    quotes[next].scrollIntoView({ block: "center" });
    say(quotes[next].getAttribute("aria-label"));
  }

  async function showHelp() {
    let dialog = one("#help");
    if (!dialog) {
      const response = await fetch("/console/help");
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const keys = one("#keys", page);
      if (!keys) return;
      dialog = document.createElement("dialog");
      dialog.id = "help";
      dialog.setAttribute("aria-labelledby", "help-title");
      const title = document.createElement("h2");
      title.id = "help-title";
      title.textContent = "Keyboard";
      const close = document.createElement("button");
      close.type = "button";
      close.textContent = "Close";
      close.addEventListener("click", () => dialog.close());
      dialog.append(title, document.adoptNode(keys), close);
      document.body.append(dialog);
    }
    if (!dialog.open) dialog.showModal();
  }

  function search(event) {
    const field = one("#search");
    if (!field) {
      location.assign(`${one("#back")?.getAttribute("href") ?? "/console/conversations"}#search`);
      return;
    }
    event.preventDefault();
    field.focus();
    field.select();
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      const menu = event.target.closest?.("details.menu[open]");
      closeMenus();
      one("summary", menu ?? document.createElement("p"))?.focus();
      return;
    }
    if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey || !one("#help-link")) return;
    const actions = {
      j: () => moveRow(1),
      k: () => moveRow(-1),
      e: () => moveQuote(1),
      E: () => moveQuote(-1),
      "/": () => search(event),
      "?": () => showHelp(),
    };
    if (Object.hasOwn(actions, event.key)) actions[event.key]();
  });
  document.addEventListener("click", (event) => {
    closeMenus(event.target);
    if (event.target.closest?.("#help-link") && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      showHelp();
    }
  });

  // Names of the bands, at their middles.
  const bands = { 1.75: "poor", 3: "mixed", 4: "good", 4.75: "excellent" };

  // Replaces a drawing of the server by a chart, whose cursor all charts share; the values are those of the table.
  function drawTrend(section) {
    const plot = one(".plot", section);
    const rows = all("tbody tr[data-at]", section);
    if (!plot || rows.length < 2 || typeof uPlot === "undefined") return;
    const style = getComputedStyle(document.documentElement);
    const probe = one(".now", plot) ?? plot;
    const color = (element, name) => getComputedStyle(element)[name];
    const muted = color(one("text", plot), "fill");
    const line = color(one(".grid", plot) ?? probe, "stroke");
    const value = (row, cell) => {
      const number = Number.parseFloat(row.cells[cell].textContent);
      return Number.isNaN(number) ? null : number;
    };
    const x = rows.map((row) => Number(row.dataset.at) / 1000);
    const now = rows.map((row) => value(row, 1));
    const then = rows.map((row) => value(row, 2));
    // Values without a neighbour: no line leads to them.
    const alone = now.flatMap((mean, at) => mean != null && now[at - 1] == null && now[at + 1] == null ? [at] : []);
    const floor = Number(section.dataset.floor);
    const readout = document.createElement("p");
    readout.className = "readout";
    const text = (at) => {
      const before = then[at] == null ? "" : `, before ${then[at].toFixed(2)}`;
      return `${rows[at].cells[0].textContent}: ${now[at] == null ? "nothing scored" : now[at].toFixed(2)}${before}`;
    };
    const size = () => ({ width: plot.clientWidth, height: Math.round(Math.max(150, plot.clientWidth * 0.5)) });
    const axis = { stroke: muted, font: `11px ${style.getPropertyValue("--sans")}`, ticks: { stroke: line, size: 4 } };
    const isLong = x[x.length - 1] - x[0] > 300 * 86400;
    const chart = new uPlot({
      ...size(),
      legend: { show: false },
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      cursor: { sync: { key: "trends" }, y: false, drag: { x: false, y: false } },
      scales: { y: { range: [floor, 5] } },
      axes: [
        { ...axis, grid: { show: false }, space: isLong ? 80 : 48, size: 24, incrs: [1, 2, 3, 5, 7, 10, 14, 30, 60, 90, 180, 365, 730, 1825, 3650].map((days) => days * 86400), values: (_, splits) => splits.map((at) => {
          const day = new Date(at * 1000);
          return isLong ? `${months[day.getUTCMonth()]} ${day.getUTCFullYear()}` : `${day.getUTCDate()} ${months[day.getUTCMonth()]}`;
        }) },
        { ...axis, grid: { stroke: line, width: 1 }, size: 34, splits: () => [1, 2.5, 3.5, 4.5, 5].filter((at) => at >= floor), values: (_, splits) => splits.map(String) },
        { ...axis, side: 1, grid: { show: false }, ticks: { show: false }, size: 62, splits: () => Object.keys(bands).map(Number).filter((at) => at > floor), values: (_, splits) => splits.map((at) => bands[at]) },
      ],
      series: [
        {},
        { stroke: color(probe, "stroke"), width: 2, points: { size: 5, filter: (_, __, allShown) => allShown ? null : alone } },
        { stroke: muted, width: 1, dash: [2, 3], points: { show: false } },
      ],
      hooks: { setCursor: [(u) => { readout.textContent = u.cursor.idx == null ? "" : text(u.cursor.idx); }] },
    }, [x, now, then], plot);
    chart.root.setAttribute("aria-hidden", "true");
    plot.classList.add("drawn");
    plot.after(readout);
    new ResizeObserver(() => chart.setSize(size())).observe(plot);
  }

  function enhance(root) {
    showLocalTimes(root);
    showCopyButtons(root);
  }

  enhance(document);
  showZone();
  all(".trend").forEach(drawTrend);
  if (location.hash === "#search") one("#search")?.focus();
})();
