"""What is measured of a session's memory, by name; what each says stands in specs/replay.md."""

from __future__ import annotations

from vmstore.core.page import WordEnum


class Metric(WordEnum):
    """A number of a session's memory."""

    TURNS = 0
    CALLS = 1
    REFERENCES = 2
    HITS = 3
    FAULTS = 4
    SERVED = 5
    DENIED = 6
    FAULT_TOKENS = 7
    FAULT_RATE = 8
    HIT_RATE = 9
    FAULTS_A_TURN = 10
    FAULTS_A_TURN_MAX = 11
    MODEL_FAULTS = 12
    THRASH_INDEX = 13
    THRASH_PEAK = 14
    THRASH_NOW = 15
    EVICTIONS = 16
    FREED_TOKENS = 17
    COMPRESSIONS = 18
    PREFETCHES = 19
    PREFETCH_HITS = 20
    PREFETCH_HIT_RATE = 21
    UTILISATION = 22
    UTILISATION_PEAK = 23
    L0_PEAK = 24
    L0_TOKENS = 25
    L0_AVAILABLE = 26
    CALLS_OVER_BUDGET = 27
    PREFIX_VOIDED = 28
    PREFIX_VOIDED_A_CALL = 29
    PREFIX_COST = 30
    FORMS = 31
    COMPRESSION = 32
    RECALLS = 33
    RECALL_SUCCESS = 34
    EFFECTIVE = 35
    EVICTIONS_A_MINUTE = 36
    FAULT_LATENCY_P95_MS = 37
    OVERHEAD = 38
    CALL_COST = 39
    INVALIDATED = 50
    PAGES_L0 = 40
    PAGES_L2 = 41
    SHARE_USER_REQUESTED_RECALL = 42
    SUCCESS_USER_REQUESTED_RECALL = 43
    SHARE_RESOLVE_REFERENCE = 44
    SUCCESS_RESOLVE_REFERENCE = 45
    SHARE_TOOL_PREREQ = 46
    SUCCESS_TOOL_PREREQ = 47
    SHARE_SPECULATIVE = 48
    SUCCESS_SPECULATIVE = 49
