// One scale of colours for each thing that is told by colour, the same in charts, bars and badges.
// Roles are Okabe and Ito's colours, levels run like cividis, types are Tol's muted ones: each scale
// stays apart for readers who do not see red and green, and in black and white through its lightness.
import { signal } from "@preact/signals";
import type { StackBy } from "./film";

const SCALES: Record<StackBy, readonly string[]> = {
  role: ["system", "developer", "user", "assistant", "tool", "other"],
  level: ["full", "reduced", "abstract", "reference"],
  modality: ["text", "structured", "image", "audio", "video"],
  type: ["procedure", "index", "summary", "claim", "artifact", "transcript", "raw"],
};

/** The colour of a role, level, modality or type, as a CSS value. */
export function colour(by: StackBy, key: string): string {
  return `var(--${by}-${SCALES[by].includes(key) ? key : "other"}, var(--role-other))`;
}

/** A CSS variable's value now, for what is painted on a canvas. */
export function painted(value: string): string {
  const name = /^var\((--[\w-]+)/.exec(value)?.[1] ?? value;
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888";
}

type Theme = "light" | "dark";
const KEY = "vmstore.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
const shown = signal<Theme>("light");

function apply(theme: Theme): void {
  // The variables change first: whoever hears of the new theme reads them.
  document.documentElement.dataset.theme = theme;
  shown.value = theme;
}

function chosen(): Theme | null {
  const kept = safely(() => localStorage.getItem(KEY));
  return kept === "light" || kept === "dark" ? kept : null;
}

function followSystem(): void {
  apply(chosen() ?? (dark.matches ? "dark" : "light"));
}

/** Some browsers refuse storage to files: then nothing is kept. */
export function safely<T>(act: () => T): T | null {
  try {
    return act();
  } catch {
    return null;
  }
}

export function theme(): Theme {
  return shown.value;
}

/** Light to dark or back, remembered where the browser allows it. */
export function switchTheme(): void {
  const next = shown.value === "dark" ? "light" : "dark";
  safely(() => localStorage.setItem(KEY, next));
  apply(next);
}

dark.addEventListener("change", followSystem);
followSystem();
