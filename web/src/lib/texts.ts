// The difference of two texts: line by line, and word by word where lines were replaced.
import { align, numbered } from "./sequence";

const AROUND = 3; // lines shown beside a change
const WORDS_MAX = 6000; // of a replaced block; a longer one is shown as lines alone
const ALIKE_MIN = 0.25; // of its characters, for words to be told apart in it

export interface Piece {
  text: string;
  /** Whether this is what differs. */
  hot: boolean;
}

/** A line of a difference; a `gap` stands for lines that are the same on both sides and not shown. */
export interface Line {
  kind: "same" | "gone" | "came" | "gap";
  /** Line numbers from 1; 0 on the side that has no such line. A gap's are those of its first line. */
  before: number;
  after: number;
  pieces: Piece[];
  /** How many lines a gap stands for. */
  lines: number;
}

export interface TextDiff {
  lines: Line[];
  gone: number;
  came: number;
}

/** The difference of two texts, with a few lines around each change; `all` leaves no line out. */
export function diffTexts(before: string, after: string, all = false): TextDiff {
  const [a, b] = [split(before), split(after)];
  const [x, y] = numbered(a, b);
  const partner = align(x, y);
  const lines: Line[] = [];
  let [at, bt, gone, came] = [0, 0, 0, 0];
  while (at < a.length || bt < b.length) {
    if (at < a.length && partner[at] === bt) {
      lines.push({ kind: "same", before: ++at, after: ++bt, pieces: [{ text: a[at - 1]!, hot: false }], lines: 1 });
      continue;
    }
    const [a0, b0] = [at, bt];
    while (at < a.length && partner[at] === -1) at++;
    const end = at < a.length ? partner[at]! : b.length;
    bt = end;
    const [left, right] = diffWords(a.slice(a0, at).join("\n"), b.slice(b0, bt).join("\n"), at > a0 && bt > b0);
    if (at > a0) left.forEach((pieces, k) => lines.push({ kind: "gone", before: a0 + k + 1, after: 0, pieces, lines: 1 }));
    if (bt > b0) right.forEach((pieces, k) => lines.push({ kind: "came", before: 0, after: b0 + k + 1, pieces, lines: 1 }));
    gone += at - a0;
    came += bt - b0;
  }
  return { lines: all ? lines : folded(lines), gone, came };
}

function split(text: string): string[] {
  return text === "" ? [] : text.split("\n");
}

/** A replaced block on both sides, each as lines of pieces. */
function diffWords(before: string, after: string, both: boolean): [Piece[][], Piece[][]] {
  const plain = (text: string): Piece[][] => text.split("\n").map((one) => [{ text: one, hot: false }]);
  if (!both) return [plain(before), plain(after)];
  const [a, b] = [words(before), words(after)];
  if (a.length + b.length > WORDS_MAX) return [plain(before), plain(after)];
  const [x, y] = numbered(a, b);
  const partner = align(x, y);
  const kept = new Uint8Array(b.length);
  let alike = 0;
  partner.forEach((bt, at) => {
    if (bt < 0) return;
    kept[bt] = 1;
    if (/\w/.test(a[at]!)) alike += a[at]!.length;
  });
  if (alike < ALIKE_MIN * Math.max(before.length, after.length)) return [plain(before), plain(after)];
  return [lined(a, (at) => partner[at]! < 0), lined(b, (bt) => !kept[bt])];
}

function words(text: string): string[] {
  return text.match(/[\p{L}\p{N}_]+|\s|[^\p{L}\p{N}_\s]/gu) ?? [];
}

/** Words as lines of pieces, neighbours of one kind joined. */
function lined(all: string[], isHot: (at: number) => boolean): Piece[][] {
  const lines: Piece[][] = [[]];
  all.forEach((word, at) => {
    if (word === "\n") return void lines.push([]);
    const line = lines.at(-1)!;
    const last = line.at(-1);
    const hot = isHot(at);
    if (last && last.hot === hot) last.text += word;
    else line.push({ text: word, hot });
  });
  return lines;
}

/** Leaves out what is the same and far from any change. */
function folded(lines: Line[]): Line[] {
  const near = new Uint8Array(lines.length);
  lines.forEach((line, at) => {
    if (line.kind !== "same") near.fill(1, Math.max(0, at - AROUND), at + AROUND + 1);
  });
  const kept: Line[] = [];
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!;
    const last = kept.at(-1);
    if (near[at]) kept.push(line);
    else if (last?.kind === "gap") last.lines++;
    else kept.push({ ...line, kind: "gap", pieces: [] });
  }
  return kept;
}
