"""A relay that misbehaves: 421, greylisting, broken connections, lost answers, slowness, absence, refusals of us."""

import time

from chaos.fault import CONNECTIONS, Fault, enter
from chaos.place import Broken, until
from chaos.scene import Scene
from tests.ports import free_port
from tests.sink import (
    Action,
    Ending,
    Event,
    Script,
    Stage,
    accept_then,
    at,
    certificate,
    close,
    delay,
    hang,
    reply,
    reset,
)

STAGES: tuple[Stage, ...] = ("connect", "mail", "rcpt", "data", "body", "dot")
STORM = 30.0  # seconds; the design's five minutes are more of the same minute-long pauses
AWAY = 12.0  # seconds for which a relay is away, while the clock is turned by 20 minutes


def sometimes(
    scene: Scene, stage: Stage, share: float, action: Action, most: int = 1 << 30
) -> tuple[list[int], Script]:
    """A script that acts at a stage by chance; the list counts how often."""
    events = [0]

    def script(event: Event) -> Action | None:
        if event.stage != stage or events[0] >= most or scene.rolls.random() >= share:
            return None
        events[0] += 1
        return action

    return events, script


def unsuppressed(scene: Scene) -> None:
    """Raise Broken when somebody was suppressed."""
    if many := scene.place.one("SELECT count(*) FROM suppression"):
        raise Broken(f"{many} readers were suppressed")


def put_off(scene: Scene) -> None:
    """F8: 421 at each stage now and then, and at last at every connection for a while."""
    chance = dict.fromkeys(STAGES, 0.01)

    def script(event: Event) -> Action | None:
        hit = scene.rolls.random() < chance.get(event.stage, 0)
        return reply("421 4.3.2 Not now") if hit else None

    scene.sink.script = script
    scene.send()
    worker = scene.worker()
    scene.arrive(len(scene.addresses) // 2)
    scene.sink.script = at("mail", reply("421 4.3.2 Going down"))
    tries, marks = scene.sink.connections, []
    for _ in range(3):
        time.sleep(STORM / 3)
        marks.append(scene.sink.connections - tries)
        tries = scene.sink.connections
    scene.sink.script = None
    scene.patiently()
    worker.stop()
    unsuppressed(scene)
    if marks[-1] > marks[0] or marks[-1] > 5:
        raise Broken(f"tries in each third of the storm: {marks}")
    scene.note(f"tries in each third of a storm of {STORM:.0f} s: {' '.join(map(str, marks))}")


def greylisted(scene: Scene) -> None:
    """F9: 451 to everybody who is not known for five minutes."""
    met: dict[str, float] = {}

    def script(event: Event) -> Action | None:
        if event.stage != "rcpt" or event.recipient is None:
            return None
        now = scene.now().timestamp()
        is_new = now - met.setdefault(event.recipient, now) < 5 * 60
        return reply("451 4.7.1 Greylisted, come back later") if is_new else None

    scene.sink.script = script
    scene.send()
    worker = scene.worker()
    turns = scene.patiently()
    worker.stop()
    everybody(scene)
    scene.note(f"{scene.attempts()} tries at most, clock turned {turns} times")


def everybody(scene: Scene) -> None:
    """Raise Broken unless every reader's mail is recorded as sent."""
    if (sent := scene.count("sent")) != len(scene.addresses):
        raise Broken(f"{sent} of {len(scene.addresses)} were sent")


def torn(scene: Scene) -> None:
    """F10: RST and FIN in the middle of a mail."""
    events, script = sometimes(scene, "body", 0.03, reset())
    _, other = sometimes(scene, "body", 0.03, close())
    scene.sink.script = lambda event: script(event) or other(event)
    scene.send()
    worker = scene.worker()
    scene.patiently()
    worker.stop()
    everybody(scene)
    scene.note(f"{events[0]} RST and about as many FIN")


def unanswered(scene: Scene) -> list[list[int]]:
    """Take some 2 % of all mails without saying so, in each of three ways; the lists count how often."""
    counts, scripts = [], []
    endings: dict[Ending, int] = {"reset": 20, "close": 20, "hang": 5}
    for ending, most in endings.items():
        events, script = sometimes(scene, "dot", 0.007, accept_then(ending), most)
        counts.append(events)
        scripts.append(script)
    scene.sink.script = lambda event: next((act for script in scripts if (act := script(event))), None)
    return counts


def lost_answers(scene: Scene) -> None:
    """F11: the answer after the dot is lost; the mail is sent again as the same message."""
    events = unanswered(scene)
    scene.send()
    worker = scene.worker(CHAOS_PATIENCE="5")
    scene.patiently()
    worker.stop()
    everybody(scene)
    scene.bound = sum(each for (each,) in events)
    scene.note(f"{scene.bound} answers lost; a dot is waited for 5 s here, not 600")


def held_answers(scene: Scene) -> None:
    """F11: the same, and the mailing holds what is uncertain."""
    events = unanswered(scene)
    scene.send(on_uncertain="hold")
    worker = scene.worker(CHAOS_PATIENCE="5")
    scene.patiently()
    worker.stop()
    if (shown := scene.count("uncertain")) != sum(each for (each,) in events):
        raise Broken(f"{shown} are shown as uncertain, {sum(each for (each,) in events)} were")
    scene.note(f"{shown} held as uncertain")


def slow(scene: Scene) -> None:
    """F12: now and then a mail takes long, one longer than a lease; nobody else waits for it."""
    first: list[str] = []

    def script(event: Event) -> Action | None:
        if event.stage != "dot":
            return None
        if not first:
            first.append(event.recipient or "")
            return delay(40)
        return delay(10 if scene.rolls.random() < 0.005 else 0.02)

    scene.sink.script = script
    scene.place.relay = f"{scene.sink.url}?connections=20"
    scene.send()
    workers = [scene.worker() for _ in range(1 if scene.is_sqlite else 2)]
    scene.finished(300)
    for worker in workers:
        worker.stop()
    scene.note(
        "one dot of 40 s (a lease is 30 s), 0.5 % of 10 s; nine minutes not tried: it is the same wait"
    )


def away(scene: Scene) -> None:
    """F13: the relay's name is not in the DNS, then it takes no connection, then it says nothing; then it is there."""
    port = free_port()
    scene.send()
    good = scene.place.relay
    for relay in (f"smtp+plain://relay.invalid:25?connections={CONNECTIONS}",
                  f"smtp+plain://127.0.0.1:{port}?connections={CONNECTIONS}"):  # fmt: skip
        scene.place.relay = relay
        worker = scene.worker(CHAOS_PATIENCE="3")
        until(lambda: scene.mailing()["problem"], "a word about the relay that is away", 60)
        scene.forward(20 * 60)
        time.sleep(AWAY)
        worker.stop()
    scene.place.relay = good
    scene.sink.script = at("connect", hang())
    worker = scene.worker(CHAOS_PATIENCE="3")
    time.sleep(AWAY)
    scene.forward(20 * 60)
    scene.sink.script = None
    scene.patiently()
    worker.stop()
    everybody(scene)
    if (tries := scene.attempts()) > 6:
        raise Broken(f"a mail was tried {tries} times")
    scene.note(f"{tries} tries at most; {AWAY:.0f} s each way with the clock turned by 20 min")


def refused(scene: Scene) -> None:
    """F14: wait until the mailing stands still, see what it cost, mend the cause, and let it go on."""
    worker = scene.worker(CHAOS_PATIENCE="5")
    until(lambda: scene.mailing()["problem"], "a word about our own fault", 60)
    time.sleep(5)
    tried = scene.place.one("SELECT count(*) FROM delivery WHERE attempts > 0 OR state <> 'owed'")
    shown = scene.mailing()
    unsuppressed(scene)
    worker.stop()
    scene.sink.script = None
    if shown["state"] == "paused":
        scene.place.run("mailings", "resume", "1")
    scene.forward(60)
    last = scene.worker()
    scene.patiently()
    last.stop()
    everybody(scene)
    scene.note(f"{tried} tried, {shown['state']}: {str(shown['problem'])[:60]}")
    if tried > 10:
        raise Broken(f"{tried} mails were tried before it stood still")


def wrong_login(scene: Scene) -> None:
    """F14: 535."""
    scene.sink.auth = ("us", "right")
    here = f"127.0.0.1:{scene.sink.port}?connections={CONNECTIONS}"
    scene.place.relay = f"smtp+plain://us:wrong@{here}"
    scene.send()
    worker = scene.worker()
    until(lambda: scene.mailing()["problem"], "a word about our own fault", 60)
    worker.stop()
    if scene.came:
        raise Broken("mail was sent without a login")
    scene.place.relay = f"smtp+plain://us:right@{here}"
    if scene.mailing()["state"] == "paused":
        scene.place.run("mailings", "resume", "1")
    unsuppressed(scene)
    last = scene.worker()
    scene.patiently()
    last.stop()
    everybody(scene)


def no_encryption(scene: Scene) -> None:
    """F14: no STARTTLS where the URL asks for it."""
    made = certificate(scene.place.folder)
    scene.place.relay = f"smtp://127.0.0.1:{scene.sink.port}?connections={CONNECTIONS}"
    scene.send()
    worker = scene.worker()
    until(lambda: scene.mailing()["problem"], "a word about our own fault", 60)
    worker.stop()
    if scene.came:
        raise Broken("mail was sent in the clear")
    scene.sink.starttls, scene.sink.context = True, made.server()
    if scene.mailing()["state"] == "paused":
        scene.place.run("mailings", "resume", "1")
    unsuppressed(scene)
    last = scene.worker(SSL_CERT_FILE=str(made.certificate))
    scene.patiently()
    last.stop()
    everybody(scene)


def not_ours(scene: Scene) -> None:
    """F14: 550 5.7.26 to every mail."""
    scene.sink.script = at("dot", reply("550 5.7.26 This mail is unauthenticated: SPF and DKIM did not pass"))
    scene.send()
    refused(scene)


enter(
    Fault("F8", "421 at each stage, then a storm of them", put_off, is_turned=True),
    Fault("F9", "greylisting for five minutes", greylisted, is_turned=True),
    Fault("F10", "RST and FIN inside a mail", torn, is_turned=True),
    Fault("F11-resend", "the answer to the dot is lost", lost_answers, is_turned=True),
    Fault("F11-hold", "the same with on_uncertain = hold", held_answers, is_turned=True),
    Fault("F12", "a slow relay", slow),
    Fault("F13", "a relay that is away", away, is_turned=True),
    Fault("F14-login", "535", wrong_login, is_turned=True),
    Fault("F14-tls", "no STARTTLS", no_encryption, is_turned=True),
    Fault("F14-sender", "550 5.7.26 to everything", not_ours, is_turned=True),
)
