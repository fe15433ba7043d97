"""A generator of statements over the tables, from a random number generator.

Each statement has one result: what has a LIMIT has a complete order, and window functions that depend on an order have one that
ends with the keys of all rows.
"""

from dataclasses import dataclass, field

from tree import Aggregate, Cte, Derived, Expr, Item, Join, Key, Named, Query, SetQuery, Values, Window

TEXTS = ["en", "de", "fr", "", "a", "acme", "Acme", "positive", "negative", "post", "zz", "x.com", "a%b", "100", "it's"]
PATTERNS = ["%e%", "_e", "e%", "%acme%", "%", "", "de", "%n", "a_m%", "pos%", "%.com", "x%com", "%!%%"]
SIMILAR = ["%acme%", "e_", "(en|de)", "(pos|neg)%", "a%b", "[a-f]%", "e", "%(com|org)", "p(o)?%"]
REGEXES = ["e", "^e", "n$", "^(en|de)$", "[0-9]", "a.*e"]
INTS = [0, 1, 2, 3, 5, 7, 10, 48, 100, -1, -3]
UNITS = ["'hour'", "'day'", "'week'", "'month'"]
ZONES = ["'Europe/Berlin'", "'America/New_York'", "'Asia/Kolkata'"]
INTERVALS = ["1 day", "2 days", "1 hour", "90 minutes", "36 hours", "0 days", "7 days", "30 seconds"]
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
# Columns that are drawn more often: those with NULLs and few values.
FAVOURITES = ["language", "sentiment", "reach", "aid", "source", "likes", "country"]
KEYS = {
    "mentions": ["aid", "id"], "saved_searches": ["aid"], "recent_searches": ["position"], "overview": ["aid"],
    "breakdowns": ["aid", "dimension", "rank"], "volume": ["aid", "bucket_start"],
}


@dataclass
class Column:
    """A column that an expression may name."""

    ref: str
    name: str
    type: str


@dataclass
class Scope:
    """The columns of a FROM clause, the keys of its rows (none if rows can be equal), and the scope around it."""

    columns: list
    keys: list
    outer: object = None

    def of(self, type):
        return [column for column in self.columns if column.type == type]


@dataclass
class World:
    """What constants are drawn from: instants of the data."""

    instants: list
    texts: list = field(default_factory=list)


class Grammar:
    def __init__(self, rng, world, language="engine"):
        self.rng, self.world, self.language = rng, world, language
        self.aliases = 0
        self.ctes = []
        self.free = False

    # -- choices

    def chance(self, share):
        return self.rng.random() < share

    def pick(self, options):
        return self.rng.choice(options)

    def alias(self, scope):
        if self.aliases and self.chance(0.08) and not (scope and any(column.ref.startswith("a.") for column in scope.columns)):
            return "a"  # sometimes the same name as outside
        self.aliases += 1
        return f"{'bcdefghijklmnopqrstuvwxyz'[self.aliases % 25]}{self.aliases // 25 or ''}"

    # -- statements

    def statement(self):
        kind = self.rng.random()
        if kind < 0.3:
            query = self.pick([self.label_union, self.outer_join, self.offset_below, self.in_lists, self.limits, self.counted,
                               self.counted, self.star])()
        elif kind < 0.4:
            query = self.with_ctes()
        else:
            query = self.query(self.pick([1, 1, 2, 2, 3]), None)
        self.finish(query)
        return query

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

    # -- shapes that optimizers are known to get wrong

    def label_union(self):
        """Branches with a constant of their own, and the first rows in the order of that constant."""
        branches = []
        for label in self.pick(["ab", "ba", "abc"]):
            alias = self.alias(None)
            source, scope = self.base(self.pick(["mentions", "mentions", "saved_searches", "breakdowns"]), alias, None)
            query = Query([Item(Expr("text", "text", [], [label]), "w", "text"), Item(self.column(scope.keys[-1]), "k", "text")], source)
            if scope.keys[-1].type != "text":
                query.items[1] = Item(self.column(scope.columns[0]), "k", "text")
            if self.chance(0.7):
                aid = Expr("text", "text", [], [self.pick(["183772", "184889", "186006", "187123"])])
                query.where = Expr(self.pick(["=", "=", "<>"]), "bool", [self.column(scope.columns[0]), aid])
            elif self.chance(0.7):
                query.where = self.boolean(scope, 0)
            if self.chance(0.2):
                query.order = self.all_items(query)
                self.limit(query)
            branches.append(query)
        query = branches[0]
        for branch in branches[1:]:
            query = SetQuery(self.pick(["UNION ALL", "UNION ALL", "UNION"]), query, branch)
        query.order = [Key(item, self.direction()) for item in query.items]
        if self.chance(0.2):
            query.order.reverse()
        self.limit(query)
        if self.chance(0.3):
            alias = self.alias(None)
            scope = Scope([Column(f"{alias}.w", "w", "text"), Column(f"{alias}.k", "k", "text")], [], None)
            outer = Query([], Derived(query, alias))
            self.grouped(outer, scope, 0, None)
            return outer
        return query

    def outer_join(self):
        """An outer join with a condition on one of its sides, and columns of one name in its output."""
        left, right = self.alias(None), self.alias(None)
        tables = ["mentions", "mentions", "saved_searches", "saved_searches", "overview", "breakdowns"]
        a, scope = self.base(self.pick(tables), left, None)
        b, other = self.base(self.pick(tables), right, None)
        both = Scope(scope.columns + other.columns, scope.keys + other.keys)
        on = self.condition(scope, other, both, 0)
        query = Query([], Join(self.pick(["LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "RIGHT JOIN"]), a, b, on))
        names = [(x, y) for x in scope.columns for y in other.columns if x.name == y.name and x.type == y.type]
        columns = [column for pair in self.rng.sample(names, min(2, len(names))) for column in pair] or both.keys
        extra = self.rng.sample(both.columns, 2)
        chosen = list(dict.fromkeys(column.ref for column in columns + extra))
        by_ref = {column.ref: column for column in both.columns}
        query.items = [Item(self.column(by_ref[ref]), None, by_ref[ref].type) for ref in chosen]
        side = self.pick([scope, other])
        test = Expr(self.pick(["is null", "is null", "is not null"]), "bool", [self.column(self.pick(side.keys))])
        query.where = test if self.chance(0.5) else Expr(self.pick(["and", "or"]), "bool", [test, self.boolean(both, 0)])
        if self.chance(0.3):
            self.grouped(query, both, 0, None)
        return query

    def offset_below(self):
        """A subquery that skips rows, below something that does not care for their order."""
        alias, inner = self.alias(None), self.alias(None)
        source, scope = self.base("mentions", inner, None)
        columns = list(dict.fromkeys(["aid", "id", *self.rng.sample(FAVOURITES, 2)]))
        by_name = {column.name: column for column in scope.columns}
        query = Query([Item(self.column(by_name[name]), name, by_name[name].type) for name in columns], source)
        if self.chance(0.4):
            query.where = self.boolean(scope, 0)
        first = self.pick(["published_at", "reach", "language", "seq", "indexed_at"])
        query.order = [Key(self.column(by_name[name]), self.direction()) for name in (first, "aid", "id")]
        query.offset = self.pick([1, 5, 20, 30, 60])
        if self.chance(0.4):
            query.limit = self.pick([1, 5, 10, 30])
        scope = Scope([Column(f"{alias}.{name}", name, by_name[name].type) for name in columns],
                      [Column(f"{alias}.{name}", name, "text") for name in ("aid", "id")])
        source = Derived(query, alias)
        if self.chance(0.3):
            source, scope = self.join(source, scope, 1, None)
        outer = Query([], source)
        if self.chance(0.3):
            outer.where = self.boolean(scope, 0)
        shape = self.pick([self.grouped, self.grouped, self.plain, self.windowed])
        shape(outer, scope, 0, *([] if shape == self.windowed else [None]))
        return outer

    def star(self):
        """All columns of a join, those of the same name once or twice."""
        a, b = self.alias(None), self.alias(None)
        rows = lambda: [[self.constant("text", null=0.3), self.constant("int", null=0.3)] for _ in range(self.rng.randint(1, 4))]  # noqa: E731
        typed = [[Expr("text", "text", [], ["en"]), Expr("int", "int", [], [1])]]
        left, right = Values(typed + rows(), a, ["k", "v"]), Values(typed + rows(), b, ["k", self.pick(["v", "w", "w"])])
        items = [Item(Expr("column", "text", [], ["*"]), None, "text")]
        word = self.pick(JOINS)
        kind = self.rng.random()
        if kind < 0.5:
            join = Join(word, left, right, using=["k"])
        elif kind < 0.6 and right.names[1] == "w":
            join = Join("NATURAL " + word, left, right)
        else:
            on = Expr("=", "bool", [Expr("column", "text", [], [f"{alias}.k"]) for alias in (a, b)])
            join = Join(word, left, right, on)
        if kind < 0.5 and self.chance(0.5):
            items = [Item(Expr("column", "text", [], ["k"]), None, "text"), Item(Aggregate("count", "int", []), "n", "int")]
            return Query(items, join, groups=[Expr("column", "text", [], ["k"])])
        where = Expr("is null", "bool", [Expr("column", "text", [], [f"{self.pick([a, b])}.k"])])
        return Query(items, join, where if self.chance(0.3) else None)

    def in_lists(self):
        """Lists about one column, combined."""
        alias = self.alias(None)
        source, scope = self.base("mentions", alias, None)
        column = self.pick([column for column in scope.columns if column.name in FAVOURITES])

        def test():
            values = [self.constant(column.type, null=0.1) for _ in range(self.pick([1, 1, 2, 3]))]
            kind = self.rng.random()
            if kind < 0.7:
                return Expr(self.pick(["in list", "not in list"]), "bool", [self.column(column), *values])
            if kind < 0.85:
                return Expr(self.pick(["=", "<>", "is distinct from"]), "bool", [self.column(column), values[0]])
            return Expr(self.pick(["is null", "is not null"]), "bool", [self.column(column)])

        condition = Expr(self.pick(["and", "or"]), "bool", [test(), test()])
        if self.chance(0.4):
            condition = Expr(self.pick(["and", "or"]), "bool", [condition, test()])
        if self.chance(0.5):
            condition = Expr(self.pick(["not", "not", "is not true", "is null"]), "bool", [condition])
        if self.chance(0.5):
            return Query([Item(self.column(key), None, "text") for key in scope.keys] + [Item(self.column(column), None, column.type)], source, condition)
        if self.chance(0.5):
            return Query([Item(Aggregate("count", "int", [], where=condition), "n", "int")], source)
        return Query([Item(self.column(column), None, column.type), Item(condition, "c", "bool")], source)

    def limits(self):
        """Integer arithmetic at its limits."""
        wide = self.chance(0.5)
        largest = 2**63 - 1 if wide else 2**31 - 1
        number = lambda: Expr("wide" if wide else "narrow", "int", [], [self.pick([largest, largest - 1, 1, 2, -1, 0, -largest, 3])])  # noqa: E731
        if self.chance(0.5):
            expr = Expr(self.pick(["+", "-", "*"]), "int", [number(), number()])
        else:
            expr = Expr(self.pick(["negate", "abs"]), "int", [Expr(self.pick(["+", "-"]), "int", [number(), number()])])
        if self.chance(0.5):
            return Query([Item(expr, "n", "int")])
        alias = self.alias(None)
        rows = [[number()] for _ in range(self.rng.randint(1, 3))]
        column = Expr("column", "int", [], [f"{alias}.n"])
        expr = Expr(self.pick(["+", "-", "*"]), "int", [column, number()])
        if self.chance(0.3):
            expr = Aggregate(self.pick(["min", "max", "avg"]), "int", [column])
        return Query([Item(expr, "n", "int")], Values(rows, alias, ["n"]))

    def counted(self):
        """A correlated subquery that counts, or asks whether there is something, or is not in a list with NULLs."""
        alias, inner = self.alias(None), self.alias(None)
        source, scope = self.base(self.pick(["saved_searches", "saved_searches", "overview", "mentions"]), alias, None)
        below, other = self.base(self.pick(["mentions", "mentions", "breakdowns", "saved_searches"]), inner, scope)
        same = Expr("=", "bool", [self.column(other.columns[0]), self.column(scope.columns[0])])
        where = same if self.chance(0.5) else Expr("and", "bool", [same, self.boolean(other, 0)])
        texts = [column for column in other.of("text") if column.name != "aid"]
        query = Query([], below, where)
        kind = self.pick(["count", "exists", "list", "list", "value"])
        column = self.column(self.pick([scope.columns[0], self.pick(scope.of("text"))]))
        literal = Expr("text", "text", [], [self.pick(["zz", "en", "de"])])
        constant = self.pick([literal, column, Expr("nullif", "text", [column, self.pick([column, literal])]),
                              Expr("null text", "text"), Expr("case2", "text", [Expr("=", "bool", [column, literal]), column] * 2)])
        if kind in ("count", "value"):
            query.items = [Item(Aggregate("count", "int", [] if self.chance(0.6) else [self.column(self.pick(texts))]), None, "int")]
            number = Expr("int", "int", [], [self.pick([0, 0, 1, 2])])
            if kind == "value":
                test = Expr(self.pick(["=", ">", "<>"]), "bool", [Expr("scalar", "int", [query]), number])
            else:
                test = Expr(self.pick(["in subquery", "not in subquery"]), "bool", [number, query])
        elif kind == "exists":
            aggregate = self.chance(0.4)
            query.items = [Item(Aggregate("count", "int", []) if aggregate else self.column(self.pick(other.columns)), None, "int")]
            if self.chance(0.25):
                query.groups, query.grouping = [self.column(self.pick(texts))], self.pick(GROUPINGS)
                query.items = [Item(Aggregate("count", "int", []), None, "int")]
            elif aggregate and self.chance(0.3):
                query.having = Expr(">", "bool", [Aggregate("count", "int", []), Expr("int", "int", [], [self.pick([0, 1, 5])])])
            test = Expr(self.pick(["exists", "not exists"]), "bool", [query])
        else:
            query.items = [Item(self.column(self.pick(texts + other.columns[:1])), None, "text")]
            if self.chance(0.4):
                query.where = self.pick([None, self.boolean(other, 0)])
            test = Expr(self.pick(["in subquery", "not in subquery", "not in subquery"]), "bool", [constant, query])
        if self.chance(0.5):
            test = Expr(self.pick(["not", "is null", "is true", "is not true", "is false"]), "bool", [test])
        if self.chance(0.3):
            test = Expr(self.pick(["and", "or"]), "bool", [test, self.boolean(scope, 0)])
        keys = [Item(self.column(key), None, key.type) for key in scope.keys]
        if self.chance(0.25):
            return Query([*keys, Item(test, "c", "bool")], source)
        if self.chance(0.2):
            return Query([Item(Aggregate("count", "int", [], where=test), "n", "int")], source)
        return Query(keys, source, test)

    def base(self, table, alias, outer):
        columns = [Column(f"{alias}.{name}", name, type) for name, type in TABLES[table].items()]
        by_name = {column.name: column for column in columns}
        return Named(table, alias), Scope(columns, [by_name[key] for key in KEYS[table]], outer)

    # -- any shape

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
        return [Key(item, self.direction()) for item in items if item.type != "list"] + [
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
        if kind < 0.3:
            self.grouped(query, scope, depth, types)
        elif kind < 0.42 and not types:
            self.windowed(query, scope, depth)
        else:
            self.plain(query, scope, depth, types)
        return query

    def correlated(self, scope, where):
        """Adds an equality with a column of the outer query."""
        visible = {column.ref.split(".")[0] for column in scope.columns}
        pairs = [(a, b) for a in scope.columns for b in scope.outer.columns
                 if a.type == b.type == "text" and "." in b.ref and b.ref.split(".")[0] not in visible]
        same = [(a, b) for a, b in pairs if a.name == b.name]
        if not pairs:
            return where
        a, b = self.pick(same if same and self.chance(0.8) else pairs)
        test = Expr("=", "bool", [self.column(a), self.column(b)])
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
        argument = lambda type: self.expression(type, scope, 0)  # noqa: E731
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
            query.items.append(Item(window, None, window.type))
        self.unique_names(query)
        if self.chance(0.3):
            query.order = self.all_items(query)
            self.limit(query)

    def window(self, scope):
        partition = [self.column(self.pick(scope.columns))] if self.chance(0.6) else []
        partition = [part for part in partition if part.type != "list"]
        if self.chance(0.4):
            # Depends on no order of equal rows.
            function, args = self.pick([("count", []), ("sum", ["int"]), ("min", ["text"]), ("max", ["ts"]), ("rank", []),
                                        ("dense_rank", []), ("avg", ["int"])])
            order = [Key(self.expression(self.pick(["int", "text", "ts"]), scope, 0), self.direction())]
            if function not in ("rank", "dense_rank") and self.chance(0.5):
                order = []
            type = {"min": "text", "max": "ts", "avg": "float"}.get(function, "int")
            return Window(function, type, [self.expression(arg, scope, 0) for arg in args], partition, order)
        order = [Key(self.column(self.pick(scope.columns)), self.direction())]
        order += [Key(self.column(key), self.direction()) for key in scope.keys or scope.columns]
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

    # -- FROM

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

    # -- expressions

    def column(self, column):
        return Expr("column", column.type, [], [column.ref])

    def expression(self, type, scope, depth):
        columns = scope.of(type)
        if type == "ts" and self.chance(0.7):
            # Conditions on the time of publication bound what is read, and are refused in many places.
            columns = [column for column in columns if column.name != "published_at"]
        favourites = [column for column in columns if column.name in FAVOURITES]
        if scope.outer and self.chance(0.25):
            outer = scope.outer.of(type)
            visible = {column.ref.split(".")[0] for column in scope.columns}
            outer = [column for column in outer if column.ref.split(".")[0] not in visible and "." in column.ref]
            if outer:
                return self.column(self.pick(outer))
        if columns and (depth <= 0 or self.chance(0.5)):
            if self.chance(0.75) or depth < -1:
                return self.column(self.pick(favourites if favourites and self.chance(0.6) else columns))
        if depth < -1 or self.chance(0.2):
            return self.constant(type)
        return getattr(self, {"int": "integer", "bool": "boolean", "ts": "timestamp", "float": "number"}.get(type, type))(scope, depth)

    def constant(self, type, null=0.06):
        if self.chance(null):
            return Expr("null " + type, type)
        if type == "int":
            return Expr("int", "int", [], [self.pick(INTS)])
        if type == "text":
            texts = self.world.texts if self.world.texts and self.chance(0.4) else TEXTS
            return Expr("text", "text", [], [self.pick(texts)])
        if type == "bool":
            return Expr("bool", "bool", [], [self.pick(["TRUE", "FALSE"])])
        if type == "float":
            return Expr("float", "float", [Expr("number", "float", [], [self.pick([0.5, 1.25, -0.5, 0.0, 100.0])])])
        if type == "ts":
            return self.instant(plain=True)
        if type == "date":
            return Expr("day", "date", [], [self.pick(self.world.instants)[:10]])
        if type == "list":
            return Expr("array", "list", [self.constant("text", null=0) for _ in range(self.rng.randint(1, 3))])
        raise ValueError(type)

    def instant(self, plain=False):
        at = self.pick(self.world.instants)
        if not plain and self.chance(0.3):
            return Expr("instant text", "ts", [], [at])
        return Expr("instant", "ts", [], [at])

    def subquery(self, scope, depth, types, small=True):
        outer = scope if self.chance(0.5) else None
        return self.query(depth - 1, outer, types, small)

    def scalar(self, type, scope, depth):
        """A subquery with one row: an aggregate without groups, or a first row."""
        source, inner = self.source(depth - 2, scope if self.chance(0.45) else None)
        query = Query([], source)
        if self.chance(0.8):
            query.where = self.where(inner, depth - 2)
        if self.chance(0.75) or type in ("list",):
            query.items = [Item(self.aggregate(type, Scope(inner.columns, []), 0), None, type)]
        else:
            query.items = [Item(self.expression(type, inner, 0), None, type)]
            query.order = self.all_items(query)
            query.limit = 1
            if self.chance(0.2):
                query.offset = 1
        return Expr("scalar", type, [query])

    def boolean(self, scope, depth):
        kind = self.rng.random()
        if depth > 0 and kind < 0.28:
            return self.mark(scope, depth)
        if kind < 0.36:
            inner = self.boolean(scope, depth - 1)
            return Expr(self.pick(["not", "not", "not", "is null", "is not true", "is true", "is false", "is not null", "is not false"]), "bool", [inner])
        if kind < 0.5 and depth > -2:
            return Expr(self.pick(["and", "or", "or"]), "bool", [self.boolean(scope, depth - 1), self.boolean(scope, depth - 1)])
        if kind < 0.54 and depth > -1:
            return Expr("case", "bool", [self.boolean(scope, depth - 1), self.boolean(scope, depth - 1), self.boolean(scope, depth - 1)])
        if kind < 0.56:
            return Expr("coalesce", "bool", [self.boolean(scope, depth - 1), Expr("bool", "bool", [], [self.pick(["TRUE", "FALSE"])])])
        if kind < 0.62:
            type = self.pick(["text", "int", "ts", "float"])
            return Expr(self.pick(["is null", "is not null"]), "bool", [self.expression(type, scope, depth - 1)])
        if kind < 0.75:
            type = self.pick(["text", "text", "int"])
            values = [self.constant(type, null=0.12) for _ in range(self.rng.randint(1, 4))]
            return Expr(self.pick(["in list", "not in list"]), "bool", [self.expression(type, scope, depth - 1), *values])
        if kind < 0.79:
            return self.string_test(scope, depth)
        if kind < 0.82 and scope.of("ts"):
            return self.duration_test(scope, depth)
        if kind < 0.87:
            type = self.pick(["int", "text", "ts"])
            args = [self.expression(type, scope, depth - 1) for _ in range(3)]
            return Expr(self.pick(["between", "not between"]), "bool", args)
        if kind < 0.89 and scope.of("list"):
            return Expr("contains", "bool", [self.expression("list", scope, -2), self.constant("text", null=0)])
        if kind < 0.9:
            args = [self.expression(type, scope, -2) for type in ("text", "int", "text", "int")]
            return Expr("row =", "bool", args)
        type = self.pick(["int", "text", "text", "ts", "float", "date", "bool"])
        op = self.pick(["=", "=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from"])
        return Expr(op, "bool", [self.expression(type, scope, depth - 1), self.expression(type, scope, depth - 1)])

    def mark(self, scope, depth):
        """IN, NOT IN, EXISTS, or a comparison with a scalar subquery."""
        kind = self.rng.random()
        type = self.pick(["text", "text", "int"])
        if kind < 0.53:
            op = self.pick(["in subquery", "not in subquery", "not in subquery", "not in subquery", "= any", "<> all"])
            return Expr(op, "bool", [self.expression(type, scope, depth - 1), self.subquery(scope, depth, [type])])
        if kind < 0.54:
            args = [self.expression(type, scope, -2), self.expression("text", scope, -2)]
            return Expr(self.pick(["row in subquery", "row not in subquery"]), "bool", [*args, self.subquery(scope, depth, [type, "text"])])
        if kind < 0.78:
            return Expr(self.pick(["exists", "not exists"]), "bool", [self.subquery(scope, depth, [type])])
        op = self.pick(["=", "<>", "<", ">="])
        return Expr(op, "bool", [self.expression(type, scope, depth - 1), self.scalar(type, scope, depth)])

    def string_test(self, scope, depth):
        text = self.expression("text", scope, depth - 1)
        op, patterns = self.pick([("like", PATTERNS), ("not like", PATTERNS), ("ilike", PATTERNS), ("similar to", SIMILAR),
                                  ("not similar to", SIMILAR), ("regex", REGEXES), ("starts_with", TEXTS)])
        return Expr(op, "bool", [text, Expr("text", "text", [], [self.pick(patterns)])])

    def duration_test(self, scope, depth):
        age = Expr("age", "duration", [self.expression("ts", scope, depth - 1), self.expression("ts", scope, depth - 1)])
        if self.chance(0.2):
            return Expr("between", "bool", [age, self.interval(), self.interval()])
        if self.chance(0.15):
            return Expr(self.pick(["in list", "not in list"]), "bool", [age, self.interval(), self.interval()])
        return Expr(self.pick(["=", "<>", "<", "<=", ">", ">="]), "bool", [age, self.interval()])

    def interval(self):
        kind = self.rng.random()
        if kind < 0.6:
            return Expr("interval", "interval", [], [self.pick(INTERVALS)])
        if kind < 0.75:
            return Expr("cast interval", "interval", [], [self.pick(INTERVALS)])
        plain = lambda: Expr("interval", "interval", [], [self.pick(INTERVALS)])  # noqa: E731
        if kind < 0.84:
            return Expr(self.pick(["interval sum", "interval difference"]), "interval", [plain(), plain()])
        if kind < 0.88:
            alias = self.alias(None)
            item = Item(Aggregate("max", "interval", [Expr("column", "interval", [], [f"{alias}.i"])]), None, "interval")
            return Expr("scalar", "interval", [Query([item], Values([[plain()], [plain()]], alias, ["i"]))])
        if kind < 0.92:
            return Expr("case", "interval", [self.constant("bool"), plain(), plain()])
        return Expr("age", "duration", [self.instant(plain=True), self.instant(plain=True)])

    def integer(self, scope, depth):
        less = lambda type: self.expression(type, scope, depth - 1)  # noqa: E731
        kind = self.rng.random()
        if depth > 1 and kind < 0.15:
            return self.scalar("int", scope, depth)
        if kind < 0.35:
            return Expr(self.pick(["+", "-", "+"]), "int", [less("int"), less("int")])
        if kind < 0.4:
            return Expr("*", "int", [less("int"), self.constant("int")])
        if kind < 0.48:
            divisor = Expr("nullif", "int", [less("int"), Expr("int", "int", [], [0])])
            return Expr(self.pick(["divide", "modulo"]), "int", [less("int"), divisor])
        if kind < 0.52:
            return Expr(self.pick(["abs", "negate"]), "int", [less("int")])
        if kind < 0.6:
            return Expr("length", "int", [less("text")])
        if kind < 0.63:
            return Expr("strpos", "int", [less("text"), self.constant("text", null=0)])
        if kind < 0.7:
            return Expr("case", "int", [self.boolean(scope, depth - 1), less("int"), less("int")])
        if kind < 0.75:
            return Expr("case2", "int", [self.boolean(scope, depth - 1), less("int"), self.boolean(scope, depth - 1), less("int")])
        if kind < 0.8:
            return Expr(self.pick(["coalesce", "nullif", "greatest", "least"]), "int", [less("int"), less("int")])
        if kind < 0.86:
            return Expr("extract", "int", [less("ts")], [self.pick(["day", "hour", "dow", "month", "year", "week", "doy", "quarter"])])
        if kind < 0.88:
            return Expr("epoch", "int", [less("ts")])
        if kind < 0.9:
            return Expr("local hour", "int", [less("ts")], [self.pick(ZONES)])
        if kind < 0.92:
            return Expr("text int", "int", [less("int")])
        if kind < 0.94:
            return Expr("float to int", "int", [less("float")])
        if kind < 0.96 and scope.of("list"):
            return Expr("cardinality", "int", [self.expression("list", scope, -2)])
        return Expr("simple case", "int", [less("text"), self.constant("text"), less("int"), less("int")])

    def number(self, scope, depth):
        less = lambda type: self.expression(type, scope, depth - 1)  # noqa: E731
        kind = self.rng.random()
        if kind < 0.4:
            return Expr("float", "float", [less("int")])
        if kind < 0.6:
            return Expr(self.pick(["coalesce", "greatest", "least"]), "float", [less("float"), less("float")])
        if kind < 0.7:
            return Expr(self.pick(["floor", "ceil", "abs", "negate"]), "float", [less("float")])
        if kind < 0.85:
            return Expr(self.pick(["+", "-"]), "float", [less("float"), less("float")])
        return Expr("case", "float", [self.boolean(scope, depth - 1), less("float"), less("float")])

    def text(self, scope, depth):
        less = lambda type: self.expression(type, scope, depth - 1)  # noqa: E731
        kind = self.rng.random()
        if depth > 1 and kind < 0.12:
            return self.scalar("text", scope, depth)
        if kind < 0.3:
            return Expr(self.pick(["concat operator", "concat operator", "concat"]), "text", [less("text"), less("text")])
        if kind < 0.45:
            return Expr(self.pick(["coalesce", "coalesce", "nullif", "greatest", "least"]), "text", [less("text"), less("text")])
        if kind < 0.55:
            return Expr("case", "text", [self.boolean(scope, depth - 1), less("text"), less("text")])
        if kind < 0.6:
            return Expr("simple case", "text", [less("text"), self.constant("text"), less("text"), less("text")])
        if kind < 0.66:
            if self.free and self.language == "engine":
                return Expr(self.pick(["initcap", "reverse", "regexp_replace", "to_hex", "chr"]), "text", [less("text")])
            return Expr(self.pick(["lower", "trim"]), "text", [less("text")])
        if kind < 0.74:
            return Expr("substr", "text", [less("text")], [self.pick([1, 2, 3]), self.pick([0, 1, 2, 5])])
        if kind < 0.8:
            return Expr(self.pick(["left", "right"]), "text", [less("text")], [self.pick([0, 1, 2, 5])])
        if kind < 0.84:
            return Expr("replace", "text", [less("text"), self.constant("text", null=0.1), self.constant("text", null=0.1)])
        if kind < 0.88:
            return Expr("split_part", "text", [less("text")], [self.pick(["'.'", "'e'", "' '"]), self.pick([1, 2])])
        if kind < 0.94:
            return Expr("int text", "text", [less("int")])
        if kind < 0.97 and scope.of("list"):
            return Expr("array_to_string", "text", [self.expression("list", scope, -2)])
        return Expr("element", "text", [self.expression("list", scope, -2)], [self.pick([1, 2, 3])])

    def timestamp(self, scope, depth):
        less = lambda type: self.expression(type, scope, depth - 1)  # noqa: E731
        kind = self.rng.random()
        if depth > 1 and kind < 0.12:
            return self.scalar("ts", scope, depth)
        if kind < 0.4:
            return Expr(self.pick(["shift", "shift back"]), "ts", [less("ts"), Expr("interval", "interval", [], [self.pick(INTERVALS)])])
        if kind < 0.6:
            return Expr("date_trunc", "ts", [less("ts")], [self.pick(UNITS)])
        if kind < 0.8:
            return Expr(self.pick(["coalesce", "greatest", "least"]), "ts", [less("ts"), less("ts")])
        return Expr("case", "ts", [self.boolean(scope, depth - 1), less("ts"), less("ts")])

    def date(self, scope, depth):
        if self.chance(0.2):
            return Expr("local day", "date", [self.expression("ts", scope, depth - 1)], [self.pick(ZONES)])
        return Expr("date", "date", [self.expression("ts", scope, depth - 1)])

    def list(self, scope, depth):
        return self.constant("list") if not scope.of("list") else self.column(self.pick(scope.of("list")))
