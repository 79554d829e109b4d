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
  const openTarget = () => {
    const target = location.hash ? byId(decodeURIComponent(location.hash.slice(1))) : null;
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

  // The timeline, once it is drawn.
  let timeline = null;

  // Draws lanes of events into an element: the timeline, and the flame graph, whose time is the width of its frames.
  const lanesView = (view, data) => {
    const part = (name) => view.querySelector(name);
    const canvas = part("canvas");
    const [find, sum, about] = [part(".find"), part(".sum"), part(".about")];
    const isFlame = data.lanes.some((lane) => lane.kind === "frames");
    const narrow = canvas.clientWidth < 600;
    const [label, row, gap, axis] = [narrow ? 96 : 210, isFlame ? 18 : 15, 7, 22];
    const noun = isFlame ? "frames" : "events";
    let top = axis;
    for (const lane of data.lanes) {
      lane.start = sums(lane.start);
      lane.length = Float64Array.from(lane.length);
      // Far-left events can only matter as far back as the longest one reaches.
      lane.longest = lane.length.reduce((a, b) => Math.max(a, b), 0);
      lane.levels = Math.min(lane.depth.reduce((a, b) => Math.max(a, b), 0) + 1, isFlame ? 64 : 8);
      lane.top = top;
      top += lane.levels * row + gap;
    }
    const shown = data.lanes.reduce((all, lane) => all + lane.start.length, 0);
    about.textContent = data.gathered
      ? `${data.events.toLocaleString("en")} ${noun}, shown as ${shown.toLocaleString("en")} after merging sub-pixel neighbours; llm-perf report --full keeps them all.`
      : `${data.events.toLocaleString("en")} ${noun}.`;
    canvas.style.height = `${top + 4}px`;
    let wanted = "";
    let selected = null;
    let hover = null;
    const context = canvas.getContext("2d");
    const place = { span: data.span, label, width: canvas.clientWidth - label };
    const redraw = onceAFrame(() => draw());
    const { range, show, ns, x } = zoomable(canvas, place, redraw, {
      Escape: () => {
        [selected, sum.textContent] = [null, ""];
        show(0, data.span);
      },
    });
    const hues = { kernels: 207, copies: 32, idle: 215, ranges: 270, operators: 150, calls: 345, frames: 24 };
    const matches = data.names.map(() => true);
    const hash = data.names.map((name) => [...name].reduce((all, c) => (all * 31 + c.charCodeAt(0)) >>> 0, 7) % 30);

    // Causes of idle time are told apart by hue; the last of them, no cause, has none.
    const colour = (kind, name, dark) => {
      const light = matches[name] ? (dark ? 58 : 42) : dark ? 24 : 86;
      if (kind !== "idle") return `hsl(${hues[kind] + hash[name] - 15} ${matches[name] ? 55 : 12}% ${light}%)`;
      const cause = name - data.first_cause;
      return `hsl(${(215 + cause * 130) % 360} ${matches[name] && name < data.names.length - 1 ? 22 : 0}% ${light}%)`;
    };

    // Index of the first event that may still be seen.
    const firstOf = (lane) => {
      let [low, high] = [0, lane.start.length];
      const least = range.from - lane.longest;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (lane.start[middle] < least) low = middle + 1;
        else high = middle;
      }
      return low;
    };

    const draw = () => {
      const h = top + 4;
      const w = cleared(canvas, context, h);
      place.width = w - label;
      [canvas.dataset.from, canvas.dataset.to] = [range.from, range.to];
      const style = getComputedStyle(document.body);
      const dark = isDark();
      drawAxis(context, range, x, axis, w);
      const perNs = place.width / (range.to - range.from);
      for (const lane of data.lanes) {
        const colours = new Map();
        context.fillStyle = style.color;
        context.fillText(lane.name.length > 34 ? `${lane.name.slice(0, 33)}…` : lane.name, 2, lane.top + 11, label - 6);
        const drawnTo = new Float64Array(lane.levels).fill(-1);
        for (let index = firstOf(lane); index < lane.start.length && lane.start[index] <= range.to; index++) {
          const level = Math.min(lane.depth[index], lane.levels - 1);
          const start = label + (lane.start[index] - range.from) * perNs;
          const left = Math.max(start, label);
          const right = Math.min(start + lane.length[index] * perNs, w);
          // At most one rectangle for each column of pixels and level.
          if (right < label || right - left < 1 && left < drawnTo[level]) continue;
          drawnTo[level] = Math.max(right, left + 0.7);
          const name = lane.names[index];
          if (!colours.has(name)) colours.set(name, colour(lane.kind, name, dark));
          context.fillStyle = colours.get(name);
          context.fillRect(left, lane.top + level * row, Math.max(right - left - (isFlame ? 1 : 0), 0.7), row - 2);
          if (right - left > 46 && matches[name]) {
            context.fillStyle = dark ? "#000" : "#fff";
            context.save();
            context.beginPath();
            context.rect(left, lane.top + level * row, right - left - 2, row);
            context.clip();
            context.fillText(data.names[name], left + 3, lane.top + level * row + 10);
            context.restore();
          }
        }
      }
      if (selected) {
        context.fillStyle = dark ? "rgba(255,255,255,.14)" : "rgba(11,98,168,.14)";
        context.fillRect(x(selected.from), 0, Math.max(x(selected.to) - x(selected.from), 1), h);
      }
      if (hover) drawHint(context, hover, w, h);
    };
    const under = (px, py) => {
      const lane = data.lanes.find((one) => py >= one.top && py < one.top + one.levels * row);
      if (!lane || px < label) return null;
      const [at, level] = [ns(px), Math.floor((py - lane.top) / row)];
      const near = (range.to - range.from) / place.width;
      for (let index = firstOf(lane); index < lane.start.length && lane.start[index] <= at + near; index++) {
        if (Math.min(lane.depth[index], lane.levels - 1) === level && lane.start[index] + lane.length[index] >= at - near) return { lane, index };
      }
      return null;
    };
    // Time of each lane inside the selection, events cut at its ends. Nested events are not counted again.
    const total = () => {
      const parts = data.lanes.map((lane) => {
        let [time, events] = [0, 0];
        const causes = new Map();
        for (let index = 0; index < lane.start.length && lane.start[index] < selected.to; index++) {
          const [from, to] = [lane.start[index], lane.start[index] + lane.length[index]];
          if (to <= selected.from || !matches[lane.names[index]]) continue;
          events += lane.count.length ? lane.count[index] : 1;
          const own = Math.min(to, selected.to) - Math.max(from, selected.from);
          if (lane.depth[index] === 0 || wanted) time += own;
          if (lane.kind === "idle") causes.set(lane.names[index], (causes.get(lane.names[index]) ?? 0) + own);
        }
        return [lane, time, events, [...causes].sort((a, b) => b[1] - a[1])];
      });
      const said = parts.filter(([, , events]) => events).slice(0, 6);
      const why = (causes) => causes.slice(0, 3).map(([name, time]) => `${data.names[name].replace(/^idle[:,] /, "")} ${words(time)}`).join(", ");
      const say = ([lane, time, events, causes]) =>
        `${lane.name}: ${words(time)} ${causes.length ? `(${why(causes)})` : `in ${events.toLocaleString("en")} ${noun}`}`;
      sum.textContent = `${words(selected.to - selected.from)} selected: ${said.map(say).join("; ")}`;
      sum.dataset.ns = JSON.stringify(parts.map(([lane, time, events, causes]) => ({
        lane: lane.name, ns: time, events, causes: Object.fromEntries(causes.map(([name, time]) => [data.names[name], time])),
      })));
    };
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = { px: event.offsetX, shift: event.shiftKey, range: { ...range } };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const { offsetX: px, offsetY: py } = event;
      if (drag?.shift) {
        const by = ((px - drag.px) / place.width) * (drag.range.to - drag.range.from);
        show(drag.range.from - by, drag.range.to - by);
        return;
      }
      if (drag && Math.abs(px - drag.px) > 2) {
        const [a, b] = [ns(drag.px), ns(px)].sort((left, right) => left - right);
        selected = { from: Math.max(a, 0), to: Math.min(b, data.span) };
        total();
      }
      const found = under(px, py);
      hover = found && {
        x: px,
        y: py,
        text: data.names[found.lane.names[found.index]].slice(0, 160),
        more: `${words(found.lane.length[found.index])} at ${words(found.lane.start[found.index])}${found.lane.count[found.index] > 1 ? `, with ${found.lane.count[found.index] - 1} neighbours` : ""}`,
      };
      redraw();
    });
    canvas.addEventListener("pointerup", () => (drag = null));
    canvas.addEventListener("pointerleave", () => {
      hover = null;
      redraw();
    });
    canvas.addEventListener("dblclick", (event) => {
      const found = under(event.offsetX, event.offsetY);
      if (!found) return show(0, data.span);
      const [from, length] = [found.lane.start[found.index], found.lane.length[found.index]];
      show(from - length * 0.02, from + length * 1.02);
    });
    part(".all").addEventListener("click", () => show(0, data.span));
    find.addEventListener("input", () => {
      wanted = find.value.toLowerCase();
      data.names.forEach((name, index) => (matches[index] = name.toLowerCase().includes(wanted)));
      if (selected) total();
      redraw();
    });
    new ResizeObserver(redraw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    draw();
    if (!isFlame) {
      timeline = {
        origin: data.origin,
        reveal: (from, to) => {
          show(from - (to - from) / 4, to + (to - from) / 4);
          canvas.closest("details").open = true;
          canvas.scrollIntoView({ block: "center" });
          canvas.focus({ preventScroll: true });
        },
      };
    }
    canvas.dataset.ready = performance.now().toFixed(1);
  };

  for (const view of document.querySelectorAll(".view")) {
    inflate(byId(`data-${view.dataset.of}`).content.textContent)
      .then((data) => (view.dataset.of === "requests" ? requestsView(view, data, () => timeline) : lanesView(view, data)))
      .catch((error) => (view.querySelector(".about").textContent = `Cannot draw this chart: ${error}`));
  }
