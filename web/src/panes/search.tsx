// Search: pages by name from the film at once, pages by their words from the store's SEARCH.
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { clamp, count, typedIn } from "../format";
import type { Film } from "../film";
import { go, param } from "../place";
import { Act, Form, Mute } from "../parts/bits";
import { Problem } from "../parts/content";
import { Check, InVmql, PageName, RoleBar } from "../parts/badges";
import { useAsked } from "../asked";
import { callNumber, cursor, film, grown, inspect, source, store, which } from "../state";
import { searchQuery, type SearchAnswer, type SearchHit } from "../source";
import { marked } from "../parts/marked";
import type { Pane } from "./index";

const NAMED_MAX = 30;
/** The hits in view, which ↓ and ↑ go through. */
const listed = signal<SearchHit[]>([]);

function Search() {
  const shown = film.value;
  const find = param("find").value;
  const [typed, setTyped] = useState(find);
  useEffect(() => setTyped(find), [find]);
  if (!shown) return null;
  return (
    <div class="search">
      <Form
        class="ask"
        does={() => go({ find: typed.trim() })}
      >
        <input data-focus type="search" placeholder="words, or the name of a page" value={typed} aria-label="search" onInput={(event) => setTyped(typedIn(event))} onKeyDown={leave} />
        <Act>Search</Act>
      </Form>
      <div class="facts">
        <Check name="asof" value="call" does={`only what was there at call ${callNumber.value}`} />
        {(store.value?.sessions.length ?? 0) > 1 && <Check name="asof" value="all" does="in all sessions" />}
      </div>
      <Named shown={shown} words={typed.trim()} />
      {find && <Found words={find} shown={shown} />}
    </div>
  );
}

/** From the field ↓ leads to the hits. */
function leave(event: KeyboardEvent): void {
  if (event.key !== "ArrowDown" || !listed.value.length) return;
  event.preventDefault();
  (event.currentTarget as HTMLElement).blur();
  step(0);
}

function Named({ shown, words }: { shown: Film; words: string }) {
  const wanted = words.toLowerCase();
  const found: number[] = [];
  if (wanted) {
    for (let at = 0; at < shown.pages && found.length < NAMED_MAX; at++) {
      if (shown.pageName(at) === wanted || shown.hint(at).toLowerCase().includes(wanted)) found.push(at);
    }
  }
  if (!found.length) return null;
  return (
    <>
      <h3>By name</h3>
      <div class="hits">{found.map((at) => <NamedPage key={at} shown={shown} at={at} />)}</div>
    </>
  );
}

function NamedPage({ shown, at }: { shown: Film; at: number }) {
  const name = shown.pageName(at);
  return (
    <div class={`hit ${param("page").value === name ? "chosen" : ""}`}>
      <button class="hit-head" onClick={() => go({ page: name })} onDblClick={() => inspect(name)}>
        <RoleBar of={shown.role(at)} />
        <b>{name}</b>
        <em>{shown.hint(at)}</em>
        <Here shown={shown} name={name} />
      </button>
    </div>
  );
}

function Here({ shown, name }: { shown: Film; name: string }) {
  const at = shown.pageIndex(name);
  const here = at >= 0 && shown.calls > 0 && shown.stayOf(at, cursor.value) >= 0;
  return <span class={here ? "here" : "mute"}>{here ? "in context" : "not in context"}</span>;
}

function Found({ words, shown }: { words: string; shown: Film }) {
  const of = which.value;
  const asof = param("asof").value;
  const call = asof === "call" ? callNumber.value : null;
  const all = asof === "all";
  const query = searchQuery(words, call, all);
  const from = all ? "" : JSON.stringify(of);
  const asked = useAsked<SearchAnswer>(`search ${from} ${call === null ? grown.value : ""} ${query}`, () => source.value!.search(of, words, call, all));
  const hits = asked.value?.hits ?? [];
  useLayoutEffect(() => {
    listed.value = hits;
  }, [asked.value]);
  return (
    <>
      <h3>
        By words {asked.value && <small>{count(hits.length)}, best first</small>}
        {source.value?.server && <InVmql query={query} />}
      </h3>
      {asked.busy && <p><progress /> searching…</p>}
      {asked.error && <Problem trouble={asked.error} />}
      {asked.value && !hits.length && <Mute>No pages match.</Mute>}
      {asked.value && <LookedFor answer={asked.value} />}
      <div class="hits" role="list">
        {hits.map((hit, at) => <Hit key={`${hit.session} ${hit.page}`} shown={shown} hit={hit} place={at + 1} all={all} />)}
      </div>
    </>
  );
}

/** What was looked for, and among how many texts. */
function LookedFor({ answer }: { answer: SearchAnswer }) {
  const told = answer.explanation;
  return (
    <>
      {told && (
        <p class="facts looked-for">
          {told.words.map((one) => (
            <span key={one.word} class="chip" title={`weighs ${one.weight.toFixed(2)}${one.terms.length ? `: ${one.terms.join(", ")}` : ""}`}>
              <b>{one.word}</b> {one.how} <small>{count(one.texts)}</small>
            </span>
          ))}
          {told.required.map((one) => <span key={one} class="chip">must have {one}</span>)}
          {told.excluded.map((one) => <span key={one} class="chip">without {one}</span>)}
          {told.speakers.map((one) => <span key={one} class="chip">said by {one}</span>)}
          <span>{told.score} of {count(told.texts)} texts{told.vectors && `; ${told.vectors}`}</span>
        </p>
      )}
      {answer.notes.map((note) => <p key={note} class="mute">{note}</p>)}
    </>
  );
}

function isChosen(hit: SearchHit): boolean {
  return param("page").value === hit.page && which.value.session === hit.session;
}

/** Goes to a page that was found; the one of another session has that session come into view. */
function choose(hit: SearchHit): void {
  const there = which.value.session === hit.session ? {} : { session: hit.session, call: null, event: null, policy: null, budget: null };
  go({ ...there, page: hit.page });
}

function step(by: number): void {
  const hits = listed.value;
  const at = hits.findIndex(isChosen);
  const next = hits[clamp(hits.length - 1, at < 0 ? 0 : at + by)];
  if (next) choose(next);
}

function Hit({ shown, hit, place, all }: { shown: Film; hit: SearchHit; place: number; all: boolean }) {
  const chosen = isChosen(hit);
  const row = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (chosen) row.current?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  return (
    <div ref={row} role="listitem" class={`hit ${chosen ? "chosen" : ""}`} data-page={hit.page}>
      <button class="hit-head" aria-expanded={chosen} onClick={() => choose(hit)} onDblClick={() => inspect(hit.page)}>
        <span class="hit-place">{place}</span>
        <RoleBar of={hit.role} />
        <b>{hit.page}</b>
        {all && <em>{hit.session}</em>}
        <small>{hit.role}, call {hit.call}</small>
        {hit.session === which.value.session && <Here shown={shown} name={hit.page} />}
        <span class="num mute">{hit.score.toFixed(3)}</span>
        <span class="hit-text">{marked(hit).map((part, at) => (at % 2 ? <mark key={at}>{part}</mark> : part))}</span>
      </button>
      {chosen && <WhyFound hit={hit} />}
    </div>
  );
}

/** A line in parts: what is marked stands at odd places. Marks count code points, as Python does. */
/** Which of the asked words a hit has, or which stand near it; and what its score is the sum of. */
function WhyFound({ hit }: { hit: SearchHit }) {
  const shares = Object.entries(hit.features);
  const most = Math.max(...shares.map(([, share]) => Math.abs(share.adds)));
  return (
    <div class="why-found">
      {hit.words.map((one) => (
        <p key={one.word}>
          <b>{one.word}</b> <small>{one.how}{one.term && one.term !== one.word.toLowerCase() ? ` ${one.term}` : ""}</small>
          {one.away !== 0 && <small>, {Math.abs(one.away)} {one.away < 0 ? "before" : "after"} it in <PageName name={one.page} /></small>}
        </p>
      ))}
      {shares.length > 0 && (
        <table class="shares">
          <tbody>
            {shares.map(([name, share]) => (
              <tr key={name} title={`${name}: ${share.value} x ${share.weight}`}>
                <th>{name}</th>
                <td class="num mute">{share.value.toFixed(2)} × {share.weight.toFixed(2)}</td>
                <td class="share">
                  <i class={share.adds < 0 ? "less" : ""} style={{ width: `${(50 * Math.abs(share.adds)) / most}%` }} />
                </td>
                <td class="num">{share.adds.toFixed(2)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

export const search: Pane = { id: "search", title: "Search", key: "/", hint: "search pages", View: Search, step };
