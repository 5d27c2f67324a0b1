// A text as somebody said it: Markdown, or as it stands where it is of a tool or JSON; its beginning, while it is folded.
import { count } from "../format";
import { Markdown } from "./markdown";

const FOLD = { tool: { lines: 8, chars: 900 }, system: { lines: 10, chars: 1200 }, other: { lines: 40, chars: 5000 } };

export function foldOf(role: string): { lines: number; chars: number } {
  return role === "tool" ? FOLD.tool : role === "system" || role === "developer" ? FOLD.system : FOLD.other;
}

interface FoldedProps {
  text: string;
  role: string;
  open: boolean;
  toggle: () => void;
}

export function Folded({ text, role, open, toggle }: FoldedProps) {
  const short = folded(text, foldOf(role));
  const cut = open ? text : short;
  const rest = text.slice(short.length);
  const lines = rest.split("\n").length;
  return (
    <>
      {role === "tool" || /^[[{]/.test(cut) ? <pre class="code">{cut}</pre> : <Markdown text={cut} />}
      {rest && <button class="more" onClick={toggle}>{open ? "show less" : lines > 1 ? `show ${count(lines)} more lines` : `show ${count(rest.length)} more characters`}</button>}
    </>
  );
}

/** The beginning of a text, so many lines and characters of it; a few more are not worth a fold. */
function folded(text: string, { lines, chars }: { lines: number; chars: number }): string {
  let end = -1;
  for (let line = 0; line < lines; line++) {
    end = text.indexOf("\n", end + 1);
    if (end < 0) break;
  }
  const most = Math.min(end < 0 ? text.length : end, chars);
  return most > text.length * 0.8 ? text : text.slice(0, most);
}
