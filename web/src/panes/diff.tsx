// The difference of the contexts of any two calls: what entered, left, is shown otherwise or elsewhere.
// The call at the cursor is held against the one before it, or against one that was chosen.
import { computed } from "@preact/signals";
import { toggleOpen } from "../opened";
import { clamp, count, short, tokens, typedIn } from "../format";
import { LEVELS, type Film } from "../film";
import { changes, CHANGES, sums, type Change, type Changed } from "../lib/changes";
import { go, param } from "../place";
import { Empty, Grow, Tool } from "../parts/bits";
import { Content, Preview } from "../parts/content";
import { PageName, RoleBar } from "../parts/badges";
import { Rows } from "../parts/rows";
import { TextDiff } from "../parts/textdiff";
import { callNumber, cursor, film, page, toCall, which } from "../state";
import type { Pane } from "./index";

export const SIGNS: Record<Change, string> = { entered: "+", left: "−", edited: "✎", shortened: "◆", restored: "◇", moved: "↕", same: "" };
const WORDS: Record<Change, string> = {
  entered: "only in the second call",
  left: "only in the first call",
  edited: "a different version of the page",
  shortened: "shown shorter",
  restored: "shown fuller",
  moved: "at another place in the prompt",
  same: "the same on both sides",
};

/** The index of the call that the cursor's is held against; -1 where there is none before the first. */
const held = computed(() => {
  const shown = film.value;
  if (!shown?.calls) return -1;
  const told = param("vs").value;
  return told === "" ? cursor.value - 1 : shown.indexOf(Number(told) || 0);
});

const all = computed<Changed[]>(() => {
  const shown = film.value;
  if (!shown || held.value < 0) return [];
  return changes({ film: shown, at: held.value }, { film: shown, at: cursor.value });
});

/** The changes that are listed: what is the same is left out unless the URL asks for it. */
const wanted = computed<ReadonlySet<string>>(() => {
  const told = param("changes").value;
  return new Set(told ? told.split(",") : CHANGES.filter((one) => one !== "same"));
});
const listed = computed(() => all.value.filter((one) => wanted.value.has(one.change)));

function pageOf(shown: Film, row: Changed): number {
  return shown.stay.page[row.after < 0 ? row.before : row.after]!;
}

function step(by: number): void {
  const shown = film.peek();
  const rows = listed.value;
  if (!shown || !rows.length) return;
  const now = rows.findIndex((row) => pageOf(shown, row) === page.value);
  const next = clamp(rows.length - 1, now < 0 ? 0 : now + by);
  go({ page: shown.pageName(pageOf(shown, rows[next]!)) }, { step: true });
}

function hold(at: number, how: { step?: boolean } = {}): void {
  const shown = film.peek();
  if (shown?.calls) go({ vs: shown.callNumber[clamp(shown.calls - 1, at)] }, how);
}

function swap(): void {
  const before = held.value;
  if (before < 0) return;
  const now = cursor.value;
  hold(now, { step: true });
  toCall(before, { step: true });
}

function Diff() {
  const shown = film.value;
  if (!shown) return null;
  if (held.value < 0) {
    return (
      <Empty title={shown.calls ? "The first call has no call before it." : "This session has no model calls."}>Go to a later call, or pin any call as the baseline (D) and go to another.</Empty>
    );
  }
  return (
    <div class="diff">
      <Head shown={shown} />
      <Kinds shown={shown} />
      <List shown={shown} />
    </div>
  );
}

function Head({ shown }: { shown: Film }) {
  const calls = shown.data.calls;
  const [before, after] = [calls.tokens[held.value]!, calls.tokens[cursor.value]!];
  const chosen = param("vs").value !== "";
  return (
    <div class="pane-head">
      <h2>From call</h2>
      <input
        key={held.value}
        data-focus
        class="call-field"
        inputMode="numeric"
        aria-label="compare with call"
        defaultValue={String(shown.callNumber[held.value])}
        onChange={(event) => {
          const wish = Number(typedIn(event));
          if (Number.isFinite(wish)) hold(shown.indexOf(wish));
          event.currentTarget.blur();
        }}
      />
      <h2>to call {callNumber.value}</h2>
      <small>{count(before)} → {tokens(after)} ({signed(after - before)})</small>
      <Grow />
      <button class={`tool ${chosen ? "" : "on"}`} title="compare with the previous call" onClick={() => go({ vs: null })}>previous call</button>
      <Tool title="then go to another call (D)" onClick={() => hold(cursor.value)}>pin as baseline</Tool>
      <Tool title="swap the two calls (z)" onClick={swap}>swap</Tool>
    </div>
  );
}

function Kinds({ shown }: { shown: Film }) {
  const told = sums(all.value, shown, shown);
  const toggle = (change: Change): void => {
    const next = new Set(wanted.value);
    if (!next.delete(change)) next.add(change);
    const usual = CHANGES.every((one) => next.has(one) === (one !== "same"));
    go({ changes: usual ? null : [...next].join(",") || "none" });
  };
  return (
    <div class="changes" role="group" aria-label="changes shown">
      {CHANGES.map((change) => (
        <button key={change} disabled={!told[change].pages} class={wanted.value.has(change) ? "on" : ""} aria-pressed={wanted.value.has(change)} title={WORDS[change]} onClick={() => toggle(change)}>
          <i class={`change-${change}`}>{SIGNS[change]}</i> {change} <b>{count(told[change].pages)}</b>
          {told[change].tokens !== 0 && <small>{signed(told[change].tokens)}</small>}
        </button>
      ))}
    </div>
  );
}

export function signed(value: number): string {
  return value === 0 ? "±0" : `${value > 0 ? "+" : "−"}${short(Math.abs(value))}`;
}

function List({ shown }: { shown: Film }) {
  const rows = listed.value;
  const opened = new Set(param("open").value.split(","));
  const isOpen = (at: number): boolean => opened.has(shown.pageName(pageOf(shown, rows[at]!)));
  const chosen = rows.findIndex((row) => pageOf(shown, row) === page.value);
  return (
    <Rows
      label="changed pages"
      class="diff-rows"
      count={rows.length}
      height={23}
      keyOf={(at) => pageOf(shown, rows[at]!)}
      loose={isOpen}
      reveal={chosen}
      revealKey={`${held.value} ${cursor.value} ${chosen}`}
      empty={all.value.some((one) => one.change !== "same") ? "No changes of the kinds chosen above." : "The two calls were sent the same."}
    >
      {(at) => <Row shown={shown} row={rows[at]!} open={isOpen(at)} />}
    </Rows>
  );
}

function Row({ shown, row, open }: { shown: Film; row: Changed; open: boolean }) {
  const of = pageOf(shown, row);
  const name = shown.pageName(of);
  const stay = row.after < 0 ? row.before : row.after;
  return (
    <div class={`change ${of === page.value ? "chosen" : ""}`} data-page={name} data-change={row.change} role="listitem">
      <div class="change-line" onClick={() => go({ page: name })} onDblClick={() => toggleOpen(name)}>
        <button class="twist" aria-expanded={open} aria-label={`text of ${name}`} onClick={(event) => { event.stopPropagation(); toggleOpen(name); }}>{open ? "▾" : "▸"}</button>
        <i class={`change-sign change-${row.change}`} title={WORDS[row.change]}>{SIGNS[row.change]}</i>
        <span class="change-word">{row.change}</span>
        <RoleBar of={shown.role(of)} />
        <span><PageName name={name} /></span>
        <span class="num">{amount(shown, row)}</span>
        <small>{levels(shown, row)}</small>
        <span class="page-text">
          {shown.hint(of) && <em>{shown.hint(of)}</em>}
          {!open && <Preview position={shown.stay.content[stay]!} />}
        </span>
      </div>
      {open && <div class="change-body"><Body shown={shown} row={row} /></div>}
    </div>
  );
}

function amount(shown: Film, { before, after }: Changed): string {
  const [was, is] = [before < 0 ? 0 : shown.stay.tokens[before]!, after < 0 ? 0 : shown.stay.tokens[after]!];
  if (before < 0) return `+${count(is)}`;
  if (after < 0) return `−${count(was)}`;
  return was === is ? count(is) : `${count(was)} → ${count(is)}`;
}

function levels(shown: Film, { before, after }: Changed): string {
  const told = [before, after].filter((stay) => stay >= 0).map((stay) => LEVELS[shown.stay.level[stay]!] ?? "");
  const once = [...new Set(told)];
  return once.length === 1 && once[0] === "full" ? "" : once.join(" → ");
}

function Body({ shown, row }: { shown: Film; row: Changed }) {
  const of = which.value;
  const content = (stay: number): number => shown.stay.content[stay]!;
  if (row.before < 0 || row.after < 0 || content(row.before) === content(row.after)) return <Content position={content(Math.max(row.before, row.after))} />;
  return <TextDiff before={{ content: content(row.before), of }} after={{ content: content(row.after), of }} />;
}

export const diff: Pane = {
  id: "diff",
  title: "Diff",
  key: "d",
  hint: "what changed between two calls",
  wide: true,
  View: Diff,
  step,
  second: (by) => hold(held.value + by, { step: true }),
  keys: [
    { keys: ["D"], does: "pin this call as the baseline", act: () => { hold(cursor.peek()); go({ pane: "diff" }); } },
    { keys: ["z"], does: "swap the two compared calls", act: swap },
  ],
};
