"""Finds sessions by name, and opens them: recorded ones, and live ones, which manage their memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vmstore.core.redaction import Redaction, policy_of
from vmstore.errors import ConflictError, UnknownError
from vmstore.namespace.namespace import Namespace, session_name
from vmstore.views.branch import NEVER
from vmstore.views.projection import Progress
from vmstore.views.projectors.decisions import in_force

if TYPE_CHECKING:
    from vmstore.engine.head import NewSession
    from vmstore.store.live.live_session import Live
    from vmstore.store.recorder import CallRecorder
    from vmstore.store.session import Session


class Sessions:
    """The sessions of a namespace by name; the caller holds its lock."""

    def __init__(self, namespace: Namespace, recording: Callable[[], CallRecorder]) -> None:
        self._ns = namespace
        self._recording = recording

    def find(self, name: str, *, create: bool, owner: dict[str, str | None], redaction: str | None = None) -> Session:
        """The session of a name, opened where `create` says so; `owner` is recorded at its beginning."""
        from vmstore.store.session import Session

        key = self._known(name, redaction)
        if key is None and create:
            opening = _opening(name, owner, redaction)
            key = self._ns.retried(lambda: self._opened(opening))
        if key is None:
            names = [
                row[0] for row in self._ns.views.execute("SELECT name FROM sessions WHERE hidden = 0 ORDER BY name")
            ]
            raise UnknownError(f"there is no session {name!r}; {self._ns.nearest(name, names)}", code="no-session")
        session, runtime = Session(self._ns, self._recording, key, name), self._ns.live.get(key)
        managed = runtime is not None and runtime.state.settings is not None
        if managed or in_force(session._lane(), NEVER) is not None:
            from vmstore.store.live.live_session import Live

            return Live(self._ns, self._recording, key, name)
        return session

    def live(
        self, name: str, *, owner: dict[str, str | None], options: dict[str, Any], redaction: str | None = None
    ) -> Live:
        """The live session of a name, opened where there is none; `owner` is recorded at its beginning."""
        from vmstore.store.live.continuation import continuation, continues
        from vmstore.store.live.live_session import Live
        from vmstore.store.live.open_live import begun

        key, opening = self._known(name, redaction), _opening(name, owner, redaction)
        if key is not None:
            self._same(key, owner)
        earlier = options.pop("continues", None)
        if key is not None and earlier is not None:
            continues(self._ns.session_info(key), earlier)
        elif key is None and (earlier is not None or options.get("remembers") == "user"):
            before = None if earlier is None else self.find(earlier, create=False, owner={})
            opening, options["bring"] = continuation(self._ns, before, opening, options.get("l0_tokens_max", 0))
        return Live(self._ns, self._recording, begun(self._ns, self._recording, opening, **options), name)

    def _known(self, name: str, redaction: str | None) -> int | None:
        """The key of the session of a name, from now on with the redaction that is given; None where there is none."""
        key = self._ns.key(session_name(name))
        policy = None if redaction is None else policy_of(redaction)
        if policy is not None and key is not None:
            self._configure(key, policy)
        return key

    def redrive(self, source: str, name: str, settings: dict[str, Any], progress: Progress | None) -> Live:
        """A new live session `name` into which all of another is copied."""
        from vmstore.store.live.live_session import Live
        from vmstore.store.live.redrive import redrive

        recorded = self.find(source, create=False, owner={})
        if self._ns.key(session_name(name)) is not None:
            raise ConflictError(f"there is a session {name!r} already; re-drive under another name")
        key = redrive(self._ns, recorded._lane(), name, settings, progress)
        self._ns.follow()
        return Live(self._ns, self._recording, key, name)

    def _same(self, key: int, owner: dict[str, str | None]) -> None:
        """Refuses another owner than the session was opened with: ownership stays."""
        if any(owner.values()):
            info = self._ns.session_info(key)
            for word, text in owner.items():
                known = getattr(info, word)
                if text is not None and text != known:
                    raise ConflictError(
                        f"session {info.session!r} began with {word} {known!r}, which stays; "
                        f"leave {word} out, or open another session for {text!r}",
                        code="other-user",
                    )

    def _configure(self, key: int, policy: Redaction) -> None:
        """Gives a session another redaction, from here on; nothing is written where it has it already."""
        from vmstore.engine.redaction_policy import change

        def write() -> None:
            engine, now = self._ns.engine, self._ns.clock.now()
            batch = engine.batch(key)
            change(engine, batch, policy, now)
            if not batch.empty:
                batch.commit(now)

        self._ns.retried(write)

    def _opened(self, opening: NewSession) -> int:
        """The key of a session, opened where nobody did."""
        key = self._ns.key(opening.name)
        if key is None:
            now = self._ns.clock.now()
            key = self._ns.begin(opening, now).commit(now)[-1].session
            self._ns.follow()
        return key


def _opening(name: str, owner: dict[str, str | None], redaction: str | None) -> NewSession:
    """How a session begins."""
    from vmstore.engine.head import NewSession

    meta = {word: text for word, text in owner.items() if text is not None}
    return NewSession(name, meta, redaction=None if redaction is None else policy_of(redaction))
