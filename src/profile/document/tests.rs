use super::*;
use crate::cases::each;
use crate::profile::Zone;

const V4: &str = include_str!("../builtin/v4.toml");

fn refused(from: &str, to: &str) -> (ErrorKind, String) {
    assert!(V4.contains(from), "the fixture does not contain {from:?}");
    let error = Profile::parse(&V4.replacen(from, to, 1), "mine.toml").expect_err("an invalid profile was accepted");
    (error.kind(), error.to_string())
}

#[test]
fn the_built_in_profile_parses_and_lists_its_dimensions() {
    let profile = Profile::v4();
    assert_eq!(profile.page.max, 100);
    let dimensions = profile.dimensions();
    assert!(dimensions.contains(&("list.path".into(), "list".into(), Some("given".into()))));
    assert!(dimensions.iter().any(|(name, _, evidence)| name == "page.max" && evidence.as_deref() == Some("assumed")));
}

#[test]
fn a_bad_profile_is_refused_with_file_line_key_and_what_was_expected() {
    let (kind, text) = refused("unit = \"row\"", "unit = \"rows\"");
    assert_eq!(kind, ErrorKind::Profile);
    assert_eq!(
        text,
        "mine.toml: line 41: key `offset.unit`: unknown variant `rows`, expected one of `row`, `page`, `cursor`"
    );

    let (_, text) = refused("first = 0", "first = 0\nfrist = 1");
    assert!(
        text.starts_with("mine.toml: line 43: key `offset.frist`: unknown field `frist`, expected one of"),
        "{text}"
    );

    let (_, text) = refused("max = 100", "max = \"100\"");
    assert!(text.contains("key `page.max`: invalid type: string \"100\", expected u64"), "{text}");

    let (_, text) = refused("default = \"7d\"", "default = \"7 days\"");
    assert!(
        text.contains("key `window.default`: invalid period `7 days`: the service takes <n>h, <n>d, <n>w, 2026"),
        "{text}"
    );

    let (_, text) = refused("{ name = \"seq\", type = \"int64\"", "{ name = \"seq\", type = \"int\"");
    assert!(text.contains("key `tables.mentions.columns.type`: unknown variant `int`"), "{text}");

    let (_, text) = refused("column = \"language\"", "column = \"tongue\"");
    assert!(
        text.contains("key `filters.parameters`: expected a column of tables.mentions that has `at`, found `tongue`"),
        "{text}"
    );

    let (_, text) = refused("[auth]", "[auth");
    assert!(text.starts_with("mine.toml: line 14:"), "{text}");
}

#[test]
fn entries_that_contradict_each_other_are_refused() {
    let cases = [
        (
            "unit = \"row\"",
            "unit = \"cursor\"\nnext = \"/next\"\nlast = \"/id\"",
            "expected `next`, the place of the next page's cursor, or `last`",
        ),
        (
            "path = \"list\"",
            "path = \"list\"\npages = { parameter = \"x\", unit = \"cursor\" }",
            "key `list.pages`: expected `next`",
        ),
        (
            "path = \"list\"",
            "path = \"list\"\npages = { parameter = \"x\", unit = \"row\", first = 2 }",
            "expected `first` to be 0 or 1",
        ),
        ("max = 100", "max = 100\nmin = 101", "key `page.min`: expected 1 to 100"),
        ("max = 100", "max = 100\nsizes = [10, 50]", "key `page.sizes`: expected sizes from 1 to 100, and that one"),
        ("unit = \"row\"", "unit = \"page\"\naligned = true", "key `offset.aligned`: expected unit = \"row\""),
        (
            "at = \"/publishedAt\" }",
            "at = \"/publishedAt\", zone = \"Mars\" }",
            "column `published_at`: invalid time zone `Mars`",
        ),
        (
            "name = \"url\", type = \"utf8\", at",
            "name = \"url\", type = \"utf8\", time_at = \"/t\", at",
            "only on a timestamp column",
        ),
    ];
    each(cases, |(from, to, says)| {
        let (kind, text) = refused(from, to);
        assert_eq!(kind, ErrorKind::Profile, "{text}");
        assert!(text.contains(says), "{text}\ndoes not contain: {says}");
    });
}

#[test]
fn what_is_not_supported_yet_is_refused_never_ignored() {
    let aid = "evidence = \"assumed\"              # aid is given";
    let (kind, text) = refused(aid, &format!("{aid}\nid = \"aid\""));
    assert_eq!(kind, ErrorKind::Unsupported, "{text}");
    assert!(text.contains("key `tables.saved_searches.id`:") && text.contains("not supported yet"), "{text}");
}

#[test]
fn a_budget_has_room_for_a_page() {
    let costs = V4.replace("# cost_per_record = 1", "cost_per_record = 3");
    let with = |requests: u32| {
        let windows = format!("windows = [{{ requests = {requests}, seconds = 60 }}]");
        Profile::parse(&costs.replacen("windows = []", &windows, 1), "mine.toml")
    };
    assert_eq!(with(301).expect("large enough").budget.cost_per_record, Some(3));
    assert!(
        with(300)
            .expect_err("too small")
            .to_string()
            .contains("expected `requests` of at least 301, the cost of one page")
    );
}

#[test]
fn other_dialects_are_expressed() {
    let dialect = V4
        .replace("format = \"Bearer {key}\"", "format = \"ApiKey {key}\"")
        .replace("unit = \"row\"", "unit = \"page\"")
        .replace("first = 0", "first = 1")
        .replace("beyond = \"rejected\"", "beyond = \"clamped\"")
        .replace("# rows = 10000", "rows = 10000")
        .replace("# beyond = \"bad_request\"", "beyond = \"last_page\"")
        .replace("absolute = \"{from}..{to}\"", "separate = { from = \"since\", to = \"until\" }")
        .replace("instants = \"rfc3339\"", "instants = \"epoch_s\"")
        .replace("end = \"exclusive\"", "end = \"inclusive\"")
        .replace("names = {}", "names = { last_week = \"7d\" }")
        .replace("# longest", "longest")
        .replace("# earliest", "earliest")
        .replace("several = \"separated\"", "several = \"repeat\"")
        .replace("when = [{ status = 429 }]", "when = [{ status = 403, code = \"rate\" }, { status = 429 }]")
        .replace("reset_format = \"epoch_s\"", "reset_format = \"iso\"")
        .replace("windows = []", "windows = [{ requests = 30, seconds = 600 }]")
        .replace("trust = \"exact\"", "trust = \"advisory\"")
        .replace("format = \"json\"", "format = \"text\"");
    let profile = Profile::parse(&dialect, "mine.toml").expect("a dialect");
    assert_eq!(
        profile.window.parameters("1767225600..1767312000"),
        [("since".to_owned(), "1767225600".to_owned()), ("until".to_owned(), "1767312000".to_owned())]
    );
    assert_eq!(profile.window.parameters("last_week"), [("duration".to_owned(), "last_week".to_owned())]);
}

#[test]
fn the_smallest_relative_period_that_reaches_back_is_found() {
    let window = Profile::v4().window;
    let reach = |hours| window.reaching(chrono::TimeDelta::hours(hours));
    assert_eq!(reach(1).as_deref(), Some("1h"));
    assert_eq!(reach(25).as_deref(), Some("25h"));
    let days_only = WindowSpec { relative: vec![super::super::window::Unit::Day], ..window };
    assert_eq!(days_only.reaching(chrono::TimeDelta::hours(25)).as_deref(), Some("2d"));
}

#[test]
fn a_profile_may_extend_a_built_in_one() {
    let mine = "extends = \"v4\"\nname = \"mine\"\n[page]\nmax = 500\n[window.names]\nlast_week = \"7d\"\n";
    let profile = Profile::parse(mine, "mine.toml").expect("a profile");
    assert_eq!((profile.name.as_str(), profile.page.max), ("mine", 500));
    assert_eq!(profile.page.parameter, "dataSize", "omitted keys come from the extended profile");
    assert!(profile.window.names.contains_key("last_week"));
    assert_eq!(profile.tables, Profile::v4().tables);
    assert!(profile.dimensions().iter().any(|(name, value, _)| name == "page.max" && value == "500"));

    let refused = |text: &str| Profile::parse(text, "mine.toml").expect_err("refused").to_string();
    assert_eq!(
        refused("extends = \"v5\""),
        "mine.toml: line 1: key `extends`: expected one of v4, flags, pages, names, found `v5`"
    );
    let wrong = refused("extends = \"v4\"\n\n[page]\nmax = 0\n");
    assert_eq!(wrong, "mine.toml: line 4: key `page.max`: expected at least 1");
    let inherited = refused("extends = \"pages\"\n[page]\nmax = 5000\n");
    assert_eq!(inherited, "mine.toml: key `depth.rows`: expected at least 5000, the size of one page");
    let unknown = refused("extends = \"v4\"\n[page]\nmaximum = 5\n");
    assert!(unknown.starts_with("mine.toml: line 3: key `page.maximum`: unknown field"), "{unknown}");
    assert!(refused("extends = 4").contains("line 1: key `extends`: expected one of v4"), "{}", refused("extends = 4"));
}

#[test]
fn a_further_table_is_a_section_of_the_profile() {
    let authors = |name: &str| {
        format!(
            "extends = \"v4\"\n[tables.further.{name}]\nevidence = \"documented\"\ndescription = \"an author\"\n\
             sections = [{{ at = \"/overview/topAuthors\", optional = true }}]\n\
             columns = [{{ name = \"aid\", type = \"utf8\", null = false, from = \"aid\" }}, {{ name = \"author\", type = \"utf8\", at = \"/name\" }}]\n"
        )
    };
    let profile = Profile::parse(&authors("authors"), "mine.toml").expect("a profile");
    let names: Vec<&str> = profile.tables.all().map(|table| table.name.as_ref()).collect();
    assert_eq!(names, ["saved_searches", "mentions", "overview", "volume", "breakdowns", "recent_searches", "authors"]);
    assert!(profile.dimensions().iter().any(|(name, ..)| name == "tables.further.authors.sections"));
    for bad in ["mentions", "recent_searches", "Authors", "\"top authors\""] {
        let error = Profile::parse(&authors(bad), "mine.toml").expect_err("a bad name").to_string();
        assert!(error.contains("key `tables.further`: expected a unique table name of lowercase letters"), "{error}");
    }
}

#[test]
fn periods_and_zones_have_notations_of_their_own() {
    let mine = "extends = \"v4\"\nname = \"mine\"\n[search]\nwith = { version = \"2\" }\n[window]\ndefault = \"7 days\"\nrelative = [\"d\", \"h\"]\n\
                written = { d = \"{n} days\" }\nseparate = { from = \"since\", to = \"until\", with = { duration = \"custom\" } }\n\
                [timezone]\nkind = \"minutes\"\ndefault = \"0\"\n";
    let profile = Profile::parse(mine, "mine.toml").expect("a profile");
    let days = |n: i64| Some(chrono::TimeDelta::days(n));
    let window = &profile.window;
    assert_eq!(
        (window.length_of("30 days"), window.length_of("48h"), window.length_of("30d")),
        (days(30), days(2), None)
    );
    assert_eq!(window.reaching(chrono::TimeDelta::hours(100)).as_deref(), Some("100h"));
    assert_eq!(window.parameters("7 days"), [("duration".to_owned(), "7 days".to_owned())]);
    let ends = window.parameters("2026-01-01T00:00:00Z..2026-01-02T00:00:00Z");
    assert_eq!(ends.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["since", "until", "duration"]);
    assert!(window.check_words("9w").expect_err("no weeks").contains("<n> days, <n>h"));
    let berlin = profile.timezone.zone_of("60").expect("a zone");
    assert_eq!((berlin.to_string().as_str(), profile.timezone.words_of(berlin).as_deref()), ("+01:00", Some("60")));
    assert_eq!(profile.timezone.words_of(Zone::UTC).as_deref(), Some("0"));
    let prefixed = mine.replace("minutes", "utc_offset").replace("default = \"0\"", "default = \"UTC+00:00\"");
    let zones = Profile::parse(&prefixed, "mine.toml").expect("a profile").timezone;
    let kolkata = zones.zone_of("UTC+05:30").expect("a zone");
    assert_eq!((kolkata.to_string().as_str(), zones.words_of(kolkata).as_deref()), ("+05:30", Some("UTC+05:30")));
    assert!(zones.zone_of("+05:30").is_err() && profile.timezone.zone_of("UTC").is_err());
    let error = Profile::parse(&mine.replace("{n} days", "days"), "mine.toml").expect_err("no number").to_string();
    assert!(error.contains("key `window.written`: expected strings with {n}"), "{error}");
}
