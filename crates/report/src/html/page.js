  const byId = (id) => document.getElementById(id);
  const factors = { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 };

  // The number in a cell such as "1.23 ms", "45.6%", "1,234" or "3.2 GB"; NaN where there is none.
  const value = (text) => {
    const found = text.trim().match(/^([<>]?)([+-]?[\d,]*\.?\d+(?:e[+-]?\d+)?)\s*([A-Za-z%/]*)/);
    if (!found) return NaN;
    const unit = found[3];
    const factor = factors[unit] ?? (unit.length > 1 ? factors[unit[0]] ?? 1 : 1);
    return parseFloat(found[2].replaceAll(",", "")) * factor;
  };

  const sortBy = (table, column, direction) => {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [row, row.cells[column]?.textContent ?? ""]);
    const numeric = rows.filter(([, text]) => !Number.isNaN(value(text))).length * 2 > rows.length;
    const below = (number) => (Number.isNaN(number) ? -Infinity : number);
    rows.sort(([, a], [, b]) => direction * (numeric ? below(value(a)) - below(value(b)) : a.localeCompare(b)));
    body.append(...rows.map(([row]) => row));
  };

  for (const table of document.querySelectorAll("table")) {
    const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        sortBy(table, column, down ? -1 : 1);
      });
    });
    if (table.tBodies[0] && table.tBodies[0].rows.length > 8) {
      const label = document.createElement("label");
      const input = document.createElement("input");
      label.className = "filter";
      input.type = "search";
      label.append("filter ", input);
      table.parentElement.before(label);
      input.addEventListener("input", () => {
        const wanted = input.value.toLowerCase();
        for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
      });
    }
  }

  const openAll = () => document.querySelectorAll("details").forEach((one) => (one.open = true));
  addEventListener("beforeprint", openAll);
  // What the address names; an address that was cut names nothing.
  const hashText = () => {
    try {
      return decodeURIComponent(location.hash.slice(1));
    } catch {
      return "";
    }
  };
  const openTarget = () => {
    // What a view shows comes after the name of its section.
    const target = location.hash ? byId(hashText().split("@")[0]) : null;
    const details = target?.closest("section")?.querySelector("details");
    if (!details || details.open) return;
    details.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", openTarget);
  openTarget();

  const inflate = async (text) => {
    const packed = atob(text);
    const bytes = new Uint8Array(packed.length);
    for (let index = 0; index < packed.length; index++) bytes[index] = packed.charCodeAt(index);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return JSON.parse(await new Response(stream).text());
  };

  for (const view of document.querySelectorAll(".view")) {
    const unpacked = (id) => inflate(byId(`data-${id}`).content.textContent);
    unpacked(view.dataset.of)
      .then(async (data) => ({ ...data, counters: view.dataset.of === "timeline" && byId("data-counters") ? await unpacked("counters") : {} }))
      .then((data) => (view.dataset.of === "requests" ? requestsView(view, data, () => timeline) : lanesView(view, data)))
      .catch((error) => (view.querySelector(".about").textContent = `Cannot draw this chart: ${error}`));
  }
