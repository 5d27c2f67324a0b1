// The exact request of the call at the cursor, message by message, copied with one click.
import { useState } from "preact/hooks";
import { copy } from "../copy";
import { bytes } from "../format";
import { Fidelity, RoleBar } from "../parts/badges";
import { Problem } from "../parts/content";
import { useAsked } from "../asked";
import type { Answered, Request } from "../source";
import { callNumber, film, source, which } from "../state";
import type { Pane } from "./index";

const SHOWN_CHARS = 4000;

interface Message {
  role: string;
  body: unknown;
}

function Messages() {
  const shown = film.value;
  const of = which.value;
  const call = callNumber.value;
  const asked = useAsked<Request>(shown?.calls ? `request ${JSON.stringify(of)} ${call}` : "", () => source.value!.request(of, call));
  if (!shown) return null;
  if (!shown.calls) return <div class="empty"><b>This session has no model calls.</b><span>Requests appear here once there are some.</span></div>;
  if (asked.error) return <Problem trouble={asked.error} />;
  if (!asked.value) return <p class="mute">reading…</p>;
  const exact = asked.value.request !== null;
  const sent = exact ? asked.value.request : asked.value.messages;
  const text = JSON.stringify(sent, null, 2);
  return (
    <div class="messages">
      <div class="pane-head">
        <span>{exact ? "The request" : "The messages"} of call {call}</span>
        <Fidelity word={asked.value.fidelity} />
        <small>{bytes(new Blob([text]).size)} of JSON</small>
        <span class="grow" />
        <button class="act" data-focus onClick={() => void copy(text, `the ${exact ? "request" : "messages"} of call ${call}`)}>Copy JSON</button>
      </div>
      {asked.value.why && <p class="mute">{asked.value.why}</p>}
      {listed(sent).map((one, at) => <Block key={`${call} ${at}`} message={one} number={at} />)}
      {asked.value.response && <Reply call={call} told={asked.value.response} />}
    </div>
  );
}

const RULES: Record<string, string> = {
  stream: "Reconstructed from the parts of a stream.",
  messages: "Reconstructed: its messages are known, but the response itself was not kept.",
};

/** What came back for the call: the response as it was handed in, or what is known of it. */
function Reply({ call, told }: { call: number; told: Answered }) {
  const known = told.body ?? (told.messages?.length ? told.messages : null);
  const text = known === null ? "" : JSON.stringify(known, null, 2);
  const why = told.why ?? told.erased ?? (told.rule ? RULES[told.rule] : null);
  return (
    <>
      <div class="pane-head" data-response>
        <span>The response to call {call}</span>
        {told.fidelity && <Fidelity word={told.fidelity} />}
        {told.status && <small>{told.status}</small>}
        <span class="grow" />
        {known !== null && <button class="act" onClick={() => void copy(text, `the response to call ${call}`)}>Copy JSON</button>}
      </div>
      {why && <p class="mute">{why}</p>}
      {told.error && <p class="mute">{told.error}</p>}
      {known !== null && replied(known).map((one, at) => <Block key={`${call} r${at}`} message={one} number={at} />)}
    </>
  );
}

/** The parts of a response: its other fields, then its messages, whatever the provider's shape. */
function replied(known: unknown): Message[] {
  if (Array.isArray(known)) return known.map(message);
  const told = known as Record<string, unknown>;
  const list = ["choices", "candidates", "output"].find((key) => Array.isArray(told[key]));
  if (!list) return [{ role: "response", body: told }];
  const rest = Object.fromEntries(Object.entries(told).filter(([key]) => key !== list));
  const said = (told[list] as unknown[]).map((one) => {
    const inner = one as { message?: unknown; content?: unknown } | null;
    return { ...message(inner?.message ?? (list === "candidates" ? inner?.content : one)), body: one };
  });
  return [{ role: "fields", body: rest }, ...said];
}

/** The parts of a request, whatever the provider's shape: other fields first, then its messages. */
function listed(request: unknown): Message[] {
  if (Array.isArray(request)) return request.map(message);
  if (!request || typeof request !== "object") return [{ role: "request", body: request }];
  const told = request as Record<string, unknown>;
  const lists = ["messages", "input", "contents"].filter((key) => Array.isArray(told[key]));
  const rest = Object.fromEntries(Object.entries(told).filter(([key]) => !lists.includes(key)));
  const first: Message[] = Object.keys(rest).length ? [{ role: "fields", body: rest }] : [];
  return [...first, ...lists.flatMap((key) => (told[key] as unknown[]).map(message))];
}

function message(value: unknown): Message {
  const told = (value && typeof value === "object" ? value : {}) as Record<string, unknown>;
  return { role: String(told.role ?? told.type ?? "message"), body: value };
}

/** What a message says: its text where it is only that, else its JSON. */
function body(message: Message): string {
  const told = message.body as Record<string, unknown> | null;
  if (told && typeof told.content === "string" && Object.keys(told).every((key) => ["role", "content"].includes(key))) return told.content;
  return JSON.stringify(message.body, null, 2) ?? "";
}

function Block({ message: told, number }: { message: Message; number: number }) {
  const [all, setAll] = useState(false);
  const text = body(told);
  const shown = all ? text : text.slice(0, SHOWN_CHARS);
  return (
    <div class="message">
      <div class="message-head">
        <RoleBar of={told.role === "model" ? "assistant" : told.role} />
        <b>{told.role}</b>
        <span class="grow" />
        <button class="link" onClick={() => void copy(text, `message ${number}`)}>copy</button>
      </div>
      <pre>{shown}</pre>
      {text.length > shown.length && <button class="more" onClick={() => setAll(true)}>the first {SHOWN_CHARS} of {text.length} characters: show all</button>}
    </div>
  );
}

export const messages: Pane = { id: "request", title: "Request", key: "r", hint: "the messages of this call, exactly as sent", View: Messages };
