// Aligning two sequences: lines, words and pages alike. What is alike at both ends is taken first, then
// what is unique on both sides and in one order, and the gaps between by Myers's shortest edit, up to
// a bound: beyond it the gap counts as replaced, so that no pair of texts takes long.

const EDITS_MAX = 400; // of one gap

/** The texts of two sequences as numbers, equal where the texts are. */
export function numbered(a: readonly string[], b: readonly string[]): [Int32Array, Int32Array] {
  const known = new Map<string, number>();
  const of = (one: string): number => {
    let found = known.get(one);
    if (found === undefined) known.set(one, (found = known.size));
    return found;
  };
  return [Int32Array.from(a, of), Int32Array.from(b, of)];
}

/** For each element of `a` the index of the one of `b` that it is taken for, or -1; both sides keep their order. */
export function align(a: Int32Array, b: Int32Array): Int32Array {
  const found = new Int32Array(a.length).fill(-1);
  const todo: [number, number, number, number][] = [[0, a.length, 0, b.length]];
  for (let gap = todo.pop(); gap; gap = todo.pop()) {
    let [a0, a1, b0, b1] = gap;
    while (a0 < a1 && b0 < b1 && a[a0] === b[b0]) found[a0++] = b0++;
    while (a0 < a1 && b0 < b1 && a[a1 - 1] === b[b1 - 1]) found[--a1] = --b1;
    if (a0 === a1 || b0 === b1) continue;
    const anchors = unique(a, a0, a1, b, b0, b1);
    if (!anchors.length) {
      shortest(a, a0, a1, b, b0, b1, found);
      continue;
    }
    for (const [at, bt] of anchors) {
      todo.push([a0, at, b0, bt]);
      found[at] = bt;
      [a0, b0] = [at + 1, bt + 1];
    }
    todo.push([a0, a1, b0, b1]);
  }
  return found;
}

/** The longest run, in one order, of what stands exactly once in each of two stretches. */
function unique(a: Int32Array, a0: number, a1: number, b: Int32Array, b0: number, b1: number): [number, number][] {
  const seen = new Map<number, { at: number; bt: number }>(); // -1 not seen, -2 seen twice
  for (let at = a0; at < a1; at++) {
    const one = seen.get(a[at]!);
    if (one) one.at = -2;
    else seen.set(a[at]!, { at, bt: -1 });
  }
  for (let bt = b0; bt < b1; bt++) {
    const one = seen.get(b[bt]!);
    if (one) one.bt = one.bt === -1 ? bt : -2;
  }
  const pairs = [...seen.values()].filter((one) => one.at >= 0 && one.bt >= 0);
  const kept = rising(pairs.map((one) => one.bt));
  return kept.map((nth) => [pairs[nth]!.at, pairs[nth]!.bt]);
}

/** The indexes of a longest rising run of numbers, none of which is there twice. */
export function rising(values: ArrayLike<number>): number[] {
  const tails: number[] = [];
  const before = new Int32Array(values.length);
  for (let at = 0; at < values.length; at++) {
    let low = 0;
    let high = tails.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[tails[middle]!]! < values[at]!) low = middle + 1;
      else high = middle;
    }
    before[at] = low ? tails[low - 1]! : -1;
    tails[low] = at;
  }
  const run: number[] = [];
  for (let at = tails.at(-1) ?? -1; at >= 0; at = before[at]!) run.push(at);
  return run.reverse();
}

/** Myers's greedy search for the shortest edit of one stretch into another; what it keeps goes to `found`. */
function shortest(a: Int32Array, a0: number, a1: number, b: Int32Array, b0: number, b1: number, found: Int32Array): void {
  const [n, m] = [a1 - a0, b1 - b0];
  const most = Math.min(n + m, EDITS_MAX);
  const reach = new Int32Array(2 * most + 3); // furthest x on each diagonal, which is shifted by most + 1
  const trace: Int32Array[] = [];
  for (let edits = 0; edits <= most; edits++) {
    trace.push(reach.slice(most + 1 - edits, most + 2 + edits));
    for (let k = -edits; k <= edits; k += 2) {
      const at = k + most + 1;
      let x = k === -edits || (k !== edits && reach[at - 1]! < reach[at + 1]!) ? reach[at + 1]! : reach[at - 1]! + 1;
      while (x < n && x - k < m && a[a0 + x] === b[b0 + x - k]) x++;
      reach[at] = x;
      if (x >= n && x - k >= m) return walkBack(trace, a0, b0, n, m, found);
    }
  }
}

/** Back along the furthest points of each number of edits: the diagonal steps are what was kept. */
function walkBack(trace: Int32Array[], a0: number, b0: number, n: number, m: number, found: Int32Array): void {
  let [x, y] = [n, m];
  for (let edits = trace.length - 1; edits >= 0; edits--) {
    const reach = trace[edits]!; // of one edit less, the diagonal 0 in its middle
    const at = (k: number): number => reach[k + edits] ?? -1;
    const k = x - y;
    const down = k === -edits || (k !== edits && at(k - 1) < at(k + 1));
    const fromX = edits === 0 ? 0 : down ? at(k + 1) : at(k - 1);
    const fromY = edits === 0 ? 0 : fromX - (down ? k + 1 : k - 1);
    const startX = edits === 0 ? 0 : down ? fromX : fromX + 1;
    while (x > startX) found[a0 + --x] = b0 + --y;
    [x, y] = [fromX, fromY];
  }
}
