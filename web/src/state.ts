// What the whole page agrees on: the store, the film, the cursor and the page in hand.
// Everything follows from the place in the URL and the film; panes read signals and call `go`.
import { batch, computed, effect, signal } from "@preact/signals";
import { Film, STACKS, type StackBy } from "./film";
import { go, param } from "./place";
import { findSource, Trouble, type Source, type StoreInfo, type Which } from "./source";
import { clamp } from "./format";

export const source = signal<Source | null>(null);
export const store = signal<StoreInfo | null>(null);
export const film = signal<Film | null>(null);
export const trouble = signal<Trouble | null>(null);
export const loading = signal("opening the store");
/** Whether the end is followed as the session grows. */
export const following = signal(false);
/** Grows whenever the session did: for what is asked of its head. */
export const grown = signal(0);
/** Grows whenever contents were erased: what was told of them before is forgotten then. */
export const erased = computed(() => store.value?.erased ?? 0);

/** The session or what-if that the URL names. */
const wanted = computed<Which>(() => {
  const told: Which = { session: param("session").value };
  if (param("policy").value) told.policy = param("policy").value;
  if (param("budget").value) told.budget = param("budget").value;
  return told;
});
/** The one in view: what is asked is asked of it, also while the film of another is on its way. */
export const which = computed<Which>(() => {
  const shown = film.value;
  if (!shown) return wanted.value;
  const { session, whatif } = shown.data;
  const told: Which = { session: whatif?.of ?? session };
  if (whatif?.policy) told.policy = whatif.policy;
  if (whatif?.budget) told.budget = String(whatif.budget);
  return keyOf(told) === keyOf(wanted.value) ? wanted.value : told;
});
export const isWhatIf = computed(() => Boolean(which.value.policy || which.value.budget));

/** Whether the list of sessions is in view: the URL names none, and there is more than one. */
export const isOverview = computed(() => !param("session").value && (store.value?.sessions.length ?? 0) > 1);

/** The index of the call at the cursor. The end is where a reader begins who names none. */
export const cursor = computed(() => {
  const shown = film.value;
  if (!shown || shown.calls === 0) return 0;
  const call = param("call").value;
  return call === "" ? shown.calls - 1 : shown.indexOf(Number(call) || 0);
});
export const callNumber = computed(() => film.value?.callNumber[cursor.value] ?? 0);
export const context = computed(() => film.value?.context(cursor.value) ?? new Int32Array());
/** The page in hand, as its index; -1 where there is none, or it is none of this session. */
export const page = computed(() => film.value?.pageIndex(param("page").value) ?? -1);
export const pageName = param("page");
export const stackBy = computed<StackBy>(() => STACKS.find((one) => one === param("by").value) ?? "role");

/** Moves the cursor to a call by its index. */
export function toCall(at: number, how: { step?: boolean; event?: number } = {}): void {
  const shown = film.value;
  if (!shown || shown.calls === 0) return;
  const inside = clamp(shown.calls - 1, at);
  go({ call: inside === shown.calls - 1 ? null : shown.callNumber[inside], event: how.event ?? null }, how);
}

export function toPage(name: string | null): void {
  go({ page: name });
}

/** Opens a page in the pane that tells most of it, unless the pane in view already follows the page. */
export function inspect(name: string, following = ["why", "history", "lineage"]): void {
  go({ page: name, pane: following.includes(param("pane").value) ? param("pane").value : "why" });
}

/** Goes to a session's end, or to the list of sessions. What is in view of it stays chosen. */
export function toSession(session: string | null): void {
  go({ session, ...Object.fromEntries(OF_SESSION.map((name) => [name, null])) });
}

/** What of the place is of one session. */
const OF_SESSION = ["call", "page", "event", "policy", "budget", "open", "vs", "row", "other", "opolicy", "obudget", "ocall", "find", "q", "stop"];

function keyOf(of: Which): string {
  return JSON.stringify([of.session, of.policy ?? "", of.budget ?? ""]);
}

const films = new Map<string, Promise<Film>>();

/** The film of a session or of a what-if of it, fetched once as long as the session does not grow. */
export function filmOf(of: Which): Promise<Film> {
  const key = keyOf(of);
  let found = films.get(key);
  if (!found) {
    const from = source.peek();
    if (!from) return Promise.reject(new Trouble("the page is still opening the store"));
    found = from.film(of).then((data) => new Film(data));
    found.catch(() => films.delete(key));
    if (films.size > 8) films.clear();
    films.set(key, found);
  }
  return found;
}

function failed(error: unknown): void {
  trouble.value = error instanceof Trouble ? error : new Trouble(String(error), "reload this page; what it printed is in the console");
  loading.value = "";
}

async function show(of: Which): Promise<void> {
  if (!of.session) {
    loading.value = "";
    trouble.value = null;
    return;
  }
  loading.value = of.policy || of.budget ? "replaying the session" : "reading the session";
  try {
    const shown = await filmOf(of);
    if (wanted.peek() !== of) return;
    batch(() => {
      film.value = shown;
      trouble.value = null;
      loading.value = "";
    });
  } catch (error) {
    if (wanted.peek() === of) failed(error);
  }
}

async function grew(session: string): Promise<void> {
  const of = wanted.peek();
  films.clear();
  const from = source.peek();
  if (!from) return;
  try {
    store.value = await from.store();
    if (!of.session || session !== of.session || isWhatIf.peek()) return;
    const shown = await filmOf(of);
    if (wanted.peek() !== of) return;
    const atEnd = param("call").peek() === "";
    batch(() => {
      // A cursor that names no call stands at the end, and so goes with it.
      film.value = shown;
      following.value = atEnd;
      grown.value++;
    });
  } catch (error) {
    failed(error);
  }
}

/** Opens the store and shows what the URL names: where it names no session the only one, or the list of all. */
export async function start(): Promise<void> {
  try {
    source.value = await findSource();
    // An exported file opens where it was exported, unless its address says another place.
    if (source.value.place && !location.hash) go(Object.fromEntries(new URLSearchParams(source.value.place)), { quiet: true });
    // The film that the URL names is asked for beside the store; what goes wrong with it is told when it is shown.
    if (wanted.peek().session) void filmOf(wanted.peek()).catch(() => undefined);
    store.value = await source.value.store();
  } catch (error) {
    failed(error);
    return;
  }
  const [only, ...others] = store.value.sessions;
  if (only && !others.length && !param("session").peek()) go({ session: only.session }, { quiet: true });
  effect(() => void show(wanted.value));
  source.value.live((session) => void grew(session));
}
