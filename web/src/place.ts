// Where the reader is: session, call, page, pane and all else that is worth a link. It stands in the
// fragment of the URL, so that a link, a reload and the back button lead to the very same view, and so
// that an exported file can have it too.
import { computed, signal, type ReadonlySignal } from "@preact/signals";

export type Place = Readonly<Record<string, string>>;
type Change = Record<string, string | number | null | undefined>;

const RUN_MS = 1500; // between two steps of one run
const WRITE_MS = 150; // browsers refuse hundreds of history entries a second

function read(): Place {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

export const place = signal<Place>(read());
let pending: ReturnType<typeof setTimeout> | undefined;

/** The place as the URL has it. */
export const written = computed(() => new URLSearchParams(place.value).toString().replaceAll("%2C", ","));

function url(): string {
  return `#${written.value}`;
}

function write(): void {
  clearTimeout(pending);
  pending = undefined;
  if (location.hash !== url()) history.replaceState(null, "", url());
}

let stepped = -Infinity;

/**
 * Goes somewhere: empty values leave the URL. A jump adds an entry to the history; so does the first of
 * a run of steps, and those soon after it replace it, so that Back undoes the run. `quiet` adds none.
 */
export function go(change: Change, how: { step?: boolean; quiet?: boolean } = {}): void {
  const next: Record<string, string> = { ...place.value };
  for (const [name, value] of Object.entries(change)) {
    if (value === null || value === undefined || value === "") delete next[name];
    else next[name] = String(value);
  }
  const keys = new Set([...Object.keys(next), ...Object.keys(place.value)]);
  if ([...keys].every((key) => next[key] === place.value[key])) return;
  const runs = performance.now() - stepped < RUN_MS;
  stepped = how.step ? performance.now() : -Infinity;
  if (how.quiet || (how.step && runs)) {
    place.value = next;
    pending ??= setTimeout(write, WRITE_MS);
  } else {
    if (pending !== undefined) write();
    place.value = next;
    history.pushState(null, "", url());
  }
}

const known = new Map<string, ReadonlySignal<string>>();

/** One value of the place, as a signal: the empty text where it is not set. */
export function param(name: string): ReadonlySignal<string> {
  let found = known.get(name);
  if (!found) known.set(name, (found = computed(() => place.value[name] ?? "")));
  return found;
}

addEventListener("popstate", () => {
  clearTimeout(pending);
  pending = undefined;
  place.value = read();
});
addEventListener("hashchange", () => {
  if (location.hash !== url()) place.value = read();
});
addEventListener("pagehide", () => pending !== undefined && write());
