// The timeline of calls: tokens stacked by role, level, modality or type against the budget, lines to
// switch on, lanes of marks, and the scrubber. All of it is one surface: a drag anywhere scrubs.
import { effect, signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { budgetsOf, mostOf, paintCalls, paintScale, paintStack, paintSteps, penOf, within, type Area } from "./chart";
import { painted, theme } from "./colours";
import { STACKS, type Film } from "./film";
import { clamp, count, short, typedIn } from "./format";
import { notes } from "./notes";
import { Swatch } from "./parts/badges";
import { go, param } from "./place";
import { cursor, film, stackBy, toCall } from "./state";
import { Grow, Link } from "./parts/bits";

const LINES = ["reported", "cached", "cost"] as const;
type Line = (typeof LINES)[number];
const LINE_COLOURS: Record<Line, string> = { reported: "--ink", cached: "--line-cached", cost: "--line-cost" };

interface Lane {
  name: string;
  kinds: string[];
  colour: string;
}

/** The lanes under the chart: each kind of mark has its place, so that none hides another. */
const LANES: Lane[] = [
  { name: "faults", kinds: ["fault_in", "fault_denied", "prefetch"], colour: "--mark-fault" },
  { name: "evictions", kinds: ["evict"], colour: "--mark-evict" },
  { name: "compressions", kinds: ["compress", "shorten"], colour: "--mark-compress" },
  { name: "compactions", kinds: ["compaction"], colour: "--mark-compaction" },
  { name: "pins", kinds: ["pin", "unpin"], colour: "--mark-pin" },
  { name: "marks, notes", kinds: ["mark", "segment"], colour: "--mark-mark" },
];
const LANE = 12;
const FOOT = 14; // room for the line of fidelity
const MANY = 40; // marks of a lane, over which they are drawn thin
const LEFT = 92; // room for the axis and for the names of the lanes
const RIGHT = 46;
const CHART = 96;

/** The lanes that have a mark in this session. */
function lanesOf(shown: Film): Lane[] {
  return LANES.filter((lane) => callsOf(shown, lane).length);
}

/** Whether some calls were recorded and others not: only then their line tells them apart. */
function isMixed(shown: Film): boolean {
  return new Set(shown.data.calls.fidelity).size > 1;
}

const zoom = signal<[number, number] | null>(null);
const width = signal(800);

/** The stretch of calls in view, as indexes; the end is exclusive. */
function stretch(shown: Film): [number, number] {
  const found = zoom.value;
  return found ? [Math.max(0, found[0]), Math.min(shown.calls, found[1])] : [0, Math.max(1, shown.calls)];
}

/** Looks closer around the cursor, or from farther away. */
export function zoomBy(factor: number, around = cursor.peek()): void {
  const shown = film.peek();
  if (!shown) return;
  const [from, to] = stretch(shown);
  const span = Math.max(10, (to - from) * factor);
  if (span >= shown.calls) zoom.value = null;
  else {
    const share = (around - from) / Math.max(1, to - from);
    const start = clamp(shown.calls - span, around - span * share);
    zoom.value = [start, start + span];
  }
}

export function Timeline() {
  const shown = film.value;
  const folded = param("timeline").value === "off" && Boolean(shown?.calls);
  const host = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = host.current!;
    const watch = new ResizeObserver(() => (width.value = element.clientWidth || 800));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  useEffect(() => void (zoom.value = null), [shown?.data.session]);
  return (
    <section class={`timeline ${shown?.calls ? "" : "without"}`} aria-label="timeline of calls">
      {folded ? (
        <div class="legend folded"><Fold folded /> {shown && shown.calls > 0 && <Scrubber shown={shown} />}</div>
      ) : (
        shown && shown.calls > 0 && <Legend />
      )}
      <div class="timeline-body" ref={host}>
        {!folded && shown && shown.calls > 0 && <Plot shown={shown} />}
      </div>
    </section>
  );
}

function Fold({ folded }: { folded: boolean }) {
  return <Link aria-expanded={!folded} title={`${folded ? "show" : "hide"} the timeline (T)`} onClick={() => go({ timeline: folded ? null : "off" })}>{folded ? "▸" : "▾"} timeline</Link>;
}

function Legend() {
  const shown = film.value;
  const at = cursor.value;
  const by = stackBy.value;
  const stack = shown?.stack(by);
  const on = param("lines").value.split(",");
  const told = (line: Line): string => {
    const value = shown?.line(line)[at];
    return value === null || value === undefined ? "–" : line === "cost" ? shown!.costOf(at) : count(value);
  };
  return (
    <div class="legend">
      <Fold folded={false} />
      <span class="switch" role="group" aria-label="stack tokens by">
        {STACKS.map((one) => (
          <button key={one} class={one === by ? "on" : ""} aria-pressed={one === by} onClick={() => go({ by: one === "role" ? null : one })}>
            {one}
          </button>
        ))}
      </span>
      {stack?.keys.map((key, k) => (
        <span key={key} class="legend-key">
          <Swatch by={by} of={key} />
          {key} <b>{short(stack.sums[k]![at] ?? 0)}</b>
        </span>
      ))}
      <Grow />
      {LINES.filter((line) => shown?.line(line).some((value) => value !== null)).map((line) => {
        const lit = on.includes(line);
        return (
          <button
            key={line}
            class={`legend-line ${lit ? "on" : ""}`}
            aria-pressed={lit}
            title={`show or hide the line: ${line} of each call`}
            onClick={() => go({ lines: LINES.filter((one) => (one === line ? !lit : on.includes(one))).join(",") })}
          >
            <i style={{ background: `var(${LINE_COLOURS[line]})` }} />
            {line} <b>{told(line)}</b>
          </button>
        );
      })}
    </div>
  );
}

function Plot({ shown }: { shown: Film }) {
  const chart = useRef<HTMLCanvasElement>(null);
  const lanes = useRef<HTMLCanvasElement>(null);
  const marker = useRef<HTMLDivElement>(null);
  const hover = useRef<HTMLDivElement>(null);

  useEffect(() => {
    // The chart is drawn anew when what it shows changes; moving the cursor moves one element.
    const drawn = effect(() => {
      void theme();
      draw(chart.current!, shown, width.value, stretch(shown));
      paintLanes(lanes.current!, shown, width.value, stretch(shown));
    });
    const moved = effect(() => {
      const [from, to] = stretch(shown);
      const plotted = width.value - LEFT - RIGHT;
      const left = LEFT + ((cursor.value - from) / (to - from)) * plotted;
      const element = marker.current!;
      element.style.transform = `translateX(${left}px)`;
      element.style.width = `${Math.max(1.5, plotted / (to - from))}px`;
      element.hidden = cursor.value < from || cursor.value >= to;
    });
    return () => {
      drawn();
      moved();
    };
  }, [shown]);

  const indexAt = (event: MouseEvent): number => {
    const [from, to] = stretch(shown);
    const box = chart.current!.getBoundingClientRect();
    const share = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
    return clamp(shown.calls - 1, Math.floor(from + share * (to - from)));
  };
  const point = (event: PointerEvent): void => {
    const at = indexAt(event);
    if (event.buttons & 1) toCall(at, { step: true });
    const tip = hover.current!;
    tip.textContent = describe(shown, at);
    const box = chart.current!.getBoundingClientRect();
    tip.style.left = `${Math.min(event.clientX - box.left + 12, box.width - 300)}px`;
    tip.hidden = false;
  };
  const press = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    toCall(nearest(shown, event, indexAt(event), lanes.current!));
  };
  return (
    <div
      class="plot"
      data-testid="plot"
      onPointerDown={press}
      onPointerMove={point}
      onPointerLeave={() => (hover.current!.hidden = true)}
      onDblClick={() => (zoom.value = null)}
      onWheel={(event) => {
        if (!event.ctrlKey && !event.altKey) return;
        event.preventDefault();
        zoomBy(event.deltaY > 0 ? 1.25 : 0.8, indexAt(event));
      }}
    >
      <canvas ref={chart} class="chart" />
      <canvas ref={lanes} class="lanes" />
      <div ref={marker} class="marker" />
      <div ref={hover} class="tip" hidden />
      <Scrubber shown={shown} />
    </div>
  );
}

function Scrubber({ shown }: { shown: Film }) {
  return (
    <input
      class="scrubber"
      type="range"
      aria-label="call at the cursor"
      min={0}
      max={Math.max(0, shown.calls - 1)}
      value={cursor.value}
      onInput={(event) => toCall(Number(typedIn(event)), { step: true })}
      onPointerDown={(event) => event.stopPropagation()}
      onPointerMove={(event) => event.stopPropagation()}
    />
  );
}

function describe(shown: Film, at: number): string {
  const c = shown.data.calls;
  const reported = c.reported[at];
  const parts = [
    `call ${c.call[at]}, turn ${c.turn[at]}`,
    `${count(c.tokens[at]!)} tokens estimated`,
    reported === null || reported === undefined ? "" : `${count(reported)} reported`,
    shown.fidelity(at),
    shown.word(c.status[at]) === "ok" ? "" : shown.word(c.status[at]),
  ];
  return parts.filter(Boolean).join(" · ");
}

/** A press on a lane goes to the nearest mark in it, where one is near. */
function nearest(shown: Film, event: MouseEvent, at: number, lanes: HTMLCanvasElement): number {
  const box = lanes.getBoundingClientRect();
  const lane = lanesOf(shown)[Math.floor((event.clientY - box.top) / LANE)];
  if (event.clientY < box.top || !lane) return at;
  const [from, to] = stretch(shown);
  const reach = Math.max(1, (6 * (to - from)) / (width.peek() - LEFT - RIGHT));
  let best = at;
  let least = Infinity;
  for (const call of callsOf(shown, lane)) {
    const away = Math.abs(call - at);
    if (away < least) [best, least] = [call, away];
  }
  return least <= reach ? best : at;
}

function callsOf(shown: Film, lane: (typeof LANES)[number]): number[] {
  const found = shown.callsWith(new Set(lane.kinds));
  if (!lane.kinds.includes("mark")) return found;
  const told = [...shown.data.marks.map((one) => shown.stepAt(one.position)), ...notes.value.map((one) => shown.indexOf(one.call))];
  return [...new Set([...found, ...told])];
}

function paintLanes(canvas: HTMLCanvasElement, shown: Film, wide: number, [from, to]: [number, number]): void {
  const found = lanesOf(shown);
  const mixed = isMixed(shown);
  const pen = penOf(canvas, wide, found.length * LANE + (mixed ? FOOT : 2));
  const plotted = wide - LEFT - RIGHT;
  const slot = plotted / (to - from);
  found.forEach((lane, k) => {
    const y = k * LANE;
    const calls = callsOf(shown, lane);
    pen.fillStyle = painted("--mute");
    pen.textAlign = "right";
    pen.fillText(lane.name, LEFT - 8, y + LANE / 2 + 0.5);
    pen.fillStyle = painted("--rule");
    pen.fillRect(LEFT, y + LANE - 1, plotted, 1);
    pen.fillStyle = painted(lane.colour);
    for (const call of calls) {
      if (call < from || call >= to) continue;
      pen.fillRect(LEFT + (call - from) * slot, y + 1, Math.max(calls.length > MANY ? 2 : 4, Math.min(slot - 0.5, 8)), LANE - 3);
    }
  });
  if (mixed) paintFidelity(pen, shown, found.length * LANE + FOOT / 2 - 1, slot, from, to);
}

/** Under the lanes, a line that is whole where calls are recorded and broken where they are reconstructed. */
function paintFidelity(pen: CanvasRenderingContext2D, shown: Film, y: number, slot: number, from: number, to: number): void {
  const [whole, broken] = [painted("--mute"), painted("--derived")];
  let start = Math.max(0, Math.floor(from));
  const end = Math.min(shown.calls, Math.ceil(to));
  for (let at = start; at < end; at++) {
    if (at + 1 < end && shown.fidelity(at + 1) === shown.fidelity(start)) continue;
    const [left, right] = [LEFT + Math.max(0, start - from) * slot, LEFT + (Math.min(to, at + 1) - from) * slot];
    const recorded = shown.fidelity(start) === "recorded";
    pen.fillStyle = recorded ? whole : broken;
    for (let x = left; x < right; x += recorded ? right - left : 6) pen.fillRect(x, y, Math.min(recorded ? right - left : 3, right - x), 2);
    start = at + 1;
  }
  pen.fillStyle = painted("--mute");
  pen.fillText("fidelity", LEFT - 8, y + 1);
}

function draw(canvas: HTMLCanvasElement, shown: Film, wide: number, [from, to]: [number, number]): void {
  const pen = penOf(canvas, wide, CHART);
  const lines = LINES.filter((line) => param("lines").value.split(",").includes(line));
  const calls = shown.data.calls;
  const budgets = budgetsOf(shown);
  const most = 1.06 * mostOf([calls.tokens, budgets, ...lines.filter((line) => line !== "cost").map((line) => shown.line(line))], from, to);
  const area: Area = { left: LEFT, top: 6, wide: wide - LEFT - RIGHT, high: CHART - 26, from, to, most };
  paintScale(pen, area, short);
  paintCalls(pen, shown, area);
  const dollars: Area = { ...area, most: 1.06 * Math.max(1e-6, ...shown.cost.slice(Math.floor(from), Math.ceil(to)).map((one) => one ?? 0)) };
  if (lines.includes("cost")) paintScale(pen, dollars, (value) => `$${+value.toFixed(4)}`, true);
  within(pen, area, () => {
    paintStack(pen, shown, stackBy.value, area);
    for (const line of lines) paintSteps(pen, shown.line(line), LINE_COLOURS[line], line === "cost" ? dollars : area);
    paintSteps(pen, budgets, "--budget", area, [6, 4]);
  });
}
