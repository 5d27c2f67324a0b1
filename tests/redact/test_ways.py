"""Ways in which people and programs write a secret down: whatever the value, all of it is found."""

from __future__ import annotations

import pytest

from vmstore.redact.find import spans

MADE, HEX, WORD = "kX7pQ2mZ9wLr4TnB", "9f8e7d6c5b4a39281706f5e4d3c2b1a0", "Tr0ub4dor&3x"
VALUES = {"made": MADE, "hex": HEX, "word": WORD, "long": f"{MADE}aZ3{HEX}"[:48] + MADE}

WAYS = (
    '@click.option("--password", default="{made}")',
    'parser.add_argument("--api-key", type=str, default="{made}")',
    'os.getenv("DB_PASSWORD", "{word}")',
    "process.env.DB_PASSWORD || '{word}'",
    "os.environ.get('SECRET_KEY', '{made}')",
    "${{DB_PASSWORD:-{made}}}",
    "env('DB_PASSWORD', '{word}')",
    '@Value("${{db.password:{made}}}")',
    "  DBPassword:\n    Type: String\n    NoEcho: true\n    Default: {made}",
    "os.environ['API_TOKEN'] = '{made}'",
    "ENV REDIS_PASSWORD {made}",
    "ARG NPM_TOKEN={made}",
    "set DB_PASSWORD={word}\r\n",
    '$env:DB_PASSWORD = "{word}"',
    "setx API_KEY {made}",
    "ALTER USER ada WITH PASSWORD '{word}';",
    "CREATE USER 'ada'@'%' IDENTIFIED BY '{word}';",
    "GRANT ALL ON *.* TO 'x'@'%' IDENTIFIED BY '{word}'",
    "Server=db;Database=x;User Id=sa;Password={word};",
    "jdbc:postgresql://h/db?user=ada&password={made}",
    "amqp://ada:{made}@mq:5672/",
    "redis://:{made}@cache:6379/0",
    "mongodb+srv://ada:{made}@c.mongodb.net",
    "curl -H 'X-Api-Key: {made}' https://x",
    'curl -H "PRIVATE-TOKEN: {made}" x',
    "curl -u ada:{word} https://x",
    "wget --password={word} ftp://x",
    "helm install x --set auth.password={word}",
    "kubectl create secret generic db --from-literal=password={word}",
    "docker run -e MYSQL_ROOT_PASSWORD={word} mysql",
    "ansible_ssh_pass={word}",
    "ansible_become_password: {word}",
    "vault write auth/userpass/users/ada password={word}",
    "the root password is {word}.",
    "pw: {word}",
    "Login: ada / {word}",
    "username: ada\npassword: {word}",
    "pass = {word}",
    "Das Passwort lautet {word}",
    "Mot de passe : {word}",
    "la contrase\u00f1a es {word}",
    "\u041f\u0430\u0440\u043e\u043b\u044c: {word}",
    "\u5bc6\u7801\u662f{word}",
    "\u30d1\u30b9\u30ef\u30fc\u30c9\uff1a{word}",
    "\ube44\ubc00\ubc88\ud638: {word}",
    "my password's {word}",
    "password \u2192 {word}",
    "password => {word}",
    "| password | {word} |",
    "**Password:** {word}",
    "**Password**: `{word}`",
    "- Password: `{word}`",
    "<password>{word}</password>",
    '<add key="ApiKey" value="{made}"/>',
    '<property name="password" value="{word}"/>',
    'password="{word}"',
    '{{"name":"DB_PASSWORD","value":"{word}"}}',
    "- name: DB_PASSWORD\n  value: {word}",
    '"password": "{word}"',
    "'client_secret' => '{made}',",
    "Set-Cookie: sessionid={hex}; HttpOnly",
    "X-Auth-Token: {hex}",
    "x-api-key: {made}",
    "api_key={made}&x=1",
    "?access_token={made}",
    "machine api.x.com\n  login ada\n  password {word}",
    "//registry.npmjs.org/:_authToken={made}",
    "[pypi]\nusername = ada\npassword = {word}",
    "psk={word}",
    'wpa_passphrase="{word}"',
    "snmp-server community {made} RO",
    "echo '{word}' | sudo -S ls",
    "sshpass -p '{word}' ssh x",
    "mysql -u root -p{made} x",
    "PGPASSWORD={word} psql -h x",
    "psql postgresql://ada:{made}@h/x",
    "export TOKEN={hex}",
    'token = "{hex}"',
    "bearer_token: {hex}",
    "encryption_key: {hex}",
    "JWT_SECRET={made}",
    "signing secret {hex}",
    "I set it to {word} (the admin password)",
    "use {word} as the password",
    "credentials: ada:{word}",
    "user=ada pass={word}",
    "Passwort f\u00fcr den Server: {word}",
    "password for the staging box: {word}",
    "the api key you need is {hex}",
    "key={hex}",
    "secret: {hex}",
    "WLAN-Schl\u00fcssel: {made}",
    "wifi password - {word}",
    "temp password {word}, change it",
    "new pw is {word}",
    "pwd={word}",
    "PASS: {word}",
    '{{"kty":"RSA","n":"x","d":"{made}{made}"}}',
    "<RSAKeyValue><Modulus>x</Modulus><D>{made}{made}</D></RSAKeyValue>",
    "echo 'ada:{word}' | chpasswd",
    "ada:{word}@tcp(db:3306)/x",
    "ada:{word}@unix(/tmp/x)/y",
    "echo {made} | gh auth login --with-token",
    "echo {word} | passwd --stdin ada",
    "echo {word} | gpg --passphrase-fd 0 x",
    "private key: 0x{hex}{hex}",
    "privkey {hex}{hex}",
    "private-key: {hex}{hex}",
    "priv key is {hex}{hex}",
    "default login ada password {word}",
    "db:5433:x:ada:{word}",
    "db:6432:x:ada:{word}",
    "new Sdk('{made}{made}')",
    "new Api('{made}{made}')",
    "new ApiKey('{made}{made}')",
    "new OAuthHandler('{made}{made}')",
    "new Translator('{made}{made}')",
    "x.configure('{made}{made}')",
    "x.initialize('{made}{made}')",
    "x.connect('{made}{made}')",
    "algoliasearch('A1', '{made}{made}')",
    "use {word} as password",
    "use {word} as the passphrase",
    "prends {word} comme mot de passe",
    "usa {word} como contrase\u00f1a",
    "it is {word} (the passphrase)",
    "it is {word} (your pw)",
    "Zugangsdaten: ada / {word}",
    "Identifiants: ada / {word}",
    "Credenciales: ada / {word}",
    "Credenziali: ada / {word}",
    "Inloggegevens: ada / {word}",
    "Anmeldedaten: ada / {word}",
    "the secret, wrapped\n{long}\n{long}\nok",
    "credential in base64\n{long}\n{long}",
    "ASIAQ3EGW7Z4KDPLM2XV / {made}{made}12345678",
    'variable "db_password" {{\n  type = string\n  default = "{word}"\n}}',
    "smtp_password: !!str {made}",
    "My wifi key's {made}, by the door",
    "Zugang: PW {made} , Port 21",
    "use the token {hex} when it asks",
    "nimm {word} als Passwort",
    "I set {word} (das Passwort)",
    'client_secret = """\\\n  {long}\n  {made}"""',
)


@pytest.mark.parametrize("way", WAYS)
def test_the_value_is_found_whole(way: str) -> None:
    """Each value is covered to its end, and what stands around it stays."""
    text = way.format(**VALUES)
    hidden = {place for span in spans(text) for place in range(span.start, span.end)}
    for name, value in VALUES.items():
        if f"{{{name}}}" in way:
            start = text.index(value)
            assert hidden >= set(range(start, start + len(value))), text
    assert len(hidden) < len(text)


WALLET = "legal winner thank year wave sausage worth useful legal winner thank yellow"
NAMED = (
    *(
        f"{text}: {WALLET}"
        for text in ("mnemonic", "seed", "recovery phrase", "my wallet", "the phrase", "bip39", "BIP-39")
    ),
    *(f"{text}: A1B2C-3D4E5-F6G7H-8J9K0" for text in ("license key", "licence key", "product key", "activation code")),
    "Lizenzschl\u00fcssel: A1B2C-3D4E5-F6G7H-8J9K0",
    *(
        f"{text}: X12345678"
        for text in ("passport number", "Reisepass", "passeport", "pasaporte", "passaporto", "paspoort")
    ),
    *(
        "Personalausweis: L01X00T47",
        "Ausweisnummer: L01X00T47",
        "wif 5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ",
    ),
)


@pytest.mark.parametrize("text", NAMED)
def test_what_follows_the_name_is_found(text: str) -> None:
    """The words of a wallet, a licence, a passport: all that stands behind the name, and nothing of it before."""
    value = text.partition(" " if text.startswith("wif") else ": ")[2]
    assert [text[span.start : span.end] for span in spans(text)] == [value]
