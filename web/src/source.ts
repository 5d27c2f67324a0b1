// Where answers come from: a server that reads a store, or the data an exported file carries.
import type { FilmData } from "./film";

export interface SessionRow {
  session: string;
  title?: string | null;
  /** What the user said first. */
  first?: string | null;
  /** Sent and received, over all calls. */
  tokens?: number | null;
  /** In dollars, as the source has it, and of other calls by a list of prices. */
  cost?: number | null;
  cost_estimated?: number | null;
  /** The source's own verdict: a reward, how it exited. */
  outcome?: string | null;
  /** False where the source records no times, and those known are of the import. */
  timed?: boolean;
  fidelity: string;
  turns: number;
  calls: number;
  pages: number;
  first_at: number | null;
  last_at: number | null;
  budget: number | null;
  policy: string | null;
  model: string | null;
  parent: { session: string; position: number; call: number } | null;
  hidden: boolean;
}

export interface StoreInfo {
  vmstore: string;
  store: string;
  namespace: string;
  live: boolean;
  /** The last commit that erased something; 0 where none did. */
  erased?: number;
  sessions: SessionRow[];
}

/** Which session is meant: as it stands in the log, or decided again under a policy or a budget. */
export interface Which {
  session: string;
  policy?: string;
  budget?: string;
}

export interface Text {
  text: string;
  bytes: number;
  cut: boolean;
  mime?: string;
  /** Why there is none: its source never held it, or it was erased. */
  missing?: string;
  /** What it is read by in lists, where that is not its beginning. */
  line?: string;
  /** What the tool was asked whose answer it is. */
  asked?: string;
}

export interface Answer {
  basis?: { session?: string; position?: number; turn?: number; call?: number };
  columns: { name: string; type: string }[];
  rows: Record<string, unknown>[];
  elapsed_ms: number;
  /** How it may be drawn: table, context, diff, history, lineage, why, text, messages, explain. */
  kind?: string;
  next?: string;
  /** How many rows were sent of more. */
  limited?: number;
}

/** A page that a search found: a line of it with the words marked, who said it and when, and why it was found. */
export interface SearchHit {
  session: string;
  page: string;
  score: number;
  text: string;
  marks: [number, number][];
  call: number;
  turn: number;
  role: string;
  /** What the score is the sum of; none in an exported file. */
  features: Record<string, { value: number; weight: number; adds: number }>;
  /** The asked words that it has, or that stand `away` texts from it, in `page`. */
  words: { word: string; how: string; term: string; page: string; away: number }[];
}

export interface SearchAnswer {
  hits: SearchHit[];
  explanation?: {
    score: string;
    texts: number;
    words: { word: string; how: string; terms: string[]; texts: number; weight: number }[];
    required: string[];
    excluded: string[];
    speakers: string[];
    vectors: string | null;
  };
  notes: string[];
}

/** A call's request as it was sent; null where only its messages are known, and `why` says so. */
export interface Request {
  request: unknown;
  messages: unknown[];
  fidelity: string;
  why?: string;
  response?: Answered;
}

/** What came back for a call: its body as it was handed in, or by which rule it is known; `why` where nothing is. */
export interface Answered {
  why?: string;
  status?: string;
  fidelity?: string;
  rule?: string | null;
  body?: unknown;
  messages?: unknown[];
  error?: string | null;
  erased?: string | null;
}

/** A way a query can go on: its text, how many characters before the cursor it replaces, what it is. */
export interface Candidate {
  text: string;
  replaces: number;
  about: string;
}

export interface Until {
  position?: number;
  call?: number;
  turn?: number;
  event?: string;
  /** The row of MOVES, MUTATIONS or whatever was asked that says so. */
  row?: Record<string, unknown>;
  none?: string;
}

/** What an error says: the reason and the remedy in the words of the command, a place in the query if any. */
export class Trouble extends Error {
  constructor(
    readonly reason: string,
    readonly remedy = "",
    readonly detail: Record<string, unknown> = {},
  ) {
    super(reason);
  }
}

export interface Source {
  /** Whether there is a server: only one can answer VMQL, make a what-if or follow a live session. */
  readonly server: boolean;
  store(): Promise<StoreInfo>;
  film(which: Which): Promise<FilmData>;
  texts(which: Which, positions: number[], whole: boolean): Promise<Record<string, Text>>;
  request(which: Which, call: number): Promise<Request>;
  vmql(which: Which, query: string, limit?: number): Promise<Answer>;
  /** The pages that answer words, best first: of the whole session, or up to a call, or of all sessions. */
  search(which: Which, words: string, call: number | null, all: boolean): Promise<SearchAnswer>;
  /** Why a page is in the context of a call, or why it is not. */
  why(which: Which, page: string, call: number, isIn: boolean): Promise<Answer>;
  complete(which: Which, query: string, at: number): Promise<Candidate[]>;
  until(which: Which, predicate: string, after: number): Promise<Until>;
  sweep(which: Which, policies: string, budgets: string): Promise<unknown>;
  /** How many what-ifs of a session are decided, while it is asked for them. */
  progress(session: string): Promise<{ done: number; of: number }>;
  /** Of each page a text that is equal where the first contents of two are. */
  digests(which: Which): Promise<string[]>;
  /** Where the session can be had as one file that opens at a place; null where it is one. */
  exportUrl(which: Which, place: string): string | null;
  /** Where in the page it opens; what is exported has a place of its own. */
  readonly place?: string;
  live(grew: (session: string, position: number) => void): () => void;
}

/** Names are written as VMQL wants them: quoted, quotes twice. */
export function quoted(name: string): string {
  return `'${name.replaceAll("'", "''")}'`;
}

export function whyQuery(page: string, call: number, isIn: boolean): string {
  return `WHY ${isIn ? "" : "NOT "}${quoted(page)} IN CONTEXT AT CALL ${call}`;
}

export function searchQuery(words: string, call: number | null, all: boolean): string {
  return `SEARCH ${quoted(words)}${all ? " ACROSS SESSIONS" : call === null ? "" : ` AS OF CALL ${call}`} LIMIT ${FOUND_MAX}`;
}

const FOUND_MAX = 50;

const LINE_CHARS = 120;

/** One line of a text around the first of some words, and where the words stand in it. */
function lineOf(text: string, words: string[]): { text: string; marks: [number, number][] } {
  const first = Math.min(...words.map((word) => text.toLowerCase().indexOf(word)).filter((at) => at >= 0));
  const from = Math.max(0, first - LINE_CHARS / 4);
  const line = `${from ? "…" : ""}${text.slice(from, from + LINE_CHARS).replaceAll(/\s/g, " ")}`;
  const low = line.toLowerCase();
  const marks: [number, number][] = [];
  for (let at = 0; at < low.length; at++) {
    const word = words.find((one) => low.startsWith(one, at));
    if (word) {
      marks.push([signs(line, at), signs(line, at + word.length)]);
      at += word.length - 1;
    }
  }
  return { text: line, marks };
}

/** How many code points stand before a place: marks are counted in them, as Python does. */
function signs(line: string, at: number): number {
  return [...line.slice(0, at)].length;
}

type Told = Record<string, string | number | undefined>;

export class Server implements Source {
  readonly server = true;

  private async get<T>(path: string, told: Told = {}): Promise<T> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(told)) if (value !== undefined && value !== "") query.set(name, String(value));
    let answer: Response;
    try {
      answer = await fetch(`api/${path}?${query}`, { credentials: "same-origin" });
    } catch {
      throw new Trouble("the server does not answer", "start `vmstore debug` again and reload this page");
    }
    const text = await answer.text();
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      throw new Trouble(`the server answered ${answer.status} without JSON`, "see what `vmstore debug` printed");
    }
    if (answer.ok) return value as T;
    const error = ((value as { error?: Record<string, unknown> }).error ?? {}) as Record<string, unknown>;
    throw new Trouble(String(error.reason ?? `the server answered ${answer.status}`), String(error.remedy ?? ""), error);
  }

  store(): Promise<StoreInfo> {
    return this.get("store");
  }

  film(which: Which): Promise<FilmData> {
    return this.get("film", { ...which });
  }

  async texts(which: Which, positions: number[], whole: boolean): Promise<Record<string, Text>> {
    const told = { ...which, at: positions.join(","), whole: whole ? 1 : undefined };
    return (await this.get<{ texts: Record<string, Text> }>("texts", told)).texts;
  }

  request(which: Which, call: number): Promise<Request> {
    return this.get("request", { ...which, call });
  }

  vmql(which: Which, query: string, limit?: number): Promise<Answer> {
    return this.get("vmql", { ...which, q: query, limit });
  }

  search(which: Which, words: string, call: number | null, all: boolean): Promise<SearchAnswer> {
    return this.get("search", { ...which, q: words, call: call ?? undefined, all: all ? 1 : undefined });
  }

  why(which: Which, page: string, call: number, isIn: boolean): Promise<Answer> {
    return this.vmql(which, whyQuery(page, call, isIn));
  }

  async complete(which: Which, query: string, at: number): Promise<Candidate[]> {
    return (await this.get<{ candidates: Candidate[] }>("complete", { ...which, q: query, at })).candidates;
  }

  until(which: Which, predicate: string, after: number): Promise<Until> {
    return this.get("until", { ...which, q: predicate, after });
  }

  exportUrl(which: Which, place: string): string | null {
    return `api/export?${new URLSearchParams({ ...which, place })}`;
  }

  sweep(which: Which, policies: string, budgets: string): Promise<unknown> {
    return this.get("sweep", { ...which, policies, budgets });
  }

  progress(session: string): Promise<{ done: number; of: number }> {
    return this.get("progress", { session });
  }

  async digests(which: Which): Promise<string[]> {
    return (await this.get<{ digests: string[] }>("digests", { ...which })).digests;
  }

  live(grew: (session: string, position: number) => void): () => void {
    const stream = new EventSource("api/live");
    stream.onmessage = (event) => {
      const told = JSON.parse(event.data as string) as { session: string; position: number };
      grew(told.session, told.position);
    };
    return () => stream.close();
  }
}

interface Exported {
  film: FilmData;
  texts: Record<string, Text>;
  requests?: Record<string, Request>;
  contests?: Record<string, unknown>;
  redacted?: unknown;
  place?: string;
}

/** An exported file: one session, and what was put beside it. */
export class ExportedFile implements Source {
  readonly server = false;

  constructor(readonly data: Exported) {}

  get place(): string {
    return this.data.place ?? "";
  }

  static async read(element: Element): Promise<ExportedFile> {
    const packed = Uint8Array.from(atob((element.textContent ?? "").trim()), (char) => char.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new ExportedFile(JSON.parse(await new Response(stream).text()) as Exported);
  }

  async store(): Promise<StoreInfo> {
    const f = this.data.film;
    const row: SessionRow = {
      session: f.session,
      first: f.words[f.turns.hint[0] ?? 0] ?? null,
      fidelity: f.fidelity,
      turns: f.turns.turn.length,
      calls: f.calls.call.length,
      pages: f.pages.page.length,
      first_at: f.calls.at[0] ?? null,
      last_at: f.calls.at.at(-1) ?? null,
      budget: f.budget,
      policy: f.policy,
      model: f.words[f.calls.model[0] ?? -1] ?? null,
      parent: f.parent,
      hidden: false,
    };
    return { vmstore: "", store: "exported file", namespace: "", live: false, sessions: [row] };
  }

  async film(which: Which): Promise<FilmData> {
    if (which.policy || which.budget) throw needsServer("A what-if is decided");
    return this.data.film;
  }

  async texts(_: Which, positions: number[]): Promise<Record<string, Text>> {
    return Object.fromEntries(positions.flatMap((at) => (this.data.texts[at] ? [[at, this.data.texts[at]]] : [])));
  }

  async request(_: Which, call: number): Promise<Request> {
    return this.data.requests?.[call] ?? this.assembled(call);
  }

  vmql(): Promise<Answer> {
    return Promise.reject(needsServer("VMQL is answered"));
  }

  /** The contents of a call in order, where its messages were too many to be exported. */
  private assembled(call: number): Request {
    const { calls, pages, stays, words } = this.data.film;
    const at = calls.call.indexOf(call);
    const here = [...stays.page.keys()].filter((row) => stays.from[row]! <= at && at < stays.to[row]!);
    const messages = here
      .sort((a, b) => stays.rank[a]! - stays.rank[b]!)
      .map((row) => ({ role: words[pages.role[stays.page[row]!]!], content: this.data.texts[stays.content[row]!]?.text ?? "" }));
    const why = "put together from the pages in this file: a content is a message here, and other fields were not exported";
    return { request: null, messages, fidelity: words[calls.fidelity[at]!] ?? "derived", why };
  }

  /** Pages whose first content holds any of the words, those with most of them first. */
  async search(_: Which, words: string, call: number | null): Promise<SearchAnswer> {
    const { calls, pages, session, words: named } = this.data.film;
    const wanted = [...new Set(words.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean))];
    const end = call === null ? Infinity : (calls.position[calls.call.indexOf(call)] ?? 0);
    const hits = pages.number.flatMap((position, at): SearchHit[] => {
      const text = position <= end ? (this.data.texts[position]?.text ?? "") : "";
      const low = text.toLowerCase();
      const score = wanted.filter((word) => low.includes(word)).length;
      const place = { session, page: pages.page[at]!, call: pages.call[at]!, turn: pages.turn[at]!, role: named[pages.role[at]!]! };
      return score ? [{ ...place, score, ...lineOf(text, wanted), features: {}, words: [] }] : [];
    });
    return { hits: hits.sort((a, b) => b.score - a.score).slice(0, FOUND_MAX), notes: ["by how many of the words a page's first content holds"] };
  }

  /** What the film says of a page up to a call, with the contests that were exported beside it. */
  async why(_: Which, page: string, call: number, isIn: boolean): Promise<Answer> {
    const { calls, events, pages, words } = this.data.film;
    const end = calls.position[calls.call.indexOf(call)] ?? 0;
    const index = pages.page.indexOf(page);
    const rows = events.position.flatMap((position, at) => {
      if (events.page[at] !== index || position > end) return [];
      const contest = this.data.contests?.[position] ?? null;
      return [{ position, turn: events.turn[at], call: events.call[at], event: words[events.kind[at]!], page, reason: words[events.why[at]!], contest }];
    });
    const last = rows.findLast((row) => row.contest !== null);
    const because = last?.reason ? `: ${last.event} at position ${last.position}, ${last.reason}` : "";
    const verdict = { position: end, call, event: isIn ? "in" : "out", page, contest: last?.contest ?? null };
    const reason = `${isIn ? "in" : "not in"} the context of call ${call}${because}`;
    return { columns: [], rows: [{ ...verdict, reason }, ...rows], elapsed_ms: 0 };
  }

  complete(): Promise<Candidate[]> {
    return Promise.resolve([]);
  }

  until(): Promise<Until> {
    return Promise.reject(needsServer("Predicates are tried"));
  }

  exportUrl(): string | null {
    return null;
  }

  sweep(): Promise<never> {
    return Promise.reject(needsServer("A sweep is run"));
  }

  progress(): Promise<{ done: number; of: number }> {
    return this.sweep();
  }

  digests(): Promise<string[]> {
    return Promise.resolve([]);
  }

  live(): () => void {
    return () => undefined;
  }
}

export function needsServer(what: string): Trouble {
  return new Trouble(`${what} by the store, and this is an exported file`, "open the store itself with `vmstore debug STORE`");
}

/** The source of this document: its own data where it carries some, else the server it came from. */
export async function findSource(): Promise<Source> {
  const element = document.getElementById("vmstore-data");
  return element ? await ExportedFile.read(element) : new Server();
}
