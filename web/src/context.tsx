// The context at the cursor as stacked pages with their text: what the call was sent, in the order of
// the prompt, and on the other side of the switch what was left out of it.
import { computed } from "@preact/signals";
import { Conversation, readingOrder } from "./conversation";
import { opened, toggleOpen } from "./opened";
import { Empty, Grow, Link } from "./parts/bits";
import { Content, Preview } from "./parts/content";
import { kept } from "./parts/kept";
import { about, Dot, Fidelity, LevelMeter, RoleBar } from "./parts/badges";
import { Rows } from "./parts/rows";
import { colour } from "./colours";
import { clamp, count, tokens } from "./format";
import { LEVELS, type Film } from "./film";
import { notes } from "./notes";
import { go, param } from "./place";
import { callNumber, context, cursor, film, isWhatIf, page, stackBy } from "./state";

const showsOut = computed(() => param("show").value === "out");
const isList = computed(() => param("show").value !== "");

interface Row {
  page: number;
  content: number;
  level: number;
  tokens: number;
  mark: "" | "new" | "changed";
}

const rows = computed<Row[]>(() => {
  const shown = film.value;
  if (!shown) return [];
  const at = cursor.value;
  if (showsOut.value) {
    return Array.from(shown.absent(at), (one) => {
      const last = shown.lastStay(one, at);
      const { content, level, tokens: held } = shown.stay;
      const { number, tokens: full } = shown.data.pages;
      return last < 0
        ? { page: one, content: number[one]!, level: 0, tokens: full[one]!, mark: "" }
        : { page: one, content: content[last]!, level: level[last]!, tokens: held[last]!, mark: "" };
    });
  }
  const fresh = new Set(at > 0 ? shown.entered(at) : []);
  return Array.from(context.value, (stay) => ({
    page: shown.stay.page[stay]!,
    content: shown.stay.content[stay]!,
    level: shown.stay.level[stay]!,
    tokens: shown.stay.tokens[stay]!,
    mark: fresh.has(stay) ? (shown.isNew(stay) ? "new" : "changed") : "",
  }));
});

const VIEWS = [
  ["", "Conversation", "the session as it is read (t)"],
  ["prompt", "Prompt", "the pages of this call, one a line, in the order of the prompt (t)"],
  ["out", "Left out", "the pages this call did not have (o)"],
] as const;

const most = computed(() => rows.value.reduce((high, row) => Math.max(high, row.tokens), 1));

/** Takes the next or previous page of what is in view in hand; without one, the first of what is new. */
export function stepPage(by: number): void {
  const shown = film.peek();
  const order = isList.peek() ? rows.peek().map((row) => row.page) : readingOrder.value;
  if (!shown || !order.length) return;
  const now = order.indexOf(page.peek());
  const fresh = rows.peek().find((row) => row.mark)?.page;
  const first = fresh === undefined || isList.peek() ? (by > 0 ? 0 : order.length - 1) : order.indexOf(fresh);
  const next = now < 0 ? first : clamp(order.length - 1, now + by);
  go({ page: shown.pageName(order[next]!) }, { step: true });
}

export function Context() {
  const shown = film.value;
  if (!shown) return <section class="panel context" />;
  return (
    <section class="panel context" aria-label="context at the cursor">
      <Head shown={shown} />
      <Bar shown={shown} />
      <Noted shown={shown} />
      {!isList.value ? <Conversation shown={shown} /> : shown.calls === 0 && !showsOut.value ? <NoContext /> : <List shown={shown} />}
    </section>
  );
}

function NoContext() {
  return (
    <Empty title="This session has no model calls, so there is no context.">Its messages are under Conversation.</Empty>
  );
}

function Head({ shown }: { shown: Film }) {
  const at = cursor.value;
  const calls = shown.data.calls;
  const none = shown.calls === 0;
  const status = shown.word(calls.status[at]);
  return (
    <header>
      {!param("events").value && <Link title="show the list of events (L)" onClick={() => go({ events: 1 })}>events ›</Link>}
      <h2>{none ? "Context" : `Call ${callNumber.value}`}</h2>
      {!none && <small>turn {calls.turn[at]}</small>}
      {!none && (isWhatIf.value || shown.data.fidelity !== shown.fidelity(at)) && <Fidelity word={isWhatIf.value ? "what-if" : shown.fidelity(at)} />}
      {status && status !== "ok" && <span class="status">{status}</span>}
      <span class="mute model" title={shown.word(calls.model[at])}>{shown.word(calls.model[at])}</span>
      <Grow />
      <span class="switch" role="group" aria-label="pages shown">
        {VIEWS.map(([show, name, title]) => (
          <button key={show} class={param("show").value === show ? "on" : ""} title={title} onClick={() => go({ show })}>{name}</button>
        ))}
      </span>
    </header>
  );
}

/** Tokens against the budget in one bar, stacked as the timeline is, and what changed since the call before. */
function Bar({ shown }: { shown: Film }) {
  const at = cursor.value;
  if (shown.calls === 0) return null;
  const { keys, sums } = shown.stack(stackBy.value);
  const calls = shown.data.calls;
  const total = calls.tokens[at] ?? 0;
  const budget = calls.budget[at] ?? shown.data.budget;
  const scale = Math.max(total, budget ?? 0, 1);
  const entered = at > 0 ? rows.value.filter((row) => row.mark === "new").length : 0;
  const left = at > 0 ? shown.left(at) : new Int32Array();
  const reported = calls.reported[at];
  return (
    <div class="sum">
      <div class="sum-bar" title={`${tokens(total)} estimated${budget ? ` of ${count(budget)}` : ", no budget"}`}>
        {keys.map((key, k) => (
          <i key={key} style={{ width: `${(100 * (sums[k]![at] ?? 0)) / scale}%`, background: colour(stackBy.value, key) }} />
        ))}
        {budget ? <u style={{ left: `${(100 * budget) / scale}%` }} /> : null}
      </div>
      <div class="sum-line">
        <b>{tokens(total)}</b> estimated
        {budget ? <span>of {count(budget)}</span> : <small>no budget</small>}
        {reported !== null && reported !== undefined && <span>{count(reported)} reported</span>}
        <span>{count(context.value.length)} pages</span>
        <Grow />
        {entered > 0 && <span class="came">+{count(entered)} new</span>}
        {left.length > 0 && (
          <button class="link went" title="what this call took away (u)" onClick={() => go({ pane: "taken" })}>
            −{count(left.length)} dropped, {tokens(shown.tokens(left))}
          </button>
        )}
      </div>
    </div>
  );
}

/** What was noted at this call: the reader's notes and the marks of the log. */
function Noted({ shown }: { shown: Film }) {
  const own = notes.value.filter((one) => one.call === callNumber.value);
  const marks = shown.data.marks.filter((one) => shown.calls > 0 && shown.stepAt(one.position) === cursor.value);
  if (!own.length && !marks.length) return null;
  return (
    <div class="here-notes">
      {marks.map((one) => <span key={one.name} title="a mark of the log"><i>⚑</i>{one.name}</span>)}
      {own.map((one, at) => <span key={at} title="yours"><i>{one.marked ? "⚑" : "✎"}</i>{one.text || "marked"}</span>)}
    </div>
  );
}

function List({ shown }: { shown: Film }) {
  const all = rows.value;
  const isOpen = (at: number): boolean => opened.value.has(shown.pageName(all[at]!.page));
  const chosen = all.findIndex((row) => row.page === page.value);
  const fresh = all.findIndex((row) => row.mark !== "");
  // The page in hand stays in view; without one, what is new since the call before.
  const reveal = chosen >= 0 ? chosen : fresh;
  return (
    <Rows
      label="pages"
      class="page-rows"
      count={all.length}
      height={22}
      keyOf={(at) => all[at]!.page}
      loose={isOpen}
      reveal={reveal}
      revealKey={`${cursor.value} ${param("page").value} ${showsOut.value}`}
      empty={showsOut.value ? "Every page made so far is in the context." : "The context of this call is empty."}
    >
      {(at) => <PageRow shown={shown} {...all[at]!} open={isOpen(at)} />}
    </Rows>
  );
}

interface PageRowProps extends Row {
  shown: Film;
  open: boolean;
}

const PageRow = kept(({ shown, open, ...row }: PageRowProps) => {
  const name = shown.pageName(row.page);
  const role = shown.role(row.page);
  const hint = shown.hint(row.page);
  return (
    <div
      class={`page ${row.page === page.value ? "chosen" : ""} ${row.mark} ${row.level > 0 ? "shorter" : ""}`}
      data-page={name}
      role="listitem"
    >
      <div class="page-line" title={about(shown, row.page)} onClick={() => go({ page: name })} onDblClick={() => toggleOpen(name)}>
        <RoleBar of={role} />
        <button
          class="twist"
          aria-expanded={open}
          aria-label={`text of ${name}`}
          onClick={(event) => {
            event.stopPropagation();
            toggleOpen(name);
          }}
        >
          {open ? "▾" : "▸"}
        </button>
        <span class="page-mark" title={row.mark}>
          {row.mark === "new" ? "+" : row.mark === "changed" ? "~" : ""}
        </span>
        <span class="page-id">{name}</span>
        <span class="page-role">{role}</span>
        <span class="page-type">
          <Dot by="type" of={shown.type(row.page)} />
          {shown.type(row.page)}
        </span>
        <LevelMeter level={row.level} />
        <span class="page-tokens">
          <i style={{ width: `${Math.max(2, 100 * Math.sqrt(row.tokens / most.value))}%`, background: colour(stackBy.value, key(shown, row)) }} />
          <b>{count(row.tokens)}</b>
        </span>
        {shown.data.pages.pinned[row.page] ? <span class="pin" title="pinned now">●</span> : null}
        <span class="page-text">
          {hint && <em>{hint}</em>}
          {!open && <Preview position={row.content} />}
        </span>
      </div>
      {open && (
        <div class="page-body">
          <Content position={row.content} />
        </div>
      )}
    </div>
  );
});

function key(shown: Film, row: Row): string {
  const by = stackBy.value;
  return by === "level" ? (LEVELS[row.level] ?? "full") : shown[by](row.page);
}
