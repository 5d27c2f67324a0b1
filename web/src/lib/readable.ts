// The messages of a request or a response as they are read, whatever the provider's shape: texts, what tools were
// asked and what they answered. What is of no known shape stands as its JSON.

import { json } from "../format";

/** A piece of a message: a text, an image, or JSON behind a line that says it. */
export interface Part {
  text: string;
  line?: string;
  image?: boolean;
  /** The tool that answers so. */
  tool?: string;
}

export interface Message {
  role: string;
  body: unknown;
  /** What of the body is read, where that is not all of it. */
  said?: unknown;
}

type Fields = Record<string, any>;

const TEXTS = ["text", "thinking", "reasoning", "refusal", "summary", "output", "response", "content", "parts", "message"];
const SYSTEM = ["system", "instructions", "systemInstruction", "system_instruction"];

function fields(value: unknown): Fields {
  return value && typeof value === "object" ? (value as Fields) : {};
}

function message(body: unknown): Message {
  const told = fields(body);
  return { role: String(told.role ?? told.type ?? "message"), body };
}

/** The messages of a request: its other fields first, and what it says to the model as system. */
export function asked(request: unknown): Message[] {
  if (Array.isArray(request)) return request.map(message);
  const told = fields(request);
  const lists = ["messages", "input", "contents"].filter((key) => Array.isArray(told[key]));
  const rest = Object.fromEntries(Object.entries(told).filter(([key]) => !lists.includes(key)));
  const system = SYSTEM.filter((key) => rest[key]).map((key) => ({ role: "system", body: rest[key] }));
  return [{ role: "fields", body: rest }, ...system, ...lists.flatMap((key) => (told[key] as unknown[]).map(message))];
}

/** The messages of a response: its other fields, then what came. */
export function replied(response: unknown): Message[] {
  if (Array.isArray(response)) return response.map(message);
  const told = fields(response);
  const list = ["choices", "candidates", "output", "content"].find((key) => Array.isArray(told[key]));
  if (!list) return [{ role: "response", body: told }];
  const rest = Object.fromEntries(Object.entries(told).filter(([key]) => key !== list));
  const said = (told[list] as unknown[]).map((body) => {
    const inner = fields(body).message ?? (list === "candidates" ? fields(body).content : body);
    return { role: list === "content" ? "assistant" : message(inner).role, body, said: inner };
  });
  return [{ role: "fields", body: rest }, ...said];
}

/** The parts of a message. `tools` has the name of each call by its id, for the answers that come later. */
export function parts({ role, body, said = body }: Message, tools: Map<string, string>): Part[] {
  return role === "fields" ? settings(fields(said)) : read(said, tools);
}

/** The other fields of a request: the tools by name, short values on a line, the rest folded. */
function settings(told: Fields): Part[] {
  const short: string[] = [];
  const long: Part[] = [];
  for (const [key, value] of Object.entries(told)) {
    if (SYSTEM.includes(key)) continue;
    const names = key === "tools" && Array.isArray(value) ? value.flatMap(declared).join(", ") : "";
    if (names || (value && typeof value === "object")) long.push({ line: `${key}: ${names || JSON.stringify(value)}`, text: json(value) });
    else short.push(`${key} ${value}`);
  }
  return [...(short.length ? [{ text: short.join(" · ") }] : []), ...long];
}

function declared(tool: Fields): string[] {
  return tool.functionDeclarations?.flatMap(declared) ?? [tool.name ?? tool.function?.name ?? tool.type];
}

function read(value: unknown, tools: Map<string, string>): Part[] {
  if (typeof value === "string") return value ? [{ text: value }] : [];
  if (Array.isArray(value)) return value.flatMap((one) => read(one, tools));
  if (!value || typeof value !== "object") return [];
  const told = value as Fields;
  const inner: Fields = told.function ?? told.functionCall ?? told;
  const given = inner.arguments ?? inner.input ?? inner.args;
  if (inner.name && given !== undefined) {
    tools.set(told.call_id ?? told.id, inner.name);
    return [{ line: `→ ${inner.name}(${typeof given === "string" ? given : JSON.stringify(given)})`, text: pretty(given) }];
  }
  const source: Fields = told.source ?? told.inlineData ?? told;
  const url = told.image_url?.url ?? told.image_url ?? (source.data && `data:${source.media_type ?? source.mimeType};base64,${source.data}`);
  if (typeof url === "string") return [{ text: url, image: url.startsWith("data:image/") }];
  const answered: Fields = told.functionResponse ?? told;
  const keys = TEXTS.filter((key) => key in answered);
  const found = [...keys.flatMap((key) => read(answered[key], tools)), ...read(told.tool_calls, tools)];
  const tool = answered === told ? tools.get(told.tool_call_id ?? told.tool_use_id ?? told.call_id ?? told.toolCallId) : answered.name;
  if (tool) return (found.length ? found : [{ text: keys.length ? "" : json(answered) }]).map((part) => ({ ...part, tool }));
  return found.length || keys.length ? found : [{ text: json(told) }];
}

function pretty(given: unknown): string {
  try {
    return json(typeof given === "string" ? JSON.parse(given) : given);
  } catch {
    return String(given);
  }
}
