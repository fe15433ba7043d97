//! Writes the findings as a profile, each section with its evidence.

use std::fmt::Write;

use super::asker::Call;
use super::observations::{
    Absolute, Breakdown, CursorPlace, Findings, Form, MentionsParameter, Several, WindowFinding,
};
use super::shape::{Columns, Facet, Layout, ListLayout, Path, Series, Type, each_once, path_of, pointer};
use crate::profile::{UNKNOWN_ZONE, Zone as Clock};

/// Request columns, present in every table of a saved search.
const ASKED: [&str; 4] = ["aid", "duration", "timezone", "extra"];

/// Returns the profile as TOML.
pub(super) fn write(found: &Findings, calls: &[Call]) -> String {
    let mut text = format!(
        "# Written by `savedsearch probe` after {} requests. Sections marked `probed` were observed in responses;\n\
         # those marked `assumed` are defaults, at least in part. Edit as needed, and mark edited sections\n\
         # `documented`: `probe --resume` keeps them.\n\n\
         name = \"probed\"\ndescription = \"written by savedsearch probe\"\n",
        calls.len()
    );
    let mut section = |name: &'static str, evidence: Option<&str>, lines: Vec<String>| {
        let probed = if found.is_told(name) { "probed" } else { "assumed" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n[{name}]");
        let of =
            |section: &str| section == name || section.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        for note in found.notes.iter().filter(|note| of(note.section)) {
            let kind = if note.observed { "observed" } else { "not determined" };
            let _ = writeln!(text, "# {kind}: {}", crate::error::one_line(&note.text));
        }
        let _ = writeln!(text, "evidence = {}", quoted(evidence.unwrap_or(probed)));
        for line in lines {
            let _ = writeln!(text, "{line}");
        }
    };
    let (header, format) = found.auth.clone().unwrap_or(("Authorization".into(), "Bearer {key}".into()));
    section("auth", None, vec![set("header", &header), set("format", &format)]);
    let pages = found.list_pages.as_ref().map(|pages| format!("pages = {pages}"));
    let evidence = if pages.is_some() { "probed" } else { "given" };
    section("list", Some(evidence), [set("path", "list")].into_iter().chain(pages).collect());
    section("search", Some("given"), search(found));
    section("mentions", None, mentions(found));
    section("offset", None, offset(found));
    section("page", None, page(found));
    let depth = found.depth.map(|depth| vec![format!("rows = {}", depth.rows), set("beyond", depth.beyond)]);
    section("depth", None, depth.unwrap_or_default());
    section("window", None, window(found));
    section("timezone", None, timezone(found));
    section("sort", None, sort(found));
    section("filters", None, filters(found));
    section("throttle", None, throttle(found));
    section("budget", Some("assumed"), vec!["concurrency = 4".into(), "windows = []".into()]);
    section("total", None, total(found));
    if let Some(lines) = counts(found) {
        section("counts", None, lines);
    }
    let echoes = found.echoes.iter().map(|(name, path)| set(name, &pointer(path))).collect();
    section("echo", None, echoes);
    if !found.idle_links.is_empty() {
        let fields: Vec<String> =
            found.idle_links.iter().map(|at| format!("{{ at = {} }}", quoted(&pointer(at)))).collect();
        section("complete", None, vec![format!("fields = [{}]", fields.join(", "))]);
    }
    section("error", None, error(found));
    section("tables.saved_searches", None, saved_searches(found));
    section("tables.mentions", None, mention_table(found));
    section("tables.overview", None, overview(found));
    let unknown = found.timeline.is_none() || found.zone_is_unknown;
    section("tables.volume", unknown.then_some("assumed"), volume(found));
    section("tables.breakdowns", found.breakdowns.is_empty().then_some("assumed"), breakdowns(found));
    text
}

/// Quotes a string for TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn set(key: &str, value: &str) -> String {
    format!("{key} = {}", quoted(value))
}

fn parameter(found: &Findings, usual: &str) -> String {
    set("parameter", found.parameter(usual))
}

/// Parameters with fixed values.
fn fixed(found: &Findings, with: &[(String, String)]) -> String {
    let with = with.iter().map(|(name, value)| format!("{} = {}", quoted(found.parameter(name)), quoted(value)));
    format!("with = {{ {} }}", with.collect::<Vec<_>>().join(", "))
}

fn search(found: &Findings) -> Vec<String> {
    let mut lines = vec![set("path", "search"), set("aid", found.parameter("aid"))];
    if !found.with.is_empty() {
        lines.push(fixed(found, &found.with));
    }
    lines.extend(found.total_header.as_ref().map(|name| format!("headers = [{}]", quoted(name))));
    lines
}

fn mentions(found: &Findings) -> Vec<String> {
    let mut lines = match &found.asked {
        Some(MentionsParameter::Flag(name, value)) => {
            let flag = format!("flag = {{ parameter = {}, value = {} }}", quoted(name), quoted(value));
            vec![set("requested_by", "flag"), flag]
        }
        Some(MentionsParameter::Always) => vec![set("requested_by", "always")],
        Some(MentionsParameter::Size) | None => vec![set("requested_by", "size")],
    };
    if found.asked.is_some() && !found.with_overview {
        lines.push("with_overview = false".into());
    }
    lines
}

fn offset(found: &Findings) -> Vec<String> {
    if let Some((name, place)) = &found.cursor {
        let place = match place {
            CursorPlace::Response(at) => set("next", &pointer(at)),
            CursorPlace::LastRecord(at) => set("last", &pointer(&located(found, at))),
        };
        return vec![set("parameter", name), set("unit", "cursor"), place];
    }
    let offset = found.offset.unwrap_or_default();
    let unit = if offset.pages { "page" } else { "row" };
    let mut lines = vec![parameter(found, "dataFrom"), set("unit", unit), format!("first = {}", offset.first)];
    lines.extend(offset.aligned.then(|| "aligned = true".to_owned()));
    lines
}

fn page(found: &Findings) -> Vec<String> {
    let (max, clamped) = found.page.map_or((10, false), |page| (page.max, page.clamped));
    let beyond = if clamped { "clamped" } else { "rejected" };
    let mut lines = vec![parameter(found, "dataSize"), format!("max = {max}"), set("beyond", beyond)];
    if found.sizes.last() == Some(&max) {
        let sizes: Vec<String> = found.sizes.iter().map(u64::to_string).collect();
        lines.push(format!("sizes = [{}]", sizes.join(", ")));
    } else if let Some(least) = found.least.filter(|least| *least <= max) {
        lines.push(format!("min = {least}"));
    }
    lines
}

fn timezone(found: &Findings) -> Vec<String> {
    // A zone without an effect that was seen is that of no day.
    let utc = if found.distances { "+00:00" } else { found.zone_form.map_or("UTC", |(_, utc)| utc) };
    let (kind, default) = found.zone.as_ref().map_or(("ignored", utc), |zone| (zone.kind, zone.default.as_str()));
    let name = (!found.takes_no_zone || kind != "ignored").then(|| parameter(found, "timezone"));
    name.into_iter().chain([set("kind", kind), set("default", default)]).collect()
}

fn window(found: &Findings) -> Vec<String> {
    let window = &found.window;
    let told = window.widest.is_some();
    if window.is_unknown() {
        // No period is sent, since nothing shows that it would have an effect: responses cover the service's own one.
        return vec![
            set("default", "service_default"),
            "relative = []".to_owned(),
            set("instants", "rfc3339"),
            set("end", "exclusive"),
        ];
    }
    let own = |unit: char| (unit, format!("{{n}}{unit}"));
    let units = match told {
        true => window.units.clone(),
        false if window.is_of_dates() => ['d', 'w'].map(own).to_vec(),
        false if window.is_of_instants() => ['h', 'd', 'w'].map(own).to_vec(),
        false if window.is_checked => vec![own('d')],
        false => Vec::new(),
    };
    let default = default_window(window, &units);
    let written: Vec<String> = units
        .iter()
        .filter(|(unit, template)| *template != format!("{{n}}{unit}"))
        .map(|(unit, template)| format!("{unit} = {}", quoted(template)))
        .collect();
    let units: Vec<String> = units.iter().map(|(unit, _)| quoted(&unit.to_string())).collect();
    let mut lines = vec![set("default", &default), format!("relative = [{}]", units.join(", "))];
    match &window.absolute {
        Some(Absolute { form: Form::Separate(..), .. }) if window.is_of_instants() => {}
        _ => lines.insert(0, parameter(found, "duration")),
    }
    if window.is_of_instants() {
        lines.push(set("relative_as", "instants"));
    }
    if !written.is_empty() {
        lines.push(format!("written = {{ {} }}", written.join(", ")));
    }
    let mut instants = "rfc3339";
    let mut inclusive = false;
    if let Some(absolute) = &window.absolute {
        match &absolute.form {
            Form::Template(template) => lines.push(set("absolute", template)),
            Form::Separate(from, to) => {
                let with =
                    if window.with.is_empty() { String::new() } else { format!(", {}", fixed(found, &window.with)) };
                lines.push(format!("separate = {{ from = {}, to = {}{with} }}", quoted(from), quoted(to)));
            }
        }
        (instants, inclusive) = (absolute.instants, absolute.inclusive.unwrap_or(true));
    }
    lines.push(set("instants", instants));
    lines.push(set("end", if inclusive { "inclusive" } else { "exclusive" }));
    if !window.names.is_empty() {
        let names: Vec<String> =
            window.names.iter().map(|(name, hours)| format!("{} = \"{hours}h\"", quoted(name))).collect();
        lines.push(format!("names = {{ {} }}", names.join(", ")));
    }
    lines.extend(window.granularity.map(|unit| set("granularity", unit)));
    lines.extend(window.longest.map(|days| set("longest", &format!("{days}d"))));
    lines
}

/// The window of a search without one: a week, or the period next to it. `units`: those of relative windows, with their notations.
fn default_window(window: &WindowFinding, units: &[(char, String)]) -> String {
    let some = |unit: char, n: u32| {
        let (_, template) = units.iter().find(|(known, _)| *known == unit)?;
        Some(template.replace("{n}", &n.to_string()))
    };
    let named = |hours: i64| window.names.iter().find(|(_, known)| *known == hours).map(|(name, _)| name.clone());
    // The longest window of a few days, else the shortest one.
    let other = || {
        let few = |hours: i64| (24..=960).contains(&hours);
        let of = |(name, hours): &(String, i64)| (!few(*hours), (hours - 168).abs(), name.clone());
        window.names.iter().map(of).min().map(|(.., name)| name)
    };
    // Sent as instants, it has to be shorter than the longest window.
    let shorter =
        window.longest.filter(|days| window.is_of_instants() && *days <= 7).map(|days| (days * 24).max(2) - 1);
    let shorter = shorter.and_then(|hours| {
        let days = (hours / 24).saturating_sub(1).max(1);
        some('h', u32::try_from(hours).ok()?).or_else(|| some('d', u32::try_from(days).ok()?))
    });
    let default = shorter.or(some('d', 7)).or(some('w', 1)).or(some('h', 168));
    default.or(named(168)).or_else(other).unwrap_or_default()
}

fn sort(found: &Findings) -> Vec<String> {
    let mut lines = vec![parameter(found, "sortBy"), "values = [".into()];
    for sort in found.usable_sorts() {
        let direction = if sort.descending { "desc" } else { "asc" };
        lines.push(format!(
            "    {{ value = {}, column = {}, direction = \"{direction}\", nulls = \"last\" }},",
            quoted(&sort.value),
            quoted(&sort.column)
        ));
    }
    lines.push("]".into());
    lines
}

fn filters(found: &Findings) -> Vec<String> {
    let mut lines = match found.several.clone().unwrap_or(Several::One) {
        Several::Separated(separator) => vec![set("several", "separated"), set("separator", &separator)],
        Several::Repeated => vec![set("several", "repeat")],
        Several::One => vec![set("several", "none")],
    };
    lines.push("parameters = [".into());
    for (parameter, column) in &found.filters {
        lines.push(format!("    {{ parameter = {}, column = {} }},", quoted(parameter), quoted(column)));
    }
    lines.push("]".into());
    lines
}

fn throttle(found: &Findings) -> Vec<String> {
    let throttle = &found.throttle;
    let rules = throttle.rules.iter().map(|(status, code)| {
        let code = code.as_ref().map(|code| format!(", code = {}", quoted(code))).unwrap_or_default();
        format!(", {{ status = {status}{code} }}")
    });
    let rules: String = rules.collect();
    let mut lines = vec![format!("when = [{{ status = 429 }}{rules}]"), set("retry_after", "Retry-After")];
    lines.extend(throttle.limit.as_ref().map(|name| set("limit", name)));
    lines.extend(throttle.remaining.as_ref().map(|name| set("remaining", name)));
    if let Some((name, format)) = &throttle.reset {
        lines.extend([set("reset", name), set("reset_format", format)]);
    }
    lines
}

fn total(found: &Findings) -> Vec<String> {
    match &found.total {
        Some(path) => {
            let trust = if found.total_is_exact { "exact" } else { "advisory" };
            let relation = found.relation.as_ref().map(|path| set("relation", &pointer(path)));
            [set("trust", trust), set("at", &pointer(path))].into_iter().chain(relation).collect()
        }
        None => vec![set("trust", "absent")],
    }
}

/// The overview's counts of mentions, if they were seen to agree.
fn counts(found: &Findings) -> Option<Vec<String>> {
    found.counted.as_ref().filter(|_| found.counts)?;
    let days = found.timeline.is_some() && found.zone.is_some() && found.counts_days && !found.gaps;
    let mut lines = vec![set("trust", "exact"), set("total", "total_mentions"), format!("days = {days}")];
    let relation = found.overview_columns.path("total_relation").or(relation_apart(found));
    lines.extend(relation.map(|_| set("relation", "total_relation")));
    let text = |label: &str| found.columns.kind(label) == Some(Type::Utf8);
    lines.push("lists = [".into());
    let mut seen = Vec::new();
    for breakdown in found.breakdowns.iter().filter(|b| b.is_usable && text(&b.label)) {
        if !seen.contains(&&breakdown.label) {
            let label = quoted(&breakdown.label);
            let missing = breakdown.missing.as_ref().map(|name| format!(", missing = {}", quoted(name)));
            let missing = missing.unwrap_or_default();
            lines.push(format!("    {{ column = {label}, dimension = {label}{missing} }},"));
            seen.push(&breakdown.label);
        }
    }
    lines.push("]".into());
    Some(lines)
}

fn error(found: &Findings) -> Vec<String> {
    let Some(error) = &found.error else { return vec![set("format", "json")] };
    let mut lines = vec![set("format", if error.text { "text" } else { "json" })];
    for (key, path) in [("code", &error.code), ("message", &error.message), ("field", &error.field)] {
        lines.extend(path.as_ref().map(|path| set(key, &pointer(path))));
    }
    if error.inside_success {
        lines.push("inside_success = true".into());
        let statuses: Vec<String> =
            error.statuses.iter().map(|(code, status)| format!("{} = {status}", quoted(code))).collect();
        lines.push(format!("statuses = {{ {} }}", statuses.join(", ")));
    }
    lines
}

/// A column of a record, without a timestamp pattern.
fn column(name: &str, kind: Type, path: &Path, null: bool) -> String {
    patterned(name, kind, path, null, None)
}

/// A column of a record, with an optional timestamp pattern.
fn patterned(name: &str, kind: Type, path: &Path, null: bool, pattern: Option<&str>) -> String {
    let null = if null { "" } else { ", null = false" };
    let pattern = pattern.map(|pattern| format!(", pattern = {}", quoted(pattern))).unwrap_or_default();
    let (name, at) = (quoted(name), quoted(&pointer(path)));
    format!("    {{ name = {name}, type = \"{}\"{null}, at = {at}{pattern} }},", kind.name())
}

/// A column that repeats a value of the request.
fn asked(name: &str) -> String {
    format!("    {{ name = \"{name}\", type = \"utf8\", null = false, from = \"{name}\" }},")
}

fn extra() -> String {
    "    { name = \"extra\", type = \"json\", from = \"extra\" },".into()
}

/// Renames a field that has the name of a request column.
fn apart(name: &str) -> String {
    if ASKED.contains(&name) { format!("{name}_there") } else { name.to_owned() }
}

fn saved_searches(found: &Findings) -> Vec<String> {
    let mut lines = vec!["sections = [".to_owned()];
    for list in &found.lists {
        let fan_out = if list.fan_out { ", fan_out = true" } else { ", optional = true" };
        let layout = match &list.layout {
            ListLayout::Records => String::new(),
            ListLayout::Map(inside) => {
                let key = if *inside { "/entry name".to_owned() } else { pointer(&list.aid) };
                format!(", shape = \"entries\", key = {}, value = \"\"", quoted(&key))
            }
            ListLayout::Folders(inside, deeper) => {
                let deeper = deeper.as_ref().map(|path| format!(", deeper = {}", quoted(&pointer(path))));
                format!(", inside = {}{}", quoted(&pointer(inside)), deeper.unwrap_or_default())
            }
        };
        let (at, label) = (quoted(&pointer(&list.at)), quoted(&list.label));
        lines.push(format!("    {{ at = {at}, label = {label}{layout}{fan_out} }},"));
    }
    if found.lists.is_empty() {
        // Not found: a place that no response has.
        lines.push("    { at = \"/saved searches\", label = \"saved\", fan_out = true },".into());
    }
    lines.extend(["]".into(), "columns = [".into()]);
    let aid = found.lists.first().map_or_else(|| vec!["aid".to_owned()], |list| list.aid.clone());
    lines.push(column("aid", Type::Utf8, &aid, false));
    let kind = found.saved_searches.path("kind").filter(|_| found.lists.len() == 1);
    match kind {
        Some(path) => lines.push(column("kind", Type::Utf8, path, false)),
        None => lines.push("    { name = \"kind\", type = \"utf8\", null = false, from = \"section\" },".into()),
    }
    let others = found.saved_searches.columns.iter().filter(|(name, path, _)| name != "kind" && *path != aid);
    // Times without a zone are texts: nothing shows their zone.
    let kind_of = |path: &Path, kind: Type| if found.local_in_list.contains(path) { Type::Utf8 } else { kind };
    lines.extend(others.map(|(name, path, kind)| column(&apart(name), kind_of(path, *kind), path, true)));
    lines.extend([extra(), "]".into()]);
    if let Some(path) = found.saved_searches.path("kind").filter(|_| kind.is_none()) {
        lines.push(format!("ignore = [{}]", quoted(&pointer(path))));
    }
    lines
}

fn mention_table(found: &Findings) -> Vec<String> {
    let Some(at) = &found.mentions else {
        // Not found: use the section of the built-in profile.
        return vec![
            "sections = [{ at = \"/mentions/items\" }]".into(),
            set("id", "id"),
            "columns = [".into(),
            asked("aid"),
            "    { name = \"id\", type = \"utf8\", null = false, at = \"/id\" },".into(),
            extra(),
            asked("duration"),
            asked("timezone"),
            "]".into(),
        ];
    };
    let mut lines = vec![format!("sections = [{{ at = {} }}]", quoted(&pointer(at))), set("id", "id")];
    // Without an id, a mention is known by all that it says apart from counts, which change.
    let named = found.columns.path("id").is_some() || found.id_of_two.is_some();
    if !named {
        let taken = |kind: Type| matches!(kind, Type::Utf8 | Type::Timestamp);
        let columns = found.columns.columns.iter().filter(|(_, _, kind)| taken(*kind));
        let columns: Vec<String> =
            columns.map(|(name, path, kind)| quoted(&column_name(name, known(found, path, *kind)))).collect();
        lines.push(format!("stand_in = [{}]", columns.join(", ")));
    }
    let is_time = |name: &str| kind_of(found, name) == Some(Type::Timestamp);
    // The empty path: none of the times is the one that windows refer to.
    let time = found.time_name();
    if is_time(time) && found.window_time.as_ref().is_none_or(|path| !path.is_empty()) {
        lines.push(set("time", time));
    }
    if is_time("updated_at") {
        lines.push(set("version", "updated_at"));
    }
    lines.extend(["columns = [".into(), asked("aid")]);
    if let Some([first, second]) = &found.id_of_two {
        let (at, with) = (quoted(&pointer(&located(found, first))), quoted(&pointer(&located(found, second))));
        lines.push(format!(
            "    {{ name = \"id\", type = \"utf8\", null = false, at = {at}, joined_with = [{with}] }},"
        ));
    } else if !named {
        // No record has it: the columns of `stand_in` take its place.
        lines.push("    { name = \"id\", type = \"utf8\", null = false, at = \"/no id\" },".into());
    }
    let columns = found.columns.columns.iter();
    lines.extend(columns.map(|(name, path, kind)| mention_column(found, name, path, known(found, path, *kind))));
    lines.extend([extra(), asked("duration"), asked("timezone"), "]".into()]);
    lines
}

/// A column of mentions.
fn mention_column(found: &Findings, name: &str, path: &Path, kind: Type) -> String {
    let needed = name == "id" || (name == found.time_name() && kind == Type::Timestamp);
    // An id is an integer or a string; values of other types do not identify a mention.
    let kind = if name == "id" && kind != Type::Int64 { Type::Utf8 } else { kind };
    let name = &column_name(name, kind);
    let pattern = found.columns.patterns.iter().find(|(known, _)| known == path).map(|(_, pattern)| *pattern);
    let pattern = pattern.filter(|_| kind == Type::Timestamp);
    let line = patterned(name, kind, &located(found, path), !needed, pattern);
    let time = found.columns.times_of_day.iter().find(|(day, _)| day == path);
    let time = time.filter(|_| kind == Type::Timestamp);
    let zone = found.time_zone.filter(|_| kind == Type::Timestamp).map(|zone| quoted(&zone.to_string()));
    let zone = zone.map(|zone| match found.other_time_zones.as_slice() {
        [] => zone,
        others => {
            let others = others.iter().map(|other| quoted(&other.to_string()));
            format!("[{}]", [zone].into_iter().chain(others).collect::<Vec<_>>().join(", "))
        }
    });
    let zone = zone.or_else(|| found.is_text_of_time(path).then(|| quoted(UNKNOWN_ZONE)));
    let line = match zone {
        Some(zone) => line.replace(" },", &format!(", zone = {zone} }},")),
        None => line,
    };
    let words: Vec<String> =
        found.null_words.iter().filter(|(of, _)| of == path).map(|(_, word)| quoted(word)).collect();
    let line = match words.is_empty() {
        true => line,
        false => line.replace(" },", &format!(", nulls = [{}] }},", words.join(", "))),
    };
    match time {
        Some((_, time)) => line.replace(" },", &format!(", time_at = {} }},", quoted(&pointer(&located(found, time))))),
        None => line,
    }
}

/// The path of a field of mentions as the profile has it: by its position if mentions are arrays.
fn located(found: &Findings, path: &Path) -> Path {
    let position = |first: &String| found.fields.as_ref()?.iter().position(|name| name == first);
    let at = path.first().and_then(position);
    at.map_or(path.clone(), |at| std::iter::once(at.to_string()).chain(path.iter().skip(1).cloned()).collect())
}

/// The type of a field: times of an unknown zone or form are texts.
fn known(found: &Findings, path: &Path, kind: Type) -> Type {
    if found.is_text_of_time(path) { Type::Utf8 } else { kind }
}

/// The type of a column of mentions.
fn kind_of(found: &Findings, name: &str) -> Option<Type> {
    Some(known(found, found.columns.path(name)?, found.columns.kind(name)?))
}

/// The name of a column of mentions: a field that is not a timestamp must not become their time.
fn column_name(name: &str, kind: Type) -> String {
    if name == "published_at" && kind != Type::Timestamp { "published_text".to_owned() } else { apart(name) }
}

fn below(found: &Findings) -> String {
    pointer(found.overview.as_deref().unwrap_or_default())
}

/// Path of the value that says if the overview's total is exact, unless it is one of the overview's columns.
fn relation_apart(found: &Findings) -> Option<&Path> {
    found.counted_relation.as_ref().filter(|_| found.overview_columns.path("total_relation").is_none())
}

fn overview(found: &Findings) -> Vec<String> {
    let mut lines = vec![format!("sections = [{{ at = {}, shape = \"record\" }}]", quoted(&below(found)))];
    lines.extend(["columns = [".into(), asked("aid"), asked("timezone"), asked("duration")]);
    let Columns { columns, .. } = &found.overview_columns;
    lines.extend(columns.iter().map(|(name, path, kind)| column(&apart(name), *kind, path, true)));
    // The total may be outside the overview.
    if let Some(total) = found.counted.as_ref().filter(|_| found.overview_columns.path("total_mentions").is_none()) {
        let at = quoted(&pointer(total));
        lines.push(format!("    {{ name = \"total_mentions\", type = \"int64\", at = {at}, scope = \"answer\" }},"));
    }
    if let Some(relation) = relation_apart(found) {
        let at = quoted(&pointer(relation));
        lines.push(format!("    {{ name = \"total_relation\", type = \"utf8\", at = {at}, scope = \"answer\" }},"));
    }
    lines.extend([extra(), "]".into()]);
    let depth = found.overview.as_ref().map_or(0, Vec::len);
    let shown = found.timeline.iter().map(|(at, _)| at).chain(found.breakdowns.iter().map(|breakdown| &breakdown.at));
    let shown = each_once(shown.map(|at| quoted(&pointer(&at[depth..]))));
    lines.push(format!("ignore = [{}]", shown.join(", ")));
    lines
}

fn volume(found: &Findings) -> Vec<String> {
    // Days of an unknown zone must not be taken for those of another one: the section has a place that no response has.
    let Some((at, line)) = found.timeline.as_ref().filter(|_| !found.zone_is_unknown) else {
        let (why, place) = match found.zone_is_unknown {
            true => ("the zone in which the service counts days is not known", "days of an unknown zone"),
            false => ("the overview was not seen to have a timeline", "no timeline"),
        };
        return vec![
            set("unsupported", why),
            format!("sections = [{{ at = {} }}]", quoted(&format!("{}/{place}", below(found)))),
            "columns = [".into(),
            asked("aid"),
            "    { name = \"bucket_start\", type = \"timestamp\", at = \"/start\" },".into(),
            "    { name = \"mentions\", type = \"int64\", at = \"/count\" },".into(),
            asked("duration"),
            asked("timezone"),
            "]".into(),
        ];
    };
    let (entries, [start, count]) = layout(line, ["start", "count"]);
    let mut lines = vec![
        format!("sections = [{{ at = {}{entries} }}]", quoted(&pointer(at))),
        set("time", "bucket_start"),
        "columns = [".into(),
        asked("aid"),
        bucket_start(found, &start, line.pattern),
    ];
    lines.extend(line.end.as_ref().map(|end| column("bucket_end", Type::Timestamp, &vec![end.clone()], true)));
    lines.push(column("mentions", Type::Int64, &count, true));
    lines.extend([asked("duration"), asked("timezone"), "]".into()]);
    lines
}

/// The column of the beginning of a day. Days without a time are those of the zone that the service uses whatever is sent.
fn bucket_start(found: &Findings, at: &Path, pattern: Option<&str>) -> String {
    let line = patterned("bucket_start", Type::Timestamp, at, false, pattern);
    let zone = found.timeline_zone.filter(|zone| *zone != Clock::UTC && found.has_plain_days);
    zone.map_or(line.clone(), |zone| line.replace(" },", &format!(", zone = {} }},", quoted(&zone.to_string()))))
}

/// Returns the keys that describe the layout of a section's entries, and the paths of an entry's two values. An object
/// of numbers has no member names; its values get the names in `own`.
fn layout(series: &Series, own: [&str; 2]) -> (String, [Path; 2]) {
    let place = |name: &str| vec![name.to_owned()];
    let (shape, columns) = match series.layout {
        Layout::Objects => (String::new(), [place(&series.name), path_of(&series.count)]),
        Layout::Pairs => (String::new(), [place(&series.name), place(&series.count)]),
        // The members of an entry's object are fields of the row.
        Layout::Nested => {
            let name = own.map(place)[0].clone();
            (
                format!(", shape = \"entries\", key = {}, value = \"\"", quoted(&pointer(&name))),
                [name, place(&series.count)],
            )
        }
        Layout::Map => {
            let [name, count] = own.map(place);
            let (key, value) = (quoted(&pointer(&name)), quoted(&pointer(&count)));
            (format!(", shape = \"entries\", key = {key}, value = {value}"), [name, count])
        }
    };
    let within = series.within.as_ref().map(|Facet { name, is, entries }| {
        let [name, entries] = [name, entries].map(|member| quoted(&pointer(&place(member))));
        format!(", inside = {entries}, only = {{ at = {name}, is = {} }}", quoted(is))
    });
    (shape + &within.unwrap_or_default(), columns)
}

fn breakdowns(found: &Findings) -> Vec<String> {
    // All sections of a table share the member names of their entries; lists with other names are omitted.
    let is_map = |breakdown: &&Breakdown| breakdown.series.layout == Layout::Map;
    let is_open = |breakdown: &&Breakdown| matches!(breakdown.series.layout, Layout::Map | Layout::Nested);
    let series = found.breakdowns.iter().find(|breakdown| !is_open(breakdown));
    let nested = || found.breakdowns.iter().find(|breakdown| !is_map(breakdown));
    let series = series.or_else(nested).map(|breakdown| &breakdown.series);
    let own = series.map_or(["name", "count"], |series| {
        [if series.name.is_empty() { "entry name" } else { series.name.as_str() }, series.count.as_str()]
    });
    let fits = |breakdown: &&Breakdown| {
        let nested = breakdown.series.layout == Layout::Nested && breakdown.series.count == own[1];
        let alike = |series: &Series| {
            let of = |series: &Series| (series.layout, series.name.clone(), series.count.clone());
            of(series) == of(&breakdown.series)
        };
        nested || is_map(breakdown) || series.is_some_and(alike)
    };
    let mut lines = vec!["sections = [".to_owned()];
    for breakdown in found.breakdowns.iter().filter(fits) {
        let (at, label) = (quoted(&pointer(&breakdown.at)), quoted(&breakdown.label));
        let (entries, _) = layout(&breakdown.series, own);
        lines.push(format!("    {{ at = {at}, label = {label}{entries}, optional = true }},"));
    }
    if found.breakdowns.is_empty() {
        lines.push(format!(
            "    {{ at = {}, label = \"none\", optional = true }},",
            quoted(&format!("{}/no lists", below(found)))
        ));
    }
    lines.extend(["]".into(), "columns = [".into(), asked("aid")]);
    lines.push("    { name = \"dimension\", type = \"utf8\", null = false, from = \"section\" },".into());
    lines.push("    { name = \"rank\", type = \"int64\", null = false, from = \"rank\" },".into());
    let inner = series.is_some_and(|series| series.layout == Layout::Objects);
    let [name, count] = [vec![own[0].to_owned()], if inner { path_of(own[1]) } else { vec![own[1].to_owned()] }];
    lines.push(column("name", Type::Utf8, &name, true));
    lines.push(column("mentions", Type::Int64, &count, true));
    lines.extend([asked("duration"), asked("timezone"), "]".into()]);
    lines
}
