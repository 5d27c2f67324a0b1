// The panes, in the order of their tabs: each is a file of its own and knows no other.
//
// A pane reads signals (state.ts, place.ts), asks through `useAsked` and `source`, moves with `go`,
// `toCall` and `inspect`, keeps what is worth a link in `param(...)`, and may import a style sheet of
// its own. `filmOf` gives the film of any session or what-if, `textAt` the text of a content.
import type { ComponentType } from "preact";
import { param } from "../place";
import "./panes.css";
import { compaction } from "./compaction";
import { diff } from "./diff";
import { history } from "./history";
import { known } from "./known";
import { lineage } from "./lineage";
import { messages } from "./messages";
import { notes } from "./notes";
import { search } from "./search";
import { session } from "./session";
import { sides } from "./sides";
import { until } from "./until";
import { vmql } from "./vmql";
import { whatif } from "./whatif";
import { why } from "./why";

export interface Pane {
  /** Its name in the URL (`pane=`). */
  id: string;
  title: string;
  /** The key that opens it. */
  key?: string;
  /** What the help says of it. */
  hint: string;
  /** Whether it takes the place of the context too. */
  wide?: boolean;
  View: ComponentType;
  /** What ↓ and ↑ do while it is open: its rows, instead of the pages of the context. */
  step?: (by: number) => void;
  /** What . and , do while it is open: the other call, the other side, the next version. */
  second?: (by: number) => void;
  /** Keys of its own, which act whether it is open or not. */
  keys?: { keys: string[]; does: string; act: () => void }[];
}

export const panes: readonly Pane[] = [session, why, history, lineage, compaction, diff, sides, whatif, search, known, vmql, messages, until, notes];

/** The pane of a name; without one, why the selected page is there, or the session where none is. */
export function paneOf(id: string): Pane {
  return panes.find((one) => one.id === id) ?? (param("page").value ? why : session);
}
