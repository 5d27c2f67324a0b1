// A list of any length of which only what is in view is in the document. Rows are as high as `height`
// says until they are seen; those that say they are `loose` are measured.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

interface RowsProps {
  count: number;
  height: number;
  keyOf: (at: number) => string | number;
  children: (at: number) => ComponentChildren;
  loose?: (at: number) => boolean;
  /** The row to bring into view whenever `revealKey` changes. */
  reveal?: number;
  revealKey?: string | number;
  class?: string;
  label: string;
  empty?: ComponentChildren;
}

const MARGIN = 200; // pixels kept above and below the view

export function Rows(props: RowsProps) {
  const { count, height, keyOf, loose } = props;
  const box = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const measured = useRef(new Map<string | number, number>());
  const [top, setTop] = useState(0);
  const [view, setView] = useState(600);
  const [, remeasured] = useState(0);

  let offsets: Float64Array | null = null;
  if (loose) {
    offsets = new Float64Array(count + 1);
    for (let at = 0; at < count; at++) {
      const high = loose(at) ? (measured.current.get(keyOf(at)) ?? height * 5) : height;
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
  const seen = Math.min(top, Math.max(0, total - view));
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
    const open = loose ? [...(inner.current!.children as HTMLCollectionOf<HTMLElement>)].filter((row) => loose(Number(row.dataset.at))) : [];
    if (!open.length) return undefined;
    const measure = (): void => {
      let changed = false;
      for (const row of open) {
        const at = Number(row.dataset.at);
        const high = row.offsetHeight;
        if (at < count && high && measured.current.get(keyOf(at)) !== high) {
          measured.current.set(keyOf(at), high);
          changed = true;
        }
      }
      if (changed) remeasured((n) => n + 1);
    };
    measure();
    const watch = new ResizeObserver(measure);
    for (const row of open) watch.observe(row);
    return () => watch.disconnect();
  });

  useLayoutEffect(() => {
    const at = props.reveal;
    if (at === undefined || at < 0 || count === 0) return;
    // What is known of the view is used: reading it from the document would have it laid out once more.
    const from = offsetOf(Math.min(at, count - 1));
    if (from < seen || from + height > seen + view) box.current!.scrollTop = Math.max(0, from - view / 3);
  }, [props.revealKey]);

  const rows = [];
  for (let at = first; at < last; at++) {
    rows.push(
      <div key={keyOf(at)} data-at={at} class="rows-row" style={loose?.(at) ? undefined : { height: `${height}px` }}>
        {props.children(at)}
      </div>,
    );
  }
  return (
    <div
      ref={box}
      class={`rows ${props.class ?? ""}`}
      role="list"
      aria-label={props.label}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      {count === 0 && props.empty}
      <div style={{ height: `${total}px` }}>
        <div ref={inner} style={{ transform: `translateY(${offsetOf(first)}px)` }}>
          {rows}
        </div>
      </div>
    </div>
  );
}
