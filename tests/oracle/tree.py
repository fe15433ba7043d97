"""Statements as trees. A tree renders as SQL of an engine (dialect.py) and can be reduced part by part (reduce.py)."""

from dataclasses import dataclass, field

import dialect


@dataclass
class Expr:
    """An expression: an operator of dialect.TEMPLATES with its arguments. `fixed` are arguments that a reduction leaves."""

    op: str
    type: str
    args: list = field(default_factory=list)
    fixed: list = field(default_factory=list)

    def sql(self, language):
        parts = [part.sql(language) for part in self.args]
        return dialect.expression(language, self.op, parts, [value(part, language) for part in self.fixed])


def value(part, language):
    return part.sql(language) if hasattr(part, "sql") else part


@dataclass
class Aggregate:
    """A call of an aggregate function, with FILTER and, for functions that depend on it, an order."""

    function: str
    type: str
    args: list
    distinct: bool = False
    where: Expr | None = None
    ordered: bool = False

    def sql(self, language):
        args = ", ".join(arg.sql(language) for arg in self.args) or "*"
        if self.ordered:
            args += f" ORDER BY {self.args[0].sql(language)}"
        text = f"{self.function}({'DISTINCT ' if self.distinct else ''}{args})"
        return f"{text} FILTER (WHERE {self.where.sql(language)})" if self.where else text


@dataclass
class Window:
    """A window function. The order is fixed: a reduction of it would make the result depend on chance."""

    function: str
    type: str
    args: list
    partition: list
    order: list
    frame: str = ""

    def sql(self, language):
        args = ", ".join(arg.sql(language) for arg in self.args) or ("*" if self.function == "count" else "")
        over = []
        if self.partition:
            over.append("PARTITION BY " + ", ".join(part.sql(language) for part in self.partition))
        if self.order:
            over.append("ORDER BY " + ", ".join(key.sql(language) for key in self.order))
        if self.frame:
            over.append(self.frame)
        return f"{self.function}({args}) OVER ({' '.join(over)})"


@dataclass
class Key:
    """A sort key: an item of the SELECT list by its position, or an expression. Parentheses around it mean nothing."""

    by: object
    suffix: str = ""
    parentheses: bool = False

    def sql(self, language, items=()):
        places = [str(position) for position, item in enumerate(items, 1) if item is self.by]
        if isinstance(self.by, Item) and not places:
            return None
        text = places[0] if places else self.by.sql(language)
        return (f"({text})" if self.parentheses else text) + dialect.suffix(language, self.suffix)


@dataclass
class Item:
    """An expression of the SELECT list, with its name."""

    expr: object
    name: str | None
    type: str

    def sql(self, language):
        return self.expr.sql(language) + (f" AS {self.name}" if self.name else "")


@dataclass
class Query:
    """A SELECT. `order` is complete wherever there is a LIMIT or OFFSET."""

    items: list
    source: object = None
    where: object = None
    groups: list = field(default_factory=list)
    grouping: str = ""
    having: object = None
    distinct: bool = False
    order: list = field(default_factory=list)
    limit: int | None = None
    offset: int | None = None
    ctes: list = field(default_factory=list)

    def sql(self, language):
        text = with_clause(self.ctes, language) + "SELECT " + ("DISTINCT " if self.distinct else "")
        text += ", ".join(item.sql(language) for item in self.items)
        if self.source:
            text += " FROM " + self.source.sql(language)
        if self.where:
            text += " WHERE " + self.where.sql(language)
        if self.groups:
            groups = ", ".join(group.sql(language) for group in self.groups)
            text += " GROUP BY " + (self.grouping.format(groups) if self.grouping else groups)
        if self.having:
            text += " HAVING " + self.having.sql(language)
        return text + tail(self, language)


@dataclass
class SetQuery:
    """Two queries combined by UNION, INTERSECT or EXCEPT. Its items are those of the first."""

    op: str
    left: object
    right: object
    order: list = field(default_factory=list)
    limit: int | None = None
    offset: int | None = None
    ctes: list = field(default_factory=list)

    @property
    def items(self):
        return self.left.items

    def sql(self, language):
        def side(query):
            bare = isinstance(query, Query) and not (query.order or query.limit is not None or query.offset or query.ctes)
            return query.sql(language) if bare else f"({query.sql(language)})"

        text = f"{side(self.left)} {self.op} {side(self.right)}"
        return with_clause(self.ctes, language) + text + tail(self, language)


def with_clause(ctes, language):
    if not ctes:
        return ""
    return "WITH " + ", ".join(f"{cte.name} AS ({cte.query.sql(language)})" for cte in ctes) + " "


def tail(query, language):
    keys = [key.sql(language, query.items) for key in query.order]
    keys = [key for key in keys if key]
    text = " ORDER BY " + ", ".join(keys) if keys else ""
    if query.limit is not None:
        text += f" LIMIT {query.limit}"
    if query.offset:
        text += f" OFFSET {query.offset}"
    return text


@dataclass
class Cte:
    """A common table expression."""

    name: str
    query: object


@dataclass
class Named:
    """A table or a common table expression."""

    table: str
    alias: str

    def sql(self, language):
        return f"{self.table} {self.alias}"


@dataclass
class Values:
    """A table of constants."""

    rows: list
    alias: str
    names: list

    def sql(self, language):
        rows = ", ".join("(" + ", ".join(cell.sql(language) for cell in row) + ")" for row in self.rows)
        return f"(VALUES {rows}) {self.alias}({', '.join(self.names)})"


@dataclass
class Derived:
    """A subquery in FROM."""

    query: object
    alias: str
    names: list = field(default_factory=list)

    def sql(self, language):
        return f"({self.query.sql(language)}) {self.alias}" + (f"({', '.join(self.names)})" if self.names else "")


@dataclass
class Lateral:
    """A subquery in FROM that looks at the items before it."""

    query: object
    alias: str

    def sql(self, language):
        return f"LATERAL ({self.query.sql(language)}) {self.alias}"


@dataclass
class Join:
    """A join with ON, USING or neither."""

    kind: str
    left: object
    right: object
    on: object = None
    using: list = field(default_factory=list)

    def sql(self, language):
        right = f"({self.right.sql(language)})" if isinstance(self.right, Join) else self.right.sql(language)
        text = f"{self.left.sql(language)} {dialect.join(language, self.kind)} {right}"
        if self.on:
            text += " ON " + self.on.sql(language)
        if self.using:
            text += f" USING ({', '.join(self.using)})"
        return text
