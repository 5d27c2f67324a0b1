// What a tool was asked, in whichever provider's form it stands in a content: its name and its arguments.

export interface ToolCall {
  name: string;
  given: unknown;
}

/** The call that a content is; null where it is none. */
export function toolCall(text: string): ToolCall | null {
  if (!text.startsWith("{")) return null;
  let part: unknown;
  try {
    part = JSON.parse(text);
  } catch {
    return null;
  }
  for (const key of ["function", "functionCall"]) {
    const inner = (part as Record<string, unknown>)[key];
    if (inner && typeof inner === "object") part = inner;
  }
  const told = part as Record<string, unknown>;
  const key = ["arguments", "input", "args"].find((one) => one in told);
  if (typeof told.name !== "string" || !key) return null;
  return { name: told.name, given: parsed(told[key]) };
}

/** As one line: `→ read({"path": "theme.md"})`. */
export function callLine({ name, given }: ToolCall): string {
  return `→ ${name}(${typeof given === "string" ? given : JSON.stringify(given)})`;
}

function parsed(value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
