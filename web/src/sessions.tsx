// Choosing a session: the list of all of them, which a store of several opens with, and the filter box
// in the line at the top.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useAsked } from "./asked";
import { clamp, count, dollars, many, moment, short, typedIn } from "./format";
import { Act, Form, Link, Mute, Tool } from "./parts/bits";
import { Problem } from "./parts/content";
import { marked } from "./parts/marked";
import { go, param } from "./place";
import { popup } from "./popup";
import type { SearchAnswer, SessionRow } from "./source";
import { source, store, toSession, which } from "./state";

const PICKED_MAX = 60;
const HITS_MAX = 50;

/** When a session was last added to; of a source without times only its import is known, and that is said. */
function when(row: SessionRow): string {
  return row.last_at === null ? "" : row.timed === false ? "unknown" : moment(row.last_at).slice(0, 16);
}

function about(row: SessionRow): string {
  return row.title || row.first || "";
}

function number(value: number | null | undefined, show: (value: number) => string): string {
  return value === null || value === undefined ? "" : show(value);
}

/** What a session cost; what is estimated is marked. */
export function costOf({ cost, cost_estimated: estimated }: SessionRow): string {
  return (cost ?? estimated ?? null) !== null ? `${estimated ? "~" : ""}${dollars((cost ?? 0) + (estimated ?? 0))}` : "";
}

interface Column {
  id: string;
  name: string;
  title?: string;
  num?: boolean;
  show: (row: SessionRow) => string;
  by: (row: SessionRow) => string | number | null | undefined;
}

const COLUMNS: Column[] = [
  { id: "at", name: "date", title: "of its last commit, UTC", show: when, by: (row) => (row.timed === false ? null : row.last_at) },
  { id: "session", name: "session", show: (row) => row.session, by: (row) => row.session },
  { id: "title", name: "about", title: "its title, or what the user said first", show: about, by: about },
  { id: "calls", name: "calls", num: true, show: (row) => count(row.calls), by: (row) => row.calls },
  { id: "tokens", name: "tokens", num: true, title: "sent and received, over all calls", show: (row) => number(row.tokens, short), by: (row) => row.tokens },
  { id: "cost", name: "cost", num: true, title: "~ is estimated from list prices", show: costOf, by: (row) => (costOf(row) ? (row.cost ?? 0) + (row.cost_estimated ?? 0) : null) },
  { id: "outcome", name: "outcome", show: (row) => row.outcome ?? "", by: (row) => row.outcome },
];

/** The rows of the sessions that have all of some words in name, title, model or outcome. */
function filtered(rows: readonly SessionRow[], words: string): SessionRow[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const all = rows.map((row) => ({ row, text: [row.session, row.title, row.first, row.model, row.outcome].join(" ").toLowerCase() }));
  return all.filter(({ text }) => wanted.every((word) => text.includes(word))).map(({ row }) => row);
}

function sorted(rows: SessionRow[], column: Column, down: boolean): SessionRow[] {
  const order = (a: SessionRow, b: SessionRow): number => {
    const [x, y] = [column.by(a), column.by(b)];
    const [none, other] = [x === null || x === undefined || x === "", y === null || y === undefined || y === ""];
    if (none || other) return Number(none) - Number(other) || newest(a, b);
    return (x! < y! ? -1 : x! > y! ? 1 : 0) * (down ? -1 : 1) || newest(a, b);
  };
  return rows.sort(order);
}

function newest(a: SessionRow, b: SessionRow): number {
  return (b.last_at ?? 0) - (a.last_at ?? 0) || (a.session < b.session ? -1 : 1);
}

/** All sessions of the store as a table, newest first, to be filtered, sorted and searched. */
export function Overview() {
  const rows = store.value?.sessions ?? [];
  const filter = param("filter").value;
  const [id = "at", way = "down"] = param("sort").value.split(" ");
  const column = COLUMNS.find((one) => one.id === id) ?? COLUMNS[0]!;
  const shown = useMemo(() => sorted(filtered(rows, filter), column, way === "down"), [rows, filter, column, way]);
  const columns = COLUMNS.filter((one) => one.id === "session" || rows.some((row) => one.show(row)));
  return (
    <main class="overview">
      <Form
        class="overview-head"
        does={() => go({ words: filter })}
      >
        <h2>{count(rows.length)} sessions</h2>
        <input
          data-focus type="search" aria-label="filter sessions" placeholder="filter by name, title, model or outcome" value={filter}
          onInput={(event) => go({ filter: typedIn(event), words: null }, { step: true })}
        />
        <Act disabled={!filter.trim()} title="find these words in what was said in any session (Enter)">Search all messages</Act>
      </Form>
      {param("words").value && <Hits words={param("words").value} />}
      <div class="overview-rows">
        <table>
          <thead>
            <tr>
              {columns.map((one) => (
                <th key={one.id} class={one.num ? "num" : ""} title={one.title} aria-sort={one === column ? (way === "down" ? "descending" : "ascending") : undefined}>
                  <button onClick={() => go({ sort: `${one.id} ${one === column ? (way === "down" ? "up" : "down") : one.num || one.id === "at" ? "down" : "up"}` })}>
                    {one.name}{one === column ? (way === "down" ? " ↓" : " ↑") : ""}
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <tr key={row.session} data-session={row.session} onClick={() => toSession(row.session)}>
                {columns.map((one) => (
                  <td key={one.id} data-name={one.name} class={`${one.num ? "num" : ""} cell-${one.id}`} title={one.id === "at" && row.timed === false ? "this source records no times; only when it was imported is known" : one.show(row)}>
                    {one.id === "session" ? <Link>{row.session}</Link> : one.show(row)}
                    {one.id === "session" && row.hidden && <small> import not complete</small>}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
        {!shown.length && <p class="empty">No session matches “{filter}”. Search all messages looks in what was said.</p>}
      </div>
    </main>
  );
}

/** Where some words were said, in all sessions. */
function Hits({ words }: { words: string }) {
  const any = store.value?.sessions[0]?.session ?? "";
  const asked = useAsked<SearchAnswer>(`everywhere ${words}`, () => source.value!.search({ session: any }, words, null, true));
  if (asked.error) return <Problem trouble={asked.error} />;
  if (!asked.value) return <p><progress /> searching all messages…</p>;
  const hits = asked.value.hits.slice(0, HITS_MAX);
  return (
    <div class="overview-hits">
      <div class="pane-head">
        <b>{hits.length === HITS_MAX ? `the best ${HITS_MAX}` : count(hits.length)} for “{words}”</b>
        <Link onClick={() => go({ words: null })}>close</Link>
      </div>
      {hits.map((hit) => (
        <button key={`${hit.session} ${hit.page}`} class="found" onClick={() => go({ session: hit.session, page: hit.page, call: hit.call || null })}>
          <b>{hit.session}</b> <small>{hit.role}, turn {hit.turn}</small>
          <span class="hit-text">{marked(hit).map((part, at) => (at % 2 ? <mark key={at}>{part}</mark> : part))}</span>
        </button>
      ))}
    </div>
  );
}

/** The session in view, and a box to go to another: type, arrows, Enter. */
export function Picker() {
  const rows = store.value?.sessions ?? [];
  const now = which.value.session;
  if (rows.length <= 1) return <b class="session-name" title={now}>{now}</b>;
  return (
    <span class="sessions">
      <button class="tool session-name" title={now} aria-expanded={popup.value === "sessions"} onClick={() => (popup.value = popup.value === "sessions" ? "" : "sessions")}>{now || "all sessions"} ▾</button>
      {popup.value === "sessions" && <Menu rows={rows} now={now} />}
    </span>
  );
}

function Menu({ rows, now }: { rows: SessionRow[]; now: string }) {
  const choose = (session: string | null): void => {
    popup.value = "";
    toSession(session);
  };
  return (
    <>
      <div class="shade" onClick={() => (popup.value = "")} />
      <div class="menu" role="dialog" aria-label="sessions">
        <SessionBox rows={useMemo(() => [...rows].sort(newest), [rows])} now={now} choose={choose} focus>
          <Tool onClick={() => choose(null)}>all sessions</Tool>
        </SessionBox>
      </div>
    </>
  );
}

interface BoxProps {
  rows: SessionRow[];
  now: string;
  choose: (session: string) => void;
  focus?: boolean;
  children?: ComponentChildren;
}

/** A filter and the sessions that match it: arrows and Enter choose one. */
export function SessionBox({ rows, now, choose, focus, children }: BoxProps) {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => { if (focus) field.current?.focus(); }, []);
  useEffect(() => list.current?.querySelector(".on")?.scrollIntoView({ block: "nearest" }), [at]);
  const found = useMemo(() => filtered(rows, typed), [rows, typed]);
  const shown = found.slice(0, PICKED_MAX);
  const keys = (event: KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) setAt(clamp(shown.length - 1, at + by));
    else if (event.key === "Enter" && shown[at]) choose(shown[at].session);
    else return;
    event.preventDefault();
  };
  return (
    <div onKeyDown={keys}>
      <div class="menu-head">
        <input ref={field} type="search" aria-label="find a session" placeholder="filter sessions; ↑ ↓ Enter" value={typed} onInput={(event) => { setTyped(typedIn(event)); setAt(0); }} />
        {children}
      </div>
      <div class="menu-rows" ref={list} role="listbox">
        {shown.map((row, k) => (
          <button key={row.session} role="option" tabIndex={-1} aria-selected={k === at} class={`${k === at ? "on" : ""} ${row.session === now ? "chosen" : ""}`} onClick={() => choose(row.session)}>
            <b>{row.session}</b>
            <small>{many(row.calls, "call")}{row.outcome ? `, ${row.outcome}` : ""}{row.parent ? `, from ${row.parent.session}` : ""}{row.hidden ? ", import not complete" : ""}</small>
            {about(row) && <span class="mute menu-title">{about(row)}</span>}
          </button>
        ))}
        {!shown.length && <p class="empty">No session matches.</p>}
        {found.length > shown.length && <Mute>and {count(found.length - shown.length)} more: type to narrow</Mute>}
      </div>
    </div>
  );
}
