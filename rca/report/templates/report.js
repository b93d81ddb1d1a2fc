(() => {
  const root = document.documentElement;
  const KEY = "rca-theme";
  const remembered = () => { try { return localStorage.getItem(KEY); } catch { return null; } };
  const remember = (value) => { try { localStorage.setItem(KEY, value); } catch { /* private mode */ } };
  const apply = (theme) => { if (theme === "dark" || theme === "light") root.dataset.theme = theme; };
  apply(remembered());

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
    const element = document.getElementById(button.dataset.copy);
    const text = element.value ?? element.textContent;
    const label = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      if ("value" in element) { element.hidden = false; element.focus(); element.select(); } else { select(element); }
      button.textContent = "Press Ctrl+C";
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
    button.textContent = open ? "Collapse all" : "Expand all";
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
    const ranks = values("rank").sort((a, b) => a - b);
    const search = make("input", "", { type: "search", placeholder: "text or file" });
    const rank = choice("rank", ranks, "all");
    const severity = choice("severity", values("severity"), "all");
    const kind = choice("kind", values("kind"), "all");
    const order = make("select", "", { name: "order" });
    order.append(make("option", "oldest first", { value: "" }), make("option", "newest first", { value: "new" }));
    const shown = make("output", "", {});
    const update = () => {
      const wanted = search.value.toLowerCase();
      let visible = 0;
      for (const row of rows) {
        const fits = (!rank.value || row.dataset.rank === rank.value)
          && (!severity.value || row.dataset.severity === severity.value)
          && (!kind.value || row.dataset.kind === kind.value)
          && (!wanted || row.textContent.toLowerCase().includes(wanted));
        row.hidden = !fits;
        if (fits) visible += 1;
      }
      shown.textContent = `${visible} of ${rows.length}`;
    };
    order.addEventListener("change", () => body.append(...(order.value ? [...rows].reverse() : rows)));
    for (const control of [search, rank, severity, kind]) control.addEventListener("input", update);
    bar.append(field("Search", search));
    if (ranks.length > 1) bar.append(field("Rank", rank));
    bar.append(field("Severity", severity), field("Kind", kind), field("Order", order), shown);
    update();
  };

  const ready = () => {
    document.getElementById("tools").hidden = false;
    document.querySelectorAll("button.copy").forEach((button) => { button.hidden = false; });
    const toggle = document.querySelector("[data-theme-toggle]");
    const name = () => { toggle.textContent = isDark() ? "Light" : "Dark"; };
    name();
    document.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      if ("copy" in button.dataset) copy(button);
      else if ("save" in button.dataset) save(button);
      else if ("expand" in button.dataset) expand(button);
      else if ("themeToggle" in button.dataset) { apply(isDark() ? "light" : "dark"); remember(root.dataset.theme); name(); }
    });
    timeline();
  };
  document.addEventListener("DOMContentLoaded", ready);
})();
