// The film on the other side: another session, a fork or a what-if, as the URL names it, held beside the
// one that the whole page shows.
import { batch, computed, effect, signal } from "@preact/signals";
import { lowerBound, type Film } from "../film";
import { go, param } from "../place";
import { toTrouble } from "../asked";
import type { Trouble, Which } from "../source";
import { cursor, film, filmOf, grown, source, toCall, which } from "../state";
import { apart, type Apart } from "./divergence";
import { pair, type Pairing } from "./pairing";
import { clamp } from "../format";

export const otherWhich = computed<Which | null>(() => {
  const session = param("other").value;
  if (!session) return null;
  const told: Which = { session };
  if (param("opolicy").value) told.policy = param("opolicy").value;
  if (param("obudget").value) told.budget = param("obudget").value;
  return told;
});

export const other = signal<Film | null>(null);
export const otherTrouble = signal<Trouble | null>(null);

/** The digests of films that were compared. */
const known = new WeakMap<Film, string[]>();
const digested = signal(0);

const isOpen = computed(() => param("pane").value === "sides");
effect(() => {
  const wanted = otherWhich.value;
  void grown.value;
  if (!source.value || !isOpen.value || !wanted) return;
  const stale = other.peek();
  if (stale && !isOf(stale, wanted)) other.value = null;
  otherTrouble.value = null;
  const [shown, mine] = [film.value, which.value];
  if (!shown) return;
  const digests = (of: Which, whose: Film): Promise<void> | undefined => (known.has(whose) ? undefined : source.peek()!.digests(of).then((all) => { known.set(whose, all); digested.value++; }));
  filmOf(wanted).then(async (found) => {
    await Promise.all([digests(mine, shown), digests(wanted, found)]);
    return found;
  }).then(
    (found) => otherWhich.peek() === wanted && (other.value = found),
    (error: unknown) => {
      if (otherWhich.peek() !== wanted) return;
      batch(() => {
        other.value = null;
        otherTrouble.value = toTrouble(error);
      });
    },
  );
});

function isOf(shown: Film, wanted: Which): boolean {
  const { whatif, session } = shown.data;
  return (whatif?.of ?? session) === wanted.session && (whatif?.policy ?? "") === (wanted.policy ?? "") && String(whatif?.budget ?? "") === (wanted.budget ?? "");
}

const found = computed<{ pairing: Pairing; apart: Apart } | null>(() => {
  const [a, b] = [film.value, other.value];
  void digested.value;
  if (!a || !b) return null;
  const pairing = pair(a, b, known.get(a), known.get(b));
  return { pairing, apart: apart(a, b, pairing) };
});
export const pairing = computed(() => found.value?.pairing ?? null);
export const parted = computed(() => found.value?.apart ?? null);

/** Whether each side has a cursor of its own. */
export const unlocked = computed(() => param("ocall").value !== "");

/** The index of the other side's call: of the number at the cursor, or its own; the nearest where it has none such. */
export const otherCursor = computed(() => {
  const b = other.value;
  if (!b?.calls) return 0;
  const number = unlocked.value ? Number(param("ocall").value) || 0 : (film.value?.callNumber[cursor.value] ?? 0);
  return Math.min(lowerBound(b.callNumber, number), b.calls - 1);
});

export function toOtherCall(at: number, how: { step?: boolean } = {}): void {
  const b = other.peek();
  if (!b?.calls) return;
  const inside = clamp(b.calls - 1, at);
  if (unlocked.peek()) return go({ ocall: b.callNumber[inside] }, how);
  const a = film.peek();
  if (a) toCall(a.indexOf(b.callNumber[inside]!), how);
}

/** Gives the other side a cursor of its own, or takes it away. */
export function toggleLock(): void {
  const b = other.peek();
  if (b?.calls) go({ ocall: unlocked.peek() ? null : b.callNumber[otherCursor.peek()] });
}

/** Both sides go to a call that they share, by its place among those. */
export function toShared(place: number): void {
  const told = parted.peek();
  const a = film.peek();
  if (!told || !a || place < 0 || place >= told.calls.length) return;
  const number = told.calls[place]!;
  const last = told.a[place] === a.calls - 1;
  go({ call: last ? null : number, event: null, ...(unlocked.peek() ? { ocall: number } : {}) });
}

/** The next call from which on the sides differ anew or agree again, or the one before. */
export function toTurn(forward: boolean): boolean {
  const told = parted.peek();
  if (!told) return false;
  const differs = (place: number): boolean => told.tokensA[place]! > 0 || told.tokensB[place]! > 0;
  const here = lowerBound(told.a, cursor.peek());
  for (let place = here + (forward ? 1 : -1); place > 0 && place < told.calls.length; place += forward ? 1 : -1) {
    if (differs(place) !== differs(place - 1)) {
      toShared(place);
      return true;
    }
  }
  return false;
}
