// The right side: one pane at a time, chosen by tab, key or link.
import { computed, effect } from "@preact/signals";
import { go, param } from "./place";
import { paneOf, panes } from "./panes";

export const pane = computed(() => paneOf(param("pane").value));

export function Inspector() {
  const { View, id, title } = pane.value;
  return (
    <section class={`panel inspector ${pane.value.wide ? "wide" : ""}`}>
      <nav class="tabs" role="tablist">
        {panes.map((one) => (
          <button key={one.id} role="tab" aria-selected={one.id === id} class={one.id === id ? "on" : ""} title={`${one.hint}${one.key ? ` (${one.key})` : ""}`} onClick={() => go({ pane: one.id })}>
            {one.title}
          </button>
        ))}
      </nav>
      <div class="pane" role="tabpanel" aria-label={title} key={id} data-pane={id}>
        <View />
      </div>
    </section>
  );
}

// In one column the pane stands below what was read: it is brought into view when another is chosen.
let before: string | null = null;
effect(() => {
  const chosen = param("pane").value;
  if (chosen && before !== null && chosen !== before && matchMedia("(max-width: 980px)").matches) {
    requestAnimationFrame(() => document.querySelector(".inspector")?.scrollIntoView({ block: "start", behavior: "smooth" }));
  }
  before = chosen;
});
