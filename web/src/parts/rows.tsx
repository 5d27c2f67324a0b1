// A list of any length of which only what is in view is in the document. Rows are as high as `height`
// says until they are seen; those that say they are `loose` are measured. Where heights are estimated,
// the row at the top of the view, or the one that was brought into it, stays put as others are measured.
import { clamp } from "../format";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

interface RowsProps {
  count: number;
  height: number;
  keyOf: (at: number) => string | number;
  children: (at: number) => ComponentChildren;
  loose?: (at: number) => boolean;
  /** How high a loose row is likely to be, in pixels, before it is measured. */
  estimate?: (at: number) => number;
  /** The row to bring into view whenever `revealKey` changes. */
  reveal?: number;
  revealKey?: string | number;
  /** Where in the view the revealed row goes: 0 at the top, 1 at the foot. */
  revealAt?: number;
  class?: string;
  label: string;
  empty?: string;
}

const MARGIN = 88; // pixels kept above and below the view

const moves = new Map<HTMLElement, number>();

/** Scrolls with the next frame, once all that changes with it is in the document: so it is laid out once. */
function scrollSoon(box: HTMLElement, top: number): void {
  if (moves.size === 0) {
    requestAnimationFrame(() => {
      for (const [element, to] of moves) element.scrollTop = to;
      moves.clear();
    });
  }
  moves.set(box, top);
}

/**
 * Elements by row: a row that stays keeps its element, and one that comes takes that of one that left,
 * which costs less than a new one. Open rows and the one with the focus are not handed on.
 */
class Slots {
  private of = new Map<string | number, number>();
  private made = 0;

  give(keys: (string | number)[], isKept: (slot: number) => boolean): number[] {
    const staying = new Set(keys);
    const free = [...this.of].filter(([key, slot]) => !staying.has(key) && !isKept(slot)).map(([, slot]) => slot);
    let taken = 0;
    const given = keys.map((key) => this.of.get(key) ?? free[taken++] ?? this.made++);
    this.of = new Map(keys.map((key, at) => [key, given[at]!]));
    return given;
  }
}

function indexOf(key: string | number, count: number, keyOf: (at: number) => string | number): number {
  for (let at = 0; at < count; at++) if (keyOf(at) === key) return at;
  return -1;
}

export function Rows(props: RowsProps) {
  const { count, height, keyOf, loose, estimate } = props;
  const box = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const measured = useRef(new Map<string | number, number>());
  const slots = useRef(new Slots());
  const open = useRef(new Set<number>());
  const revealed = useRef<string | number | undefined>(undefined);
  const top = useRef(0);
  const byReader = useRef(false); // a scroll that no wheel, key or pointer made is the browser's own
  const anchor = useRef<{ key: string | number; at: number; below: number } | null>(null);
  const [view, setView] = useState(0); // pixels; 0 until the list was laid out once
  const [, again] = useState(0);

  let offsets: Float64Array | null = null;
  if (loose) {
    offsets = new Float64Array(count + 1);
    for (let at = 0; at < count; at++) {
      const high = loose(at) ? (measured.current.get(keyOf(at)) ?? estimate?.(at) ?? height * 5) : height;
      offsets[at + 1] = offsets[at]! + high;
    }
  }
  const offsetOf = (at: number): number => (offsets ? offsets[at]! : at * height);
  const rowAt = (y: number): number => {
    if (!offsets) return Math.floor(y / height);
    let low = 0;
    let high = count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (offsets[middle + 1]! <= y) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const total = offsetOf(count);
  const lowest = Math.max(0, total - view);
  let seen = Math.min(top.current, lowest);
  let moved = false;
  if (props.revealKey !== revealed.current && view > 0 && count > 0) {
    // Where to is settled before the rows are made: they are made once, for the place they will be seen at.
    revealed.current = props.revealKey;
    const at = Math.min(props.reveal ?? -1, count - 1);
    const from = offsetOf(Math.max(0, at));
    moved = at >= 0 && (from < seen || from + height > seen + view);
    if (moved) top.current = seen = Math.round(clamp(lowest, from - view * (props.revealAt ?? 1 / 3)));
    byReader.current = false;
    if (at >= 0) anchor.current = { key: keyOf(at), at, below: from - seen };
  } else if (estimate && anchor.current) {
    const { key, at, below } = anchor.current;
    const now = at < count && keyOf(at) === key ? at : indexOf(key, count, keyOf);
    const kept = now < 0 ? seen : Math.round(clamp(lowest, offsetOf(now) - below));
    if (Math.abs(kept - seen) > 1) {
      moved = true;
      top.current = seen = kept;
    }
  }
  const first = Math.max(0, rowAt(seen - MARGIN));
  const last = Math.min(count, rowAt(seen + view + MARGIN) + 1);

  useLayoutEffect(() => {
    const element = box.current!;
    const watch = new ResizeObserver(() => setView(element.clientHeight || 600));
    watch.observe(element);
    setView(element.clientHeight || 600);
    return () => watch.disconnect();
  }, []);

  useLayoutEffect(() => {
    if (moved) scrollSoon(box.current!, top.current);
  });

  useLayoutEffect(() => {
    const wide = loose ? [...(inner.current!.children as HTMLCollectionOf<HTMLElement>)].filter((row) => loose(Number(row.dataset.at))) : [];
    if (!wide.length) return undefined;
    const measure = (): void => {
      let changed = false;
      for (const row of wide) {
        const at = Number(row.dataset.at);
        const high = row.offsetHeight;
        if (at < count && high && measured.current.get(keyOf(at)) !== high) {
          measured.current.set(keyOf(at), high);
          changed = true;
        }
      }
      if (changed) again((n) => n + 1);
    };
    measure();
    const watch = new ResizeObserver(measure);
    for (const row of wide) watch.observe(row);
    return () => watch.disconnect();
  });

  const reads = (): void => void (byReader.current = true);
  const focused = box.current?.contains(document.activeElement) ? document.activeElement!.closest<HTMLElement>(".rows-row") : null;
  const inView = Array.from({ length: Math.max(0, last - first) }, (_, n) => first + n);
  const given = slots.current.give(inView.map(keyOf), (slot) => open.current.has(slot) || focused?.dataset.slot === String(slot));
  open.current = new Set(given.filter((_, n) => loose?.(first + n)));
  const rows = inView.map((at, n) => (
    <div key={given[n]} data-slot={given[n]} data-at={at} class={`rows-row ${open.current.has(given[n]!) ? "loose" : ""}`} style={open.current.has(given[n]!) ? undefined : { height: `${height}px` }}>
      {props.children(at)}
    </div>
  ));
  return (
    <div
      ref={box}
      class={`rows ${props.class ?? ""}`}
      role="list"
      aria-label={props.label}
      onWheel={reads}
      onPointerDown={reads}
      onTouchStart={reads}
      onKeyDown={reads}
      onScroll={(event) => {
        const now = event.currentTarget.scrollTop;
        if (now === top.current || moves.has(event.currentTarget)) return;
        top.current = now;
        if (estimate && byReader.current) {
          const at = Math.min(rowAt(now), count - 1);
          anchor.current = at < 0 ? null : { key: keyOf(at), at, below: offsetOf(at) - now };
        }
        again((n) => n + 1);
      }}
    >
      {count === 0 && <p class="empty">{props.empty}</p>}
      <div style={{ height: `${total}px` }}>
        <div ref={inner} style={{ transform: `translateY(${offsetOf(first)}px)` }}>
          {rows}
        </div>
      </div>
    </div>
  );
}
