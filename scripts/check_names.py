"""Checks rules for names and docstrings that no linter has. `make check` runs it.

- A public class name has one meaning in the whole package.
- Bounds are called MAX_ and MIN_.
- A docstring makes sense without the one before it: none begins with "The same".
- Only `db/` knows which database it is: no other module compares the dialect's name.
- A file that a docstring or comment names in backticks exists.
- A folder of the package has at most 25 modules, and a module at most 500 lines: more are several subjects.

A comment exempts its line: `# names: REASON`.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_MODULES = 25
MAX_LINES = 500
DATABASES = {"postgres", "postgresql", "sqlite"}
FOLDERS = ("src", "tests", "bench", "examples", "scripts")
LET_THROUGH = re.compile(r"# names: \S")
NAMED_FILE = re.compile(r"`(?:[a-z_]+/)*([a-z_]+\.py)`")
OLD_BOUND = re.compile(r"\b_?(MOST|LEAST)(_[A-Z]+)*\b")


def findings_in(files: dict[Path, str]) -> Iterator[str]:
    """Yield one line for each violation in the given sources."""
    yield from _crowded_in(files)
    classes: dict[str, str] = {}
    names = {path.name for path in files}
    for path, source in sorted(files.items()):
        lines = source.splitlines()
        if path.parts[0] == "src":
            yield from _missing_in(path, lines, names)
        for line, text in _wrong_in(path, source, classes):
            if not LET_THROUGH.search(lines[line - 1]):
                yield f"{path}:{line}: {text}"


def _missing_in(path: Path, lines: Sequence[str], names: Container[str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        for name in NAMED_FILE.findall(line):
            if name not in names and not LET_THROUGH.search(line):
                yield f"{path}:{number}: {name} is named here, and there is no such file"


def _crowded_in(files: Mapping[Path, str]) -> Iterator[str]:
    for path, source in files.items():
        count = source.count("\n")
        if count > MAX_LINES and path.parts[0] == "src":
            yield f"{path}: {count} lines, at most {MAX_LINES}"
    modules = Counter(path.parent for path in files if path.parts[0] == "src" and path.stem != "__init__")
    for folder, count in sorted(modules.items()):
        if count > MAX_MODULES and folder.name != "versions":
            yield f"{folder}: {count} modules in one folder, at most {MAX_MODULES}"


def _wrong_in(path: Path, source: str, classes: dict[str, str]) -> Iterator[tuple[int, str]]:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and OLD_BOUND.fullmatch(node.id):
            yield node.lineno, f"{node.id}: call bounds MAX_ and MIN_"
        # Docstrings, and strings below attributes that serve as docstrings.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str) and text.startswith("The same"):
                yield node.lineno, 'a docstring begins with "The same": say what it is'
    if path.parts[0] == "src" and path.parts[2] != "db":
        yield from _dialects_in(tree)
    if path.parts[0] == "src":
        for statement in tree.body:
            if isinstance(statement, ast.ClassDef) and not statement.name.startswith("_"):
                first = classes.setdefault(statement.name, f"{path}:{statement.lineno}")
                if first != f"{path}:{statement.lineno}":
                    yield statement.lineno, f"class {statement.name} is also defined at {first}"


def _dialects_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    text = "only db/ may know which database it is: give the dialect a method"
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in DATABASES:
            yield node.lineno, text
        if isinstance(node, ast.Attribute) and node.attr == "name" and _is_dialect(node.value):
            yield node.lineno, text


def _is_dialect(node: ast.expr) -> bool:
    return "dialect" in (getattr(node, "attr", None), getattr(node, "id", None))


def main() -> int:
    files = {
        path.relative_to(ROOT): path.read_text(encoding="utf-8")
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
    }
    found = list(findings_in(files))
    for each in found:
        print(each)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
