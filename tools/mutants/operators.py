"""The small faults ("mutants") that can be put into a source file, each a piece of text in another's place."""

import ast
import copy
import hashlib
from collections import Counter
from typing import NamedTuple

_COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_NEGATED_BY_SWAP = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
_ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "|"),
}


class Edit(NamedTuple):
    """A text in place of another one."""

    start: int
    """Where the old text begins, in bytes."""
    end: int
    """Where it ends."""
    text: str


class Mutant(NamedTuple):
    """A source file with one fault in it."""

    name: str
    """Path, function, and the change; it stays the same when the lines around it move."""
    line: int
    source: bytes


def mutants(path: str, source: bytes) -> list[Mutant]:
    """List the mutants of a source file, in the order in which they stand there.

    Args:
        path: of the file, as the names of the mutants begin.
        source: its text.
    """
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    met: Counter[str] = Counter()
    found = []
    for scope, statement, edit in sorted(finder.found, key=lambda each: each[2]):
        changed = source[: edit.start] + edit.text.encode() + source[edit.end :]
        before = " ".join(source[edit.start : edit.end].decode().split())
        around = " ".join(source[statement.start : statement.end].decode().split())
        after = " ".join(edit.text.split())
        change = f"{_shortened(before)} -> {_shortened(after) or 'nothing'}"
        name = f"{path}::{scope}: {change}  in  {_shortened(around)}"
        met[name] += 1
        if met[name] > 1:
            name += f"  #{met[name]}"
        found.append(Mutant(name, source.count(b"\n", 0, edit.start) + 1, changed))
    return found


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


class _Finder(ast.NodeVisitor):
    """Walks through a file and notes what could be changed where."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.lines = [0]
        for line in source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.scope: list[str] = []
        self.statement = Edit(0, 0, "")
        self.found: list[tuple[str, Edit, Edit]] = []

    # Where things stand.

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self.lines[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.lines[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.expr | ast.stmt) -> str:
        return self.source[self.start(node) : self.end(node)].decode()

    def note(self, start: int, end: int, text: str) -> None:
        self.found.append((".".join(self.scope) or "module", self.statement, Edit(start, end, text)))

    def replace(self, node: ast.expr | ast.stmt, text: str) -> None:
        self.note(self.start(node), self.end(node), text)

    def swap(self, left: int, right: int, old: str, new: str) -> None:
        """Swap the operator that stands between two operands, with or without brackets around these."""
        at = self.source.index(old.encode(), left, right)
        self.note(at, at + len(old), new)

    def negate(self, test: ast.expr) -> None:
        """Negate a condition, unless another change does just that."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], _NEGATED_BY_SWAP):
            return
        self.replace(test, f"(not ({self.text(test)}))")

    # What is walked through, and what is not: annotations, decorators, assertions and texts.

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            # Of what holds other statements, the first line is enough to know it by.
            body = getattr(node, "body", None)
            end = self.start(body[0]) if body else self.end(node)
            before, self.statement = self.statement, Edit(self.start(node), end, "")
            super().visit(node)
            self.statement = before
        else:
            super().visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.scope.append(node.name)
        for default in (*node.args.defaults, *(default for default in node.args.kw_defaults if default)):
            self.visit(default)
        for statement in node.body:
            self.visit(statement)
        self.scope.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self.scope.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass  # Before Python 3.12 what stands in there has no place of its own.

    # The changes.

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, right, operator in zip(operands, operands[1:], node.ops, strict=False):
            self.swap(self.end(left), self.start(right), *_COMPARISONS[type(operator)])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in _ARITHMETIC:
            self.swap(self.end(node.left), self.start(node.right), *_ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in _ARITHMETIC:
            self.swap(self.end(node.target), self.start(node.value), *_ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.swap(self.end(left), self.start(right), old, new)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        self.replace(node, f"({self.text(node.operand)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.replace(node, str(not node.value))
        elif isinstance(node.value, int | float):
            self.replace(node, f"({node.value!r} + 1)")
            self.replace(node, f"({node.value!r} - 1)")

    def visit_If(self, node: ast.If | ast.IfExp) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self.negate(node.test)
        self.generic_visit(node)

    visit_IfExp = visit_If

    def visit_While(self, node: ast.While) -> None:
        self.negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self.negate(test)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self.replace(node.value, "None")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # A docstring.
        if isinstance(node.value, ast.Call | ast.Await):
            self.replace(node, "pass")
        self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        self.replace(node, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self.replace(node, "break")

    def visit_Call(self, node: ast.Call) -> None:
        if len(node.args) > 1:
            self.replace(node, _without(node, "args", -1))
        for i, word in enumerate(node.keywords):
            # Without `device`, a tensor is made on the CPU, which is where the tests run.
            if word.arg not in (None, "device"):
                self.replace(node, _without(node, "keywords", i))
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        pass  # The condition is changed, which does more than another text would.

    def visit_Slice(self, node: ast.Slice) -> None:
        for edge in (node.lower, node.upper):
            if edge is not None:
                self.replace(edge, "")
        self.generic_visit(node)


def _without(call: ast.Call, field: str, place: int) -> str:
    """A call with an argument less."""
    changed = copy.deepcopy(call)
    del getattr(changed, field)[place]
    return ast.unparse(changed)


def sample(found: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """Some of the mutants: the same ones for the same seed, whatever is changed elsewhere in the file."""

    def rank(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{seed} {mutant.name}".encode()).digest()

    chosen = {mutant.name for mutant in sorted(found, key=rank)[:count]}
    return [mutant for mutant in found if mutant.name in chosen]
