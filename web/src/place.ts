// Where the reader is: session, call, page, pane and all else that is worth a link. It stands in the
// fragment of the URL, so that a link, a reload and the back button lead to the very same view, and so
// that an exported file can have it too.
import { computed, signal, type ReadonlySignal } from "@preact/signals";

export type Place = Readonly<Record<string, string>>;
type Change = Record<string, string | number | null | undefined>;

const WRITE_MS = 150; // browsers refuse hundreds of history entries a second

function read(): Place {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

export const place = signal<Place>(read());
let pending: ReturnType<typeof setTimeout> | undefined;

function url(): string {
  const told = new URLSearchParams(place.value).toString().replaceAll("%2C", ",");
  return `#${told}`;
}

function write(): void {
  clearTimeout(pending);
  pending = undefined;
  if (location.hash !== url()) history.replaceState(null, "", url());
}

/** Goes somewhere: empty values leave the URL. Steps replace the entry of the history, jumps add one. */
export function go(change: Change, how: { step?: boolean } = {}): void {
  const next: Record<string, string> = { ...place.value };
  for (const [name, value] of Object.entries(change)) {
    if (value === null || value === undefined || value === "") delete next[name];
    else next[name] = String(value);
  }
  const keys = new Set([...Object.keys(next), ...Object.keys(place.value)]);
  if ([...keys].every((key) => next[key] === place.value[key])) return;
  if (how.step) {
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
