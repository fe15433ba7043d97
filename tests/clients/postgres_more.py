"""The server for clients of PostgreSQL with asyncpg, pg8000, ADBC, DuckDB, ibis, Django, pgcli, Sequelize and TypeORM.

Each asserts rows and the number of requests that they cost.
"""

import asyncio
import contextlib
import datetime
import decimal
import importlib.util
import json
import pathlib
import subprocess

import adbc_driver_postgresql.dbapi
import asyncpg
import duckdb
import pg8000.native
import psycopg

from service import AID, Served, upstream_requests

WEEK = f"SELECT id, language, published_at, tags, reach FROM mentions WHERE aid = '{AID}' AND duration = '7d'"
LANGUAGES = ["en", "de"]


def url(served):
    return f"postgresql://ada:swordfish@127.0.0.1:{served.postgres}/savedsearch"


@contextlib.contextmanager
def costs(served, most):
    """Asserts that the statements inside send at least one request and at most so many; none for 0."""
    before = upstream_requests(served)
    yield
    spent = upstream_requests(served) - before
    assert min(most, 1) <= spent <= most, f"{spent} requests, expected at most {most}"


def expected(served):
    """The mentions of the week by id, and the number of requests that they cost."""
    before = upstream_requests(served)
    with psycopg.connect(url(served)) as connection:
        rows = connection.execute(WEEK).fetchall()
    return {row[0]: row for row in rows}, int(upstream_requests(served) - before)


def asyncpg_runs(served, rows, cost):
    async def run():
        connection = await asyncpg.connect(url(served))
        some = {key for key, row in rows.items() if row[1] in LANGUAGES}
        with costs(served, cost):
            found = await connection.fetch(f"SELECT id FROM ({WEEK}) t WHERE language = ANY($1)", LANGUAGES)
        assert {row["id"] for row in found} == some and some
        values = await connection.fetchrow(
            "SELECT $1::int, $2::date, $3::timestamp, $4::numeric, $5::text[], $6::uuid, $7::json",
            7,
            datetime.date(2026, 5, 1),
            datetime.datetime(2026, 5, 1, 12),
            decimal.Decimal("1.50"),
            ["a", None, 'b "c"'],
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            '{"a": 1}',
        )
        assert tuple(values)[:5] == (
            7, datetime.date(2026, 5, 1), datetime.datetime(2026, 5, 1, 12), decimal.Decimal("1.50"), ["a", None, 'b "c"'],
        ), values
        assert str(values[5]) == "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11" and json.loads(values[6]) == {"a": 1}
        # For arrays of other types than text, asyncpg reads the catalogs.
        with costs(served, 0):
            assert await connection.fetchval("SELECT $1::int[]", [1, None, 2]) == [1, None, 2]
            assert await connection.fetchval("SELECT array_agg(n ORDER BY n) FROM (VALUES (1::bigint), (2)) t(n)") == [1, 2]
            assert await connection.fetchval("SELECT ARRAY[1.5, 2.5]::float8[]") == [1.5, 2.5]
            days = [datetime.date(2026, 5, 1), datetime.date(2026, 5, 2)]
            assert await connection.fetchval("SELECT $1::date[]", days) == days
            assert await connection.fetchval("SELECT $1::oid[] IS NOT NULL FROM pg_class LIMIT 1", [1, 2])
        reach = [row[4] for row in rows.values() if row[4] is not None][:3]
        with costs(served, cost):
            found = await connection.fetch(f"SELECT reach FROM ({WEEK}) t WHERE reach = ANY($1)", reach)
        assert {row["reach"] for row in found} == set(reach) and reach
        async with connection.transaction():
            # The first page has enough.
            with costs(served, 1):
                cursor = await connection.cursor(f"SELECT id FROM mentions WHERE aid = '{AID}' AND duration = '365d'")
                assert len(await cursor.fetch(10)) == 10
        await connection.close()

    asyncio.run(run())


def pg8000_runs(served, rows, cost):
    connection = pg8000.native.Connection("ada", "127.0.0.1", "savedsearch", served.postgres, "swordfish")
    with costs(served, cost):
        found = connection.run(f"SELECT id FROM ({WEEK}) t WHERE language = ANY(CAST(:languages AS text[]))", languages=LANGUAGES)
    assert {row[0] for row in found} == {key for key, row in rows.items() if row[1] in LANGUAGES}
    assert connection.run("SELECT '{en,de}'::text[], 2 ^ 3, 2.6::int") == [[["en", "de"], 8.0, 3]]
    connection.close()


def fractions_are_kept(served):
    """Numbers of parameters beside integers. The values are those of PostgreSQL 15."""
    half, quarter = decimal.Decimal("1.25"), decimal.Decimal("0.15")
    with psycopg.connect(url(served)) as connection:
        for sql, values, right in [
            ("SELECT sum(x * %s::numeric) FROM (VALUES (1::bigint), (2)) v(x)", [half], "3.75"),
            ("SELECT sum(x / %s) FROM (VALUES (1::bigint), (2)) v(x)", [decimal.Decimal(4)], "0.75"),
            ("SELECT sum(x * %s) / 2 FROM (VALUES (1::bigint), (2)) v(x)", [half], "1.875"),
            ("SELECT round(sum(x * %s) / sum(x), 4) FROM (VALUES (7::bigint), (9)) v(x)", [quarter], "0.1500"),
            ("SELECT max(s) FROM (SELECT sum(x * %s) OVER (ORDER BY x) AS s FROM (VALUES (1::bigint), (2)) v(x)) q", [half], "3.75"),
            ("SELECT g FROM (SELECT 'a' AS g, 1::bigint AS x UNION ALL SELECT 'b', 2) q GROUP BY g HAVING sum(x * %s) > 2", [half], "b"),
            ("SELECT sum(y) FROM (SELECT x * %s AS y FROM (VALUES (1::bigint), (2)) v(x)) q", [half], "3.75"),
            ("SELECT sum(%s) FROM (VALUES (1), (2)) v(x)", [half], "2.50"),
            ("SELECT sum(x) FROM (VALUES (%s::numeric), (%s)) v(x)", [half, half], "2.50"),
            ("SELECT sum(x) FROM (VALUES (%s), (2)) v(x)", [half], "3.25"),
            ("SELECT sum(CASE WHEN x = 1 THEN %s ELSE 0 END) FROM (VALUES (1), (2)) v(x)", [half], "1.25"),
            ("SELECT sum(a) FROM (SELECT 1::bigint AS a UNION ALL SELECT %s) q", [half], "2.25"),
            ("SELECT lag(x, 1, %s) OVER (ORDER BY x) FROM (VALUES (1::bigint)) v(x)", [half], "1.25"),
            ("SELECT %s * 2, %s / 3 > 0.4", [half, half], "2.50"),
        ]:
            for binary in [False, True]:
                with connection.cursor(binary=binary) as cursor:
                    came = cursor.execute(sql, values).fetchone()[0]
                assert came == (right if isinstance(came, (str, bool)) else decimal.Decimal(right)), f"{sql}: {came}, not {right}"


def arrays_of_numbers_keep_their_values(served):
    """The values are those of PostgreSQL 15."""
    two = [decimal.Decimal("1.5"), decimal.Decimal(2)]
    with psycopg.connect(url(served)) as connection:
        for sql, values, right in [
            ("SELECT %s::numeric[]", [two], two),
            ("SELECT %s::numeric[]", [[decimal.Decimal(1), None, decimal.Decimal("2.25")]], [1, None, decimal.Decimal("2.25")]),
            ("SELECT %s::numeric[]", [[decimal.Decimal("1E-12"), decimal.Decimal("1E3")]], [decimal.Decimal("1E-12"), 1000]),
            ("SELECT array_agg(x) FROM (VALUES (0.25), (2.0)) v(x) WHERE x = ANY(%s)", [two], [2]),
            ("SELECT array_agg(x) FROM (VALUES (0.25), (2.0)) v(x) WHERE x <> ALL(%s)", [two], [decimal.Decimal("0.25")]),
            ("SELECT sum(x) FROM unnest(%s::numeric[]) u(x)", [two], decimal.Decimal("3.5")),
            ("SELECT '{1e-12,2}'::numeric[]", [], [decimal.Decimal("1E-12"), 2]),
        ]:
            for binary in [False, True]:
                with connection.cursor(binary=binary) as cursor:
                    # Parameters in text, and in binary form.
                    for form in [sql, sql.replace("%s", "%b")]:
                        came = cursor.execute(form, values).fetchone()[0]
                        assert came == right, f"{form}, {values}: {came}, not {right}"


def adbc_runs(served, rows, cost):
    with adbc_driver_postgresql.dbapi.connect(url(served)) as connection, connection.cursor() as cursor:
        with costs(served, cost):
            cursor.execute(WEEK)
            table = cursor.fetch_arrow_table()
    assert [str(field.type) for field in table.schema][:2] == ["string", "string"], table.schema
    assert str(table.schema.field("reach").type) == "int64" and "timestamp" in str(table.schema.field("published_at").type)
    assert set(table["id"].to_pylist()) == set(rows)
    by_id = dict(zip(table["id"].to_pylist(), table["tags"].to_pylist()))
    assert all(by_id[key] == row[3] for key, row in rows.items())


def duckdb_runs(served):
    package = pathlib.Path(importlib.util.find_spec("duckdb_extension_postgres_scanner").origin).parent
    engine = duckdb.connect()
    engine.execute(f"LOAD '{next(package.rglob('postgres_scanner.duckdb_extension'))}'")
    address = f"host=127.0.0.1 port={served.postgres} dbname=savedsearch user=ada password=swordfish"
    engine.execute(f"ATTACH '{address}' AS service (TYPE postgres, READ_ONLY)")
    engine.execute("SET pg_experimental_filter_pushdown = true")
    # The filter reaches the service: without it, four saved searches would be listed and asked.
    with costs(served, 1):
        found = engine.execute(f"SELECT aid, total_mentions FROM service.v4.overview WHERE aid = '{AID}'").fetchall()
    assert [row[0] for row in found] == [AID], found
    # Conditions that DuckDB sends, and the same over rows that it has.
    columns = "id, language, source, reach, sentiment_score, published_at, tags"
    week = f"service.v4.mentions WHERE aid = '{AID}' AND duration = '7d'"
    engine.execute(f"CREATE TABLE week AS SELECT {columns} FROM {week}")
    engine.execute("SET TimeZone = 'UTC'")
    middle, least, most = engine.execute("SELECT median(published_at)::text, min(id), max(id) FROM week").fetchone()
    conditions = [
        "language = 'en'", "language <> 'en'", "language IN ('en', 'de')", "language NOT IN ('en', 'de')", "language IS NULL",
        "language IS NOT NULL AND source > 'news'", "language = 'en' OR source = 'news'", "language LIKE 'e%'", "language > 'de'",
        "lower(language) = 'en'", "reach > 1000", "reach BETWEEN 100 AND 5000", "reach IS NULL OR reach < 10", "reach = 1000.5",
        "sentiment_score < -0.25", f"published_at >= '{middle}'", f"published_at < '{middle}'", f"published_at::date = '{middle[:10]}'",
        f"id > '{least}' AND id < '{most}'", "list_contains(tags, 'launch')", "NOT (language = 'en' AND reach > 1000)",
    ]
    fetched = columns.replace("published_at", "published_at::text")
    for condition in conditions:
        asked = engine.execute(f"SELECT {fetched} FROM {week} AND ({condition})").fetchall()
        truth = engine.execute(f"SELECT {fetched} FROM week WHERE {condition}").fetchall()
        assert sorted(asked, key=str) == sorted(truth, key=str), condition
        number = engine.execute(f"SELECT count(*) FROM {week} AND ({condition})").fetchone()[0]
        assert number == len(truth), f"{condition}: {number} counted, {len(truth)} mentions"
    assert len(truth) > 0


def ibis_runs(served, rows):
    import ibis

    connection = ibis.postgres.connect(
        host="127.0.0.1", port=served.postgres, user="ada", password="swordfish", database="savedsearch", schema="v4"
    )
    assert "mentions" in connection.list_tables()
    mentions = connection.table("mentions")
    week = mentions.filter(mentions.aid == AID, mentions.duration == "7d")
    assert week.count().execute() == len(rows)
    by_language = week.group_by("language").agg(number=week.count()).execute()
    assert by_language["number"].sum() == len(rows)
    connection.disconnect()


def django_runs(served, rows, cost):
    import django
    from django.conf import settings

    database = {
        "ENGINE": "django.db.backends.postgresql", "NAME": "savedsearch", "USER": "ada", "PASSWORD": "swordfish",
        "HOST": "127.0.0.1", "PORT": served.postgres,
    }
    settings.configure(DATABASES={"default": database}, USE_TZ=True, TIME_ZONE="UTC", INSTALLED_APPS=[])
    django.setup()
    from django.db import connection, models

    class Mention(models.Model):
        id = models.TextField(primary_key=True)
        aid = models.TextField()
        language = models.TextField()
        duration = models.TextField()
        published_at = models.DateTimeField()

        class Meta:
            app_label, managed, db_table = "clients", False, "mentions"

    week = Mention.objects.filter(aid=AID, duration="7d")
    with costs(served, cost):
        assert {mention.id for mention in week} == set(rows)
    some = {key for key, row in rows.items() if row[1] in LANGUAGES}
    assert week.filter(language__in=LANGUAGES).count() == len(some)
    assert len(set(week.dates("published_at", "day"))) == len({row[2].date() for row in rows.values()})
    with connection.cursor() as cursor:
        with costs(served, 0):
            assert "mentions" in connection.introspection.table_names(cursor)
        # It selects a row.
        assert {"aid", "id"} <= {column.name for column in connection.introspection.get_table_description(cursor, "mentions")}
    connection.close()


def pgcli_runs(served):
    from pgcli.pgexecute import PGExecute

    with costs(served, 0):
        executor = PGExecute("savedsearch", "ada", "swordfish", "127.0.0.1", served.postgres, None)
        assert "v4" in executor.schemata() and executor.search_path()[-1] == "v4"
        assert ("v4", "mentions") in executor.tables()
        columns = {(row[0], row[1], row[2]) for row in executor.table_columns()}
        assert ("v4", "mentions", "aid") in columns
        assert list(executor.foreignkeys()) == []
        for asked in [executor.views, executor.view_columns, executor.databases, executor.functions, executor.datatypes]:
            list(asked())
        assert "savedsearch" in executor.databases()


def node_runs(served, rows):
    program = r"""
require("reflect-metadata");
const { DataTypes, Op, Sequelize, QueryTypes } = require("sequelize");
const { DataSource, EntitySchema, In, IsNull, MoreThan } = require("typeorm");
const [url, aid, count] = process.argv.slice(1);
const quiet = { logging: false };
(async () => {
  const sequelize = new Sequelize(url, quiet);
  await sequelize.authenticate();
  const some = "SELECT id FROM mentions WHERE aid = $1 AND duration = '7d'";
  const rows = await sequelize.query(some, { bind: [aid], type: QueryTypes.SELECT });
  if (rows.length !== +count) throw new Error(`sequelize: ${rows.length} rows`);
  const columns = { id: { type: DataTypes.TEXT, primaryKey: true }, aid: DataTypes.TEXT, duration: DataTypes.TEXT,
    language: DataTypes.TEXT, reach: DataTypes.BIGINT, published_at: DataTypes.DATE };
  const Mention = sequelize.define("Mention", columns, { tableName: "mentions", schema: "v4", timestamps: false });
  const week = { aid, duration: "7d" };
  const all = await Mention.findAll({ where: week, order: [["published_at", "DESC"], ["id", "ASC"]] });
  const chosen = (test) => all.filter((mention) => test(mention)).map((mention) => mention.id).sort().join();
  const same = (what, mentions, test) => {
    const ids = mentions.map((mention) => mention.id).sort().join();
    if (!ids || ids !== chosen(test)) throw new Error(`${what}: ${ids}, not ${chosen(test)}`);
  };
  if (all.length !== +count) throw new Error(`sequelize: ${all.length} mentions`);
  const languages = ["en", "de"];
  const middle = all[Math.floor(all.length / 2)].published_at;
  same("IN", await Mention.findAll({ where: { ...week, language: languages } }), (m) => languages.includes(m.language));
  same("OR", await Mention.findAll({ where: { ...week, [Op.or]: [{ language: "en" }, { reach: { [Op.gt]: 1000 } }] } }),
    (m) => m.language === "en" || +m.reach > 1000);
  same("a date", await Mention.findAll({ where: { ...week, published_at: { [Op.gte]: middle } } }), (m) => m.published_at >= middle);
  const page = await Mention.findAndCountAll({ where: week, order: [["published_at", "DESC"], ["id", "ASC"]], limit: 5, offset: 3 });
  if (page.count !== +count || page.rows.map((m) => m.id).join() !== all.slice(3, 8).map((m) => m.id).join()) throw new Error("a page");
  const grouped = await Mention.count({ where: week, group: ["language"] });
  if (grouped.reduce((sum, group) => sum + +group.count, 0) !== +count) throw new Error("groups");
  await sequelize.close();
  const entity = new EntitySchema({ name: "Mention", tableName: "mentions", schema: "v4", columns: {
    id: { type: "text", primary: true }, aid: { type: "text" }, duration: { type: "text" }, language: { type: "text", nullable: true },
    reach: { type: "bigint", nullable: true }, published_at: { type: "timestamptz" } } });
  const source = new DataSource({ type: "postgres", url, schema: "v4", entities: [entity], ...quiet });
  await source.initialize();
  const mentions = source.getRepository("Mention");
  same("typeorm IN", await mentions.findBy({ ...week, language: In(languages) }), (m) => languages.includes(m.language));
  same("typeorm OR", await mentions.find({ where: [{ ...week, language: IsNull() }, { ...week, reach: MoreThan(1000) }] }),
    (m) => m.language === null || +m.reach > 1000);
  const [taken, number] = await mentions.findAndCount({ where: week, order: { published_at: "DESC", id: "ASC" }, take: 5, skip: 3 });
  if (number !== +count || taken.map((m) => m.id).join() !== all.slice(3, 8).map((m) => m.id).join()) throw new Error("typeorm: a page");
  const built = await mentions.createQueryBuilder("m").select("m.language", "language").addSelect("COUNT(*)", "n")
    .where("m.aid = :aid AND m.duration = '7d'", { aid }).groupBy("m.language").getRawMany();
  if (built.reduce((sum, group) => sum + +group.n, 0) !== +count) throw new Error("typeorm: groups");
  const found = await source.query("SELECT id FROM mentions WHERE aid = $1 AND duration = '7d' AND language = ANY($2)", [aid, ["en", "de"]]);
  if (!found.length) throw new Error("typeorm: no rows");
  await source.destroy();
})().catch((error) => { console.error(error); process.exit(1); });
"""
    subprocess.run(["node", "-e", program, url(served), AID, str(len(rows))], check=True, timeout=120)


def pandas_is_told(served):
    import pandas
    import sqlalchemy

    engine = sqlalchemy.create_engine(url(served).replace("postgresql", "postgresql+psycopg"))
    try:
        pandas.DataFrame({"a": [1]}).to_sql("copied", engine)
    except sqlalchemy.exc.DBAPIError as error:
        assert "read-only" in str(error), error
    else:
        raise AssertionError("a table was written")
    engine.dispose()


with Served(users=True) as served:
    rows, cost = expected(served)
    assert len(rows) > 20, rows
    runs = [
        lambda: asyncpg_runs(served, rows, cost),
        lambda: pg8000_runs(served, rows, cost),
        lambda: fractions_are_kept(served),
        lambda: arrays_of_numbers_keep_their_values(served),
        lambda: adbc_runs(served, rows, cost),
        lambda: duckdb_runs(served),
        lambda: ibis_runs(served, rows),
        lambda: django_runs(served, rows, cost),
        lambda: pgcli_runs(served),
        lambda: node_runs(served, rows),
        lambda: pandas_is_told(served),
    ]
    for run in runs:
        run()
print("more clients of PostgreSQL passed")
