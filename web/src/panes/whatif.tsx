// What would have been: the session decided again under other policies and budgets, as a table of numbers
// with Belady's optimum beside them. A row opens that what-if beside what happened.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useAsked } from "../asked";
import { copy } from "../copy";
import { clamp, count, dollars, json, short, typedIn } from "../format";
import type { Film } from "../film";
import { go, param } from "../place";
import { Act, Form, Grow, Mute, Tool } from "../parts/bits";
import { Problem } from "../parts/content";
import { needsServer } from "../source";
import { film, grown, source, which } from "../state";
import type { Pane } from "./index";

/** A run as `vmstore replay --json` tells it; it has more numbers than are read here. */
interface Run {
  policy: string;
  budget: number;
  faults: number;
  fault_rate: number | null;
  thrash_index: number;
  evictions: number;
  compressions: number;
  fault_tokens: number;
  utilisation: number | null;
  prefix_voided: number;
  prefix_cost: number | null;
  optimum: { faults: number; above: number } | null;
  divergence: { call: number; turn: number; position: number; recorded: string | null; found: string | null; reason: string } | null;
}

interface Sweep {
  session: string;
  runs: Run[];
  recorded: Run;
  /** Said where the session never had a budget and was told anew to a memory that has one. */
  redriven?: boolean;
}

interface Column {
  name: string;
  title: string;
  value: (run: Run) => number | null;
  show: (value: number) => string;
  /** Whether more of it is better. */
  more?: boolean;
}

const LOOK_MS = 300;
const COLUMNS: Column[] = [
  { name: "faults", title: "uses of a page that was not in the prompt, or not at the requested level", value: (run) => run.faults, show: count },
  { name: "fault rate", title: "faults per reference", value: (run) => run.fault_rate, show: (value) => `${(100 * value).toFixed(1)} %` },
  { name: "above optimum", title: "faults above the optimum of Belady, who knows the future", value: (run) => run.optimum?.above ?? null, show: (value) => (value > 0 ? `+${count(value)}` : count(value)) },
  { name: "thrash", title: "repeated faults of a page within five turns, on average", value: (run) => run.thrash_index, show: (value) => value.toFixed(2) },
  { name: "evictions", title: "pages that left the prompt", value: (run) => run.evictions, show: count },
  { name: "shortened", title: "pages shown at a shorter level instead", value: (run) => run.compressions, show: count },
  { name: "tokens brought in", title: "tokens brought in for faults", value: (run) => run.fault_tokens, show: short },
  { name: "prompt full", title: "average share of the budget in use", value: (run) => run.utilisation, show: (value) => `${(100 * value).toFixed(0)} %`, more: true },
  { name: "cache lost", title: "tokens that fall out of a provider's prefix cache", value: (run) => run.prefix_voided, show: short },
  { name: "cost", title: "extra cost of the lost cache", value: (run) => run.prefix_cost, show: dollars },
];

/** The names of the policies, as the store completes them. */
function usePolicies(): string[] {
  const query = "REPLAY WITH policy = ";
  const asked = useAsked(source.value?.server ? "policies" : "", () => source.value!.complete({ session: which.peek().session }, query, query.length), 0);
  // A version is another name of the newest one: each policy once.
  return (asked.value ?? []).filter((one) => one.about === "policy" && !one.text.includes("@")).map((one) => one.text.replaceAll("'", ""));
}

export function PolicyField({ value, set }: { value: string; set: (value: string) => void }) {
  return (
    <select aria-label="policy" value={value} onChange={(event) => set(typedIn(event))}>
      <option value="">same policy</option>
      {usePolicies().map((one) => <option key={one} value={one}>{one}</option>)}
    </select>
  );
}

function WhatIf() {
  const shown = film.value;
  const session = which.value.session;
  const [policies, budgets] = [param("policies").value, param("budgets").value];
  const key = policies || budgets ? `sweep ${session} ${grown.value} ${policies} ${budgets}` : "";
  const asked = useAsked<Sweep>(key, () => source.value!.sweep({ session }, policies, budgets) as Promise<Sweep>, 0);
  if (!shown) return null;
  if (!source.value?.server) return <Problem trouble={needsServer("A sweep is run")} />;
  return (
    <div class="whatif-pane">
      <Asking shown={shown} policies={policies} budgets={budgets} busy={asked.busy} />
      {key && asked.error && <Problem trouble={asked.error} />}
      {key && asked.busy && <Deciding session={session} />}
      {key && !asked.busy && asked.value && <Table sweep={asked.value} />}
      {!key && <Mute>Every run gets the same references; what the model would have asked for instead cannot be known. Nothing is written to the store.</Mute>}
    </div>
  );
}

/** How far it is: each policy with each budget is one replay. */
function Deciding({ session }: { session: string }) {
  const [{ done, of }, set] = useState({ done: 0, of: 0 });
  useEffect(() => {
    const timer = setInterval(() => source.value!.progress(session).then(set, () => undefined), LOOK_MS);
    return () => clearInterval(timer);
  }, [session]);
  return (
    <p class="row">
      <progress value={of ? done : undefined} max={of || 1} />
      <small>{of ? `replaying ${session}: ${done} of ${of} done` : `replaying ${session}…`}</small>
    </p>
  );
}

function Asking({ shown, policies, budgets, busy }: { shown: Film; policies: string; budgets: string; busy: boolean }) {
  const known = usePolicies();
  const [chosen, setChosen] = useState<string[]>([]);
  const [typed, setTyped] = useState("");
  const proposed = useMemo(() => proposal(shown), [shown]);
  const had = shown.data.budget !== null;
  useEffect(() => setChosen(policies ? policies.split(",") : ["default", "lru"]), [policies]);
  useEffect(() => setTyped(budgets.replaceAll(",", ", ") || proposed), [budgets, proposed]);
  const first = useRef<HTMLInputElement>(null);
  // They come after the pane: who has nothing in hand begins with them then.
  useEffect(() => {
    if (document.activeElement === document.body) first.current?.focus();
  }, [known.length]);
  return (
    <Form
      class="whatif-form"
      does={() => {
        const wanted = typed.match(/\d[\d_.]*k?/g)?.map(number) ?? [];
        go({ policies: chosen.join(","), budgets: wanted.join(",") });
      }}
    >
      <fieldset>
        <legend>Policies</legend>
        {known.map((one, at) => (
          <label key={one} class="check">
            <input
              type="checkbox"
              data-focus={at === 0 ? true : undefined}
              ref={at === 0 ? first : undefined}
              checked={chosen.includes(one)}
              onChange={(event) => setChosen(event.currentTarget.checked ? [...chosen, one] : chosen.filter((other) => other !== one))}
            />
            {one}
          </label>
        ))}
      </fieldset>
      <label>
        Budgets <input aria-label="budgets" value={typed} placeholder={had ? "unchanged" : "8000, 16000"} onInput={(event) => setTyped(typedIn(event))} />
      </label>
      <Act disabled={busy || (!chosen.length && !typed.trim())}>Run</Act>
      {!had && <small>This session ran without a token budget. vmstore replays it as if it had one.</small>}
    </Form>
  );
}

function number(text: string): number {
  const told = Number(text.replace(/[_k]/g, ""));
  return Math.round(text.endsWith("k") ? told * 1000 : told);
}

/** Budgets worth trying: the one it had and twice that; without one, a half and a quarter of the most it sent. */
function proposal(shown: Film): string {
  const { budget, calls } = shown.data;
  const round = (value: number): number => Math.max(1000, Math.round(value / 1000) * 1000);
  if (budget) return `${budget}, ${budget * 2}`;
  const most = calls.tokens.reduce((high, one) => Math.max(high, one), 0);
  return most ? `${round(most / 2)}, ${round(most / 4)}` : "";
}

/** The best run: fewest faults, of those the least cache lost, of those the smallest budget. */
function best(runs: Run[]): number {
  const order = (a: Run, b: Run): number => a.faults - b.faults || a.prefix_voided - b.prefix_voided || a.budget - b.budget;
  return runs.reduce((found, run, at) => (order(run, runs[found]!) < 0 ? at : found), 0);
}

function Table({ sweep }: { sweep: Sweep }) {
  const rows = sweep.redriven ? sweep.runs : [sweep.recorded, ...sweep.runs];
  const columns = COLUMNS.filter((column) => rows.some((run) => column.value(run) !== null));
  const winner = best(rows);
  const tops = columns.map((column) => {
    const values = rows.map(column.value).filter((value): value is number => value !== null);
    // Where all are the same none is best.
    return new Set(values).size < 2 ? null : column.more ? Math.max(...values) : Math.min(...values);
  });
  return (
    <>
      <div class="sweep-scroll">
        <table class="sweep">
          <thead>
            <tr>
              <th>policy</th>
              <th class="num">budget</th>
              {columns.map((column) => <th key={column.name} class="num" title={column.title}>{column.name}</th>)}
              <th title={sweep.redriven ? "first decision that differs from the first run" : "first decision that differs from the recorded one"}>{sweep.redriven ? "first difference from the first run" : "first different decision"}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((run, at) => (
              <Row key={at} run={run} columns={columns} tops={tops} best={at === winner} recorded={!sweep.redriven && at === 0} />
            ))}
          </tbody>
        </table>
      </div>
      <div class="pane-head">
        <small>Click a run to compare it with what happened. ★ fewest faults, then least cache lost; bold: best in its column.</small>
        <Grow />
        <Tool onClick={() => void copy(json(sweep), "the sweep as JSON")}>copy JSON</Tool>
      </div>
    </>
  );
}

/** Opens a run beside what happened. */
function open(run: Run, recorded: boolean): void {
  const change = recorded ? { pane: "why" } : { pane: "sides", other: which.peek().session, opolicy: run.policy, obudget: run.budget, ocall: null };
  go({ ...change, policy: null, budget: null });
}

function Row({ run, columns, tops, best, recorded }: { run: Run; columns: Column[]; tops: (number | null)[]; best: boolean; recorded: boolean }) {
  const { divergence } = run;
  return (
    <tr class={`${best ? "best" : ""} ${recorded ? "recorded" : ""}`} data-run={`${run.policy} ${run.budget}`} onClick={() => open(run, recorded)}>
      <td>
        <button class="link run" data-run-button title={recorded ? "what happened" : "side by side with what happened"}>{run.policy}</button>
        {best && <b class="star" title="best run"> ★</b>}
        {recorded && <small> as it was</small>}
      </td>
      <td class="num">{count(run.budget)}</td>
      {columns.map((column, k) => {
        const value = column.value(run);
        return <td key={column.name} class={`num ${value !== null && value === tops[k] ? "least" : ""}`}>{value === null ? "–" : column.show(value)}</td>;
      })}
      <td class="mute divergence" title={divergence ? `${divergence.reason}; recorded: ${divergence.recorded ?? "nothing"}; now: ${divergence.found ?? "nothing"}` : ""}>
        {divergence ? `call ${divergence.call}: ${divergence.found ?? `no ${divergence.recorded}`}` : recorded ? "" : "never"}
      </td>
    </tr>
  );
}

function step(by: number): void {
  const buttons = [...document.querySelectorAll<HTMLElement>("[data-run-button]")];
  const now = buttons.indexOf(document.activeElement as HTMLElement);
  buttons[clamp(buttons.length - 1, now < 0 ? 0 : now + by)]?.focus();
}

export const whatif: Pane = { id: "whatif", title: "What if", key: "i", hint: "replay under other policies and budgets", wide: true, View: WhatIf, step };
