// Two films side by side: sessions, forks or what-ifs. Both scrub together by call, or each by itself;
// where they first part is marked on both timelines and a key away, and either opens on its own.
import { computed } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import { budgetsOf, mostOf, paintStack, paintSteps } from "../chart";
import { painted } from "../colours";
import { toggleOpen } from "../opened";
import { say } from "../copy";
import { clamp, count, glyph, short, tokens, typedIn } from "../format";
import { LEVELS, type Film } from "../film";
import { changes, CHANGES, sums, type Changed } from "../lib/changes";
import { other, otherCursor, otherTrouble, otherWhich, pairing, parted, toggleLock, toOtherCall, toShared, toTurn, unlocked } from "../lib/other";
import { align, numbered } from "../lib/sequence";
import { go, param, place } from "../place";
import { Act, Form, Grow, Mute, Tool } from "../parts/bits";
import { Check, Fidelity, LevelMeter, RoleBar } from "../parts/badges";
import { Content, Preview, Problem } from "../parts/content";
import { Rows } from "../parts/rows";
import { TextDiff } from "../parts/textdiff";
import type { Which } from "../source";
import { cursor, film, source, stackBy, store, toCall, which } from "../state";
import { signed, SIGNS } from "./diff";
import { costOf, SessionBox } from "../sessions";
import type { Pane } from "./index";
import { Strip } from "./strip";
import { PolicyField } from "./whatif";

const STRIP = 54;
const BETWEEN = 18;

const all = computed<Changed[]>(() => {
  const [a, b] = [film.value, other.value];
  return a && b ? changes({ film: a, at: cursor.value }, { film: b, at: otherCursor.value }, pairing.value) : [];
});
const onlyChanges = computed(() => param("all").value === "");
const listed = computed<Beside[]>(() => {
  const [a, b] = [film.value, other.value];
  return a && b ? beside(a, b, onlyChanges.value ? all.value.filter((one) => one.change !== "same") : all.value) : [];
});

function lookOf(shown: Film, stay: number): string {
  const page = shown.stay.page[stay]!;
  return `${shown.role(page)} ${shown.modality(page)}`;
}

/** A row of the list: `replaced` where each side has another page at this place. */
interface Beside extends Changed {
  replaced?: boolean;
}

/** What only the left has and what only the right has at one place stand in one row where the same role says it. */
function beside(a: Film, b: Film, rows: readonly Changed[]): Beside[] {
  const found: Beside[] = [];
  for (let at = 0; at < rows.length; ) {
    const end = (from: number, change: string): number => {
      let to = from;
      while (rows[to]?.change === change) to++;
      return to;
    };
    const middle = end(at, "left");
    const last = end(middle, "entered");
    const pairs = align(...numbered(rows.slice(at, middle).map((row) => lookOf(a, row.before)), rows.slice(middle, last).map((row) => lookOf(b, row.after))));
    let next = middle;
    pairs.forEach((partner, k) => {
      if (partner < 0) return void found.push(rows[at + k]!);
      found.push(...rows.slice(next, middle + partner), { change: "edited", replaced: true, before: rows[at + k]!.before, after: rows[middle + partner]!.after });
      next = middle + partner + 1;
    });
    found.push(...rows.slice(next, Math.max(last, at + 1)));
    at = Math.max(last, at + 1);
  }
  return found;
}

/** What a row is called in the URL: its page on the one side, or, where only the other has it, that with a mark. */
function nameOf(a: Film, b: Film, row: Changed): string {
  return row.before >= 0 ? a.pageName(a.stay.page[row.before]!) : `~${b.pageName(b.stay.page[row.after]!)}`;
}

function step(by: number): void {
  const [a, b, rows] = [film.peek(), other.peek(), listed.value];
  if (!a || !b || !rows.length) return;
  const now = rows.findIndex((row) => nameOf(a, b, row) === param("row").value);
  const next = rows[clamp(rows.length - 1, now < 0 ? 0 : now + by)]!;
  go({ row: nameOf(a, b, next), ...(next.before >= 0 ? { page: nameOf(a, b, next) } : {}) }, { step: true });
}

function Sides() {
  const a = film.value;
  const wanted = otherWhich.value;
  if (!a) return null;
  if (!wanted) return <Choose />;
  const b = other.value;
  return (
    <div class="sides">
      {otherTrouble.value && <><Problem trouble={otherTrouble.value} /><Choose /></>}
      {!otherTrouble.value && !b && <Mute>{wanted.policy || wanted.budget ? "Replaying the session…" : "Reading the other session…"}</Mute>}
      {b && (
        <>
          <Parting a={a} b={b} />
          <Shared a={a} b={b} />
          <Strips a={a} b={b} />
          <Heads a={a} b={b} />
          <Pages a={a} b={b} />
        </>
      )}
    </div>
  );
}

/** Which film to set beside this one. */
function Choose() {
  const [policy, setPolicy] = useState("");
  const [budget, setBudget] = useState("");
  const now = which.value;
  const rows = (store.value?.sessions ?? []).filter((row) => row.session !== now.session);
  const kin = (session: string): number => {
    const row = rows.find((one) => one.session === session);
    const mine = store.value?.sessions.find((one) => one.session === now.session)?.parent?.session;
    return row?.parent?.session === now.session || mine === session ? 0 : row?.parent && row.parent.session === mine ? 1 : 2;
  };
  rows.sort((x, y) => kin(x.session) - kin(y.session));
  return (
    <div class="choose">
      <h3>Compare {now.session} with itself under other settings</h3>
      <Form
        class="ask"
        does={() => {
          if (policy || budget) go({ other: now.session, opolicy: policy, obudget: budget.replace(/\D/g, "") });
          else say("Choose a policy or a budget.");
        }}
      >
        <PolicyField value={policy} set={setPolicy} />
        <input data-focus inputMode="numeric" aria-label="budget" placeholder="budget in tokens" value={budget} onInput={(event) => setBudget(typedIn(event))} />
        <Act>Compare</Act>
      </Form>
      {(now.policy || now.budget) && (
        <Tool onClick={() => go({ other: now.session, opolicy: null, obudget: null })}>with what happened</Tool>
      )}
      <h3>Another session</h3>
      {rows.length ? <SessionBox rows={rows} now="" choose={(session) => go({ other: session, opolicy: null, obudget: null, ocall: null })} /> : <Mute>This store holds no other session.</Mute>}
    </div>
  );
}

function Parting({ a, b }: { a: Film; b: Film }) {
  const told = parted.value;
  const paired = pairing.value;
  if (!told || !paired) return null;
  const number = told.first < 0 ? 0 : told.calls[told.first]!;
  return (
    <div class="pane-head parting-line" data-first={number || ""}>
      {told.first < 0 ? (
        <b>{told.calls.length ? `The same context at all ${count(told.calls.length)} calls` : "No calls in common"}</b>
      ) : (
        <>
          <b>They diverge at call {number}</b>
          <Because a={a} b={b} />
          <Act title="to where they first diverge (v)" onClick={() => toShared(told.first)}>go there</Act>
          <Tool title="to the next call at which they diverge or agree again (V)" onClick={() => nextTurn()}>next change</Tool>
        </>
      )}
      {told.turned >= 0 && <button class="chip link" title="the same pages in another order" onClick={() => toShared(told.turned)}>other order from call {told.calls[told.turned]}</button>}
      <Grow />
      <label class="check" title="each side keeps a call of its own (y); , and . move the other side">
        <input type="checkbox" checked={!unlocked.value} onChange={toggleLock} /> scrub together
      </label>
      <Tool onClick={() => go({ other: null, opolicy: null, obudget: null, ocall: null, row: null })}>another…</Tool>
    </div>
  );
}

/** How much both sides have in common from the start, and what each says next. */
function Shared({ a, b }: { a: Film; b: Film }) {
  const at = pairing.value!.shared;
  const next = (side: "a" | "b", shown: Film, of: Which) => (
    <div class="half">
      <RoleBar of={shown.role(at)} />
      <span class={`side side-${side}`}>{side === "a" ? "left" : "right"}</span>
      {at < shown.pages ? <Preview position={shown.data.pages.number[at]!} of={of} /> : <small>ends</small>}
    </div>
  );
  if (at >= a.pages && at >= b.pages) return <Mute>All {count(at)} pages are the same.</Mute>;
  return (
    <div class="shared" data-shared={at}>
      <p>{at ? <>The same up to <b>page {count(at)}</b>, then:</> : <b>They differ from the first page on:</b>}</p>
      {next("a", a, which.value)}
      {next("b", b, otherWhich.value!)}
    </div>
  );
}

/** The event that made the first difference, in the words of its side. */
function Because({ a, b }: { a: Film; b: Film }) {
  const told = parted.value?.because;
  const changed = parted.value?.changed ?? [];
  if (!told) return <small>{count(changed.length)} pages differ</small>;
  const shown = told.side === "a" ? a : b;
  const page = shown.data.events.page[told.event]!;
  const kind = shown.eventKind(told.event);
  const why = shown.word(shown.data.events.why[told.event]);
  return (
    <span class="because-line">
      <span class={`side side-${told.side}`}>{told.side === "a" ? "left" : "right"}</span>
      <i class={`glyph kind-${kind}`}>{glyph(kind)}</i> {kind.replaceAll("_", " ")} {page >= 0 && <b>{shown.pageName(page)}</b>}
      {page >= 0 && shown.hint(page) && <em> {shown.hint(page)}</em>} {why && <small>{why}</small>}
    </span>
  );
}

function nextTurn(forward = true): void {
  if (!toTurn(forward)) say(`no change ${forward ? "after" : "before"} this call`);
}

/** Both timelines on one scale, and between them how much is on one side alone. */
function Strips({ a, b }: { a: Film; b: Film }) {
  const told = parted.value!;
  const calls = Math.max(a.calls, b.calls);
  const most = useMemo(() => 1.04 * mostOf([a, b].flatMap((one) => [one.data.calls.tokens, budgetsOf(one)]), 0, calls), [a, b]);
  const paintFilm = (shown: Film) => (pen: CanvasRenderingContext2D, wide: number, high: number): void => {
    const area = { left: 0, top: 0, wide, high, from: 0, to: calls, most };
    paintStack(pen, shown, stackBy.value, area);
    paintSteps(pen, budgetsOf(shown), "--budget", area);
  };
  const apart = useMemo(() => Math.max(1, ...told.tokensA, ...told.tokensB), [told]);
  const first = told.first;
  return (
    <div class="strips">
      <Strip
        label="calls of the left side" calls={calls} high={STRIP} at={a.calls ? cursor.value : -1} first={first < 0 ? -1 : told.a[first]!} version={a}
        paint={paintFilm(a)} scrub={(at, how) => toCall(Math.min(at, a.calls - 1), how)}
      />
      <Strip
        label="what only one side was sent" calls={calls} high={BETWEEN} at={-1} first={-1} version={told}
        paint={(pen, wide, high) => {
          const slot = wide / Math.max(1, calls);
          pen.fillStyle = painted("--rule");
          pen.fillRect(0, high / 2, wide, 1);
          told.a.forEach((at, k) => {
            pen.fillStyle = painted("--side-a");
            const [up, down] = [told.tokensA[k]!, told.tokensB[k]!].map((own) => (own > 0 ? Math.max(1.5, ((high / 2) * own) / apart) : 0)) as [number, number];
            pen.fillRect(at * slot, high / 2 - up, Math.max(1, slot), up);
            pen.fillStyle = painted("--side-b");
            pen.fillRect(at * slot, high / 2 + 1, Math.max(1, slot), down);
          });
        }}
        scrub={(at, how) => toCall(Math.min(at, a.calls - 1), how)}
      />
      <Strip
        label="calls of the right side" calls={calls} high={STRIP} at={b.calls ? otherCursor.value : -1} first={first < 0 ? -1 : told.b[first]!} version={b}
        paint={paintFilm(b)} scrub={toOtherCall}
      />
    </div>
  );
}

function Heads({ a, b }: { a: Film; b: Film }) {
  const told = sums(all.value, a, b);
  return (
    <div class="side-heads">
      <Head side="a" shown={a} at={cursor.value} of={which.value} />
      <div class="side-sum">
        {CHANGES.filter((one) => one !== "same" && told[one].pages).map((one) => (
          <span key={one} title={`${one}: ${count(told[one].pages)} pages`}><i class={`change-${one}`}>{SIGNS[one]}</i> {count(told[one].pages)} <small>{told[one].tokens ? signed(told[one].tokens) : ""}</small></span>
        ))}
        {all.value.every((one) => one.change === "same") && <small>the same</small>}
        <Check name="all" does="all pages" />
      </div>
      <Head side="b" shown={b} at={otherCursor.value} of={otherWhich.value!} />
    </div>
  );
}

function Head({ side, shown, at, of }: { side: "a" | "b"; shown: Film; at: number; of: Which }) {
  const calls = shown.data.calls;
  const budget = calls.budget[at] ?? shown.data.budget;
  const wanted = film.value?.callNumber[cursor.value];
  const missing = side === "b" && !unlocked.value && shown.calls > 0 && shown.callNumber[at] !== wanted;
  return (
    <div class="side-head">
      <span class={`side side-${side}`}>{side === "a" ? "left" : "right"}</span>
      <b title={of.session}>{of.session}</b>
      {of.policy || of.budget ? <span class="chip whatif">what-if: {[of.policy, of.budget && tokens(Number(of.budget))].filter(Boolean).join(", ")}</span> : <Fidelity word={shown.data.fidelity} />}
      {shown.calls > 0 && <span data-testid={`side-${side}-call`}>call {shown.callNumber[at]}</span>}
      {missing && <span class="went">no call {wanted}</span>}
      <Total of={of} shown={shown} />
      <small>{count(calls.tokens[at] ?? 0)}{budget ? ` of ${tokens(budget)}` : " tokens, no budget"}{shown.data.policy ? `, ${shown.data.policy}` : ""}</small>
      <a class="link" href={alone(shown, at, of)} title="this side on its own">open alone</a>
    </div>
  );
}

/** How a side ended, and what it took in all. */
function Total({ of, shown }: { of: Which; shown: Film }) {
  const row = of.policy || of.budget ? undefined : store.value?.sessions.find((one) => one.session === of.session);
  const told = [row?.outcome, `${count(shown.calls)} calls`, row?.tokens ? `${short(row.tokens)} tokens` : "", row ? costOf(row) : ""];
  return <span class="total">{told.filter(Boolean).join(" · ")}</span>;
}

/** Where a side is seen on its own, at the call it shows. */
function alone(shown: Film, at: number, of: Which): string {
  const told = new URLSearchParams({ session: of.session });
  if (of.policy) told.set("policy", of.policy);
  if (of.budget) told.set("budget", of.budget);
  if (shown.calls && at < shown.calls - 1) told.set("call", String(shown.callNumber[at]));
  if (place.value.by) told.set("by", place.value.by);
  return `#${told}`;
}

function Pages({ a, b }: { a: Film; b: Film }) {
  const rows = listed.value;
  const opened = new Set(param("open").value.split(","));
  const isOpen = (at: number): boolean => opened.has(nameOf(a, b, rows[at]!));
  const chosen = rows.findIndex((row) => nameOf(a, b, row) === param("row").value);
  return (
    <Rows
      label="pages of both sides" class="side-rows" count={rows.length} height={23} loose={isOpen}
      keyOf={(at) => nameOf(a, b, rows[at]!)} reveal={chosen} revealKey={`${cursor.value} ${otherCursor.value} ${chosen}`}
      empty={a.calls && b.calls ? "Both sides were sent the same here." : "One side has no calls yet."}
    >
      {(at) => <Row a={a} b={b} row={rows[at]!} open={isOpen(at)} chosen={at === chosen} />}
    </Rows>
  );
}

function Row({ a, b, row, open, chosen }: { a: Film; b: Film; row: Beside; open: boolean; chosen: boolean }) {
  const name = nameOf(a, b, row);
  const choose = (): void => go({ row: name, ...(row.before >= 0 ? { page: name } : {}) });
  return (
    <div class={`change ${chosen ? "chosen" : ""}`} data-row={name} data-change={row.change} role="listitem">
      <div class="side-line" onClick={choose} onDblClick={() => toggleOpen(name)}>
        <Half shown={a} stay={row.before} of={which.value} />
        <button class={`change-sign change-${row.change}`} aria-expanded={open} aria-label={`texts of ${name}`} title={`${said(row)}: show the text`} onClick={(event) => { event.stopPropagation(); toggleOpen(name); }}>{row.replaced ? "≠" : SIGNS[row.change] || "="}</button>
        <Half shown={b} stay={row.after} of={otherWhich.value!} />
      </div>
      {open && <div class="change-body"><Body a={a} b={b} row={row} /></div>}
    </div>
  );
}

function said({ change, replaced }: Beside): string {
  if (replaced) return "another page on each side";
  return change === "entered" ? "only on the right" : change === "left" ? "only on the left" : change;
}

function Half({ shown, stay, of }: { shown: Film; stay: number; of: Which }) {
  if (stay < 0) return <span class="half none" />;
  const page = shown.stay.page[stay]!;
  const level = shown.stay.level[stay]!;
  return (
    <span class="half">
      <RoleBar of={shown.role(page)} />
      <span class="page-id">{shown.pageName(page)}</span>
      <span title={LEVELS[level]}>{level > 0 && <LevelMeter level={level} />}</span>
      <span class="num">{count(shown.stay.tokens[stay]!)}</span>
      <span class="page-text">{shown.hint(page) && <em>{shown.hint(page)}</em>}<Preview position={shown.stay.content[stay]!} of={of} /></span>
    </span>
  );
}

function Body({ a, b, row }: { a: Film; b: Film; row: Changed }) {
  const [left, right] = [which.value, otherWhich.value!];
  if (row.before < 0) return <Content position={b.stay.content[row.after]!} of={right} />;
  if (row.after < 0) return <Content position={a.stay.content[row.before]!} of={left} />;
  return <TextDiff before={{ content: a.stay.content[row.before]!, of: left }} after={{ content: b.stay.content[row.after]!, of: right }} />;
}

export const sides: Pane = {
  id: "sides",
  title: "Side by side",
  key: "s",
  hint: "compare two sessions, forks or what-ifs",
  wide: true,
  View: Sides,
  step,
  second: (by) => {
    if (!unlocked.peek()) toggleLock();
    toOtherCall(otherCursor.peek() + by, { step: true });
  },
  keys: [
    { keys: ["v"], does: "side by side: where they diverge", act: () => { const first = parted.peek()?.first ?? -1; if (first >= 0) toShared(first); else say(source.peek() && other.peek() ? "They never diverge." : "Choose what to compare this session with (s)."); } },
    { keys: ["V"], does: "where they next diverge or agree", act: () => nextTurn() },
    { keys: ["y"], does: "scrub both sides together, or each alone", act: toggleLock },
  ],
};
