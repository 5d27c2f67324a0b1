// The request of the call at the cursor and what came back for it, as they are read, or as their JSON.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { copy } from "../copy";
import { bytes, json } from "../format";
import { asked as listed, parts, replied, type Message, type Part } from "../lib/readable";
import { Act, Empty, Grow, Link, Mute } from "../parts/bits";
import { Check, Fidelity, RoleBar } from "../parts/badges";
import { Problem } from "../parts/content";
import { Folded } from "../parts/folded";
import { kept } from "../parts/kept";
import { useAsked } from "../asked";
import { go, param } from "../place";
import type { Answered, Request } from "../source";
import { callNumber, film, source, which } from "../state";
import type { Pane } from "./index";

function Messages() {
  const shown = film.value;
  const of = which.value;
  const call = callNumber.value;
  const asked = useAsked<Request>(shown?.calls ? `request ${JSON.stringify(of)} ${call}` : "", () => source.value!.request(of, call));
  if (!shown) return null;
  if (!shown.calls) return <Empty title="This session has no model calls.">Requests appear here once there are some.</Empty>;
  if (asked.error) return <Problem trouble={asked.error} />;
  if (!asked.value) return <Mute>reading…</Mute>;
  const exact = asked.value.request !== null;
  const sent = exact ? asked.value.request : asked.value.messages;
  const text = json(sent);
  const tools = new Map<string, string>();
  return (
    <div class="messages">
      <Head title={`The ${exact ? "request" : "messages"} of call ${call}`} fidelity={asked.value.fidelity} text={text} focus>
        <Check name="json" does={`JSON, ${bytes(new Blob([text]).size)}`} title="as it is written (J)" />
      </Head>
      {asked.value.why && <Mute>{asked.value.why}</Mute>}
      <Blocks of={listed(sent)} tools={tools} />
      {asked.value.response && <Reply call={call} told={asked.value.response} tools={tools} />}
    </div>
  );
}

const RULES: Record<string, string> = {
  stream: "Reconstructed from the parts of a stream.",
  messages: "Reconstructed: its messages are known, but the response itself was not kept.",
};

/** What came back for the call: the response as it was handed in, or what is known of it. */
function Reply({ call, told, tools }: { call: number; told: Answered; tools: Map<string, string> }) {
  const known = told.body ?? (told.messages?.length ? told.messages : null);
  const why = told.why ?? told.erased ?? (told.rule ? RULES[told.rule] : null);
  return (
    <>
      <Head title={`The response to call ${call}`} fidelity={told.fidelity} text={known && json(known)}>{told.status && <small>{told.status}</small>}</Head>
      {why && <Mute>{why}</Mute>}
      {told.error && <Mute>{told.error}</Mute>}
      {known !== null && <Blocks of={replied(known)} tools={tools} />}
    </>
  );
}

interface HeadProps {
  title: string;
  fidelity?: string | null;
  text: string | null;
  focus?: boolean;
  children: ComponentChildren;
}

function Head({ title, fidelity, text, focus, children }: HeadProps) {
  return (
    <div class="pane-head">
      <span>{title}</span>
      {fidelity && <Fidelity word={fidelity} />}
      <Grow />
      {children}
      {text && <Act data-focus={focus} onClick={() => void copy(text, title.toLowerCase())}>Copy JSON</Act>}
    </div>
  );
}

function Blocks({ of, tools }: { of: Message[]; tools: Map<string, string> }) {
  const written = param("json").value;
  return <>{of.map((one, at) => <Block key={`${at} ${written}`} role={one.role} number={at} body={one.body} said={written ? [{ text: json(one.body) }] : parts(one, tools)} />)}</>;
}

function Block({ role, number, body, said }: { role: string; number: number; body: unknown; said: Part[] }) {
  if (role === "fields" && !said.length) return null;
  const tool = said[0]?.tool;
  return (
    <div class="message">
      <div class="message-head">
        <RoleBar of={role === "model" ? "assistant" : tool ? "tool" : role} />
        <b>{tool ? `${tool} →` : role}</b>
        <Grow />
        <Link onClick={() => void copy(typeof body === "string" ? body : json(body), `message ${number}`)}>copy</Link>
      </div>
      {said.length ? said.map((part, at) => <Said key={at} {...part} role={part.tool ? "tool" : role} />) : <small>empty</small>}
    </div>
  );
}

/** A part of a message. Of one call and the next most are the same, and are not made again. */
const Said = kept(({ text, line, image, role }: Part & { role: string }) => {
  const [open, setOpen] = useState(false);
  const toggle = (): void => setOpen(!open);
  if (image) return <img class="content-image" src={text} alt="" />;
  if (!line) return <Folded text={text} role={role} open={open} toggle={toggle} />;
  return (
    <>
      <button class="asked" aria-expanded={open} onClick={toggle}>{line}</button>
      {open && <pre class="code">{text}</pre>}
    </>
  );
});

export const messages: Pane = {
  id: "request", title: "Request", key: "r", hint: "the messages of this call, exactly as sent", View: Messages,
  keys: [{ keys: ["J"], does: "the request as JSON, or as it is read", act: () => go({ pane: "request", json: param("json").peek() ? null : 1 }) }],
};
