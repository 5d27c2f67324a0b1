// The texts of contents, fetched as they come into view, many in one request. The past does not move:
// what was fetched once stays true, unless it is erased.
import { effect, signal, type Signal } from "@preact/signals";
import { erased, source, which } from "./state";
import { Trouble, type Text, type Which } from "./source";

const WAIT_MS = 15;
const AT_ONCE_MAX = 60;
const KEPT_MAX = 3000;

type Slot = Signal<Text | Trouble | null>;
const slots = new Map<string, Slot>();
effect(() => {
  if (erased.value > 0) slots.clear();
});
let wanted: { key: string; which: Which; position: number; slot: Slot }[] = [];
let timer: ReturnType<typeof setTimeout> | undefined;

/** Who shows a text reads with it how often something was erased, and so asks anew after it. */
function keyOf(of: Which, position: number): string {
  return `${of.session}\n${of.policy ?? ""}\n${of.budget ?? ""}\n${position}\n${erased.value}`;
}

/** The text of the content made at a position; null until it came. */
export function textAt(position: number, of: Which = which.peek()): Slot {
  const key = keyOf(of, position);
  const found = slots.get(key);
  if (found) return found;
  const slot: Slot = signal(null);
  if (slots.size > KEPT_MAX) slots.clear();
  slots.set(key, slot);
  wanted.push({ key, which: of, position, slot });
  timer ??= setTimeout(fetchWanted, WAIT_MS);
  return slot;
}

function fetchWanted(): void {
  timer = undefined;
  // The last asked for are in view now; what scrolled by in between can wait.
  const batch = wanted.splice(Math.max(0, wanted.length - AT_ONCE_MAX));
  const groups = new Map<string, typeof batch>();
  for (const one of batch) {
    const session = one.key.split("\n", 3).join("\n");
    groups.set(session, [...(groups.get(session) ?? []), one]);
  }
  for (const group of groups.values()) void fetchGroup(group);
  if (wanted.length) timer = setTimeout(fetchWanted, WAIT_MS);
}

async function fetchGroup(group: typeof wanted): Promise<void> {
  const from = source.peek();
  if (!from) return;
  try {
    const texts = await from.texts(group[0]!.which, group.map((one) => one.position), false);
    for (const one of group) one.slot.value = texts[one.position] ?? new Trouble("this text was not exported");
  } catch (error) {
    for (const one of group) {
      one.slot.value = error instanceof Trouble ? error : new Trouble(String(error));
      slots.delete(one.key);
    }
  }
}

/** All of a text that was cut, for whom asks. */
export async function wholeText(position: number, of: Which = which.peek()): Promise<Text> {
  return (await wholeTexts([position], of))[position]!;
}

/** All of several texts, by their positions. */
export async function wholeTexts(positions: number[], of: Which = which.peek()): Promise<Record<string, Text>> {
  const from = source.peek();
  if (!from) throw new Trouble("the page is still opening the store");
  const found: Record<string, Text> = {};
  for (let at = 0; at < positions.length; at += AT_ONCE_MAX) {
    Object.assign(found, await from.texts(of, positions.slice(at, at + AT_ONCE_MAX), true));
  }
  return found;
}
