// A timeline as a strip: the tokens of each call stacked by role against the budget, its cursor, and
// where the two sides part. A drag scrubs.
import { effect } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { penOf } from "../chart";
import { theme } from "../colours";
import { stackBy } from "../state";
import { clamp } from "../format";

interface StripProps {
  label: string;
  /** How many calls wide: both sides are drawn on one scale. */
  calls: number;
  high: number;
  /** The call under the cursor, by its index; -1 where it is not told. */
  at: number;
  first: number;
  paint: (pen: CanvasRenderingContext2D, wide: number, high: number) => void;
  /** Anew whenever this changes. */
  version: unknown;
  scrub: (at: number, how: { step?: boolean }) => void;
}

const EDGE = 2;

export function Strip({ label, calls, high, at, first, paint, version, scrub }: StripProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [wide, setWide] = useState(600);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => setWide(box.current?.clientWidth || 600));
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  useEffect(
    () =>
      effect(() => {
        void theme();
        void stackBy.value;
        paint(penOf(canvas.current!, wide, high), wide, high);
      }),
    [wide, high, version],
  );
  const slot = wide / Math.max(1, calls);
  const move = (event: PointerEvent, step: boolean): void => {
    const left = box.current!.getBoundingClientRect().left;
    scrub(clamp(calls - 1, Math.floor((event.clientX - left) / slot)), { step });
  };
  return (
    <div
      class="strip"
      ref={box}
      role="slider"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={calls - 1}
      aria-valuenow={at}
      style={{ height: `${high}px` }}
      onPointerDown={(event) => {
        (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
        move(event, false);
      }}
      onPointerMove={(event) => event.buttons & 1 && move(event, true)}
    >
      <canvas ref={canvas} />
      {first >= 0 && <i class="parting" title="they diverge here" style={{ left: `${first * slot}px` }} />}
      {at >= 0 && <i class="strip-cursor" style={{ left: `${at * slot}px`, width: `${Math.max(EDGE, slot)}px` }} />}
    </div>
  );
}
