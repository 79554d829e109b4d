
  // The timeline, once it is drawn.
  let timeline = null;

  // What the address says of a view: `#timeline@FROM,TO` and the lane and start of what is selected.
  const addressed = (id) => {
    const [name, rest] = hashText().split("@");
    if (name !== id || !rest) return null;
    const [from, to, lane, start] = rest.split(",").map(Number);
    return [from, to].every(Number.isFinite) ? { from, to, lane, start } : null;
  };

  // Draws lanes of events into an element: the timeline, and flame graphs, whose time is the width of their frames.
  const lanesView = (view, data) => {
    const part = (name) => view.querySelector(name);
    const canvas = part("canvas");
    const [find, sum, about, panel, hits] = [".find", ".sum", ".about", ".panel", ".hits"].map(part);
    const lanes = lanesOf(data);
    const isFlame = lanes.some((lane) => lane.kind === "frames");
    const id = view.closest("section").id;
    // A section that is closed has no width yet.
    const narrow = (canvas.clientWidth || document.body.clientWidth) < 600;
    const [label, gap, axis] = [narrow ? 96 : 210, 7, 22];
    const noun = isFlame ? "frames" : "events";
    const context = canvas.getContext("2d");
    const [folded, pinned] = [new Set(), new Set()];
    let [wanted, matches, found, at] = ["", null, [], -1];
    let [selected, chosen, hover, drag, height, order] = [null, null, null, null, 0, lanes];

    const recorded = lanes.filter((lane) => !["idle", "stages", "steps"].includes(lane.kind));
    const shown = recorded.reduce((all, lane) => all + lane.start.length, 0);
    about.textContent = data.gathered
      ? `${data.events.toLocaleString("en")} ${noun}, shown as ${shown.toLocaleString("en")} after merging sub-pixel neighbours; ${byId("data-server") ? "zoom in to see each of them." : "llm-perf report --full keeps them all, llm-perf show --page serves them."}`
      : `${data.events.toLocaleString("en")} ${noun}.`;
    if (data.note) about.textContent += ` ${data.note}`;
    // Many lanes are shown low at first, so that ranks are seen side by side.
    if (lanes.length > 16) lanes.filter((lane) => ["operators", "calls"].includes(lane.kind)).forEach((lane) => folded.add(lane));

    // Where each lane is. What a device does is one level high as a rule, and has room for shares.
    const lay = () => {
      order = [...lanes.filter((lane) => pinned.has(lane)), ...lanes.filter((lane) => !pinned.has(lane))];
      height = axis;
      for (const lane of order) {
        const most = folded.has(lane) ? 1 : isFlame ? 64 : 8;
        lane.levels = Math.min(lane.depths, most);
        lane.row = folded.has(lane) ? 12 : isFlame ? 18 : lane.isDevice || lane.kind === "idle" ? 26 : 15;
        lane.top = height;
        height += lane.levels * lane.row + gap;
      }
      height += 4;
      canvas.style.height = `${height}px`;
      canvas.dataset.lanes = JSON.stringify(order.map((lane) => ({ name: lane.name, left: label, top: lane.top, height: lane.levels * lane.row - 2 })));
    };
    lay();
    canvas.dataset.origin = data.origin;

    const reader = () => (hover ? ns(hover.x) : chosen ? chosen.lane.start[chosen.index] + chosen.lane.length[chosen.index] / 2 : NaN);
    const place = { span: data.span, label, width: canvas.clientWidth - label, at: reader };
    const redraw = onceAFrame(() => draw());
    let ready = false;
    let keeping = 0;
    const keep = () => {
      if (!ready) return;
      clearTimeout(keeping);
      keeping = setTimeout(() => {
        const place = [Math.round(range.from), Math.round(range.to)];
        if (chosen) place.push(lanes.indexOf(chosen.lane), chosen.lane.start[chosen.index]);
        try {
          history.replaceState(null, "", `#${id}@${place.join(",")}`);
        } catch {
          // A page inside another may have no address of its own.
        }
      }, 250);
    };
    const { range, show, ns, x } = zoomable(canvas, place, redraw, {
      f: () => chosen && reveal(chosen.lane, chosen.index),
      m: () => chosen && select(chosen.lane.start[chosen.index], chosen.lane.start[chosen.index] + chosen.lane.length[chosen.index]),
      ".": () => stepBy(1),
      ",": () => stepBy(-1),
      ArrowUp: () => laneBy(-1),
      ArrowDown: () => laneBy(1),
      n: () => nextHit(1),
      p: () => nextHit(-1),
      "/": () => find.focus(),
      Escape: () => {
        [selected, chosen, sum.textContent] = [null, null, ""];
        panel.replaceChildren();
        show(0, data.span);
      },
    }, keep);
    const isWanted = (name) => !matches || matches[name] === 1;
    const go = (lane, index) => {
      choose(lane, index);
      const [start, end] = [lane.start[index], lane.start[index] + lane.length[index]];
      if (start < range.from || end > range.to) {
        const half = Math.max((range.to - range.from) / 2, end - start);
        show((start + end) / 2 - half, (start + end) / 2 + half);
      }
    };
    const { describe, describeRange, nameOf } = panelOf(data, panel, go);
    const choose = (lane, index) => {
      chosen = { lane, index };
      sum.textContent = `${nameOf(lane, index).slice(0, 80)}: ${words(lane.length[index])}`;
      describe(lane, index);
      redraw();
      keep();
    };
    const reveal = (lane, index) => {
      const [from, length] = [lane.start[index], Math.max(lane.length[index], 1)];
      show(from - length * 0.02, from + length * 1.02);
    };
    const firstSeen = (lane) => {
      let index = firstOf(lane, range.from);
      while (index < lane.start.length && lane.start[index] + lane.length[index] < range.from) index++;
      return index;
    };
    const stepBy = (by) => {
      const lane = chosen?.lane ?? order.find((lane) => lane.start.length);
      const index = chosen ? chosen.index + by : lane ? firstSeen(lane) : 0;
      if (lane && index >= 0 && index < lane.start.length) go(lane, index);
    };
    const laneBy = (by) => {
      if (!chosen) return stepBy(1);
      const filled = order.filter((lane) => lane.start.length);
      const next = filled[filled.indexOf(chosen.lane) + by];
      const time = chosen.lane.start[chosen.index];
      if (next) go(next, Math.max(Math.min(next.start.findLastIndex((start) => start <= time), next.start.length - 1), 0));
    };

    // A page that is served asks for every event of what its reader looks at, and shows all of it merged until they come.
    const served = byId("data-server") && id === "timeline" && data.gathered;
    const merged = served ? lanes.map((lane) => ({ ...lane })) : [];
    let [loaded, asked] = [null, ""];
    const put = (columns) => {
      const [lane, start] = chosen ? [chosen.lane, chosen.lane.start[chosen.index]] : [];
      lanes.forEach((one, at) => {
        const { start, length, names, depth, count, busy, detail, link, longest, depths } = columns[at];
        Object.assign(one, { start, length, names, depth, count, busy, detail, link, longest, depths: Math.max(one.depths, depths) });
      });
      const index = lane ? lane.start.indexOf(start) : -1;
      chosen = index >= 0 ? { lane, index } : null;
      lay();
      collectHits();
      redraw();
    };
    const refine = async () => {
      if (loaded && range.from >= loaded[0] && range.to <= loaded[1]) return;
      if (loaded) {
        loaded = null;
        put(merged);
      }
      const length = range.to - range.from;
      const window = [range.from - length, range.to + length].map((at) => Math.round(Math.min(Math.max(at, 0), data.span)));
      if (length > data.span / 2 || asked === window.join(",")) return;
      asked = window.join(",");
      await new Promise((later) => setTimeout(later, 150));
      if (asked !== window.join(",")) return;
      const answer = await fetch(`events?${asked}`);
      const columns = answer.ok ? lanesOf(await answer.json()) : null;
      if (!columns || range.from < window[0] || range.to > window[1]) return;
      loaded = window;
      put(columns);
      canvas.dataset.loaded = window.join(",");
    };

    const classOf = (name) => data.colours[name];
    const colours = () => data.classes.map(({ name }) => colourOf(name));

    // One level of one class on top of another, from the whole down, so that the edges of what is stacked stay exact.
    const drawLane = (lane, palette) => {
      const columns = Math.max(Math.floor(place.width), 1);
      const wide = [];
      const collect = (index, level, left, right) => right - left > 3 && wide.push([index, level, left, right]);
      const cover = occupancy(lane, lane.levels, range, columns, classOf, collect);
      const classes = [...cover.keys()].sort((a, b) => a - b);
      const inner = lane.row - 2;
      const total = new Float32Array(lane.levels * columns);
      const sumsOf = classes.map((name) => cover.get(name).forEach((share, at) => (total[at] += share)) ?? total.slice());
      context.globalAlpha = matches ? 0.3 : 1;
      for (let index = classes.length - 1; index >= 0; index--) {
        const [shares, sum] = [cover.get(classes[index]), sumsOf[index]];
        context.fillStyle = palette[classes[index]];
        for (let level = 0; level < lane.levels; level++) {
          const bottom = lane.top + level * lane.row + inner;
          // The upper edge of all is exact; those below it are rounded, so that no pixel is painted in part twice.
          const tall = (at) => Math.min(sum[at] === total[at] ? sum[at] * inner : Math.min(Math.round(sum[at] * inner), Math.floor(total[at] * inner)), inner);
          for (let px = level * columns; px < (level + 1) * columns; ) {
            if (shares[px] === 0) {
              px++;
              continue;
            }
            const [from, height] = [px, tall(px)];
            while (px < (level + 1) * columns && shares[px] > 0 && tall(px) === height) px++;
            context.fillRect(label + from - level * columns, bottom - height, px - from, height);
          }
        }
      }
      context.globalAlpha = 1;
      for (const [index, level, left, right] of wide) {
        const [from, y, colour] = [label + left, lane.top + level * lane.row, palette[classOf(lane.names[index])]];
        context.globalCompositeOperation = "source-atop";
        context.fillStyle = "rgba(0,0,0,.28)";
        context.fillRect(Math.floor(from), y, 1, inner);
        context.globalCompositeOperation = "source-over";
        if (right - left < 46 || !isWanted(lane.names[index]) || lane.row < 14) continue;
        context.fillStyle = matches ? getComputedStyle(document.body).color : inkOn(colour);
        context.save();
        context.beginPath();
        context.rect(from, y, right - left - 2, lane.row);
        context.clip();
        context.fillText(nameOf(lane, index), from + 4, y + inner / 2 + 4);
        context.restore();
      }
      if (matches) drawHits(lane, palette, inner);
    };

    // What was searched for is drawn last, a pixel wide at least, so that none of it is lost.
    const drawHits = (lane, palette, inner) => {
      const perNs = place.width / (range.to - range.from);
      const drawn = new Float64Array(lane.levels).fill(-1);
      for (let index = firstOf(lane, range.from); index < lane.start.length && lane.start[index] <= range.to; index++) {
        const level = lane.depth[index];
        if (!isWanted(lane.names[index]) || level >= lane.levels) continue;
        const left = Math.max(label + (lane.start[index] - range.from) * perNs, label);
        const right = Math.min(left + Math.max(lane.length[index] * perNs, 1), label + place.width);
        if (right < label || right <= drawn[level]) continue;
        drawn[level] = right;
        context.fillStyle = palette[classOf(lane.names[index])];
        context.fillRect(left, lane.top + level * lane.row, Math.max(right - left, 1), inner);
      }
    };

    const outline = (lane, index, colour) => {
      const level = Math.min(lane.depth[index], lane.levels - 1);
      const [left, right] = [Math.max(x(lane.start[index]), label), Math.min(x(lane.start[index] + lane.length[index]), label + place.width)];
      if (right < label || left > label + place.width) return;
      context.strokeStyle = colour;
      context.lineWidth = 2;
      context.strokeRect(left - 1, lane.top + level * lane.row - 1, Math.max(right - left, 1) + 2, lane.row);
      context.lineWidth = 1;
    };

    // The arrow from a launch to what it launched.
    const drawLink = (colour) => {
      const { lane, index } = chosen;
      if (!lane.isDevice || !lane.link[index]) return;
      let number = lane.link[index] - 1;
      const call = lanes.find((one) => number < one.start.length || ((number -= one.start.length), false));
      if (!call) return;
      const level = Math.min(call.depth[number], call.levels - 1);
      const [fromX, fromY] = [x(call.start[number]), call.top + level * call.row];
      const [toX, toY] = [x(lane.start[index]), lane.top + lane.row];
      context.strokeStyle = colour;
      context.beginPath();
      context.moveTo(fromX, fromY);
      context.bezierCurveTo(fromX, (fromY + toY) / 2, toX, (fromY + toY) / 2, toX, toY);
      context.stroke();
      outline(call, number, colour);
    };

    const draw = () => {
      const w = cleared(canvas, context, height);
      place.width = w - label;
      if (place.width <= 0) return;
      [canvas.dataset.from, canvas.dataset.to] = [range.from, range.to];
      // Without an answer the merged events stay.
      if (served) refine().catch(() => {});
      const text = getComputedStyle(document.body).color;
      drawAxis(context, range, x, axis, w);
      const palette = colours();
      for (const lane of order) {
        context.fillStyle = text;
        const mark = `${folded.has(lane) ? "▸" : "▾"}${pinned.has(lane) ? " ●" : ""} `;
        context.fillText(mark + (lane.name.length > 32 ? `${lane.name.slice(0, 31)}…` : lane.name), 2, lane.top + 11, label - 6);
        drawLane(lane, palette);
      }
      if (selected) {
        context.fillStyle = isDark() ? "rgba(255,255,255,.14)" : "rgba(11,98,168,.14)";
        context.fillRect(x(selected.from), 0, Math.max(x(selected.to) - x(selected.from), 1), height);
      }
      if (chosen) {
        outline(chosen.lane, chosen.index, text);
        drawLink(text);
      }
      if (hover) drawHint(context, hover, w, height);
    };

    const under = (px, py) => {
      const lane = order.find((one) => py >= one.top && py < one.top + one.levels * one.row);
      if (!lane || px < label) return null;
      const [time, level] = [ns(px), Math.floor((py - lane.top) / lane.row)];
      const near = (range.to - range.from) / place.width;
      let best = null;
      for (let index = firstOf(lane, range.from); index < lane.start.length && lane.start[index] <= time + near; index++) {
        const end = lane.start[index] + lane.length[index];
        if (lane.depth[index] !== level || end < time - near) continue;
        // What is under the pointer, else the longest near it; what was searched for before all else.
        const score = (matches && isWanted(lane.names[index]) ? 1e18 : 0) + (lane.start[index] <= time && time < end ? 1e15 : 0) + lane.length[index];
        if (!best || score > best.score) best = { lane, index, score };
      }
      return best;
    };

    // Time of each lane inside the selection, events cut at its ends, overlap counted once.
    const select = (from, to) => {
      selected = { from: Math.max(from, 0), to: Math.min(to, data.span) };
      const parts = lanes.map((lane) => {
        const causes = lane.kind === "idle" ? sumBy([lane], selected.from, selected.to, (one, index) => (isWanted(one.names[index]) ? (isMerged(one, index) ? MERGED : nameOf(one, index)) : null)) : [];
        return { lane, ...timeIn(lane, selected.from, selected.to, isWanted), causes };
      });
      const said = parts.filter(({ events }) => events).slice(0, 6);
      const say = ({ lane, time, events }) => `${lane.name}: ${words(time)}${lane.kind === "idle" ? "" : ` in ${events.toLocaleString("en")} ${noun}`}`;
      sum.textContent = `${words(selected.to - selected.from)} selected: ${said.map(say).join("; ")}`;
      sum.dataset.ns = JSON.stringify(parts.map(({ lane, time, events, causes }) => ({
        lane: lane.name, ns: time, events, causes: Object.fromEntries(causes.map(([name, { time }]) => [name, time])),
      })));
      if (!isFlame) describeRange(selected.from, selected.to, isWanted);
      redraw();
    };

    // Sums of millions of events are made once a frame, however often the pointer moves.
    const sumSoon = onceAFrame(() => selected && select(selected.from, selected.to));

    canvas.addEventListener("pointerdown", (event) => {
      drag = { px: event.offsetX, py: event.offsetY, shift: event.shiftKey, range: { ...range }, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const { offsetX: px, offsetY: py } = event;
      if (drag && Math.abs(px - drag.px) > 2) drag.moved = true;
      if (drag?.shift) {
        const by = ((px - drag.px) / place.width) * (drag.range.to - drag.range.from);
        return show(drag.range.from - by, drag.range.to - by);
      }
      if (drag?.moved) {
        const [from, to] = [ns(drag.px), ns(px)].sort((left, right) => left - right);
        selected = { from: Math.max(from, 0), to: Math.min(to, data.span) };
        sumSoon();
      }
      const one = under(px, py);
      hover = one && {
        x: px,
        y: py,
        text: nameOf(one.lane, one.index).slice(0, 160),
        more: `${exactly(one.lane.length[one.index])}${isFlame ? `, ${((one.lane.length[one.index] / one.lane.whole) * 100).toFixed(1)}% of ${one.lane.name}` : ` at ${exactly(one.lane.start[one.index])}`}`,
        rest: [isMerged(one.lane, one.index) ? `with ${one.lane.count[one.index] - 1} neighbours` : ""],
      };
      redraw();
    });
    canvas.addEventListener("pointerup", (event) => {
      const { moved, px } = drag ?? { moved: true };
      drag = null;
      if (moved) return selected && select(selected.from, selected.to);
      const lane = order.find((one) => event.offsetY >= one.top && event.offsetY < one.top + one.levels * one.row);
      if (px < label && lane) return fold(lane);
      const one = under(event.offsetX, event.offsetY);
      if (one) choose(one.lane, one.index);
    });
    canvas.addEventListener("pointerleave", () => {
      hover = null;
      redraw();
    });
    canvas.addEventListener("dblclick", (event) => {
      const one = under(event.offsetX, event.offsetY);
      if (one) reveal(one.lane, one.index);
      else show(0, data.span);
    });
    part(".all").addEventListener("click", () => show(0, data.span));

    // The search: how many there are, and the next of them.
    const total = () => {
      if (!matches) return 0;
      if (!data.gathered) return found.length;
      return data.counts.reduce((all, count, name) => all + (matches[name] ? count : 0), 0);
    };
    const nextHit = (by) => {
      if (!found.length) return;
      at = (at + by + found.length) % found.length;
      const [lane, index] = found[at];
      go(lane, index);
      sayHits();
    };
    const sayHits = () => {
      const place = at >= 0 ? `${(at + 1).toLocaleString("en")} of ` : "";
      const merged = data.gathered && found.length < total() ? `, ${found.length.toLocaleString("en")} of them apart` : "";
      hits.textContent = wanted ? `${place}${total().toLocaleString("en")} ${total() === 1 ? "hit" : "hits"}${merged}` : "";
    };
    const collectHits = () => {
      [found, at] = [[], -1];
      if (matches) {
        for (const lane of order) lane.names.forEach((name, index) => matches[name] && found.push([lane, index]));
        found.sort(([one, a], [other, b]) => one.start[a] - other.start[b]);
      }
      sayHits();
    };
    find.addEventListener("input", () => {
      wanted = find.value.trim().toLowerCase();
      matches = wanted ? Uint8Array.from(data.names, (name) => (name.toLowerCase().includes(wanted) ? 1 : 0)) : null;
      collectHits();
      if (selected) select(selected.from, selected.to);
      redraw();
    });
    find.addEventListener("keydown", (event) => {
      if (event.key === "Enter") nextHit(event.shiftKey ? -1 : 1);
    });
    part(".before").addEventListener("click", () => nextHit(-1));
    part(".next").addEventListener("click", () => nextHit(1));

    // Lanes fold and are pinned from a list, so that keys reach them too.
    const toggles = new Map();
    const toggle = (set, lane) => {
      if (!set.delete(lane)) set.add(lane);
      for (const [made, [of, one]] of toggles) made.setAttribute("aria-pressed", String(of.has(one)));
      lay();
      redraw();
    };
    const fold = (lane) => toggle(folded, lane);
    const tracks = part(".tracks ul");
    if (tracks && lanes.length > 1) {
      for (const lane of lanes) {
        const made = [["fold", folded], ["pin", pinned]].map(([text, set]) => {
          const one = button(text, () => toggle(set, lane));
          one.setAttribute("aria-pressed", String(set.has(lane)));
          one.setAttribute("aria-label", `${text} ${lane.name}`);
          toggles.set(one, [set, lane]);
          return one;
        });
        tracks.append(element("li", ...made, ` ${lane.name}`));
      }
    } else part(".tracks")?.remove();

    // The legend is in the order of the lanes, and what takes most time of each kind comes first.
    const kinds = ["stages", "steps", "kernels", "idle", "ranges", "operators", "calls"];
    const entries = data.classes.map((one) => ({ ...one, kind: kinds.length, time: 0 }));
    for (const lane of lanes) {
      lane.names.forEach((name, index) => {
        const entry = entries[classOf(name)];
        entry.kind = Math.min(entry.kind, kinds.indexOf(lane.isDevice ? "kernels" : lane.kind));
        entry.time += lane.length[index];
      });
    }
    entries.sort((one, other) => one.kind - other.kind || other.time - one.time);
    for (const { name, label: text } of entries.filter((one) => one.label)) {
      const swatch = element("i");
      swatch.style.background = colourOf(name);
      part(".legend").append(element("li", swatch, text));
    }

    new ResizeObserver(redraw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    const followAddress = () => {
      const seen = addressed(id);
      if (!seen) return;
      show(seen.from, seen.to);
      const lane = lanes[seen.lane];
      const index = lane ? lane.start.findIndex((start) => start === seen.start) : -1;
      if (index >= 0) choose(lane, index);
    };
    followAddress();
    addEventListener("hashchange", followAddress);
    draw();
    ready = true;
    if (id === "timeline") {
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
