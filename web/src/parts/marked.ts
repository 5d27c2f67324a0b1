// A line of a hit cut where its marks begin and end: every second piece is marked.
import type { SearchHit } from "../source";

export function marked(hit: SearchHit): string[] {
  const signs = [...hit.text];
  const ends = [0, ...hit.marks.flat(), signs.length];
  return ends.slice(1).map((end, at) => signs.slice(ends[at], end).join(""));
}
