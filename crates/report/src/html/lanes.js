
  // Lanes of events, made ready: times from their differences, and what of a lane lies in a range.
  const lanesOf = (data) => {
    for (const lane of data.lanes) {
      lane.start = sums(lane.start);
      lane.length = Float64Array.from(lane.length);
      lane.link = sums(lane.link);
      // Far-left events can only matter as far back as the longest one reaches.
      lane.longest = lane.length.reduce((a, b) => Math.max(a, b), 0);
      lane.whole = lane.start.reduce((all, start, index) => Math.max(all, start + lane.length[index]), 0);
      lane.depths = lane.depth.reduce((a, b) => Math.max(a, b), 0) + 1;
      lane.isDevice = ["kernels", "copies"].includes(lane.kind);
    }
    return data.lanes;
  };

  // Index of the first event of a lane that reaches beyond a time, or may.
  const firstOf = (lane, from) => {
    let [low, high] = [0, lane.start.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (lane.start[middle] < from - lane.longest) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  // Events put together are busy for a part of their length only.
  const shareOf = (lane, index) => (lane.busy.length && lane.length[index] ? lane.busy[index] / lane.length[index] : 1);

  // Which share of each column of pixels events cover: by level of the lane and class of colour. Exact: nothing is made wider
  // than it is. `each` is told of every event with its ends in pixels.
  const occupancy = (lane, levels, range, columns, classOf, each) => {
    const cover = new Map();
    const perNs = columns / (range.to - range.from);
    for (let index = firstOf(lane, range.from); index < lane.start.length && lane.start[index] <= range.to; index++) {
      const left = Math.max((lane.start[index] - range.from) * perNs, 0);
      const right = Math.min((lane.start[index] + lane.length[index] - range.from) * perNs, columns);
      const level = lane.depth[index];
      if (right < 0 || left > columns || level >= levels) continue;
      if (each) each(index, level, left, right);
      if (right <= left) continue;
      const name = classOf(lane.names[index]);
      if (!cover.has(name)) cover.set(name, new Float32Array(levels * columns));
      const [shares, base, share] = [cover.get(name), level * columns, shareOf(lane, index)];
      const [first, last] = [Math.floor(left), Math.min(Math.floor(right), columns - 1)];
      if (first >= last) shares[base + Math.min(first, columns - 1)] += (right - left) * share;
      else {
        shares[base + first] += (first + 1 - left) * share;
        for (let px = first + 1; px < last; px++) shares[base + px] += share;
        shares[base + last] += (right - last) * share;
      }
    }
    return cover;
  };

  // Time and events of a lane in a range: overlap counts once. `wanted` tells which names count.
  const timeIn = (lane, from, to, wanted = () => true) => {
    let [time, events, until] = [0, 0, from];
    for (let index = firstOf(lane, from); index < lane.start.length && lane.start[index] < to; index++) {
      const end = Math.min(lane.start[index] + lane.length[index], to);
      if (lane.start[index] + lane.length[index] <= from || !wanted(lane.names[index])) continue;
      events += lane.count.length ? lane.count[index] : 1;
      const start = Math.max(lane.start[index], until);
      if (end <= start) continue;
      time += (end - start) * shareOf(lane, index);
      until = end;
    }
    return { time, events };
  };

  // Time of each event in a range, summed by what `key` makes of it, most first.
  const sumBy = (lanes, from, to, key) => {
    const found = new Map();
    for (const lane of lanes) {
      for (let index = firstOf(lane, from); index < lane.start.length && lane.start[index] < to; index++) {
        const [start, end] = [Math.max(lane.start[index], from), Math.min(lane.start[index] + lane.length[index], to)];
        const name = end > start ? key(lane, index) : null;
        if (name === null || name === undefined) continue;
        const sum = found.get(name) ?? { time: 0, events: 0 };
        sum.time += (end - start) * shareOf(lane, index);
        sum.events += lane.count.length ? lane.count[index] : 1;
        found.set(name, sum);
      }
    }
    return [...found].sort((a, b) => b[1].time - a[1].time);
  };
