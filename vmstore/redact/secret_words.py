"""Names of secrets, and values written in place of one: words of many languages, as data.

Literals are in small letters; a name is split into words at its signs and capitals before it is looked up.
"""

from __future__ import annotations


def _each(listed: str) -> tuple[str, ...]:
    return tuple(listed.split())


PASSWORDS = frozenset(
    _each(
        "password passwd passwort passphrase passcode passw pass pwd pw psk psswd pswd userpass kennwort mdp "
        "motdepasse contrasena clave senha wachtwoord passord losenord adgangskode salasana heslo haslo jelszo "
        "parola sifre requirepass masterauth storepass keypass presharedkey preshared mnemonic"
    )
)
"""The last word of a name whose value is a password."""
PASS_ENDS = ("password", "passwd", "passphrase", "passwort", "passcode", "pwd", "kennwort", "wachtwoord")
"""How such a word ends where it is written together with others, as `dbpassword`."""
PASS_HEADS = _each(
    "db my user admin root ssh smtp mail email mysql pg pgsql postgres ftp http proxy bind ldap imap require sudo "
    "become login redis store key trust basic auth vault wifi wlan app rabbitmq mongo ora oracle sql jdbc mqtt "
    "pop ts"
)
"""What stands before `pass` or `pw` where it is written together."""
SECRETS = frozenset(_each("secret token credential credentials creds apikey secretkey accesskey privatekey authkey"))
SECRET_ENDS = ("secret", "token", "apikey", "secretkey", "accesskey", "privatekey", "signingkey", "authkey")
WEAK = frozenset(
    _each(
        "sessionid jsessionid phpsessid sessid auth jwt bearer cookie pat sas saml assertion samlresponse pepper "
        "hmac otp totp authorization"
    )
)
"""The last word of a name whose value is a secret only where it looks made at random."""
FILES = frozenset(_each("kubeconfig keystore truststore keytab pfx dockerconfigjson serviceaccount"))
"""Files that are secrets, written as base64."""
WHOSE = frozenset(
    _each(
        "api access account private signing encryption auth shared master subscription secret app deploy license "
        "licence client service session admin unseal recovery crypt crypto decryption preshared webhook "
        "integration ingest write read server primary secondary registration functions function root cipher aes "
        "cookie jwt openai anthropic azure cohere mistral gemini pplx groq deepseek together stripe twilio "
        "mailgun sendgrid datadog dd algolia maps cloudflare heroku replicate elevenlabs fireworks openrouter "
        "cerebras xai voyage tavily dsa rsa fernet appsecret machine instrumentation"
    )
)
"""What a key opens: the word before `key`."""
SURE = frozenset(
    _each("api access account private signing encryption auth shared master subscription secret preshared")
)
"""Those after which a value needs not look random."""
NEUTRAL = frozenset(
    _each(
        "base value val data blob hex b64 base64 plain plaintext plain_text new old current confirm confirmation "
        "again dev prod production staging stage test live main primary secondary str string raw default text "
        "encoded bytes"
    )
)
"""Words behind the one that says it, which change nothing."""
ABOUT = frozenset(
    _each(
        "field file files path dir url uri link name names id ids ttl type types max min len length size count "
        "limit timeout expiry expires expiration age hash hashed digest header prefix suffix endpoint region "
        "policy re regex pattern issuer audience algorithm alg version user username host store arn hint prompt "
        "label rounds cost enabled required strength score reset env var ref key keys usage budget window rate "
        "format encoding scheme mode status ok valid error message placeholder title manager provider service "
        "class module method function parser bucket counter index offset position location source stdin column "
        "table page form input screen view"
    )
)
"""Words behind it which say that the value is about a secret and is none."""
NOT_KEYS = frozenset(
    _each(
        "public cache primary foreign partition sort idempotency object row group bucket hash publishable site "
        "pub verify verification socket websocket dedupe dedup s3 translation i18n message event lookup unique "
        "composite index anon gpg pgp host known map dict json column item"
    )
)
"""Words before `key` that make it one which opens nothing."""
NOT_TOKENS = frozenset(
    _each(
        "page next continuation sync pagination cursor prev previous cancellation eos bos pad unk sep cls mask "
        "special nextpage design stop start end lexer"
    )
)
"""Words before `token` likewise."""


FOREIGN = (
    "mot de passe",
    "contrase\u00f1a",
    "contrasena",
    "clave",
    "senha",
    "palavra-passe",
    "palavra passe",
    "wachtwoord",
    "kennwort",
    "parola",
    "has\u0142o",
    "haslo",
    "heslo",
    "l\u00f6senord",
    "adgangskode",
    "passord",
    "salasana",
    "jelsz\u00f3",
    "\u015fifre",
    "sifre",
    "\u043f\u0430\u0440\u043e\u043b",
    "\u03ba\u03c9\u03b4\u03b9\u03ba",
    "\u5bc6\u7801",
    "\u5bc6\u78bc",
    "\u53e3\u4ee4",
    "\u30d1\u30b9\u30ef\u30fc\u30c9",
    "\u6697\u8a3c\u756a\u53f7",
    "\ube44\ubc00\ubc88\ud638",
    "m\u1eadt kh\u1ea9u",
    "kata sandi",
    "\u0643\u0644\u0645\u0629",
    "\u05e1\u05d9\u05e1\u05de",
    "\u092a\u093e\u0938\u0935\u0930\u094d\u0921",
    "\u0440\u043e\u0437\u043f\u0456\u0437",
    "\u0e23\u0e2b\u0e31\u0e2a\u0e1c\u0e48\u0e32\u0e19",
    "slapta\u017eod",
    "lozink",
    "geslo",
    "zaporka",
)
"""What a password is called elsewhere, as far as the word never changes."""
FOREIGN_KEYS = (
    "schl\u00fcssel",
    "schluessel",
    "cl\u00e9",
    "clave",
    "chiave",
    "chave",
    "klucz",
    "sleutel",
    "nyckel",
    "n\u00f8gle",
    "n\u00f8kkel",
    "avain",
    "kl\u00ed\u010d",
    "kulcs",
    "anahtar",
    "\u043a\u043b\u044e\u0447",
    "\u0442\u043e\u043a\u0435\u043d",
    "\u5bc6\u94a5",
    "\u5bc6\u9470",
    "\u4ee4\u724c",
    "\u30ad\u30fc",
    "\u30c8\u30fc\u30af\u30f3",
    "\ud0a4",
    "\ud1a0\ud070",
    "jeton",
    "geheimnis",
    "segreto",
    "secreto",
    "segredo",
    "sekret",
    "geheim",
)
"""What a key, a token or a secret is called elsewhere: a value is taken only where it looks made at random."""

OPTIONAL = _each(
    "obligatori[oa] obrigat[o\u00f3]ri[oa] requerid[oa] erforderlich obligatoire requise? verplicht none null nil "
    "true false undefined required optional empty redacted hidden masked missing unknown default str(?:ing)? "
    "bytes int(?:eger)? number bool(?:ean)? any object text varchar.* char secretstr unset invalid todo test n/?a "
    "yes no bearer basic jwt oauth2? disabled enabled prompt ask env vault keyring file"
)
"""Words that stand where a value would, as patterns."""
