// Numbers and moments as people read them.
const whole = new Intl.NumberFormat("en");
const GLYPHS: Record<string, string> = {
  create: "+",
  enter: "→",
  leave: "←",
  evict: "▼",
  compress: "◆",
  fault_in: "▲",
  fault_denied: "✕",
  prefetch: "△",
  pin: "●",
  unpin: "○",
  update: "✎",
  compaction: "■",
  mark: "⚑",
  annotate: "✦",
  segment: "┃",
  pressure: "≈",
  reference: "◦",
  shown: "~",
  shorten: "▽",
  settings: "⚙",
  search: "⌕",
  cite: "❝",
  recall: "↺",
  link: "–",
  tool_call: "⚒",
  guard: "⚠",
  promote: "★",
  approve: "✓",
};

/** A number held between 0 and `most`. */
export function clamp(most: number, value: number): number {
  return Math.max(0, Math.min(value, most));
}

export function count(value: number): string {
  return whole.format(value);
}

/** How many of something: `1 page`, `2 pages`. */
export function many(value: number, what: string): string {
  return `${count(value)} ${what}${value === 1 ? "" : "s"}`;
}

export function tokens(value: number): string {
  return many(value, "token");
}

/** A number in few characters, for axes and narrow columns. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toFixed(size >= 1e7 ? 0 : 1)}M`;
  if (size >= 1e4) return `${Math.round(value / 1e3)}k`;
  if (size >= 1e3) return `${+(value / 1e3).toFixed(1)}k`;
  return String(Math.round(value));
}

export function dollars(value: number): string {
  return value === 0 ? "$0" : value >= 0.1 ? `$${value.toFixed(2)}` : `$${value.toFixed(4)}`;
}

export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  return value < 1 << 20 ? `${(value / 1024).toFixed(1)} KiB` : `${(value / (1 << 20)).toFixed(1)} MiB`;
}

/** A moment in milliseconds or microseconds since 1970, to the second, in UTC. */
export function moment(at: number): string {
  const ms = at > 1e14 ? at / 1000 : at;
  return new Date(ms).toISOString().slice(0, 19).replace("T", " ");
}

export function glyph(kind: string): string {
  return GLYPHS[kind] ?? "·";
}

/** A text as one line of a list. */
export function oneLine(text: string, chars = 200): string {
  return text.slice(0, chars).replace(/\s+/g, " ").trim();
}

/** A value as JSON that people read. */
export const json = (value: unknown): string => JSON.stringify(value, null, 2) ?? "";

/** What stands in a field. */
export const typedIn = (event: { currentTarget: { value: string } }): string => event.currentTarget.value;
