"""Reports: what an ingest of ReDIF read and did."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from builder.obi.run import Committed
from builder.sources.redif import spool
from builder.sources.redif.form import specification
from builder.sources.redif.staging import (
    BACK,
    BACK_CHANGED,
    CHANGED,
    NEW,
    SAME,
    STORED,
    can_be_named,
)
from builder.text import tally, visible
from functions.store import engine

MEANINGS = {**specification.CODES, **spool.FAULT_CODES}
"""Each fault code with its meaning."""

_FILES = "SELECT count(*), coalesce(sum(bytes), 0)::BIGINT FROM staged_file WHERE counts"
_TEMPLATES = """
SELECT coalesce(sum(templates), 0)::BIGINT, coalesce(sum(nameless), 0)::BIGINT,
    coalesce(sum(invalid), 0)::BIGINT,
    (SELECT count(handle) FROM staged_template) - (SELECT count(*) FROM winner)
FROM staged_file WHERE counts
"""
HELD = "SELECT home, missing FROM vanished WHERE proven AND held ORDER BY home"
"""The query of the templates that vanished at once, by archive, from the table of compare."""
_INCOMPLETE = "SELECT home, missing FROM vanished WHERE NOT proven AND there ORDER BY home"
_ABSENT = """
SELECT home, missing FROM vanished WHERE NOT proven AND NOT there AND home IS NOT NULL ORDER BY home
"""
_ACCEPTABLE = """
SELECT home FROM vanished WHERE NOT proven AND acceptable AND home IS NOT NULL ORDER BY home
"""
_STRAY = """
SELECT coalesce(sum(if(proven, hidden, missing)), 0)::BIGINT FROM vanished WHERE home IS NULL
"""
_NAMED = 10  # archives that are listed by name


@dataclass(frozen=True, slots=True)
class RedifReport:
    """What one run read and did.

    `held` and `incomplete` count by archive the templates that vanished and do not count as lost.
    Those in `held` are too many at once; those in `incomplete` are of archives that were not read
    whole.
    """

    run: int
    source: str
    files: int
    bytes: int
    new_files: int
    """Files whose bytes are new."""
    templates: int
    invalid: int
    handles: int
    duplicates: int
    no_handle: int
    appearances: int
    reappearances: int
    changes: int
    deletions: int
    unchanged: int
    objects: int
    held: Mapping[str, int]
    incomplete: Mapping[str, int]
    absent: Mapping[str, int]
    """Templates in the store, by archive, for the archives that the sources do not contain."""
    acceptable: Sequence[str]
    """Archives of `incomplete` and `absent` whose losses count if --accept-loss names them.

    Nothing was left out that could hide these templates.
    """
    stray: int
    """Templates outside all archive folders that vanished and do not count as lost."""
    known_files: int = 0
    """Files of `files` that have not changed since they were read, and were not read again."""
    faults: Mapping[str, int] = field(default_factory=dict)
    commit: str = ""

    def having(self, done: Committed, codes: Mapping[str, int]) -> "RedifReport":
        """Return a copy with the digest of the commit, and the faults of the log by code."""
        return replace(self, faults=dict(sorted(codes.items())), commit=done.digest)

    @property
    def documents(self) -> int:
        """Number of versions of templates; each has a document and an object."""
        return self.objects - self.new_files

    def text(self) -> str:
        """Return the report as lines of text."""
        unread = f" ({self.known_files:,} not read again)" if self.known_files else ""
        lines = [
            f"run {self.run} of {self.source}: {tally(self.templates, 'template')} in "
            f"{tally(self.files, 'file')}{unread}, {tally(self.handles, 'handle')}, "
            "ready to publish",
            f"  {tally(self.appearances, 'appearance')}, {self.reappearances:,} again, "
            f"{tally(self.changes, 'change')}, {tally(self.deletions, 'deletion')}, "
            f"{self.unchanged:,} unchanged",
        ]
        lines += _list_archives(
            self.held,
            "  {many} of RePEc:{home} disappeared at once and are not deleted: "
            "--accept-loss{name} deletes them",
        )
        lines += _list_archives(
            {home: many for home, many in self.incomplete.items() if home not in self.acceptable},
            "  RePEc:{home} was not read completely: nothing of it is deleted ({many} not seen)",
        )
        lines += _list_archives(
            {home: many for home, many in self.incomplete.items() if home in self.acceptable},
            "  RePEc:{home} has no archive template in {home}arch.rdf: nothing of it is deleted "
            "({many} not seen)",
            ", --accept-loss{name} deletes them",
        )
        lines += self._absent()
        if self.stray:
            many = tally(self.stray, "template", "templates")
            lines.append(
                f"  {many} outside of archives' folders not seen and not deleted: --accept-loss "
                "without a name deletes those that no fault hides"
            )
        if self.faults:
            lines.append(
                f"  {tally(sum(self.faults.values()), 'fault')} in what is new, each a row of "
                '`sheaf query "FROM faults"` once published:'
            )
            lines += [
                f"    {many:,} {code}: {MEANINGS[code]}"
                for code, many in sorted(self.faults.items(), key=lambda e: (-e[1], e[0]))
            ]
        return "\n".join(lines)

    def _absent(self) -> list[str]:
        """Return a line with the absent archives and the option that gives them up."""
        if not self.absent:
            return []
        many = tally(len(self.absent), "archive is", "archives are")
        names = [
            f"RePEc:{visible(home)} ({tally(count, 'template')})"
            for home, count in list(self.absent.items())[:_NAMED]
        ]
        if len(self.absent) > _NAMED:
            names.append(f"and {len(self.absent) - _NAMED:,} more")
        line = f"  {many} missing, of which nothing is deleted: {', '.join(names)}"
        first = next(
            (name for name in self.acceptable if name in self.absent and can_be_named(name)), None
        )
        if first is not None:
            line += f"; --accept-loss {first} deletes RePEc:{first}"
        return [line]


def build_report(
    connection: engine.Connection, tist: int, source: str, known_files: int = 0
) -> RedifReport:
    """Return the report, from the tables of comparison.compare."""
    with engine.reading("the read templates"):
        files, size = _row(connection, _FILES)
        templates, nameless, invalid, duplicates = _row(connection, _TEMPLATES)
        (fresh,) = _row(connection, "SELECT count(*) FROM fresh")
        (stray,) = _row(connection, _STRAY)
        (lost,) = _row(connection, "SELECT count(*) FROM lost")
        handles = templates - nameless - duplicates
        became = _counts(
            connection,
            f"SELECT became, count(*) FROM step WHERE became != '{SAME}' GROUP BY became",
        )
        at_once, incomplete = _counts(connection, HELD), _counts(connection, _INCOMPLETE)
        absent = _counts(connection, _ABSENT)
        acceptable = [str(home) for (home,) in connection.execute(_ACCEPTABLE).fetchall()]
    stored = sum(became.get(change, 0) for change in STORED)
    return RedifReport(
        run=tist,
        source=source,
        files=files,
        bytes=size,
        new_files=fresh,
        templates=templates,
        invalid=invalid,
        handles=handles,
        duplicates=duplicates,
        no_handle=nameless,
        appearances=became.get(NEW, 0),
        reappearances=became.get(BACK, 0) + became.get(BACK_CHANGED, 0),
        changes=became.get(CHANGED, 0),
        deletions=lost,
        unchanged=handles - sum(became.values()),
        objects=stored + fresh,
        held=at_once,
        incomplete=incomplete,
        absent=absent,
        acceptable=acceptable,
        stray=stray,
        known_files=known_files,
    )


def _row(connection: engine.Connection, sql: str) -> Sequence[int]:
    (row,) = connection.execute(sql).fetchall()
    return tuple(map(int, row))


def _counts(connection: engine.Connection, sql: str) -> dict[str, int]:
    return {str(name): int(many) for name, many in connection.execute(sql).fetchall()}


def _list_archives(archives: Mapping[str, int], form: str, remedy: str = "") -> list[str]:
    """Return a line for each archive, with the remedy only if the option can name the archive."""
    lines = []
    for home, many in list(archives.items())[:_NAMED]:
        line = form + remedy if can_be_named(home) else form
        name = f" {home}" if can_be_named(home) else ""
        lines.append(line.format(home=visible(home), name=name, many=tally(many, "template")))
    more = len(archives) - _NAMED
    return lines if more <= 0 else [*lines, f"  and {more:,} more such archives"]
