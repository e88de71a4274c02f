"""Redaction: what is a secret goes, what only looks or sounds like one stays."""

from __future__ import annotations

import io
import logging
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.errors import NotFoundError, ValidationError
from alma.ingest import Masked, Redacted, RedactingFilter, Rule, SecretRedactor, redact_record, redact_text
from alma.testing.builders import a_handoff, a_heuristic, a_memory, a_pattern

SECRETS = [
    ("sk-1234567890abcdef1234567890abcdef", "[redacted:openai_key]"),
    ("sk-abcdefghijklmnopqrstuvwxyz", "[redacted:openai_key]"),
    ("aws secret wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "aws secret [redacted:aws_secret_key]"),
    (
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "aws_secret_access_key = [redacted:aws_secret_key]",
    ),
    ("the staging login is bob / Tiger!9921", "the staging login is bob / [redacted:password]"),
    ("Authorization: Bearer abc123def456ghi789", "Authorization: Bearer [redacted:authorization]"),
    ('curl -H "Authorization: Basic dXNlcjpwYXNzd29yZA=="', 'curl -H "Authorization: Basic [redacted:authorization]"'),
    (
        "postgresql://alma:hunter2@db.example.com:5432/alma",
        "postgresql://alma:[redacted:url_password]@db.example.com:5432/alma",
    ),
    ("postgres://user:p@ss:w0rd@host/db", "postgres://user:[redacted:url_password]@host/db"),
    ("redis://:s3cr3tpw@localhost:6379/0", "redis://:[redacted:url_password]@localhost:6379/0"),
    (
        "mongodb+srv://admin:Tr0ub4dor@cluster0.mongodb.net/?retryWrites=true",
        "mongodb+srv://admin:[redacted:url_password]@cluster0.mongodb.net/?retryWrites=true",
    ),
    ("password=hunter2", "password=[redacted:password]"),
    ('password = "correct horse battery staple"', 'password = "[redacted:password]"'),
    ('"token": "abc123"', '"token": "[redacted:secret]"'),
    ('{"api_key": "9f8e7d6c5b4a3210"}', '{"api_key": "[redacted:secret]"}'),
    ("DB_PASSWORD=supersecret", "DB_PASSWORD=[redacted:password]"),
    ("export SECRET_KEY='django-insecure-abc'", "export SECRET_KEY='[redacted:secret]'"),
    ("password: hunter2", "password: [redacted:password]"),
    ("my password is hunter2", "my password is [redacted:secret]"),
    ("the password is 'swordfish'", "the password is '[redacted:secret]'"),
    (
        "Server=tcp:x.database.windows.net;User ID=sa;Password=Str0ngPass;Encrypt=true",
        "Server=tcp:x.database.windows.net;User ID=sa;Password=[redacted:password];Encrypt=true",
    ),
    ("4111 1111 1111 1111", "[redacted:credit_card]"),
    ("card 5500-0000-0000-0004 exp 12/27", "card [redacted:credit_card] exp 12/27"),
    ("378282246310005", "[redacted:credit_card]"),
    ("--token ghx12345abc", "--token [redacted:secret]"),
    ("client_secret: 8f7e6d5c-4b3a-2910", "client_secret: [redacted:secret]"),
    ("API key is abc123def456ghi", "API key is [redacted:secret]"),
    ("x-api-key: 3f2a9c8b7d6e5f4a3b2c1d0e", "x-api-key: [redacted:secret]"),
    ("PASSWORD: Passw0rd!", "PASSWORD: [redacted:password]"),
    ('passphrase: "open sesame now"', 'passphrase: "[redacted:password]"'),
    ("the root password was: Zx9#kk21", "the root password was: [redacted:secret]"),
    ("token=deadbeefcafebabe", "token=[redacted:secret]"),
    ("AZURE_OPENAI_API_KEY=0123456789abcdef0123456789abcdef", "AZURE_OPENAI_API_KEY=[redacted:secret]"),
    ("login with user admin and password hunter2!", "login with user admin and password [redacted:secret]"),
    ("secret_key_base: 7a8b9c0d1e2f3a4b5c6d7e8f", "secret_key_base: [redacted:secret]"),
    ("DB_PASS=hunter2", "DB_PASS=[redacted:password]"),
    ("ROOT_PW=hunter2", "ROOT_PW=[redacted:password]"),
    ("pw: hunter22", "pw: [redacted:password]"),
    ('let dbPassword: string = "hunter2";', 'let dbPassword: string = "[redacted:password]";'),
    ("**Password**: hunter2", "**Password**: [redacted:password]"),
    ("| password | hunter2 |", "| password | [redacted:password] |"),
    ("password → hunter2", "password → [redacted:password]"),
    ("password%3Dhunter2", "password%3D[redacted:password]"),
    ("API key: abcdef1234567890abcdef", "API key: [redacted:secret]"),
    ("use the api key abcdef1234567890abcdef", "use the api key [redacted:secret]"),
    ("use hunter2 as the password", "use [redacted:secret] as the password"),
    ("the PIN is 4821", "the PIN is [redacted:secret]"),
    ('the passphrase is "correct horse battery staple"', 'the passphrase is "[redacted:secret]"'),
    ("Passwort: geheim123", "Passwort: [redacted:password]"),
    ("пароль: qwerty123", "пароль: [redacted:password]"),
    ("密码：qwerty123", "密码：[redacted:password]"),
    ("<password>hunter2</password>", "<password>[redacted:secret]</password>"),
    ('<add key="ApiSecret" value="ab12cd34ef56" />', '<add key="ApiSecret" value="[redacted:secret]" />'),
    ('{"name": "DB_PASSWORD", "value": "hunter2"}', '{"name": "DB_PASSWORD", "value": "[redacted:secret]"}'),
    ("- name: DB_PASSWORD\n  value: hunter2", "- name: DB_PASSWORD\n  value: [redacted:secret]"),
    ("password: |\n  hunter2", "password: |\n  [redacted:secret]"),
    ("CREATE USER bob WITH PASSWORD 'hunter2'", "CREATE USER bob WITH PASSWORD '[redacted:password]'"),
    ("ALTER USER bob IDENTIFIED BY 'hunter2'", "ALTER USER bob IDENTIFIED BY '[redacted:password]'"),
    ('builder.withPassword("hunter2")', 'builder.withPassword("[redacted:password]")'),
    ("user: bob, pass: builder99", "user: bob, pass: [redacted:password]"),
    (
        "machine api.example.com login bob password swordfish",
        "machine api.example.com login bob password [redacted:password]",
    ),
    ("mysql -u root -pS3cretPw shop", "mysql -u root -p[redacted:password] shop"),
    ("sshpass -p hunter2 ssh root@host", "sshpass -p [redacted:password] ssh root@host"),
    ("docker login -u bob -p hunter2", "docker login -u bob -p [redacted:password]"),
    (
        "echo swordfish | docker login --password-stdin",
        "echo [redacted:password] | docker login --password-stdin",
    ),
    ("redis-cli -a hunter2 ping", "redis-cli -a [redacted:password] ping"),
    ("sqlplus scott/tiger@orcl", "sqlplus scott/[redacted:password]@orcl"),
    ("_auth = dXNlcjpwYXNzd29yZA==", "_auth = [redacted:basic_auth]"),
    ("SSN: 078-05-1120", "SSN: [redacted:ssn]"),
    ("born 1970, 219-09-9999, Ohio", "born 1970, [redacted:ssn], Ohio"),
    ("CVV: 123", "CVV: [redacted:code]"),
    ("your verification code is 482910", "your verification code is [redacted:code]"),
    (
        "mnemonic: abandon ability able about above absent absorb abstract absurd abuse access accident",
        "mnemonic: [redacted:seed_phrase]",
    ),
    ("password: 99Luftballons", "password: [redacted:password]"),
    ("password = 48NaGtOAw!", "password = [redacted:password]"),
    ("password: 1Password!", "password: [redacted:password]"),
    ("Password for user bob: Summer2024!", "Password for user bob: [redacted:secret]"),
    ("set the password to Summer2024!", "set the password to [redacted:secret]"),
    ("password:\n  S3cr3t!99", "password:\n  [redacted:password]"),
    ("pass: S3cr3t!99", "pass: [redacted:password]"),
    ("pass: hunter2", "pass: [redacted:password]"),
    ("PASS=hunter2", "PASS=[redacted:password]"),
    ("password: 7Dwarfs!!", "password: [redacted:password]"),
    ("password: 100%Secret", "password: [redacted:password]"),
    ("password = 4aNaGtOAw!", "password = [redacted:password]"),
    ("password: P@ssword", "password: [redacted:password]"),
    ("password: p@ssword", "password: [redacted:password]"),
    ("--db-password hunter2!9 --x", "--db-password [redacted:secret] --x"),
    ("--password 'hunter 2'", "--password '[redacted:secret]'"),
    ('--password "hunter2"', '--password "[redacted:secret]"'),
    ("-Password 'Hunter2x'", "-Password '[redacted:secret]'"),
    ("Password:\r\n\r\nS3cr3t!99", "Password:\r\n\r\n[redacted:password]"),
    ("the password of the admin account is Summer2024!", "the password of the admin account is [redacted:secret]"),
    (
        "changed the root password for staging to Winter2025!",
        "changed the root password for staging to [redacted:secret]",
    ),
    ('we reset bob\'s password to "Winter2025"', 'we reset bob\'s password to "[redacted:secret]"'),
    ("Das Passwort ist Sommer2024!", "Das Passwort ist [redacted:secret]"),
    ("Das Passwort lautet: Sommer2024", "Das Passwort lautet: [redacted:secret]"),
    ("le mot de passe est Ete2024!", "le mot de passe est [redacted:secret]"),
    ("la contraseña es Verano2024!", "la contraseña es [redacted:secret]"),
    ("a senha é Verao2024!", "a senha é [redacted:secret]"),
    ("het wachtwoord is Zomer2024!", "het wachtwoord is [redacted:secret]"),
    ("Kennwort: Sommer2024!", "Kennwort: [redacted:password]"),
    ("mot de passe : Ete2024!", "mot de passe : [redacted:password]"),
    ("mdp: Ete2024!", "mdp: [redacted:password]"),
    ("contraseña = Verano2024!", "contraseña = [redacted:password]"),
    ("hasło: Lato2024!", "hasło: [redacted:password]"),
    ("haslo: Lato2024!", "haslo: [redacted:password]"),
    ("heslo: Leto2024!", "heslo: [redacted:password]"),
    ("adgangskode: Sommer2024!", "adgangskode: [redacted:password]"),
    ("passord: Sommer2024!", "passord: [redacted:password]"),
    ("salasana: Kesa2024!", "salasana: [redacted:password]"),
    ("parola: Vara2024!", "parola: [redacted:password]"),
    ("şifre: Yaz2024!x", "şifre: [redacted:password]"),
    ("sifre: Yaz2024!x", "sifre: [redacted:password]"),
    ("jelszó: Nyar2024!", "jelszó: [redacted:password]"),
    ("пароль: Leto2024!", "пароль: [redacted:password]"),
    ("парола: Leto2024!", "парола: [redacted:password]"),
    ("비밀번호: Yeoreum2024!", "비밀번호: [redacted:password]"),
    ("mật khẩu: He2024!xx", "mật khẩu: [redacted:password]"),
    ("पासवर्ड: Garmi2024!", "पासवर्ड: [redacted:password]"),
    ("كلمة المرور: Sayf2024!", "كلمة المرور: [redacted:password]"),
    ("lösenord: Sommar2024!", "lösenord: [redacted:password]"),
    ("κωδικός: Kalokairi24!", "κωδικός: [redacted:password]"),
    ("API-Schlüssel: a1b2c3d4e5f6", "API-Schlüssel: [redacted:secret]"),
    ("clé API : a1b2c3d4e5f6", "clé API : [redacted:secret]"),
    ("clave de API: a1b2c3d4e5f6", "clave de API: [redacted:secret]"),
    ('password = """hunter2!9"""', 'password = """[redacted:password]"""'),
    ("password: |\n  line one\n  S3cr3t!99", "password: |\n  [redacted:secret]"),
    (
        "  secret_key: >-\n    a1b2c3d4e5f6g7h8\n    i9j0k1l2\nnext: x",
        "  secret_key: >-\n    [redacted:secret]\nnext: x",
    ),
    ('psk="my wifi pw 99"', 'psk="[redacted:password]"'),
    ("psk: hunter2hunter2", "psk: [redacted:password]"),
    ("wifi key: hunter2hunter2", "wifi key: [redacted:secret]"),
    ("creds: bob / hunter2!9", "creds: bob / [redacted:password]"),
    ("credentials are admin:hunter2", "credentials are [redacted:secret]"),
    ("login: bob / S3cr3t!99", "login: bob / [redacted:password]"),
    ("Zugangsdaten: bob / Sommer24", "Zugangsdaten: bob / [redacted:password]"),
    ("access code: 482913", "access code: [redacted:code]"),
    ("door code is 4829", "door code is [redacted:code]"),
    ('{"password":\n   "hunter2"}', '{"password":\n   "[redacted:password]"}'),
    (':password "hunter2!9"', ':password "[redacted:secret]"'),
    ('the password "hunter2!9" is weak', 'the password "[redacted:secret]" is weak'),
    ("X-Api-Key: abc123def456", "X-Api-Key: [redacted:secret]"),
    ("Set-Cookie: sid=abc123def456ghi789; Path=/", "Set-Cookie: [redacted:cookie]"),
    ("Cookie: theme=dark; session=abc123def456", "Cookie: [redacted:cookie]"),
    ('cookie: "sessionid=abc123def456"', 'cookie: "[redacted:cookie]"'),
    ("my pwd is hunter2!x", "my pwd is [redacted:secret]"),
    ("SSHPASS=hunter2", "SSHPASS=[redacted:password]"),
    ("DB_PASS: hunter2x", "DB_PASS: [redacted:password]"),
    ("db.password=hunter2", "db.password=[redacted:password]"),
    ("spring.datasource.password=hunter2", "spring.datasource.password=[redacted:password]"),
    ("[auth]\npassword = hunter2", "[auth]\npassword = [redacted:password]"),
    ("Password (prod): hunter2x", "Password (prod): [redacted:password]"),
    ("password for prod = hunter2x", "password for prod = [redacted:secret]"),
    ("pin code is 4821", "pin code is [redacted:secret]"),
    ("PIN: 4821", "PIN: [redacted:password]"),
    ("my password is 12345678, please keep it", "my password is [redacted:secret], please keep it"),
    ("the passcode for the door is 993311", "the passcode for the door is [redacted:secret]"),
    ("the PIN was changed to 4821", "the PIN was changed to [redacted:secret]"),
    (
        "root's password was changed to Winter#77 yesterday",
        "root's password was changed to [redacted:secret] yesterday",
    ),
    ("his password used to be Fluffy123", "his password used to be [redacted:secret]"),
    ("the api key was rotated to 9f8e7d6c5b4a", "the api key was rotated to [redacted:secret]"),
    ("Das Passwort wurde auf Winter2024! geändert", "Das Passwort wurde auf [redacted:secret] geändert"),
    ("le mot de passe a été changé en Soleil2023", "le mot de passe a été changé en [redacted:secret]"),
    ("la contraseña se cambió a Verano2024", "la contraseña se cambió a [redacted:secret]"),
    ("set the admin password to 'purple monkey dishwasher'", "set the admin password to '[redacted:secret]'"),
    ("pwd for bob => Xk29!kd", "pwd for bob => [redacted:secret]"),
    ("log in with admin / Passw0rd!23", "log in with admin / [redacted:password]"),
    ("secret word: xyzzy99!!", "secret word: [redacted:secret]"),
    ("user=bob&pass=hunter2x&x=1", "user=bob&pass=[redacted:password]&x=1"),
    ("bob's password: hunter2", "bob's password: [redacted:password]"),
    ("password=hunter2;", "password=[redacted:password];"),
    ("PASSWORD:hunter2x", "PASSWORD:[redacted:password]"),
    ("password is now Summer2024!", "password is now [redacted:secret]"),
    ("new password: Summer2024!", "new password: [redacted:password]"),
    ("The new password will be Summer2024!", "The new password will be [redacted:secret]"),
    ("temporary password Summer2024!", "temporary password [redacted:secret]"),
    ("ssh root@10.0.0.5 password toor123!", "ssh root@10.0.0.5 password [redacted:secret]"),
    ("Use password Summer2024! to log in", "Use password [redacted:secret] to log in"),
    ("Le mot de passe du serveur est Ete2024!", "Le mot de passe du serveur est [redacted:secret]"),
    ('"pass":"hunter2x"', '"pass":"[redacted:password]"'),
]
PIECES = [
    *(
        "password",
        "token",
        "api key",
        "=",
        ": ",
        " is ",
        " ",
        '"',
        "'",
        "|",
        "\n",
        "://",
        "@",
        "**",
        "%3D",
        "&",
        "{",
        "}",
    ),
    *("<password>", "</password>", "name=", "value=", "mysql -p", "Bearer ", "curl -u bob:", "otp ", "cookie: a=b"),
    *("hunter2", "abcdef1234567890abcdef", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "AKIAQ3EGRIVXW7TTKPUB"),
    *("4111 1111 1111 1111", "078-05-1120", "sk-proj-Ab12Cd34Ef56Gh78Ij90", "[redacted:", "[redacted:secret]", "]"),
]
HARMLESS = [
    "the password field is required",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "git sha 3b18e512dba79e4c8300dd08aeb37f8e728b8dad fixed it",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "/usr/local/lib/python3.11/site-packages/alma/storage/sql/transaction.py",
    "Use tokens: access tokens expire after 24h",
    "token: string",
    "token: str | None = None",
    "max_tokens=2000",
    "max_tokens: 4096",
    "The password must be at least 12 characters",
    "password: required",
    "Password: must contain a digit",
    'password = os.environ["DB_PASSWORD"]',
    "PASSWORD=$(cat /run/secrets/pw)",
    "password=${DB_PASSWORD}",
    "postgresql://user:${PASS}@host/db",
    "postgresql://user:<password>@host/db",
    "token = get_token()",
    "token = next_token",
    "api_key=settings.API_KEY",
    "Bearer authentication is used",
    "Use Bearer tokens for the API",
    "Basic authentication with the header",
    "the token is base64-encoded",
    "the token is valid for 30 minutes",
    "the secret is sha256-hashed",
    "task-runner-with-a-long-name-2024",
    "scikit-learn sk-learn pipelines",
    "Order 1234567890123456 was shipped",
    "phone +1 415 555 0100 and 2026-01-05T10:00:00Z",
    "idempotency_key=550e8400-e29b-41d4-a716-446655440000",
    "cache_key: user:42:profile",
    "primary_key=id",
    "session_id: 01a1dffb31d67147bed3f40bebeaef84",
    "secretary: Ann Smith",
    "The secret to success: hard work",
    "passing: true",
    "key: value",
    "monkey=banana",
    "keyboard: qwerty123",
    "https://example.com/path?id=123",
    "reset the password: click the link in the mail",
    "The tokenizer: cl100k_base",
    "tokens used: 1532",
    "author: token economy",
    "password reset is broken in v2.3.1",
    "forgot-password: see ticket ABC-1234",
    "compass: north",
    "bypass=true",
    "pinned: true",
    "public_key: ed25519 AAAAC3Nz",
    "sort tokens by count",
    "the API key is rotated monthly",
    "the api key is stored in vault",
    "token expiry = 3600",
    "access_token_ttl=3600",
    "password_min_length=8",
    "the password is correct",
    "secrets: see the vault",
    "passport: required",
    "msg_01XFDUDYJgAACzvnptvVoYEL and call_AbC123DEF456ghi789jkl012",
    "| password | string | required |",
    "password -> hashed with argon2id",
    "API key: rotate every 90 days",
    "session token: user:42",
    "argon2 is the password hash",
    "use Auth0 as the token provider",
    "the verification code is 6 digits",
    "the error code: 1234, the zip code is 90210",
    "part no 219-09-9999-A",
    "<secretName>db-credentials</secretName>",
    '<input type="password" name="password" value="" />',
    '{"name": "DB_PASSWORD", "value": "${DB_PASSWORD}"}',
    '{"name": "PASSWORD_MIN_LENGTH", "value": "12"}',
    "mysql -u root -p shop",
    "mkdir -p /var/lib/app && docker run -p 8080:80 nginx",
    "set_password(user) and check_password(raw_password)",
    "login: ok, pass: yes",
    "first_pass=300 second_pass=400",
    "the mnemonic: Every Good Boy Deserves Fudge",
    "seed: 42",
    "key=user_profile_settings_page",
    "the pin is 12 mm long",
    "Passwort: erforderlich",
    "integrity sha512-oRSIlBqsVLxrAbCdEfGhIjKlMnOp0123456789AbCdEfGhIjKlMnOp==",
    "password: must be at least 8 characters",
    "password reset",
    "token budget 2000",
    "api_key: required",
    "pass: 12 tests",
    "pass/fail",
    "secret: none",
    "pass: true",
    "PASS: test_login2",
    "--- PASS: TestParse2 (0.00s)",
    "PASS: libfoo2",
    "pass: 3/4",
    "pass: 98%",
    "pass rate: 98.5%",
    "first pass: 300ms",
    "pass=1",
    "password: 12-character minimum",
    "password: 8-16 chars",
    "token: 3600s",
    "token ttl: 24h",
    "password policy: 12 characters, 1 digit",
    "set the password to at least 12 characters",
    "set the password to 12chars",
    "the password to Server1 is in the vault",
    "Passwort auf Server1 ändern",
    "change the password on db2 every 90 days",
    "Password for user bob: see 1Password",
    "password manager: 1Password",
    "password: 1Password",
    "credentials: see vault",
    "credentials: AWS / GCP",
    "login: POST /login2 then redirect",
    "login: bob",
    "token type: bearer",
    "tokens: 1500",
    "tokens per minute: 90k",
    "the secret of v2.3.1: caching",
    "password:\n  type: string\n  minLength: 8",
    "password:\n  required: true",
    "secret:\n  secretName: db-credentials-v2",
    "secret:\n  db-credentials-v2",
    "token:\n- v2",
    "Password:\nMust contain a digit",
    "The key: value2go is fine",
    "key=value1",
    "Key insight 3x: cache",
    "pin: 12mm",
    "pin: numpy",
    "the password is 1234 characters long",
    "the password is 90 days old",
    "pin = GPIO4",
    "pin: numpy==1.26.4",
    "the password hash was changed to argon2id",
    "the secret was changed to vault2",
    "the token was rotated to RS256",
    "the password was reset to default",
    "the password used to be stored in 1Password",
    "set the password to 'your choice of words'",
    "log in as alice/team-7",
    "the login is SAML / OAuth2",
    "the login is broken: TimeoutError",
    "log in with user/password",
    "pin the version to 1.26.4",
    "pinned to v2",
    "keypass is set",
    "bypass: on2x",
    "compass: N45",
    "passage: John3:16",
    "the pass is 2500m high",
    "Mountain pass: A23",
    "pass: chrome120, firefox118",
    "token for api v2: 3600s",
    "password field has id login-pw-1",
    "secret santa 2024: buy gifts",
    "authorization: required",
    "Authorization: none",
    "cookie: accept",
    "cookie policy: see /legal",
    "cookie: theme=dark",
    "access code review: 12 comments",
    "error code 4048",
    "entry code path: main.py",
    "door: 4829",
    "Password: wrong!",
    "password: incorrect.",
    "password: expired on 2024-01-05",
    "password changed on 2024-01-05T10:00",
    "password=os.getenv('X')",
    "password: {{ vault_password }}",
    "clave: valor",
    "clave: usuario2",
    "api version: v2beta1",
    "The API key for staging is in 1Password",
    "api key for v2: see docs/setup2.md",
    "token = jwt.encode(payload)",
    "password: str",
    "creds: Optional[Creds] = None",
    "secret sharing: 3-of-5",
    "master key rotation: 90d",
    "session key: user:42",
    "the key was moved to us-east-1",
    "set token to null",
    "token is v4.local format",
    "passed: 12, failed: 3",
    "Passwort vergessen",
    "Passwort: mindestens 8 Zeichen",
    "mot de passe oublié : cliquez ici",
    "contraseña: mínimo 8 caracteres",
    "password hashing: argon2id with 64MB",
    "password: 10 chars",
    "passphrase: at least 4 words",
    "password is hashed with sha256",
    "the token is AES-256 encrypted",
    "test_pass=3",
    "pass_count: 12a",
    "boarding pass: gate B12",
    "psk: wpa2",
    "hint: the password is the usual one",
    "kodeord",
    "api: /v2/users",
    "credentials: OAuth2",
    "password: user@example.com",
    "--token-limit 4000",
    "--pass-through x1",
    "--password-file /run/x1",
    "token cost: $0.0025",
    "max tokens: 4k",
    "token count = 12k",
    "key-value: a1b2c3d4e5f6",
    "password Chapter12 explains it",
    "client_id=abc123def456",
    "private_key_id: 0123456789abcdef0123456789abcdef01234567",
]


def test_an_ampersand_inside_of_a_password_goes_with_it_and_the_next_parameter_stays() -> None:
    assert redact_text("my password: Tr0ub4dor&3").text == "my password: [redacted:password]"
    assert redact_text("?password=Tr0ub4dor3&user=ada").text == "?password=[redacted:password]&user=ada"


def test_a_secret_is_masked_alone_and_inside_of_a_sentence() -> None:
    for text, expected in SECRETS:
        assert redact_text(text).text == expected
        assert redact_text(f"see here:\n{text}\nand go on").text == f"see here:\n{expected}\nand go on"
        assert redact_text(expected).text == expected


def test_text_without_secrets_survives() -> None:
    assert [text for text in HARMLESS if redact_text(text).text != text] == []


@pytest.mark.parametrize("kind", ["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""])
def test_private_keys_go_whole(kind: str) -> None:
    key = f"-----BEGIN {kind}PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\nabc+/=\n-----END {kind}PRIVATE KEY-----"
    assert redact_text(f"a {key} b").text == "a [redacted:private_key] b"
    escaped = key.replace("\n", "\\n")
    assert redact_text(f'{{"k": "{escaped}"}}').text == '{"k": "[redacted:private_key]"}'


def test_a_private_key_without_an_end_goes_as_well() -> None:
    assert "MIIE" not in redact_text("-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\nabc").text


def test_the_report_names_kind_and_field_and_never_the_value() -> None:
    record, masked = redact_record(a_heuristic(strategy="log in with password=hunter2", metadata={"token": "abc123x"}))
    assert masked == (Masked("password", "strategy"), Masked("secret", "metadata.token"))
    assert "hunter2" not in repr((record, masked))
    assert "abc123x" not in repr((record, masked))


def test_lists_numbers_and_nested_json_are_redacted() -> None:
    handoff, _ = redact_record(a_handoff(next_steps=["use password=hunter2", "fine"], metadata={"a": {"pin": 123456}}))
    assert handoff.next_steps == ("use password=[redacted:password]", "fine")
    assert handoff.metadata == {"a": {"pin": "[redacted:secret]"}}


SECRET_JSON: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"pass": "S3cr3t!99"}, {"pass": "[redacted:secret]"}),
    ({"Authorization": "abc123def456ghi789jkl"}, {"Authorization": "[redacted:secret]"}),
    ({"headers": {"Cookie": "sessionid=abc123def456ghi789"}}, {"headers": {"Cookie": "[redacted:secret]"}}),
    ({"cookies": {"sessionid": "abc123def456ghi789"}}, {"cookies": {"sessionid": "[redacted:secret]"}}),
    ({"api_key": {"value": "A1b2C3d4E5"}}, {"api_key": {"value": "[redacted:secret]"}}),
    ({"token": {"current": {"raw": "abc123"}}}, {"token": {"current": {"raw": "[redacted:secret]"}}}),
    (
        {"credentials": {"user": "bob", "pass": "hunter2!9"}},
        {"credentials": {"user": "bob", "pass": "[redacted:secret]"}},
    ),
    ({"passphrase": "my S3cr3t horse !99"}, {"passphrase": "[redacted:secret]"}),
    ({"args": ["--password", "hunter2!9", "-v"]}, {"args": ["--password", "[redacted:secret]", "-v"]}),
    ({"args": ["mysql", "-u", "root", "-phunter2!9"]}, {"args": ["mysql", "-u", "root", "-p[redacted:password]"]}),
    ({"name": "DB_PASSWORD", "value": "hunter2!9"}, {"name": "DB_PASSWORD", "value": "[redacted:secret]"}),
    ({"env": [{"key": "TOKEN", "value": "a1b2c3d4"}]}, {"env": [{"key": "TOKEN", "value": "[redacted:secret]"}]}),
    ({"rows": [["password", "hunter2!9"]]}, {"rows": [["password", "[redacted:secret]"]]}),
    ({"pair": ["token", "A1b2C3d4E5f6G7h8"]}, {"pair": ["token", "[redacted:secret]"]}),
    ({"auth": ["bob", "S3cr3t!99"]}, {"auth": ["bob", "[redacted:secret]"]}),
    ({"secrets": ["A1b2C3d4E5"]}, {"secrets": ["[redacted:secret]"]}),
    ({"otp": "482913", "cvv": 1234}, {"otp": "[redacted:secret]", "cvv": "[redacted:secret]"}),
    (
        {"Passwort": "geheim", "contraseña": "secreta"},
        {"Passwort": "[redacted:secret]", "contraseña": "[redacted:secret]"},
    ),
]
HARMLESS_JSON: list[dict[str, Any]] = [
    {"pass": 12, "fail": 3, "pass_rate": "98%", "passed": "step12"},
    {"pass": "12 of 14", "status": {"pass": ["test_a1", "test_b2"]}},
    {"password": {"type": "string", "minLength": 8, "description": "The password must be long"}},
    {"token": {"type": "bearer", "expires_in": 3600, "scope": "read"}},
    {"tokens": {"prompt": 1200, "completion": 3400}, "token_usage": {"input": 12000}, "token_count": {"gpt4": 1200}},
    {"tags": ["token", "python3"], "fields": ["password", "username"], "columns": ["api_key", "s3_bucket"]},
    {"args": ["--verbose", "x1", "--output", "a1.txt"], "flag": ["-p", "8080:80"]},
    {"auth": "OAuth2.0", "auth_provider": "Keycloak24", "Authorization": "required"},
    {"cookie": "accepted", "cookies": {"theme": "dark"}, "otp": "required", "otp_length": 6},
    {"credentials": {"provider": "aws", "region": "us-east-1"}, "has_secret": True, "secret": None},
    {"steps": [{"name": "open", "value": "/cart1"}, {"name": "token", "value": "${TOKEN}"}]},
    {"key": "user42", "keys": ["a1", "b2"], "session": "abc123def456", "secretary": "Ann3"},
]


@pytest.mark.parametrize(("given_json", "expected"), SECRET_JSON)
def test_a_secret_is_found_in_json_by_what_it_stands_under_behind_or_beside(
    given_json: dict[str, Any], expected: dict[str, Any]
) -> None:
    memory, masked = redact_record(a_memory(content_json=given_json))
    assert memory.content_json == expected
    assert masked
    assert redact_record(memory)[0] is memory


@pytest.mark.parametrize("given_json", HARMLESS_JSON)
def test_json_that_only_speaks_of_secrets_survives(given_json: dict[str, Any]) -> None:
    record = a_memory(content_json=given_json)
    assert redact_record(record) == (record, ())


def test_a_name_that_holds_a_secret_itself_does_not_come_into_the_value() -> None:
    name = "password=hunter2 token"
    assert SecretRedactor().redact("see the wiki", name).text == "see the wiki"
    assert SecretRedactor().redact("A1b2C3d4E5", name).text == "[redacted:secret]"


def test_a_pattern_that_fits_the_mark_itself_does_not_mask_it_again() -> None:
    redactor = SecretRedactor([Rule("badge", "", re.compile("badge|redacted"))])
    assert redactor.redact("my badge").text == "my [redacted:badge]"
    assert redactor.redact("my [redacted:badge]").text == "my [redacted:badge]"


def test_json_under_the_name_of_a_secret_is_masked_unless_it_is_a_placeholder() -> None:
    given_json = {"api_key": "plainword", "password": "${DB_PASSWORD}", "max_tokens": 4096, "token_type": "bearer"}
    memory, masked = redact_record(a_memory(content_json=given_json))
    assert memory.content_json == {**given_json, "api_key": "[redacted:secret]"}
    assert masked == (Masked("secret", "content_json.api_key"),)


def test_secrets_that_are_keys_of_json_stay_apart() -> None:
    keys = ["ghp_16C7e42F292c6912E7710c838347Ae178B4a", "ghp_26C7e42F292c6912E7710c838347Ae178B4a"]
    memory, _ = redact_record(a_memory(content_json={keys[0]: 1, keys[1]: 2}))
    assert memory.content_json == {"[redacted:github_token]": 1, "[redacted:github_token]'": 2}


def test_the_name_of_a_variable_is_not_a_secret() -> None:
    record = a_memory(content="api_key=OPENAI_API_KEY", content_json={"password": "DB_PASSWORD"})
    assert redact_record(record) == (record, ())


def test_a_record_without_secrets_is_the_same_record() -> None:
    record = a_memory(content="the password field is required")
    assert redact_record(record) == (record, ())
    assert redact_record(record)[0] is record


def test_what_replaces_a_secret_fits_into_its_field() -> None:
    pattern, masked = redact_record(a_pattern(pattern_name="x" * 188 + " pwd=abcde"))
    assert masked
    assert len(pattern.pattern_name) == 200


def test_no_message_of_an_error_tells_a_secret() -> None:
    key = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    with pytest.raises(ValidationError) as refused:
        a_heuristic(confidence=f"as sure as {key}")
    assert key not in str(refused.value)
    assert "[redacted:github_token]" in str(refused.value)
    assert key not in str(NotFoundError("memory", key))


def test_rules_of_ones_own_come_on_top() -> None:
    redactor = SecretRedactor([Rule("badge", "badge", re.compile(r"badge-\d+"))])
    assert redactor.redact("badge-123 and password=hunter2").text == "[redacted:badge] and password=[redacted:password]"


def test_what_is_logged_has_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("alma.test")
    given = {"token": "abc123xyz", "tries": 3, "note": "fine"}
    with caplog.filtering(RedactingFilter()):
        logger.warning("logging in with %s", "password=hunter2", extra=given)
        logger.warning("nothing %s here", "secret")
    first, second = caplog.records
    assert first.getMessage() == "logging in with password=[redacted:password]"
    assert (first.__dict__["token"], first.__dict__["tries"], first.__dict__["note"]) == (
        "[redacted:secret]",
        3,
        "fine",
    )
    assert second.getMessage() == "nothing secret here"


def test_neither_errors_nor_nested_facts_bring_a_secret_into_a_log(caplog: pytest.LogCaptureFixture) -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.addFilter(RedactingFilter())
    logger = logging.getLogger("alma.test.errors")
    logger.addHandler(handler)
    given = {"headers": [{"Authorization": "Bearer abcdef123456"}], "tries": 3}
    try:
        raise ConnectionError("postgresql://app:N0tS0S3cret@10.0.0.3/app")
    except ConnectionError:
        logger.exception("cannot connect", extra={"request": given}, stack_info=True)
    finally:
        logger.removeHandler(handler)
    assert "N0tS0S3cret" not in written.getvalue()
    assert "ConnectionError: postgresql://app:[redacted:" in written.getvalue()
    assert caplog.records[0].__dict__["request"]["tries"] == 3
    assert "abcdef123456" not in str(caplog.records[0].__dict__["request"])
    assert given["headers"] == [{"Authorization": "Bearer abcdef123456"}]


def test_an_error_without_secrets_is_logged_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    given = {"pair": complex(1, 2), "keys": {1: "a"}}
    with caplog.filtering(RedactingFilter()):
        try:
            raise ConnectionError("no route")
        except ConnectionError:
            logging.getLogger("alma.test").exception("cannot connect", extra=given)
    (record,) = caplog.records
    assert record.exc_info is not None
    assert (record.__dict__["pair"], record.__dict__["keys"]) == (complex(1, 2), {1: "a"})


def test_a_message_that_the_redactor_fails_at_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def redact(self, text: str, name: str = "") -> Redacted:
            raise RuntimeError(text)

    with caplog.filtering(RedactingFilter(Broken())):
        logging.getLogger("alma.test").warning("password=%s", "hunter2", extra={"token": "abc123xyz"})
    (record,) = caplog.records
    assert record.getMessage() == "a message was left out, as the redactor failed at it"
    assert record.__dict__["token"] is None


@given(st.text(max_size=300))
def test_any_text_can_be_redacted_and_redaction_is_final(text: str) -> None:
    once = redact_text(text).text
    assert redact_text(once).text == once


def test_of_secrets_that_stand_side_by_side_none_is_left() -> None:
    found = redact_text("AKIAQ3EGRIVXW7TTKPUBghp_16C7e42F292c6912E7710c838347Ae178B4a")
    assert found.text == "[redacted:aws_access_key][redacted:github_token]"
    assert {masked.kind for masked in found.findings} == {"aws_access_key", "github_token"}


@given(st.lists(st.sampled_from(PIECES), min_size=2, max_size=9).map("".join))
def test_what_looks_like_secrets_is_redacted_once_and_for_all(text: str) -> None:
    once = redact_text(text).text
    assert redact_text(once).text == once


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "password",
        "=",
        "token: ",
        "-----BEGIN PRIVATE KEY-----",
        "://a:",
        "4111",
        "secret ",
        "x.y_-",
        "eyJ",
        "a: |\n ",
        "\n ",
        "<a>",
        "name=",
        "password:",
        "pass: ",
        "password\n",
        "set the password to ",
        "--token ",
        "cookie: ",
        "1 password for ",
        "pat",
        "a: |\n  b\n  c\n",
        "password='",
        "a,password\n",
        "('a',",
        "eyJabcdefgh.\n",
        "kind: Secret\n",
        "pass\u200bword: ",
        "<input type=password ",
    ],
)
def test_no_text_makes_redaction_slow(piece: str) -> None:
    started = time.process_time()
    redact_text(piece * (200_000 // len(piece)))
    assert time.process_time() - started < 5
