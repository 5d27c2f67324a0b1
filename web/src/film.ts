// The film of a session: what was in the context of each call, and what happened between calls.
// It comes as columns and stays columns: a context is one pass over typed arrays.

import { clamp, dollars } from "./format";

export type Words = number[]; // indexes into `words`
type Maybe = (number | null)[];

export interface FilmData {
  session: string;
  position: number;
  fidelity: string;
  budget: number | null;
  policy: string | null;
  parent: { session: string; position: number; call: number } | null;
  estimator: string;
  whatif: null | { policy: string | null; budget: number | null; of: string };
  words: string[];
  turns: { turn: number[]; position: number[]; at: number[]; hint: Words };
  calls: {
    call: number[];
    turn: number[];
    position: number[];
    at: number[];
    model: Words;
    status: Words;
    fidelity: Words;
    tokens: number[];
    reported: Maybe;
    cached: Maybe;
    out: Maybe;
    cost: Maybe;
    /** By list prices, of calls whose cost the source does not have. */
    cost_estimated?: Maybe;
    latency: Maybe;
    budget: Maybe;
    invalidated: Maybe;
  };
  pages: {
    page: string[];
    number: number[];
    hint: Words;
    type: Words;
    role: Words;
    modality: Words;
    turn: number[];
    call: number[];
    tokens: number[];
    versions: number[];
    pinned: number[];
    /** The tool that a page asks or answers for. */
    tool?: Words;
  };
  stays: {
    page: number[];
    content: number[];
    level: number[];
    tokens: number[];
    rank: number[];
    from: number[];
    to: number[];
  };
  events: { position: number[]; call: number[]; turn: number[]; kind: Words; page: number[]; why: Words };
  marks: { name: string; position: number; call: number; note: string | null }[];
}

export const LEVELS = ["full", "reduced", "abstract", "reference"] as const;
export const STACKS = ["role", "level", "modality", "type"] as const;
export type StackBy = (typeof STACKS)[number];

/** Sums of tokens by call, one column a group, in the order in which they are stacked. */
export interface Stack {
  keys: string[];
  sums: Float64Array[];
}

/** The least index whose value is at least `wanted`; the length where there is none. */
export function lowerBound(values: ArrayLike<number>, wanted: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((values[middle] as number) < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Columns of numbers are read often: they become typed arrays once. */
function ints(column: number[]): Int32Array {
  return new Int32Array(column);
}

function byColumn(column: Int32Array, size: number): { starts: Int32Array; order: Int32Array } {
  const starts = new Int32Array(size + 2);
  for (const value of column) if (value <= size) starts[value + 1]!++;
  for (let at = 0; at <= size; at++) starts[at + 1]! += starts[at]!;
  const fill = starts.slice();
  const order = new Int32Array(starts[size + 1]!);
  for (let row = 0; row < column.length; row++) {
    const value = column[row]!;
    if (value <= size) order[fill[value]!++] = row;
  }
  return { starts, order };
}

export class Film {
  readonly calls: number;
  readonly pages: number;
  readonly callNumber: Int32Array;
  readonly callPosition: Int32Array;
  /** In dollars, of each call: as the source has it, else by list prices. */
  readonly cost: Maybe;
  readonly stay: { page: Int32Array; content: Int32Array; level: Int32Array; tokens: Int32Array; rank: Int32Array; from: Int32Array; to: Int32Array };
  /** Of each event the index of the first call that shows its effect; `calls` where none does yet. */
  readonly eventStep: Int32Array;
  /** Each kind of event there is, with how many of it. */
  readonly kinds: Map<string, number>;
  private readonly byRank: Int32Array;
  private readonly beginning: { starts: Int32Array; order: Int32Array };
  private readonly ending: { starts: Int32Array; order: Int32Array };
  private readonly pageOf = new Map<string, number>();
  private readonly contexts = new Map<number, Int32Array>();
  private readonly stacks = new Map<StackBy, Stack>();
  private staysOf: { starts: Int32Array; order: Int32Array } | undefined;

  constructor(readonly data: FilmData) {
    this.calls = data.calls.call.length;
    this.pages = data.pages.page.length;
    this.callNumber = ints(data.calls.call);
    this.callPosition = ints(data.calls.position);
    this.cost = data.calls.cost.map((one, at) => one ?? data.calls.cost_estimated?.[at] ?? null);
    const s = data.stays;
    this.stay = {
      page: ints(s.page),
      content: ints(s.content),
      level: ints(s.level),
      tokens: ints(s.tokens),
      rank: ints(s.rank),
      from: ints(s.from),
      to: ints(s.to),
    };
    // Ranks may be wider than 32 bits hold; they are compared as they came.
    this.byRank = this.stay.page.map((_, at) => at).sort((a, b) => s.rank[a]! - s.rank[b]! || a - b);
    this.beginning = byColumn(this.stay.from, this.calls);
    this.ending = byColumn(this.stay.to, this.calls);
    data.pages.page.forEach((name, at) => this.pageOf.set(name, at));
    this.eventStep = ints(data.events.position).map((position) => lowerBound(this.callPosition, position));
    const many = new Map<number, number>();
    for (const kind of data.events.kind) many.set(kind, (many.get(kind) ?? 0) + 1);
    this.kinds = new Map([...many].map(([kind, count]) => [data.words[kind]!, count]));
  }

  word(index: number | undefined): string {
    return index === undefined ? "" : (this.data.words[index] ?? "");
  }

  line(name: "reported" | "cached" | "cost"): Maybe {
    return name === "cost" ? this.cost : this.data.calls[name];
  }

  /** What a call cost; `~` marks an estimate. */
  costOf(at: number): string {
    return `${this.data.calls.cost_estimated?.[at] ? "~" : ""}${dollars(this.cost[at] ?? 0)}`;
  }

  /** The index of a call by its number, or of the nearest one. */
  indexOf(call: number): number {
    const at = lowerBound(this.callNumber, call);
    return Math.min(at, Math.max(0, this.calls - 1));
  }

  /** The index of the call that shows what happened at a position: the last where none does yet. */
  stepAt(position: number): number {
    return Math.min(lowerBound(this.callPosition, position), Math.max(0, this.calls - 1));
  }

  /** The index of the last call of a turn, or of the nearest call after it. */
  turnEnd(turn: number): number {
    return clamp(this.calls - 1, lowerBound(this.data.calls.turn, turn + 1) - 1);
  }

  pageIndex(name: string): number {
    return this.pageOf.get(name) ?? -1;
  }

  pageName(page: number): string {
    return this.data.pages.page[page] ?? "";
  }

  hint(page: number): string {
    return this.word(this.data.pages.hint[page]);
  }

  role(page: number): string {
    return this.word(this.data.pages.role[page]);
  }

  type(page: number): string {
    return this.word(this.data.pages.type[page]);
  }

  tool(page: number): string {
    return this.word(this.data.pages.tool?.[page]);
  }

  modality(page: number): string {
    return this.word(this.data.pages.modality[page]);
  }

  eventKind(event: number): string {
    return this.word(this.data.events.kind[event]);
  }

  fidelity(at: number): string {
    return this.word(this.data.calls.fidelity[at]);
  }

  /** The stays that make up the context of a call, in the order of the prompt. */
  context(at: number): Int32Array {
    const known = this.contexts.get(at);
    if (known) return known;
    const { from, to } = this.stay;
    const found = new Int32Array(this.byRank.length);
    let size = 0;
    for (const row of this.byRank) if (from[row]! <= at && at < to[row]!) found[size++] = row;
    const context = found.slice(0, size);
    if (this.contexts.size > 64) this.contexts.clear();
    this.contexts.set(at, context);
    return context;
  }

  /** The stay of a page in the context of a call; -1 where it is not in it. */
  stayOf(page: number, at: number): number {
    this.staysOf ??= byColumn(this.stay.page, this.pages);
    const { starts, order } = this.staysOf;
    for (let k = starts[page]!; k < starts[page + 1]!; k++) {
      const row = order[k]!;
      if (this.stay.from[row]! <= at && at < this.stay.to[row]!) return row;
    }
    return -1;
  }

  /** The last stay of a page that began at a call or before; -1 where it never was in a context. */
  lastStay(page: number, at: number): number {
    this.staysOf ??= byColumn(this.stay.page, this.pages);
    const { starts, order } = this.staysOf;
    let last = -1;
    for (let k = starts[page]!; k < starts[page + 1]!; k++) {
      const row = order[k]!;
      if (this.stay.from[row]! <= at && (last < 0 || this.stay.from[row]! > this.stay.from[last]!)) last = row;
    }
    return last;
  }

  /** The position of what was last shown of a page at a call, or of its first content where nothing ever was. */
  contentOf(page: number, at: number): number {
    const last = this.lastStay(page, at);
    return last < 0 ? this.data.pages.number[page]! : this.stay.content[last]!;
  }

  /** The stays that began with a call: of pages the call before did not have, or had differently. */
  entered(at: number): Int32Array {
    const { starts, order } = this.beginning;
    return order.slice(starts[at]!, starts[at + 1]!);
  }

  /** Whether a stay is of a page that the call before it did not have. */
  isNew(stay: number): boolean {
    const from = this.stay.from[stay]!;
    return from === 0 || this.stayOf(this.stay.page[stay]!, from - 1) < 0;
  }

  /** The stays that ended with a call, of pages it no longer has at all, in the order of the prompt. */
  left(at: number): Int32Array {
    const { starts, order } = this.ending;
    const gone = order.slice(starts[at]!, starts[at + 1]!).filter((row) => this.stayOf(this.stay.page[row]!, at) < 0);
    return gone.sort((a, b) => this.data.stays.rank[a]! - this.data.stays.rank[b]! || a - b);
  }

  /** The pages made before a call that are not in its context, the latest first. */
  absent(at: number): Int32Array {
    const here = new Uint8Array(this.pages);
    for (const row of this.context(at)) here[this.stay.page[row]!] = 1;
    const before = this.callPosition[at] ?? this.data.position;
    const found: number[] = [];
    for (let page = this.pages - 1; page >= 0; page--) {
      if (!here[page] && this.data.pages.number[page]! <= before) found.push(page);
    }
    return Int32Array.from(found);
  }

  tokens(rows: Iterable<number>): number {
    let sum = 0;
    for (const row of rows) sum += this.stay.tokens[row]!;
    return sum;
  }

  /** Tokens of each call by role, level, modality or type: differences first, then their running sums. */
  stack(by: StackBy): Stack {
    const known = this.stacks.get(by);
    if (known) return known;
    const groups = new Map<string, Float64Array>();
    const { page, level, tokens, from, to } = this.stay;
    for (let row = 0; row < page.length; row++) {
      const key = by === "level" ? (LEVELS[level[row]!] ?? `level ${level[row]}`) : this[by](page[row]!);
      let sums = groups.get(key);
      if (!sums) groups.set(key, (sums = new Float64Array(this.calls + 1)));
      sums[from[row]!]! += tokens[row]!;
      if (to[row]! < this.calls) sums[to[row]!]! -= tokens[row]!;
    }
    for (const sums of groups.values()) for (let at = 1; at < this.calls; at++) sums[at]! += sums[at - 1]!;
    const keys = [...groups.keys()].sort((a, b) => order(by, a) - order(by, b) || (a < b ? -1 : 1));
    const stack = { keys, sums: keys.map((key) => groups.get(key)!.subarray(0, this.calls)) };
    this.stacks.set(by, stack);
    return stack;
  }

  /** The calls with an event of one of these kinds, each once, in order. */
  callsWith(kinds: ReadonlySet<string>): number[] {
    const wanted = this.data.words.map((word) => kinds.has(word));
    const { kind } = this.data.events;
    const has = new Uint8Array(this.calls);
    for (let event = 0; event < kind.length; event++) {
      if (wanted[kind[event]!]) has[Math.min(this.eventStep[event]!, this.calls - 1)] = 1;
    }
    const found: number[] = [];
    for (let at = 0; at < this.calls; at++) if (has[at]) found.push(at);
    return found;
  }
}

const ORDERS: Record<string, readonly string[]> = {
  role: ["system", "developer", "user", "assistant", "tool", "other"],
  level: LEVELS,
  modality: ["text", "structured", "image", "audio", "video"],
  type: ["procedure", "index", "summary", "claim", "artifact", "transcript", "raw"],
};

function order(by: StackBy, key: string): number {
  const at = ORDERS[by]!.indexOf(key);
  return at < 0 ? 99 : at;
}
