// Search: pages by name from the film at once, pages by their words from the store's SEARCH.
import { useEffect, useState } from "preact/hooks";
import { colour } from "../colours";
import { count } from "../format";
import type { Film } from "../film";
import { go, param } from "../place";
import { Preview, Problem } from "../parts/content";
import { useAsked } from "../asked";
import { callNumber, cursor, film, grown, inspect, source, which } from "../state";
import { searchQuery, type Answer } from "../source";
import type { Pane } from "./index";

const NAMED_MAX = 30;

function Search() {
  const shown = film.value;
  const find = param("find").value;
  const [typed, setTyped] = useState(find);
  useEffect(() => setTyped(find), [find]);
  if (!shown) return null;
  return (
    <div class="search">
      <form
        class="ask"
        onSubmit={(event) => {
          event.preventDefault();
          go({ find: typed.trim() });
        }}
      >
        <input data-focus type="search" placeholder="words, or a page's name" value={typed} aria-label="search" onInput={(event) => setTyped(event.currentTarget.value)} />
        <button class="act">Search</button>
      </form>
      <label class="check">
        <input type="checkbox" checked={param("asof").value === "call"} onChange={(event) => go({ asof: event.currentTarget.checked ? "call" : null })} />
        only what was there at call {callNumber.value}
      </label>
      <Named shown={shown} words={typed.trim()} />
      {find && <Found words={find} shown={shown} />}
    </div>
  );
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
      <div class="hits">{found.map((at) => <Hit key={at} shown={shown} name={shown.pageName(at)} />)}</div>
    </>
  );
}

function Found({ words, shown }: { words: string; shown: Film }) {
  const of = which.value;
  const call = param("asof").value === "call" ? callNumber.value : null;
  const query = searchQuery(words, call);
  const asked = useAsked<Answer>(`search ${JSON.stringify(of)} ${call === null ? grown.value : ""} ${query}`, () => source.value!.search(of, words, call));
  return (
    <>
      <h3>
        By words {asked.value && <span class="mute">{count(asked.value.rows.length)}, best first</span>}
        <button class="link" onClick={() => go({ pane: "vmql", q: query })}>open in VMQL</button>
      </h3>
      {asked.busy && <p class="mute">searching…</p>}
      {asked.error && <Problem trouble={asked.error} />}
      {asked.value?.rows.length === 0 && <p class="mute">no page holds one of these words</p>}
      <div class="hits">
        {asked.value?.rows.map((row, at) => <Hit key={at} shown={shown} name={String(row.page)} words={words} score={Number(row.score)} />)}
      </div>
    </>
  );
}

function Hit({ shown, name, words, score }: { shown: Film; name: string; words?: string; score?: number }) {
  const at = shown.pageIndex(name);
  const here = at >= 0 && shown.calls > 0 && shown.stayOf(at, cursor.value) >= 0;
  return (
    <button class={`hit ${param("page").value === name ? "chosen" : ""}`} onClick={() => go({ page: name })} onDblClick={() => inspect(name)}>
      <i class="role" style={{ background: colour("role", at < 0 ? "other" : shown.role(at)) }} />
      <b>{name}</b>
      {at >= 0 && shown.hint(at) && <em>{shown.hint(at)}</em>}
      <span class={here ? "here" : "mute"}>{here ? "in context" : "not in context"}</span>
      {score !== undefined && !Number.isNaN(score) && <span class="num mute">{score.toFixed(3)}</span>}
      {words && at >= 0 && <span class="hit-text"><Preview position={shown.contentOf(at, cursor.value)} around={words} /></span>}
    </button>
  );
}

export const search: Pane = { id: "search", title: "Search", key: "/", hint: "search pages by their words or names", View: Search };
