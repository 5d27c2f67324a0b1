// What a call took away: the pages its request no longer had, their tokens, and all of it copied with
// one click to be given back. A compaction is such a call; so is any at which pages gave way.
import { useMemo, useState } from "preact/hooks";
import { copy, say } from "../copy";
import { count, many, tokens } from "../format";
import type { Film } from "../film";
import { Act, Grow, Mute } from "../parts/bits";
import { PageName, RoleBar } from "../parts/badges";
import { Preview } from "../parts/content";
import { Rows } from "../parts/rows";
import { callNumber, cursor, film, toCall } from "../state";
import { wholeTexts } from "../texts";
import { toTrouble } from "../asked";
import type { Pane } from "./index";

const LISTED = 12;

interface Loss {
  at: number;
  pages: number;
  tokens: number;
  compaction: boolean;
}

/** The calls that lost most, and those of compactions, the heaviest first. */
function losses(shown: Film): Loss[] {
  const compactions = new Set(shown.callsWith(new Set(["compaction"])));
  const found: Loss[] = [];
  for (let at = 1; at < shown.calls; at++) {
    const left = shown.left(at);
    if (left.length) found.push({ at, pages: left.length, tokens: shown.tokens(left), compaction: compactions.has(at) });
  }
  return found.sort((a, b) => Number(b.compaction) - Number(a.compaction) || b.tokens - a.tokens);
}

function Compaction() {
  const shown = film.value;
  const all = useMemo(() => (shown ? losses(shown) : []), [shown]);
  if (!shown) return null;
  const at = cursor.value;
  const left = at > 0 ? shown.left(at) : new Int32Array();
  return (
    <div class="taken">
      <h3>Dropped at call {callNumber.value}</h3>
      {left.length ? <Taken shown={shown} left={left} /> : <Mute>Nothing: every page of the previous call is still in this one.</Mute>}
      {all.length > 0 && (
        <>
          <h3>Biggest losses</h3>
          <ul class="losses">
            {all.slice(0, LISTED).map((one) => (
              <li key={one.at} class={one.at === at ? "chosen" : ""}>
                <button onClick={() => toCall(one.at)}>
                  <span>call {shown.callNumber[one.at]}</span>
                  {one.compaction && <b class="kind-compaction">■ compaction</b>}
                  <Grow />
                  <span>{count(one.pages)} pages</span>
                  <span class="num">{tokens(one.tokens)}</span>
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

function Taken({ shown, left }: { shown: Film; left: Int32Array }) {
  const [busy, setBusy] = useState(false);
  const sum = shown.tokens(left);
  const came = [...shown.entered(cursor.value)].filter((stay) => shown.isNew(stay));
  const summaries = came.filter((stay) => shown.type(shown.stay.page[stay]!) === "summary");
  const uncompact = async (): Promise<void> => {
    setBusy(true);
    try {
      const texts = await wholeTexts(Array.from(left, (stay) => shown.stay.content[stay]!));
      const told = Array.from(left, (stay) => {
        const of = shown.stay.page[stay]!;
        const found = texts[shown.stay.content[stay]!];
        const text = found?.missing ? `(${found.missing})` : (found?.text ?? "(not exported)");
        return `[${shown.pageName(of)}${shown.hint(of) ? ` ${shown.hint(of)}` : ""}, ${shown.role(of)}, turn ${shown.data.pages.turn[of]}]\n${text}`;
      });
      await copy(told.join("\n\n"), `${count(left.length)} pages, ${tokens(sum)}`);
    } catch (error) {
      say(toTrouble(error).reason);
    }
    setBusy(false);
  };
  return (
    <>
      <div class="taken-sum">
        <span>
          Restores <b>{many(left.length, "page")}</b> (<b>{tokens(sum)}</b>)
          {summaries.length > 0 && <> that a {count(shown.tokens(summaries))}-token summary replaced</>}
        </span>
        <Act data-focus disabled={busy} onClick={() => void uncompact()}>
          {busy ? "reading…" : "Uncompact: copy them all"}
        </Act>
      </div>
      {summaries.length > 0 && (
        <Mute>
          Replaced by {summaries.map((stay) => <PageName key={stay} name={shown.pageName(shown.stay.page[stay]!)} hint />)}
        </Mute>
      )}
      <Rows label="pages taken away" class="taken-rows" count={left.length} height={22} keyOf={(k) => left[k]!}>
        {(k) => {
          const stay = left[k]!;
          const of = shown.stay.page[stay]!;
          return (
            <div class="taken-row">
              <RoleBar of={shown.role(of)} />
              <PageName name={shown.pageName(of)} />
              <span class="num">{count(shown.stay.tokens[stay]!)}</span>
              <span class="page-text">
                {shown.hint(of) && <em>{shown.hint(of)}</em>} <Preview position={shown.stay.content[stay]!} />
              </span>
            </div>
          );
        }}
      </Rows>
    </>
  );
}

export const compaction: Pane = { id: "taken", title: "Taken away", key: "u", hint: "what this call dropped, and how to restore it", View: Compaction };
