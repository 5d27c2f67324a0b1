// The page: timeline above, events, context and one pane below.
import { effect } from "@preact/signals";
import { render } from "preact";
import "./style.css";
import { Context } from "./context";
import { said } from "./copy";
import { Events } from "./events";
import { Help } from "./help";
import { Inspector, pane } from "./inspector";
import { listen } from "./keys";
import { param } from "./place";
import { Problem } from "./parts/content";
import { Overview } from "./sessions";
import { callNumber, film, isOverview, loading, start, store, trouble, which } from "./state";
import { Timeline } from "./timeline";
import { Top } from "./top";

function Page() {
  const failed = trouble.value;
  const empty = store.value?.sessions.length === 0;
  return (
    <>
      <Top />
      {failed && <Problem trouble={failed} />}
      {empty && (
        <div class="empty big">
          <b>This store has no sessions yet.</b>
          <span>Import one with `vmstore import STORE FILE`, or record one. It appears here as soon as it is written.</span>
        </div>
      )}
      {isOverview.value ? (
        <Overview />
      ) : film.value ? (
        <>
          <Timeline />
          <main class={`${pane.value.wide ? "wide" : ""} ${param("events").value ? "with-events" : ""}`}>
            {param("events").value && <Events />}
            {!pane.value.wide && <Context />}
            <Inspector />
          </main>
        </>
      ) : (
        !failed && !empty && <div class="empty big"><progress /><span>{loading.value}…</span></div>
      )}
      {loading.value && film.value && !isOverview.value && <div class="busy" role="status"><progress /> {loading.value}…</div>}
      {said.value && <div class="said" role="status">{said.value}</div>}
      <Help />
    </>
  );
}

effect(() => {
  const session = isOverview.value ? "" : which.value.session;
  document.title = session ? `${session}${film.value?.calls ? ` call ${callNumber.value}` : ""} · vmstore` : "vmstore";
});
listen();
render(<Page />, document.getElementById("page")!);
void start();
