// How pages, levels, roles and calls look wherever they are named.
import { colour } from "../colours";
import { LEVELS, type Film, type StackBy } from "../film";
import { film, inspect, pageName, toCall } from "../state";

export function Dot({ by, of }: { by: StackBy; of: string }) {
  return <i class={`dot dot-${by}`} style={{ background: colour(by, of) }} title={`${by} ${of}`} />;
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
  recorded: "the request was in the source, and is shown equal in every field",
  derived: "rebuilt by a rule from what the source holds; the request itself was not in it",
  "what-if": "decided again under other settings from the same references: this is not what happened",
};

/** 'derived' is never silent: such a call was rebuilt by a rule. */
export function Fidelity({ word }: { word: string }) {
  return (
    <span class={`fidelity ${word === "recorded" ? "" : "derived"}`} title={FIDELITIES[word] ?? "some calls are recorded, some derived"}>
      {word}
    </span>
  );
}
