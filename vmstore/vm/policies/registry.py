"""The policies by name and version, by number for the log, and the one that is the default."""

from __future__ import annotations

from vmstore.core.page import PageType
from vmstore.core.text.suggest import LOOSE, suggest
from vmstore.errors import InputError
from vmstore.vm.policies.demand import Demand1
from vmstore.vm.policies.importance import Importance1
from vmstore.vm.policies.kinds import Demand2
from vmstore.vm.policies.lfu import LFU1
from vmstore.vm.policies.lru import LRU1
from vmstore.vm.policies.min_residency import CLASS_MAX
from vmstore.vm.policies.modality import Modality1
from vmstore.vm.policies.ordered_queues import OrderedQueues
from vmstore.vm.policies.policy import Policy
from vmstore.vm.policies.recency import Recency1, Recency2
from vmstore.vm.policies.s3fifo import S3FIFO1

DEFAULT = "default"
PARAMETER_MAX = 10**6  # keeps scores within a class

Shipped = type[OrderedQueues] | type[S3FIFO1]
"""A class of policies: its name, version and number, its parameters and what they are where nobody says."""

# Old versions stay: what they decided is decided again when a session is checked.
SHIPPED: tuple[Shipped, ...] = (LRU1, Importance1, Modality1, Recency1, LFU1, S3FIFO1, Demand1, Recency2, Demand2)
CHOSEN = "demand"  # what `default` names, specs/decisions/0013-the-default-policy.md


def full_name(shipped: Shipped) -> str:
    """A policy's name with its version, as `lru@1`."""
    return f"{shipped.NAME}@{shipped.VERSION}"


def names() -> list[str]:
    """Everything a policy may be called: `default`, the newest version of a name, and every version."""
    short = dict.fromkeys(shipped.NAME for shipped in SHIPPED)
    return [DEFAULT, *short, *map(full_name, SHIPPED)]


def shipped(name: str) -> Shipped:
    """The policy of a name, `lru` for its newest version; InputError lists the names."""
    wanted = CHOSEN if name == DEFAULT else name
    found = [one for one in SHIPPED if wanted in (one.NAME, full_name(one))]
    if not found:
        near = suggest(name, names(), LOOSE)
        hint = f"; did you mean {near!r}?" if near else ""
        raise InputError(f"there is no policy {name!r}; the policies are {', '.join(names())}{hint}", code="no-policy")
    return max(found, key=lambda one: one.VERSION)


def numbered(number: int) -> Shipped:
    """The policy the log means by a number; InputError where a later version of vmstore made it."""
    for policy in SHIPPED:
        if number == policy.NUMBER:
            return policy
    raise InputError(
        f"no policy has the number {number}: a later version of vmstore decided this; read it with that",
        code="no-policy",
    )


def policy(name: str, budget: int, **parameters: int) -> Policy:
    """A new policy by name for a budget in tokens; InputError names a parameter that it cannot take.

    Beside a policy's own parameters every type of page is one: the class it is kept in, from 0 to 9.
    """
    made = shipped(name)
    types = [type_.word for type_ in PageType]
    for parameter, value in parameters.items():
        if parameter not in made.PARAMETERS and parameter not in types:
            known = ", ".join([*made.PARAMETERS, *types])
            raise InputError(f"policy {name!r} has no parameter {parameter!r}; it has {known}")
        low = made.LOWEST.get(parameter, 0)
        high = CLASS_MAX if parameter in types else PARAMETER_MAX
        if not low <= value <= high:
            raise InputError(f"parameter {parameter!r} of policy {name!r} is {value}; it is from {low} to {high:,}")
    return made(budget, parameters)
