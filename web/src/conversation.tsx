// The session as it is read: who spoke, what was said, what tools were asked and answered. Beside each
// page stands whether the call at the cursor had it, and what came and went with that call.
import { computed } from "@preact/signals";
import { useRef } from "preact/hooks";
import { LEVELS, type Film } from "./film";
import { count, json, many, tokens } from "./format";
import { transcript, type Compaction, type TranscriptRow } from "./lib/transcript";
import { opened, toggleOpen } from "./opened";
import { Grow, Link } from "./parts/bits";
import { about, RoleBar } from "./parts/badges";
import { Content } from "./parts/content";
import { foldOf, Folded } from "./parts/folded";
import { kept } from "./parts/kept";
import { Rows } from "./parts/rows";
import { go, param } from "./place";
import { Trouble, type Text } from "./source";
import { context, cursor, film, page, which } from "./state";
import { textAt } from "./texts";

type Stand = "in" | "new" | "changed" | "left" | "out" | "later";

const EMPTY = /^(\{"role":"\w+","content":(\[\]|""|null)\})?$/; // a message in which nothing was said
const ROW_PX = 34;
const LINE_PX = 18;
const LINE_CHARS = 92;
const TOKEN_CHARS = 4;

const shownRows = computed(() => (film.value ? transcript(film.value, cursor.value) : { rows: [], cursor: -1 }));

/** The pages in the order they are read, for the keys that step through them. */
export const readingOrder = computed(() => shownRows.value.rows.filter((row) => row.page >= 0).map((row) => row.page));

/** The stay that shows each page at the cursor, by its index. */
const stays = computed(() => {
  const shown = film.value;
  return new Map(shown ? Array.from(context.value, (stay) => [shown.stay.page[stay]!, stay]) : []);
});
const fresh = computed(() => new Set(film.value && cursor.value > 0 ? film.value.entered(cursor.value) : []));
const gone = computed(() => {
  const shown = film.value;
  return new Set(shown && cursor.value > 0 ? [...shown.left(cursor.value)].map((stay) => shown.stay.page[stay]!) : []);
});

function standOf(shown: Film, row: TranscriptRow, stay: number): Stand {
  if (stay >= 0) return fresh.value.has(stay) ? (shown.isNew(stay) ? "new" : "changed") : "in";
  if (!shown.calls || row.step > cursor.value) return "later";
  return gone.value.has(row.page) ? "left" : "out";
}

const known = new WeakMap<Film, number[]>();

/** How high each page is likely to be while it is folded: of a long session that is asked often. */
function heightsOf(shown: Film): number[] {
  let found = known.get(shown);
  if (!found) {
    found = shown.data.pages.tokens.map((size, page) => {
      if (shown.modality(page) === "structured") return ROW_PX;
      return ROW_PX + Math.min(foldOf(shown.role(page)).lines, Math.ceil((size * TOKEN_CHARS) / LINE_CHARS)) * LINE_PX;
    });
    known.set(shown, found);
  }
  return found;
}

export function Conversation({ shown }: { shown: Film }) {
  const { rows, cursor: here } = shownRows.value;
  const name = param("page").value;
  const followed = useRef({ name: "", call: -1 });
  const chosen = name ? rows.findIndex((row) => row.page === page.value && row.page >= 0) : -1;
  // Whatever moved last is brought into view: the page in hand, or the cursor; a view that opens shows the page.
  const moved = followed.current.name !== name ? chosen : followed.current.call !== cursor.value ? here : chosen;
  followed.current = { name, call: cursor.value };
  // A call that a compaction comes before shows what it replaced rather than the end of its summary.
  const broken = rows.findIndex((row) => row.compaction?.at === cursor.value);
  const target = moved === here && broken >= 0 ? broken : moved >= 0 ? moved : here;
  const toPage = target === chosen && chosen >= 0;
  const isOpen = opened.value;
  const heights = heightsOf(shown);
  const height = (at: number): number => heights[rows[at]!.page] ?? ROW_PX;
  return (
    <Rows
      label="conversation"
      class="talk"
      count={rows.length}
      height={ROW_PX}
      keyOf={(at) => rows[at]!.key}
      loose={() => true}
      estimate={height}
      reveal={target}
      revealAt={toPage || target === broken ? 0.25 : 0.6}
      revealKey={`${cursor.value} ${name}`}
      empty="Nothing was said in this session yet."
    >
      {(at) => {
        const row = rows[at]!;
        if (row.compaction) return <Break shown={shown} told={row.compaction} />;
        if (row.page < 0) return <Here shown={shown} />;
        const stay = stays.value.get(row.page) ?? -1;
        const content = stay >= 0 ? shown.stay.content[stay]! : shown.calls ? shown.contentOf(row.page, cursor.value) : shown.data.pages.number[row.page]!;
        const stand = standOf(shown, row, stay);
        return (
          <Said
            shown={shown} page={row.page} content={content} level={stay >= 0 ? shown.stay.level[stay]! : 0}
            stand={stand} open={isOpen.has(shown.pageName(row.page))} chosen={at === chosen}
          />
        );
      }}
    </Rows>
  );
}

/** Where the call at the cursor was made: above it what it could be sent, below it what came of it. */
function Here({ shown }: { shown: Film }) {
  const at = cursor.value;
  const [came, went] = [[...fresh.value].filter((stay) => shown.isNew(stay)).length, gone.value.size];
  return (
    <div class="here-line" data-call={shown.callNumber[at]}>
      <b>Call {shown.callNumber[at]}</b>
      <span>was sent {many(context.value.length, "page")}, {tokens(shown.data.calls.tokens[at] ?? 0)}</span>
      {came > 0 && <span class="came">{count(came)} new</span>}
      {went > 0 && <button class="link went" onClick={() => go({ pane: "taken" })}>{count(went)} dropped</button>}
      <Link onClick={() => go({ pane: "request" })}>request</Link>
    </div>
  );
}

export function compactionLine(told: Compaction): string {
  const summary = told.summaries.length === 0 ? "dropped" : `replaced by ${told.summaries.length === 1 ? "a summary" : `${told.summaries.length} summaries`} of ${count(told.summaryTokens)}`;
  return `${many(told.pages, "page")}, ${tokens(told.tokens)} ${summary}`;
}

function Break({ shown, told }: { shown: Film; told: Compaction }) {
  const call = shown.callNumber[told.at]!;
  return (
    <div class="break" data-compaction={call}>
      <span><b>■ Compaction</b> before call {call}: {compactionLine(told)}</span>
      <Link onClick={() => go({ pane: "taken", call })}>what it took away</Link>
    </div>
  );
}

interface SaidProps {
  shown: Film;
  page: number;
  content: number;
  level: number;
  stand: Stand;
  open: boolean;
  chosen: boolean;
}

/** What is said beside a page; how it stands otherwise shows in its look. */
const STANDS: Partial<Record<Stand, string>> = { new: "+ new", changed: "~ changed", left: "− dropped" };

const Said = kept(({ shown, page: index, content, level, stand, open, chosen }: SaidProps) => {
  const name = shown.pageName(index);
  const role = shown.role(index);
  const slot = textAt(content, which.peek()).value;
  const text = slot && !(slot instanceof Trouble) ? slot : null;
  const line = shown.modality(index) === "structured" ? text?.line : undefined;
  const mark = STANDS[stand];
  const last = stand === "out" || stand === "left" ? lastSeen(shown, index) : "";
  const tool = text?.asked ?? shown.tool(index);
  return (
    <article
      class={`say ${stand} ${chosen ? "chosen" : ""}`}
      data-page={name}
      onClick={(event) => {
        if ((event.target as HTMLElement).closest("a, button, pre, summary") || !getSelection()?.isCollapsed) return;
        go({ page: name });
      }}
      onDblClick={(event) => !(event.target as HTMLElement).closest("button, a") && getSelection()?.isCollapsed && toggleOpen(name)}
    >
      <RoleBar of={role} />
      <header title={about(shown, index)}>
        {line ? (
          <button class="asked" aria-expanded={open} onClick={() => { go({ page: name }); toggleOpen(name); }}>{line}</button>
        ) : (
          <b>{role === "tool" && tool ? `${tool} →` : shown.type(index) === "summary" ? "summary" : role}</b>
        )}
        {shown.hint(index) && <em>{shown.hint(index)}</em>}
        {level > 0 && <span class="chip">{LEVELS[level]}</span>}
        <Grow />
        {mark && <span class={`stand ${stand}`}>{mark}</span>}
        {last && <small>{last}</small>}
        <span class="mute say-id">{name} · {count(shown.data.pages.tokens[index]!)}</span>
      </header>
      {line ? open && <pre class="code">{pretty(text!.text)}</pre> : <Body slot={slot} text={text} content={content} role={role} open={open} name={name} />}
    </article>
  );
});

/** JSON with a line for each value; a text that is none, or was cut, as it is. */
function pretty(text: string): string {
  try {
    return json(JSON.parse(text));
  } catch {
    return text;
  }
}

/** When a page that is out of the context was in it last. */
function lastSeen(shown: Film, index: number): string {
  const stay = shown.lastStay(index, cursor.value);
  const to = stay < 0 ? shown.calls : shown.stay.to[stay]!;
  return to < shown.calls ? `left at call ${shown.callNumber[to]}` : stay < 0 ? "never sent" : "";
}

interface BodyProps {
  slot: Text | Trouble | null;
  text: Text | null;
  content: number;
  role: string;
  open: boolean;
  name: string;
}

function Body({ slot, text, content, role, open, name }: BodyProps) {
  if (!slot) return <div class="say-wait">…</div>;
  if (!text || text.missing || text.mime?.startsWith("image/") || (open && text.cut)) return <Content position={content} />;
  if (EMPTY.test(text.text)) return <small>empty</small>;
  return <Folded text={text.text} role={role} open={open} toggle={() => toggleOpen(name)} />;
}
