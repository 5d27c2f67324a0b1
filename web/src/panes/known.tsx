// What was known at the call at the cursor: facts by whom they are about, and topics over the turns.
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { useVmql, type Asked } from "../asked";
import { clamp, count, typedIn } from "../format";
import { go, param } from "../place";
import { Link, Mute } from "../parts/bits";
import { Check, CallName, PageName } from "../parts/badges";
import { Problem } from "../parts/content";
import type { Answer } from "../source";
import { callNumber, cursor, film } from "../state";
import type { Film } from "../film";
import type { Pane } from "./index";

const FACTS_MAX = 1000;
const TOPICS_MAX = 24;
const COLUMNS = "page, subject, verb, what, attribute, type, status, valid_from, valid_to, precision, superseded_by, sources, turn, position, confidence, method";

interface KnownFact {
  page: string;
  subject: string;
  verb: string;
  what: string;
  attribute: string | null;
  type: string;
  status: string;
  valid_from: string | null;
  valid_to: string | null;
  precision: string;
  superseded_by: string | null;
  sources: string[];
  turn: number;
  position: number;
  confidence: number;
  method: string;
}

interface Topic {
  tag: string;
  aliases: string[];
  pages: number;
  turns: number;
  turn_numbers: number[];
  related: string[];
  depth: string;
}

/** The facts in view, which ↓ and ↑ go through. */
const listed = signal<KnownFact[]>([]);

function Known() {
  const shown = film.value;
  if (!shown) return null;
  const isLast = cursor.value >= shown.calls - 1; // what was stated after the last call is known there
  const moment = isLast ? "" : ` AS OF CALL ${callNumber.value}`;
  const time = new Date((shown.data.calls.at[cursor.value] ?? 0) / 1000).toISOString();
  const known = !isLast && param("known").value === "now" ? ` VALID AT '${time}'` : moment;
  return (
    <div class="known">
      <Facts moment={known} isLast={isLast} words={param("about").value.toLowerCase()} ever={param("ever").value === "1"} />
      <Topics shown={shown} moment={moment} />
    </div>
  );
}

/** The answer to a statement about the session in view, as of the moment it names. */
function useRows<T>(statement: string): Asked<Answer> & { rows: T[] | null; limited: number } {
  const asked = useVmql(statement, FACTS_MAX);
  return { ...asked, rows: (asked.value?.rows as T[] | undefined) ?? null, limited: asked.value?.limited ?? 0 };
}

function Facts({ moment, isLast, words, ever }: { moment: string; isLast: boolean; words: string; ever: boolean }) {
  const isHindsight = moment.startsWith(" VALID AT");
  const all = useRows<KnownFact>(`FACTS ${COLUMNS} ALL${isHindsight ? "" : moment}`);
  const now = useRows<{ page: string }>(`FACTS page${moment}`);
  const holding = new Set(now.rows?.map((row) => row.page));
  const facts = all.rows ?? [];
  const wanted = facts.filter((fact) => (ever || holding.has(fact.page)) && `${fact.subject} ${fact.verb} ${fact.what}`.toLowerCase().includes(words));
  const subjects = new Map<string, KnownFact[]>();
  for (const fact of wanted) subjects.set(fact.subject, [...(subjects.get(fact.subject) ?? []), fact]);
  const order = [...subjects.values()].flat();
  useLayoutEffect(() => {
    listed.value = order;
  });
  const error = all.error ?? now.error;
  return (
    <>
      <h3>
        Facts {now.rows && <small>{count(holding.size)} of {count(facts.length)} hold at this call</small>}
      </h3>
      <div class="row">
        <input data-focus type="search" placeholder="filter by words" aria-label="facts with words" value={param("about").value} onInput={(event) => go({ about: typedIn(event) || null })} />
        <Check name="ever" does="also those that no longer hold" />
        {!isLast && <Check name="known" value="now" does="with hindsight" title="what is known at the end about the time of this call" />}
      </div>
      {error && <Problem trouble={error} />}
      {!error && now.rows && !facts.length && <Mute>{isLast || isHindsight ? "No facts in this session. `vmstore facts STORE --find` looks for some." : "No facts up to this call."}</Mute>}
      {facts.length > 0 && !wanted.length && <Mute>None of the {count(facts.length)} facts match.</Mute>}
      {all.limited > 0 && <Mute>the first {count(facts.length)} of more</Mute>}
      {[...subjects].map(([subject, rows]) => (
        <section key={subject}>
          <h4>{subject}</h4>
          <div role="list">{rows.map((fact) => <Fact key={fact.page} fact={fact} holds={holding.has(fact.page)} facts={facts} />)}</div>
        </section>
      ))}
    </>
  );
}

function Fact({ fact, holds, facts }: { fact: KnownFact; holds: boolean; facts: KnownFact[] }) {
  const chosen = param("page").value === fact.page;
  const row = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (chosen) row.current?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  return (
    <div ref={row} role="listitem" class={`fact ${holds ? "" : "over"} ${chosen ? "chosen" : ""}`} data-page={fact.page}>
      <button class="fact-line" aria-expanded={chosen} onClick={() => go({ page: chosen ? null : fact.page })}>
        <span class="fact-text">
          {fact.verb} <b>{fact.what}</b>
        </span>
        <small>{[fact.type, fact.status === "active" ? "" : fact.status, span(fact)].filter(Boolean).join(" · ")}</small>
      </button>
      {chosen && <FactMore fact={fact} facts={facts} />}
    </div>
  );
}

/** Where a fact comes from, and what its attribute was before and after. */
function FactMore({ fact, facts }: { fact: KnownFact; facts: KnownFact[] }) {
  const shown = film.value!;
  const values = fact.attribute ? facts.filter((other) => other.subject === fact.subject && other.attribute === fact.attribute) : [];
  return (
    <div class="fact-more">
      <p>
        from {fact.sources.length ? fact.sources.map((page) => <PageName key={page} name={page} hint />) : "nothing that was said"}, stated in turn {fact.turn} (<CallName call={shown.callNumber[shown.stepAt(fact.position)] ?? 0} />) as <PageName name={fact.page} />
        <small> by {fact.method}, {Math.round(100 * fact.confidence)} % sure</small>
      </p>
      {fact.superseded_by && <p>replaced by <PageName name={fact.superseded_by} /></p>}
      {values.length > 1 && (
        <table class="shares">
          <caption>{fact.attribute} over time</caption>
          <tbody>
            {values.toSorted((a, b) => (a.valid_from ?? "").localeCompare(b.valid_from ?? "")).map((value) => (
              <tr key={value.page} class={value.page === fact.page ? "chosen" : ""}>
                <td class="num mute">{span(value)}</td>
                <td><Link onClick={() => go({ page: value.page })}>{value.what}</Link></td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

/** Since when, and until when: as exactly as it is known. */
function span(fact: KnownFact): string {
  const day = (time: string | null): string => time?.slice(0, fact.precision === "year" ? 4 : fact.precision === "month" ? 7 : 10) ?? "";
  const [from, to] = [day(fact.valid_from), day(fact.valid_to)];
  if (!to) return from && `since ${from}`;
  return from === to ? from : `${from} to ${to}`;
}

function Topics({ shown, moment }: { shown: Film; moment: string }) {
  const asked = useRows<Topic>(`TAGS tag, aliases, pages, turns, turn_numbers, related, depth WHERE tag = canonical${moment} ORDER BY turns DESC LIMIT ${TOPICS_MAX}`);
  const { turn, position } = shown.data.turns;
  const last = Math.max(1, turn.at(-1) ?? 1);
  if (asked.error) return <Problem trouble={asked.error} />;
  if (!asked.rows) return null;
  const here = shown.data.calls.turn[shown.indexOf(callNumber.value)] ?? last;
  const toTurn = (number: number): void => {
    const at = turn.indexOf(number);
    const call = shown.callNumber[shown.stepAt(position[at] ?? 0)];
    if (at >= 0 && call !== undefined) go({ call });
  };
  return (
    <>
      <h3>Topics {asked.rows.length > 0 && <small>over {count(last)} turns; a mark is a turn about it</small>}</h3>
      {!asked.rows.length && <Mute>No tags up to this call.</Mute>}
      <div class="topics" role="list">
        {asked.rows.map((topic) => (
          <div key={topic.tag} class="topic" role="listitem" title={aboutTopic(topic)}>
            <b>{topic.tag}</b>
            <svg viewBox={`0 0 ${last} 10`} preserveAspectRatio="none" role="img" aria-label={`${topic.tag}: ${topic.turns} turns`} onClick={(event) => toTurn(Math.ceil((last * event.offsetX) / event.currentTarget.clientWidth))}>
              {topic.turn_numbers.map((number) => <rect key={number} x={number - 1} y={1} width={1} height={8} />)}
              <line x1={here - 0.5} x2={here - 0.5} y1={0} y2={10} />
            </svg>
            <span class="num mute">{count(topic.turns)} {topic.turns === 1 ? "turn" : "turns"}</span>
          </div>
        ))}
      </div>
    </>
  );
}

function aboutTopic({ tag, pages, aliases, related, depth }: Topic): string {
  const also = aliases.length ? `, also called ${aliases.join(", ")}` : "";
  const beside = related.length ? `; often beside ${related.join(", ")}` : "";
  return `${tag}${also}: ${count(pages)} pages, depth ${depth}${beside}`;
}

function step(by: number): void {
  const facts = listed.value;
  const at = facts.findIndex((fact) => fact.page === param("page").value);
  const next = facts[clamp(facts.length - 1, at < 0 ? 0 : at + by)];
  if (next) go({ page: next.page });
}

export const known: Pane = { id: "known", title: "Known", key: "a", hint: "facts known at this call, with time and source; topics", View: Known, step };
