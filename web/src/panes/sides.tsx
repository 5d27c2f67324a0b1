// Two films side by side: sessions, forks or what-ifs. Both scrub together by call, or each by itself;
// where they first part is marked on both timelines and a key away, and either opens on its own.
import { computed } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import { budgetsOf, mostOf, paintStack, paintSteps } from "../chart";
import { colour, painted } from "../colours";
import { toggleOpen } from "../context";
import { say } from "../copy";
import { count, glyph, tokens } from "../format";
import { LEVELS, type Film } from "../film";
import { changes, CHANGES, sums, type Changed } from "../lib/changes";
import { other, otherCursor, otherTrouble, otherWhich, pairing, parted, toggleLock, toOtherCall, toShared, toTurn, unlocked } from "../lib/other";
import { go, param, place } from "../place";
import { Fidelity, LevelMeter } from "../parts/badges";
import { Content, Preview, Problem } from "../parts/content";
import { Rows } from "../parts/rows";
import { TextDiff } from "../parts/textdiff";
import type { Which } from "../source";
import { textAt } from "../texts";
import { cursor, film, source, stackBy, store, toCall, which } from "../state";
import { signed, SIGNS } from "./diff";
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
const listed = computed(() => (onlyChanges.value ? all.value.filter((one) => one.change !== "same") : all.value));

/** What a row is called in the URL: its page on the one side, or, where only the other has it, that with a mark. */
function nameOf(a: Film, b: Film, row: Changed): string {
  return row.before >= 0 ? a.pageName(a.stay.page[row.before]!) : `~${b.pageName(b.stay.page[row.after]!)}`;
}

function step(by: number): void {
  const [a, b, rows] = [film.peek(), other.peek(), listed.value];
  if (!a || !b || !rows.length) return;
  const now = rows.findIndex((row) => nameOf(a, b, row) === param("row").value);
  const next = rows[Math.max(0, Math.min(rows.length - 1, now < 0 ? 0 : now + by))]!;
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
      {!otherTrouble.value && !b && <p class="mute">{wanted.policy || wanted.budget ? "deciding the session again…" : "reading the other film…"}</p>}
      {b && (
        <>
          <Parting a={a} b={b} />
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
      <h3>Beside {now.session}{now.policy || now.budget ? ", decided again," : ""} set what it would have been</h3>
      <form
        class="ask"
        onSubmit={(event) => {
          event.preventDefault();
          if (policy || budget) go({ other: now.session, opolicy: policy, obudget: budget.replace(/\D/g, "") });
          else say("choose a policy or a budget");
        }}
      >
        <PolicyField value={policy} set={setPolicy} />
        <input data-focus inputMode="numeric" aria-label="budget" placeholder="budget in tokens" value={budget} onInput={(event) => setBudget(event.currentTarget.value)} />
        <button class="act">Compare</button>
      </form>
      {(now.policy || now.budget) && (
        <button class="tool" onClick={() => go({ other: now.session, opolicy: null, obudget: null })}>beside what happened</button>
      )}
      <h3>or another session</h3>
      {rows.length === 0 && <p class="mute">This store holds no other session.</p>}
      <ul class="others">
        {rows.map((row) => (
          <li key={row.session}>
            <button onClick={() => go({ other: row.session, opolicy: null, obudget: null, ocall: null })}>
              <b>{row.session}</b> <Fidelity word={row.fidelity} />
              <span class="mute">
                {count(row.calls)} calls, {count(row.pages)} pages
                {row.parent ? `, from ${row.parent.session}${row.parent.call === null ? "" : ` at call ${row.parent.call}`}` : ""}
              </span>
            </button>
          </li>
        ))}
      </ul>
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
        <b>{told.calls.length ? `Both were sent the same at all ${count(told.calls.length)} calls they share` : "They share no call"}</b>
      ) : (
        <>
          <b>They part at call {number}</b>
          <Because a={a} b={b} />
          <button class="act" title="where they first part (v)" onClick={() => toShared(told.first)}>go there</button>
          <button class="tool" title="the next call at which they part or meet again (V)" onClick={() => nextTurn()}>next change</button>
        </>
      )}
      {told.turned >= 0 && <button class="chip link" title="the same pages, but not in the same order" onClick={() => toShared(told.turned)}>ordered otherwise from call {told.calls[told.turned]}</button>}
      {!paired.related && <span class="chip" title="these sessions have no common origin; a page is taken for one of the other side by role, type and tokens, in the order they were made">paired by likeness</span>}
      <span class="grow" />
      <label class="check" title="each side keeps a call of its own (y); , and . move the other side">
        <input type="checkbox" checked={!unlocked.value} onChange={toggleLock} /> scrub together
      </label>
      <button class="tool" onClick={() => go({ other: null, opolicy: null, obudget: null, ocall: null, row: null })}>another…</button>
    </div>
  );
}

/** The event that made the first difference, in the words of its side. */
function Because({ a, b }: { a: Film; b: Film }) {
  const told = parted.value?.because;
  const changed = parted.value?.changed ?? [];
  if (!told) return <span class="mute">{count(changed.length)} pages differ</span>;
  const shown = told.side === "a" ? a : b;
  const page = shown.data.events.page[told.event]!;
  const kind = shown.eventKind(told.event);
  const why = shown.word(shown.data.events.why[told.event]);
  return (
    <span class="because-line">
      <span class={`side side-${told.side}`}>{told.side === "a" ? "left" : "right"}</span>
      <i class={`glyph kind-${kind}`}>{glyph(kind)}</i> {kind.replaceAll("_", " ")} {page >= 0 && <b>{shown.pageName(page)}</b>}
      {page >= 0 && shown.hint(page) && <em> {shown.hint(page)}</em>} {why && <span class="mute">{why}</span>}
    </span>
  );
}

function nextTurn(forward = true): void {
  if (!toTurn(forward)) say(`they neither part nor meet ${forward ? "after" : "before"} this call`);
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
          <span key={one} title={`${one}: ${count(told[one].pages)} pages`}><i class={`change-${one}`}>{SIGNS[one]}</i> {count(told[one].pages)} <span class="mute">{told[one].tokens ? signed(told[one].tokens) : ""}</span></span>
        ))}
        {all.value.every((one) => one.change === "same") && <span class="mute">the same</span>}
        <label class="check"><input type="checkbox" checked={!onlyChanges.value} onChange={(event) => go({ all: event.currentTarget.checked ? 1 : null })} /> all pages</label>
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
      <span class="mute">{count(calls.tokens[at] ?? 0)}{budget ? ` of ${tokens(budget)}` : " tokens, no budget"}{shown.data.policy ? `, ${shown.data.policy}` : ""}</span>
      <a class="link" href={alone(shown, at, of)} title="this side on its own">open alone</a>
    </div>
  );
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
      empty={<p class="empty">{a.calls && b.calls ? "both sides were sent the same here" : "a side has no call yet"}</p>}
    >
      {(at) => <Row a={a} b={b} row={rows[at]!} open={isOpen(at)} chosen={at === chosen} />}
    </Rows>
  );
}

function Row({ a, b, row, open, chosen }: { a: Film; b: Film; row: Changed; open: boolean; chosen: boolean }) {
  const name = nameOf(a, b, row);
  const choose = (): void => go({ row: name, ...(row.before >= 0 ? { page: name } : {}) });
  return (
    <div class={`change ${chosen ? "chosen" : ""}`} data-row={name} data-change={row.change} role="listitem">
      <div class="side-line" onClick={choose} onDblClick={() => toggleOpen(name)}>
        <Half shown={a} stay={row.before} of={which.value} />
        <button class={`change-sign change-${row.change}`} aria-expanded={open} aria-label={`texts of ${name}`} title={`${said(row)}: show the text`} onClick={(event) => { event.stopPropagation(); toggleOpen(name); }}>{SIGNS[row.change] || <Equal a={a} b={b} row={row} />}</button>
        <Half shown={b} stay={row.after} of={otherWhich.value!} />
      </div>
      {open && <div class="change-body"><Body a={a} b={b} row={row} /></div>}
    </div>
  );
}

/** Pages that were paired by likeness may be as long and say another thing: the texts tell, once they are there. */
function Equal({ a, b, row }: { a: Film; b: Film; row: Changed }) {
  if (pairing.value?.related !== false) return <>=</>;
  const [left, right] = [textAt(a.stay.content[row.before]!, which.value).value, textAt(b.stay.content[row.after]!, otherWhich.value!).value];
  const told = left && right && "text" in left && "text" in right;
  return told && left.text !== right.text ? <span class="change-edited" title="as long, but another text">≠</span> : <>=</>;
}

function said({ change }: Changed): string {
  return change === "entered" ? "only on the right" : change === "left" ? "only on the left" : change;
}

function Half({ shown, stay, of }: { shown: Film; stay: number; of: Which }) {
  if (stay < 0) return <span class="half none" />;
  const page = shown.stay.page[stay]!;
  const level = shown.stay.level[stay]!;
  return (
    <span class="half">
      <i class="role" style={{ background: colour("role", shown.role(page)) }} title={shown.role(page)} />
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
  hint: "two sessions, forks or what-ifs side by side",
  wide: true,
  View: Sides,
  step,
  second: (by) => {
    if (!unlocked.peek()) toggleLock();
    toOtherCall(otherCursor.peek() + by, { step: true });
  },
  keys: [
    { keys: ["v"], does: "side by side: where they first part", act: () => { const first = parted.peek()?.first ?? -1; if (first >= 0) toShared(first); else say(source.peek() && other.peek() ? "they never part" : "nothing is set beside this session (s)"); } },
    { keys: ["V"], does: "where they next part or meet", act: () => nextTurn() },
    { keys: ["y"], does: "scrub together, or each side by itself", act: toggleLock },
  ],
};
