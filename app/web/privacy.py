"""What is kept of readers, for how long, and what they may do about it: the page says what the program does."""

from fastapi import Request
from starlette.responses import Response

from app.edge import InHouse, Reading
from app.web.pages import page_router, pages

router = page_router()

SECTIONS = ("none", "kept", "time", "rights", "who")


@router.get("/privacy")
async def privacy(request: Request, session: Reading, at: InHouse) -> Response:
    """Show what is kept, in the language of the page."""
    shown = await pages(session, at, request)
    found = [
        (shown.say(f"web.privacy.{part}.heading"), shown.say(f"web.privacy.{part}.text").split("|"))
        for part in SECTIONS
    ]
    context = {"sections": found, "postal_address": at.settings.postal_address}
    return shown.respond("privacy.html", context)
