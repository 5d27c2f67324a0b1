// Copying, and saying that it was done.
import { signal } from "@preact/signals";

/** What was just done, told for a moment at the foot of the page. */
export const said = signal("");
let timer: ReturnType<typeof setTimeout> | undefined;

export function say(what: string): void {
  said.value = what;
  clearTimeout(timer);
  timer = setTimeout(() => (said.value = ""), 2500);
}

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Where the clipboard is refused, as on a page that is not of loopback, a selection still is copied.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "offscreen";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) return say("the browser refused to copy");
  }
  say(`copied ${what}`);
}

/** Hands a text to the reader as a file. */
export function download(name: string, text: string, mime = "application/json"): void {
  const url = URL.createObjectURL(new Blob([text], { type: mime }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
