"""The wordings of a second story, written before their author had read the code that finds decisions.

Nothing is tuned on them: the bench says what they come to beside the first set, and which questions miss stays unsaid.
Decisions come in four ways here: plainly, in other people's ways, agreed to, and `oblique`, which names the thing
decided by what it does ("uploads of payroll go to MinIO") and so shares few words with a question that names it.
"""

from __future__ import annotations

from benches.parts.wordings import Kind, Wordings

KINDS = {
    "object store": Kind(
        ("MinIO", "Ceph", "Wasabi", "Backblaze", "SeaweedFS"),
        "Where do the uploads of {} end up", "Whatever people upload in {p} goes to {v} from now on.",
    ),
    "broker": Kind(
        ("Mosquitto", "EMQX", "VerneMQ", "HiveMQ", "Redpanda"),
        "Through what do the pieces of {} talk to each other", "The pieces of {p} will talk to each other over {v}.",
    ),
    "frontend": Kind(
        ("Svelte", "Vue", "Solid", "Angular", "Ember"),
        "With what are the screens of {} built", "From here on I want the screens of {p} written with {v}.",
    ),
    "linter": Kind(
        ("flake8", "pylint", "Biome", "ESLint", "golangci"),
        "What nags us about style in {}", "Style complaints in {p} will come from {v}, nothing else.",
    ),
    "region": Kind(
        ("Frankfurt", "Dublin", "Oregon", "Singapore", "Montreal"),
        "In which part of the world do the servers of {} stand", "The servers behind {p} are going to stand in {v}.",
    ),
    "typeface": Kind(
        ("Inter", "Lato", "Merriweather", "Fira Sans", "Roboto"),
        "What letters are the texts of {} set in", "Texts in {p} get set in {v}, the designer insisted.",
    ),
    "page size": Kind(
        ("25 rows", "50 rows", "80 rows", "120 rows", "200 rows"),
        "How many entries does {} list at once", "Lists in {p} stop after {v}, then people have to click on.",
    ),
    "backup window": Kind(
        ("2 am", "midnight", "Sunday noon", "half past four", "6 pm"),
        "When are copies of {} taken", "We copy everything of {p} at {v}, when nobody is on.",
    ),
    "release day": Kind(
        ("Tuesday", "Thursday", "the first Monday", "Wednesday", "every other Friday"),
        "When do new versions of {} go out", "New versions of {p} go out on {v}.",
    ),
    "maintainer": Kind(
        ("Priya", "Tomasz", "Ines", "Kwame", "Lena"),
        "Whom do we ring when {} breaks", "When {p} breaks, ring {v} first.",
    ),
    "licence": Kind(
        ("MIT", "Apache 2", "AGPL", "BSD", "MPL"),
        "Under what terms do we give {} away", "We give {p} away under {v}, the lawyers are happy with that.",
    ),
    "currency": Kind(
        ("euros", "dollars", "francs", "yen", "kroner"),
        "In what money does {} count", "Amounts in {p} are counted in {v}, everywhere.",
    ),
}  # fmt: skip

UNSEEN = Wordings(
    parts=(
        "dispatch",
        "payroll",
        "onboarding",
        "telemetry",
        "ledger",
        "routing",
        "archive",
        "calendar",
        "kiosk",
        "loyalty",
        "firmware",
        "tickets",
    ),
    kinds=KINDS,
    classes=("plain", "natural", "agreed", "oblique"),
    plain=(
        "Decision: {v} for {s}.",
        "I've decided on {v} for {s}.",
        "Please use {v} as {s}.",
        "{s} will be {v}.",
        "We are going to take {v} for {s}.",
        "Set {s} to {v}.",
    ),
    natural=(
        "Good morning! Quick one before the standup: {s}, we're doing {v}. Could you also tidy the notes later?",
        "Had a long call with Markus. Short version: {v} won, at least for {s}.",
        "I slept on it and {v} feels right for {s}.",
        "No more debate about {s} please, {v} and done.",
        "Boss says {v} for {s}. Not my favourite, but fine.",
        "Of the things we tried for {s}, {v} was the one that survived, so we keep it.",
        "btw {s} = {v}",
        "You can stop comparing options for {s}; the team voted and {v} came out on top.",
    ),
    asked=("What would you take for {s}?", "Any idea about {s}?", "We still have no {k} for {p}. Thoughts?"),
    agreed=(
        "I looked at the options. {v} would fit {s} best, I think. OK for you?",
        "There are three candidates, and I lean towards {v} for {s}, mostly because it is boring. Do you agree?",
        "How about {v} for {s}?",
        "I'd go with {v} as {s}: least work now, least work later.",
        "Two options remain for {s}. Unless you object I will set up {v}.",
    ),
    yes=(
        "Yep.",
        "Perfect, do it.",
        "+1",
        "Makes sense to me.",
        "No objections.",
        "Alright, let's do that.",
        "sure, why not",
        "You have my blessing.",
    ),
    back_plain=(
        "We no longer want {o} for {s}: {r}. Use {v}.",
        "Change of plan for {s}: {v} instead of {o}, because {r}.",
        "Replace {o} by {v} for {s}, {r}.",
    ),
    back_natural=(
        "Remember {o}, which we had picked for {s}? Turns out {r}. I'd rather have {v}, so {v} it shall be.",
        "Ugh, {r}. That kills {o} for {s}. {v} then.",
        "I was wrong about {s}. It should be {v}; with {o} we found that {r}.",
        "From Monday {s} moves over to {v}. Reason: {r}. Nobody will miss {o}.",
        "Scrap what I told you on {s}. {r}, hence {v} and no longer {o}.",
        "{o} has had its day: {r}. {s} gets {v}.",
    ),
    back_asked=("How is {p} doing?", "Did you see anything odd about {p}?"),
    back_agreed=(
        "One thing about {s}: {r}. My advice is to drop {o} and take {v}. May I?",
        "With {o} we have a problem in {s}, {r}. Would you be fine with {v} in its place?",
    ),
    now_same=(
        "Which {k} did we pick for {p} in the end?",
        "What's {s} at the moment?",
        "I forgot, what is {s} now?",
        "Tell me the current {k} of {p}.",
    ),
    then_same=(
        "What was {s} before we changed it, and for what reason did we?",
        "Why are we off the first {k} of {p}, and what was it?",
    ),
    then_other="{} before that changed, and what made us change it?",
    reasons=(
        "it ate two days of everybody's time",
        "the auditors turned it down",
        "support for it ends in autumn",
        "three customers complained within a week",
        "it costs twice what we were quoted",
        "it clashes with the night shift",
        "the numbers from the trial were awful",
        "our partner in Osaka cannot work with it",
        "it made the tests flaky",
        "management signed a contract elsewhere",
    ),
    work=(
        "Could you see why {p} was slow on Friday?",
        "Draft a mail to the {p} people about the outage.",
        "Count the errors in {p} since the weekend.",
        "Somebody asked about the {k} of {p}, can you check it is healthy?",
        "Move the constants of {p} into one file.",
        "Is there a test for the {k} of {p}?",
        "Clean up the {p} folder.",
        "What did the last release of {p} change?",
    ),
    budgets=(8_000, 4_000),
)
