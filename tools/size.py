"""Count what makes a house hard to live in, room by room: ``make size``, or ``python tools/size.py [ROOM]``.

Code lines are lines without comments, docstrings and blanks. A packed line assigns several unrelated expressions at
once. A riddle is a function's docstring whose first word is not a verb (What, Whether, How, The, A and the like), or a
docstring of a module or a class that begins with a question word (What, Whether, How). With the name of a room, each
file of it is listed, and each place that counts.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "rightarm"
SKIPPED = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
QUESTIONS = frozenset(["what", "what's", "whether", "how", "which", "who", "where", "when", "why"])
RIDDLES = QUESTIONS | frozenset(
    [
        "that",
        "those",
        "these",
        "this",
        "the",
        "a",
        "an",
        "all",
        "its",
        "it",
        "their",
        "one",
        "some",
        "several",
        "every",
        "each",
        "if",
        "of",
        "in",
        "by",
        "with",
        "for",
        "from",
        "as",
        "to",
        "no",
        "not",
        "only",
        "same",
    ]
)
SHORT, LONG = 60, 500  # code lines of a file
SCREEN = 60  # lines of a function, without its docstring
COLUMNS = ("files", "code", "Any", "packed", "riddles", "long functions", f"under {SHORT}", f"over {LONG}")

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstring_of(node: ast.AST) -> ast.Expr | None:
    """Return the statement that is a node's docstring."""
    if not isinstance(node, Documented) or not node.body:
        return None
    first = node.body[0]
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return first if is_text and isinstance(first, ast.Expr) else None


def lines_of(node: ast.stmt) -> set[int]:
    """Return the numbers of a statement's lines."""
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def code_lines(source: str, tree: ast.Module) -> int:
    """Return how many lines have code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SKIPPED:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        docstring = docstring_of(node)
        if docstring is not None:
            lines -= lines_of(docstring)
    return len(lines)


def is_packed(node: ast.AST) -> bool:
    """Return whether a statement assigns several expressions at once, other than swapping names."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    is_unpacking = all(isinstance(target, ast.Tuple) for target in node.targets)
    return is_unpacking and not all(isinstance(part, ast.Name) for part in node.value.elts)


def is_long(node: ast.AST) -> bool:
    """Return whether a function does not fit a screen."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    docstring = docstring_of(node)
    documented = 0 if docstring is None else len(lines_of(docstring))
    return len(lines_of(node)) - documented > SCREEN


def is_riddle(node: ast.AST) -> bool:
    """Return whether a docstring begins with a word that is no verb; for a module or a class, with a question word."""
    docstring = docstring_of(node)
    if docstring is None:
        return False
    words = str(docstring.value.value).split()  # type: ignore[attr-defined]
    first = words[0].strip("`.,:;*\"'").lower() if words else ""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return first in QUESTIONS
    is_property = any("property" in ast.unparse(each) for each in node.decorator_list)
    return first in RIDDLES and not (is_property and first in {"the", "a", "an"})


def places(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield what counts in a file, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "Any":
            yield "Any", node.lineno
        if is_packed(node):
            yield "packed", node.lineno  # type: ignore[attr-defined]
        if is_riddle(node):
            yield "riddles", getattr(node, "lineno", 1)  # a module has no line
        if is_long(node):
            yield "long functions", node.lineno  # type: ignore[attr-defined]


def counted(path: Path) -> tuple[dict[str, int], list[str]]:
    """Return the numbers of a file, and the places that they come from."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    numbers = dict.fromkeys(COLUMNS, 0)
    numbers["files"] = 1
    numbers["code"] = code_lines(source, tree)
    numbers[f"under {SHORT}"] = int(numbers["code"] < SHORT and path.name != "__init__.py")
    numbers[f"over {LONG}"] = int(numbers["code"] > LONG)
    found = []
    for kind, line in places(tree):
        numbers[kind] += 1
        if kind != "Any":
            found.append(f"  {path.relative_to(ROOT)}:{line} {kind}")
    return numbers, found


def row(name: str, numbers: dict[str, int]) -> str:
    """Return one line of the table."""
    return f"{name:28}" + "".join(f"{numbers[column]:>{len(column) + 3}}" for column in COLUMNS)


def main(room: str | None = None) -> None:
    """Print the table of all rooms, or of the files of one."""
    rooms: dict[str, dict[str, int]] = {}
    total = dict.fromkeys(COLUMNS, 0)
    print(f"{'':28}" + "".join(f"   {column}" for column in COLUMNS))
    for path in sorted(ROOT.rglob("*.py")):
        own = path.relative_to(ROOT)
        name = f"{own.parts[0]}/" if len(own.parts) > 1 else "(top)"
        numbers, found = counted(path)
        if room is not None and name == room:
            print("\n".join([row(str(own), numbers), *found]))
        rooms.setdefault(name, dict.fromkeys(COLUMNS, 0))
        for column in COLUMNS:
            rooms[name][column] += numbers[column]
            total[column] += numbers[column]
    if room is None:
        for name, numbers in rooms.items():
            print(row(name, numbers))
        print(row("all", total))


if __name__ == "__main__":
    main(f"{sys.argv[1].rstrip('/')}/" if len(sys.argv) > 1 else None)
