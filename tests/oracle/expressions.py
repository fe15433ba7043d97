"""Generates expressions over the columns of a scope, from a random number generator."""

from dataclasses import dataclass, field

from tree import Aggregate, Expr, Item, Query, Values

TEXTS = ["en", "de", "fr", "", "a", "acme", "Acme", "positive", "negative", "post", "zz", "x.com", "a%b", "100", "it's"]
PATTERNS = ["%e%", "_e", "e%", "%acme%", "%", "", "de", "%n", "a_m%", "pos%", "%.com", "x%com", "%!%%"]
SIMILAR = ["%acme%", "e_", "(en|de)", "(pos|neg)%", "a%b", "[a-f]%", "e", "%(com|org)", "p(o)?%"]
REGEXES = ["e", "^e", "n$", "^(en|de)$", "[0-9]", "a.*e"]
INTS = [0, 1, 2, 3, 5, 7, 10, 48, 100, -1, -3]
UNITS = ["'hour'", "'day'", "'week'", "'month'"]
ZONES = ["'Europe/Berlin'", "'America/New_York'", "'Asia/Kolkata'"]
INTERVALS = ["1 day", "2 days", "1 hour", "90 minutes", "36 hours", "0 days", "7 days", "30 seconds"]
# Forms that only PostgreSQL's users write; DuckDB reads them too.
LONG = ["04:05:06", "1 day 02:00:00", "36:00:00", "1 day -01:00:00"]
# Columns that are drawn more often: those with NULLs and few values.
FAVOURITES = ["language", "sentiment", "reach", "aid", "source", "likes", "country"]


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


class Expressions:
    """Expressions by type. Subqueries in them come from the statements that inherit it."""

    def __init__(self, rng, world, language="engine"):
        self.rng, self.world, self.language = rng, world, language
        self.aliases = 0
        self.ctes = []
        self.free = False

    def chance(self, share):
        return self.rng.random() < share

    def pick(self, options):
        return self.rng.choice(options)

    def alias(self, scope):
        if self.aliases and self.chance(0.08) and not (scope and any(column.ref.startswith("a.") for column in scope.columns)):
            return "a"  # sometimes the same name as outside
        self.aliases += 1
        return f"{'bcdefghijklmnopqrstuvwxyz'[self.aliases % 25]}{self.aliases // 25 or ''}"

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
        if kind < 0.88:
            args = [self.expression("int", scope, -2), self.expression("int", scope, -2), self.constant("int", null=0)]
            return Expr("guarded", "bool", args)
        if kind < 0.885 and self.language == "postgres":
            return Expr("in array", "bool", [self.expression("text", scope, -2), *[self.constant("text", null=0.2) for _ in range(2)]])
        if kind < 0.895 and scope.of("list"):
            return Expr("contains", "bool", [self.expression("list", scope, -2), self.constant("text", null=0)])
        if kind < 0.905:
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
        if kind < 0.56:
            op, word = self.pick(["any", "all"]), self.pick(["=", "<>", "<", "<=", ">", ">="])
            return Expr(op, "bool", [self.expression(type, scope, depth - 1), self.subquery(scope, depth, [type])], [word])
        if kind < 0.6:
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
        forms = INTERVALS + (LONG if self.language == "postgres" else [])
        plain = lambda: Expr("interval", "interval", [], [self.pick(forms)])
        if kind < 0.84:
            return Expr(self.pick(["interval sum", "interval difference"]), "interval", [plain(), plain()])
        if kind < 0.88:
            alias = self.alias(None)
            item = Item(Aggregate("max", "interval", [Expr("column", "interval", [], [f"{alias}.i"])]), None, "interval")
            return Expr("scalar", "interval", [Query([item], Values([[plain()], [plain()]], alias, ["i"]))])
        if kind < 0.92:
            return Expr("case", "interval", [self.constant("bool"), plain(), plain()])
        if kind < 0.95 and self.language == "postgres":
            return Expr("times", "interval", [plain(), Expr("int", "int", [], [self.pick([1, 2, 3])])])
        return Expr("age", "duration", [self.instant(plain=True), self.instant(plain=True)])

    def integer(self, scope, depth):
        less = lambda type: self.expression(type, scope, depth - 1)
        kind = self.rng.random()
        if depth > 1 and kind < 0.15:
            return self.scalar("int", scope, depth)
        if kind < 0.35:
            return Expr(self.pick(["+", "-", "+"]), "int", [less("int"), less("int")])
        if kind < 0.4:
            return Expr("*", "int", [less("int"), self.constant("int")])
        if kind < 0.48:
            divisor = Expr("nullif", "int", [less("int"), Expr("int", "int", [], [0])])
            ops = ["divide", "modulo"] + (["mod"] if self.language == "postgres" else [])
            return Expr(self.pick(ops), "int", [less("int"), divisor])
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
            op = "rounded" if self.language == "postgres" and self.chance(0.5) else "float to int"
            return Expr(op, "int", [less("float")])
        if kind < 0.96 and scope.of("list"):
            return Expr("cardinality", "int", [self.expression("list", scope, -2)])
        return Expr("simple case", "int", [less("text"), self.constant("text"), less("int"), less("int")])

    def number(self, scope, depth):
        less = lambda type: self.expression(type, scope, depth - 1)
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
        less = lambda type: self.expression(type, scope, depth - 1)
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
        less = lambda type: self.expression(type, scope, depth - 1)
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
