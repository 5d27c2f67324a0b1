// Where a page comes from and what was made of it, as a graph that stays put: sources to the left, what
// was made of it to the right. Pages of one look are folded until somebody opens the fold.
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { useAsked, useVmql } from "../asked";
import { count, typedIn } from "../format";
import type { Film } from "../film";
import { graph, type Box, type Graph, type Link } from "../lib/lineage";
import { go, param } from "../place";
import { Grow, Mute, Tool } from "../parts/bits";
import { about, InVmql, PageName, RoleBar } from "../parts/badges";
import { NoPage, Waiting } from "../parts/content";
import { quoted, type Answer, type Which } from "../source";
import { cursor, film, grown, page, pageName, source, which } from "../state";
import type { Pane } from "./index";

const LIMIT = 1000;
const EVIDENCE_MAX = 5;
const DEPTH = 3;
const WIDE = 216;
const BOX = 168;
const HIGH = 34;
const EDGE = 12;

function root(): string {
  return param("root").value || pageName.value;
}

function depth(): number {
  return Math.max(1, Math.min(20, Number(param("depth").value) || DEPTH));
}

interface Told {
  links: Link[];
  more: boolean;
}

async function linksOf(of: Which, name: string, far: number): Promise<Told> {
  const ask = (query: string): Promise<Answer> => source.value!.vmql(of, query, LIMIT);
  const answers = await Promise.all([ask(`SOURCES OF ${quoted(name)} DEPTH ${far}`), ask(`DERIVED FROM ${quoted(name)} DEPTH ${far}`)]);
  const links = answers.flatMap((answer) => answer.rows.map((row) => ({ from: String(row.source), to: String(row.target), kind: String(row.kind), position: Number(row.position) })));
  return { links, more: answers.some((answer) => answer.limited !== undefined) };
}

function Lineage() {
  const shown = film.value;
  const name = root();
  const of = which.value;
  const asked = useAsked<Told>(shown && shown.pageIndex(name) >= 0 ? `lineage ${JSON.stringify(of)} ${grown.value} ${name} ${depth()}` : "", () => linksOf(of, name, depth()));
  if (!shown) return null;
  if (shown.pageIndex(name) < 0) return <NoPage name={name} to="where it comes from" />;
  return (
    <div class="lineage">
      <Head shown={shown} name={name} more={asked.value?.more ?? false} />
      <Waiting asked={asked} />
      {asked.value && <Drawn shown={shown} name={name} links={asked.value.links} />}
      {asked.value?.links.every((link) => link.from !== name) && <Evidence name={name} />}
    </div>
  );
}

function Head({ shown, name, more }: { shown: Film; name: string; more: boolean }) {
  const hint = shown.hint(shown.pageIndex(name));
  const expanded = param("unfold").value === "all";
  const query = `SOURCES OF ${quoted(name)} DEPTH ${depth()}`;
  return (
    <div class="pane-head">
      <h2>{name}{hint && <em> {hint}</em>}</h2>
      <span class="switch" role="group" aria-label="group similar pages">
        <button class={expanded ? "" : "on"} onClick={() => go({ unfold: null })}>aggregated</button>
        <button class={expanded ? "on" : ""} onClick={() => go({ unfold: "all" })}>expanded</button>
      </span>
      <label class="check">
        links far{" "}
        <input class="call-field" data-focus type="number" min={1} max={20} aria-label="links far" value={depth()} onChange={(event) => go({ root: name, depth: typedIn(event) === String(DEPTH) ? null : typedIn(event) })} />
      </label>
      {page.value >= 0 && pageName.value !== name && <Tool onClick={() => go({ root: pageName.value, unfold: null })}>start from {pageName.value}</Tool>}
      {more && <span class="chip" title="ask in VMQL with a LIMIT for the rest">the first {count(LIMIT)} links each way</span>}
      <Grow />
      <InVmql query={query} />
    </div>
  );
}

/** What an answer may have come from, where nobody logged it: ranked by the words it repeats, and in no graph. */
function Evidence({ name }: { name: string }) {
  const query = `SOURCES OF ${quoted(name)} VIA evidence`;
  const asked = useVmql(query, EVIDENCE_MAX);
  const rows = asked.value?.rows;
  if (!rows) return <Mute>{asked.error?.reason}</Mute>;
  if (!rows.length) return null;
  return (
    <section class="evidence">
      <h3>It may have come from <small>evidence, not logged: by the words both have and what was new</small></h3>
      <ol class="chain">
        {rows.map((row) => (
          <li key={row.page}>
            <span class="num">{String(row.rank)}</span>
            <RoleBar of={String(row.role)} />
            <span class="chain-text">
              <PageName name={String(row.page)} hint /> {row.new && <small class="chip">new in call {String(row.call)}</small>} <code>{(row.shared as string[]).join(" · ")}</code> <small>{String(row.text)}</small>
            </span>
          </li>
        ))}
      </ol>
      <InVmql query={query} />
    </section>
  );
}

function graphOf(shown: Film, name: string, links: readonly Link[]): Graph {
  const told = param("unfold").value;
  const unfolded = new Set(told.split(","));
  const look = (one: string): string => {
    const at = shown.pageIndex(one);
    return at < 0 ? "elsewhere" : `${shown.type(at)} ${shown.role(at)}`;
  };
  return graph(name, links, look, (fold) => told === "all" || unfolded.has(fold));
}

function Drawn({ shown, name, links }: { shown: Film; name: string; links: readonly Link[] }) {
  const told = param("unfold").value;
  const drawn = useMemo(() => graphOf(shown, name, links), [shown, name, links, told]);
  const [low, high] = drawn.columns;
  const x = (box: Box): number => (box.column - low) * WIDE + EDGE;
  const y = (box: Box): number => box.row * HIGH + EDGE;
  const boxes = new Map(drawn.boxes.map((box) => [box.id, box]));
  const chosen = drawn.boxes.find((box) => box.pages.includes(pageName.value))?.id;
  const [wide, tall] = [(high - low + 1) * WIDE + 2 * EDGE, drawn.rows * HIGH + 2 * EDGE];
  const sheet = useRef<HTMLDivElement>(null);
  const seen = useRef({ name: "", low: 0 });
  // The page in the middle comes into view, and keeps its place when there are more sources left of it.
  useLayoutEffect(() => {
    const element = sheet.current;
    if (!element) return;
    const middle = -low * WIDE + EDGE - (element.clientWidth - BOX) / 2;
    element.scrollLeft = seen.current.name === name ? element.scrollLeft + (seen.current.low - low) * WIDE : middle;
    seen.current = { name, low };
  }, [name, low]);
  if (!links.length) return <Mute>No links from or to this page: nothing is recorded about what it was made from, or what was made from it.</Mute>;
  return (
    <div class="graph" ref={sheet}>
      <div class="graph-sheet" style={{ width: `${wide}px`, height: `${tall + 20}px` }}>
        <svg width={wide} height={tall} aria-hidden="true">
          {drawn.edges.map((edge) => {
            const [from, to] = [boxes.get(edge.from)!, boxes.get(edge.to)!];
            const lit = edge.from === chosen || edge.to === chosen;
            return <path key={`${edge.from} ${edge.to} ${edge.kind}`} class={`edge edge-${edge.kind} ${lit ? "lit" : ""}`} d={curve(x(to) + BOX, y(to) + HIGH / 2 - 3, x(from), y(from) + HIGH / 2 - 3, to.column < from.column)} stroke-width={Math.min(5, 1 + Math.log2(edge.links))}><title>{`${edge.links === 1 ? "" : `${edge.links} × `}${label(from)} ${edge.kind.replaceAll("_", " ")} ${label(to)}`}</title></path>;
          })}
        </svg>
        {drawn.boxes.map((box) => <BoxView key={box.id} shown={shown} box={box} root={name} chosen={box.id === chosen} left={x(box)} top={y(box)} />)}
        <div class="graph-legend" style={{ top: `${tall}px` }}>
          {low < 0 && <span style={{ left: `${EDGE}px` }}>← what it was made from</span>}
          {high > 0 && <span style={{ left: `${(1 - low) * WIDE + EDGE}px` }}>what was made from it →</span>}
        </div>
      </div>
    </div>
  );
}

function label(box: Box): string {
  return box.pages.length === 1 ? box.pages[0]! : `${box.pages.length} pages`;
}

/** From the older page to what was made of it; within a column around its right side. */
function curve(x1: number, y1: number, x2: number, y2: number, forward: boolean): string {
  if (forward) {
    const middle = (x1 + x2) / 2;
    return `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2},${y2}`;
  }
  const out = x1 + 26;
  return `M${x1},${y1} C${out},${y1} ${out},${y2} ${x2 + BOX},${y2}`;
}

function BoxView({ shown, box, root, chosen, left, top }: { shown: Film; box: Box; root: string; chosen: boolean; left: number; top: number }) {
  const name = box.pages[0]!;
  const at = shown.pageIndex(name);
  const place = { left: `${left}px`, top: `${top}px`, width: `${BOX}px`, height: `${HIGH - 6}px` };
  const role = at < 0 ? "other" : shown.role(at);
  if (box.pages.length > 1) {
    return (
      <button class={`box fold ${chosen ? "chosen" : ""}`} style={place} data-box={box.id} title={`${box.pages.slice(0, 12).join(", ")}${box.pages.length > 12 ? ", …" : ""}: open the fold`} onClick={() => go({ root, unfold: [...param("unfold").value.split(",").filter(Boolean), box.id].join(",") })}>
        <RoleBar of={role} />
        <b>{count(box.pages.length)}</b> {at < 0 ? "pages elsewhere" : `${shown.type(at)}s, ${role}`}
      </button>
    );
  }
  const later = at >= 0 && shown.calls > 0 && shown.data.pages.number[at]! > shown.callPosition[cursor.value]!;
  return (
    <button class={`box ${chosen ? "chosen" : ""} ${name === root ? "root" : ""} ${later ? "later" : ""}`} style={place} data-box={name} title={at < 0 ? name : `${about(shown, at)}${later ? "; made after the call at the cursor" : ""}`} onClick={() => at >= 0 && go({ root, page: name })}>
      <RoleBar of={role} />
      <b>{name}</b>
      <span class="box-hint">{at >= 0 && (shown.hint(at) || `${shown.type(at)}`)}</span>
    </button>
  );
}

/** The box in hand, and all of them, for the keys. */
function boxes(): { all: HTMLElement[]; now: number } {
  const all = [...document.querySelectorAll<HTMLElement>(".graph .box")];
  const focused = all.indexOf(document.activeElement as HTMLElement);
  return { all, now: focused >= 0 ? focused : all.findIndex((one) => one.classList.contains("chosen")) };
}

/** Goes to the nearest box that lies in a direction. */
function toward(dx: number, dy: number): void {
  const { all, now } = boxes();
  if (!all.length) return;
  const here = all[Math.max(0, now)]!;
  const [x, y] = [here.offsetLeft, here.offsetTop];
  const away = (one: HTMLElement): number => (dx ? Math.abs(one.offsetTop - y) + Math.abs(one.offsetLeft - x) : Math.abs(one.offsetTop - y));
  const lies = (one: HTMLElement): boolean => (dx ? (one.offsetLeft - x) * dx > 0 : one.offsetLeft === x && (one.offsetTop - y) * dy > 0);
  const next = now < 0 ? here : all.filter(lies).sort((a, b) => away(a) - away(b))[0];
  next?.focus();
  if (next && !next.classList.contains("fold")) next.click();
}

export const lineage: Pane = {
  id: "lineage",
  title: "Provenance",
  key: "g",
  hint: "where the selected page comes from, and what was made from it",
  wide: true,
  View: Lineage,
  step: (by) => toward(0, by),
  second: (by) => toward(by, 0),
};
