"""Two services with known records: one drawn by the simulator, one with many NULLs, ties and odd texts. Their records are read
as JSON over HTTP and loaded into DuckDB, so the truth shares no code with the program but the simulator's own."""

import datetime
import json
import os
import random
import urllib.request

import duckdb

UTC = datetime.timezone.utc
# The service's clock stands at this instant: a service that answered months ago is a case of its own.
NOW = os.environ.get("ORACLE_NOW") or datetime.datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:00Z")
TODAY = datetime.datetime.fromisoformat(NOW.replace("Z", "+00:00")).replace(hour=0, minute=0)
KEY = "demo-key-comms"
# Every mention is in the default window, so that rows do not depend on where a statement bounds the time.
PROFILE = 'extends = "v4"\nname = "oracle"\n[window]\ndefault = "100d"\n'
FIELDS = {
    "id": "/id", "seq": "/seq", "url": "/url", "title": "/title", "text": "/text", "snippet": "/snippet",
    "published_at": "/publishedAt", "indexed_at": "/indexedAt", "updated_at": "/updatedAt", "source": "/source/name",
    "source_type": "/source/type", "platform": "/source/platform", "author_id": "/author/id", "author_name": "/author/name",
    "author_handle": "/author/handle", "author_followers": "/author/followers", "language": "/language", "country": "/country",
    "sentiment": "/sentiment/label", "sentiment_score": "/sentiment/score", "reach": "/reach", "likes": "/engagement/likes",
    "comments": "/engagement/comments", "shares": "/engagement/shares", "views": "/engagement/views",
    "engagement": "/engagement/total", "type": "/type", "parent_id": "/parentId", "tags": "/tags", "hashtags": "/hashtags",
    "images": "/images",
}
LISTS = ("tags", "hashtags", "images", "languages", "kinds")
TYPES = {
    "seq": "BIGINT", "author_followers": "BIGINT", "sentiment_score": "DOUBLE", "reach": "BIGINT", "likes": "BIGINT",
    "comments": "BIGINT", "shares": "BIGINT", "views": "BIGINT", "engagement": "BIGINT", "rank": "BIGINT", "position": "BIGINT", "mentions": "BIGINT",
    "total_mentions": "BIGINT", "unique_authors": "BIGINT", "positive": "BIGINT", "negative": "BIGINT",
    **{name: "TIMESTAMPTZ" for name in ("published_at", "indexed_at", "updated_at", "created_at", "searched_at", "bucket_start", "bucket_end")},
    **{name: "VARCHAR[]" for name in LISTS},
}
RECENT = {"position": None, "aid": "/aid", "name": "/name", "query": "/query", "searched_at": "/searchedAt"}
SECTIONS = {"topSources": "source", "topAuthors": "author", "topKeywords": "keyword", "topHashtags": "hashtag",
            "languages": "language", "countries": "country", "sentiment": "sentiment"}


def odd_records(seed):
    """Records with few values, many NULLs, equal times and texts that are hard to quote."""
    rng = random.Random(f"records {seed}")
    maybe = lambda values, null: None if rng.random() < null else rng.choice(values)
    start = TODAY - datetime.timedelta(days=11)
    records, number = [], 9007199254740993
    for aid, count in (("183772", 25), ("184889", 14), ("186006", 5), ("187123", 1)):
        for _ in range(count):
            if records and rng.random() < 0.1:
                twin = rng.choice(records)
                if all((record["aid"], record["id"]) != (aid, twin["id"]) for record in records):
                    records.append(twin | {"aid": aid})
                    continue
            number += rng.randrange(1, 4)
            at = start + datetime.timedelta(hours=6 * rng.randrange(40), seconds=rng.choice([0, 0, 0, 1, 1800, 0.5, 0.25]))
            stamp = lambda at: at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            score = rng.choice([0.5, -0.5, 0.0, 1.0, -1.0, 0.25, 0.13])
            author = maybe([{"id": "u1", "name": None, "handle": "ann", "followers": 10},
                            {"id": "u2", "name": "Bob", "handle": "bob", "followers": None},
                            {"id": "u3", "name": "", "handle": "", "followers": 0}], 0.25)
            records.append({
                "aid": aid, "id": str(number), "seq": len(records), "url": maybe([f"https://e.org/{number}"], 0.2),
                "title": maybe(["acme", "Acme", "", "a%b", "a_b", "it's", "zwölf", "日本", "100", "e", "ACME One.com", " x "], 0.3),
                "text": maybe(["acme", "one acme two", "", "x%y_z", 'quo"te', "tab\there", "line\nbreak", "🚀 go"], 0.1),
                "snippet": maybe(["acme", "", "e"], 0.4),
                "publishedAt": stamp(at), "indexedAt": None if rng.random() < 0.15 else stamp(at + datetime.timedelta(hours=rng.choice([0, 0, 1, 24, 36, 48]))),
                "updatedAt": stamp(at + datetime.timedelta(hours=1)),
                "source": maybe([{"name": "x.com", "type": "social", "platform": "x"}, {"name": "e.org", "type": "news", "platform": None},
                                 {"name": "en", "type": "blog", "platform": "web"}], 0.1),
                "author": author, "language": maybe(["en", "de", "fr", "en"], 0.35), "country": maybe(["DE", "US", "de"], 0.5),
                "sentiment": maybe([{"label": "positive", "score": score}, {"label": "negative", "score": score}], 0.4),
                "reach": maybe([0, 1, 2, 2, 3, 10, 48, 100], 0.35),
                "engagement": {"likes": maybe([0, 1, 2, 5], 0.3), "comments": maybe([0, 3], 0.3), "shares": maybe([0, 7], 0.3),
                               "views": maybe([0, 1, 2**63 - 1, -(2**63)], 0.5), "total": maybe([0, 1, 4, 10], 0.2)},
                "type": maybe(["post", "comment"], 0.2), "parentId": None, "tags": [],
                "hashtags": rng.choice([[], ["acme"], ["acme", "en"], ["de", "acme", "zz"]]), "images": [],
            })
    return records


def write_odd(folder, seed):
    records = odd_records(seed)
    path = folder / "mentions.ndjson"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    names = {"183772": "Acme – brand", "184889": "en", "186006": "", "187123": "it's", "190000": "nothing"}
    searches = [{"aid": aid, "name": name, "query": f"q{aid}"} for aid, name in names.items()]
    (folder / "saved_searches.json").write_text(json.dumps(searches))
    return path


def pointer(record, path):
    for name in path.split("/")[1:]:
        record = record.get(name) if isinstance(record, dict) else None
    return record


class Records:
    """The rows of a service."""

    def __init__(self, base_url):
        self.base_url = base_url
        listed = self.ask("list")["data"]
        self.tables = {"saved_searches": saved_searches(listed), "recent_searches": recent_searches(listed)}
        self.mentions, overview, breakdowns, volume = [], [], [], []
        aids = {entry["aid"]: None for part in ("savedSearches", "teamSavedSearches") for entry in listed[part]}
        for aid in aids:
            offset = 0
            while True:
                answer = self.ask(f"search?aid={aid}&duration=100d&timezone=UTC&sortBy=date_desc&dataFrom={offset}&dataSize=100")
                page = answer["mentions"]["items"]
                self.mentions += [{"aid": aid} | {name: pointer(item, at) for name, at in FIELDS.items()} for item in page]
                offset += len(page)
                if len(page) < 100:
                    break
            totals = answer["overview"]
            assert totals["totalMentions"] == offset, (totals["totalMentions"], offset)
            overview.append({"aid": aid, "total_mentions": offset, "unique_authors": totals["uniqueAuthors"],
                             "positive": totals["sentiment"]["positive"], "negative": totals["sentiment"]["negative"]})
            volume += [{"aid": aid, "bucket_start": day["start"], "bucket_end": day["end"], "mentions": day["count"],
                        "reach": day["reach"]} for day in totals["volume"]]
            for section, dimension in SECTIONS.items():
                entries = totals.get(section) or []
                if isinstance(entries, dict):
                    entries = [{"name": name, "count": count} for name, count in entries.items()]
                breakdowns += [{"aid": aid, "dimension": dimension, "rank": rank, "name": entry["name"], "mentions": entry["count"]}
                               for rank, entry in enumerate(entries, 1)]
        self.tables |= {"mentions": self.mentions, "overview": overview, "volume": volume, "breakdowns": breakdowns}

    def ask(self, path):
        request = urllib.request.Request(f"{self.base_url}/{path}", headers={"Authorization": f"Bearer {KEY}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def database(self):
        """A database with the rows."""
        database = duckdb.connect()
        for table, rows in self.tables.items():
            names = rows[0] if rows else RECENT
            database.execute(f"CREATE TABLE {table} ({columns(names)})")
            if not rows:
                continue
            places = ", ".join(f"({', '.join('?' * len(rows[0]))})" for _ in rows)
            database.execute(f"INSERT INTO {table} VALUES {places}", [cell for row in rows for cell in row.values()])
        return database


def columns(names, types=TYPES):
    return ", ".join(f'"{name}" {types.get(name, "VARCHAR")}' for name in names)


def settings(database):
    """The settings of a connection to the database: NULLs are sorted last, as the program does in both directions."""
    database.execute("SET default_null_order = 'nulls_last'; SET TimeZone = 'UTC'; SET threads = 1")
    return database


def saved_searches(listed):
    """A row an aid: its strongest kind, and of each column the first value, of the strongest entry."""
    columns = {"name": "/name", "query": "/query", "team_id": "/team/id", "team_name": "/team/name", "owner": "/owner",
               "languages": "/languages", "created_at": "/createdAt", "updated_at": "/updatedAt", "searched_at": "/searchedAt"}
    rows = {}
    for part, kind in (("savedSearches", "saved"), ("teamSavedSearches", "team"), ("recentSearches", "recent")):
        for entry in listed.get(part) or []:
            row = rows.setdefault(entry["aid"], {"aid": entry["aid"], "kind": kind, "kinds": []} | dict.fromkeys(columns))
            row["kinds"] += [kind] if kind not in row["kinds"] else []
            for name, at in columns.items():
                row[name] = pointer(entry, at) if row[name] is None else row[name]
    return list(rows.values())


def recent_searches(listed):
    places = {name: at for name, at in RECENT.items() if at}
    entries = enumerate(listed.get("recentSearches") or [], 1)
    return [{"position": number} | {name: pointer(entry, at) for name, at in places.items()} for number, entry in entries]
