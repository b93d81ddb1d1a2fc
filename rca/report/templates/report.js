(() => {
  const root = document.documentElement;
  const KEY = "rca-theme";
  const remembered = () => { try { return localStorage.getItem(KEY); } catch { return null; } };
  const remember = (value) => { try { localStorage.setItem(KEY, value); } catch { /* private mode */ } };
  const apply = (theme) => { if (theme === "dark" || theme === "light") root.dataset.theme = theme; };
  apply(remembered());

  let words = {};

  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

  const select = (element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  };

  const copy = async (button) => {
    const element = document.getElementById(button.dataset.copy ?? "page-link");
    if ("link" in button.dataset) element.value = location.href;
    const text = element.value ?? element.textContent;
    const label = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = words.copied;
    } catch {
      if ("value" in element) { element.hidden = false; element.focus(); element.select(); } else { select(element); }
      button.textContent = words.press;
    }
    setTimeout(() => { button.textContent = label; }, 1800);
  };

  const save = (button) => {
    const text = document.getElementById(button.dataset.save).textContent;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = `${button.dataset.name.replace(/[^\w.-]+/g, "-") || "diagnosis"}.json`;
    link.click();
    URL.revokeObjectURL(link.href);
  };

  const expand = (button) => {
    const open = button.dataset.expand !== "open";
    document.querySelectorAll("details").forEach((element) => { element.open = open; });
    button.dataset.expand = open ? "open" : "";
    button.textContent = open ? words.collapse : words.expand;
  };

  const make = (tag, text, properties) => Object.assign(document.createElement(tag), { textContent: text, ...properties });

  const field = (label, control) => {
    const wrapper = make("label", `${label} `);
    wrapper.append(control);
    return wrapper;
  };

  const choice = (name, values, all) => {
    const control = make("select", "", { name });
    control.append(make("option", all, { value: "" }), ...values.map((value) => make("option", value, { value })));
    return control;
  };

  const timeline = () => {
    const bar = document.getElementById("timeline-filter");
    const body = document.querySelector("#events tbody");
    if (!bar || !body) return;
    const rows = [...body.rows];
    if (rows.length < 6) return;
    const values = (key) => [...new Set(rows.map((row) => row.dataset[key]))].filter((value) => value !== "");
    const ranks = [...new Set(values("rank").flatMap((list) => list.split(" ")))].sort((a, b) => a - b);
    const search = make("input", "", { type: "search", placeholder: words.placeholder });
    const rank = choice("rank", ranks, words.all);
    const severity = choice("severity", values("severity"), words.all);
    const kind = choice("kind", values("kind"), words.all);
    const order = make("select", "", { name: "order" });
    order.append(make("option", words.oldest, { value: "" }), make("option", words.newest, { value: "new" }));
    const table = body.closest("table");
    const times = make("select", "", { name: "times" });
    const clocks = { both: words.both, absolute: words.absolute, relative: words.relative };
    times.append(...Object.entries(clocks).map(([value, name]) => make("option", name, { value })));
    times.addEventListener("input", () => { table.dataset.times = times.value; });
    const shown = make("output", "", {});
    const update = () => {
      const wanted = search.value.toLowerCase();
      let visible = 0;
      for (const row of rows) {
        const fits = (!rank.value || row.dataset.rank.split(" ").includes(rank.value))
          && (!severity.value || row.dataset.severity === severity.value)
          && (!kind.value || row.dataset.kind === kind.value)
          && (!wanted || row.textContent.toLowerCase().includes(wanted));
        row.hidden = !fits;
        if (fits) visible += 1;
      }
      shown.textContent = words.shown.replace("#", visible).replace("#", rows.length);
    };
    order.addEventListener("change", () => body.append(...(order.value ? [...rows].reverse() : rows)));
    for (const control of [search, rank, severity, kind]) control.addEventListener("input", update);
    bar.append(field(words.search, search));
    if (ranks.length > 1) bar.append(field(words.rank, rank));
    bar.append(field(words.severity, severity), field(words.kind, kind), field(words.order, order));
    if (table.querySelector("th.time") && table.querySelector("th.since")) bar.append(field(words.times, times));
    bar.append(shown);
    update();
    const first = body.querySelector("tr.initiating");
    if (!first) return;
    const frame = body.closest(".scroll");
    // Not before it is in sight: to ask where a row stands lays out all rows.
    const seen = new IntersectionObserver(([{ isIntersecting }]) => {
      if (!isIntersecting) return;
      seen.disconnect();
      if (!frame.scrollTop) frame.scrollTop = first.offsetTop - 160;
    });
    seen.observe(frame);
  };

  const ready = () => {
    const tools = document.getElementById("tools");
    words = JSON.parse(tools.dataset.words);
    tools.hidden = false;
    document.querySelectorAll("button.copy").forEach((button) => { button.hidden = false; });
    const toggle = document.querySelector("[data-theme-toggle]");
    const name = () => { toggle.textContent = isDark() ? words.light : words.dark; };
    name();
    document.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      if ("copy" in button.dataset || "link" in button.dataset) copy(button);
      else if ("save" in button.dataset) save(button);
      else if ("expand" in button.dataset) expand(button);
      else if ("themeToggle" in button.dataset) { apply(isDark() ? "light" : "dark"); remember(root.dataset.theme); name(); }
    });
    timeline();
  };
  document.addEventListener("DOMContentLoaded", ready);
})();
