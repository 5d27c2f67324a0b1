// Breakpoints: the next moment at which a predicate holds.
import { useEffect, useState } from "preact/hooks";
import { go, param } from "../place";
import { Act, Form, Link, Mute, Tool } from "../parts/bits";
import { CallName } from "../parts/badges";
import { Problem } from "../parts/content";
import { Trouble, type Until } from "../source";
import { toTrouble } from "../asked";
import { cursor, film, source, which } from "../state";
import type { Film } from "../film";
import type { Pane } from "./index";
import { typedIn } from "../format";

function UntilPane() {
  const shown = film.value;
  const stop = param("stop").value;
  const [typed, setTyped] = useState(stop);
  const [told, setTold] = useState<Until | Trouble | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => setTyped(stop), [stop]);
  if (!shown) return null;
  const run = async (predicate: string, after: number): Promise<void> => {
    if (!predicate.trim()) return;
    go({ stop: predicate.trim() }, { step: true });
    setBusy(true);
    try {
      const found = await source.value!.until(which.value, predicate.trim(), after);
      setTold(found);
      if (found.position !== undefined) stopAt(shown, found);
    } catch (error) {
      setTold(toTrouble(error));
    }
    setBusy(false);
  };
  // The next moment is looked for after the last one that was found, while the cursor stands there.
  const last = told instanceof Trouble ? undefined : told?.position;
  const here = last !== undefined && shown.stepAt(last) === cursor.value ? last : (shown.callPosition[cursor.value] ?? 0);
  return (
    <div class="until">
      <Form
        class="ask"
        does={() => { void run(typed, here); }}
      >
        <input data-focus aria-label="stop when" placeholder="stop when …" value={typed} spellcheck={false} onInput={(event) => setTyped(typedIn(event))} />
        <Act disabled={busy}>Next</Act>
        <Tool type="button" disabled={busy} onClick={() => void run(typed, 0)}>from the start</Tool>
      </Form>
      {told instanceof Trouble ? <Problem trouble={told} /> : told && <Found told={told} shown={shown} />}
      <h3>For example</h3>
      <ul class="examples">
        {examples(shown).map((one) => (
          <li key={one}>
            <Link onClick={() => { setTyped(one); void run(one, 0); }}><code>{one}</code></Link>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Puts the cursor on the call that shows a moment, and the list on what happened there. */
function stopAt(shown: Film, found: Until): void {
  const at = shown.stepAt(found.position!);
  const page = found.row?.page;
  go({
    call: at === shown.calls - 1 ? null : shown.callNumber[at],
    event: found.position,
    ...(typeof page === "string" && shown.pageIndex(page) >= 0 ? { page } : {}),
  });
}

function Found({ told, shown }: { told: Until; shown: Film }) {
  if (told.none !== undefined || told.position === undefined) return <Mute>{told.none ?? "It never holds after this call."}</Mute>;
  return (
    <p class="because">
      It holds at position {told.position}: {told.event && <b>{told.event} </b>}
      <CallName call={shown.callNumber[shown.stepAt(told.position)] ?? 0} /> shows it.
    </p>
  );
}

function examples(shown: Film): string[] {
  const name = param("page").value || shown.pageName(Math.min(3, shown.pages - 1)) || "p4";
  return [`${name} LEAVES L0`, `${name} ENTERS L0`, "kind = evict AND tokens > 100", "kind = compress"];
}

export const until: Pane = { id: "until", title: "Stop when", key: "b", hint: "breakpoint: the next moment at which a condition holds", View: UntilPane };
