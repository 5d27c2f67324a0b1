// The help: every key, and what the signs and colours stand for.
import { colour } from "./colours";
import { generalKeys, helping, KEYS, paneKeys } from "./keys";
import { LEVELS } from "./film";
import { glyph } from "./format";
import { film } from "./state";
import { useEffect, useRef } from "preact/hooks";

const NAMES: Record<string, string> = { " ": "space", ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc", PageUp: "PgUp", PageDown: "PgDn" };
const ROLES = ["system", "user", "assistant", "tool", "other"];

export function Help() {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.focus(), [helping.value]);
  if (!helping.value) return null;
  const groups = [...KEYS, { title: "Panes", keys: paneKeys() }, { title: "Else", keys: generalKeys() }];
  const kinds = [...(film.value?.kinds.keys() ?? [])];
  return (
    <div class="veil" onClick={() => (helping.value = false)}>
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
          <p>{ROLES.map((role) => <span key={role}><i class="swatch" style={{ background: colour("role", role) }} />{role}</span>)}</p>
          <p>{LEVELS.map((level) => <span key={level}><i class="swatch" style={{ background: colour("level", level) }} />{level}</span>)}</p>
          <p>{kinds.map((kind) => <span key={kind}><i class={`glyph kind-${kind}`}>{glyph(kind)}</i>{kind.replaceAll("_", " ")}</span>)}</p>
          <p class="mute">Tokens are estimated unless they are called reported. A derived call was rebuilt by a rule: its request was not in the source.</p>
          <p class="mute">On the timeline: drag to scrub, Ctrl and the wheel to look closer, a double click to see all.</p>
        </section>
      </div>
    </div>
  );
}
