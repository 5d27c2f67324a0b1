// Painting calls on a canvas: stacked tokens, stepped lines, axes. The timeline and both strips of a
// comparison are painted by this alone.
import { colour, painted } from "./colours";
import { lowerBound, type Film, type StackBy } from "./film";

/** Where on the canvas, in pixels, and which calls in it: `from` up to `to`, which is exclusive; `most` is at the top. */
export interface Area {
  left: number;
  top: number;
  wide: number;
  high: number;
  from: number;
  to: number;
  most: number;
}

const FONT = "10.5px system-ui, sans-serif";
const LABEL = 60; // pixels between labels of calls
const LINE = 28; // pixels between lines of the grid

/** A canvas made ready for so many pixels of the page, and the pen for it. */
export function penOf(canvas: HTMLCanvasElement, wide: number, high: number): CanvasRenderingContext2D {
  const ratio = devicePixelRatio || 1;
  canvas.width = wide * ratio;
  canvas.height = high * ratio;
  canvas.style.width = `${wide}px`;
  canvas.style.height = `${high}px`;
  const pen = canvas.getContext("2d")!;
  pen.scale(ratio, ratio);
  pen.font = FONT;
  pen.textBaseline = "middle";
  return pen;
}

/** The calls in view, as indexes; the end is exclusive. */
function inView({ from, to }: Area, calls: number): [number, number] {
  return [Math.max(0, Math.floor(from)), Math.min(calls, Math.ceil(to))];
}

function xOf(area: Area, at: number): number {
  return area.left + ((at - area.from) * area.wide) / (area.to - area.from);
}

function yOf(area: Area, value: number): number {
  return area.top + area.high * (1 - value / area.most);
}

/** What lies outside the area is not painted. */
export function within(pen: CanvasRenderingContext2D, area: Area, paint: () => void): void {
  pen.save();
  pen.beginPath();
  pen.rect(area.left, area.top, area.wide, area.high);
  pen.clip();
  paint();
  pen.restore();
}

/** The tokens of each call, stacked: the sum of each group and of all before it as one outline. */
export function paintStack(pen: CanvasRenderingContext2D, shown: Film, by: StackBy, area: Area): void {
  const { keys, sums } = shown.stack(by);
  const [first, end] = inView(area, shown.calls);
  const below = new Float64Array(end);
  keys.forEach((key, k) => {
    const above = below.slice();
    for (let at = first; at < end; at++) above[at]! += sums[k]![at]!;
    pen.fillStyle = painted(colour(by, key));
    pen.beginPath();
    pen.moveTo(xOf(area, first), yOf(area, 0));
    for (let at = first; at < end; at++) stepTo(pen, area, at, above[at]!);
    for (let at = end - 1; at >= first; at--) {
      pen.lineTo(xOf(area, at + 1), yOf(area, below[at]!));
      pen.lineTo(xOf(area, at), yOf(area, below[at]!));
    }
    pen.fill();
    below.set(above);
  });
}

function stepTo(pen: CanvasRenderingContext2D, area: Area, at: number, value: number): void {
  pen.lineTo(xOf(area, at), yOf(area, value));
  pen.lineTo(xOf(area, at + 1), yOf(area, value));
}

/** A value of each call as a line of steps, which is broken where there is none. */
export function paintSteps(pen: CanvasRenderingContext2D, values: ArrayLike<number | null>, ink: string, area: Area, dash: number[] = []): void {
  const [first, end] = inView(area, values.length);
  pen.strokeStyle = painted(ink);
  pen.lineWidth = 1.5;
  pen.setLineDash(dash);
  pen.beginPath();
  for (let at = first; at < end; at++) {
    const value = values[at];
    if (value === null || value === undefined) continue;
    if (at === first || (values[at - 1] ?? null) === null) pen.moveTo(xOf(area, at), yOf(area, value));
    stepTo(pen, area, at, value);
  }
  pen.stroke();
  pen.setLineDash([]);
}

/** The budget of each call; null where there was none. */
export function budgetsOf(shown: Film): (number | null)[] {
  const { call, budget } = shown.data.calls;
  return budget.some((one) => one !== null) ? budget : call.map(() => shown.data.budget);
}

/** The greatest of some values in a stretch of calls, at least 1. */
export function mostOf(columns: ArrayLike<number | null>[], from: number, to: number): number {
  let most = 1;
  for (const values of columns) {
    for (let at = Math.max(0, Math.floor(from)); at < Math.min(values.length, to); at++) most = Math.max(most, values[at] ?? 0);
  }
  return most;
}

/** Values from 0 up to `most`, so far apart that `room` pixels lie between two: 1, 2 or 5 of a power of ten. */
function ticks(most: number, high: number, room: number): number[] {
  const least = (most * room) / high;
  const power = 10 ** Math.floor(Math.log10(least));
  const by = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= least)!;
  return Array.from({ length: Math.floor(most / by) + 1 }, (_, k) => k * by);
}

/** The values at one side of the area, and, where `lines` says so, a line of the grid at each. */
export function paintScale(pen: CanvasRenderingContext2D, area: Area, told: (value: number) => string, right = false): void {
  pen.textAlign = right ? "left" : "right";
  for (const value of ticks(area.most, area.high, LINE)) {
    const y = yOf(area, value);
    pen.fillStyle = painted("--mute");
    pen.fillText(told(value), right ? area.left + area.wide + 4 : area.left - 8, y);
    pen.fillStyle = painted("--rule");
    if (!right) pen.fillRect(area.left, Math.round(y), area.wide, 1);
  }
}

/** Round numbers of calls under the area, each under the middle of its call. */
export function paintCalls(pen: CanvasRenderingContext2D, shown: Film, area: Area): void {
  const [first, end] = inView(area, shown.calls);
  const [low, high] = [shown.callNumber[first] ?? 0, shown.callNumber[end - 1] ?? 0];
  const [by = 1] = ticks(Math.max(1, high - low), area.wide, LABEL).slice(1);
  const step = Math.max(1, Math.ceil(by));
  pen.fillStyle = painted("--mute");
  pen.textAlign = "center";
  for (let call = Math.max(1, Math.ceil(low / step) * step); call <= high; call += step) {
    const at = lowerBound(shown.callNumber, call);
    const x = xOf(area, at + 0.5);
    if (shown.callNumber[at] === call && x >= area.left && x <= area.left + area.wide) pen.fillText(String(call), x, area.top + area.high + 11);
  }
}
