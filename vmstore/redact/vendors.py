"""Formats of vendors' keys: published prefixes and what follows, as one table.

A row is a prefix and a pattern of what stands behind it. A group in the pattern is the part that is secret, else all of
it is, prefix included. A pattern without an end takes the run to its end. Shapes that other words could have ask for
a digit beside letters, so that `sk-some-long-class-name` stays.
"""

from __future__ import annotations

_MIXED = r"(?=[\w-]{0,60}\d)(?=[\w-]{0,60}[A-Z])"  # a digit and a capital not far from its beginning
_HEX = "[0-9a-f]"
_ALNUM = "[A-Za-z0-9]"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_END = r"(?!\w)"
_URL = r"(?:[\w+/.~-]|%[0-9A-Fa-f]{2})"  # a character of a value in an address

VENDORS: tuple[tuple[str, str], ...] = (
    # models
    ("sk-ant-", r"[\w-]{20,}+"),
    ("sk-or-", r"(?:v1-)?" + _HEX + "{40,}+"),
    ("sk-lf-", _HEX + r"{8}-[0-9a-f-]{20,}+"),
    ("sk-", rf"(?:{_MIXED}[\w-]{{20,}}+|{_HEX}{{32,64}}(?![\w-]))"),
    ("sess-", rf"{_MIXED}{_ALNUM}{{36,}}+"),
    ("sk_", _HEX + "{48}" + _END),
    ("AIza", r"[\w-]{35}(?![\w-])"),
    ("AQ.", r"Ab[\w-]{40,}+"),
    ("hf_", rf"(?=[a-z]*[A-Z])(?=[A-Z]*[a-z]){_ALNUM}{{30,40}}{_END}"),
    ("api_org_", rf"{_ALNUM}{{30,40}}{_END}"),
    ("gsk_", rf"{_ALNUM}{{40,}}+{_END}"),
    ("xai-", rf"{_ALNUM}{{60,}}+{_END}"),
    ("pplx-", rf"{_ALNUM}{{40,}}+{_END}"),
    ("nvapi-", r"[\w-]{50,}+"),
    ("r8_", rf"{_ALNUM}{{36,40}}{_END}"),
    ("pcsk_", r"\w{40,}+"),
    ("tvly-", rf"(?:dev-|prod-)?{_MIXED}[\w-]{{20,}}+"),
    ("lsv2_", rf"(?:pt|sk)_{_HEX}{{32}}_{_HEX}{{10}}"),
    ("csk-", r"(?=[a-z]*\d)[a-z0-9]{40,}+" + _END),
    ("fc-", _HEX + r"{32}(?![\w-])"),
    ("pa-", rf"{_MIXED}[\w-]{{40,}}+"),
    ("jina_", rf"{_MIXED}[\w-]{{40,}}+"),
    ("tgp_v1_", r"[\w-]{40,}+"),
    ("fw_", rf"{_MIXED}{_ALNUM}{{20,}}+{_END}"),
    ("e2b_", _HEX + "{40}" + _END),
    ("rpa_", rf"{_ALNUM}{{40,}}+{_END}"),
    ("wandb_v1_", r"\w{40,}+"),
    ("key_", _HEX + "{64,}+" + _END),
    # code and packages
    *((f"gh{letter}_", rf"{_ALNUM}{{36,}}+") for letter in "pousr"),
    ("github_pat_", r"\w{50,}+"),
    *(
        (f"gl{one}-", r"[\w.-]{20,}+")
        for one in ["pat", "dt", "rt", "ptt", "cbt", "imt", "ft", "soat", "agent", "oas", "ffct", "rtr"]
    ),
    ("ATBB", rf"{_MIXED}{_ALNUM}{{28,}}+{_END}"),
    ("npm_", rf"{_ALNUM}{{36}}{_END}"),
    ("pypi-", r"Ag[\w-]{50,}+"),
    ("rubygems_", _HEX + "{48}" + _END),
    ("cio", rf"(?=[a-z]*[A-Z0-9]){_MIXED}{_ALNUM}{{32}}{_END}"),
    ("oy2", r"[a-z0-9]{43}" + _END),
    ("CLOJARS_", r"[a-z0-9]{60}" + _END),
    ("AKCp", rf"{_ALNUM}{{60,}}+{_END}"),
    ("cmVmdGtu", rf"{_ALNUM}{{50,}}+{_END}"),
    *((literal, r"[\w-]{20,}+") for literal in ("dckr_pat_", "dckr_oat_")),
    *((literal, r"[\w=.-]{80,}+") for literal in ("ATATT3", "ATCTT3")),
    *((literal, r"[\w-]{36,}+") for literal in ("figd_", "figoh_", "figor_", "figu_")),
    ("PMAK-", rf"{_HEX}{{24}}-{_HEX}{{34}}"),
    *((literal, r"[\w+/=-]{40,}+") for literal in ("sntrys_", "sntryu_", "sntrya_")),
    *((literal, r"[\w-]{40,}+") for literal in ("CCIPAT_", "CCIPRJ_")),
    *((literal, r"[\w-]{40,}+") for literal in ("bkua_", "bkct_", "bkpat_")),
    ("sqp_", _HEX + "{40}" + _END),
    ("sqa_", _HEX + "{40}" + _END),
    ("squ_", _HEX + "{40}" + _END),
    ("tfp_", rf"{_ALNUM}{{40,}}+"),
    # clouds and keepers of secrets
    *((literal, r"[A-Z2-7]{16}(?![A-Z0-9])") for literal in ("AKIA", "ASIA", "ABIA", "ACCA")),
    ("ABSK", r"[\w+/-]{80,}+={0,2}"),
    ("bedrock-api-key-", r"[\w+/=-]{40,}+"),
    ("LTAI", rf"{_MIXED}{_ALNUM}{{16,24}}{_END}"),
    ("AKID", rf"{_MIXED}{_ALNUM}{{28,36}}{_END}"),
    ("ya29.", r"[\w.-]{20,}+"),
    ("1//0", r"[\w-]{40,}+"),
    ("GOCSPX-", r"[\w-]{24,}+"),
    *((literal, _HEX + "{64}" + _END) for literal in ("dop_v1_", "doo_v1_", "dor_v1_")),
    *((literal, _HEX + r"{32}(?:-\d)?" + _END) for literal in ("dapi", "dkea", "dose")),
    *((literal, r"[\w-]{24,}+") for literal in ("hvs.", "hvb.", "hvr.")),
    *(
        (f"dp.{one}.", rf"(?:[a-z0-9_-]{{2,35}}\.)?{_ALNUM}{{40,}}+")
        for one in ["pt", "st", "ct", "sa", "scim", "audit"]
    ),
    *((literal, _HEX + "{40,}+" + _END) for literal in ("sbp_", "sbp_oauth_")),
    ("sb_secret_", r"[\w-]{20,}+"),
    ("glsa_", rf"{_ALNUM}{{32}}_{_HEX}{{8}}"),
    ("glc_", r"eyJ[\w+/=-]{30,}+"),
    ("tskey-", r"(?:auth|api|client|webhook|scim)-[\w-]{20,}+"),
    ("AGE-SECRET-KEY-1", r"[0-9A-Z]{58}"),
    ("AGE-PLUGIN-", r"[0-9A-Z-]{30,}+"),
    ("ops_", r"eyJ[\w+/=-]{100,}+"),
    ("A3-", r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6})(?:-[A-Z0-9]{5}){3,4}(?![A-Z0-9-])"),
    *((literal, r"[\w-]{40,}+") for literal in ("cfut_", "cfat_", "cfk_")),
    ("v1.0-", rf"{_HEX}{{24}}-{_HEX}{{100,}}+"),
    ("eyJhIjoi", r"[\w+/-]{80,}+={0,2}"),  # of a Cloudflare tunnel
    ("pul-", _HEX + "{40}" + _END),
    *((f"nf{one}_", rf"{_MIXED}{_ALNUM}{{32,}}+{_END}") for one in "pcoub"),
    *((f"vc{one}_", rf"{_MIXED}{_ALNUM}{{24,}}+{_END}") for one in "pikarc"),
    ("rnd_", rf"{_MIXED}{_ALNUM}{{28,}}+{_END}"),
    ("HRKU-", r"[\w-]{36,}+"),
    ("fo1_", r"[\w-]{30,}+"),
    *((literal, r"[\w+/=,-]{60,}+") for literal in ("fm1r_", "fm1a_", "fm2_")),
    *((f"pscale_{one}_", r"[\w=.-]{32,}+") for one in ("tkn", "pw", "oauth")),
    ("napi_", r"[a-z0-9]{40,}+" + _END),
    ("npg_", rf"{_ALNUM}{{16,}}+{_END}"),
    ("exo", r"[A-Z]{2}[a-f0-9]{24,32}" + _END),
    ("scw_secret_", r"[\w-]{30,}+"),
    ("AccountKey=", r"([\w+/]{86}==)"),
    # talk, mail, money and shops
    *(
        (two, r"[\w-]{21,27}\.[\w-]{6}\.[\w-]{25,45}" + _END)
        for two in ["MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"]
    ),  # Discord
    ("xox", r"(?:[abcdeoprs]-|e\.xox[bp]-)(?=(?:[\w-]|%[0-9A-Fa-f]{2}){0,60}\d)(?:[\w-]|%[0-9A-Fa-f]{2}){10,}+"),
    ("xapp-", r"\d-[A-Z0-9]{8,16}-\d{8,16}-[a-z0-9]{32,}+"),
    ("hooks.slack.com/services/", r"(T[A-Z0-9]{6,14}/B[A-Z0-9]{6,14}/[A-Za-z0-9]{16,40})"),
    ("hooks.slack.com/workflows/", r"(T[A-Z0-9]{6,14}/A[A-Z0-9]{6,14}/\d{10,24}/[A-Za-z0-9]{16,40})"),
    ("hooks.zapier.com/hooks/catch/", r"(\d{4,12}/\w{5,20})"),
    ("/IncomingWebhook/", rf"({_HEX}{{32}}/{_UUID}[\w/-]*+)"),
    ("maker.ifttt.com/trigger/", r"[\w-]{1,60}/(?:json/)?with/key/([\w-]{20,}+)"),
    *((f"hook.{one}.make.com/", r"([a-z0-9]{24,}+)") for one in ("eu1", "eu2", "us1", "us2")),
    ("/hooks/", r"([a-z0-9]{26})" + _END),
    ("/api/webhooks/", r"(\d{15,22}/[\w-]{40,100})"),
    *((f"{one}_{mode}_", rf"{_ALNUM}{{16,}}+") for one in ("sk", "rk") for mode in ("live", "test", "prod")),
    ("whsec_", r"[A-Za-z0-9+/]{24,}+={0,2}"),
    ("SG.", r"[\w-]{16,32}\.[\w-]{16,64}"),
    (
        "AC",
        rf"{_HEX}{{32}}[\"']?[^\n\w]{{1,8}}(?:\w{{1,20}} ?[=:] ?)?[\"']?({_HEX}{{32}}){_END}",
    ),  # Twilio's token behind it
    ("SK", _HEX + "{32}" + _END),
    ("key-", rf"(?=[a-z]*\d){_HEX}{{32}}(?![\w-])"),
    *((literal, _HEX + r"{64}-\w{16}" + _END) for literal in ("xkeysib-", "xsmtpsib-")),
    ("md-", rf"{_MIXED}[\w-]{{22}}(?![\w-])"),
    ("re_", rf"{_MIXED}{_ALNUM}{{6,10}}_{_ALNUM}{{20,30}}{_END}"),
    *((f"shp{one}_", r"[0-9a-fA-F]{32}" + _END) for one in ("at", "ss", "ca", "pa", "ka", "ua", "lka", "tka")),
    *((literal, rf"{_ALNUM}{{32,}}+") for literal in ("lin_api_", "lin_oauth_")),
    ("ntn_", rf"{_ALNUM}{{40,}}+"),
    ("secret_", rf"{_MIXED}{_ALNUM}{{43}}{_END}"),
    ("pat-", rf"(?:na|eu|ap)\d-{_UUID}"),
    ("pat", rf"{_MIXED}{_ALNUM}{{14}}\.{_HEX}{{64}}"),
    *((f"ph{one}_", rf"{_MIXED}\w{{40,}}+") for one in "xsr"),
    ("EAA", rf"{_ALNUM}{{60,}}+{_END}"),
    *((literal, rf"{_ALNUM}{{80,}}+{_END}") for literal in ("IGQV", "IGQW", "IGAA")),
    ("EAAA", r"[\w-]{60}(?![\w-])"),
    *((f"sq0{one}-", r"[\w-]{22,}+") for one in ("atp", "csp")),
    ("access_token$production$", r"\w{8,}\$" + _HEX + "{32}"),
    *((literal, r"[\w-]{20,}+") for literal in ("live_sk_", "FLWSECK-", "FLWSECK_TEST-", "CFPAT-", "xau_", "CWPS.")),
    ("NRAK-", r"[A-Z0-9]{27}" + _END),
    ("NRII-", r"[\w-]{32}(?![\w-])"),
    ("dt0c01.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    ("PT1", r"[A-Z0-9]{40,}+" + _END),
    ("sl.", r"[\w.-]{120,}+"),
    ("sk.eyJ", r"[\w-]{40,}+\.[\w-]{16,}+"),
    ("mfa.", r"[\w-]{80,}+"),
    *((f"access-{one}-", _UUID) for one in ("production", "development", "sandbox")),
    ("live_", rf"{_MIXED}[\w-]{{30,}}+"),
    ("test_", rf"(?=[a-z]*[A-Z0-9]){_MIXED}{_ALNUM}{{30}}{_END}"),
    *((literal, r"\w{30,}+") for literal in ("pdl_live_", "pdl_sdbx_", "pdl_ntfset_")),
    ("pk_", r"\d{5,10}_[A-Z0-9]{32}" + _END),
    ("ATTA", _HEX + "{60,}+" + _END),
    ("dG9rO", r"[\w+/]{40,}+={0,2}"),
    *((literal, _UUID + _END) for literal in ("sdk-", "api-", "mob-")),
    *((literal, r"\w{20,}+") for literal in ("hcaik_", "hcbik_", "hcxik_")),
    ("AQVN", r"[\w-]{35,}+"),
    ("y0_", r"[\w-]{50,}+"),
    ("vk1.a.", r"[\w-]{60,}+"),
    ("esecret_", rf"{_ALNUM}{{24,}}+"),
    ("eyJhdXRocyI6", r"[\w+/]{30,}+={0,2}"),  # of docker's settings, once more in base64
    ("aio_", rf"{_MIXED}{_ALNUM}{{28}}{_END}"),
    ("shippo_live_", _HEX + "{40}" + _END),
    ("EZAK", rf"{_ALNUM}{{54}}{_END}"),
    ("apify_api_", rf"{_ALNUM}{{30,}}+{_END}"),
    ("ddp_", rf"{_ALNUM}{{36,}}+{_END}"),
    ("pnu_", rf"{_ALNUM}{{36}}{_END}"),
    ("hcp.", r"[\w-]{60,}+"),
    ("xprv", r"[1-9A-HJ-NP-Za-km-z]{100,}+" + _END),
)

AROUND: tuple[tuple[str, str, str], ...] = (
    ("Q~", r"[\w.~-]{3}\d", r"[\w.~-]{31,34}(?![\w-])"),  # Azure's Entra
    (".atlasv1.", rf"{_ALNUM}{{14}}", r"[\w=-]{60,}+"),
    (":AA", r"\d{8,10}", r"[\w-]{33}(?![\w-])"),  # Telegram
    ("-us", rf"{_HEX}{{32}}", rf"\d{{1,2}}{_END}"),  # Mailchimp
    ("NRAL", r"[a-z0-9]{30,36}", _END),
    ("sig=", r"[?&;]", rf"({_URL}{{30,}}+={{0,2}})"),
    ("ignature=", r"[?&;][\w%-]{0,24}[Ss]", rf"({_URL}{{24,}}+={{0,2}})"),
    ("code=", r"[?&]", r"((?:[\w+/-]|%2[BbFf]){40,}+(?:=|%3[Dd]){1,2})"),
    ("hmac=", r"[?&~;:]", rf"({_HEX}{{32,}}+)"),
    *(
        (f"{one}=", r"[?&;]", rf"(?=[^&\s]{{0,30}}\d)({_URL}{{20,}}+={{0,2}})")
        for one in ("session", "sid", "ticket", "jwt")
    ),
    (":fx", _UUID, _END),  # DeepL
    (":APA91b", r"AAAA[\w-]{7}", r"[\w-]{100,}+"),  # Firebase
)
"""Keys that are known by what stands in their middle: it, a pattern of what stands before it, and one of what fo"
"llows."""

PUBLIC = (
    "pk_live_",
    "pk_test_",
    "pk.eyJ",
    "pk-lf-",
    "phc_",
    "sb_publishable_",
    "sq0idp-",
    "ssh-",
    "ecdsa-",
    "age1",
    "rzp_",
    "AAAAB3Nza",
    "AAAAC3Nza",
    "AAAAE2Vj",
    "MFkwEwYH",
    "MIGfMA0G",
    "MIIBIjAN",
    "MCowBQYD",
    "LS0tLS1CRUdJTiBDRVJU",
    "LS0tLS1CRUdJTiBQVUJM",
    "ca-pub-",
    "UA-",
    "G-",
    "GTM-",
    "6L",
    "tok_",
    "pm_",
    "acct_",
    "cus_",
)
"""How values begin that their vendors say are for everybody to see."""
