"""What tells kinds of returned mail apart, and what is ours in them: marks in headers, subjects and addresses."""

import re
from collections.abc import Iterable

from app.feedback.mime import Headers, shown

# A return path of ours (see mail/verp.py), and the address of a `mailto:` for leaving.
_PATH = re.compile(r"(?<![A-Za-z0-9])[Bb]\+[A-Za-z2-7]{40}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,10}")
_LEAVE = re.compile(r"(?<![A-Za-z0-9])unsubscribe\+([A-Za-z0-9_-]{32})@", re.IGNORECASE)
_MESSAGE_ID = re.compile(r"<([^<>\s]{1,250})>")
_DAEMON = re.compile(
    r"daemon|post.?master|poostmaster|mail.?deliver|delivery.?(?:sub)?system|administrator|mail.?system|mail.?server"
    r"|bounces?@|smtp(?:d|server)?@|delivery (?:notif|report|status)|(?:content|mail) filter|administrateur|amministrator"
    r"|administrador|администратор|почтов\w{2,4} (?:систем|сервер)|postsystem|退信|(?:系统|系統)管理|管理者|関連システム",
    re.IGNORECASE,
)
_FAILED = re.compile(
    r"undeliver|yet (?:to be |been )?deliver|frozen"
    r"|(?:un|not) ?deliverable|deliver\w{0,3} (?:status|fail|notif|report|error|problem|delay|subsystem|has)"
    r"|(?:mail|message|e-?mail) (?:\w{1,9} ){0,2}(?:not|could|deliver|fail|bounce|return|error|reject|system)"
    r"|(?:could ?n.t|could not|unable to|cannot|can't|was ?n.t|not) be(?:en)? deliver"
    r"|fail(?:ed|ure) (?:mail|notice|delivery|notification)|return(?:ed|ing) (?:mail|message|e-?mail|to sender)"
    r"|bounce|non.?delivery|nondeliverable|unzustellbar|non (?:remis|recapitab|distribu)|no (?:se )?(?:pudo )?entreg"
    r"|mail status report|warning: (?:could|message|mail)|rejected (?:mail|message)|user unknown|unknown user"
    r"|no se (?:ha podido|puede entregar)|недостав|не доставлен|невозможно доставить"
    r"|onbestelbaar|niet (?:bezorgd|afgeleverd)|mancat[ao] (?:consegna|recapito)|n.o (?:foi )?(?:poss.vel )?entreg"
    r"|falha (?:na|de) entrega|niedostarcz|nie mo.na dostarczy|nedoru.iteln|oleverer|kan (?:inte|ikke) levere"
    r"|teslim edile|k.zbes.thetetlen|반송|(?:전송|배달|발송) ?(?:실패|되지)|送信エラー"
    r"|zustell\w{0,6}(?:status|fehler|problem|bericht|benachrichtigung)|zustellung .{0,60}(?:fehlgeschlagen|verz.gert)"
    r"|(?:nicht|konnte) .{0,40}(?:zugestellt|ausgeliefert|.bermittelt)|.bermittlung .{0,60}fehlgeschlagen"
    r"|.tat de remise|.chec .{0,20}(?:remise|distribution|envoi)|avis de (?:non|retard)|(?:pas|n'a pu) .{0,20}(?:remis|distribu|livr|achemin)"
    r"|estado de (?:la )?entrega|(?:error|fallo|problema)s? .{0,12}(?:entrega|env.o)|no .{0,20}entregad|correo devuelto|mensa\w{2,3} devolvid"
    r"|n.o (?:foi|p.de) .{0,20}entregue|non .{0,12}(?:consegnat|recapitat)|(?:avviso|notifica) di (?:mancat|non)|impossibile (?:consegnare|recapitare)"
    r"|nie (?:zosta.|mo.e) .{0,20}dor.cz|zwrot (?:poczty|wiadomo)|nebyla doru.en|nelze doru.it|kon niet worden"
    r"|kunde inte lever|kunne ikke lever|ei voitu toimittaa|nem k.zbes.thet|iletilemed|(?:письмо|сообщение).{0,40}(?:не (?:может|было|удалось)|возвращ)"
    r"|退信|退回|(?:无法|無法|未能)(?:投递|送达|投遞|傳遞|送達)|投递失败|投遞失敗|配信(?:できません|不能|エラー)|不達|エラーメール",
    re.IGNORECASE,
)
_AWAY = re.compile(
    r"^(?:re: ?|aw: ?)?(?:\[?(?:auto|automatic|automated|automatisch|automatisk|out[- ]of|vacation|away|absent|absence"
    r"|i.?m away|on (?:vacation|holiday|leave)|abwesen|respuesta auto|r.ponse auto|risposta auto|resposta auto"
    r"|fuori (?:sede|ufficio)|assen[tz]|fuera de|ausen[tc]|ausência|fora do escrit|autosvar|fr.nvaro|frav.r|poissa|afwezig|nieobecn"
    r"|autoodpowied|nep..tom|automatick|automata|ofis d|otomatik|автоответ|отсутств|вне офиса"
    r"|自動応答|自動返信|不在|自动(?:回复|答复)|自動回覆|休假|부재|자동))",
    re.IGNORECASE,
)
_LEAVES = re.compile(
    r"(?:re: ?)?[\W_]{0,4}(?:unsubscribe|opt.?out|remove me|list-unsubscribe|退订|取消订阅)[\W_]{0,4}",
    re.IGNORECASE,
)
_AUTOMATIC = (
    "x-autoreply",
    "x-autorespond",
    "x-autoreply-from",
    "x-autoresponder",
    "x-mail-autoreply",
    "x-vacation",
    "x-auto-response-suppress",
    "x-rt-loop-prevention",
)
_TO = ("to", "delivered-to", "x-original-to", "envelope-to", "x-envelope-to")


def leaving(envelope_to: str | None, headers: Headers) -> str | None:
    """The token of a reader who writes to the `mailto:` for leaving (RFC 2369 §3.2); None for other mail."""
    found = next((one for where in _places(envelope_to, headers) if (one := _LEAVE.search(where))), None)
    return found[1] if found else None


def wants_out(headers: Headers) -> bool:
    """Whether the mail says by its Subject, or Apple's mark, that its sender wants no more of ours."""
    return bool(
        headers.get("x-apple-unsubscribe") or _LEAVES.fullmatch(shown(headers.get("subject")).strip())
    )


def return_path(places: Iterable[str]) -> str | None:
    """The first return path of ours in these texts, as it stands; whether it is authentic, `verp.read` says."""
    found = next((one for where in places if (one := _PATH.search(where))), None)
    return found[0] if found else None


def places(envelope_to: str | None, headers: Headers) -> Iterable[str]:
    """Where the address a mail was sent to may stand, the surest first."""
    return _places(envelope_to, headers)


def message_id(headers: Headers) -> str | None:
    """The Message-ID of a mail, without its brackets."""
    found = _MESSAGE_ID.search(headers.get("message-id"))
    return found[1] if found else None


def from_a_daemon(headers: Headers) -> bool:
    """Whether the From is a mail system's."""
    sender = shown(headers.get("from"))
    return bool(_DAEMON.search(sender)) or sender.strip() in ("", "<>")


def told_in_subject(headers: Headers) -> bool:
    """Whether the Subject speaks of mail that was not delivered."""
    return bool(_FAILED.search(shown(headers.get("subject"))))


def tells_of_failure(words: str) -> bool:
    """Whether the words speak of mail that was not delivered."""
    return bool(_FAILED.search(words))


def automatic(headers: Headers) -> bool:
    """Whether the mail says that a machine answered for a person (RFC 3834 §5, and what was used before it).

    Bounces carry the same marks, so ask this only of what is no bounce.
    """
    word = headers.get("auto-submitted").split(";")[0].strip().lower()
    return (
        word.startswith(("auto-replied", "auto-generated", "auto-notified"))
        or any(headers.get(one) for one in _AUTOMATIC)
        or "auto" in headers.get("precedence").lower()
        or "auto" in headers.get("x-precedence").lower()
        or bool(_AWAY.match(shown(headers.get("subject")).strip()))
    )


def _places(envelope_to: str | None, headers: Headers) -> Iterable[str]:
    return [envelope_to] if envelope_to else headers.all(*_TO)
