"""A slip of the finger in a well-known domain: gmial.com was meant to be gmail.com."""

COMMON = (
    "gmail.com", "qq.com", "163.com", "126.com", "foxmail.com", "outlook.com", "hotmail.com", "icloud.com",
    "yahoo.com", "sina.com", "yeah.net", "aliyun.com", "sohu.com", "live.com", "msn.com", "139.com",
    "protonmail.com", "fastmail.com",
)  # fmt: skip
# Real ones that look like a slip in one of those.
SOUND = ("mail.com", "ymail.com", "email.com", "q.com", "vip.qq.com", "gmx.com", "me.com", "136.com")


def suggestion(address: str) -> str | None:
    """Return the address that was probably meant, or None where nothing looks wrong."""
    local, _, domain = address.rpartition("@")
    domain = domain.lower()
    if domain in COMMON or domain in SOUND:
        return None
    meant = next((known for known in COMMON if is_one_slip(domain, known)), None)
    return f"{local}@{meant}" if meant else None


def is_one_slip(written: str, meant: str) -> bool:
    """Tell whether one letter is wrong, missing or too many, or two neighbours have changed places."""
    if len(written) > len(meant):
        written, meant = meant, written
    at = next((i for i, (a, b) in enumerate(zip(written, meant, strict=False)) if a != b), len(written))
    if len(written) < len(meant):
        return written[at:] == meant[at + 1 :]
    swapped = meant[at + 1 : at + 2] + meant[at : at + 1]
    return written != meant and (
        written[at + 1 :] == meant[at + 1 :] or written[at:] == swapped + meant[at + 2 :]
    )
