// Charts as SVG, each with its numbers as a table for those who do not see it.
import { html, useEffect, useRef, useState } from "./html.js";
import { day, number, percent, s } from "./strings.js";

const HEIGHT = 180;
const LEFT = 40;
const BOTTOM = 22;
const TOP = 8;

/** The width of an element, so that text in charts has one size everywhere. */
function useWidth() {
  const ref = useRef(null);
  const [width, setWidth] = useState(640);
  useEffect(() => {
    const sized = new ResizeObserver(([entry]) => setWidth(Math.max(240, Math.round(entry.contentRect.width))));
    sized.observe(ref.current);
    return () => sized.disconnect();
  }, []);
  return [ref, width];
}

const ticksOf = (most) => {
  if (most <= 4) return Array.from({ length: Math.max(1, most) + 1 }, (_, i) => i);
  const size = 10 ** Math.floor(Math.log10(most));
  const step = [0.2, 0.5, 1, 2].map((each) => each * size).find((each) => most / each <= 5) || size;
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, i) => Math.round(i * step * 100) / 100);
};

const Axis = ({ ticks, y, shown, width }) => ticks.map(
  (tick) => html`<g key=${tick} class="tick"><line x1=${LEFT} x2=${width} y1=${y(tick)} y2=${y(tick)} /><text x=${LEFT - 6} y=${y(tick) + 4} text-anchor="end">${shown(tick)}</text></g>`,
);

const Days = ({ starts, x, width }) => {
  const every = Math.max(1, Math.ceil(starts.length / Math.max(2, Math.floor(width / 90))));
  return starts.map((start, i) => (i % every ? null : html`<text key=${start} class="day" x=${x(i)} y=${HEIGHT - 6}>${day(start)}</text>`));
};

const Table = ({ starts, series, shown }) => html`
  <div class="unseen"><table><caption>${series.map((each) => each.label).join(", ")}</caption>
    <thead><tr><th>${s.range}</th>${series.map((each) => html`<th key=${each.label}>${each.label}</th>`)}</tr></thead>
    <tbody>${starts.map((start, i) => html`<tr key=${start}><th>${day(start)}</th>${series.map((each) => html`<td key=${each.label}>${shown(each.values[i])}</td>`)}</tr>`)}</tbody></table></div>`;

/** Stacked bars: counts of several series in equal parts of a range. */
export function Bars({ starts, series, label }) {
  const [figure, width] = useWidth();
  const [at, setAt] = useState(null);
  const sums = starts.map((_, i) => series.reduce((sum, each) => sum + (each.values[i] || 0), 0));
  const ticks = ticksOf(Math.max(1, ...sums));
  const most = ticks[ticks.length - 1];
  const y = (value) => TOP + (1 - value / most) * (HEIGHT - TOP - BOTTOM);
  const slot = (width - LEFT) / starts.length;
  const x = (i) => LEFT + i * slot;
  return html`<figure class="chart" ref=${figure}><svg viewBox=${`0 0 ${width} ${HEIGHT}`} role="img" aria-label=${label} onMouseLeave=${() => setAt(null)}>
      <${Axis} width=${width} ticks=${ticks} y=${y} shown=${number} /><${Days} width=${width} starts=${starts} x=${x} />
      ${starts.map((start, i) => {
        let below = 0;
        return html`<g key=${start} onMouseEnter=${() => setAt(i)}><rect class="slot ${at === i ? "at" : ""}" x=${x(i)} y=${TOP} width=${slot} height=${HEIGHT - TOP - BOTTOM} />
          ${series.map((each) => {
            const value = each.values[i] || 0;
            const top = y(below + value);
            const height = y(below) - top;
            below += value;
            return value ? html`<rect key=${each.name} class="fill-${each.name}" x=${x(i) + slot * 0.14} y=${top} width=${slot * 0.72} height=${Math.max(1, height)} rx="1.5" />` : null;
          })}</g>`;
      })}</svg>
    <figcaption class="legend">${series.map((each) => html`<span key=${each.name}><i class="dot bg-${each.name}"></i>${each.label} <b>${number(at === null ? each.values.reduce((a, b) => a + b, 0) : each.values[at])}</b></span>`)}
      ${at !== null && html`<span class="quiet">${day(starts[at])}</span>`}</figcaption><${Table} starts=${starts} series=${series} shown=${number} /></figure>`;
}

/** Shares over time, each with the band of its interval: points are {at, value, low, high}. */
export function Shares({ points, label, reference, short }) {
  const height = short ? 120 : HEIGHT;
  const [figure, width] = useWidth();
  const [at, setAt] = useState(null);
  const times = points.map((each) => new Date(each.at).getTime());
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const x = (i) => LEFT + 6 + (last === first ? 0.5 : (times[i] - first) / (last - first)) * (width - LEFT - 12);
  const y = (value) => TOP + (1 - value) * (height - TOP - BOTTOM);
  const path = (name) => points.map((each, i) => `${i ? "L" : "M"}${x(i).toFixed(1)} ${y(each[name]).toFixed(1)}`).join("");
  const band = `${path("high")}${points.map((_, i) => points.length - 1 - i).map((i) => `L${x(i).toFixed(1)} ${y(points[i].low).toFixed(1)}`).join("")}Z`;
  const move = (event) => {
    const box = figure.current.getBoundingClientRect();
    const where = ((event.clientX - box.left) / box.width) * width;
    setAt(points.reduce((best, _, i) => (Math.abs(x(i) - where) < Math.abs(x(best) - where) ? i : best), 0));
  };
  const shown = points[at ?? points.length - 1];
  return html`<figure class="chart" ref=${figure}><svg viewBox=${`0 0 ${width} ${height}`} role="img" aria-label=${label} onMouseMove=${move} onMouseLeave=${() => setAt(null)}>
      <${Axis} width=${width} ticks=${short ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]} y=${y} shown=${percent} />
      ${reference !== undefined && html`<line class="reference" x1=${LEFT} x2=${width} y1=${y(reference)} y2=${y(reference)} />`}
      <text class="day" x=${LEFT} y=${height - 6}>${day(points[0].at)}</text>${last > first && html`<text class="day" x=${width} text-anchor="end" y=${height - 6}>${day(points[points.length - 1].at)}</text>`}
      <path class="interval" d=${band} /><path class="mean" d=${path("value")} />
      ${points.length <= 80 && points.map((each, i) => html`<circle key=${i} class="point ${each.success === false ? "bad" : ""}" cx=${x(i)} cy=${y(each.value)} r=${at === i ? 4.5 : 2.6} />`)}</svg>
    <figcaption class="legend"><span>${day(shown.at)}</span><span><b>${percent(shown.value)}</b></span><span class="quiet">${s.memory.interval(percent(shown.low), percent(shown.high))}</span>${shown.note && html`<span class="quiet">${shown.note}</span>`}</figcaption>
    <div class="unseen"><table><caption>${label}</caption><tbody>${points.slice(-60).map((each, i) => html`<tr key=${i}><th>${day(each.at)}</th><td>${percent(each.value)}</td><td>${s.memory.interval(percent(each.low), percent(each.high))}</td></tr>`)}</tbody></table></div></figure>`;
}
