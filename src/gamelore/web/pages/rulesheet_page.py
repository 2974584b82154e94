"""The pages on which rulesheets are listed, written, checked, examined and played."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import app, ui
from nicegui.element import Element
from nicegui.events import GenericEventArguments, UploadEventArguments

from ...errors import GameloreError, GDLError, counted
from ...gdl.syntax import refuse_binary
from ..service.rule_processes import OPEN_SECONDS, Rules
from ..service.shared_match import SharedMatch, TakenSeat
from ..service.sheet_draft import (
    LONG_LOAD_SECONDS,
    LONG_SECONDS,
    MOST_TEXT,
    CheckProcesses,
    Draft,
    Drafts,
    DraftServices,
    Finding,
    plain,
)
from ..service.sheet_library import ListedSheet, check_name
from .frame import (
    Services,
    agreed,
    answer_of,
    attribute_text,
    complain,
    complaint,
    heading,
    is_connected,
    page_frame,
    picture,
    rulesheet_address,
    say,
    text_in,
    told,
)

MOST_LISTED = 100  # sheets of an origin, and findings
MOST_MATCHES, MOST_SIMULATIONS = 2000, 5000  # of a report
MOST_UPLOADED = 1_500_000  # bytes
PROCESSES = 2  # of each kind that check texts
OPPONENT = "gamelore"

HELP = {
    "(role red)": "red plays. The roles are in the order of these lines.",
    "(init (cell 1 1 empty))": "this fact is true in the first position.",
    "(<= (win ?p) (role ?p) (line ?p))": "a rule: the first part is true if all the others are.",
    "?x": "a variable: any value, but the same everywhere in a rule.",
    "(true (cell ?x ?y red))": "this fact is true in the present position.",
    "(legal red (mark 1 2))": "red may make this move now. Every role needs a move in every position, such as noop.",
    "(does red (mark 1 2))": "red makes this move now; for rules about what follows.",
    "(next (cell 1 2 red))": "this fact is true in the next position. Facts without such a rule are gone.",
    "terminal": "is true when the match is over.",
    "(goal red 100)": "what the match is worth to red, 0 to 100.",
    "(not a), (distinct ?x ?y), (or a b)": "a is not true; two values differ; one of these is true.",
    "(base f), (input red m)": "not needed: all facts and moves that there can be.",
    "; words": "a comment, up to the end of the line.",
}

STYLE = """
:root { --gl-keyword: #1d5fa8; --gl-variable: #8a4b08; --gl-number: #0b6b57; --gl-comment: #5b6570;
        --gl-error: #b3261e; --gl-warning: #8a5a00; }
body.body--dark { --gl-keyword: #8ab8ee; --gl-variable: #f0b775; --gl-number: #7fd1b9; --gl-comment: #a3adb8;
                  --gl-error: #ff9b92; --gl-warning: #ffc66b; }
.gl-editor { width: 100%; height: max(18rem, 64vh); border: 1px solid var(--gl-faint); border-radius: 4px;
             overflow: hidden; }
.gl-gdl-keyword { color: var(--gl-keyword); font-weight: 600; }
.gl-gdl-variable { color: var(--gl-variable); }
.gl-gdl-number { color: var(--gl-number); }
.gl-gdl-comment { color: var(--gl-comment); font-style: italic; }
.gl-mark { text-decoration: underline wavy 1px; text-underline-offset: 3px; text-decoration-skip-ink: none; }
.gl-mark-error { text-decoration-color: var(--gl-error); }
.gl-mark-warning { text-decoration-color: var(--gl-warning); }
.gl-sign { display: inline-block; width: 1.1em; text-align: center; cursor: help; }
.gl-error { color: var(--gl-error); }
.gl-warning { color: var(--gl-warning); }
.gl-tip { max-width: 30rem; padding: 4px 8px; color: var(--gl-ink); background: var(--gl-paper);
          overflow-wrap: anywhere; }
.gl-finding { border-left: 3px solid var(--gl-faint); padding-left: 0.6rem; overflow-wrap: anywhere; }
.gl-finding.gl-of-error { border-color: var(--gl-error); }
.gl-finding.gl-of-warning { border-color: var(--gl-warning); }
.gl-series svg { width: 8.5rem; height: auto; max-height: 12rem; }
.gl-sheets .q-btn--outline { padding: 2px 8px; }
.gl-rule { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.8rem; }
"""


# ---- the list of sheets -----------------------------------------------------------------------------------------


class SheetListPage:
    """All rulesheets, new ones, and uploads."""

    def __init__(self, services: Services, drafts: Drafts) -> None:
        self._services, self._drafts = services, drafts

    def draw(self) -> None:
        """Draw the page."""
        heading("Rulesheets", 1)
        ui.label(
            "A rulesheet says what a game is: who plays, which moves are allowed, what they change, and who wins. "
            "Look into one, change it, or write your own, and play it at once."
        ).classes("gl-faint")
        with ui.row().classes("items-center gap-4 my-2"):
            ui.button("New sheet", icon="add", on_click=self._new).props("data-testid=new-sheet")
            upload = ui.upload(
                auto_upload=True,
                max_file_size=MOST_UPLOADED,
                on_upload=self._upload,
                on_rejected=lambda: complain(
                    f"expected a file of at most {MOST_UPLOADED / 1e6:g} MB; take a smaller one"
                ),
            )
            upload.classes("hidden").props("data-testid=upload")
            pick = f"() => getElement({upload.id}).$refs.qRef.pickFiles()"
            ui.button("Open a file", icon="upload_file").props("outline").on("click", js_handler=pick)
        self._filter = ui.input("Type a part of a name or a description", on_change=self._draw_sheets).props(
            "clearable dense"
        )
        self._rows = ui.column().classes("w-full gap-1")
        self._read()

    def _read(self) -> None:
        """List the sheets anew."""
        self._sheets = self._services.library.sheets()
        self._about = {sheet.key: sheet.about for sheet in self._sheets}
        self._unsaved = {draft.key: draft.name for draft in self._drafts.kept()}
        self._draw_sheets()

    def _draw_sheets(self) -> None:
        """List the sheets whose names or descriptions contain the text of the filter."""
        part = text_in(self._filter).lower()
        sheets = [sheet for sheet in self._sheets if part in f"{sheet.name}\n{self._about[sheet.key]}".lower()]
        unsaved = {key: name for key, name in self._unsaved.items() if part in name.lower()}
        self._rows.clear()
        with self._rows:
            texts = {key: name for key, name in unsaved.items() if key not in {sheet.key for sheet in sheets}}
            if texts:
                heading("Not saved yet")
            for key, name in list(texts.items())[:MOST_LISTED]:
                self._draw_text(key, name)
            if not sheets and not texts:
                ui.label("No rulesheet has this text in its name or description.").classes("gl-faint")
            for origin, title in _ORIGINS.items():
                self._draw_origin(title, [sheet for sheet in sheets if sheet.origin == origin], unsaved)

    def _draw_text(self, key: str, name: str) -> None:
        with ui.row().classes("items-center gap-2"):
            ui.link(name, rulesheet_address(key)).classes("gl-link")
            ui.button(icon="delete", on_click=lambda: self._give_up(key)).props(
                'flat round dense aria-label="delete this text"'
            )

    def _draw_origin(self, title: str, sheets: Sequence[ListedSheet], unsaved: Mapping[str, str]) -> None:
        if not sheets:
            return
        heading(title)
        for sheet in sheets[:MOST_LISTED]:
            self._draw_sheet(sheet, sheet.key in unsaved)
        if len(sheets) > MOST_LISTED:
            ui.label(f"and {len(sheets) - MOST_LISTED} more; type a part of the name").classes("gl-faint")

    def _draw_sheet(self, sheet: ListedSheet, is_unsaved: bool) -> None:
        with ui.row().classes("items-center gap-2 w-full"):
            ui.link(sheet.name, rulesheet_address(sheet.key)).classes("gl-link").props(
                f'data-testid="sheet-{attribute_text(sheet.name)}"'
            )
            ui.label(self._about[sheet.key]).classes("gl-faint text-sm")
            if is_unsaved:
                ui.badge("unsaved changes").props("outline color=primary")
            if sheet.origin == "own":
                ui.button(icon="delete", on_click=partial(self._delete, sheet)).props(
                    f'flat round dense aria-label="delete {attribute_text(sheet.name)}"'
                )

    def _new(self) -> None:
        ui.navigate.to(rulesheet_address(self._drafts.new().key))

    async def _upload(self, event: UploadEventArguments) -> None:
        """Open a file as a text that is not saved yet."""
        try:
            text = (await event.file.read()).decode("utf-8", "replace")
            refuse_binary(text, "the file")
            draft = self._drafts.new(_file_name(event.file.name), text)
        except GameloreError as error:
            return complain(str(error))
        ui.navigate.to(rulesheet_address(draft.key))

    async def _delete(self, sheet: ListedSheet) -> None:
        if await agreed(f"Delete the rulesheet {sheet.name}? This cannot be undone.", "Delete"):
            self._drafts.delete(sheet.key)
            self._read()

    async def _give_up(self, key: str) -> None:
        if await agreed("Delete this text? This cannot be undone.", "Delete"):
            self._drafts.discard(self._drafts.open(key))
            self._read()


_ORIGINS = {"own": "Your own", "shipped": "Shipped with gamelore", "folder": "In your folders"}


# ---- the editor -------------------------------------------------------------------------------------------------


class SheetEditor(Element, component="sheet_editor.js"):
    """A text with the colours of GDL, and with marks at findings; see sheet_editor.js.

    Args:
        draft: the text that is shown first, and the key under which the browser keeps an unsent text
        on_typed: called after a change with the whole text, the number of changes made in this editor, and the revision
            of the draft from which the text was made; returns the present revision, or None if it cannot take the text
            over yet, which then comes again
        on_save: called for Ctrl+S
    """

    def __init__(
        self, draft: Draft, on_typed: Callable[[str, int, int], int | None], on_save: Callable[[], Any]
    ) -> None:
        super().__init__()
        self._props.update(
            text=draft.text, revision=draft.revision, sheet=draft.key, writable=False, label="the rules of the game"
        )
        self._on_typed = on_typed
        self.on("typed", self._typed)
        self.on("toolong", lambda: complain(f"expected a text of at most {MOST_TEXT:,} characters; shorten it"))
        self.on("save", lambda: on_save())

    def set_writable(self, is_writable: bool) -> None:
        """Let the text be changed, or not."""
        if self._props["writable"] != is_writable:
            self._props["writable"] = is_writable
            self.update()

    def replace(self, draft: Draft, edits: int) -> None:
        """Show the text of a draft, unless more than this number of changes were made in the editor."""
        self.run_method("replace", draft.text, edits, draft.revision)

    def show_findings(self, findings: Sequence[Finding], edits: int) -> None:
        """Mark findings, unless more than this number of changes were made in the editor."""
        names = ("line", "column", "severity", "message", "remedy")
        self.run_method("mark", [{name: finding[name] for name in names} for finding in findings], edits)

    def go(self, line: int, column: int) -> None:
        """Put the cursor at a place."""
        self.run_method("go", line, column)

    def _typed(self, event: GenericEventArguments) -> None:
        given = event.args if isinstance(event.args, dict) else {}
        text, edits, base = (given.get(name) for name in ("text", "edits", "base"))
        if not (isinstance(text, str) and isinstance(edits, int) and isinstance(base, int)):
            return
        revision = self._on_typed(text, edits, base)
        if revision is not None:
            self.run_method("confirm", edits, revision)


class EditorPage:
    """The page of a draft: its text, findings and report. It is a `DraftPage`."""

    def __init__(self, services: Services, drafts: Drafts, draft: Draft) -> None:
        self._services, self._drafts, self._draft = services, drafts, draft
        self._client = ui.context.client
        self._text, self._edits = draft.text, 0  # of the editor, as far as the server knows
        self._foreign = draft.revision  # of the last change that was not made here
        self._follows = False
        self._marked: Sequence[Finding] | None = None
        self._findings = FindingList(services, draft, self._go)
        self._report = ReportPanel(draft)

    def draw(self) -> None:
        """Draw the page."""
        with ui.row().classes("items-center gap-3"):
            ui.link("All rulesheets", "/rulesheets").classes("gl-link")
            heading(self._draft.name, 1)
            self._state = ui.label().classes("gl-faint").props("data-testid=saved")
        self._draw_buttons()
        self._locked = ui.row().classes("items-center gap-2")
        with self._locked:
            ui.label("This text is being changed in another tab.")
            ui.button("Change it here", on_click=lambda: self._draft.take_pen(self)).props("outline dense")
        with ui.row().classes("w-full gap-4 items-start"):
            with ui.column().classes("gap-1").style("flex: 3; min-width: min(100%, 24rem)"):
                self._editor = SheetEditor(self._draft, self._typed, told_without_button(self._client, self._save))
                ui.label("F8: next finding. Ctrl+S: save. Ctrl+F: search. Escape, then Tab: leave the editor.").classes(
                    "gl-faint text-sm"
                )
                _draw_help()
            with ui.column().classes("gap-2").style("flex: 2; min-width: min(100%, 18rem)"):
                self._findings.draw()
        self._report.draw()
        self._show_state()

    def _draw_buttons(self) -> None:
        with ui.row().classes("gap-2 items-center my-1"):
            ui.button("Play it now", icon="play_arrow", on_click=told(self._play)).props("data-testid=play-now")
            self._changing = [
                _button("Save" if self._is_own else "Save as my own", "save", self._save, "save"),
                _button("Format", "format_align_left", self._format, "format"),
            ]
            if self._is_own:
                _button("Save as ..", "save_as", self._save_as, "save-as")
            _button("Download", "download", self._download, "download")
            self._undo = _button("Give up changes", "undo", self._give_up, "give-up")
            self._changing.append(self._undo)

    @property
    def _is_own(self) -> bool:
        return self._draft.key.startswith("own/")

    async def follow(self) -> None:
        """Follow the draft until the page is closed."""
        if not await is_connected():
            return
        self._client.on_delete(self._draft.watch(self))
        self._follows = True
        self.show_draft()

    # ---- showing ------------------------------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        """See `DraftPage`."""
        return self._client.has_socket_connection

    def show_draft(self) -> None:
        """See `DraftPage`."""
        draft = self._draft
        if self._client.is_deleted:
            return
        with self._client:
            if draft.text != self._text:
                self._text, self._marked, self._foreign = draft.text, None, draft.revision
                self._editor.replace(draft, self._edits)
            if draft.findings_revision == draft.revision and self._marked is not draft.findings:
                self._marked = draft.findings
                self._editor.show_findings(draft.findings, self._edits)
            self._findings.show()
            self._report.show()
            self._show_state()

    def _show_state(self) -> None:
        draft, has_pen = self._draft, self._draft.pen is self and not self._draft.gone
        self._editor.set_writable(has_pen)
        self._locked.set_visibility(draft.is_watched and not has_pen and not draft.gone)
        for button in self._changing:
            button.set_enabled(has_pen)
        self._undo.set_visibility(draft.is_changed)
        if draft.gone:
            self._state.set_text(f"not kept here any more: {draft.gone}")
            return
        unsaved = "not saved yet; kept here as a draft" if draft.saved is None else "unsaved changes, kept here"
        self._state.set_text(unsaved if draft.is_changed else _SAVED[draft.key.partition("/")[0].rstrip("0123456789")])

    def _typed(self, text: str, edits: int, base: int) -> int | None:
        """Take over the text of the browser, see `SheetEditor`.

        A tab that had lost its connection may send its text after another tab has changed or deleted the draft. What it
        sends is kept all the same.
        """
        if not self._follows:
            return None
        draft = self._draft
        self._text, self._edits, self._marked = plain(text), edits, None
        try:
            if base >= self._foreign and not draft.gone:
                draft.write(text)
            elif self._text != draft.text:
                self._drafts.new(draft.name, text)
                complain(
                    f"another tab has changed or deleted {draft.name}; your text is kept as another one, see the list"
                )
        except GameloreError as error:
            complain(str(error))
        self.show_draft()
        return draft.revision

    def _go(self, line: int, column: int) -> None:
        self._editor.go(line, column)

    # ---- buttons ------------------------------------------------------------------------------------------------

    async def _play(self) -> None:
        match = await _match_of(self._services, self._draft, self._go)
        self._client.open(f"/play/{match.id}")

    async def _format(self) -> None:
        revision = self._draft.revision
        try:
            text = await self._draft.format()
        except GDLError as error:
            self._go(error.line, error.column)
            raise
        if revision == self._draft.revision:
            self._draft.write(text)
            say("formatted; Ctrl+Z takes it back")

    async def _save(self) -> None:
        if not self._is_own:
            return await self._save_as()
        self._drafts.save(self._draft, self._draft.name)
        say("saved")

    async def _save_as(self) -> None:
        """Ask for a name, save the text under it, and open it there."""
        own = {sheet.name for sheet in self._services.library.sheets() if sheet.origin == "own"}
        with ui.dialog() as dialog, ui.card():
            ui.label("Save as a rulesheet of your own").classes("text-lg")
            name = ui.input("Name: letters, digits, -, _ and .", value=self._draft.name).classes("w-full")

            def submit() -> None:
                try:
                    check_name(text_in(name).strip())
                    dialog.submit(text_in(name).strip())
                except GameloreError as error:
                    complain(str(error))

            name.props("autofocus data-testid=name").on("keydown.enter", submit)
            with ui.row():
                ui.button("Save", on_click=submit).props("data-testid=save-name")
                ui.button("Cancel", on_click=lambda: dialog.submit(None)).props("flat")
        chosen = await answer_of(dialog)
        if chosen is None:
            return
        if chosen in own and not await agreed(f"You have a rulesheet {chosen} already. Replace it?", "Replace"):
            return
        sheet = self._drafts.save(self._draft, chosen)
        self._client.open(rulesheet_address(sheet.key))

    async def _download(self) -> None:
        ui.download.content(self._draft.text, f"{_file_name(self._draft.name)}.kif")

    async def _give_up(self) -> None:
        words = "Go back to the saved text?" if self._draft.saved is not None else "Delete this text?"
        if await agreed(f"{words} Your changes will be lost.", "Give up changes"):
            self._drafts.discard(self._draft)
            if self._draft.saved is None:
                self._client.open("/rulesheets")


_SAVED = {
    "own": "saved",
    "shipped": "shipped with gamelore; your changes are kept here, and can be saved as a sheet of your own",
    "folder": "in your folders; your changes are kept here, and can be saved as a sheet of your own",
}


def told_without_button(client: Any, action: Callable[[], Any]) -> Callable[[], Any]:
    """Return the answer to a key: do the action, and show an error of gamelore."""

    async def answer() -> None:
        with client:
            try:
                await action()
            except GameloreError as error:
                complain(str(error))

    return answer


def _draw_help() -> None:
    with ui.expansion("The language of rulesheets in short", icon="help_outline").classes("w-full").props("dense"):
        for code, meaning in HELP.items():
            with ui.row().classes("w-full gap-x-3 gap-y-0 items-baseline"):
                ui.label(code).classes("gl-mono text-sm gl-gdl-keyword").style("min-width: 15rem")
                ui.label(meaning).classes("text-sm").style("flex: 1; min-width: 14rem")


# ---- findings ---------------------------------------------------------------------------------------------------


class FindingList:
    """What the checks of a draft say, with buttons that put the cursor at a finding, and boards that lead to it."""

    def __init__(self, services: Services, draft: Draft, go: Callable[[int, int], None]) -> None:
        self._services, self._draft, self._go = services, draft, go
        self._listed: list[Finding] | None = None

    def draw(self) -> None:
        """Draw the list."""
        heading("Findings")
        self._verdict = ui.label().classes("text-lg").props("role=status aria-live=polite data-testid=verdict")
        self._longer = ui.button("Check longer by play", icon="fact_check", on_click=self._draft.check_longer)
        self._longer.props("outline dense data-testid=check-longer")
        with self._longer:
            ui.tooltip(f"plays for {LONG_SECONDS:g} s, and lets the game take {LONG_LOAD_SECONDS:g} s to load")
        self._rows = ui.column().classes("w-full gap-3").props("data-testid=findings")
        self._played = ui.label().classes("gl-faint text-sm").style("white-space: pre-wrap; overflow-wrap: anywhere")

    def show(self) -> None:
        """Show what has changed."""
        draft = self._draft
        self._verdict.set_text(draft.verdict)
        self._longer.set_enabled(draft.stage == "checked" and not draft.gone)
        self._played.set_text(f"What play has shown: {draft.played}" if draft.played else "")
        if draft.findings_revision >= 0 and self._listed != [*draft.findings]:
            self._listed = [*draft.findings]
            self._draw_rows()

    def _draw_rows(self) -> None:
        findings = self._listed or []
        self._rows.clear()
        with self._rows:
            for finding in findings[:MOST_LISTED]:
                self._draw_finding(finding)
            if len(findings) > MOST_LISTED:
                ui.label(f"and {len(findings) - MOST_LISTED} more; mend these first").classes("gl-faint")

    def _draw_finding(self, finding: Finding) -> None:
        severity = finding["severity"]
        with ui.column().classes(f"gl-finding gl-of-{severity} gap-1 w-full").props("data-testid=finding"):
            with ui.row().classes("items-center gap-2"):
                ui.icon(severity).classes(f"gl-{severity} text-xl").props("aria-hidden=true")
                ui.label(_WORDS[severity]).classes(f"gl-{severity} font-bold")
                place = f"line {finding['line']}, column {finding['column']}"
                ui.button(place, on_click=partial(self._go, finding["line"], finding["column"])).props(
                    f'outline dense no-caps aria-label="put the cursor at {place}" data-testid=go'
                )
                ui.label(finding["code"]).classes("gl-faint text-sm")
            ui.label(finding["message"])
            if finding["rule"]:
                ui.label(finding["rule"]).classes("gl-mono gl-rule gl-faint")
            if finding["remedy"]:
                ui.label(f"Remedy: {finding['remedy']}")
            if finding["num_moves"] is not None:
                self._draw_witness(finding)

    def _draw_witness(self, finding: Finding) -> None:
        """Draw buttons for the moves that lead to a finding."""
        moves = finding["witness"]
        if moves is None:
            ui.label(f"It is after {counted(finding['num_moves'], 'move')}.").classes("gl-faint")
            return
        after = f"after {counted(len(moves), 'move')}" if moves else "at the start"
        with ui.row().classes("gap-2"):
            show = ui.button(f"Show how it comes to that ({after})", icon="movie").props("outline dense no-caps")
            play = ui.button("Play from there", icon="play_arrow").props("outline dense no-caps")
        boards = ui.row().classes("gap-3 items-start gl-series")
        show.props("data-testid=show-moves").on_click(told(partial(self._draw_series, moves, boards)))
        play.on_click(told(partial(self._play_from, moves)))

    async def _draw_series(self, moves: Sequence[Sequence[str]], boards: ui.row) -> None:
        """Draw the positions that lead to a finding; at the second click, remove them."""
        if boards.default_slot.children:
            boards.clear()
            return
        pictures = await self._draft.series(moves)
        with boards:
            for number, drawn in enumerate(pictures):
                if number == 1 and len(pictures) <= len(moves):
                    ui.label("..").classes("self-center")
                with ui.column().classes("gap-0").style("max-width: 10rem"):
                    picture(drawn["svg"])
                    ui.label(drawn["caption"]).classes("gl-mono text-xs").style("overflow-wrap: anywhere")

    async def _play_from(self, moves: Sequence[Sequence[str]]) -> None:
        match = await _match_of(self._services, self._draft, self._go, moves)
        ui.navigate.to(f"/play/{match.id}")


_WORDS = {"error": "Error", "warning": "Warning"}


async def _match_of(
    services: Services, draft: Draft, go: Callable[[int, int], None], moves: Sequence[Sequence[str]] | None = None
) -> SharedMatch:
    """Return a new match of a draft: a person against gamelore, or only persons after given moves.

    Raise GameloreError if the game cannot be played; an error with a place also puts the cursor there.
    """
    rules = Rules(draft.text, draft.name)
    try:
        opened = await services.processes.ask(rules, "open", time_limit=OPEN_SECONDS)
    except GDLError as error:
        go(error.line, error.column)
        raise
    others = TakenSeat() if moves else TakenSeat(OPPONENT)
    seats = {role: TakenSeat(others.player) if number else TakenSeat() for number, role in enumerate(opened["roles"])}
    match = services.archive.new(rules=rules, seats=seats)
    if moves:
        match.plies, match.choosers = [list(joint) for joint in moves], [[] for _ in moves]
    await match.open()
    if moves:
        match.keep(match)
    return match


# ---- the report -------------------------------------------------------------------------------------------------


class ReportPanel:
    """The inventor's report on a draft: how far it is, and what it says."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._shown: object = None

    def draw(self) -> None:
        """Draw the part of the page."""
        heading("The inventor's report")
        ui.label(
            "Is the game balanced, how long is it, how many choices are there, and which rules never matter? Players "
            "that choose at random and UCT players, which search, play against themselves, and a small game is solved. "
            "This takes some seconds or minutes, and ends when you leave this page."
        ).classes("gl-faint")
        with ui.row().classes("items-center gap-3"):
            self._matches = ui.number("Matches of each kind", value=100, min=2, max=MOST_MATCHES, precision=0)
            self._matches.classes("w-44").props(f'hint="2 to {MOST_MATCHES:,}"')
            self._simulations = ui.number("Simulations for a move", value=100, min=1, max=MOST_SIMULATIONS, precision=0)
            self._simulations.classes("w-44").props(f'hint="1 to {MOST_SIMULATIONS:,}"')
            self._begin = _button("Make the report", "insights", self._make, "report")
            self._stop = _button("Stop", "stop", self._end, "stop-report")
            self._save = _button("Download as HTML", "download", self._download, "save-report")
        self._stage = ui.label().props("role=status aria-live=polite data-testid=report-stage")
        self._bar = ui.linear_progress(show_value=False).props('aria-label="how much of this stage is done"')
        self._result = ui.column().classes("w-full gap-3").props("data-testid=report-result")
        self.show()

    def show(self) -> None:
        """Show what has changed."""
        job = self._draft.report
        is_running = job is not None and job.is_running
        self._begin.set_enabled(not is_running)
        self._stop.set_visibility(is_running)
        self._save.set_visibility(job is not None and job.shown is not None)
        self._stage.set_text(self._stage_text())
        self._bar.set_visibility(is_running)
        if job is not None and is_running:
            self._bar.set_value(job.share or 0)
        report = job.shown if job else None
        if report is not self._shown:
            self._shown = report
            self._draw_report(report)

    def _stage_text(self) -> str:
        job = self._draft.report
        if job is None:
            return ""
        if job.is_running:
            return f"{job.stage} .." if job.share is None else f"{job.stage}: {job.share:.0%}"
        if job.report is None:
            return f"{job.error}{'; below is the report before it' if job.earlier else ''}"
        return "" if job.text == self._draft.text else "This report is about an earlier text."

    async def _make(self) -> None:
        matches = min(MOST_MATCHES, max(2, int(self._matches.value or 2)))
        self._draft.begin_report(matches, min(MOST_SIMULATIONS, max(1, int(self._simulations.value or 1))))

    async def _end(self) -> None:
        if self._draft.report is not None:
            self._draft.report.stop()
            self._draft.tell()

    async def _download(self) -> None:
        job = self._draft.report
        if job is not None and job.shown is not None:
            ui.download.content(job.shown["html"], f"{_file_name(job.name)}-report.html")

    def _draw_report(self, report: Mapping[str, Any] | None) -> None:
        self._result.clear()
        if report is None:
            return
        with self._result:
            ui.label(report["headline"]).classes("text-lg").props("data-testid=headline")
            columns = [
                {
                    "name": f"c{number}",
                    "label": label,
                    "field": f"c{number}",
                    "align": "left" if number == 0 else "right",
                }
                for number, label in enumerate(report["columns"])
            ]
            rows = [{f"c{number}": text for number, text in enumerate(row)} for row in report["rows"]]
            ui.table(columns=columns, rows=rows).classes("w-full").props("dense flat bordered")
            ui.label("In brackets: the interval that holds the true mean with a probability of 95 %.").classes(
                "gl-faint text-sm"
            )
            for title, text in report["notes"]:
                ui.label(f"{title}: {text}").style("overflow-wrap: anywhere")
            for rule in report["dead_rules"]:
                ui.label(rule).classes("gl-mono gl-rule gl-faint")
            picture(report["figure"])
            picture(report["start"]).style("max-width: 20rem")


# ---- parts ------------------------------------------------------------------------------------------------------


def _button(text: str, icon: str, action: Callable[[], Any], testid: str) -> ui.button:
    return ui.button(text, icon=icon, on_click=told(action)).props(f"outline dense data-testid={testid}")


def _file_name(text: str) -> str:
    """Return a name under which a sheet can be saved, from a name of a game or a file."""
    return re.sub(r"[^A-Za-z0-9_.+-]+", "-", Path(text).stem).strip("-.+_")[:60] or "mygame"


def add_pages(services: Services) -> None:
    """Add the pages to the server."""
    limits = services.processes.limits
    reading, playing = CheckProcesses(limits, PROCESSES), CheckProcesses(limits, PROCESSES)
    drafts = Drafts(services.folder / "drafts", services.library, DraftServices(reading, playing, services.processes))
    app.on_shutdown(reading.close)
    app.on_shutdown(playing.close)

    @ui.page("/rulesheets")
    async def show(sheet: str = "") -> None:
        ui.add_css(STYLE)
        with page_frame("Rulesheets") as main:
            main.classes("gl-sheets")
            if not sheet:
                return SheetListPage(services, drafts).draw()
            try:
                page = EditorPage(services, drafts, drafts.open(sheet))
            except GameloreError as error:
                complaint(str(error))
                ui.link("All rulesheets", "/rulesheets").classes("gl-link")
                return
            page.draw()
        await page.follow()
