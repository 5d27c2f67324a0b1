"""Who reads a context and answers, and who judges the answer: a Python function or an OpenAI-compatible address.

A purse holds what may be spent. Before each call the most that it can cost is set aside, and a call whose most does not
fit any more is not made; a call that failed counts as its most, for nobody knows what it was charged.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

TIMEOUT_S = 120
REQUEST_BYTES = 256  # what a provider may add around the messages, in tokens; a token has a byte at least
MILLION = 1_000_000
UNCHARGED = range(400, 500)  # of these statuses nothing was generated
READ = (
    "Below are parts of earlier talks between a user and an assistant, each with its date.\n\n{context}\n\n"
    "Today is {date}. The user asks: {question}\n"
    "Answer from these talks alone, as shortly as you can. Where they do not say it, answer that you cannot tell."
)
JUDGE = (
    "A user asked: {question}\nThe right answer is: {answer}\nAn assistant answered: {response}\n"
    "Does the assistant's answer say the same as the right one in what was asked? More detail is fine, another value "
    "is not; of times, one off by a single day, week or month is right where it was reckoned. Answer yes or no."
)
JUDGE_ABSTAINED = (
    "A user asked what their talks do not say: {question}\nWhy: {answer}\nAn assistant answered: {response}\n"
    "Does the assistant say that it cannot tell, or that this was never said? Answer yes or no."
)


class CapError(Exception):
    """What a call may cost does not fit the cap any more; the message says what was spent."""


class CallError(Exception):
    """A call failed; the message says how."""


class Purse:
    """What was spent of a cap in dollars; `keep` is called before a call with what is set aside for it."""

    def __init__(self, cap: float, spent: float = 0.0, keep: Callable[[], None] = lambda: None) -> None:
        self.cap = cap
        self.spent = spent
        self.aside = 0.0
        self.keep = keep

    def pay(self, most: float, call: Callable[[], tuple[Any, float | None]]) -> Any:
        """Makes a call that costs at most so much; CapError before it where that does not fit."""
        if self.spent + most > self.cap:
            raise CapError(f"the next call may cost ${most:.6f} and ${self.spent:.6f} of ${self.cap:.6f} are spent")
        self.aside = most
        self.keep()
        cost: float | None = None
        try:
            answer, cost = call()
        except CallError as error:
            cost = 0.0 if error.args[1:] == (True,) else None
            raise
        finally:
            self.spent += most if cost is None else cost
            self.aside = 0.0
        if cost is not None and cost > most:
            raise CapError(f"a call cost ${cost:.6f}, over the ${most:.6f} it was to cost at most")
        return answer


class Prices(NamedTuple):
    """What an address takes for a million tokens, in dollars, and how many it may answer with."""

    read: float
    written: float
    tokens_max: int


class Answerer(NamedTuple):
    """Answers and judges; each call goes through a purse."""

    read: Callable[[str, str, str], str]
    """The answer to a question, of a context, on a date."""
    judge: Callable[[str, str, str, bool], bool]
    """Whether a response says what the answer says; the last: whether it should say that it cannot tell."""


def function(name: str) -> Callable[..., Any]:
    """The Python function that `module:function` names; modules of the folder one stands in are found too."""
    module, _, attribute = name.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    value = getattr(importlib.import_module(module), attribute)
    if not callable(value):
        raise TypeError(f"{name} is no function")
    return value  # type: ignore[no-any-return]


def called(purse: Purse, name: str, most: float, key: str) -> Callable[..., Any]:
    """A function of the user's: it gives its answer, or a dict of that under `key` with its `cost` in dollars."""
    act = function(name)

    def ask(*arguments: Any) -> Any:
        def call() -> tuple[Any, float | None]:
            try:
                answer = act(*arguments)
            except Exception as error:
                raise CallError(f"{name}: {type(error).__name__}: {error}") from error
            if isinstance(answer, dict):
                return answer[key], float(answer.get("cost", 0.0))
            return answer, 0.0

        return purse.pay(most, call)

    return ask


def address_reader(ask: Callable[[str], str]) -> Callable[[str, str, str], str]:
    """Reads by an address."""
    return lambda question, context, date: ask(READ.format(question=question, context=context, date=date))


def address_judge(ask: Callable[[str], str]) -> Callable[[str, str, str, bool], bool]:
    """Judges by an address."""

    def judge(question: str, answer: str, response: str, abstains: bool) -> bool:
        form = JUDGE_ABSTAINED if abstains else JUDGE
        text = ask(form.format(question=question, answer=answer, response=response))
        return text.strip().strip("*\"'").casefold().startswith("yes")

    return judge


def address(purse: Purse, url: str, model: str, key: str | None, prices: Prices) -> Callable[[str], str]:
    """Asks an OpenAI-compatible address; what it takes is reckoned from the usage it tells."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url!r} is no http address")

    def ask(prompt: str) -> str:
        body = {"model": model, "messages": [{"role": "user", "content": prompt}], "max_tokens": prices.tokens_max}
        payload = json.dumps({**body, "temperature": 0}, ensure_ascii=False).encode()
        most = ((len(payload) + REQUEST_BYTES) * prices.read + prices.tokens_max * prices.written) / MILLION
        headers = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
        request = Request(url.rstrip("/") + "/chat/completions", payload, headers)
        answer: str = purse.pay(most, lambda: _answered(request, prices))
        return answer

    return ask


def _answered(request: Request, prices: Prices) -> tuple[str, float | None]:
    try:
        with urlopen(request, timeout=TIMEOUT_S) as response:
            read = json.load(response)
        text = read["choices"][0]["message"]["content"]
        usage = read.get("usage") or {}
    except HTTPError as error:
        raise CallError(f"the address answers {error.code}", error.code in UNCHARGED) from None
    except (URLError, OSError) as error:
        raise CallError(f"the address cannot be reached: {error}") from None
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise CallError(f"the address answers no chat completion: {error!r}") from None
    if not isinstance(text, str):
        raise CallError("the address answers without a text")
    counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    if not all(isinstance(count, int) for count in counts):
        return text, None  # it does not tell: the most is counted
    return text, (counts[0] * prices.read + counts[1] * prices.written) / MILLION
