// What differs between two contexts: of two calls of one film, or of two films.
import type { Film } from "../film";
import type { Pairing } from "./pairing";
import { rising } from "./sequence";
import { versionOf } from "./versions";

export type Change = "entered" | "left" | "edited" | "shortened" | "restored" | "moved" | "same";
export const CHANGES: readonly Change[] = ["entered", "left", "edited", "shortened", "restored", "moved", "same"];

export interface Changed {
  change: Change;
  /** The stays that show the page on each side; -1 where that side has it not. */
  before: number;
  after: number;
}

/** One side of a comparison: a film and the index of a call in it. */
export interface Side {
  film: Film;
  at: number;
}

/** Every page of either context once, in the order of the prompt; what left stands where it stood. */
export function changes(a: Side, b: Side, pairing: Pairing | null = null): Changed[] {
  const [before, after] = [contextOf(a), contextOf(b)];
  const stayAt = new Map<number, number>(); // page of b: place in the context before
  before.forEach((stay, place) => {
    const page = a.film.stay.page[stay]!;
    const there = pairing ? pairing.there[page]! : page;
    if (there >= 0) stayAt.set(there, place);
  });
  const places = Array.from(after, (stay) => stayAt.get(b.film.stay.page[stay]!) ?? -1);
  const shared = places.flatMap((place, k) => (place >= 0 ? [k] : []));
  const steady = new Set(rising(shared.map((k) => places[k]!)).map((nth) => shared[nth]!));
  const gone = new Uint8Array(before.length).fill(1);
  for (const place of places) if (place >= 0) gone[place] = 0;

  const found: Changed[] = [];
  let next = 0;
  const leave = (to: number): void => {
    for (; next < to; next++) if (gone[next]) found.push({ change: "left", before: before[next]!, after: -1 });
  };
  // What left stands before what entered in its place: both lie between two pages that kept their order.
  let anchor = 0;
  places.forEach((place, k) => {
    if (k >= anchor) {
      anchor = k;
      while (anchor < places.length && !steady.has(anchor)) anchor++;
      leave(anchor < places.length ? places[anchor]! : before.length);
      anchor++;
    }
    const stay = place < 0 ? -1 : before[place]!;
    found.push({ change: stay < 0 ? "entered" : compare(a.film, stay, b.film, after[k]!, steady.has(k)), before: stay, after: after[k]! });
  });
  leave(before.length);
  return found;
}

function contextOf(side: Side): Int32Array {
  return side.film.calls ? side.film.context(side.at) : new Int32Array();
}

function compare(a: Film, before: number, b: Film, after: number, steady: boolean): Change {
  const [was, is] = [a.stay.level[before]!, b.stay.level[after]!];
  if (is > was) return "shortened";
  if (is < was) return "restored";
  // Films number contents each for itself: there a version is told by its number and its tokens.
  const same = a === b ? a.stay.content[before] === b.stay.content[after] : versionOf(a, before) === versionOf(b, after) && a.stay.tokens[before] === b.stay.tokens[after];
  if (!same) return "edited";
  return steady ? "same" : "moved";
}

export interface Sum {
  pages: number;
  tokens: number;
}

/** Pages and tokens of each change: those of the side that has them, for what is on both sides what it takes more. */
export function sums(all: readonly Changed[], a: Film, b: Film): Record<Change, Sum> {
  const found = Object.fromEntries(CHANGES.map((change) => [change, { pages: 0, tokens: 0 }])) as Record<Change, Sum>;
  for (const { change, before, after } of all) {
    found[change].pages++;
    found[change].tokens += (after < 0 ? 0 : b.stay.tokens[after]!) - (before < 0 ? 0 : a.stay.tokens[before]!);
  }
  return found;
}
