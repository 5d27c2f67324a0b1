// Notes and marks of the reader. The server never writes, so they lie in this browser, by store and
// session; as JSON they can be copied, saved and read in elsewhere.
import { computed, signal } from "@preact/signals";
import { safely } from "./colours";
import { store, which } from "./state";
import { json } from "./format";

export interface Note {
  call: number;
  text: string;
  page?: string;
  marked: boolean;
  written: string; // ISO 8601
}

const version = signal(0);

function key(): string {
  return `vmstore.notes\n${store.value?.store ?? ""}\n${store.value?.namespace ?? ""}\n${which.value.session}`;
}

export const notes = computed<Note[]>(() => {
  void version.value;
  const kept = safely(() => JSON.parse(localStorage.getItem(key()) ?? "[]") as Note[]);
  return Array.isArray(kept) ? kept.filter((one) => typeof one?.call === "number").sort((a, b) => a.call - b.call) : [];
});

function keep(all: Note[]): void {
  safely(() => localStorage.setItem(key(), JSON.stringify(all)));
  version.value++;
}

export function addNote(call: number, text: string, page: string, marked: boolean): void {
  const note: Note = { call, text, marked, written: new Date().toISOString() };
  keep([...notes.value, page ? { ...note, page } : note]);
}

export function dropNote(note: Note): void {
  keep(notes.value.filter((one) => one !== note));
}

/** Sets a mark at a call, or takes it away. */
export function toggleMark(call: number): boolean {
  const here = notes.value.filter((one) => one.call === call && one.marked && one.text === "");
  if (here.length) keep(notes.value.filter((one) => !here.includes(one)));
  else addNote(call, "", "", true);
  return here.length === 0;
}

export function notesJson(): string {
  const told = { store: store.value?.store, session: which.value.session, notes: notes.value };
  return json(told);
}

/** Adds the notes of a JSON made by `notesJson`; how many were new, -1 where it is none. */
export function addJson(text: string): number {
  const told = safely(() => JSON.parse(text) as { notes?: unknown });
  if (!told || !Array.isArray(told.notes)) return -1;
  const known = new Set(notes.value.map((one) => `${one.call}\n${one.written}\n${one.text}`));
  const read = (told.notes as Partial<Note>[]).filter((one) => typeof one?.call === "number" && typeof one.text === "string");
  const fresh = read
    .map((one): Note => ({ call: one.call!, text: one.text!, marked: Boolean(one.marked), written: String(one.written ?? ""), ...(one.page ? { page: String(one.page) } : {}) }))
    .filter((one) => !known.has(`${one.call}\n${one.written}\n${one.text}`));
  keep([...notes.value, ...fresh]);
  return fresh.length;
}
