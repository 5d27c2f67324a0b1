// The line at the top: which store, which session, as recorded or as it would have been; search, theme, help.
import { useLayoutEffect, useRef } from "preact/hooks";
import { switchTheme, theme } from "./colours";
import { count, many, short, typedIn } from "./format";
import { openPane, play, playing } from "./keys";
import { go, written } from "./place";
import { Grow, Link, Tool } from "./parts/bits";
import { Fidelity } from "./parts/badges";
import { popup } from "./popup";
import { Picker } from "./sessions";
import { cursor, film, following, isOverview, isWhatIf, source, store, toCall, toSession, which } from "./state";

export function Top() {
  const shown = isOverview.value ? null : film.value;
  const told = store.value;
  return (
    <header class="top">
      <button class="brand" title={`${told?.sessions.length === 1 ? "" : "all sessions; "}vmstore ${told?.vmstore ?? ""}`} disabled={(told?.sessions.length ?? 0) < 2} onClick={() => toSession(null)}>vmstore</button>
      <span class="store mute" title={told?.store}>{tail(told?.store ?? "")}</span>
      {told && !isOverview.value && <Picker />}
      {shown && (
        <>
          <Fidelity word={shown.data.fidelity} />
          <span class="mute counts">{[many(shown.calls, "call"), many(shown.data.turns.turn.length, "turn"), many(shown.pages, "page")].join(" · ")}</span>
          {shown.data.budget !== null && <span class="chip" title="token budget and eviction policy">{short(shown.data.budget)} budget{shown.data.policy ? `, ${shown.data.policy}` : ""}</span>}
          {shown.data.parent && (
            <button class="chip link" title="the session it was forked from" onClick={() => toSession(shown.data.parent!.session)}>
              fork of {shown.data.parent.session} at call {shown.data.parent.call}
            </button>
          )}
          {isWhatIf.value && <WhatIf />}
        </>
      )}
      <Grow />
      {shown && shown.calls > 0 && <Play />}
      {shown && source.value?.server && (
        <a class="tool" href={source.value.exportUrl(which.value, written.value)!} download title="save this session as one file, secrets and personal data masked">export</a>
      )}
      {shown && <Tool onClick={() => openPane("search")} title="search (/)">search</Tool>}
      <button class="tool icon" onClick={switchTheme} title={`to ${theme() === "dark" ? "light" : "dark"} (l)`} aria-label="light or dark">{theme() === "dark" ? "☀" : "☾"}</button>
      <button class="tool icon" onClick={() => (popup.value = "help")} title="keys (?)" aria-label="help">?</button>
    </header>
  );
}

/** A what-if is not what happened, and says so. */
function WhatIf() {
  const { policy, budget } = which.value;
  return (
    <span class="chip whatif" title="replayed under other settings; this is not what happened">
      what-if: {[policy, budget && `${count(Number(budget))} tokens`].filter(Boolean).join(", ")}
      <Link onClick={() => go({ policy: null, budget: null })}>back to what happened</Link>
    </span>
  );
}

function Play() {
  const shown = film.value!;
  const at = cursor.value;
  const step = (by: number) => () => toCall(at + by, { step: true });
  const isFollowed = following.value && at === shown.calls - 1;
  const buttons: [string, string, string, () => void][] = [
    ["|◂", "first call", "Home", () => toCall(0)],
    ["◂", "previous call", "k, ←", step(-1)],
    [playing.value ? "❚❚" : "▶", "play", "space", () => play(!playing.value)],
    ["▸", "next call", "j, →", step(1)],
    ["▸|", "last call", "End; a growing session is followed from there", () => toCall(Infinity)],
  ];
  return (
    <span class="player">
      {buttons.map(([sign, name, key, act], k) => (
        <button key={name} class={`tool icon ${k === 4 && isFollowed ? "on" : ""}`} aria-label={name} title={`${name} (${key})`} onClick={act}>{sign}</button>
      ))}
      <GoTo number={shown.callNumber[at] ?? 0} last={shown.callNumber[shown.calls - 1] ?? 0} />
    </span>
  );
}

function GoTo({ number, last }: { number: number; last: number }) {
  const field = useRef<HTMLInputElement>(null);
  // What stands in it is the reader's until the cursor moves.
  useLayoutEffect(() => void (field.current!.value = String(number)), [number]);
  return (
    <label class="goto">
      call
      <input
        ref={field}
        type="text"
        inputMode="numeric"
        aria-label="go to call"
        size={String(last).length}
        onChange={(event) => {
          const wanted = Number(typedIn(event));
          if (Number.isFinite(wanted) && film.value) toCall(film.value.indexOf(wanted));
          event.currentTarget.blur();
        }}
      />
      <small>of {last}</small>
    </label>
  );
}

function tail(path: string): string {
  return path.split("/").filter(Boolean).slice(-1)[0] ?? "";
}
