// What is open above the page: it takes the keys first, and Escape closes it.
import { signal } from "@preact/signals";

export const popup = signal<"" | "help" | "sessions">("");
