"""Editions, keys, suppressions and the audit trail."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from app.api.office_shapes import AuditView, KeyView, MadeKey, NewKey, NewSuppression, SuppressionView
from app.api.shapes import EditionChange, EditionView, NewEdition, Page
from app.edge import Admin, Editor, Id, InHouse, Reading, Writing, admin, editor, following, read_cursor
from app.editors import audit, keys
from app.flows import suppress
from app.issues import editions, store
from app.subscribers import suppression

editions_router = APIRouter(prefix="/editions", tags=["editions"], dependencies=[Depends(editor)])
keys_router = APIRouter(prefix="/keys", tags=["keys"], dependencies=[Depends(admin)])
suppressions_router = APIRouter(prefix="/suppressions", tags=["suppressions"], dependencies=[Depends(editor)])
audit_router = APIRouter(prefix="/audit", tags=["audit"], dependencies=[Depends(admin)])

Limit = Annotated[int, Query(ge=1, le=200)]


@editions_router.get("", response_model=list[EditionView])
async def list_editions(session: Reading) -> list[Any]:
    """List the editions in the order of the form."""
    return list(await store.editions(session))


@editions_router.post("", status_code=201, response_model=EditionView)
async def add_edition(session: Writing, at: InHouse, holder: Admin, new: NewEdition) -> Any:
    """Add an edition; forms and lists show it by themselves."""
    row = await editions.add(session, new.slug, new.model_dump(exclude={"slug"}))
    audit.note(session, holder.name, "add", f"edition {row.slug}", at.now())
    return row


@editions_router.patch("/{slug}", response_model=EditionView)
async def edit_edition(session: Writing, at: InHouse, holder: Admin, slug: str, change: EditionChange) -> Any:
    """Change an edition."""
    row = await editions.edit(session, slug, change.model_dump())
    audit.note(session, holder.name, "edit", f"edition {row.slug}", at.now())
    return row


@keys_router.get("", response_model=list[KeyView])
async def list_keys(session: Reading) -> list[Any]:
    """List the keys, without their secrets."""
    return list(await keys.all_keys(session))


@keys_router.post("", status_code=201, response_model=MadeKey)
async def make_key(session: Writing, at: InHouse, holder: Admin, new: NewKey) -> dict[str, Any]:
    """Make a key; the answer is the only place where it is ever shown."""
    row, key = await keys.create(session, new.name, keys.Scope(new.scope), at.now())
    audit.note(session, holder.name, "make", f"key {row.id}", at.now())
    return row.model_dump() | {"key": key}


@keys_router.delete("/{key_id}", status_code=204)
async def revoke_key(session: Writing, at: InHouse, holder: Admin, key_id: Id) -> None:
    """End a key at once."""
    await keys.revoke(session, str(key_id), at.now())
    audit.note(session, holder.name, "revoke", f"key {key_id}", at.now())


@suppressions_router.get("", response_model=Page[SuppressionView])
async def list_suppressions(session: Reading, cursor: str | None = None, limit: Limit = 50) -> dict[str, Any]:
    """List the addresses that must not be mailed, and why."""
    rows = await suppression.page(session, read_cursor(cursor), limit + 1)
    next_page = following([one.id or 0 for one in rows], limit)
    return {"items": list(rows[:limit]), "next": next_page}


@suppressions_router.post("", status_code=201, response_model=SuppressionView)
async def suppress_address(session: Writing, at: InHouse, holder: Editor, new: NewSuppression) -> Any:
    """Never mail an address again; what it is still owed is taken back. Twice is harmless."""
    row = await suppress.by_editor(session, at.settings, new.address, new.note, at.now())
    audit.note(session, holder.name, "suppress", f"suppression {row.id}", at.now())
    return row


@suppressions_router.delete("/{suppression_id}", status_code=204)
async def lift(session: Writing, at: InHouse, holder: Admin, suppression_id: Id) -> None:
    """Lift a suppression; the reader stays as they are until they subscribe again."""
    await suppression.remove(session, suppression_id)
    audit.note(session, holder.name, "lift", f"suppression {suppression_id}", at.now())


@audit_router.get("", response_model=Page[AuditView])
async def list_audit(session: Reading, cursor: str | None = None, limit: Limit = 50) -> dict[str, Any]:
    """List who did what, in order."""
    rows = await audit.page(session, read_cursor(cursor), limit + 1)
    next_page = following([one.id or 0 for one in rows], limit)
    return {"items": list(rows[:limit]), "next": next_page}
