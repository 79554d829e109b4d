
  // Events that are drawn as one have the name of the first, and no family, stage or cause in common.
  const isMerged = (lane, index) => lane.count.length > 0 && lane.count[index] > 1;
  const MERGED = "merged, not attributed";

  // What is known of an event, and of all that lies in a range, as elements. `go` selects an event: its lane and index.
  const panelOf = (data, panel, go) => {
    const lanes = data.lanes;
    const device = lanes.filter((lane) => lane.isDevice);
    const idle = lanes.filter((lane) => lane.kind === "idle");
    const nameOf = (lane, index) => data.names[lane.names[index]];
    const detailOf = (lane, index) => data.details[lane.detail[index] ?? 0] ?? [];
    const detail = (part) => (lane, index) => data.texts[detailOf(lane, index)[part] ?? 0] || null;
    const [family, stage, operator, shapes, within, launchShape, module] = [0, 1, 2, 3, 4, 5, 6].map(detail);
    const kernelTime = data.ranking.reduce((all, [, time]) => all + time, 0);

    // The event of a number that counts through all lanes.
    const numbered = (number) => {
      for (const lane of lanes) {
        if (number < lane.start.length) return { lane, index: number };
        number -= lane.start.length;
      }
      return null;
    };
    const firstNumber = (lane) => lanes.slice(0, lanes.indexOf(lane)).reduce((all, one) => all + one.start.length, 0);
    const launchOf = (lane, index) => (lane.link.length && lane.link[index] ? numbered(lane.link[index] - 1) : null);
    const launchedBy = (lane, index) => {
      const number = firstNumber(lane) + index + 1;
      const found = [];
      for (const one of device) one.link.forEach((link, at) => link === number && found.push({ lane: one, index: at }));
      return found;
    };
    const idleBefore = (lane, index) => {
      for (const one of idle.filter((one) => one.source === lane.source && one.device === lane.device)) {
        for (let at = firstOf(one, lane.start[index] - 1); at < one.start.length && one.start[at] < lane.start[index]; at++) {
          if (Math.abs(one.start[at] + one.length[at] - lane.start[index]) <= 1) return { lane: one, index: at };
        }
      }
      return null;
    };
    const to = ({ lane, index }, text) => button(text, () => go(lane, index));
    const facts = (rows) => {
      const list = element("dl");
      for (const [name, ...values] of rows.filter(([, value]) => value)) {
        list.append(element("div", element("dt", name), element("dd", ...values)));
      }
      list.className = "facts";
      return list;
    };

    const sumTables = (from, to, wanted) => {
      const [span, most] = [to - from, 12];
      const counted = (lane, index) => wanted(lane.names[index]);
      const by = (title, among, key) => {
        const found = sumBy(among, from, to, (lane, index) => (counted(lane, index) ? (isMerged(lane, index) ? MERGED : key(lane, index)) : null));
        if (!found.length) return [];
        const row = ([name, { time, events }]) => [name, words(time), `${((time / span) * 100).toFixed(1)}%`, events.toLocaleString("en")];
        const rest = found.length > most ? [[`${found.length - most} more`, words(found.slice(most).reduce((all, [, one]) => all + one.time, 0)), "", ""]] : [];
        return [tableOf([title, "time", "of the range", "events"], [...found.slice(0, most).map(row), ...rest])];
      };
      const tables = element("div",
        ...by("kernel family", device, family), ...by("stage", device, stage), ...by("module", device, module), ...by("operator", device, operator),
        ...by("idle cause", idle, (lane, index) => nameOf(lane, index).replace(/^idle: /, "")));
      tables.className = "sums";
      return tables;
    };
    const busyIn = (from, to) => device.map((lane) => [`${lane.name} busy`, words(timeIn(lane, from, to).time)]);

    const copyable = (text) => {
      const field = element("input");
      [field.readOnly, field.value] = [true, text];
      field.setAttribute("aria-label", "reference to copy");
      field.addEventListener("focus", () => field.select());
      const copy = button("copy", () => {
        field.select();
        document.execCommand("copy");
        copy.textContent = "copied";
      });
      const line = element("p", "reference: ", field, " ", copy);
      line.className = "reference";
      return line;
    };

    const ofDevice = (lane, index) => {
      const [launch, gap] = [launchOf(lane, index), idleBefore(lane, index)];
      const place = data.ranking.findIndex(([name]) => name === lane.names[index]);
      const [, total, calls] = data.ranking[place] ?? [];
      const after = launch && lane.start[index] - launch.lane.start[launch.index];
      return [
        ["family", family(lane, index)], ["stage", stage(lane, index)], ["operator", operator(lane, index)], ["module", module(lane, index)],
        ["shapes", shapes(lane, index)], ["range", within(lane, index)], ["launch", launchShape(lane, index)],
        ["launched by", launch && to(launch, `${nameOf(launch.lane, launch.index)} at ${exactly(launch.lane.start[launch.index])}`), launch && ` ${words(after)} before its start`],
        ["idle before", gap && to(gap, `${words(gap.lane.length[gap.index])}: ${nameOf(gap.lane, gap.index).replace(/^idle: /, "")}`)],
        ...(Object.hasOwn(data.counters, nameOf(lane, index)) ? data.counters[nameOf(lane, index)] : []),
        ["ranking", place >= 0 && `number ${place + 1} of ${data.ranking.length.toLocaleString("en")} by time: ${words(total)} in ${calls.toLocaleString("en")} calls, ${((total / kernelTime) * 100).toFixed(1)}% of device work`],
      ];
    };
    const ofHost = (lane, index) => {
      const found = lane.kind === "calls" ? launchedBy(lane, index) : [];
      const first = found.slice(0, 5).map((one) => to(one, `${nameOf(one.lane, one.index).slice(0, 60)} at ${exactly(one.lane.start[one.index])}`));
      return [["launches", ...first, found.length > 5 && ` and ${found.length - 5} more`].filter((one) => one !== false)];
    };

    const describe = (lane, index) => {
      const [start, length] = [lane.start[index], lane.length[index]];
      const many = isMerged(lane, index) ? `${lane.count[index]} events, merged; llm-perf report --full keeps them apart` : null;
      const rows = [
        ["lane", lane.name], ["start", exactly(start)], ["duration", exactly(length)], ["merged", many],
        ...(lane.isDevice ? ofDevice(lane, index) : ofHost(lane, index)),
        ...(["stages", "steps", "ranges"].includes(lane.kind) && length ? busyIn(start, start + length) : []),
      ];
      const holds = ["stages", "steps", "ranges", "operators"].includes(lane.kind) && length > 0;
      panel.replaceChildren(
        element("h3", nameOf(lane, index)), facts(rows),
        ...(holds ? [element("p", "Device work while it was open:"), sumTables(start, start + length, () => true)] : []),
        copyable(`${data.reference ? `${data.reference}: ` : ""}${nameOf(lane, index)}, ${lane.name}, ${exactly(start)} for ${exactly(length)}`),
      );
    };
    const describeRange = (from, to, wanted) => {
      panel.replaceChildren(element("h3", `${exactly(to - from)} selected, from ${exactly(from)}`), sumTables(from, to, wanted));
    };
    return { describe, describeRange, nameOf };
  };
