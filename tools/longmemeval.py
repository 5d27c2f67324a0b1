"""Measures recall on a file in the shape of LongMemEval: `python3 tools/longmemeval.py FILE [--reader ...]`.

Each question's talks are imported into a store of their own, and what is found of its evidence as of the question's
date is told by kind of question: for vmstore, plain BM25, the newest turns that fit and, as a bound, all of them.

    python3 tools/longmemeval.py longmemeval_s.json
    python3 tools/longmemeval.py longmemeval_s.json --budget 1000 --budget 4000 --limit 50
    python3 tools/longmemeval.py FILE --reader mine:read --judge mine:judge --cost-cap 5 --call-cost-max 0.02
    python3 tools/longmemeval.py FILE --reader http://127.0.0.1:8000/v1 --judge http://127.0.0.1:8000/v1 \
        --model M --price 0.4 1.6 --cost-cap 5

A reader `module:function` gets (question, context, date) and gives a text, or a dict of `text` and `cost`; a judge gets
(question, answer, response, whether it should abstain) and gives a bool, or a dict of `correct` and `cost`. Costs are
dollars. What was done is kept in the outcome after each question: the same command goes on where it ended.

Exit code 0 when all was measured; 1 when it could not be, with the reason; 3 when it stopped at the cap.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bootstrap import ROOT, RefusedError, entry, say

sys.path.insert(0, str(ROOT))  # the checkout's own vmstore, wherever this Python has another

from benches.parts.answerers import (
    Answerer,
    CallError,
    CapError,
    Prices,
    Purse,
    address,
    address_judge,
    address_reader,
    called,
)
from benches.parts.haystack import DatasetError, Haystack, contenders, haystacks, scores

BUDGETS = (1_000, 4_000)
NAMES = ("vmstore", "bm25", "window", "full")
FAILURES_MAX = 5  # calls that fail one after the other
STOPPED = 3


def main(arguments: Sequence[str]) -> int:
    """Measures, and prints what it found."""
    asked = parsed(arguments)
    try:
        questions = haystacks(asked.file)
    except DatasetError as error:
        raise RefusedError(str(error)) from None
    if asked.kind:
        questions = [question for question in questions if question.kind in asked.kind]
    run = Run(asked, questions[: asked.limit])
    stopped = run.go()
    print("\n".join(run.tables()))
    if stopped:
        say(f"stopped: {stopped}")
    return STOPPED if stopped else 0


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="longmemeval.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--budget", type=int, action="append", metavar="TOKENS", help=f"default {BUDGETS}")
    parser.add_argument("--read-budget", type=int, metavar="TOKENS", help="of the reader's context; the largest budget")
    parser.add_argument("--kind", action="append", help="only questions of this kind")
    parser.add_argument("--limit", type=int, help="only the first so many questions")
    parser.add_argument("--outcome", type=Path, help="default: FILE with .outcome.json")
    parser.add_argument("--reader", metavar="MODULE:FUNCTION|URL")
    parser.add_argument("--judge", metavar="MODULE:FUNCTION|URL")
    parser.add_argument("--read", action="append", choices=NAMES, help="contenders that are read; default vmstore")
    parser.add_argument("--model", default="")
    parser.add_argument("--key-variable", default="OPENAI_API_KEY", help="environment variable with the key")
    parser.add_argument("--price", type=float, nargs=2, metavar=("IN", "OUT"), help="dollars for a million tokens")
    parser.add_argument("--tokens-max", type=int, default=256, help="tokens of an answer")
    parser.add_argument("--cost-cap", type=float, metavar="DOLLARS")
    parser.add_argument("--call-cost-max", type=float, default=0.0, metavar="DOLLARS", help="of a function's call")
    asked = parser.parse_args(arguments)
    asked.budget = asked.budget or list(BUDGETS)
    asked.read = asked.read or ["vmstore"]
    asked.outcome = asked.outcome or asked.file.with_suffix(".outcome.json")
    if bool(asked.reader) != bool(asked.judge):
        raise RefusedError("--reader and --judge go together: an answer that nobody judges is no figure")
    if asked.reader and asked.cost_cap is None:
        raise RefusedError("--reader needs --cost-cap: the dollars after which it stops; 0 where nothing costs")
    if any("://" in (case or "") for case in (asked.reader, asked.judge)) and not (asked.price and asked.model):
        raise RefusedError("an address needs --model and --price IN OUT, dollars for a million tokens")
    return asked


class Run:
    """One run, which goes on where the last one with the same outcome ended."""

    def __init__(self, asked: argparse.Namespace, questions: Sequence[Haystack]) -> None:
        self.asked = asked
        self.questions = questions
        self.budget = asked.read_budget or max(asked.budget)
        names = ("budget", "read_budget", "reader", "judge", "model", "price", "tokens_max")
        settings = {name: getattr(asked, name) for name in names}
        digest = hashlib.sha256(asked.file.read_bytes()).hexdigest()
        self.outcome: dict[str, Any] = {
            "dataset": {"file": asked.file.name, "sha256": digest},
            "settings": settings,
            "spent": 0.0,
            "aside": 0.0,
            "stopped": None,
            "questions": {},
        }
        self._resume()
        self.purse = Purse(asked.cost_cap or 0.0, self.outcome["spent"] + self.outcome["aside"], self.keep)
        self.answerer = self._answerer() if asked.reader else None
        self._failures = 0

    def _resume(self) -> None:
        path = self.asked.outcome
        if not path.is_file():
            return
        try:
            read = json.loads(path.read_text("utf-8"))
            same = all(read[name] == self.outcome[name] for name in ("dataset", "settings"))
        except (ValueError, LookupError, TypeError):
            raise RefusedError(f"{path} is no outcome of this tool; move it, or give another --outcome") from None
        if not same:
            raise RefusedError(f"{path} is of another file or other settings; move it, or give another --outcome")
        self.outcome = {**read, "stopped": None}

    def _answerer(self) -> Answerer:
        def ask() -> Any:
            key = os.environ.get(self.asked.key_variable)
            prices = Prices(*self.asked.price, self.asked.tokens_max)
            return lambda url: address(self.purse, url, self.asked.model, key, prices)

        reader, judge, most = self.asked.reader, self.asked.judge, self.asked.call_cost_max
        try:
            return Answerer(
                address_reader(ask()(reader)) if "://" in reader else called(self.purse, reader, most, "text"),
                address_judge(ask()(judge)) if "://" in judge else called(self.purse, judge, most, "correct"),
            )
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            raise RefusedError(f"reader {reader!r}, judge {judge!r}: {error}") from None

    def keep(self) -> None:
        """Writes the outcome, whole or not at all."""
        self.outcome["spent"], self.outcome["aside"] = self.purse.spent, self.purse.aside
        aside = self.asked.outcome.with_suffix(".part")
        aside.write_text(json.dumps(self.outcome, indent=1, ensure_ascii=False) + "\n", "utf-8")
        os.replace(aside, self.asked.outcome)

    def go(self) -> str | None:
        """Measures what is left; why it stopped, where it did before the end."""
        try:
            for number, question in enumerate(self.questions, 1):
                done = self.outcome["questions"].setdefault(
                    question.name, {"kind": question.kind, "found": {}, "answers": {}}
                )
                if self._is_done(done):
                    continue
                say(f"{number} of {len(self.questions)}: {question.name}")
                for name, turns in contenders(question):
                    if name not in done["found"]:
                        done["found"][name] = scores(question, turns, self.asked.budget)
                    if self.answerer and name in self.asked.read and "correct" not in done["answers"].get(name, {}):
                        self._answer(question, turns.within(self.budget)[1], done["answers"].setdefault(name, {}))
                self.keep()
        except CapError as stop:
            self.outcome["stopped"] = str(stop)
        self.keep()
        stopped: str | None = self.outcome["stopped"]
        return stopped

    def _is_done(self, done: dict[str, Any]) -> bool:
        read = self.asked.read if self.answerer else ()
        return set(NAMES) <= set(done["found"]) and all("correct" in done["answers"].get(name, {}) for name in read)

    def _answer(self, haystack: Haystack, context: str, fields: dict[str, Any]) -> None:
        """Notes the answer and whether it is right; what was read and not judged is only judged."""
        assert self.answerer is not None, "it is asked where there is one"
        fields.pop("error", None)
        try:
            if "response" not in fields:
                fields["response"] = self.answerer.read(haystack.question, context, haystack.date)
            fields["correct"] = bool(
                self.answerer.judge(haystack.question, haystack.answer, fields["response"], haystack.abstains)
            )
            self._failures = 0
        except CallError as error:
            fields["error"] = str(error.args[0])
            self._failures += 1
            if self._failures >= FAILURES_MAX:
                raise CapError(
                    f"{self._failures} calls failed one after the other, the last: {fields['error']}"
                ) from None

    # ---- what it found

    def tables(self) -> Iterator[str]:
        """The figures by kind of question."""
        done = [
            self.outcome["questions"][question.name]
            for question in self.questions
            if question.name in self.outcome["questions"]
        ]
        kinds = [*dict.fromkeys(record["kind"] for record in done), "all"]
        for name in NAMES:
            rows = {kind: [record for record in done if kind in (record["kind"], "all")] for kind in kinds}
            columns = list(dict.fromkeys(key for record in done for key in record["found"].get(name, {})))
            yield f"\n{name:26}" + "".join(f"{column:>17}" for column in ("questions", *columns, "correct"))
            for kind, some in rows.items():
                figures = [_mean([record["found"].get(name, {}).get(column) for record in some]) for column in columns]
                right = _mean([record["answers"].get(name, {}).get("correct") for record in some])
                yield f"{kind:26}{len(some):17}" + "".join(f"{figure:>17}" for figure in (*figures, right))
        yield f"\n{len(done)} of {len(self.questions)} questions; ${self.outcome['spent']:.4f} spent"


def _mean(values: Sequence[float | None]) -> str:
    """The mean of what there is of some figures."""
    there = [float(value) for value in values if value is not None]
    if not there:
        return "-"
    mean = sum(there) / len(there)
    return f"{mean:,.0f}" if mean > 1 else f"{mean:.3f}"


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    entry(main)
