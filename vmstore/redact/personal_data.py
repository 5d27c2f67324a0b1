"""Personal data: mail addresses, telephones, bank accounts, cards, national numbers.

Numbers are distinguished from other numbers by their own arithmetic where they have one, else by their shape
and by the words before them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator

from vmstore.redact import national_ids
from vmstore.redact.span import Literal, ScannedText, SecretKind, SecretSpan, TextScan

# ---- mail

_LOCAL = re.compile(r"[\w.%+'-]{1,64}$")
_DOMAIN = re.compile(r"[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_IN_ADDRESS = re.compile(r"://[^\s/\"'<>]*$")
_SUFFIXES = (
    "png jpg jpeg gif svg webp ico pdf css scss less js jsx ts tsx mjs cjs pyi rb java kt cc cpp hpp txt json yam"
    "l yml"
    " toml xml html htm csv gz tgz tar whl lock log dll exe map wasm vue sql service timer target socket mount local"
    " internal lan corp localhost localdomain invalid intern arpa cluster svc"
)
_FILES = frozenset(_SUFFIXES.split())  # those that are countries, too, are left out
_USUAL_TOPS = "com org net edu gov mil int info io dev ai app co me de uk fr it es nl ch at eu us ca jp"
_USUAL = frozenset(_USUAL_TOPS.split())

_NOBODY = re.compile(r"(?:no-?reply|do-?not-?reply|git|mailer-daemon)@")
_VERSION = re.compile(r"v?\d+\.\d")
_MACHINE = re.compile(
    r"\b(?:ssh|scp|sftp|rsync|mosh|ssh-copy-id|autossh|sshfs)\s[^|;&]*$|(?:message-id|in-reply-to|references|conte"
    r"nt-id|cid):[^,]*$"
)  # what stands before the name of a machine or of a letter


def _mail(text: ScannedText, place: int) -> SecretSpan | None:
    before = _LOCAL.search(text.text, max(place - 64, 0), place)
    after = _DOMAIN.match(text.text, place + 1)
    if before is None or after is None:
        return None
    start = before.start() + len(before[0]) - len(before[0].lstrip(".%+'-_"))
    end = after.end() - len(after[0]) + len(after[0].rstrip("-_"))
    top = text.low[text.low.rfind(".", place, end) + 1 : end]
    if top in _FILES:  # a file that is named after an address
        end = text.low.rfind(".", place, end)
        top = text.low[text.low.rfind(".", place, end) + 1 : end]
        if top not in _USUAL:
            return None
    if start >= place or not 2 <= len(top) <= 24 or not top.isalpha() or top in _FILES:
        return None
    if _NOBODY.match(text.low, start) or text.low.endswith("gserviceaccount.com", start, end):
        return None
    if _VERSION.match(text.text, place + 1) or _MACHINE.search(
        text.low[max(start - 120, 0) : start].rpartition("\n")[2]
    ):
        return None
    elsewhere = text.text[end : end + 1] == ":" and text.text[end + 1 : end + 2].strip() != ""  # git@host:path
    if elsewhere or _IN_ADDRESS.search(text.text, max(start - 100, 0), start):
        return None
    return SecretSpan(start, end, SecretKind.EMAIL)


MAIL = Literal("@", _mail, low=True)
_SPELT = re.compile(
    r"(?i)(?P<sign>[(\[{]at[)\]}]|at) ?(?P<domain>[\w-]{1,63}(?:(?: dot | ?[(\[{]dot[)\]}] ?|\.)[\w-]{1,63}){1,4})"
)


def _encoded(text: ScannedText, place: int) -> SecretSpan | None:
    """An address within another address, where its `@` is `%40`."""
    before = _LOCAL.search(text.text, max(place - 64, 0), place)
    after = _DOMAIN.match(text.text, place + 3)
    if before is None or after is None or "%" in before[0] or after[0].rpartition(".")[2].lower() in _FILES:
        return None
    return SecretSpan(before.start(), after.end(), SecretKind.EMAIL) if after[0].rpartition(".")[2].isalpha() else None


def _spelt(text: ScannedText, place: int) -> SecretSpan | None:
    """An address that is spelled out: `ada at lovelace dot dev`, `ada(at)lovelace.dev`."""
    place += text.text[place] == " "
    found = _SPELT.match(text.text, place)
    before = _LOCAL.search(text.text, max(place - 64, 0), place - (text.text[place - 1 : place] == " "))
    if found is None or before is None:
        return None
    plain = found["sign"].isalpha()
    if plain and (" dot " not in found["domain"].lower() or "." in found["domain"]):
        return None
    top = re.split(r"\W+", found["domain"])[-1].lower()
    good = top.isalpha() and len(top) >= 2 and (top in _USUAL or (len(top) == 2 and not plain))
    return SecretSpan(before.start(), found.end(), SecretKind.EMAIL) if good else None


def _said(text: ScannedText) -> Iterator[SecretSpan]:
    place = text.low.find(" at ")
    while place >= 0:
        if (found := _spelt(text, place)) is not None:
            yield found
        place = text.low.find(" at ", place + 3)


MAIL_ELSE: tuple[Literal | TextScan, ...] = (
    Literal("%40", _encoded, low=True),
    *(Literal(sign, _spelt, low=True) for sign in ("(at)", "[at]", "{at}")),
    TextScan(frozenset((SecretKind.EMAIL,)), _said, (" dot ",)),
)

# ---- numbers

_RUN = re.compile(r"[+(0-9][0-9 ().\-/]{5,}")  # nothing after it, so that it never looks back
_FEW = re.compile(r"(?:\d\.\d+|(?:19|20)\d\d-[01]\d-[0-3]\d|[+(]?[ ().\-/]*\d{0,5})[ ().\-/]*+")
# ^ nobody's number: decimals, days, and too few digits
# In one piece, in fours, or four, six and the rest: other groups are columns of numbers.
_CARD = re.compile(
    r"(?<![\d.\-/])(?:\d{13,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{1,4}(?:\1\d{3})?|\d{4}([ -])\d{6}\2\d{4,5})(?![\d]|[-/"
    r".]\d)"
)
_SSN = re.compile(r"(?<![\d-])(\d{3})([- ])(\d{2})\2(\d{4})(?![\d-])")
_ABROAD = re.compile(r"\+[1-9](?:[ ().\-/]{0,2}\d){7,14}(?!\d)")
_NORTH = re.compile(
    r"(?<![\d.\-/])(?:1[-. ])?(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[-. ])[2-9]\d{2}[-.]\d{4}(?![\d]|[-/.]"
    r"\d)"
)
_ANY = re.compile(r"\(?\d(?:[ ().\-/]{0,3}\d){5,14}(?!\d)")
_CALLED = re.compile(
    r"(?i)(?:\bph\b|\b(?:ruf|r\u00fcckruf)(?:nummer)?|\b(?:tele)?(?:ph|f)one?(?:n?[ _-]?(?:number|num|no|nr|nummer"
    r"))?|\btele?f(?:oo|o)n(?:o|e|nummer)?|\btel|\bt[\u00e9e]l[\u00e9e]phone"
    r"|\bm[o\u00f3]bi(?:le?|l|el)|\bcell|\bfax|\bhandy|\bgsm|\bwhatsapp|\bsms|\bsignal|\b(?:call|ring|dial|text|ph"
    r"one|reach) (?:me|him|her|us|them|the \w+)"
    r"|\bmsisdn|\bwa_id|\bcaller(?:[ _-]?id)?|\bfijo|\bfisso|\bfixe|\bfestnetz\w*|\blandline|\bhotline|\bpager|"
    r"\bdurchwahl|\bzentrale"
    r"|\bswitchboard|\bcentralita|\bt[e\u00e9]l|\bm[o\u00f3]vil|\bcelular|\bcellulare|\bn[u\u00fa]mero|\bnum[\u0"
    r"0e9e]ro|\btlf|\bpuhelin|\bkom"
    r"(?:\u00f3rka)?|\bmob"
    r"|(?:\u0442\u0435\u043b|\u7535\u8bdd|\u96fb\u8a71|\u624b\u673a|\u624b\u6a5f|\uc804\ud654|\ud734\ub300\ud3f0"
    r"|\u643a"
    r"\u5e2f)\w{0,8})(?:\b|(?<=[^\x00-\x7f])|_)[\"']?[^\w\n+(]{0,4}"
    r"(?:(?:is|at|on|under|nr|no|number|ist|to|es|est|\u00e8|fixe|unter|au|al|privat|work|home|office)\b[^\w\n+(]{"
    r"0,3}){0,2}$"
)
_CALLED_HINTS = (
    *("ph", "ruf", "fon", "tel", "tlf", "mob", "mov", "cel", "fax", "handy", "gsm", "whatsapp", "sms", "signal"),
    *("call", "ring", "dial", "text", "reach", "num", "puh", "kom"),
    *("msisdn", "wa_id", "fijo", "fisso", "fixe", "festnetz", "landline", "hotline", "pager", "durchwahl", "zentrale"),
    *("switchboard", "centralita"),
)
"""What stands in each word for a telephone, in small letters, as far as it is ASCII."""
_NATIONAL = re.compile(
    r"(?<![\d.\-/+])(?<!\d )(?:0[1-9](?P<a>[ .-])\d{2}(?:(?P=a)\d{2}){3}|020 \d{4} \d{4}|01\d{2} \d{3} \d{4}|01\d{"
    r"3} \d{5,6}|07\d{3} \d{3} ?\d{3}"
    r"|06[- ]\d{8}|06 \d{2} \d{2} \d{2} \d{2}|06[- ]\d{4} \d{4}|0[1-9]\d[- ]\d{7}|0[1-9]\d{2}[- ]\d{6}|0[1-9]\d{1,"
    r"3}-\d{5,8}"
    r"|01[5-7]\d{1,2}[ /-]?\d{7,8}|01[5-7]\d[ /-]\d{3}[ ]?\d{2}[ ]?\d{2,3}|01[5-7]\d[ /-]\d{3,4} \d{3,5}|0[2-9]\d{"
    r"1,4} ?/ ?\d{3,8}(?:-\d{1,4})?"
    r"|0[2-9]\d{1,3} \d{6,8}|04\d{2} \d{3} \d{3}|0[2378] \d{4} \d{4}|0\d{2} \d{3} \d{2} \d{2}|0\d{3} \d{2} \d{2} \d"
    r"{2}"
    r"|0\d{1,3}-\d{2,3} \d{2} \d{2}|0\d{2,3}/\d{2,3}\.\d{2}\.\d{2}|0\d{2} \d{3} \d{4}|08\d{2}-\d{4}-\d{3,4}|8[- ]\d"
    r"{3}[- ]\d{3}[- ]\d{2}[- ]\d{2}"
    r"|0[789]0-\d{4}-\d{4}|0[236]-\d{3,4}-\d{4}|010-\d{4}-\d{4}|1[3-9]\d(?P<b>[ -])\d{4}(?P=b)\d{4}"
    r"|8 ?\(\d{3}\) ?\d{3}[- ]\d{2}[- ]\d{2}|\(0\d{1,4}\) ?\d{3,5}[ -]\d{3,5}|\(\d{2}\) ?9?\d{4}-\d{4}|\(0\d{1,5}\)"
    r" ?\d{5,9}"
    r"|00[1-9]\d{0,2}(?:[ -]\(?\d{2,7}\)?){2,5}|0800[ -]\d{3}[ -]?\d{3,4})"
    r"(?![-/.:]?\w| \d)"
)
_NO_PHONE = re.compile(
    r"(?i)(?:part|drawing|order|ref|invoice|serial|serien|art(?:icle|ikel)?|item|sku|model|batch|lot|ticket|case|i"
    r"d|no|nr|number|nummer"
    r"|isbn|issn|ean|gtin|rev|version|build|page|seed|step|date|datum|port|line|offset|bestell\w*|rechnung\w*|best"
    r"ellung|kunden\w*|account"
    r"|konto|tracking|sendung\w*|vin|imei|rfc|din|iso)\b[.:#]?[ =\"']{0,3}$"
)
_NO_CARD = re.compile(
    r"(?i)(?:imei|iccid|imsi|serial|serien\w*|tracking|order|invoice|transaction|txn|trace|batch|sku|ean|gtin|isbn"
    r"|sendung\w*|shipment"
    r"|parcel|meid|ticket|request|snowflake|event|offset|seq(?:uence)?|timestamp|ts|nonce|seed|job|run)"
    r"(?:[ _-]?(?:id|no|nr|number|nummer|key|check|failed))*\b[\"']?[ .:=#\"']{0,4}$"
)
_SOCIAL = re.compile(r"(?i)\b(?:ssn|social[ _-]security(?:[ _-](?:number|no))?)\b[\"']?\W{0,4}(?:is\W{1,3})?$")
_NINE = re.compile(r"\d{9}(?!\d)")
_BRANDS = re.compile(
    r"(?:4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|220[0-4]\d{12}|(?:5018|5020|5038|5893|6304|6759|676[1-3])\d{8,15}|35(?:2[89]|"
    r"[3-8]\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|62\d{14,17})\Z"
)
_WORDS_BEFORE = 40  # characters in which what a number is may be said
_GROUPED = re.compile(r"[ ().\-/]")


def _numbers(text: ScannedText) -> Iterator[SecretSpan]:
    """Cards, telephones and numbers of states among the runs of digits of a text."""
    for run in _RUN.finditer(text.text):
        if _FEW.fullmatch(run[0]):
            continue
        start, end = run.span()
        end = start + len(run[0].rstrip(" ().-/"))
        before, after = text.text[start - 1 : start] if start else "", text.text[end : end + 1]
        if (before.isalpha() or after.isalpha()) and (of := _lettered(text, start, end)) is not None:
            yield of
            continue
        if start and (before.isalnum() or before in "_#$"):
            rest = _GROUPED.search(text.text, start, end)  # the first piece is part of a word; what follows is not
            if rest is None:
                continue
            start = rest.start()
        if end < len(text.text) and (after.isalnum() or after == "_"):
            end = max(text.text.rfind(" ", start, end), start)
        if end - start >= 7:
            yield from _in_run(text, start, end)


def _lettered(text: ScannedText, start: int, end: int) -> SecretSpan | None:
    """A number of a state that has letters before its last digits or behind them."""
    for first in (max(text.text.rfind(" ", start, end) + 1, start), start, start - 1):
        if first >= 0 and not (first and text.text[first - 1].isalnum()) and text.text[first].isalnum():
            found = national_ids.code(text.text, text.low, first)
            if found is not None:
                return SecretSpan(*found, SecretKind.SSN)
    return None


def _in_run(text: ScannedText, start: int, end: int) -> Iterator[SecretSpan]:
    taken = start
    for pattern, kind in (
        (_CARD, SecretKind.CARD),
        (_SSN, SecretKind.SSN),
        (_ABROAD, SecretKind.PHONE),
        (_NORTH, SecretKind.PHONE),
    ):
        for found in pattern.finditer(text.text, start, end):
            if _CHECKS[kind](found):
                taken = max(taken, found.end())
                yield SecretSpan(*found.span(), kind)
    if taken > start:
        return
    state = national_ids.number(text.low, start, end)
    if state is not None:
        yield SecretSpan(*state, SecretKind.SSN)
        return
    before = text.low[max(start - _WORDS_BEFORE, 0) : start]
    if (match := _NINE.match(text.text, start, end)) is not None and _SOCIAL.search(before):
        yield SecretSpan(*match.span(), SecretKind.SSN)
        return
    may = not before.isascii() or any(hint in before for hint in _CALLED_HINTS)
    if may and (match := _ANY.match(text.text, start, end)) is not None and _CALLED.search(before):
        yield SecretSpan(*match.span(), SecretKind.PHONE)
        return
    for found in _NATIONAL.finditer(text.text, start, min(end + 3, len(text.text))):
        if found.end() <= end and not _NO_PHONE.search(text.text, max(found.start() - _WORDS_BEFORE, 0), found.start()):
            yield SecretSpan(*found.span(), SecretKind.PHONE)


_LETTERED = re.compile(r"[A-Z][A-Z] ?[0-9][0-9]")


def _card(found: re.Match[str]) -> bool:
    digits = re.sub(r"\D", "", found[0])
    if _BRANDS.match(digits) is None or not national_ids.luhn(digits):
        return False
    return _NO_CARD.search(found.string, max(found.start() - _WORDS_BEFORE, 0), found.start()) is None


def _dialled(found: re.Match[str]) -> bool:
    """Whether digits behind a `+` are as many as a number has, and are no sum of money."""
    digits = re.sub(r"\D", "", found[0])
    if not found[0].startswith("+"):
        return True
    if digits[0] == "1" and (len(digits) != 11 or digits[1] < "2"):
        return False
    return len(digits) >= 10 or (len(digits) < len(found[0]) - 1 and "." not in found[0])


def _a_thing(found: re.Match[str]) -> bool:
    return _THING.search(found.string, max(found.start() - _WORDS_BEFORE, 0), found.start()) is not None


_THING = re.compile(
    r"(?i)\b(?:part|drawing|order|ref|invoice|serial|seriennummer|sku|item|model|batch|lot|tracking|isbn|issn|vers"
    r"ion|build|vin|imei"
    r"|bestell\w*|rechnung\w*|sendung\w*|artikel\w*|ticket|case)(?:[ -]?(?:no|nr|number|nummer|id))?\b[.:#]?[ =\"'"
    r"]{0,3}$"
)


def _social(found: re.Match[str]) -> bool:
    area, _, group, serial = found.groups()
    if _a_thing(found):
        return False
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


_CHECKS: dict[SecretKind, Callable[[re.Match[str]], bool]] = {
    SecretKind.CARD: _card,
    SecretKind.SSN: _social,
    SecretKind.PHONE: lambda found: _dialled(found) and not _a_thing(found),
}

# ---- accounts

_IBAN = re.compile(r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}")
_COUNTRIES = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24 FI18"
    " FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21"
    " LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31"
    " SE24 SI19 SK24 SM27 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20"
)
_IBAN_CHARS = {entry[:2]: int(entry[2:]) for entry in _COUNTRIES.split()}


def _accounts(text: ScannedText) -> Iterator[SecretSpan]:
    """Account numbers, as long as their country has them and right by their check digits; numbers of states in l"
    "etters."""
    for place in _LETTERED.finditer(text.text):
        start = place.start()
        if not (start and text.text[start - 1].isalnum()) and (account := _account(text.text, start)):
            yield account
            continue
        while start > place.start() - 8 and start and text.text[start - 1].isalnum():
            start -= 1
        if not (start and text.text[start - 1].isalnum()) and (of := national_ids.code(text.text, text.low, start)):
            yield SecretSpan(*of, SecretKind.SSN)


def _account(text: str, start: int) -> SecretSpan | None:
    found, long = _IBAN.match(text, start), _IBAN_CHARS.get(text[start : start + 2])
    if found is None or long is None:
        return None
    place, digits = start, ""
    while place < found.end() and len(digits) < long:
        digits += text[place].strip()
        place += 1
    good = len(digits) == long and not text[place : place + 1].isalnum() and _checked(digits)
    return SecretSpan(start, place, SecretKind.IBAN) if good else None


def _checked(account: str) -> bool:
    return int("".join(str(int(char, 36)) for char in account[4:] + account[:4])) % 97 == 1


# ---- machines

_IP = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}(?![\w.]?\d)|[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]{1,35}[0-9A-Fa-f](?:%\w+)?")


def _machines(text: ScannedText) -> Iterator[SecretSpan]:
    for found in _IP.finditer(text.text):
        start = found.start()
        if start and (text.text[start - 1].isalnum() or text.text[start - 1] in ".:_-"):
            continue
        try:
            address = ipaddress.ip_address(found[0])
        except ValueError:
            continue
        if not (address.is_loopback or address.is_unspecified):
            yield SecretSpan(start, found.end(), SecretKind.IP)


# ---- home folders

_HOME = re.compile(
    r"(?<![\w.~%])(?:(?:[A-Za-z]:)?(?P<slash>/|\\{1,2})(?:Users|home)(?P=slash)(?P<name>[^\W_][\w.+-]{0,63})"
    r"|-(?:Users|home)-(?P<flat>[^\W_][\w.+]{0,63})(?=-))"
)
_NOBODYS = frozenset(("shared", "public", "default", "runner", "user", "username", "linuxbrew"))


def _homes(text: ScannedText) -> Iterator[SecretSpan]:
    """The names of home folders, also in a folder that is named after a path, as `-Users-jane-notes`."""
    if "home" not in text.low and "users" not in text.low:
        return
    for match in _HOME.finditer(text.text):
        group = "name" if match["name"] else "flat"
        if match[group].lower() not in _NOBODYS:
            yield SecretSpan(*match.span(group), SecretKind.USER)


# ---- owners of files

_NAME = r"([A-Za-z_][\w.+-]{0,31})"
_LISTED = re.compile(
    r"(?:(?<![\w-])|(?<=\\n))(?!-{10})[-dlbcps][-rwxsStT]{9}[@+.]?[ \t]+"
    rf"(?:\d+[ \t]+{_NAME}[ \t]+{_NAME}|{_NAME}/{_NAME})[ \t]+\d"
    rf"|\bUid:[ \t]*\([ \t]*\d+/[ \t]*{_NAME}\)(?:[ \t]*Gid:[ \t]*\([ \t]*\d+/[ \t]*{_NAME}\))?"
)
_LISTERS = (1, 3, 5)  # the owner's group by `ls -l`, `tar -tv` and `stat`; the next is that of the files' group
_SYSTEMS = _NOBODYS.union(
    ("root", "daemon", "bin", "sys", "nobody", "admin", "staff", "wheel", "users", "git", "docker", "node", "app"),
    ("www-data", "nginx", "postgres", "mysql", "redis", "ubuntu", "debian", "ec2-user", "vscode", "jovyan", "circleci"),
)


def _owners(text: ScannedText) -> Iterator[SecretSpan]:
    """The names of who owns listed files, accounts of systems aside, and groups that are called as their owners are."""
    if "r-" not in text.low and "rw" not in text.low and "uid:" not in text.low:
        return
    for match in _LISTED.finditer(text.text):
        owner = next(group for group in _LISTERS if match[group])
        if match[owner].lower() not in _SYSTEMS:
            yield SecretSpan(*match.span(owner), SecretKind.USER)
            if match[owner + 1] == match[owner]:
                yield SecretSpan(*match.span(owner + 1), SecretKind.USER)


SCANS = (
    TextScan(frozenset((SecretKind.CARD, SecretKind.SSN, SecretKind.PHONE)), _numbers),
    TextScan(frozenset((SecretKind.IBAN, SecretKind.SSN)), _accounts),
    TextScan(frozenset((SecretKind.IP,)), _machines),
    TextScan(frozenset((SecretKind.USER,)), _homes),
    TextScan(frozenset((SecretKind.USER,)), _owners),
)
