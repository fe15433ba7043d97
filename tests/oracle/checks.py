"""What must hold for a statement. A check turns a tree into statements, and judges their rows."""

import hashlib

from compare import same
from fronts import Refused
from tree import Aggregate, Expr, Item, Query


class Rows:
    """the rows are those of DuckDB"""

    @staticmethod
    def truth(tree, ask):
        return ask(tree)

    @staticmethod
    def trees(tree, truth):
        return [tree]

    @staticmethod
    def holds(tree, answers, truth):
        # A truth that is an error, such as an overflow, needs an error.
        if isinstance(truth, Refused):
            return False
        return same(answers[0], truth, any(key.sql("engine", tree.items) for key in tree.order))


class Partition:
    """the rows for which a condition is true, false and NULL are all rows"""

    @staticmethod
    def truth(tree, ask):
        return None

    @staticmethod
    def trees(tree, truth):
        conditions = [None, tree.where, Expr("not", "bool", [tree.where]), Expr("is null", "bool", [tree.where])]
        return [Query(tree.items, tree.source, condition) for condition in conditions]

    @staticmethod
    def holds(tree, answers, truth):
        every, true, false, null = answers
        return same(true + false + null, every, False)


class Counted:
    """as many rows satisfy a condition as rows have it as a true value"""

    @staticmethod
    def truth(tree, ask):
        return None

    @staticmethod
    def trees(tree, truth):
        value = Expr("case", "int", [tree.where, Expr("int", "int", [], [1]), Expr("int", "int", [], [0])])
        return [
            Query([Item(Aggregate("count", "int", []), "n", "int")], tree.source, tree.where),
            Query([Item(value, "n", "int")], tree.source),
        ]

    @staticmethod
    def holds(tree, answers, truth):
        return answers[0][0][0] == sum(row[0] for row in answers[1])


class Chosen:
    """a row for which a condition holds comes back"""

    @staticmethod
    def truth(tree, ask):
        """A row of the tree without its condition, and what the condition is there."""
        value = Item(Expr("is true", "bool", [tree.where]), "t", "bool")
        known = Item(Expr("is null", "bool", [tree.where]), "u", "bool")
        rows = ask(Query([*tree.items, value, known], tree.source))
        if isinstance(rows, Refused) or not rows:
            return rows if rows else Refused("no rows")
        rows = sorted(rows, key=str)
        return rows[int(hashlib.md5(str(len(rows)).encode()).hexdigest(), 16) % len(rows)]

    @staticmethod
    def trees(tree, truth):
        condition = tree.where
        if not isinstance(truth, Refused):
            value, null = truth[-2:]
            condition = Expr("is null", "bool", [condition]) if null else condition if value else Expr("not", "bool", [condition])
        return [Query(tree.items, tree.source, condition)]

    @staticmethod
    def holds(tree, answers, truth):
        row = truth[:-2]
        return any(same([answer], [row], False) for answer in answers[0])


CHECKS = [Rows, Partition, Counted, Chosen]
