// Why a page is in the context of the call at the cursor, or why it is not: the answer of VMQL's WHY,
// with the contest it came from, winner and losers and their scores.
import { count, glyph, tokens } from "../format";
import { LEVELS, type Film } from "../film";
import { Mute } from "../parts/bits";
import { CallName, Dot, InVmql, LevelMeter, PageName, RoleBar } from "../parts/badges";
import { Content, NoPage, Waiting } from "../parts/content";
import { useAsked } from "../asked";
import { whyQuery, type Answer } from "../source";
import { callNumber, cursor, film, page, source, which } from "../state";
import type { Pane } from "./index";

interface Contest {
  policy: string;
  budget: number;
  used: number;
  need: number;
  winner: string | null;
  candidates: number;
  cutoff: number;
  losers: { page: string; score: number }[];
  score?: number;
}

function Why() {
  const shown = film.value;
  const at = page.value;
  if (!shown) return null;
  if (at < 0) return <NoPage to="why it is, or isn’t, in the context" />;
  return <Asked shown={shown} at={at} />;
}

function Asked({ shown, at }: { shown: Film; at: number }) {
  const name = shown.pageName(at);
  const call = callNumber.value;
  const stay = shown.calls ? shown.stayOf(at, cursor.value) : -1;
  const of = which.value;
  const query = whyQuery(name, call, stay >= 0);
  const asked = useAsked<Answer>(shown.calls ? `why ${JSON.stringify(of)} ${query}` : "", () => source.value!.why(of, name, call, stay >= 0));
  const content = stay >= 0 ? shown.stay.content[stay]! : shown.contentOf(at, cursor.value);
  return (
    <div class="why">
      <PageHead shown={shown} at={at} stay={stay} />
      <div class="query-line">
        <code>{query}</code>
        <InVmql query={query} />
      </div>
      <Waiting asked={asked} />
      {asked.value && <Told answer={asked.value} name={name} />}
      <h3>Text {stay < 0 && <small>when it was last in the context</small>}</h3>
      <Content position={content} />
    </div>
  );
}

function PageHead({ shown, at, stay }: { shown: Film; at: number; stay: number }) {
  const { tokens: full, turn, versions, pinned } = shown.data.pages;
  const held = stay < 0 ? full[at]! : shown.stay.tokens[stay]!;
  const level = stay < 0 ? 0 : shown.stay.level[stay]!;
  return (
    <div class="page-head">
      <div class="page-head-name">
        <RoleBar of={shown.role(at)} />
        <b>{shown.pageName(at)}</b>
        {shown.hint(at) && <em>{shown.hint(at)}</em>}
        <span class={`verdict ${stay < 0 ? "" : "in"}`}>{stay < 0 ? `not in call ${callNumber.value}` : `in call ${callNumber.value}`}</span>
      </div>
      <div class="facts">
        <span>{shown.role(at)}</span>
        <span><Dot by="type" of={shown.type(at)} /> {shown.type(at)}</span>
        {shown.modality(at) !== "text" && <span>{shown.modality(at)}</span>}
        {stay >= 0 && <span><LevelMeter level={level} /> {LEVELS[level]}</span>}
        <span>{level > 0 ? `${count(held)} of ${tokens(full[at]!)}` : tokens(full[at]!)}</span>
        <span>made in turn {turn[at]}</span>
        {versions[at]! > 1 && <span>{versions[at]} versions</span>}
        {pinned[at] ? <span>pinned now</span> : null}
      </div>
    </div>
  );
}

function Told({ answer, name }: { answer: Answer; name: string }) {
  const rows = answer.rows;
  const last = rows[0]; // the answer; what happened to the page stands after it
  if (!last) return <Mute>The log says nothing about {name} up to this call.</Mute>;
  const contest = parsed(last.contest);
  return (
    <>
      <p class="because">{String(last.reason ?? "")}</p>
      {contest && <ContestTable contest={contest} name={name} />}
      <h3>What happened to it</h3>
      <ol class="chain">
        {rows.slice(1).map((row, at) => <Link key={at} row={row} name={name} />)}
      </ol>
    </>
  );
}

function Link({ row, name }: { row: Record<string, unknown>; name: string }) {
  const contest = parsed(row.contest);
  const kind = String(row.event ?? "");
  const other = typeof row.page === "string" && row.page !== name ? row.page : "";
  return (
    <li>
      <span class="num"><CallName call={Number(row.call)} word="" /></span>
      <i class={`glyph kind-${kind}`}>{glyph(kind)}</i>
      <span class="chain-text">
        <b>{kind.replaceAll("_", " ")}</b> {other && <PageName name={other} hint />} {String(row.reason ?? "")}
        {contest && (
          <details>
            <summary>the contest</summary>
            <ContestTable contest={contest} name={name} />
          </details>
        )}
      </span>
    </li>
  );
}

function parsed(value: unknown): Contest | null {
  if (!value) return null;
  try {
    return (typeof value === "string" ? JSON.parse(value) : value) as Contest;
  } catch {
    return null;
  }
}

/** A contest: what there was room for, who it was for, and how near the nearest others were to going. */
export function ContestTable({ contest, name }: { contest: Contest; name: string }) {
  const used = contest.used / Math.max(contest.used, contest.budget, 1);
  const limit = contest.budget / Math.max(contest.used, contest.budget, 1);
  const told = contest.losers.some((one) => one.page === name);
  const away = contest.losers.map((one) => Math.abs(one.score - contest.cutoff));
  const far = Math.max(...away, Math.abs((contest.score ?? contest.cutoff) - contest.cutoff), 1);
  // Scores are large and close: what tells is how far each was from the cutoff.
  const row = (page: string, score: number, what: string) => (
    <tr key={page} class={page === name ? "self" : ""}>
      <td><PageName name={page} hint /></td>
      <td class="num">{count(score)}</td>
      <td class="num">{score >= contest.cutoff ? "+" : "−"}{count(Math.abs(score - contest.cutoff))}</td>
      <td><i class="score-bar" style={{ width: `${(100 * Math.abs(score - contest.cutoff)) / far}%` }} /></td>
      <td>{what}</td>
    </tr>
  );
  return (
    <div class="contest">
      <div class="contest-room">
        <span class="room" title={`${count(contest.used)} of ${count(contest.budget)} tokens used`}>
          <i style={{ width: `${100 * used}%` }} />
          <u style={{ left: `${100 * limit}%` }} />
        </span>
        <span>{count(contest.used)} of {tokens(contest.budget)} used, {count(contest.need)} needed</span>
      </div>
      <div class="facts">
        <span>policy {contest.policy}</span>
        <span>{count(contest.candidates)} candidate{contest.candidates === 1 ? "" : "s"}</span>
        {contest.winner && <span>for <PageName name={contest.winner} hint /></span>}
      </div>
      <table class="scores">
        <thead><tr><th>page</th><th class="num">score</th><th class="num" title="how far from the cutoff">from cutoff</th><th /><th /></tr></thead>
        <tbody>
          {contest.score !== undefined && !told && row(name, contest.score, contest.score <= contest.cutoff ? "went" : "stayed")}
          <tr class="cutoff"><td>the cutoff</td><td class="num">{count(contest.cutoff)}</td><td /><td /><td>last to go</td></tr>
          {contest.losers.map((one) => row(one.page, one.score, "stayed"))}
        </tbody>
      </table>
    </div>
  );
}

export const why: Pane = { id: "why", title: "Why", key: "w", hint: "why the selected page is in the context, or isn’t", View: Why };
