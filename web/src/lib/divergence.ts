// Where two films part: for every call that both have, the pages that only one of them was sent, or was
// sent otherwise; the first such call, and the event that made it.
import { lowerBound, type Film } from "../film";
import { changes, type Changed } from "./changes";
import type { Pairing } from "./pairing";
import { versionOf } from "./versions";

export interface Apart {
  /** The calls that both films have, by number, and their indexes in each. */
  calls: Int32Array;
  a: Int32Array;
  b: Int32Array;
  /** Of each of these calls, the tokens of what only the one side shows so. */
  tokensA: Float64Array;
  tokensB: Float64Array;
  /** Place in `calls` of the first whose pages differ, or, where none does, their order; -1 where they never part. */
  first: number;
  /** Place of the first that is sent the same pages in another order, where that is earlier. */
  turned: number;
  /** What differs at that call. */
  changed: Changed[];
  /** The event that made the difference, where one is known. */
  because: { side: "a" | "b"; event: number } | null;
}

/** Kinds that decide or are told come before those that only follow from them. */
const CAUSES = ["evict", "shorten", "fault_in", "fault_denied", "prefetch", "compress", "compaction", "unpin", "pin", "update", "segment", "create", "settings", "leave", "enter", "shown"];

export function apart(a: Film, b: Film, pairing: Pairing): Apart {
  const calls = Int32Array.from(a.callNumber).filter((call) => b.callNumber[lowerBound(b.callNumber, call)] === call);
  const [at, bt] = [calls.map((call) => lowerBound(a.callNumber, call)), calls.map((call) => lowerBound(b.callNumber, call))];
  const [staysA, staysB] = [stretches(a, at, null), stretches(b, bt, pairing)];
  const tokensA = alone(staysA, staysB, a, calls.length);
  const tokensB = alone(staysB, staysA, b, calls.length);
  const parts = tokensA.findIndex((own, k) => own > 0 || tokensB[k]! > 0);
  const turned = otherOrder(a, at, b, bt, pairing, parts < 0 ? calls.length : parts);
  const first = parts < 0 ? turned : parts;
  const found: Apart = { calls, a: at, b: bt, tokensA, tokensB, first, turned: turned === first ? -1 : turned, changed: [], because: null };
  if (first < 0) return found;
  found.changed = changes({ film: a, at: at[first]! }, { film: b, at: bt[first]! }, pairing).filter((one) => one.change !== "same");
  found.because = cause(a, b, found, pairing);
  return found;
}

interface Stretch {
  from: number;
  to: number;
  stay: number;
}

/** When each page was shown at each level and version, as places among the calls that both films have. */
function stretches(film: Film, places: Int32Array, pairing: Pairing | null): Map<string, Stretch[]> {
  const found = new Map<string, Stretch[]>();
  const { page, level, tokens, from, to } = film.stay;
  for (let stay = 0; stay < page.length; stay++) {
    const one = { from: lowerBound(places, from[stay]!), to: lowerBound(places, to[stay]!), stay };
    if (one.from >= one.to) continue;
    const partner = pairing ? pairing.back[page[stay]!]! : page[stay]!;
    const key = `${partner < 0 ? `only ${page[stay]}` : partner} ${level[stay]} ${versionOf(film, stay)} ${tokens[stay]}`;
    const known = found.get(key);
    if (known) known.push(one);
    else found.set(key, [one]);
  }
  return found;
}

/** Tokens by call of what only the one film shows so. */
function alone(own: Map<string, Stretch[]>, other: Map<string, Stretch[]>, film: Film, calls: number): Float64Array {
  const sums = new Float64Array(calls + 1);
  for (const [key, all] of own) {
    const shared = (other.get(key) ?? []).sort((x, y) => x.from - y.from);
    for (const one of all) {
      // A page of no tokens still differs.
      const tokens = Math.max(1, film.stay.tokens[one.stay]!);
      let from = one.from;
      for (const there of shared) {
        if (there.to <= from || there.from >= one.to) continue;
        if (there.from > from) add(sums, from, there.from, tokens);
        from = Math.max(from, Math.min(one.to, there.to));
      }
      if (from < one.to) add(sums, from, one.to, tokens);
    }
  }
  for (let k = 1; k < calls; k++) sums[k]! += sums[k - 1]!;
  return sums.subarray(0, calls);
}

function add(sums: Float64Array, from: number, to: number, tokens: number): void {
  sums[from]! += tokens;
  sums[to]! -= tokens;
}

/** The first call before `end` whose pages are the same in another order; -1 where there is none. */
function otherOrder(a: Film, at: Int32Array, b: Film, bt: Int32Array, pairing: Pairing, end: number): number {
  for (let k = 0; k < end; k++) {
    // Where nothing came or went, the order is that of the call before.
    if (k > 0 && !begins(a, at[k - 1]!, at[k]!) && !begins(b, bt[k - 1]!, bt[k]!)) continue;
    const [before, after] = [a.context(at[k]!), b.context(bt[k]!)];
    if (before.some((stay, place) => pairing.there[a.stay.page[stay]!] !== b.stay.page[after[place]!])) return k;
  }
  return -1;
}

function begins(film: Film, before: number, now: number): boolean {
  for (let at = before + 1; at <= now; at++) if (film.entered(at).length) return true;
  return false;
}

/** Of all that happened for that call to the pages that differ, what most likely made the difference. */
function cause(a: Film, b: Film, found: Apart, pairing: Pairing): Apart["because"] {
  const differ = { a: new Set<number>(), b: new Set<number>() };
  for (const { before, after } of found.changed) {
    const [pageA, pageB] = [before < 0 ? -1 : a.stay.page[before]!, after < 0 ? -1 : b.stay.page[after]!];
    differ.a.add(pageA).add(pageB < 0 ? -1 : pairing.back[pageB]!);
    differ.b.add(pageB).add(pageA < 0 ? -1 : pairing.there[pageA]!);
  }
  let best: Apart["because"] = null;
  let least = CAUSES.length;
  for (const side of ["a", "b"] as const) {
    const [film, places] = side === "a" ? [a, found.a] : [b, found.b];
    const [since, step] = [found.first > 0 ? places[found.first - 1]! : -1, places[found.first]!];
    film.eventStep.forEach((at, event) => {
      if (at <= since || at > step || !differ[side].has(film.data.events.page[event]!)) return;
      const rank = CAUSES.indexOf(film.eventKind(event));
      if (rank >= 0 && rank < least) [best, least] = [{ side, event }, rank];
    });
  }
  return best;
}
