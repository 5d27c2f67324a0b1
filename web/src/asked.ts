// Asking the store from a component: the last answer asked for wins, and what was answered is kept.
import { effect } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { Trouble, type Answer } from "./source";
import { erased, grown, source, which } from "./state";

export interface Asked<T> {
  value: T | null;
  error: Trouble | null;
  busy: boolean;
}

const KEPT_MAX = 200;
const kept = new Map<string, unknown>();
effect(() => {
  if (erased.value > 0) kept.clear();
});
const SCRUB_MS = 90; // while the cursor runs nothing is asked

/** The answer to a question, told apart by its text; the empty one asks nothing. An erasure has it asked anew. */
export function useAsked<T>(question: string, ask: () => Promise<T>, wait = SCRUB_MS): Asked<T> {
  const key = question && `${erased.value} ${question}`;
  const [state, setState] = useState<Asked<T> & { key: string }>({ key: "", value: null, error: null, busy: false });
  useEffect(() => {
    if (key === "" || kept.has(key)) {
      setState({ key, value: (kept.get(key) as T) ?? null, error: null, busy: false });
      return undefined;
    }
    let wanted = true;
    setState((before) => ({ ...before, busy: true }));
    const timer = setTimeout(() => {
      ask().then(
        (value) => {
          if (kept.size > KEPT_MAX) kept.clear();
          kept.set(key, value);
          if (wanted) setState({ key, value, error: null, busy: false });
        },
        (error: unknown) => {
          if (wanted) setState({ key, value: null, error: toTrouble(error), busy: false });
        },
      );
    }, wait);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [key]);
  if (key !== "" && kept.has(key)) return { value: kept.get(key) as T, error: null, busy: false };
  return state;
}

/** The answer to a statement of VMQL about the session in view; the empty one asks nothing. */
export function useVmql(query: string, limit: number, wait = SCRUB_MS): Asked<Answer> {
  const of = which.value;
  return useAsked(query && `vmql ${JSON.stringify(of)} ${grown.value} ${limit} ${query}`, () => source.value!.vmql(of, query, limit), wait);
}

export function toTrouble(error: unknown): Trouble {
  return error instanceof Trouble ? error : new Trouble(String(error));
}
