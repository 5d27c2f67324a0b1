// The list of events, which always agrees with the scrubber: what led to the call at the cursor is
// marked and in view, and a click on an event puts the cursor on the call that shows it.
import { Grow, Link } from "./parts/bits";
import { Check } from "./parts/badges";
import { computed } from "@preact/signals";
import { kept } from "./parts/kept";
import { Rows } from "./parts/rows";
import { glyph, count } from "./format";
import { lowerBound, type Film } from "./film";
import { go, param } from "./place";
import { cursor, film, toCall } from "./state";

/** The kinds that are left out; the URL names them, so that a link shows the same list. */
const hidden = computed(() => new Set(param("hide").value.split(",").filter(Boolean)));
const mine = computed(() => param("mine").value === "1" && param("page").value !== "");

/** The events in the list, as indexes. */
export const listed = computed<Int32Array>(() => {
  const shown = film.value;
  if (!shown) return new Int32Array();
  const only = mine.value ? shown.pageIndex(param("page").value) : -1;
  const kept: number[] = [];
  const out = hidden.value;
  const { page } = shown.data.events;
  for (let event = 0; event < shown.eventStep.length; event++) {
    if (out.size && out.has(shown.eventKind(event))) continue;
    if (only < 0 || page[event] === only) kept.push(event);
  }
  return Int32Array.from(kept);
});

const steps = computed(() => {
  const shown = film.value;
  return shown ? listed.value.map((event) => shown.eventStep[event]!) : new Int32Array();
});

/** The rows that led to the call at the cursor, from and to (exclusive). At the last call also what came after it. */
const current = computed<[number, number]>(() => {
  const shown = film.value;
  const at = cursor.value;
  if (!shown) return [0, 0];
  return [lowerBound(steps.value, at), at >= shown.calls - 1 ? steps.value.length : lowerBound(steps.value, at + 1)];
});

/** Goes to the next or previous call with an event of one of these kinds, past the end on from the other one.
 * The first of them is brought into view: a call may have many others before it. */
export function toEvent(kinds: string[], forward: boolean): "found" | "around" | "none" {
  const shown = film.peek();
  const calls = shown?.callsWith(new Set(kinds)) ?? [];
  const found = forward ? calls.find((at) => at > cursor.peek()) : calls.findLast((at) => at < cursor.peek());
  const told = found ?? (forward ? calls[0] : calls.at(-1));
  if (!shown || told === undefined || told === cursor.peek()) return "none";
  const { position } = shown.data.events;
  const first = position.findIndex(
    (_, event) => Math.min(shown.eventStep[event]!, shown.calls - 1) === told && kinds.includes(shown.eventKind(event)),
  );
  toCall(told, { event: position[first] });
  return found === undefined ? "around" : "found";
}

export function Events() {
  const shown = film.value;
  return (
    <section class="panel events" aria-label="events">
      <header>
        <Link title="hide the events (L)" onClick={() => go({ events: null })}>‹ hide</Link>
        <h2>Events</h2>
        <small>{count(listed.value.length)}</small>
        <Grow />
        {param("page").value && (
          <Check name="mine" does={`${param("page").value} only`} title="only what happened to the selected page" />
        )}
      </header>
      {shown && <Kinds shown={shown} />}
      {shown && <List shown={shown} />}
    </section>
  );
}

function Kinds({ shown }: { shown: Film }) {
  const out = hidden.value;
  const toggle = (kind: string, only: boolean): void => {
    const all = [...shown.kinds.keys()];
    const next = new Set(out);
    if (only) {
      const alone = all.every((one) => out.has(one) !== (one === kind));
      next.clear();
      if (!alone) for (const one of all) if (one !== kind) next.add(one);
    } else if (!next.delete(kind)) next.add(kind);
    go({ hide: [...next].join(",") });
  };
  return (
    <div class="kinds" role="group" aria-label="kinds of events shown">
      {[...shown.kinds].map(([kind, many]) => (
        <button
          key={kind}
          class={out.has(kind) ? "" : "on"}
          aria-pressed={!out.has(kind)}
          title={`${count(many)} × ${kind}; double-click: only these`}
          onClick={() => toggle(kind, false)}
          onDblClick={() => toggle(kind, true)}
        >
          <i class={`glyph kind-${kind}`}>{glyph(kind)}</i>
          {kind.replaceAll("_", " ")} <b>{count(many)}</b>
        </button>
      ))}
    </div>
  );
}

function List({ shown }: { shown: Film }) {
  const rows = listed.value;
  const [from, to] = current.value;
  const chosen = param("event").value;
  const { position } = shown.data.events;
  // What was clicked is where the reader looks; else the first event of the call is brought into view.
  const clicked = chosen ? rows.findIndex((event) => String(position[event]) === chosen) : -1;
  const reveal = clicked >= from && clicked < to ? clicked : from;
  return (
    <Rows
      label="events"
      class="event-rows"
      count={rows.length}
      height={21}
      keyOf={(at) => rows[at]!}
      reveal={reveal}
      revealKey={`${shown.data.session} ${reveal} ${rows.length}`}
      empty={shown.kinds.size ? "No events of these kinds." : "Nothing has happened in this session yet."}
    >
      {(at) => {
        const event = rows[at]!;
        return (
          <EventRow
            shown={shown}
            event={event}
            now={at >= from && at < to}
            chosen={at === clicked}
            first={at === 0 || shown.eventStep[rows[at - 1]!] !== shown.eventStep[event]}
          />
        );
      }}
    </Rows>
  );
}

/** Puts the cursor on the call that shows an event, and takes its page in hand. */
function open(shown: Film, event: number): void {
  const { position, page } = shown.data.events;
  const at = Math.min(shown.eventStep[event]!, shown.calls - 1);
  const name = page[event]! >= 0 ? shown.pageName(page[event]!) : null;
  go({
    call: at === shown.calls - 1 ? null : shown.callNumber[at],
    event: position[event],
    ...(name ? { page: name } : {}),
  });
}

interface EventProps {
  shown: Film;
  event: number;
  now: boolean;
  chosen: boolean;
  first: boolean;
}

const EventRow = kept(({ shown, event, now, chosen, first }: EventProps) => {
    const { position, page, why } = shown.data.events;
    const kind = shown.eventKind(event);
    const step = shown.eventStep[event]!;
    const name = page[event]! >= 0 ? shown.pageName(page[event]!) : "";
    const reason = shown.word(why[event]);
    return (
      <button
        class={`event ${now ? "now" : ""} ${chosen ? "chosen" : ""} ${first ? "first" : ""}`}
        data-call={shown.callNumber[Math.min(step, shown.calls - 1)]}
        data-kind={kind}
        title={`${kind} at position ${position[event]}${reason ? `: ${reason}` : ""}`}
        onClick={() => open(shown, event)}
      >
        <span class="event-call">{first ? (step < shown.calls ? shown.callNumber[step] : "after") : ""}</span>
        <i class={`glyph kind-${kind}`}>{glyph(kind)}</i>
        <span class="event-kind">{kind.replaceAll("_", " ")}</span>
        <span class="event-page">{name}</span>
        <span class="event-why">{reason || (name && shown.hint(page[event]!)) || ""}</span>
      </button>
    );
});
