// Markdown as elements: headings, lists, quotes, tables, code and emphasis. Everything ends as a text
// node, HTML in it stays what was written, and a link leads only to http addresses.
import type { ComponentChildren } from "preact";

const FENCE = /^\s{0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*$/;
const DEPTH_MAX = 8; // quotes in quotes, emphasis in emphasis

/** A text as Markdown; single line ends are kept, as chats mean them. */
export function Markdown({ text, depth = 0 }: { text: string; depth?: number }) {
  return <div class="md">{blocks(text.split(/\r?\n/), depth)}</div>;
}

function blocks(lines: string[], depth: number): ComponentChildren[] {
  const found: ComponentChildren[] = [];
  for (let at = 0; at < lines.length; ) {
    const [block, next] = blockAt(lines, at, depth);
    if (block) found.push(block);
    at = next;
  }
  return found;
}

/** The block that begins at a line, and the line after it. */
function blockAt(lines: string[], at: number, depth: number): [ComponentChildren, number] {
  const line = lines[at]!;
  if (!line.trim()) return [null, at + 1];
  const fence = FENCE.exec(line);
  if (fence) {
    const close = (one: string): boolean => one.trim().startsWith(fence[1]!) && !one.trim().slice(fence[1]!.length).replaceAll(fence[1]![0]!, "");
    const end = lines.findIndex((one, k) => k > at && close(one));
    const last = end < 0 ? lines.length : end;
    return [<pre class="code" title={fence[2]}>{lines.slice(at + 1, last).join("\n")}</pre>, last + 1];
  }
  const heading = HEADING.exec(line);
  if (heading) return [<div class={`md-heading md-${heading[1]!.length}`} role="heading" aria-level={heading[1]!.length + 2}>{inline(heading[2]!)}</div>, at + 1];
  if (RULE.test(line)) return [<hr />, at + 1];
  if (/^\s{0,3}>/.test(line) && depth < DEPTH_MAX) {
    const end = after(lines, at, (one) => /^\s{0,3}>/.test(one));
    return [<blockquote>{blocks(lines.slice(at, end).map((one) => one.replace(/^\s{0,3}> ?/, "")), depth + 1)}</blockquote>, end];
  }
  if (ITEM.test(line)) return items(lines, at);
  if (line.includes("|") && TABLE_RULE.test(lines[at + 1] ?? "")) {
    const end = after(lines, at + 2, (one) => one.includes("|"));
    return [<Table head={cells(line)} rows={lines.slice(at + 2, end).map(cells)} />, end];
  }
  const end = after(lines, at + 1, (one, k) => one.trim() !== "" && !FENCE.test(one) && !HEADING.test(one) && !ITEM.test(one) && !/^\s{0,3}>/.test(one) && !(one.includes("|") && TABLE_RULE.test(lines[k + 1] ?? "")));
  return [<p>{inline(lines.slice(at, end).join("\n"))}</p>, end];
}

/** The first line, from one on, for which something no longer holds. */
function after(lines: string[], from: number, holds: (line: string, at: number) => boolean): number {
  let at = from;
  while (at < lines.length && holds(lines[at]!, at)) at++;
  return at;
}

/** A list, flat: an item is indented as it was written, and takes the indented lines after it. */
function items(lines: string[], from: number): [ComponentChildren, number] {
  const found: ComponentChildren[] = [];
  let at = from;
  for (let item = ITEM.exec(lines[at]!); item; item = ITEM.exec(lines[at] ?? "")) {
    const end = after(lines, at + 1, (one) => /^\s+\S/.test(one) && !ITEM.test(one) && !FENCE.test(one));
    const text = [item[3]!, ...lines.slice(at + 1, end).map((one) => one.trim())].join("\n");
    found.push(
      <li style={{ marginLeft: `${Math.min(6, item[1]!.replaceAll("\t", "    ").length / 2) * 0.9}em` }}>
        <span class="bullet">{/\d/.test(item[2]!) ? item[2] : "•"}</span>
        <span>{inline(text)}</span>
      </li>,
    );
    at = end;
    if (!lines[at]?.trim() && ITEM.test(lines[at + 1] ?? "")) at++; // a list with room between its items
  }
  return [<ul class="md-list">{found}</ul>, at];
}

function cells(line: string): string[] {
  return line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((one) => one.trim());
}

function Table({ head, rows }: { head: string[]; rows: string[][] }) {
  return (
    <div class="md-table">
      <table>
        <thead><tr>{head.map((one) => <th>{inline(one)}</th>)}</tr></thead>
        <tbody>{rows.map((row) => <tr>{head.map((_, k) => <td>{inline(row[k] ?? "")}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}

// Code; bold; emphasis; a link with a name; a bare address. None of them spans an empty line.
const INLINE = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*(?=\S)([\s\S]*?\S)\*\*|__(?=\S)([^_]*\S)__|(?<![\w*])\*(?=[^\s*])([^*\n]*[^\s*])\*(?![\w*])|(?<!\w)_(?=[^\s_])([^_\n]*[^\s_])_(?!\w)|\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)|(https?:\/\/[^\s<>"'`)\]]+)/g;

function inline(text: string, depth = 0): ComponentChildren[] {
  if (depth > DEPTH_MAX) return [text];
  const found: ComponentChildren[] = [];
  let from = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > from) found.push(text.slice(from, match.index));
    from = match.index + match[0].length;
    const [, , code, bold, strong, star, line, name, link, bare] = match;
    if (code !== undefined) found.push(<code>{code}</code>);
    else if (bold ?? strong) found.push(<b>{inline((bold ?? strong)!, depth + 1)}</b>);
    else if (star ?? line) found.push(<i>{inline((star ?? line)!, depth + 1)}</i>);
    else found.push(<a class="link" href={link ?? bare} title={link ?? bare} target="_blank" rel="noreferrer noopener">{name ?? bare}</a>);
  }
  if (from < text.length) found.push(text.slice(from));
  return found;
}
