// The text of a content: always text nodes, whatever it holds. A long one comes cut, and in pieces of
// which the browser lays out what is in view.
import { useEffect, useState } from "preact/hooks";
import type { Asked } from "../asked";
import { say } from "../copy";
import { bytes, oneLine } from "../format";
import { param } from "../place";
import { Trouble, type Text, type Which } from "../source";
import { source, which } from "../state";
import { textAt, wholeText } from "../texts";
import { Empty, Mute } from "./bits";

const PIECE_CHARS = 16_000;

function pieces(text: string): string[] {
  const found: string[] = [];
  for (let from = 0; from < text.length; ) {
    let to = Math.min(text.length, from + PIECE_CHARS);
    const line = text.lastIndexOf("\n", to);
    if (to < text.length && line > from) to = line + 1;
    found.push(text.slice(from, to));
    from = to;
  }
  return found;
}

export function Content({ position, of = which.value }: { position: number; of?: Which }) {
  const slot = textAt(position, of).value;
  const [whole, setWhole] = useState<Text | null>(null);
  useEffect(() => setWhole(null), [position, of, slot]);
  if (slot === null) return <div class="content wait">…</div>;
  if (slot instanceof Trouble) return <Problem trouble={slot} />;
  const shown = whole ?? slot;
  if (shown.missing) return <div class="content mute">{shown.missing}</div>;
  if (shown.mime?.startsWith("image/") && shown.text.startsWith("data:image/")) {
    return <img class="content-image" src={shown.text} alt={`${shown.mime}, ${bytes(shown.bytes)}`} />;
  }
  const all = (): void => void wholeText(position, of).then(setWhole, (error: unknown) => say(String(error)));
  return (
    <div class="content" tabIndex={0}>
      {shown.text === "" && !shown.cut ? <small>empty</small> : pieces(shown.text).map((piece, at) => <pre key={at}>{piece}</pre>)}
      {shown.cut && !source.value?.server && <small>the first {bytes(shown.text.length)} of {bytes(shown.bytes)}; no more was exported</small>}
      {shown.cut && source.value?.server && (
        <button class="more" onClick={all}>
          {shown.text ? `the first ${bytes(Math.min(shown.bytes, 65536))} of ` : ""}{bytes(shown.bytes)}: show all
        </button>
      )}
    </div>
  );
}

/** The beginning of a content in one line. */
export function Preview({ position, of = which.value }: { position: number; of?: Which }) {
  const slot = textAt(position, of).value;
  if (slot === null) return <span class="preview wait" />;
  if (slot instanceof Trouble) return <span class="preview mute">{slot.reason}</span>;
  if (slot.missing) return <span class="preview mute">{slot.missing}</span>;
  if (slot.text.startsWith("data:image/") || (slot.mime?.startsWith("image/") && !slot.text)) return <span class="preview mute">{slot.mime}, {bytes(slot.bytes)}</span>;
  return <span class="preview">{slot.line ?? oneLine(slot.text)}</span>;
}

/** Instead of a pane about a page, where none is selected: how to select one, and what for. */
export function NoPage({ name = param("page").value, to }: { name?: string; to: string }) {
  return (
    <Empty title={name ? `This session has no page ${name}.` : `Select a page to see ${to}.`}>Click a page, or press ↓ and ↑.</Empty>
  );
}

/** Instead of an answer: why there is none, or that it is on its way. */
export function Waiting({ asked }: { asked: Asked<unknown> }) {
  if (asked.error) return <Problem trouble={asked.error} />;
  return asked.busy && !asked.value ? <Mute>asking…</Mute> : null;
}

/** An error and what can be done about it. */
export function Problem({ trouble }: { trouble: Trouble }) {
  return (
    <div class="problem" role="alert">
      <b>{trouble.reason}</b>
      {trouble.remedy && <span>{trouble.remedy}</span>}
    </div>
  );
}
