// Notes and marks: those of the reader, which stay in this browser, beside those of the log.
import { useState } from "preact/hooks";
import { copy, download, say } from "../copy";
import { Act, Form, Link, Mute, Tool } from "../parts/bits";
import { CallName, PageName } from "../parts/badges";
import { addJson, addNote, dropNote, notes as kept, notesJson } from "../notes";
import { callNumber, film, pageName, which } from "../state";
import type { Pane } from "./index";
import { typedIn } from "../format";

function Notes() {
  const shown = film.value;
  const [text, setText] = useState("");
  if (!shown) return null;
  const call = callNumber.value;
  const write = (): void => {
    if (!text.trim()) return;
    addNote(call, text.trim(), pageName.value, false);
    setText("");
  };
  return (
    <div class="notes">
      <Form
        class="ask tall"
        does={() => write()}
      >
        <textarea
          data-focus
          rows={3}
          aria-label="note"
          placeholder={`a note on call ${call}${pageName.value ? ` and ${pageName.value}` : ""}`}
          value={text}
          onInput={(event) => setText(typedIn(event))}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) write();
          }}
        />
        <Act>Add note</Act>
      </Form>
      <Mute>Notes stay in this browser and are never written to the store. Copy them as JSON to share them.</Mute>
      <div class="row">
        <Tool disabled={!kept.value.length} onClick={() => void copy(notesJson(), "the notes as JSON")}>copy JSON</Tool>
        <Tool disabled={!kept.value.length} onClick={() => download(`${which.value.session}-notes.json`, notesJson())}>save JSON</Tool>
        <label class="tool">
          read JSON
          <input type="file" accept=".json,application/json" class="offscreen" onChange={(event) => void read(event.currentTarget)} />
        </label>
      </div>
      {kept.value.length > 0 && <h3>Yours</h3>}
      <ul class="noted">
        {kept.value.map((one, at) => (
          <li key={at} class={one.call === call ? "chosen" : ""}>
            <CallName call={one.call} /> {one.page && <PageName name={one.page} hint />}
            <span class="noted-text">{one.text || "⚑ marked"}</span>
            <Link aria-label="drop this note" onClick={() => dropNote(one)}>drop</Link>
          </li>
        ))}
      </ul>
      {shown.data.marks.length > 0 && <h3>Marks in the log</h3>}
      <ul class="noted">
        {shown.data.marks.map((one) => (
          <li key={one.name}>
            <CallName call={shown.callNumber[shown.stepAt(one.position)] ?? one.call} /> <b>{one.name}</b>
            <span class="noted-text">{one.note ?? ""}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

async function read(input: HTMLInputElement): Promise<void> {
  const file = input.files?.[0];
  if (!file) return;
  const added = addJson(await file.text());
  say(added < 0 ? `${file.name} holds no notes` : `${added} new note${added === 1 ? "" : "s"} read`);
  input.value = "";
}

export const notes: Pane = { id: "notes", title: "Notes", key: "n", hint: "notes and marks", View: Notes };
