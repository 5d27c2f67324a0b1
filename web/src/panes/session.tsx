// The session at a glance: what it was about, how it ended, what it cost and when, and what its
// compactions replaced. This pane stands open until a page is selected or another is chosen.
import { count, dollars, many, moment, tokens } from "../format";
import type { Film } from "../film";
import { compactions } from "../lib/transcript";
import { compactionLine } from "../conversation";
import { cursor, film, store, toCall, which } from "../state";
import { go } from "../place";
import { costOf } from "../sessions";
import type { Pane } from "./index";
import { Mute } from "../parts/bits";

const WIDE = 600;
const HIGH = 84;

function Session() {
  const shown = film.value;
  if (!shown) return null;
  const row = store.value?.sessions.find((one) => one.session === which.value.session);
  const { calls } = shown.data;
  const models = [...new Set(calls.model.map((one) => shown.word(one)).filter(Boolean))];
  const cost = sum(shown.cost);
  const reported = sum(calls.reported) ?? sum(calls.tokens);
  const out = sum(calls.out);
  const first = row?.timed === false ? null : (row?.first_at ?? calls.at[0] ?? null);
  const facts: [string, string | null | undefined][] = [
    ["outcome", row?.outcome],
    ["model", models.join(", ")],
    ["started", first === null ? "unknown: this source records no times" : `${moment(first)} UTC`],
    ["size", [many(shown.calls, "call"), many(shown.data.turns.turn.length, "turn"), many(shown.pages, "page")].join(", ")],
    ["sent", shown.calls ? `${tokens(reported ?? 0)}${sum(calls.reported) === null ? ", estimated" : ""}${out ? `, ${count(out)} received` : ""}` : null],
    ["cost", row && costOf(row) ? `${costOf(row)}${row.cost_estimated ? ", estimated from list prices where the source has none" : ""}` : cost === null ? null : dollars(cost)],
    ["requests", FIDELITIES[shown.data.fidelity]],
  ];
  const all = compactions(shown);
  return (
    <div class="glance">
      <h2>{row?.title || row?.first || shown.data.session}</h2>
      <dl class="glance-facts">
        {facts.map(([name, value]) => value && <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
      </dl>
      {cost !== null && <Running shown={shown} total={cost} />}
      {all.length > 0 && (
        <>
          <h3>Compactions</h3>
          <ul class="losses">
            {all.map((one) => (
              <li key={one.at} class={one.at === cursor.value ? "chosen" : ""}>
                <button onClick={() => go({ call: shown.callNumber[one.at], pane: "taken" })}>
                  <span>call{"\u00a0"}{shown.callNumber[one.at]}</span> <span>{compactionLine(one)}</span>
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
      <Mute>Select a page to see why it is, or isn’t, in the context.</Mute>
    </div>
  );
}

const FIDELITIES: Record<string, string> = {
  recorded: "recorded, exactly as they were sent",
  derived: "reconstructed: this file doesn’t contain the raw requests",
  mixed: "some recorded, some reconstructed",
};

/** The sum of what is known; null where nothing is. */
function sum(values: (number | null)[]): number | null {
  const known = values.filter((one): one is number => one !== null && one !== undefined);
  return known.length ? known.reduce((all, one) => all + one, 0) : null;
}

/** What the session had cost by each call, and a line where the cursor stands. */
function Running({ shown, total }: { shown: Film; total: number }) {
  const { cost } = shown;
  let so = 0;
  const until = cost.map((one) => (so += one ?? 0));
  const x = (at: number): number => ((at + 1) / shown.calls) * WIDE;
  const y = (value: number): number => HIGH - (value / Math.max(total, 1e-9)) * (HIGH - 2);
  const line = until.map((value, at) => `L${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const here = until[cursor.value] ?? 0;
  const estimated = shown.data.calls.cost_estimated?.some((one, at) => one && at <= cursor.value);
  return (
    <figure class="running">
      <svg
        viewBox={`0 0 ${WIDE} ${HIGH}`} preserveAspectRatio="none" role="img" aria-label={`running cost, ${dollars(total)} in all`}
        onClick={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          toCall(Math.floor(((event.clientX - box.left) / box.width) * shown.calls));
        }}
      >
        <path class="running-area" d={`M0 ${HIGH}${line}L${WIDE} ${HIGH}Z`} />
        <path class="running-line" d={`M0 ${HIGH}${line}`} />
        <line x1={x(cursor.value)} x2={x(cursor.value)} y1={0} y2={HIGH} />
      </svg>
      <figcaption class="mute">running cost: <b>{estimated ? "~" : ""}{dollars(here)}</b> up to call {shown.callNumber[cursor.value]}, {shown.costOf(cursor.value)} of it for this one</figcaption>
    </figure>
  );
}

export const session: Pane = { id: "session", title: "Session", key: "S", hint: "the session at a glance: outcome, cost, compactions", View: Session };
