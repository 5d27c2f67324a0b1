"""Secrets that a header, an address, a cookie or an option of a command carries."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vmstore.redact.assignments import is_placeholder, random
from vmstore.redact.span import Literal, ScannedText, SecretKind, SecretSpan, TextScan
from vmstore.redact.vendor_keys import pair

_BEARER = re.compile(r"(?i:bearer)[ \t]+(?=[\w.~+/=-]{0,80}\d)([\w.~+/-]{16,}+={0,2})")
_BASIC = re.compile(r"(?i:basic)[ \t]+([A-Za-z0-9+/]{8,}+={0,2})(?![\w+/=])")
_HEADER = re.compile(
    r"(?i:authorization)\\?[\"']?[ \t]*(?:[:=]|,(?=[ \t]*[\"']))[ \t]*\\?[\"']?(?i:token |apikey |key |digest |bot"
    r" |ssws |splunk |genie"
    r"key |snowflake token=|token token=|aws |sharedkey |negotiate |ntlm |oauth )?\\?[\"']?(?=[\w.~+/=-]{0,80}\d)("
    r"[\w.~+/:-]{16,}+={0,2})"
)
_ADDRESS = re.compile(r"://[^\s/:@\"'`<>?#]{0,100}:(?![$<{*\[%])([^\s/\"'`<>]+)@[\w\[]")
_ALONE = re.compile(r"://([A-Za-z0-9_~-]{20,}+)@(?![\w.-]{0,40}(?:ingest|sentry))[\w\[]")
_USER = re.compile(r"-[uU](?:ser)?[ =]*[\"']?[\w.@/\\-]{1,80}:(?![$<{*\[%])([^\s\"':]{4,}+)")


def _group(pattern: re.Pattern[str], text: ScannedText, place: int, kind: SecretKind) -> SecretSpan | None:
    found = pattern.match(text.text, place)
    return SecretSpan(*found.span(1), kind) if found and not is_placeholder(found[1]) else None


def _bearer(text: ScannedText, place: int) -> SecretSpan | None:
    return _group(_BEARER, text, place, SecretKind.AUTHORIZATION)


def _basic(text: ScannedText, place: int) -> SecretSpan | None:
    """The decoded name and password of a `Basic` header."""
    found = _BASIC.match(text.text, place)
    return SecretSpan(*found.span(1), SecretKind.AUTHORIZATION) if found and pair(found[1]) else None


def _header(text: ScannedText, place: int) -> SecretSpan | None:
    found = _group(_HEADER, text, place, SecretKind.AUTHORIZATION)
    return None if found and text.text.startswith("AWS4-", found.start) else found


def _address(text: ScannedText, place: int) -> SecretSpan | None:
    """The password before the `@` of an address; one that stands alone there is a token where it looks random."""
    found = _group(_ADDRESS, text, place, SecretKind.PASSWORD)
    if found is not None:
        address = text.low[found.start : found.end]
        if address in _INSTEAD and random(text.text[place + 3 : found.start - 1]):
            return SecretSpan(place + 3, found.start - 1, SecretKind.SECRET)
        return found if address not in _SHOWN | _INSTEAD else None
    alone = _group(_ALONE, text, place, SecretKind.SECRET)
    return alone if alone and random(text.text[alone.start : alone.end]) else None


_SHOWN = frozenset(["password", "passwd", "pass", "pwd", "secret", "token"])
_INSTEAD = frozenset(["x-oauth-basic", "x-access-token", "oauth2", "x-token-auth", "x", "token", "api", "api_token"])
"""What stands for a password where the name is the secret."""


def _user(text: ScannedText, place: int) -> SecretSpan | None:
    """The password of `curl -u name:password`; other commands mean other things by it."""
    found = _USER.match(text.text, place)
    if found is None or not any(
        program in text.low[max(place - 200, 0) : place] for program in ("curl", "wget", "http")
    ):
        return None
    return SecretSpan(*found.span(1), SecretKind.PASSWORD)


# ---- options of commands, and calls: what they take, by the name of the command

_ARG = r"(?P<q>[\"']?)(?P<value>(?<=[\"'])[^\"'\n]{4,}+|(?![$<{*\[%-])[^\s\"'`]{4,}+)"
_STRING = r"[\"'`](?P<value>[^\"'`\s]{6,}+)[\"'`]"
_ANY = r"[^\n,()]{1,120}"
COMMANDS: tuple[tuple[str, str], ...] = (
    ("sshpass", rf"[^\n|]{{0,40}}?\s-p ?{_ARG}"),
    ("mysql", rf"[^\n|]{{0,160}}?\s-p(?!\d+:\d){_ARG}"),
    ("mariadb", rf"[^\n|]{{0,160}}?\s-p(?!\d+:\d){_ARG}"),
    ("redis-cli", rf"[^\n|]{{0,120}}?\s(?:-a|--pass) {_ARG}"),
    ("login", rf"[^\n|]{{0,160}}?\s-(?:p|password) {_ARG}"),
    ("net use", r" [^\n|/]{2,100}? (?P<value>(?!\\|[A-Za-z]:|/|\*)[^\s/]{4,100})(?= /| *\n| *$)"),
    ("net user", r" \S{1,40} (?!/|\*)(?P<value>\S{4,100}) /"),
    ("htpasswd", rf" -[a-zA-Z]*b[a-zA-Z]* \S{{1,100}} \S{{1,60}} {_ARG}"),
    ("smbclient", rf"[^\n|]{{0,160}}?\s-U ?[\"']?[^%\s]{{1,60}}%{_ARG}"),
    ("mount", r"[^\n|]{0,160}?[, ]password=(?P<value>[^\s,]{3,100})"),
    *(
        (one, rf"[^\n|]{{0,160}}?\s-w {_ARG}")
        for one in ("ldapsearch", "ldapmodify", "ldapadd", "ldapwhoami", "ldappasswd")
    ),
    *(
        (one, rf"[^\n|]{{0,160}}?\s-P ?{_ARG}")
        for one in ("unzip ", "zip ", "ipmitool", "sqlcmd", "mosquitto_pub", "mosquitto_sub", "bcp ")
    ),
    *(
        (one, rf"[^\n|]{{0,160}}?\s-p ?{_ARG}")
        for one in (
            "7z ",
            "mongosh",
            "mongo ",
            "mongodump",
            "mongorestore",
            "cqlsh",
            "xfreerdp",
            "rdesktop",
            "psexec",
            "telnet ",
            "evil-winrm",
            "vncpasswd",
        )
    ),
    *(
        (one, rf"[^\n|]{{0,160}}?(?:/p:|/pass(?:word)?:|-p:){_ARG}")
        for one in ("xfreerdp", "cmdkey", "mstsc", "schtasks", "psexec", "runas")
    ),
    ("lftp", rf"[^\n|]{{0,60}}?\s-u [^,\s]{{1,60}},{_ARG}"),
    ("openssl", rf"[^\n|]{{0,160}}?\s-pass(?:in|out)? pass:{_ARG}"),
    ("openssl", rf"[^\n|]{{0,160}}?\s-(?:K|k) {_ARG}"),
    ("rabbitmqctl", rf" (?:add_user|change_password) \S{{1,60}} {_ARG}"),
    ("snmp", rf"[^\n|]{{0,160}}?\s-A {_ARG}"),
    ("snmp", rf"[^\n|]{{0,160}}?\s-X {_ARG}"),
    ("snmp-server community", r" (?!public|private)(?P<value>\S{4,100})"),
    *((f"enable {one}", r" (?:level \d+ )?(?:\d )?(?P<value>\S{4,100})\s*$") for one in ("password", "secret")),
    ("username", r" \S{1,40} (?:privilege \d+ )?(?:password|secret) (?:\d )?(?P<value>\S{4,100})"),
    ("kinit", rf"[^\n]{{0,80}}?<<< ?{_ARG}"),
    ("sudo -s", rf"[^\n]{{0,80}}?<<< ?{_ARG}"),
    ("identified by", rf" {_ARG}"),
    ("identified with", rf" [^\n]{{1,40}}? (?:by|as) {_ARG}"),
    ("converttosecurestring", rf"[^\n]{{0,40}}?{_STRING}"),
    ("convertto-securestring", rf"[^\n]{{0,40}}?{_STRING}"),
    ("networkcredential(", rf"{_ANY}, ?{_STRING}"),
    ("basicauth(", rf"{_ANY}, ?{_STRING}"),
    ("basic_auth(", rf"{_ANY}, ?{_STRING}"),
    ("passwordauthentication(", rf"{_ANY}, ?{_STRING}"),
    ("httpdigestauth(", rf"{_ANY}, ?{_STRING}"),
    ("basicawscredentials(", rf"{_ANY}, ?{_STRING}"),
    ("awsbasiccredentials.create(", rf"{_ANY}, ?{_STRING}"),
    ("staticcredentialsprovider(", rf"{_ANY}, ?{_STRING}"),
    ("new pdo(", rf"[^\n()]{{1,200}}?[\"'], ?[^,\n]{{1,60}}, ?{_STRING}"),
    ("mysqli(", rf"{_ANY}, ?[^,\n]{{1,60}}, ?{_STRING}"),
    ("mysqli_connect(", rf"{_ANY}, ?[^,\n]{{1,60}}, ?{_STRING}"),
    ("getconnection(", rf"{_ANY}, ?[^,\n]{{1,60}}, ?{_STRING}"),
    (".login(", rf"{_ANY}, ?{_STRING}"),
    (".authenticate(", rf"{_ANY}, ?{_STRING}"),
    ("bind_s(", rf"[^\n()]{{1,120}}?, ?{_STRING}"),
    ("ldap_bind(", rf"[^\n()]{{1,160}}?, ?{_STRING}"),
    *(
        (one, rf"[\"'][^\"'\n]{{1,60}}[\"'], ?[\"'][^\"'\n]{{1,40}}[\"'], ?{_STRING}")
        for one in ("connect(", "sequelize(")
    ),
    ("curlopt_userpwd", r", ?[\"'][^:\"']{1,60}:(?P<value>[^\"'\s]{4,}+)[\"']"),
    ("auth=(", rf"[\"'`][^\"'`\n]{{1,80}}[\"'`], ?{_STRING}"),
    ("jdbc:oracle:thin:", r"[^\s/:@]{1,60}/(?P<value>[^\s/@]{3,100})@"),
    ("sqlplus", r" (?:-\w+ )*[^\s/:@]{1,60}/(?P<value>[^\s/@]{3,100})@"),
    ("private-key <(echo", r" (?P<value>[\w+/=]{40,})"),
    ("preshared-key <(echo", r" (?P<value>[\w+/=]{40,})"),
    ("unseal key", r"[ \t]\d{1,2}: ?(?P<value>[\w+/=]{20,}+)"),
    ("tunnel run --token", rf"[ =]{_ARG}"),
    ("setup key", r"[^\n:]{0,60}: ?(?P<value>[A-Z2-7]{16,}+|[A-Z2-7]{4}(?:[ -][A-Z2-7]{4}){3,}+)"),
    ("secret key", r"[^\n:]{0,60}: ?(?P<value>[A-Z2-7]{4}(?:[ -][A-Z2-7]{4}){3,}+)"),
    ("authenticator", r"[^\n:]{0,60}: ?(?P<value>[A-Z2-7]{16,}+|[A-Z2-7]{4}(?:[ -][A-Z2-7]{4}){3,}+)"),
    ("totp", r"[^\n:]{0,60}: ?(?P<value>[A-Z2-7]{16,}+|[A-Z2-7]{4}(?:[ -][A-Z2-7]{4}){3,}+)"),
    ("2fa", r"[^\n:]{0,60}: ?(?P<value>[A-Z2-7]{16,}+|[A-Z2-7]{4}(?:[ -][A-Z2-7]{4}){3,}+)"),
    ("wandb login", r" (?:--?\w+ )*(?P<value>[0-9a-f]{40})"),
    ("auth plain", r" (?P<value>[A-Za-z0-9+/]{12,}={0,2})"),
    ("ssh-keygen", rf"[^\n|]{{0,160}}?\s-N {_ARG}"),
    ("mc alias set", rf" \S{{1,60}} \S{{1,100}} \S{{1,100}} {_ARG}"),
    ("swaks", rf"[^\n|]{{0,200}}?\s-ap {_ARG}"),
    ("http", rf"[^\n|]{{0,100}}?\s(?:-a|--auth)[ =][\w.@-]{{1,60}}:{_ARG}"),
    ("--auth", rf"[ =][\w.@-]{{1,60}}:{_ARG}"),
    ('"auth"', r"\s*:\s*\"(?P<value>[A-Za-z0-9+/]{8,}={0,2})\""),
)
"""A literal in small letters, and what follows it up to the `value`."""


_OPTION = re.compile(r"\[\^\\n\|?\]\{0,(\d+)\}\?\\s(-\w)")  # of a row, how far behind the literal an option may stand


def _command(literal: str, follows: str) -> Literal:
    more = "" if follows.startswith("[^\\n") else r"\w{0,8}?"
    shape = re.compile(r"(?i:" + re.escape(literal.rstrip()) + ")" + more + follows, re.MULTILINE)
    option = _OPTION.match(follows)

    def at(text: ScannedText, place: int) -> SecretSpan | None:
        if option is not None and text.text.find(option[2], place, place + int(option[1]) + 20) < 0:
            return None
        found = shape.match(text.text, place)
        if found is None or is_placeholder(found["value"]) or found["value"].startswith(("/", "./")):
            return None
        if found["value"].isdigit() or (literal == '"auth"' and not pair(found["value"])):
            return None  # a port, or no name and password
        return SecretSpan(*found.span("value"), SecretKind.PASSWORD)

    return Literal(literal, at, low=True)


# ---- cookies

_COOKIES = re.compile(r"(?i)cookies?\d?\b[\w.]{0,12}\\?[\"']?\s{0,4}[:=,(]?\s{0,4}\\?[\"']?")
_ONE = re.compile(
    r"(?<![\w.%-])(?=[\w.%-]{0,100}?(?i:sess|sid\b|auth|token|jwt|csrf|xsrf|remember|log(?:ged_?)?in|identity|tick"
    r"et|aspnet"
    r"|cf_clearance|sso))[\w.%-]{1,100}=(?P<value>[^;\s\"'\\]{16,}+)"
)
_JAR = re.compile(r"(?m)^(?:#HttpOnly_)?[\w.-]+\t(?:TRUE|FALSE)\t\S*\t(?:TRUE|FALSE)\t\d+\t\S+\t(?P<value>\S{12,})$")


def _cookies(text: ScannedText) -> Iterator[SecretSpan]:
    """Session cookies: each long value in a header line about cookies."""
    done = 0
    place = text.low.find("cookie")
    while place >= 0:
        head = _COOKIES.match(text.text, place)
        if head is None or place < done:
            place = text.low.find("cookie", max(place + 6, done))
            continue
        done = text.text.find("\n", head.end())
        done = len(text.text) if done < 0 else done
        place = text.low.find("cookie", done)
        for cookie in _ONE.finditer(text.text, head.end(), done):
            if any(sign.isdigit() for sign in cookie["value"][:200]) and not is_placeholder(cookie["value"][:300]):
                yield SecretSpan(*cookie.span("value"), SecretKind.SECRET)


def _jar(text: ScannedText) -> Iterator[SecretSpan]:
    """The values of a file of cookies."""
    for cookie in _JAR.finditer(text.text):
        yield SecretSpan(*cookie.span("value"), SecretKind.SECRET)


HEADERS: tuple[Literal, ...] = (
    Literal("bearer ", _bearer, low=True),
    Literal("basic ", _basic, low=True),
    Literal("authorization", _header, low=True),
    Literal("://", _address, low=True),
    Literal("-u", _user, low=True),
    *(_command(literal, follows) for literal, follows in COMMANDS),
)
COOKIES = (
    TextScan(frozenset((SecretKind.SECRET,)), _cookies, ("cookie",)),
    TextScan(frozenset((SecretKind.SECRET,)), _jar, ("\ttrue\t", "\tfalse\t")),
)
