// The context at the cursor as stacked pages with their text: what the call was sent, in the order of
// the prompt, and on the other side of the switch what was left out of it.
import { computed } from "@preact/signals";
import { Component } from "preact";
import { Content, Preview } from "./parts/content";
import { about, Dot, Fidelity, LevelMeter } from "./parts/badges";
import { Rows } from "./parts/rows";
import { colour } from "./colours";
import { count, tokens } from "./format";
import { LEVELS, type Film } from "./film";
import { notes } from "./notes";
import { go, param } from "./place";
import { callNumber, context, cursor, film, isWhatIf, page, stackBy } from "./state";

const showsOut = computed(() => param("show").value === "out");
const reads = computed(() => param("read").value === "1");
const opened = computed(() => new Set(param("open").value.split(",").filter(Boolean)));

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

const most = computed(() => rows.value.reduce((high, row) => Math.max(high, row.tokens), 1));

/** Takes the next or previous page of the list in hand. */
export function stepPage(by: number): void {
  const shown = film.peek();
  const all = rows.peek();
  if (!shown || !all.length) return;
  const now = all.findIndex((row) => row.page === page.peek());
  const next = Math.max(0, Math.min(all.length - 1, now < 0 ? (by > 0 ? 0 : all.length - 1) : now + by));
  go({ page: shown.pageName(all[next]!.page) }, { step: true });
}

export function toggleOpen(name: string): void {
  const next = new Set(opened.peek());
  if (!next.delete(name)) next.add(name);
  go({ open: [...next].slice(-30).join(",") }, { step: true });
}

export function Context() {
  const shown = film.value;
  if (!shown) return <section class="panel context" />;
  return (
    <section class="panel context" aria-label="context at the cursor">
      <Head shown={shown} />
      <Bar shown={shown} />
      <Noted shown={shown} />
      {shown.calls === 0 && !showsOut.value ? <Empty /> : <List shown={shown} />}
    </section>
  );
}

function Empty() {
  return (
    <div class="empty">
      <b>This session has no call yet.</b>
      <span>Nothing was sent to a model, so there is no context to show. What was written so far is under “out of it”.</span>
    </div>
  );
}

function Head({ shown }: { shown: Film }) {
  const at = cursor.value;
  const calls = shown.data.calls;
  const none = shown.calls === 0;
  const status = shown.word(calls.status[at]);
  return (
    <header>
      <h2>{none ? "Context" : `Call ${callNumber.value}`}</h2>
      {!none && <span class="mute">turn {calls.turn[at]}</span>}
      {!none && <Fidelity word={isWhatIf.value ? "what-if" : shown.fidelity(at)} />}
      {status && status !== "ok" && <span class="status">{status}</span>}
      <span class="mute model" title={shown.word(calls.model[at])}>{shown.word(calls.model[at])}</span>
      <span class="grow" />
      <span class="switch" role="group" aria-label="pages shown">
        <button class={showsOut.value ? "" : "on"} onClick={() => go({ show: null })}>in context</button>
        <button class={showsOut.value ? "on" : ""} onClick={() => go({ show: "out" })}>out of it</button>
      </span>
      <button class={`tool ${reads.value ? "on" : ""}`} aria-pressed={reads.value} title="show the text of every page (t)" onClick={() => go({ read: reads.value ? null : 1 })}>
        texts
      </button>
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
        {budget ? <span>of {count(budget)}</span> : <span class="mute">no budget</span>}
        {reported !== null && reported !== undefined && <span>{count(reported)} reported</span>}
        <span>{count(context.value.length)} pages</span>
        <span class="grow" />
        {entered > 0 && <span class="came">+{count(entered)} came</span>}
        {left.length > 0 && (
          <button class="link went" title="what this call took away" onClick={() => go({ pane: "taken" })}>
            −{count(left.length)} left, {tokens(shown.tokens(left))}
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
  const reading = reads.value;
  const isOpen = (at: number): boolean => reading || opened.value.has(shown.pageName(all[at]!.page));
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
      empty={<p class="empty">{showsOut.value ? "every page made so far is in the context" : "the context of this call is empty"}</p>}
    >
      {(at) => <PageRow shown={shown} row={all[at]!} open={isOpen(at)} reading={reading} />}
    </Rows>
  );
}

interface PageRowProps {
  shown: Film;
  row: Row;
  open: boolean;
  reading: boolean;
}

const sameRow = (a: Row, b: Row): boolean => a.page === b.page && a.content === b.content && a.mark === b.mark && a.level === b.level;

/** A row is made anew only when what it shows changed: most pages stay from call to call. */
class PageRow extends Component<PageRowProps> {
  override shouldComponentUpdate(next: PageRowProps): boolean {
    const now = this.props;
    return now.shown !== next.shown || now.open !== next.open || now.reading !== next.reading || !sameRow(now.row, next.row);
  }

  override render(props: PageRowProps) {
    return <Line {...props} />;
  }
}

function Line({ shown, row, open, reading }: PageRowProps) {
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
        <i class="role" style={{ background: colour("role", role) }} />
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
        <span class="page-mark" title={row.mark ? (row.mark === "new" ? "not in the call before" : "shown otherwise in the call before") : ""}>
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
        <div class={`page-body ${reading ? "reading" : ""}`}>
          <Content position={row.content} />
        </div>
      )}
    </div>
  );
}

function key(shown: Film, row: Row): string {
  const by = stackBy.value;
  return by === "level" ? (LEVELS[row.level] ?? "full") : shown[by](row.page);
}
