"""Generates statements: any shape, and often those that optimizers are known to get wrong."""

from expressions import FAVOURITES, Column, Scope
from statements import GROUPINGS, JOINS, Statements
from tree import Aggregate, Derived, Expr, Item, Join, Key, Lateral, Query, SetQuery, Values


class Grammar(Statements):
    """Whole statements."""

    def statement(self):
        kind = self.rng.random()
        if kind < 0.3:
            query = self.pick([self.label_union, self.outer_join, self.offset_below, self.in_lists, self.limits, self.counted,
                               self.counted, self.star, self.first_rows, self.of_each, self.sorted_names, self.of_days,
                               self.wrapped])()
        elif kind < 0.4:
            query = self.with_ctes()
        else:
            query = self.query(self.pick([1, 1, 2, 2, 3]), None)
        self.finish(query)
        return query

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

    def first_rows(self):
        """The first rows of a table for each row of another."""
        alias, inner, rows = self.alias(None), self.alias(None), self.alias(None)
        source, scope = self.base(self.pick(["saved_searches", "saved_searches", "overview"]), alias, None)
        below, other = self.base(self.pick(["mentions", "mentions", "breakdowns"]), inner, None)
        same = Expr("=", "bool", [self.column(other.columns[0]), self.column(scope.columns[0])])
        where = same if self.chance(0.6) else Expr("and", "bool", [same, self.boolean(other, 0)])
        key, value = self.column(other.keys[-1]), self.pick(other.of("int"))
        query = Query([Item(key, "k", other.keys[-1].type), Item(self.column(value), "v", "int")], below, where)
        query.order = [Key(self.column(self.pick(other.of("int"))), self.direction())]
        query.order += [Key(self.column(column), self.direction()) for column in other.keys]
        query.limit = self.pick([1, 1, 2, 3])
        if self.chance(0.25):
            query.offset = self.pick([1, 2])
        keys = [Item(self.column(column), None, column.type) for column in scope.keys]
        if self.chance(0.25):
            query.items, query.limit, query.offset = query.items[1:], 1, None
            return Query([*keys, Item(Expr("scalar", "int", [query]), "v", "int")], source)
        columns = [Item(Expr("column", item.type, [], [f"{rows}.{item.name}"]), None, item.type) for item in query.items]
        on = Expr("bool", "bool", [], ["TRUE"])
        return Query(keys + columns, Join(self.pick(["JOIN", "LEFT JOIN"]), source, Lateral(query, rows), on))

    def of_each(self):
        """Groups, windows, different values or first rows of a table for each row of another."""
        alias, inner, rows = self.alias(None), self.alias(None), self.alias(None)
        source, scope = self.base(self.pick(["saved_searches", "saved_searches", "overview", "breakdowns"]), alias, None)
        below, other = self.base(self.pick(["mentions", "mentions", "breakdowns"]), inner, None)
        same = [self.column(other.columns[0]), self.column(scope.columns[0])]
        where = Expr("=", "bool", same if self.chance(0.7) else same[::-1])
        if self.chance(0.4):
            where = Expr("and", "bool", [where, self.boolean(other, 0)])
        if self.chance(0.25):
            below, other, where = self.derived(below, other, where)
        text, value = self.column(self.pick(other.of("text"))), Aggregate("count", "int", [])
        shape = self.pick(["groups", "groups", "different", "window" if other.keys else "groups"])
        query = Query([Item(text, "k", "text")], below, where)
        if shape == "window":
            window = self.window(other)
            query.items.append(Item(window, "v", window.type))
        else:
            query.distinct = shape == "different"
            if shape == "groups":
                query.items.append(Item(value, "v", "int"))
                query.groups = [text]
                query.order = [Key(value, self.direction())]
            query.order.append(Key(text, self.direction()))
            query.limit = self.pick([1, 2, 3, None])
            query.offset = self.pick([None, None, 1])
        keys = [Item(self.column(column), None, column.type) for column in scope.keys]
        kind = self.pick(["lateral", "lateral", "exists", "in", "value"])
        if kind == "lateral":
            columns = [Item(Expr("column", item.type, [], [f"{rows}.{item.name}"]), None, item.type) for item in query.items]
            on = Expr("bool", "bool", [], ["TRUE"])
            return Query(keys + columns, Join(self.pick(["JOIN", "LEFT JOIN"]), source, Lateral(query, rows), on))
        if kind == "value":
            last = query.items[-1]
            column = Expr("column", last.type, [], [f"{rows}.{last.name}"])
            whole = Aggregate(self.pick(["count", "max"]), "int", [column])
            number = Query([Item(whole, None, "int")], Derived(query, rows))
            return Query([*keys, Item(Expr("scalar", "int", [number]), "n", "int")], source)
        if kind == "in" and shape != "groups":
            query.items = query.items[:1]
            test = Expr(self.pick(["in subquery", "not in subquery"]), "bool", [self.column(self.pick(scope.of("text"))), query])
        else:
            test = Expr(self.pick(["exists", "not exists"]), "bool", [query])
        return Query([*keys, Item(test, "c", "bool")], source) if self.chance(0.3) else Query(keys, source, test)

    def sorted_names(self):
        """Results with the names of columns that an expression of ORDER BY looks at."""
        alias = self.alias(None)
        source, scope = self.base(self.pick(["mentions", "breakdowns", "overview"]), alias, None)
        column = self.pick(scope.of("int"))
        keys = [Item(self.column(key), None, key.type) for key in scope.keys]
        named = Expr(self.pick(["negate", "negate", "abs"]), "int", [self.column(column)])
        query = Query([*keys, Item(named, column.name, "int")], source)
        sorted_by = Expr("column", "int", [], [self.pick([column.name, column.ref])])
        zero = Expr("int", "int", [], [0])
        query.order = [Key(Expr("+", "int", [sorted_by, zero]), self.direction())]
        query.order += [Key(item, self.direction()) for item in keys]
        query.limit = self.pick([1, 2, 5, 10])
        return query

    def star(self):
        """All columns of a join, those of the same name once or twice."""
        a, b = self.alias(None), self.alias(None)
        if self.chance(0.5):
            a, b = b, a
        rows = lambda: [[self.constant("text", null=0.3), self.constant("int", null=0.3)] for _ in range(self.rng.randint(1, 4))]
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

    def of_days(self):
        """Groups of mentions of each of some days: what is compared is computed from a column."""
        days, inner = self.alias(None), self.alias(None)
        below, other = self.base("mentions", inner, None)
        outer = Values([[self.constant("date", null=0)] for _ in range(self.rng.randint(1, 4))], days, ["d"])
        day = Expr("column", "date", [], [f"{days}.d"])
        same = Expr("=", "bool", [Expr("date", "date", [self.column(self.pick(other.of("ts")))]), day])
        if self.chance(0.4):
            same = Expr("and", "bool", [same, self.boolean(other, 0)])
        key, count = self.column(self.pick(other.of("text"))), Aggregate("count", "int", [])
        query = Query([Item(key, "k", "text")], below, same, distinct=self.chance(0.3))
        if not query.distinct:
            query.groups = [key]
            query.having = Expr(self.pick([">", "="]), "bool", [count, Expr("int", "int", [], [self.pick([0, 1, 2, 5])])])
        shown = Item(day, None, "date")
        if self.chance(0.4):
            test = Expr(self.pick(["in subquery", "not in subquery"]), "bool", [self.constant("text", null=0), query])
        else:
            test = Expr(self.pick(["exists", "not exists"]), "bool", [query])
        return Query([shown, Item(test, "c", "bool")], outer) if self.chance(0.4) else Query([shown], outer, test)

    def wrapped(self):
        """The first rows of a derived table that has an order."""
        alias, rows = self.alias(None), self.alias(None)
        source, scope = self.base(self.pick(["mentions", "mentions", "breakdowns", "volume"]), alias, None)
        columns = scope.keys + self.rng.sample(scope.of("int"), 1)
        query = Query([Item(self.column(column), column.name, column.type) for column in columns], source)
        if self.chance(0.5):
            query.where = self.boolean(scope, 0)
        query.order = self.all_items(query)
        shown = [Item(Expr("column", item.type, [], [f"{rows}.{item.name}"]), None, item.type) for item in query.items]
        where = Expr("is not null", "bool", [shown[-1].expr]) if self.chance(0.3) else None
        outer = Query(shown, Derived(query, rows), where)
        outer.limit = self.pick([1, 2, 5, 10])
        return outer

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
        number = lambda: Expr("wide" if wide else "narrow", "int", [], [self.pick([largest, largest - 1, 1, 2, -1, 0, -largest, 3])])
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
            # The average of integers is one of double precision here, and exact in PostgreSQL.
            expr = Aggregate(self.pick(["min", "max"] if wide else ["min", "max", "avg"]), "int", [column])
        return Query([Item(expr, "n", "int")], Values(rows, alias, ["n"]))

    def counted(self):
        """A correlated subquery that counts, or asks whether there is something, or is not in a list with NULLs."""
        alias, inner = self.alias(None), self.alias(None)
        source, scope = self.base(self.pick(["saved_searches", "saved_searches", "overview", "mentions"]), alias, None)
        below, other = self.base(self.pick(["mentions", "mentions", "breakdowns", "saved_searches"]), inner, scope)
        compare = self.pick(["="] * 5 + ["<", ">=", "<>"])
        where = Expr(compare, "bool", [self.column(other.columns[0]), self.column(scope.columns[0])])
        if self.chance(0.5):
            where = Expr("and", "bool", [where, self.boolean(other, 0)])
        if self.chance(0.2):
            where = Expr("and", "bool", [where, self.of_both(scope, other)])
        if self.chance(0.25):
            below, other, where = self.derived(below, other, where)
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
            if self.chance(0.3):
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

    def of_both(self, outermost, middle):
        """A subquery that compares with the query around it and with the outermost one."""
        source, scope = self.base(self.pick(["saved_searches", "breakdowns", "mentions"]), self.alias(None), middle)
        # With another comparison than equality, DuckDB's own rows are wrong; nested.py has those.
        tests = [Expr(compare, "bool", [self.column(scope.columns[0]), self.column(other.columns[0])])
                 for compare, other in (("=", outermost), (self.pick(["=", "=", "<=", "<>"]), middle))]
        query = Query([Item(self.column(self.pick(scope.of("text"))), None, "text")], source, Expr("and", "bool", tests))
        kind = self.pick(["exists", "not exists", "in subquery", "not in subquery", "scalar"])
        if kind == "scalar":
            query.items = [Item(Aggregate("count", "int", []), None, "int")]
            return Expr(self.pick([">", "="]), "bool", [Expr("scalar", "int", [query]), Expr("int", "int", [], [1])])
        return Expr(kind, "bool", [query] if "exists" in kind else [self.column(self.pick(middle.of("text"))), query])

    def derived(self, source, scope, where):
        """A source with its condition as a derived table of some columns, the first one included, and no further condition."""
        chosen = scope.columns[:1] + self.rng.sample(scope.columns[1:], min(4, len(scope.columns) - 1))
        chosen += [column for column in scope.of("text") if column not in chosen][:1]
        query = Query([Item(self.column(column), None, column.type) for column in chosen], source, where)
        query.distinct = self.chance(0.1)
        alias = self.alias(None)
        columns = [Column(f"{alias}.{column.name}", column.name, column.type) for column in chosen]
        return Derived(query, alias), Scope(columns, [], scope.outer), None
