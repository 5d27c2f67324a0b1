// Which texts are open: the URL names their pages, so that a link shows them open.
import { computed } from "@preact/signals";
import { go, param } from "./place";

const OPEN_MAX = 30;

export const opened = computed(() => new Set(param("open").value.split(",").filter(Boolean)));

export function toggleOpen(name: string): void {
  const next = new Set(opened.peek());
  if (!next.delete(name)) next.add(name);
  go({ open: [...next].slice(-OPEN_MAX).join(",") }, { step: true });
}
