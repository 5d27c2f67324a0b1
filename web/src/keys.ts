// Everything by keyboard. The list is what `?` shows.
import { go, param, place } from "./place";
import { stepPage } from "./context";
import { toggleOpen } from "./opened";
import { toEvent } from "./events";
import { say } from "./copy";
import { notes, toggleMark } from "./notes";
import { signal } from "@preact/signals";
import { popup } from "./popup";
import { switchTheme } from "./colours";
import { callNumber, cursor, film, isOverview, store, toCall, toSession } from "./state";
import { paneOf, panes } from "./panes";
import { zoomBy } from "./timeline";

export const playing = signal(false);

interface Key {
  keys: string[];
  does: string;
  act?: () => void;
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
  if (told === "around") say(`past the ${forward ? "last" : "first"} ${what}: back at the ${forward ? "first" : "last"}`);
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

/** Opens a pane. Only those whose key says that something will be typed put the focus into a field. */
export function openPane(pane: string): void {
  go({ pane });
  requestAnimationFrame(() => {
    const first = document.querySelector<HTMLElement>(".pane [data-focus]");
    if (first && (TYPED.includes(pane) || !isTyping(first))) first.focus();
  });
}

const TYPED = ["search", "vmql"];

export const KEYS: { title: string; keys: Key[] }[] = [
  {
    title: "Calls",
    keys: [
      { keys: ["k", "ArrowLeft"], does: "previous call", act: () => step(-1) },
      { keys: ["j", "ArrowRight"], does: "next call", act: () => step(1) },
      { keys: ["PageUp"], does: "ten calls back", act: () => step(-10) },
      { keys: ["PageDown"], does: "ten calls forward", act: () => step(10) },
      { keys: ["Home"], does: "first call", act: () => toCall(0) },
      { keys: ["End"], does: "last call; a live session is followed from there", act: () => toCall(Infinity) },
      { keys: [" "], does: "play or pause", act: () => play(!playing.peek()) },
      { keys: ["+"], does: "zoom in", act: () => zoomBy(0.6) },
      { keys: ["-"], does: "zoom out", act: () => zoomBy(1.7) },
    ],
  },
  {
    title: "Events",
    keys: [
      { keys: ["f", "F"], does: "next or previous fault" },
      { keys: ["e", "E"], does: "next or previous eviction" },
      { keys: ["x", "X"], does: "next or previous compression" },
      { keys: ["c", "C"], does: "next or previous compaction" },
      { keys: ["p", "P"], does: "next or previous pin" },
      { keys: ["]", "["], does: "next or previous mark or note" },
    ],
  },
  {
    title: "Pages",
    keys: [
      { keys: ["ArrowDown"], does: "next page", act: () => stepRow(1) },
      { keys: ["ArrowUp"], does: "previous page", act: () => stepRow(-1) },
      { keys: [",", "."], does: "previous or next: compared call, other side, version" },
      { keys: ["Enter"], does: "unfold or fold its text", act: openRow },
      { keys: ["t"], does: "conversation, or the prompt as a list", act: () => go({ show: place.peek().show ? null : "prompt" }) },
      { keys: ["o"], does: "pages left out of this call", act: () => go({ show: place.peek().show === "out" ? null : "out" }) },
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
  { keys: ["m"], does: "mark or unmark this call", act: () => say(toggleMark(callNumber.peek()) ? `marked call ${callNumber.peek()}` : "mark removed") },
  { keys: ["T"], does: "show or hide the timeline", act: () => go({ timeline: place.peek().timeline ? null : "off" }) },
  { keys: ["L"], does: "show or hide the list of events", act: () => go({ events: place.peek().events ? null : 1 }) },
  { keys: ["l"], does: "light or dark", act: () => switchTheme() },
  { keys: ["?"], does: "this help", act: () => void (popup.value = "help") },
  { keys: ["Escape"], does: "back: close what is open", act: () => escape() },
];

export function paneKeys(): Key[] {
  return panes.flatMap((pane) => [...(pane.key ? [{ keys: [pane.key], does: pane.hint, act: () => openPane(pane.id) }] : []), ...(pane.keys ?? [])]);
}

export function generalKeys(): Key[] {
  return GENERAL;
}

/** One step back: from the page in hand, then the pane, then the view, then to the list of sessions. */
function escape(): void {
  const now = place.peek();
  if (now.page || now.event) go({ page: null, event: null });
  else if (now.pane) go({ pane: null });
  else if (now.show) go({ show: null });
  else if (!isOverview.peek() && (store.peek()?.sessions.length ?? 0) > 1) toSession(null);
  else go({ words: null });
}

function isTyping(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  if (!element?.closest) return false;
  return element.closest("input:not([type=range]):not([type=checkbox]), textarea, select, [contenteditable]") !== null;
}

/** Whether a key is none of a number, so that a field for one passes it on. */
function isForeign(event: KeyboardEvent): boolean {
  const field = event.target as HTMLElement;
  return field.matches("[inputmode=numeric], [type=number]") && event.key.length === 1 && !/[\d.,_ -]/.test(event.key);
}

/**
 * Acts on a key. What is open above the page takes it first; then the field it is typed into, which
 * Escape leaves, and which passes letters on where only a number can stand.
 */
function pressed(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (popup.peek()) {
    if (event.key === "Escape" || (event.key === "?" && popup.peek() === "help")) {
      popup.value = "";
      event.preventDefault();
    }
    return;
  }
  if (isTyping(event.target)) {
    const field = event.target as HTMLElement;
    if (event.key === "Escape") field.blur();
    if (!isForeign(event)) return;
    field.blur();
  }
  const pressable = (event.target as HTMLElement | null)?.closest?.("button, summary, a, input[type=checkbox]");
  if (pressable && (event.key === "Enter" || event.key === " ")) return;
  const act = isOverview.peek() ? overviewKey(event.key) : find(event.key);
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

/** Over the list of sessions only these keys mean something. */
function overviewKey(key: string): (() => void) | undefined {
  if (key === "/") return () => document.querySelector<HTMLElement>(".overview [data-focus]")?.focus();
  return GENERAL.find((one) => ["l", "?", "Escape"].includes(key) && one.keys.includes(key))?.act;
}

export function listen(): void {
  addEventListener("keydown", pressed);
}
