"""How mail systems and answering machines say it, in their languages: not delivered, late, away, and who they are.

Patterns in pieces, a line or more for each language; a dot stands for a letter that is often written without its mark.
"""

import re

_ENGLISH_FAILED = (
    "undeliver",
    r"(?:error|problem|failure|unable|fail\w{0,2}) .{0,12}(?:send|deliver)",
    "yet (?:to be |been )?deliver",
    "frozen",
    "(?:un|not) ?deliverable",
    r"deliver\w{0,3} (?:status|fail|notif|report|error|problem|delay|subsystem|has)",
    r"(?:mail|message|e-?mail) (?:\w{1,9} ){0,2}(?:not|could|deliver|fail|bounce|return|error|reject|system error)",
    "(?:could ?n.t|could not|unable to|cannot|can't|was ?n.t|not) be(?:en)? deliver",
    "fail(?:ed|ure) (?:mail|notice|delivery|notification)",
    "return(?:ed|ing) (?:mail|message|e-?mail|to sender)",
    "bounce",
    "non.?delivery",
    "nondeliverable",
    "mail status report",
    "warning: (?:could|message|mail)",
    "rejected (?:mail|message)",
    "user unknown",
    "unknown user",
)
_GERMAN_FAILED = (
    "unzustellbar",
    r"zustell\w{0,6}(?:status|fehler|problem|bericht|benachrichtigung)",
    "zustellung .{0,60}(?:fehlgeschlagen|verz.gert)",
    "(?:nicht|konnte) .{0,40}(?:zugestellt|ausgeliefert|.bermittelt)",
    ".bermittlung .{0,60}fehlgeschlagen",
)
_ROMANCE_FAILED = (
    "non (?:remis|recapitab|distribu)",
    ".tat de remise",
    ".chec .{0,20}(?:remise|distribution|envoi)",
    "avis de (?:non|retard)",
    "(?:pas|n'a pu) .{0,20}(?:remis|distribu|livr|achemin)",
    "no (?:se )?(?:pudo )?entreg",
    "no se (?:ha podido|puede entregar)",
    "estado de (?:la )?entrega",
    "(?:error|fallo|problema)s? .{0,12}(?:entrega|env.o)",
    "no .{0,20}entregad",
    "correo devuelto",
    r"mensa\w{2,3} devolvid",
    "n.o (?:foi )?(?:poss.vel )?entreg",
    "n.o (?:foi|p.de) .{0,20}entregue",
    "falha (?:na|de) entrega",
    "mancat[ao] (?:consegna|recapito)",
    "non .{0,12}(?:consegnat|recapitat)",
    "(?:avviso|notifica) di (?:mancat|non)",
    "impossibile (?:consegnare|recapitare)",
)
_OTHERS_FAILED = (
    "onbestelbaar",
    "niet (?:bezorgd|afgeleverd)",
    "kon niet worden",
    "oleverer",
    "kan (?:inte|ikke) levere",
    "kunde inte lever",
    "kunne ikke lever",
    "ei voitu toimittaa",
    "niedostarcz",
    "nie mo.na dostarczy",
    "nie (?:zosta..?|mo.e) .{0,20}dor.cz",
    "zwrot (?:poczty|wiadomo)",
    "nedoru.iteln",
    "nebyla doru.en",
    "nelze doru.it",
    "k.zbes.thetetlen",
    "nem k.zbes.thet",
    "teslim edile",
    "iletilemed",
    "недостав",
    "не доставлен",
    "невозможно доставить",
    "(?:письмо|сообщение).{0,40}(?:не (?:может|было|удалось)|возвращ)",
    "반송",
    "(?:전송|배달|발송) ?(?:실패|되지)",
    "送信エラー",
    "配信(?:できません|不能|エラー)",
    "不達",
    "エラーメール",
    "退信",
    "退回",
    "(?:无法|無法|未能)(?:投递|送达|投遞|傳遞|送達)",
    "投递失败",
    "投遞失敗",
)
_LATE = (
    "warning only",
    r"delay(?:ed)?\b",
    "not yet (?:been )?deliver",
    "do not need to resend",
    "still (?:being|trying)",
    "will (?:keep|continue) (?:to )?try",
    "will be retried",
    "will retry for",
    "delivery attempts will continue",
    "nur eine warnung",
    "wurde verz.gert",
    "weitere zustellversuche",
    "noch nicht zugestellt",
    "(?:est|a .t.) (?:retard.|diff.r.)",
    "pas encore .{0,12}(?:remis|distribu)",
    "in ritardo",
    "continuer. a tentare",
    "se ha (?:retrasado|demorado)",
    "seguir. intentando",
    "ser.o feitas novas tentativas",
    "vertraagd",
    "f.rsenad",
    "попытки доставки (?:будут )?продолж",
    "ещ. не доставлен",
    "(?:配信|送信).{0,6}遅延",
    "(?:投递|傳遞).{0,6}延迟",
    "(?:延迟|延遲)(?:投递|送达|傳遞)",
)
_AWAY = (
    "auto|out[- ]of|vacation|away|absent|absence|i.?m away|on (?:vacation|holiday|leave)",
    "abwesen",
    "r.ponse auto|assen[tz]",
    "respuesta auto|fuera de|ausen[tc]|aus.ncia|resposta auto|fora do escrit",
    "risposta auto|fuori (?:sede|ufficio)",
    "afwezig|fr.nvaro|frav.r|poissa",
    "nieobecn|nep..tom|ofis d|otomatik",
    "автоответ|отсутств|вне офиса",
    "自動応答|自動返信|不在|自动(?:回复|答复)|自動回覆|休假|부재|자동",
)
_DAEMON = (
    "daemon|^root@|post.?master|poostmaster|mail.?deliver|delivery.?(?:sub)?system|mail.?system|mail.?server",
    "bounces?@|smtp(?:d|server)?@|delivery (?:notif|report|status)|(?:content|mail) filter",
    r"administrat(?:or|eur)|amministrator|administrador|администратор|почтов\w{2,4} (?:систем|сервер)",
    "退信|(?:系统|系統)管理|管理者",
)


def _any_of(*pieces: str) -> re.Pattern[str]:
    return re.compile("|".join(pieces), re.IGNORECASE)


FAILED = _any_of(*_ENGLISH_FAILED, *_GERMAN_FAILED, *_ROMANCE_FAILED, *_OTHERS_FAILED)
LATE = _any_of(*_LATE)
AWAY = _any_of(rf"^(?:re: ?|aw: ?)?\[?(?:{'|'.join(_AWAY)})")
DAEMON = _any_of(*_DAEMON)
