"""Generates statements of any shape over the tables.

Each statement has one result: what has a LIMIT has a complete order, and window functions that depend on an order have one that
ends with the keys of all rows.
"""

from expressions import Column, Expressions, Scope
from tree import Aggregate, Cte, Derived, Expr, Item, Join, Key, Named, Query, SetQuery, Values, Window

GROUPINGS = ["ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({0}), ())"]
JOINS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]

TABLES = {
    "mentions": {
        "aid": "text", "id": "text", "seq": "int", "title": "text", "published_at": "ts", "indexed_at": "ts",
        "source": "text", "source_type": "text", "platform": "text", "author_handle": "text", "author_followers": "int",
        "language": "text", "country": "text", "sentiment": "text", "sentiment_score": "float", "reach": "int",
        "likes": "int", "comments": "int", "engagement": "int", "type": "text", "hashtags": "list",
    },
    "saved_searches": {
        "aid": "text", "kind": "text", "name": "text", "team_id": "text", "owner": "text", "created_at": "ts",
        "languages": "list", "kinds": "list",
    },
    "recent_searches": {"position": "int", "aid": "text", "name": "text", "query": "text", "searched_at": "ts"},
    "overview": {"aid": "text", "total_mentions": "int", "unique_authors": "int", "positive": "int", "negative": "int"},
    "breakdowns": {"aid": "text", "dimension": "text", "rank": "int", "name": "text", "mentions": "int"},
    "volume": {"aid": "text", "bucket_start": "ts", "bucket_end": "ts", "mentions": "int", "reach": "int"},
}
KEYS = {
    "mentions": ["aid", "id"], "saved_searches": ["aid"], "recent_searches": ["position"], "overview": ["aid"],
    "breakdowns": ["aid", "dimension", "rank"], "volume": ["aid", "bucket_start"],
}


class Statements(Expressions):
    """Statements, their clauses and what they read."""

    def with_ctes(self):
        ctes = []
        for number in range(self.rng.randint(1, 2)):
            query = self.query(2, None)
            self.name_items(query)
            ctes.append(Cte(f"w{number}", query))
            self.ctes = self.ctes + [(f"w{number}", [(item.name, item.type) for item in query.items])]
        query = self.query(2, None)
        query.ctes = ctes + query.ctes
        return query

    def conditioned(self, free):
        """A query whose condition is all that matters. With `free`, it may have functions that DuckDB does not have."""
        self.free = free
        source, scope = self.source(1, None)
        keys = scope.keys or [column for column in scope.columns if column.type != "list"][:3] or scope.columns[:1]
        return Query([Item(self.column(key), None, key.type) for key in keys], source, self.boolean(scope, self.pick([0, 1, 2])))

    def finish(self, query):
        """Gives a statement an order, often with a limit."""
        if query.order or query.limit is not None or query.offset or any(item.expr.__dict__.get("fixed") == ["*"] for item in query.items):
            return
        if self.chance(0.4):
            query.order = self.all_items(query)
            if self.chance(0.6):
                self.limit(query)

    def limit(self, query):
        if self.chance(0.8):
            query.limit = self.pick([0, 1, 1, 2, 3, 5, 10, 20])
        if query.limit is None or self.chance(0.35):
            query.offset = self.pick([1, 2, 5, 10, 30])

    def all_items(self, query):
        items = list(query.items)
        self.rng.shuffle(items)
        return [Key(item, self.direction(), self.chance(0.05)) for item in items if item.type != "list"] + [
            Key(item, "") for item in items if item.type == "list"
        ]

    def direction(self):
        return self.pick(["", "", " DESC", " ASC NULLS FIRST", " DESC NULLS LAST", " ASC NULLS LAST", " DESC NULLS FIRST"])

    def query(self, depth, outer, types=None, small=False):
        """A query. `types` are those of its columns, if somebody expects some."""
        if depth > 0 and self.chance(0.12 if not small else 0.05):
            return self.set_query(depth, outer, types)
        source, scope = self.source(depth, outer)
        kind = self.rng.random()
        query = Query([], source)
        if self.chance(0.7):
            query.where = self.where(scope, depth)
        if outer and self.chance(0.6):
            query.where = self.correlated(scope, query.where)
        if outer and isinstance(source, Join) and source.on and self.chance(0.3):
            source.on = self.correlated(scope, source.on)
        if kind < 0.3:
            self.grouped(query, scope, depth, types)
        elif kind < 0.42 and not types:
            self.windowed(query, scope, depth)
        else:
            self.plain(query, scope, depth, types)
        return query

    def correlated(self, scope, where):
        """Adds a comparison with a column of the outer query."""
        visible = {column.ref.split(".")[0] for column in scope.columns}
        pairs = [(a, b) for a in scope.columns for b in scope.outer.columns
                 if a.type == b.type == "text" and "." in b.ref and b.ref.split(".")[0] not in visible]
        same = [(a, b) for a, b in pairs if a.name == b.name]
        if not pairs:
            return where
        a, b = self.pick(same if same and self.chance(0.8) else pairs)
        test = Expr(self.pick(["="] * 6 + ["<", "<>"]), "bool", [self.column(a), self.column(b)])
        return Expr("and", "bool", [test, where]) if where else test

    def where(self, scope, depth):
        parts = [self.boolean(scope, depth) for _ in range(self.pick([1, 1, 1, 2, 2, 3]))]
        if self.chance(0.25):
            bound = self.time_bound(scope)
            if bound:
                parts.insert(self.rng.randrange(len(parts) + 1), bound)
        where = parts[0]
        for part in parts[1:]:
            where = Expr("and", "bool", [where, part])
        return where

    def time_bound(self, scope):
        columns = [column for column in scope.of("ts") if column.name == "published_at"]
        if not columns:
            return None
        column = self.column(self.pick(columns))
        low = Expr(self.pick([">=", ">"]), "bool", [column, self.instant()])
        if self.chance(0.5):
            return low
        return Expr("and", "bool", [low, Expr(self.pick(["<", "<="]), "bool", [column, self.instant()])])

    def plain(self, query, scope, depth, types):
        if types:
            query.items = [Item(self.expression(type, scope, depth - 1), None, type) for type in types]
        else:
            query.items = []
            for _ in range(self.rng.randint(1, 4)):
                type = self.pick(["int", "text", "text", "bool", "ts", "float", "int", "list", "date"])
                if self.chance(0.5):
                    columns = scope.of(type) or scope.columns
                    column = self.pick(columns)
                    query.items.append(Item(self.column(column), self.maybe_name(column.name), column.type))
                else:
                    query.items.append(Item(self.expression(type, scope, depth - 1), None, type))
            self.unique_names(query)
        query.distinct = self.chance(0.15)
        if scope.keys and not query.distinct and not types and self.chance(0.3):
            first = [Key(self.column(self.pick(scope.columns)), self.direction())] if self.chance(0.7) else []
            query.order = first + [Key(self.column(key), self.direction()) for key in scope.keys]
            if self.chance(0.7):
                self.limit(query)
        elif self.chance(0.15) and not types:
            query.order = self.all_items(query)
            self.limit(query)
        elif types and len(types) == 1 and self.chance(0.15):
            query.order = self.all_items(query)
            self.limit(query)

    def maybe_name(self, name):
        return self.pick([None, None, None, "k", "id", "aid", name])

    def unique_names(self, query):
        """Names what has no name of its own, and sometimes leaves two columns with one name."""
        seen = set()
        for number, item in enumerate(query.items):
            name = item.name or (item.expr.fixed[0].split(".")[-1] if getattr(item.expr, "op", "") == "column" else None)
            if name is None or (name in seen and not self.chance(0.1)):
                item.name = f"c{number}"
            else:
                seen.add(name)

    def name_items(self, query):
        """Gives the columns of a query names, all different: for those who refer to them."""
        seen = set()
        for number, item in enumerate(query.items):
            name = item.name or (item.expr.fixed[0].split(".")[-1] if getattr(item.expr, "op", "") == "column" else None)
            if name is None or name in seen:
                name = item.name = f"c{number}"
            else:
                item.name = name
            seen.add(name)

    def grouped(self, query, scope, depth, types):
        groups = []
        if self.chance(0.75):
            for _ in range(self.pick([1, 1, 2])):
                if self.chance(0.7):
                    column = self.pick([column for column in scope.columns if column.type != "list"] or scope.columns)
                    groups.append((self.column(column), column.type))
                else:
                    type = self.pick(["text", "int", "bool", "date"])
                    expr = self.expression(type, scope, 0)
                    if expr.op in ("int", "text", "bool", "day") or expr.op.startswith("null"):
                        expr = Expr("coalesce", type, [expr, expr])  # a number alone would be a position
                    groups.append((expr, type))
        # An aggregate over columns of the outer query alone would belong to that query.
        inner = Scope(scope.columns, [])
        if types:
            query.items = []
            for type in types:
                same = [group for group, group_type in groups if group_type == type]
                expr = self.pick(same) if same and self.chance(0.5) else self.aggregate(type, inner, depth - 1)
                query.items.append(Item(expr, None, type))
        else:
            query.items = [Item(group, f"g{number}", type) for number, (group, type) in enumerate(groups) if self.chance(0.85)]
            for number in range(self.pick([1, 1, 2, 3])):
                type = self.pick(["int", "int", "int", "text", "float", "bool", "ts"])
                query.items.append(Item(self.aggregate(type, inner, depth - 1), f"n{number}", type))
        query.groups = [group for group, _ in groups]
        if len(groups) >= 1 and not types and self.chance(0.2):
            query.grouping = self.pick(GROUPINGS)
            if self.chance(0.4):
                query.items.append(Item(Expr("grouping", "int", [groups[0][0]]), "gr", "int"))
        if self.chance(0.3):
            query.having = self.having(inner, depth)
        if not types and self.chance(0.2):
            query.order = self.all_items(query)
            self.limit(query)

    def having(self, scope, depth):
        if self.chance(0.2) and scope.of("ts"):
            column = self.column(self.pick(scope.of("ts")))
            length = Expr("age", "duration", [Aggregate("max", "ts", [column]), Aggregate("min", "ts", [column])])
            return Expr(self.pick([">", ">=", "<", "<="]), "bool", [length, self.interval()])
        type = self.pick(["int", "int", "text", "bool"])
        if type == "bool":
            return self.aggregate("bool", scope, depth - 1)
        return Expr(self.pick(["=", "<>", "<", ">", ">=", "<="]), "bool", [self.aggregate(type, scope, 0), self.constant(type)])

    def aggregate(self, type, scope, depth):
        where = self.boolean(scope, 0) if self.chance(0.2) else None
        argument = lambda type: self.expression(type, scope, 0)
        if type == "int":
            kind = self.rng.random()
            if kind < 0.35:
                return Aggregate("count", "int", [], where=where)
            if kind < 0.6:
                of = self.pick(["text", "int", "bool", "ts"])
                return Aggregate("count", "int", [argument(of)], distinct=self.chance(0.5), where=where)
            function = self.pick(["sum", "min", "max"])
            return Aggregate(function, "int", [argument("int")], distinct=self.chance(0.1), where=where)
        if type == "float":
            return Aggregate("avg", "float", [argument("int")], where=where)
        if type == "bool":
            return Aggregate(self.pick(["bool_and", "bool_or"]), "bool", [argument("bool")], where=where)
        if type == "text" and self.chance(0.25):
            return Aggregate("string_agg", "text", [argument("text"), Expr("text", "text", [], [","])], where=where, ordered=True)
        if type == "list":
            return Aggregate("array_agg", "list", [argument("text")], where=where, ordered=True)
        if type == "date":
            return Expr("date", "date", [Aggregate("max", "ts", [argument("ts")], where=where)])
        return Aggregate(self.pick(["min", "max"]), type, [argument(type)], where=where)

    def windowed(self, query, scope, depth):
        query.items = [Item(self.column(column), None, column.type) for column in (scope.keys or scope.columns[:2])]
        for _ in range(self.pick([1, 1, 2])):
            window = self.window(scope)
            if window.type == "int" and window.function in ("row_number", "rank", "dense_rank", "ntile", "count") and self.chance(0.4):
                # Numbers of the engine without a sign.
                number = Expr("int", "int", [], [self.pick([1, 2, 3, 5, -2])])
                op = self.pick(["-", "divide", "modulo", "negate", "*"])
                window = Expr(op, "int", [window] if op == "negate" else [window, number])
            query.items.append(Item(window, None, window.type))
        self.unique_names(query)
        if self.chance(0.3):
            query.order = self.all_items(query)
            self.limit(query)

    def window(self, scope):
        partition = [self.column(self.pick(scope.columns))] if self.chance(0.6) else []
        partition = [part for part in partition if part.type != "list"]
        if not scope.keys or self.chance(0.4):
            # Depends on no order of equal rows. Two windows over rows without a key may order equal ones differently.
            function, args = self.pick([("count", []), ("sum", ["int"]), ("min", ["text"]), ("max", ["ts"]), ("rank", []),
                                        ("dense_rank", []), ("avg", ["int"])])
            order = [Key(self.expression(self.pick(["int", "text", "ts"]), scope, 0), self.direction())]
            if function not in ("rank", "dense_rank") and self.chance(0.5):
                order = []
            type = {"min": "text", "max": "ts", "avg": "float"}.get(function, "int")
            return Window(function, type, [self.expression(arg, scope, 0) for arg in args], partition, order)
        order = [Key(self.column(self.pick(scope.columns)), self.direction())]
        order += [Key(self.column(key), self.direction()) for key in scope.keys]
        function, args, type = self.pick([("row_number", [], "int"), ("lag", ["text"], "text"), ("lead", ["int"], "int"),
                                          ("first_value", ["text"], "text"), ("last_value", ["int"], "int"),
                                          ("sum", ["int"], "int"), ("count", [], "int"), ("ntile", 3, "int")])
        frame = ""
        if function in ("first_value", "last_value", "sum", "count") and self.chance(0.6):
            frame = self.pick(["ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
                               "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING", "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING"])
        if args == 3:
            arguments = [Expr("number", "int", [], [self.pick([1, 2, 3])])]
        else:
            arguments = [self.expression(arg, scope, 0) for arg in args]
        if function in ("lag", "lead") and self.chance(0.5):
            arguments.append(Expr("number", "int", [], [self.pick([0, 1, 2])]))
        return Window(function, type, arguments, partition, order, frame)

    def set_query(self, depth, outer, types):
        op = self.pick(["UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT", "INTERSECT"])
        if self.chance(0.04):
            op = self.pick(["EXCEPT ALL", "INTERSECT ALL"])
        labels = not types and self.chance(0.4)
        types = types or [self.pick(["int", "text", "text", "ts", "bool"]) for _ in range(self.rng.randint(1, 3))]
        sides = []
        for side in range(2):
            query = self.query(depth - 1, outer, types, small=True)
            if labels and isinstance(query, Query):
                query.items.insert(0, Item(Expr("text", "text", [], ["ab"[side if op.startswith("UNION") else 0]]), None, "text"))
            sides.append(query)
        if labels and not all(isinstance(side, Query) for side in sides):
            for side in sides:
                if isinstance(side, Query):
                    side.items.pop(0)
        for side in sides:
            query = side
            while isinstance(query, SetQuery):
                query = query.left
            for number, item in enumerate(query.items):
                item.name = f"c{number}"
        query = SetQuery(op, *sides)
        if self.chance(0.4):
            query.order = self.all_items(query)
            self.limit(query)
        return query

    def source(self, depth, outer):
        number = self.pick([1, 1, 1, 2, 2, 3]) if depth > 0 else self.pick([1, 1, 1, 2])
        source, scope = self.relation(depth, outer, None)
        for _ in range(number - 1):
            source, scope = self.join(source, scope, depth, outer)
        return source, scope

    def relation(self, depth, outer, beside):
        alias = self.alias(beside)
        kind = self.rng.random()
        if self.ctes and kind < 0.35:
            name, columns = self.pick(self.ctes)
            return Named(name, alias), Scope([Column(f"{alias}.{name}", name, type) for name, type in columns], [], outer)
        if kind < 0.2 and depth > 0:
            query = self.query(depth - 1, None)
            self.name_items(query)
            columns = [Column(f"{alias}.{item.name}", item.name, item.type) for item in query.items]
            return Derived(query, alias), Scope(columns, [], outer)
        if kind < 0.3:
            names, rows = self.values()
            columns = [Column(f"{alias}.{name}", name, type) for name, type in names]
            return Values(rows, alias, [name for name, _ in names]), Scope(columns, [], outer)
        table = self.pick(["mentions"] * 7 + ["saved_searches"] * 4 + ["overview", "breakdowns", "volume", "recent_searches"])
        return self.base(table, alias, outer)

    def values(self):
        types = [self.pick(["text", "int", "text"]) for _ in range(self.pick([1, 2]))]
        names = [(self.pick(["k", "aid", "language", "id"]) if number == 0 else "v", type) for number, type in enumerate(types)]
        first = names[0][0]
        types[0] = "text" if first in ("aid", "language", "id") else types[0]
        names[0] = (first, types[0])
        rows = [[self.constant(type, null=0.25) for type in types] for _ in range(self.rng.randint(1, 4))]
        # The first row decides the types.
        rows[0] = [self.constant(type, null=0) for type in types]
        return names, rows

    def join(self, left, scope, depth, outer):
        right, other = self.relation(depth - 1, outer, scope)
        columns, keys = scope.columns + other.columns, (scope.keys + other.keys) if scope.keys and other.keys else []
        both = Scope(columns, keys, outer)
        kind = self.rng.random()
        if kind < 0.06:
            return Join("CROSS JOIN", left, right), both
        if kind < 0.2:
            word = self.pick(["LEFT SEMI JOIN", "LEFT ANTI JOIN"])
            return Join(word, left, right, self.condition(scope, other, both, depth)), Scope(scope.columns, scope.keys, outer)
        common = [
            (a, b) for a in scope.columns for b in other.columns if a.name == b.name and a.type == b.type and a.type != "list"
        ]
        unique = [
            (a, b) for a, b in common
            if sum(c.name == a.name for c in scope.columns) == 1 and sum(c.name == b.name for c in other.columns) == 1
        ]
        if unique and kind < 0.45:
            using = self.rng.sample(unique, self.pick([1, 1, min(2, len(unique))]))
            natural = len(other.columns) <= 3 and len(unique) == len(common) and self.chance(0.3)
            if natural:
                using = unique
            names = [a.name for a, _ in using]
            word = self.pick(JOINS)
            if word == "RIGHT JOIN" or word == "FULL JOIN" or self.chance(0.5):
                merged = [Column(a.name, a.name, a.type) for a, _ in using]
            else:
                merged = []
            # The key of either side can be named as well.
            rest = [column for column in columns if column.name not in names or self.chance(0.3)]
            joined = Scope(merged + rest or columns, keys, outer)
            if natural:
                return Join("NATURAL " + word, left, right), joined
            return Join(word, left, right, using=names), joined
        return Join(self.pick(JOINS), left, right, self.condition(scope, other, both, depth)), both

    def condition(self, left, right, both, depth):
        pairs = [
            (a, b) for a in left.columns for b in right.columns if a.type == b.type and a.type not in ("list", "float")
        ]
        same = [(a, b) for a, b in pairs if a.name == b.name]
        parts = []
        if pairs and self.chance(0.9):
            a, b = self.pick(same if same and self.chance(0.7) else pairs)
            parts.append(Expr("=" if self.chance(0.9) else self.pick(["<", "is not distinct from"]), "bool", [self.column(a), self.column(b)]))
        if not parts or self.chance(0.3):
            parts.append(self.boolean(both, 0))
        condition = parts[0]
        for part in parts[1:]:
            condition = Expr(self.pick(["and", "and", "or"]), "bool", [condition, part])
        return condition

    def base(self, table, alias, outer):
        columns = [Column(f"{alias}.{name}", name, type) for name, type in TABLES[table].items()]
        by_name = {column.name: column for column in columns}
        return Named(table, alias), Scope(columns, [by_name[key] for key in KEYS[table]], outer)
