// What a page held: its versions and shorter forms, told by the film alone.
import { LEVELS, type Film } from "../film";

/** One content of a page. */
export interface Content {
  /** The position that made it, by which its text is asked for. */
  content: number;
  version: number;
  /** 0 is the full text, above it a shorter form of that version. */
  level: number;
  /** Null where no call was ever sent it, and it is not the last version either. */
  tokens: number | null;
  /** How it was made, where anybody said so. */
  why: string;
}

/** Something that happened to a page. */
export interface Moment {
  position: number;
  /** The index of the first call that shows it; the number of calls where none does yet. */
  step: number;
  kind: string;
  why: string;
  /** The content it made, or that was shown from then on. */
  content: Content | null;
}

interface Made {
  contents: Content[];
  at: Map<number, Content>;
}

const made = new WeakMap<Film, Made[]>();

function all(film: Film): Made[] {
  const known = made.get(film);
  if (known) return known;
  const { pages, events } = film.data;
  const found: Made[] = pages.page.map(() => ({ contents: [], at: new Map() }));
  const add = (page: number, content: number, level: number, why: string): void => {
    const of = found[page]!;
    if (of.at.has(content)) return;
    const full = of.contents.filter((one) => one.level === 0).length;
    const one = { content, version: level === 0 ? full + 1 : full, level, tokens: null, why };
    of.contents.push(one);
    of.at.set(content, one);
  };
  pages.number.forEach((number, page) => add(page, number, 0, ""));
  events.position.forEach((position, event) => {
    const kind = film.eventKind(event);
    if (events.page[event]! < 0 || (kind !== "update" && kind !== "compress")) return;
    const why = film.word(events.why[event]);
    const [shown] = why.split(",");
    const level = kind === "update" ? 0 : Math.max(1, (LEVELS as readonly string[]).indexOf(shown!));
    add(events.page[event]!, position, level, why);
  });
  // What was sent tells its tokens, and a content that no event told of.
  const { page, content, level, tokens } = film.stay;
  for (let stay = 0; stay < page.length; stay++) {
    add(page[stay]!, content[stay]!, level[stay]!, "");
    const one = found[page[stay]!]!.at.get(content[stay]!)!;
    one.tokens = tokens[stay]!;
    one.level = level[stay]!;
  }
  found.forEach((of, page) => {
    const last = of.contents.findLast((one) => one.level === 0);
    if (last) last.tokens ??= pages.tokens[page]!;
  });
  made.set(film, found);
  return found;
}

/** All contents of a page, in the order they were made. */
export function contentsOf(film: Film, page: number): Content[] {
  return all(film)[page]?.contents ?? [];
}

/** Which version of its page a stay showed. */
export function versionOf(film: Film, stay: number): number {
  return all(film)[film.stay.page[stay]!]!.at.get(film.stay.content[stay]!)!.version;
}

/** All that happened to a page, in order, with the content that each moment made or put in the prompt. */
export function historyOf(film: Film, page: number): Moment[] {
  const { events } = film.data;
  const { at } = all(film)[page] ?? { at: new Map<number, Content>() };
  const found: Moment[] = [];
  events.page.forEach((one, event) => {
    if (one !== page) return;
    const [position, step, kind] = [events.position[event]!, film.eventStep[event]!, film.eventKind(event)];
    const stay = kind === "enter" || kind === "shown" ? film.stayOf(page, step) : -1;
    const content = stay >= 0 ? film.stay.content[stay]! : position;
    found.push({ position, step, kind, why: film.word(events.why[event]), content: at.get(content) ?? null });
  });
  return found;
}
