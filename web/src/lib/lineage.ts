// The provenance graph of a page: its sources to the left, what was made of it to the right, each as far
// from it as the fewest links say. The layout stays put: in its column a page takes the next free place
// when the link that first leads to it is said, so what comes later never moves what stands.

/** A link: `from` relates to `to`, as was said at a position. */
export interface Link {
  from: string;
  to: string;
  kind: string;
  position: number;
}

/** A place in the graph: one page, or pages of one look that are folded into one. */
export interface Box {
  id: string;
  pages: string[];
  /** Columns from the page in the middle, sources to the left. */
  column: number;
  row: number;
}

export interface Edge {
  from: string;
  to: string;
  kind: string;
  links: number;
}

export interface Graph {
  boxes: Box[];
  edges: Edge[];
  columns: [number, number];
  rows: number;
}

export const FOLDED_MIN = 2; // from the first of one look on its place is the fold's, so folding moves nothing

/**
 * Places every page that links lead to from `root`. `look` says which pages are alike; `open` whether a
 * fold is shown page by page.
 */
export function graph(root: string, links: readonly Link[], look: (page: string) => string, open: (fold: string) => boolean): Graph {
  const all = once(links);
  const columns = new Map([[root, 0]]);
  const since = new Map([[root, 0]]);
  walk(root, all, -1, columns, since);
  walk(root, all, 1, columns, since);
  const boxes = placed(columns, since, look, open);
  const boxOf = new Map(boxes.flatMap((box) => box.pages.map((page) => [page, box.id] as const)));
  const edges = new Map<string, Edge>();
  for (const { from, to, kind } of all) {
    const [start, end] = [boxOf.get(from), boxOf.get(to)];
    if (!start || !end || start === end) continue;
    const key = `${start}\n${end}\n${kind}`;
    const known = edges.get(key);
    if (known) known.links++;
    else edges.set(key, { from: start, to: end, kind, links: 1 });
  }
  const xs = boxes.map((box) => box.column);
  return { boxes, edges: [...edges.values()], columns: [Math.min(...xs), Math.max(...xs)], rows: Math.max(...boxes.map((box) => box.row)) + 1 };
}

function once(links: readonly Link[]): Link[] {
  const found = new Map(links.map((one) => [`${one.from}\n${one.to}\n${one.kind}\n${one.position}`, one]));
  return [...found.values()].sort((x, y) => x.position - y.position || (x.from < y.from ? -1 : 1));
}

/** Steps outwards from the root, to sources (-1) or to what was made (1); who has a column keeps it. */
function walk(root: string, links: Link[], way: -1 | 1, columns: Map<string, number>, since: Map<string, number>): void {
  const next = grouped(links, (one) => (way < 0 ? one.from : one.to));
  let edge = [root];
  for (let column = way; edge.length; column += way) {
    const reached: string[] = [];
    for (const page of edge) {
      for (const link of next.get(page) ?? []) {
        const found = way < 0 ? link.to : link.from;
        if (!columns.has(found)) {
          columns.set(found, column);
          reached.push(found);
        }
        if (columns.get(found) === column) since.set(found, Math.min(since.get(found) ?? Infinity, link.position));
      }
    }
    edge = reached;
  }
}

function placed(columns: Map<string, number>, since: Map<string, number>, look: (page: string) => string, open: (fold: string) => boolean): Box[] {
  const order = [...columns.keys()].sort((a, b) => since.get(a)! - since.get(b)! || numberOf(a) - numberOf(b) || (a < b ? -1 : 1));
  const boxes: Box[] = [];
  for (const [column, pages] of grouped(order, (page) => columns.get(page)!)) {
    let row = 0;
    const folds = grouped(pages, look);
    const done = new Set<string>();
    for (const page of pages) {
      const alike = folds.get(look(page))!;
      const fold = `${column} ${look(page)}`;
      if (column === 0 || alike.length < FOLDED_MIN || open(fold)) boxes.push({ id: page, pages: [page], column, row: row++ });
      else if (!done.has(fold)) boxes.push({ id: fold, pages: alike, column, row: row++ });
      done.add(fold);
    }
  }
  return boxes;
}

function grouped<K, V>(all: readonly V[], keyOf: (one: V) => K): Map<K, V[]> {
  const found = new Map<K, V[]>();
  for (const one of all) {
    const known = found.get(keyOf(one));
    if (known) known.push(one);
    else found.set(keyOf(one), [one]);
  }
  return found;
}

/** The number in a page's name: `p17` comes before `p102`. */
function numberOf(page: string): number {
  return Number(/\d+$/.exec(page)?.[0] ?? 0);
}
