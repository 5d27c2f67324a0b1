// The help: every key, and what the signs and colours stand for.
import { generalKeys, KEYS, paneKeys } from "./keys";
import { popup } from "./popup";
import { LEVELS, type StackBy } from "./film";
import { glyph } from "./format";
import { film } from "./state";
import { useEffect, useRef } from "preact/hooks";
import { Swatch } from "./parts/badges";
import { Mute } from "./parts/bits";

const NAMES: Record<string, string> = { " ": "space", ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc", PageUp: "PgUp", PageDown: "PgDn" };
const ROLES = ["system", "user", "assistant", "tool", "other"];

function Swatches({ by, of }: { by: StackBy; of: readonly string[] }) {
  return <p>{of.map((one) => <span key={one}><Swatch by={by} of={one} />{one}</span>)}</p>;
}

export function Help() {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.focus(), [popup.value]);
  if (popup.value !== "help") return null;
  const groups = [...KEYS, { title: "Panes", keys: paneKeys() }, { title: "Other", keys: generalKeys() }];
  const kinds = [...(film.value?.kinds.keys() ?? [])];
  return (
    <div class="veil" onClick={() => (popup.value = "")}>
      <div class="help" role="dialog" aria-label="help" tabIndex={-1} ref={box} onClick={(event) => event.stopPropagation()}>
        <div class="help-keys">
          {groups.map((group) => (
            <section key={group.title}>
              <h3>{group.title}</h3>
              <dl>
                {group.keys.map((one) => (
                  <div key={one.keys.join()}>
                    <dt>{one.keys.map((key) => <kbd key={key}>{NAMES[key] ?? key}</kbd>)}</dt>
                    <dd>{one.does}</dd>
                  </div>
                ))}
              </dl>
            </section>
          ))}
        </div>
        <section class="signs">
          <h3>Signs</h3>
          <Swatches by="role" of={ROLES} />
          <Swatches by="level" of={LEVELS} />
          <p>{kinds.map((kind) => <span key={kind}><i class={`glyph kind-${kind}`}>{glyph(kind)}</i>{kind.replaceAll("_", " ")}</span>)}</p>
          <Mute>Token counts are estimates unless marked as reported. A reconstructed call was rebuilt from the transcript, because its raw request was not in the file.</Mute>
          <Mute>On the timeline: drag to scrub, Ctrl + wheel to zoom, double-click to show everything.</Mute>
        </section>
      </div>
    </div>
  );
}
