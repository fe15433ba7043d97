"""Makes a failing statement smaller: drops parts of its tree as long as the failure stays."""

import copy
import dataclasses

from tree import Expr, Item, Join, Key, Query, SetQuery, Values

SIMPLE = {"bool": [("bool", ["TRUE"]), ("bool", ["FALSE"])], "int": [("int", [1])], "text": [("text", ["a"])]}


def smaller(tree, fails, patience=400):
    """Returns the smallest tree found that `fails`."""
    tries = 0
    shrinking = True
    while shrinking and tries < patience:
        shrinking = False
        for candidate in candidates(tree):
            tries += 1
            if tries >= patience:
                break
            if fails(candidate):
                tree, shrinking = candidate, True
                break
    return tree


def candidates(tree):
    """Trees with one part less, the largest parts first."""
    for path, node in sorted(walk(tree, ()), key=lambda found: len(found[0])):
        for replacement in replacements(node):
            yield put(tree, path, replacement)
        for name, new in drops(node):
            changed = copy.copy(node)
            for attribute, content in zip(name, new):
                setattr(changed, attribute, content)
            yield put(tree, path, changed)


def walk(node, path):
    if dataclasses.is_dataclass(node):
        yield path, node
        for part in dataclasses.fields(node):
            if part.name == "fixed" or (part.name == "order" and not isinstance(node, (Query, SetQuery))):
                continue
            yield from walk(getattr(node, part.name), (*path, part.name))
    elif isinstance(node, list):
        for number, part in enumerate(node):
            yield from walk(part, (*path, number))


def put(tree, path, node):
    """A copy of the tree with another node at a path. Sort keys follow the items that they name."""
    if not path:
        return node
    if isinstance(tree, list):
        return [put(part, path[1:], node) if number == path[0] else part for number, part in enumerate(tree)]
    changed = copy.copy(tree)
    setattr(changed, path[0], put(getattr(tree, path[0]), path[1:], node))
    if isinstance(changed, (Query, SetQuery)):
        follow(tree, changed)
    return changed


def follow(tree, changed):
    before, after = tree.items, changed.items
    if len(before) == len(after):
        new = {id(old): item for old, item in zip(before, after)}
        changed.order = [Key(new.get(id(key.by), key.by), key.suffix) if isinstance(key.by, Item) else key for key in changed.order]


def replacements(node):
    if isinstance(node, SetQuery):
        yield node.left
        yield node.right
    elif isinstance(node, Join):
        yield node.left
        yield node.right
    elif isinstance(node, Expr):
        for part in node.args:
            yield from inside(part, node.type)
        if node.op not in ("column", "int", "text", "bool", "null", "instant", "interval"):
            for op, fixed in SIMPLE.get(node.type, []):
                yield Expr(op, node.type, [], fixed)
            yield Expr("null " + node.type, node.type)


def inside(node, type):
    if isinstance(node, Expr):
        if node.type == type:
            yield node
        for part in node.args:
            yield from inside(part, type)


def drops(node):
    if isinstance(node, Query):
        for name, empty in (("where", None), ("having", None), ("distinct", False), ("grouping", ""), ("source", None)):
            if getattr(node, name):
                yield [name], [empty]
        yield from tails(node)
        for name in ("ctes", "items", "groups"):
            parts = getattr(node, name)
            for number in range(len(parts)):
                if name != "items" or len(parts) > 1:
                    yield [name], [parts[:number] + parts[number + 1:]]
    elif isinstance(node, SetQuery):
        yield from tails(node)
        if len(node.left.items) > 1 and isinstance(node.left, Query) and isinstance(node.right, Query):
            for number in range(len(node.left.items)):
                left, right = copy.copy(node.left), copy.copy(node.right)
                left.items = left.items[:number] + left.items[number + 1:]
                right.items = right.items[:number] + right.items[number + 1:]
                yield ["left", "right"], [left, right]
    elif isinstance(node, Values):
        for number in range(len(node.rows)):
            if len(node.rows) > 1:
                yield ["rows"], [node.rows[:number] + node.rows[number + 1:]]
    elif hasattr(node, "partition"):
        if node.partition:
            yield ["partition"], [[]]
    elif hasattr(node, "where") and node.where:
        yield ["where"], [None]
    elif isinstance(node, Expr) and node.op in ("in list", "not in list"):
        for number in range(1, len(node.args)):
            if len(node.args) > 2:
                yield ["args"], [node.args[:number] + node.args[number + 1:]]


def tails(node):
    if node.limit is not None or node.offset:
        yield ["limit", "offset", "order"], [None, None, []]
        yield ["limit", "offset"], [None, None]
        if node.limit is not None and node.offset:
            yield ["offset"], [None]
            yield ["limit"], [None]
    elif node.order:
        yield ["order"], [[]]
