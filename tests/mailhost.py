"""A mail host of our own for a test: a real Postfix and a real Dovecot, in a folder, on free ports of the loopback.

Postfix can only run as root. Nothing of the machine's own configuration is read or touched, and all of it goes with
the folder.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.needs import give_up
from tests.ports import free_port
from tests.sink import Certificate
from tests.sink import certificate as made_certificate

MASTER = Path("/usr/lib/postfix/sbin/master")
LDA = Path("/usr/lib/dovecot/dovecot-lda")
PATIENCE = 20.0
PASSWORD = "a password of the tests"

MAIN_CF = """compatibility_level = 3.6
config_directory = {folder}/postfix
queue_directory = {folder}/queue
data_directory = {folder}/data
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
mail_owner = postfix
setgid_group = postdrop
maillog_file_prefixes = {folder}
maillog_file = {folder}/log
myhostname = mx.example.com
mydestination =
mynetworks = 127.0.0.0/8
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
smtpd_peername_lookup = no
smtpd_relay_restrictions = permit_mynetworks, reject
recipient_delimiter = +
virtual_mailbox_domains = example.com, {bounces}
virtual_transport = dovecot
dovecot_destination_recipient_limit = 1
alias_maps =
"""
MASTER_CF = """127.0.0.1:{smtp} inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
proxymap unix - - n - - proxymap
postlog unix-dgram n - n - 1 postlogd
dovecot unix - n n - - pipe
  flags=DORhu user=nobody argv={lda} -c {folder}/dovecot.conf -f ${{sender}} -d ${{user}}@${{domain}}
"""
DOVECOT = """base_dir = {folder}/run
log_path = {folder}/dovecot.log
protocols = imap
listen = 127.0.0.1
ssl = required
ssl_cert = <{certificate}
ssl_key = <{key}
ssl_dh =
default_internal_user = nobody
default_internal_group = nogroup
default_login_user = nobody
mail_uid = nobody
mail_gid = nogroup
first_valid_uid = 1
first_valid_gid = 1
mail_location = maildir:{folder}/mails/%u
postmaster_address = postmaster@example.com
auth_mechanisms = plain
{knows}
passdb {{
  driver = passwd-file
  args = scheme=PLAIN username_format=%u {folder}/users
}}
userdb {{
  driver = passwd-file
  args = username_format=%u {folder}/users
  default_fields = uid=nobody gid=nogroup home={folder}/mails/%u
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = 0
  }}
  inet_listener imaps {{
    port = {imaps}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
}}
service auth {{
  unix_listener auth-userdb {{
    mode = 0666
  }}
}}
service stats {{
  unix_listener stats-writer {{
    mode = 0666
  }}
}}
"""


@dataclass(frozen=True)
class MailHost:
    """Where to hand mail in, where to fetch it, and the folder of it all."""

    smtp: int
    imaps: int
    folder: Path
    certificate: Path

    def inbox(self, user: str) -> str:
        """Return a user's mailbox as the setting INBOX has it."""
        name, password = user.replace("@", "%40"), PASSWORD.replace(" ", "%20")
        return f"imaps://{name}:{password}@localhost:{self.imaps}"

    def mails(self, user: str, folder: str = "") -> list[Path]:
        """Return the mails that lie in a user's folder."""
        place = self.folder / "mails" / user / (f".{folder}" if folder else "")
        return [path for part in ("new", "cur") for path in (place / part).glob("*")]

    def wait_for(self, user: str, count: int) -> None:
        """Wait until so many mails lie in a user's mailbox."""
        end = time.monotonic() + PATIENCE
        while len(self.mails(user)) < count:
            if time.monotonic() > end:
                raise TimeoutError(f"{count} mails for {user} did not come")
            time.sleep(0.05)


def require() -> None:
    """Give up where this machine cannot run a mail host."""
    if os.geteuid() != 0:
        give_up("Only root can start a Postfix.")
    if not MASTER.exists() or not LDA.exists() or shutil.which("dovecot") is None:
        give_up("There is no Postfix, or no Dovecot with IMAP, to send a mail around with.")


@contextmanager
def running(bounces: str, users: list[str], knows: str = "") -> Iterator[MailHost]:
    """Run both for these users of example.com and of the domain `bounces`; anybody else is refused.

    `knows` is what the IMAP server says that it can do, in place of all that it can.
    """
    require()
    folder = Path(tempfile.mkdtemp(prefix="broadsheet-mx-"))
    folder.chmod(0o755)
    host = MailHost(free_port(), free_port(), folder, folder / "certificate.pem")
    programs: list[subprocess.Popen[bytes]] = []
    try:
        _write(host, bounces, users, f"imap_capability = {knows}" if knows else "")
        for name in ("queue", "data", "mails", "run"):
            (folder / name).mkdir(exist_ok=True)
        shutil.chown(folder / "data", "postfix")
        shutil.chown(folder / "mails", "nobody", "nogroup")
        subprocess.run(["postfix", "-c", folder / "postfix", "check"], check=True, capture_output=True)
        programs.append(_start(folder, "dovecot", "-F", "-c", folder / "dovecot.conf"))
        programs.append(_start(folder, MASTER, "-c", folder / "postfix", "-d"))
        _wait_for(host, programs)
        yield host
    finally:
        for program in reversed(programs):
            program.terminate()
        for program in programs:
            program.wait(PATIENCE)
        shutil.rmtree(folder, ignore_errors=True)


def _write(host: MailHost, bounces: str, users: list[str], knows: str) -> None:
    made: Certificate = made_certificate(host.folder)
    (host.folder / "postfix").mkdir()
    words = {
        "folder": host.folder, "bounces": bounces, "smtp": host.smtp, "imaps": host.imaps, "lda": LDA,
        "certificate": made.certificate, "key": made.key, "knows": knows,
    }  # fmt: skip
    (host.folder / "postfix/main.cf").write_text(MAIN_CF.format(**words))
    (host.folder / "postfix/master.cf").write_text(MASTER_CF.format(**words))
    (host.folder / "dovecot.conf").write_text(DOVECOT.format(**words))
    (host.folder / "dovecot.log").touch()
    (host.folder / "dovecot.log").chmod(0o666)  # who delivers writes there, too
    lines = [f"{user}:{{PLAIN}}{PASSWORD}::::::\n" for user in users]
    (host.folder / "users").write_text("".join(lines))


def _start(folder: Path, *command: str | Path) -> subprocess.Popen[bytes]:
    with (folder / "started").open("ab") as output:
        return subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)


def _wait_for(host: MailHost, programs: list[subprocess.Popen[bytes]]) -> None:
    end = time.monotonic() + PATIENCE
    for port in (host.smtp, host.imaps):
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if time.monotonic() > end or any(one.poll() is not None for one in programs):
                    said = (
                        "".join(path.read_text() for path in host.folder.glob("*log"))
                        + (host.folder / "started").read_text()
                    )
                    raise RuntimeError(f"the mail host did not start: {said}") from None
                time.sleep(0.05)
