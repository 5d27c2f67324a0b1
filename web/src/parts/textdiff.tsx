// The difference of two contents: what went and what came, line by line, the words that differ in bold.
import { useMemo, useState } from "preact/hooks";
import { say } from "../copy";
import { bytes, count } from "../format";
import { diffTexts, type Line } from "../lib/texts";
import { Trouble, type Text, type Which } from "../source";
import { textAt, wholeText } from "../texts";
import { Mute } from "./bits";
import { Content, Problem } from "./content";

const LINES_SHOWN = 400;
const SIGNS: Record<Line["kind"], string> = { same: "", gone: "−", came: "+", gap: "" };

/** A content by its position, of a session or a what-if. */
export interface Place {
  content: number;
  of: Which;
}

export function TextDiff({ before, after }: { before: Place; after: Place }) {
  const [a, b] = [textAt(before.content, before.of).value, textAt(after.content, after.of).value];
  const [whole, setWhole] = useState<{ key: string; texts: [Text, Text] } | null>(null);
  if (a instanceof Trouble || b instanceof Trouble) return <Problem trouble={a instanceof Trouble ? a : (b as Trouble)} />;
  if (a === null || b === null) return <div class="content wait">…</div>;
  const key = JSON.stringify([before, after]);
  const [x, y] = whole?.key === key ? whole.texts : [a, b];
  if ([x, y].some((one) => one.missing || one.mime?.startsWith("image/"))) {
    return (
      <div class="two">
        <Content position={before.content} of={before.of} />
        <Content position={after.content} of={after.of} />
      </div>
    );
  }
  const all = (): void => {
    const both = Promise.all([wholeText(before.content, before.of), wholeText(after.content, after.of)]);
    both.then((texts) => setWhole({ key, texts }), (error: unknown) => say(String(error)));
  };
  return (
    <div class="textdiff">
      <Lines before={x.text} after={y.text} />
      {(x.cut || y.cut) && <button class="more" onClick={all}>the first {bytes(65536)} of {bytes(Math.max(x.bytes, y.bytes))} were compared: compare all</button>}
    </div>
  );
}

function Lines({ before, after }: { before: string; after: string }) {
  const [unfolded, setUnfolded] = useState(false);
  const [most, setMost] = useState(LINES_SHOWN);
  const told = useMemo(() => diffTexts(before, after, unfolded), [before, after, unfolded]);
  if (!told.gone && !told.came) return <Mute>The same text on both sides.</Mute>;
  return (
    <>
      <p class="mute textdiff-sum">
        <span class="went">−{count(told.gone)}</span> <span class="came">+{count(told.came)}</span> lines
      </p>
      <div class="lines">
        {told.lines.slice(0, most).map((line, at) =>
          line.kind === "gap" ? (
            <button key={at} class="line line-gap" onClick={() => setUnfolded(true)}>{count(line.lines)} line{line.lines === 1 ? "" : "s"} the same</button>
          ) : (
            <div key={at} class={`line line-${line.kind}`}>
              <span class="line-number">{line.kind === "came" ? line.after : line.before}</span>
              <span class="line-sign">{SIGNS[line.kind]}</span>
              <pre>{line.pieces.map((piece, k) => (piece.hot ? <b key={k}>{piece.text}</b> : piece.text))}</pre>
            </div>
          ),
        )}
      </div>
      {told.lines.length > most && <button class="more" onClick={() => setMost(most * 5)}>{count(told.lines.length - most)} more lines</button>}
    </>
  );
}
