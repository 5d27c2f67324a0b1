// The VMQL box: any question, completion as in the shell, answers whose pages, calls and turns lead there.
import { useEffect, useRef, useState } from "preact/hooks";
import { safely } from "../colours";
import { copy } from "../copy";
import { count, json, typedIn } from "../format";
import { param, go } from "../place";
import { Act, Form, Grow, Link, Mute, Tool } from "../parts/bits";
import { PageName } from "../parts/badges";
import { Problem } from "../parts/content";
import { Rows } from "../parts/rows";
import { useVmql } from "../asked";
import { quoted, type Answer, type Candidate, type Trouble } from "../source";
import type { Film } from "../film";
import { callNumber, film, source, toCall, toSession, which } from "../state";
import type { Pane } from "./index";

const LIMIT = 1000;
const OFFERED = 12;
const HISTORY = "vmstore.vmql";
const HISTORY_MAX = 30;

function history(): string[] {
  return safely(() => JSON.parse(localStorage.getItem(HISTORY) ?? "[]") as string[]) ?? [];
}

function remember(query: string): void {
  safely(() => localStorage.setItem(HISTORY, JSON.stringify([query, ...history().filter((one) => one !== query)].slice(0, HISTORY_MAX))));
}

function Vmql() {
  const shown = film.value;
  const query = param("q").value;
  const asked = useVmql(query, LIMIT, 0);
  if (!shown) return null;
  return (
    <div class="vmql">
      <Box query={query} />
      {query && asked.error && <Wrong trouble={asked.error} query={query} />}
      {query && asked.busy && <Mute>asking…</Mute>}
      {query && !asked.busy && asked.value && <Table answer={asked.value} shown={shown} />}
      {!query && <Examples shown={shown} />}
    </div>
  );
}

function Box({ query }: { query: string }) {
  const field = useRef<HTMLTextAreaElement>(null);
  const [typed, setTyped] = useState(query);
  const [offer, setOffer] = useState<Candidate[]>([]);
  const [picked, setPicked] = useState(-1);
  useEffect(() => setTyped(query), [query]);
  const asking = useRef(0);
  const cursor = useRef(0); // where the offer replaces from: typing goes on while the store is asked
  const narrow = (text: string, at: number): void => {
    const grown = at - cursor.current;
    cursor.current = at;
    setOffer((offer) =>
      offer
        .map((item) => ({ ...item, replaces: item.replaces + grown }))
        .filter((item) => item.replaces >= 0 && item.text.toLowerCase().startsWith(text.slice(at - item.replaces, at).toLowerCase())),
    );
    setPicked(-1);
  };
  const complete = async (text: string, at: number): Promise<void> => {
    const mine = ++asking.current;
    const found = await source.value!.complete(which.value, text, at).catch((): Candidate[] => []);
    if (mine !== asking.current) return;
    setOffer(found.slice(0, OFFERED));
    setPicked(-1);
  };
  const close = (): void => {
    asking.current++;
    setOffer([]);
    setPicked(-1);
  };
  const run = (): void => {
    close();
    const text = field.current!.value.trim();
    if (text) remember(text);
    go({ q: text });
  };
  const take = (at: number): void => {
    const item = offer[at];
    const element = field.current!;
    if (!item) return;
    const here = element.selectionStart;
    const after = element.value.slice(here);
    const head = `${element.value.slice(0, here - item.replaces)}${item.text}`;
    setTyped(head + after);
    close();
    requestAnimationFrame(() => {
      element.focus();
      element.setSelectionRange(head.length, head.length);
    });
  };
  const pressed = (event: KeyboardEvent): void => {
    const open = offer.length > 0;
    const does =
      open && (event.key === "ArrowDown" || event.key === "ArrowUp") ? () => setPicked((picked + (event.key === "ArrowDown" ? 1 : -1) + offer.length) % offer.length)
      : open && (event.key === "Tab" || (event.key === "Enter" && picked >= 0)) ? () => take(Math.max(0, picked))
      : event.key === "Enter" && !event.shiftKey ? run
      : event.key === "Escape" && open ? () => { event.stopPropagation(); close(); }
      : null;
    if (does) {
      event.preventDefault();
      does();
    }
  };
  return (
    <Form
      class="ask tall"
      does={() => run()}
    >
      <div class="vmql-field">
        <textarea
          ref={field}
          data-focus
          rows={3}
          spellcheck={false}
          aria-label="VMQL"
          placeholder="CALLS call, tokens ORDER BY tokens DESC LIMIT 10"
          value={typed}
          onInput={(event) => {
            setTyped(typedIn(event));
            narrow(typedIn(event), event.currentTarget.selectionStart);
            void complete(typedIn(event), event.currentTarget.selectionStart);
          }}
          onKeyDown={pressed}
          onBlur={() => setTimeout(close, 150)}
        />
        {offer.length > 0 && (
          <ul class="offer" role="listbox">
            {offer.map((item, at) => (
              <li key={item.text} role="option" aria-selected={at === picked} class={at === picked ? "on" : ""} onMouseDown={(event) => { event.preventDefault(); take(at); }}>
                {item.text} <small>{item.about}</small>
              </li>
            ))}
          </ul>
        )}
      </div>
      <Act title="Enter; Shift Enter for a new line">Ask</Act>
    </Form>
  );
}

/** An error of a query, with the place it speaks of. */
function Wrong({ trouble, query }: { trouble: Trouble; query: string }) {
  const { start, end } = trouble.detail as { start?: number; end?: number };
  return (
    <>
      <Problem trouble={trouble} />
      {typeof start === "number" && (
        <pre class="wrong">{query.slice(0, start)}<mark>{query.slice(start, Math.max(end ?? start + 1, start + 1)) || " "}</mark>{query.slice(Math.max(end ?? start + 1, start + 1))}</pre>
      )}
    </>
  );
}

function Table({ answer, shown }: { answer: Answer; shown: Film }) {
  const { columns, rows } = answer;
  const names = columns.map((one) => one.name);
  const widths = names.map((name) => rows.slice(0, 100).reduce((wide, row) => Math.max(wide, Math.min(60, cell(row[name]).length)), name.length));
  const template = widths.map((wide) => `minmax(${Math.min(wide, 14) + 1}ch, ${wide + 1}fr)`).join(" ");
  const long = rows.length <= 3 && rows.some((row) => names.some((name) => cell(row[name]).length > 300));
  const basis = answer.basis;
  return (
    <>
      <div class="pane-head">
        <b>{count(rows.length)} row{rows.length === 1 ? "" : "s"}</b>
        {(answer.limited ?? answer.next) !== undefined && <small>and more</small>}
        {basis?.position !== undefined && <small>as of position {basis.position}, turn {basis.turn}, call {basis.call}</small>}
        <small>{answer.elapsed_ms} ms</small>
        <Grow />
        <Tool onClick={() => void copy(json(answer), "the answer as JSON")}>copy JSON</Tool>
      </div>
      {long ? (
        rows.map((row, at) => names.map((name) => (
          <div key={`${at} ${name}`} class="message"><div class="message-head"><b>{name}</b></div><pre>{cell(row[name])}</pre></div>
        )))
      ) : (
        <div class="table">
          <div class="table-head" style={{ gridTemplateColumns: template }}>
            {columns.map((one) => <span key={one.name} class={isNumber(one.type) ? "num" : ""}>{one.name}</span>)}
          </div>
          <Rows label="answer" class="table-rows" count={rows.length} height={21} keyOf={(at) => at} empty="No rows.">
            {(at) => (
              <div class="table-row" style={{ gridTemplateColumns: template }}>
                {columns.map((one) => (
                  <span key={one.name} class={isNumber(one.type) ? "num" : ""} title={cell(rows[at]![one.name])}>
                    <Cell name={one.name} value={rows[at]![one.name]} shown={shown} />
                  </span>
                ))}
              </div>
            )}
          </Rows>
        </div>
      )}
    </>
  );
}

function isNumber(type: string): boolean {
  return type === "integer" || type === "real";
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A value of an answer: pages, calls, turns, positions and sessions lead to what they name. */
function Cell({ name, value, shown }: { name: string; value: unknown; shown: Film }) {
  const text = cell(value);
  if (typeof value === "string" && shown.pageIndex(value) >= 0) return <PageName name={value} />;
  if (name === "session" && typeof value === "string" && value !== which.value.session) {
    return <Link onClick={() => toSession(value)}>{value}</Link>;
  }
  if (typeof value === "number" && ["call", "turn", "position"].includes(name)) {
    const at = name === "call" ? shown.indexOf(value) : name === "turn" ? shown.turnEnd(value) : shown.stepAt(value);
    return <Link onClick={() => toCall(at)}>{value}</Link>;
  }
  return <>{text}</>;
}

function Examples({ shown }: { shown: Film }) {
  const call = callNumber.value;
  const page = quoted(param("page").value || shown.pageName(Math.min(3, shown.pages - 1)) || "p4");
  const all = [
    "CALLS call, turn, tokens ORDER BY tokens DESC LIMIT 10",
    `PAGES type, count(*) AS pages, sum(tokens) AS tokens BY type AS OF CALL ${call}`,
    `HISTORY OF ${page}`,
    `DIFF CONTEXT CALL ${Math.max(1, call - 1)} TO CALL ${call}`,
    "MUTATIONS kind, count(*) AS many BY kind",
    "FAULTS LIMIT 20",
  ];
  const asked = history();
  return (
    <>
      {asked.length > 0 && <h3>Asked before</h3>}
      <ul class="examples">{asked.slice(0, 8).map((one) => <Example key={one} query={one} />)}</ul>
      <h3>For example</h3>
      <ul class="examples">{all.map((one) => <Example key={one} query={one} />)}</ul>
    </>
  );
}

function Example({ query }: { query: string }) {
  return <li><Link onClick={() => go({ q: query })}><code>{query}</code></Link></li>;
}

export const vmql: Pane = { id: "vmql", title: "VMQL", key: ":", hint: "query in VMQL", View: Vmql };
