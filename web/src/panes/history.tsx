// What happened to a page, and what it held: its versions and shorter forms, each as the difference from
// the one it was made from.
import { useMemo } from "preact/hooks";
import { clamp, count, glyph } from "../format";
import { LEVELS, type Film } from "../film";
import { contentsOf, historyOf, type Content as Held, type Moment } from "../lib/versions";
import { go, param } from "../place";
import { Mute } from "../parts/bits";
import { PageName } from "../parts/badges";
import { Content, NoPage } from "../parts/content";
import { Rows } from "../parts/rows";
import { TextDiff } from "../parts/textdiff";
import { cursor, film, page, toCall, which } from "../state";
import type { Pane } from "./index";

function History() {
  const shown = film.value;
  const at = page.value;
  if (!shown) return null;
  if (at < 0) return <NoPage to="its history" />;
  return <Of shown={shown} at={at} />;
}

/** The content that is shown: the one the URL names, else the one the cursor's call was sent, else the last made before it. */
function chosenOf(shown: Film, at: number, contents: Held[]): number {
  const named = contents.findIndex((one) => String(one.content) === param("content").value);
  if (named >= 0) return named;
  const stay = shown.calls ? shown.stayOf(at, cursor.value) : -1;
  if (stay >= 0) return contents.findIndex((one) => one.content === shown.stay.content[stay]);
  const before = shown.callPosition[cursor.value] ?? Infinity;
  return Math.max(0, contents.findLastIndex((one) => one.content <= before));
}

function second(by: number): void {
  const shown = film.peek();
  if (!shown || page.peek() < 0) return;
  const contents = contentsOf(shown, page.peek());
  const next = clamp(contents.length - 1, chosenOf(shown, page.peek(), contents) + by);
  go({ content: contents[next]!.content }, { step: true });
}

function Of({ shown, at }: { shown: Film; at: number }) {
  const contents = contentsOf(shown, at);
  const moments = useMemo(() => historyOf(shown, at), [shown, at]);
  const chosen = chosenOf(shown, at, contents);
  const one = contents[chosen]!;
  const base = baseOf(contents, chosen);
  const of = which.value;
  return (
    <div class="history">
      <div class="page-head-name">
        <PageName name={shown.pageName(at)} hint />
        <small>{shown.role(at)}, {shown.type(at)}, made in turn {shown.data.pages.turn[at]}</small>
      </div>
      <h3>{contents.length === 1 ? "It never changed" : `${count(contents.length)} contents`}{contents.length > 1 && <small> (keys , and .)</small>}</h3>
      <div class="contents" role="tablist" aria-label="contents">
        {contents.map((content, k) => (
          <button key={content.content} role="tab" aria-selected={k === chosen} class={k === chosen ? "on" : ""} title={`made at position ${content.content}${content.why ? `: ${content.why}` : ""}`} onClick={() => go({ content: content.content })}>
            <b>version {content.version}</b>{content.level > 0 && ` ${LEVELS[content.level]}`}
            <small>{content.tokens === null ? "never sent" : `${count(content.tokens)} tokens`}</small>
          </button>
        ))}
      </div>
      {base ? (
        <>
          <Mute>Beside version {base.version}{base.level > 0 ? ` ${LEVELS[base.level]}` : ""}, {one.level > 0 ? "which it is a shorter form of" : "the one before"}:</Mute>
          <TextDiff before={{ content: base.content, of }} after={{ content: one.content, of }} />
        </>
      ) : (
        <Content position={one.content} of={of} />
      )}
      <h3>What happened to it</h3>
      <Moments shown={shown} moments={moments} />
    </div>
  );
}

/** What a content is compared with: a shorter form with its version in full, a version with the one before. */
function baseOf(contents: Held[], chosen: number): Held | undefined {
  const one = contents[chosen]!;
  const wanted = one.level > 0 ? one.version : one.version - 1;
  return contents.find((other) => other !== one && other.level === 0 && other.version === wanted);
}

function Moments({ shown, moments }: { shown: Film; moments: Moment[] }) {
  const now = moments.findLastIndex((one) => one.step <= cursor.value);
  return (
    <Rows label="what happened to the page" class="moments" count={moments.length} height={21} keyOf={(at) => at} reveal={now} revealKey={`${cursor.value} ${moments.length} ${param("page").value}`}>
      {(at) => {
        const one = moments[at]!;
        const step = Math.min(one.step, shown.calls - 1);
        return (
          <button class={`moment ${one.step === cursor.value ? "now" : ""} ${one.step > cursor.value ? "later" : ""}`} data-kind={one.kind} title={`at position ${one.position}`} onClick={() => { toCall(step); if (one.content) go({ content: one.content.content }, { step: true }); }}>
            <span class="num mute">{one.step < shown.calls ? shown.callNumber[step] : "after"}</span>
            <i class={`glyph kind-${one.kind}`}>{glyph(one.kind)}</i>
            <span>{one.kind.replaceAll("_", " ")}</span>
            <small>{told(one)}</small>
          </button>
        );
      }}
    </Rows>
  );
}

function told(one: Moment): string {
  const held = one.content && one.kind !== "create" ? `version ${one.content.version}${one.content.level > 0 ? ` ${LEVELS[one.content.level]}` : ""}` : "";
  return [held === one.why ? "" : held, one.why].filter(Boolean).join(", ");
}

export const history: Pane = { id: "history", title: "History", key: "h", hint: "what happened to the selected page, and its versions", View: History, second };
