// How pages, levels, roles and calls look wherever they are named.
import { go, param } from "../place";
import { colour } from "../colours";
import { LEVELS, type Film, type StackBy } from "../film";
import { film, inspect, pageName, toCall } from "../state";
import { Link } from "./bits";

export function Dot({ by, of }: { by: StackBy; of: string }) {
  return <i class={`dot dot-${by}`} style={{ background: colour(by, of) }} title={`${by} ${of}`} />;
}

export function Swatch({ by, of }: { by: StackBy; of: string }) {
  return <i class="swatch" style={{ background: colour(by, of) }} />;
}

/** A box to tick that stands in the URL as a value of a name. */
export function Check({ name, value = "1", does, title }: { name: string; value?: string; does: string; title?: string }) {
  return (
    <label class="check" title={title}>
      <input type="checkbox" checked={param(name).value === value} onChange={(event) => go({ [name]: event.currentTarget.checked ? value : null })} />
      {does}
    </label>
  );
}

/** Who speaks, as a bar of the colour of the role. */
export function RoleBar({ of }: { of: string }) {
  return <i class="role" style={{ background: colour("role", of) }} title={of} />;
}

/** Four steps, as many filled as is shown of the page. */
export function LevelMeter({ level }: { level: number }) {
  const word = LEVELS[level] ?? `level ${level}`;
  return (
    <span class="meter" title={`shown ${word}`} aria-label={`shown ${word}`}>
      {LEVELS.map((one, at) => (
        <i key={one} style={at < LEVELS.length - level ? { background: colour("level", word) } : undefined} />
      ))}
    </span>
  );
}

/** The name of a page, and its hint: a click takes it in hand. */
export function PageName({ name, hint }: { name: string; hint?: boolean }) {
  const shown = film.value;
  const at = shown?.pageIndex(name) ?? -1;
  if (!shown || at < 0) return <span class="page-name">{name}</span>;
  const known = shown.hint(at);
  return (
    <button
      class={`page-name link ${pageName.value === name ? "chosen" : ""}`}
      title={about(shown, at)}
      onClick={(event) => {
        event.stopPropagation();
        inspect(name);
      }}
    >
      {name}
      {hint && known && <em>{known}</em>}
    </button>
  );
}

export function CallName({ call, word = "call" }: { call: number; word?: string }) {
  return (
    <button
      class="link"
      onClick={(event) => {
        event.stopPropagation();
        const shown = film.value;
        if (shown) toCall(shown.indexOf(call));
      }}
    >
      {word} {call}
    </button>
  );
}

export function about(shown: Film, page: number): string {
  const hint = shown.hint(page);
  return `${shown.pageName(page)}${hint ? ` ${hint}` : ""}: ${shown.role(page)}, ${shown.type(page)}, ${shown.modality(page)}, ${shown.data.pages.tokens[page]} tokens in full, made in turn ${shown.data.pages.turn[page]}`;
}

const FIDELITIES: Record<string, string> = {
  recorded: "Recorded: shown exactly as it was sent, in every field.",
  derived: "Reconstructed: this file doesn't contain the raw request, so the context was rebuilt from the transcript.",
  "what-if": "Replayed under other settings from the same references: this is not what happened.",
};

/** Which calls were rebuilt by a rule is never silent. */
export function Fidelity({ word }: { word: string }) {
  return (
    <span class={`fidelity ${word === "recorded" ? "" : "derived"}`} title={FIDELITIES[word] ?? "Some calls are recorded, some reconstructed."}>
      {word === "derived" ? "reconstructed" : word}
    </span>
  );
}

/** Leads to a statement in the pane that answers it. */
export function InVmql({ query }: { query: string }) {
  return <Link onClick={() => go({ pane: "vmql", q: query })}>open in VMQL</Link>;
}
