"""What a header row means: a preset that knows it, else names in English and Chinese that mean the same."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from app.core.errors import Fault, Invalid
from app.subscribers.imports.candidate import COLUMNS, Preset, Table, Unreadable

MOST_COLUMNS = 200
ADDED = ("editions", "language", "hour")  # what somebody may write beside another system's columns

_NAMES: dict[str, tuple[str, ...]] = {
    "email": ("email", "e mail", "email address", "e mail address", "mail", "mail address", "subscriber email",
              "邮箱", "电子邮箱", "邮箱地址", "邮件地址", "电子邮件", "电子邮件地址", "电邮", "邮件"),
    "name": ("name", "full name", "display name", "姓名", "名字", "昵称", "称呼", "名称"),
    "first_name": ("first name", "firstname", "fname", "given name", "名"),
    "last_name": ("last name", "lastname", "lname", "surname", "family name", "姓", "姓氏"),
    "language": ("language", "lang", "locale", "语言", "语种"),
    "editions": ("editions", "edition", "cadence", "frequency", "版本", "刊物", "订阅", "频率", "订阅频率"),
    "status": ("status", "state", "subscription status", "状态", "订阅状态"),
    "timezone": ("timezone", "time zone", "tz", "时区"),
    "hour": ("hour", "小时", "时间点", "投递时间"),
    "created_at": ("created at", "created", "subscribed at", "date subscribed", "date", "optin time", "signup date",
                   "subscription date", "date added", "added at", "订阅时间", "订阅日期", "创建时间", "注册时间"),
    "confirmed_at": ("confirmed at", "confirm time", "optin confirmed at", "date confirmed", "确认时间", "确认日期"),
    "source": ("source", "来源"),
    "left": ("unsubscribed", "unsubscribed at", "unsub time", "unsubscribe date", "unsubscription date", "opt out",
             "opted out", "optout", "blacklisted", "email blacklisted", "deleted at", "cancelled at", "退订", "已退订",
             "退订时间", "退订日期"),
    "bounced": ("bounced", "bounced at", "hard bounced", "clean time", "退信", "退信时间"),
    "complained": ("complained", "complained at", "spam complaint", "投诉", "投诉时间"),
}  # fmt: skip
ALIASES: Mapping[str, str] = {alias: field for field, names in _NAMES.items() for alias in names}

STATUSES: Mapping[str, str] = {
    word: ours
    for ours, words in {
        "active": "active subscribed enabled confirmed verified regular 已订阅 订阅中 正常 有效 活跃 已确认",
        "pending": "pending unconfirmed unverified unactivated validating 待确认 未确认 未验证",
        "paused": "paused 暂停 已暂停",
        "left": "unsubscribed cancelled canceled removed ended left 已退订 退订 已取消",
        "bounced": "bounced cleaned undeliverable unreachable invalid 退信 已退信 无效",
        "complained": "complained complaint spam 投诉 已投诉",
    }.items()
    for word in words.split()
}


def plain(name: str) -> str:
    """Return a header name as names are compared: lower case, words apart by one space."""
    return " ".join(
        unicodedata.normalize("NFKC", name).casefold().replace("_", " ").replace("-", " ").split()
    )


def understand(header: Sequence[str], delimiter: str, presets: Mapping[str, Preset]) -> Table:
    """Return where each field stands; raises Invalid when there is no address column, or two of them."""
    if len(header) > MOST_COLUMNS:
        raise Unreadable(f"The header has {len(header):,} columns; at most {MOST_COLUMNS} are read.")
    names = [plain(name) for name in header]
    preset_name = _recognised(names, presets)
    preset = presets[preset_name] if preset_name else None
    fields = [_field(name, preset) for name in names]
    _refuse(header, fields)
    places: dict[str, int] = {}
    for place, field in enumerate(fields):
        if field is not None:
            places.setdefault(field, place)
    return Table(
        delimiter=delimiter,
        width=len(header),
        places=places,
        taken={field: header[place].strip()[:80] for field, place in places.items()},
        ignored=tuple(header[i].strip()[:80] for i in range(len(header)) if i not in places.values()),
        preset=preset_name,
        statuses={**STATUSES, **preset.statuses} if preset else STATUSES,
        standing=preset.standing if preset else "active",
        is_ours=preset is None and all(name.strip().lower() in COLUMNS for name in header),
    )


def score(header: Sequence[str]) -> int:
    """Return how many columns have a name that means something, so that delimiters can be compared."""
    return sum(plain(name) in ALIASES for name in header[:MOST_COLUMNS])


def _recognised(names: Iterable[str], presets: Mapping[str, Preset]) -> str | None:
    """Return the first preset whose columns are all there; the more particular stand first."""
    there = set(names)
    for name, preset in presets.items():
        if preset.signature <= there and all(there & some for some in preset.one_of):
            return name
    return None


def _field(name: str, preset: Preset | None) -> str | None:
    if preset is None:
        return ALIASES.get(name)
    return preset.columns.get(name, name if name in ADDED else None)


def _refuse(header: Sequence[str], fields: Sequence[str | None]) -> None:
    said = ", ".join(f"“{name.strip()[:20]}”" for name in header[:6])
    if "email" not in fields:
        hint = "The first line must name the columns, one of them `email` (or 邮箱)."
        if any("@" in name for name in header):
            hint = "The first line is a reader already; put a line above it that names the columns, such as `email`."
        raise Invalid(hint, [Fault(f"no column of addresses among {said or 'nothing'}", 1)])
    names = [name.strip().casefold() for name, field in zip(header, fields, strict=True) if field is not None]
    if doubled := next((name for name in names if names.count(name) > 1), None):
        raise Invalid(
            "The first line names a column twice.", [Fault(f"“{doubled[:40]}” stands there twice", 1)]
        )
