// The line at the top: which store, which session, as recorded or as it would have been; search, theme, help.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { switchTheme, theme } from "./colours";
import { count, short } from "./format";
import { helping, openPane, play, playing } from "./keys";
import { go } from "./place";
import { Fidelity } from "./parts/badges";
import type { SessionRow } from "./source";
import { cursor, film, following, isWhatIf, source, store, toCall, toSession, which } from "./state";

export function Top() {
  const shown = film.value;
  const told = store.value;
  return (
    <header class="top">
      <b class="brand" title={told?.vmstore ? `vmstore ${told.vmstore}` : ""}>vmstore</b>
      <span class="store mute" title={told?.store}>{tail(told?.store ?? "")}</span>
      {told && <Sessions rows={told.sessions} />}
      {shown && (
        <>
          <Fidelity word={shown.data.fidelity} />
          <span class="mute counts">{count(shown.calls)} calls · {count(shown.data.turns.turn.length)} turns · {count(shown.pages)} pages</span>
          {shown.data.budget !== null && <span class="chip" title="what the prompt may hold, and the policy that decides">{short(shown.data.budget)} budget{shown.data.policy ? `, ${shown.data.policy}` : ""}</span>}
          {shown.data.parent && (
            <button class="chip link" title="the session this one began in" onClick={() => toSession(shown.data.parent!.session)}>
              fork of {shown.data.parent.session} at call {shown.data.parent.call}
            </button>
          )}
          {isWhatIf.value && <WhatIf />}
        </>
      )}
      <span class="grow" />
      {shown && shown.calls > 0 && <Play />}
      {!source.value?.server && <span class="chip" title="what is shown lies in this file">exported file</span>}
      {shown && source.value?.exportUrl(which.value) && (
        <a class="tool" href={source.value.exportUrl(which.value)!} download title="this session and this page as one file, masked, to be sent to others">export</a>
      )}
      <button class="tool" onClick={() => openPane("search")} title="search (/)">search</button>
      <button class="tool icon" onClick={switchTheme} title={`to ${theme() === "dark" ? "light" : "dark"} (l)`} aria-label="light or dark">{theme() === "dark" ? "☀" : "☾"}</button>
      <button class="tool icon" onClick={() => (helping.value = true)} title="keys (?)" aria-label="help">?</button>
    </header>
  );
}

/** A what-if is not what happened, and says so. */
function WhatIf() {
  const { policy, budget } = which.value;
  return (
    <span class="chip whatif" title="decided again from the same references; this is not what happened">
      what-if: {[policy, budget && `${count(Number(budget))} tokens`].filter(Boolean).join(", ")}
      <button class="link" onClick={() => go({ policy: null, budget: null })}>back to what happened</button>
    </span>
  );
}

function Play() {
  const shown = film.value!;
  const at = cursor.value;
  return (
    <span class="player">
      <button class="tool icon" aria-label="first call" title="first call (Home)" onClick={() => toCall(0)}>|◂</button>
      <button class="tool icon" aria-label="previous call" title="previous call (k, ←)" onClick={() => toCall(at - 1, { step: true })}>◂</button>
      <button class="tool icon" aria-label="play" title="play (space)" onClick={() => play(!playing.value)}>{playing.value ? "❚❚" : "▶"}</button>
      <button class="tool icon" aria-label="next call" title="next call (j, →)" onClick={() => toCall(at + 1, { step: true })}>▸</button>
      <button class={`tool icon ${following.value && at === shown.calls - 1 ? "on" : ""}`} aria-label="last call" title="last call (End); a session that grows is followed from there" onClick={() => toCall(Infinity)}>▸|</button>
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
          const wanted = Number(event.currentTarget.value);
          if (Number.isFinite(wanted) && film.value) toCall(film.value.indexOf(wanted));
          event.currentTarget.blur();
        }}
      />
      <span class="mute">of {last}</span>
    </label>
  );
}

function Sessions({ rows }: { rows: SessionRow[] }) {
  const [open, setOpen] = useState(false);
  const now = which.value.session;
  if (rows.length <= 1) return <b class="session-name" title={now}>{now}</b>;
  return (
    <span class="sessions" onKeyDown={(event) => event.key === "Escape" && setOpen(false)}>
      <button class="tool session-name" title={now} aria-expanded={open} onClick={() => setOpen(!open)}>{now || "choose a session"} ▾</button>
      {open && (
        <>
          <div class="shade" onClick={() => setOpen(false)} />
          <div class="menu" role="menu">
            {rows.map((row) => (
              <button
                key={row.session}
                role="menuitem"
                class={row.session === now ? "chosen" : ""}
                onClick={() => {
                  setOpen(false);
                  toSession(row.session);
                }}
              >
                <b>{row.session}</b>
                <Fidelity word={row.fidelity} />
                <span class="mute">{count(row.calls)} calls, {count(row.pages)} pages{row.parent ? `, from ${row.parent.session}` : ""}{row.hidden ? ", import not complete" : ""}</span>
                {row.title && <span class="mute menu-title">{row.title}</span>}
              </button>
            ))}
          </div>
        </>
      )}
    </span>
  );
}

function tail(path: string): string {
  return path.split("/").filter(Boolean).slice(-1)[0] ?? "";
}
