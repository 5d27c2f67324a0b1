// Which page of one film is which page of another. Films of one origin share their pages up to where
// they parted, under one number. After that, and between films that share nothing, pages are paired in
// the order they were made by what they say and who says it; a page without content by what is known of
// it: its kind, its tokens and, where films are of one origin, its hint.
import type { Film, FilmData } from "../film";
import { align, numbered } from "./sequence";

export interface Pairing {
  /** Of each page of the first film its index in the second, or -1. */
  there: Int32Array;
  /** And the other way. */
  back: Int32Array;
  /** How many of the first film's pages have a partner. */
  paired: number;
  /** How many pages the films have in common from the start. */
  shared: number;
}

function looks(film: Film, from: number, related: boolean, digests: readonly string[]): string[] {
  const { hint, tokens } = film.data.pages;
  const found: string[] = [];
  for (let page = from; page < film.pages; page++) {
    // Sessions of different origin name their messages differently.
    const name = related ? film.word(hint[page]) : "";
    found.push([film.role(page), digests[page] || [film.type(page), film.modality(page), name, tokens[page]]].join("\n"));
  }
  return found;
}

export function pair(a: Film, b: Film, digestsA: readonly string[] = [], digestsB: readonly string[] = []): Pairing {
  const there = new Int32Array(a.pages).fill(-1);
  const back = new Int32Array(b.pages).fill(-1);
  const [numbersA, numbersB] = [a.data.pages.number, b.data.pages.number];
  const parted = partedAt(a.data, b.data);
  let [at, bt] = [0, 0];
  while (at < a.pages && bt < b.pages && numbersA[at] === numbersB[bt] && numbersA[at]! <= parted) {
    there[at] = bt;
    back[bt++] = at++;
  }
  const [x, y] = numbered(looks(a, at, parted > 0, digestsA), looks(b, bt, parted > 0, digestsB));
  align(x, y).forEach((found, k) => {
    if (found < 0) return;
    there[at + k] = bt + found;
    back[bt + found] = at + k;
  });
  const paired = there.reduce((sum, one) => sum + Number(one >= 0), 0);
  let shared = 0;
  while (shared < a.pages && there[shared] === shared) shared++;
  return { there, back, paired, shared };
}

/** The last position that both films have in common; 0 where they are of different origin. */
export function partedAt(a: FilmData, b: FilmData): number {
  const [nameA, nameB] = [a.whatif?.of ?? a.session, b.whatif?.of ?? b.session];
  // A what-if is told anew after the first commit: it has its pages in one order, but under other numbers.
  const most = a.whatif || b.whatif ? firstOf(a, b) : Math.min(a.position, b.position);
  if (nameA === nameB) return most;
  const [forkA, forkB] = [a.whatif ? null : a.parent, b.whatif ? null : b.parent];
  if (forkA?.session === nameB) return Math.min(most, forkA.position);
  if (forkB?.session === nameA) return Math.min(most, forkB.position);
  if (forkA && forkB && forkA.session === forkB.session) return Math.min(most, forkA.position, forkB.position);
  return 0;
}

function firstOf(a: FilmData, b: FilmData): number {
  return Math.min(a.pages.number[0] ?? 1, b.pages.number[0] ?? 1);
}
