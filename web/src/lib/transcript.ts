// A session in reading order: its pages as they were made, a break where a compaction replaced some of
// them, and the place of the call at the cursor. The rows stay as they are while the cursor moves.
import { lowerBound, type Film } from "../film";

/** A compaction: what a call no longer had, and the summaries that stand in its place. */
export interface Compaction {
  at: number;
  pages: number;
  tokens: number;
  summaries: number[];
  summaryTokens: number;
}

export interface TranscriptRow {
  key: string;
  /** The index of a page; -1 where the row is none. */
  page: number;
  /** The index of the first call that could see it. */
  step: number;
  compaction?: Compaction;
  cursor?: boolean;
}

const known = new WeakMap<Film, { rows: TranscriptRow[]; compactions: Compaction[] }>();

/** What each compaction of a session took, in order. */
export function compactions(shown: Film): Compaction[] {
  return read(shown).compactions;
}

function compactionAt(shown: Film, at: number): Compaction {
  const left = shown.left(at);
  const came = [...shown.entered(at)].filter((stay) => shown.isNew(stay) && shown.type(shown.stay.page[stay]!) === "summary");
  return { at, pages: left.length, tokens: shown.tokens(left), summaries: came.map((stay) => shown.stay.page[stay]!), summaryTokens: shown.tokens(came) };
}

function read(shown: Film): { rows: TranscriptRow[]; compactions: Compaction[] } {
  const found = known.get(shown);
  if (found) return found;
  const all = shown.calls ? shown.callsWith(new Set(["compaction"])).map((at) => compactionAt(shown, at)) : [];
  const compactions = all.filter((one) => one.pages > 0);
  const { number } = shown.data.pages;
  const rows = number.map((position, page): TranscriptRow => ({ key: `p${page}`, page, step: lowerBound(shown.callPosition, position) }));
  for (const one of compactions.toReversed()) {
    // It stands before the summary it left; without one, where the call was made.
    const place = one.summaries.length ? Math.min(...one.summaries) : lowerBound(number, shown.callPosition[one.at]!);
    const row = rows.findIndex((other) => other.page === place);
    rows.splice(row < 0 ? rows.length : row, 0, { key: `c${one.at}`, page: -1, step: one.at, compaction: one });
  }
  const made = { rows, compactions };
  known.set(shown, made);
  return made;
}

/** All rows with the cursor's among them: behind what its call could see, before what answered it. */
export function transcript(shown: Film, at: number): { rows: TranscriptRow[]; cursor: number } {
  const { rows } = read(shown);
  if (!shown.calls) return { rows, cursor: -1 };
  let [cursor, end] = [0, rows.length];
  while (cursor < end) {
    const middle = (cursor + end) >> 1;
    if (rows[middle]!.step > at) end = middle;
    else cursor = middle + 1;
  }
  return { rows: rows.toSpliced(cursor, 0, { key: "cursor", page: -1, step: at, cursor: true }), cursor };
}
