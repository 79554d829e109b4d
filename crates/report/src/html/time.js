
  const units = [["s", 9], ["ms", 6], ["us", 3], ["ns", 0]];
  const unitOf = (ns) => units.find(([, power]) => Math.abs(ns) >= 10 ** power) ?? units[3];

  // A time as people read it: three digits.
  const words = (ns) => {
    const [unit, power] = unitOf(ns);
    return power ? `${(ns / 10 ** power).toPrecision(3)} ${unit}` : `${Math.round(ns)} ns`;
  };

  // A time to the nanosecond.
  const exactly = (ns) => {
    const [unit, power] = unitOf(Math.round(ns));
    const number = (Math.round(ns) / 10 ** power).toFixed(power);
    return `${power ? number.replace(/\.?0+$/, "") : number} ${unit}`;
  };

  // Round times of a range, at most so many, each with a label of its own. Where absolute labels would be long, they are relative
  // to the first mark, which is then the base.
  const ticks = (from, to, most) => {
    const rough = Math.max((to - from) / Math.max(most, 1), 1);
    const power = 10 ** Math.floor(Math.log10(rough) + 1e-9);
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough * (1 - 1e-9));
    const first = Math.ceil(from / step - 1e-9) * step;
    const relative = to / step >= 2000;
    const [unit, exponent] = unitOf(Math.max(relative ? to - first : to, 1));
    const digits = Math.max(exponent - Math.floor(Math.log10(step) + 1e-9), 0);
    const marks = [];
    for (let count = 0; first + count * step <= to; count++) {
      const value = relative ? count * step : first + count * step;
      marks.push({ at: first + count * step, text: `${relative ? "+" : ""}${(value / 10 ** exponent).toFixed(digits)} ${unit}` });
    }
    return { base: relative ? first : null, marks };
  };
