// Everything by keyboard. The list is what `?` shows.
import { go, param, place } from "./place";
import { stepPage, toggleOpen } from "./context";
import { toEvent } from "./events";
import { say } from "./copy";
import { notes, toggleMark } from "./notes";
import { signal } from "@preact/signals";
import { switchTheme } from "./colours";
import { callNumber, cursor, film, toCall } from "./state";
import { paneOf, panes } from "./panes";
import { zoomBy } from "./timeline";

export const helping = signal(false);
export const playing = signal(false);

interface Key {
  keys: string[];
  does: string;
  act: () => void;
}

let player: ReturnType<typeof setInterval> | undefined;
const PLAY_MS = 125;

export function play(on: boolean): void {
  clearInterval(player);
  playing.value = on;
  if (!on) return;
  if (cursor.peek() >= (film.peek()?.calls ?? 1) - 1) toCall(0);
  player = setInterval(() => {
    step(1);
    if (cursor.peek() >= (film.peek()?.calls ?? 1) - 1) play(false);
  }, PLAY_MS);
}

function step(by: number): void {
  toCall(cursor.peek() + by, { step: true });
}

function jump(kinds: string[], forward: boolean, what: string): void {
  const told = toEvent(kinds, forward);
  if (told === "around") say(`that was the ${forward ? "last" : "first"} ${what}: here is the ${forward ? "first" : "last"}`);
  if (told === "none") say(`no other ${what} in this session`);
}

function jumpMark(forward: boolean): void {
  const shown = film.peek();
  if (!shown) return;
  const all = [...notes.value.map((one) => shown.indexOf(one.call)), ...shown.data.marks.map((one) => shown.stepAt(one.position))];
  const sorted = all.sort((a, b) => a - b);
  const found = forward ? sorted.find((at) => at > cursor.peek()) : sorted.findLast((at) => at < cursor.peek());
  if (found === undefined) say(`no mark or note ${forward ? "after" : "before"} this call`);
  else toCall(found);
}

/** Shows the text of the row in hand: side by side that may be a page that only the other side has. */
function openRow(): void {
  const name = (param("pane").peek() === "sides" && param("row").peek()) || param("page").peek();
  if (name) toggleOpen(name);
}

/** Up and down go through the pane's own rows where it has some, else through the pages of the context. */
function stepRow(by: number): void {
  (paneOf(param("pane").peek()).step ?? stepPage)(by);
}

export function openPane(pane: string, focus = true): void {
  go({ pane });
  if (focus) requestAnimationFrame(() => document.querySelector<HTMLElement>(".pane [data-focus]")?.focus());
}

export const KEYS: { title: string; keys: Key[] }[] = [
  {
    title: "Move",
    keys: [
      { keys: ["k", "ArrowLeft"], does: "previous call", act: () => step(-1) },
      { keys: ["j", "ArrowRight"], does: "next call", act: () => step(1) },
      { keys: ["PageUp"], does: "ten calls back", act: () => step(-10) },
      { keys: ["PageDown"], does: "ten calls on", act: () => step(10) },
      { keys: ["Home"], does: "first call", act: () => toCall(0) },
      { keys: ["End"], does: "last call; a live session is followed from there", act: () => toCall(Infinity) },
      { keys: [" "], does: "play, pause", act: () => play(!playing.peek()) },
      { keys: ["+"], does: "look closer", act: () => zoomBy(0.6) },
      { keys: ["-"], does: "look from farther away", act: () => zoomBy(1.7) },
    ],
  },
  {
    title: "Jump",
    keys: [
      { keys: ["f", "F"], does: "on to a fault, or back to one", act: () => undefined },
      { keys: ["e", "E"], does: "on to an eviction, or back to one", act: () => undefined },
      { keys: ["x", "X"], does: "on to a compression, or back to one", act: () => undefined },
      { keys: ["c", "C"], does: "on to a compaction, or back to one", act: () => undefined },
      { keys: ["p", "P"], does: "on to a pin, or back to one", act: () => undefined },
      { keys: ["]", "["], does: "on to a mark or note, or back to one", act: () => undefined },
    ],
  },
  {
    title: "Pages",
    keys: [
      { keys: ["ArrowDown"], does: "next page of the context", act: () => stepRow(1) },
      { keys: ["ArrowUp"], does: "previous page", act: () => stepRow(-1) },
      { keys: [",", "."], does: "compared call, other side, version: back, on", act: () => undefined },
      { keys: ["Enter"], does: "its text, or not", act: openRow },
      { keys: ["t"], does: "the texts of all pages", act: () => go({ read: place.peek().read ? null : 1 }) },
      { keys: ["o"], does: "pages in the context, pages out of it", act: () => go({ show: place.peek().show ? null : "out" }) },
    ],
  },
];

const JUMPS: Record<string, [string[], string]> = {
  f: [["fault_in", "fault_denied", "prefetch"], "fault"],
  e: [["evict"], "eviction"],
  x: [["compress", "shorten"], "compression"],
  c: [["compaction"], "compaction"],
  p: [["pin", "unpin"], "pin"],
};

const GENERAL: Key[] = [
  { keys: ["m"], does: "mark this call, or not", act: () => say(toggleMark(callNumber.peek()) ? `call ${callNumber.peek()} is marked` : "the mark is gone") },
  { keys: ["l"], does: "light, dark", act: () => switchTheme() },
  { keys: ["?"], does: "this help", act: () => void (helping.value = !helping.value) },
  { keys: ["Escape"], does: "leave what is open", act: () => escape() },
];

export function paneKeys(): Key[] {
  return panes.flatMap((pane) => [...(pane.key ? [{ keys: [pane.key], does: pane.hint, act: () => openPane(pane.id) }] : []), ...(pane.keys ?? [])]);
}

export function generalKeys(): Key[] {
  return GENERAL;
}

function escape(): void {
  if (helping.value) helping.value = false;
  else go({ page: null, event: null });
}

function isTyping(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  if (!element?.closest) return false;
  return element.closest("input:not([type=range]):not([type=checkbox]), textarea, select, [contenteditable]") !== null;
}

/** Acts on a key; those typed into a field are the field's, except Escape, which leaves it. */
function pressed(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") (event.target as HTMLElement).blur();
    return;
  }
  const pressable = (event.target as HTMLElement | null)?.closest?.("button, summary, a, input[type=checkbox]");
  if (pressable && (event.key === "Enter" || event.key === " ")) return;
  const act = find(event.key);
  if (!act) return;
  event.preventDefault();
  if (event.key !== " ") play(false);
  act();
}

function find(key: string): (() => void) | undefined {
  if (key === "[" || key === "]") return () => jumpMark(key === "]");
  if (key === "," || key === ".") return () => paneOf(param("pane").peek()).second?.(key === "." ? 1 : -1);
  const told = JUMPS[key.toLowerCase()];
  if (told && key.length === 1) return () => jump(told[0], key === key.toLowerCase(), told[1]);
  const all = [...KEYS.flatMap((group) => group.keys), ...paneKeys(), ...GENERAL];
  return all.find((one) => one.keys.includes(key))?.act;
}

export function listen(): void {
  addEventListener("keydown", pressed);
}
