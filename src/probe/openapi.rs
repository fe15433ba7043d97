//! Facts from an OpenAPI document (versions 3.0 and 3.1, JSON or YAML): names, values, formats and limits of the parameters of
//! the search, and the header of the key.
//!
//! ```text
//! text ─YAML, of which JSON is a part─▶ GET …/search: parameters, schemas, keys ─▶ facts, which are tried first
//! ```
//!
//! Documents often have mistakes in parts that nobody reads, and the versions differ in parts that are not needed here. So no
//! part but the needed ones is read, and what is not as the specification says is left out. Pure.

use http::HeaderMap;
use regex::Regex;
use serde_json::Value;
use url::Url;

use super::candidates::{AID, DURATION, OFFSET, SIZE, SORT, TIMEZONE, format_named, pair, shape_of_instant};
use super::facts::Facts;
use super::observations::Several;
use super::refusal::{examples, key_forms, values};
use super::shape::each_once;
use super::vocabulary::{self, plain};
use crate::error::{Error, ErrorKind, Result, one_line};

impl Facts {
    /// Adds what an OpenAPI document says about the parameters of the search and about the key.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the text is neither JSON nor YAML, or if it describes no `GET` of a path that ends with
    /// `/search`.
    pub fn openapi(&mut self, text: &str) -> Result<()> {
        let bad = |what: String| {
            let advice = "give an OpenAPI document of version 3 that describes GET …/search";
            Error::new(ErrorKind::Config, what).advice(advice)
        };
        let document: yaml_serde::Value = yaml_serde::from_str(text)
            .map_err(|error| bad(format!("invalid OpenAPI document: {}", one_line(&error.to_string()))))?;
        let document = Document(json(document));
        if document.0.get("swagger").is_some() {
            return Err(bad("the document is of Swagger 2.0, not of OpenAPI 3".to_owned()));
        }
        let (path, item) = document
            .search()
            .ok_or_else(|| bad("the document has no GET of a path that ends with /search".to_owned()))?;
        let base = document.server().and_then(|server| {
            let before = path.strip_suffix("/search").unwrap_or_default();
            Url::parse(&format!("{}{before}", server.trim_end_matches('/'))).ok()
        });
        self.base_url = self.base_url.take().or(base.map(|base| base.as_str().trim_end_matches('/').to_owned()));
        self.key_of(&document, item);
        let lists = [item.get("parameters"), item.pointer("/get/parameters")].into_iter().flatten();
        let parameters: Vec<Described> = lists
            .filter_map(Value::as_array)
            .flatten()
            .filter_map(|parameter| Described::of(document.resolved(parameter), &document))
            .collect();
        self.described.extend(parameters.iter().map(|parameter| parameter.name.clone()));
        self.ends_of(&parameters);
        parameters.iter().for_each(|parameter| self.take(parameter));
        Ok(())
    }

    /// Takes the form of the key from the security scheme that applies, else from the first one.
    fn key_of(&mut self, document: &Document, item: &Value) {
        let Some(schemes) = document.0.pointer("/components/securitySchemes").and_then(Value::as_object) else {
            return;
        };
        let required = [item.pointer("/get/security"), document.0.get("security")].into_iter().flatten();
        let required = required.filter_map(Value::as_array).flatten().filter_map(Value::as_object);
        let named = required.flat_map(|names| names.keys()).find_map(|name| schemes.get(name));
        let Some(scheme) = named.or_else(|| schemes.values().next()).map(|scheme| document.resolved(scheme)) else {
            return;
        };
        let text = |name: &str| scheme.get(name).and_then(Value::as_str).unwrap_or_default();
        let form = match (text("type"), text("in")) {
            ("apiKey", "header") => {
                let shown = key_forms(&HeaderMap::new(), text("description"));
                let shown = shown.into_iter().find(|(header, _)| header.eq_ignore_ascii_case(text("name")));
                Some(shown.unwrap_or((text("name").to_owned(), "{key}".to_owned())))
            }
            ("apiKey", _) => {
                self.unused.push(format!("the key in `{}`: not used, a key must be in a header", text("name")));
                None
            }
            ("http", _) => {
                let format = match text("scheme").to_ascii_lowercase().as_str() {
                    "basic" => "Basic {base64}".to_owned(),
                    "bearer" => "Bearer {key}".to_owned(),
                    _ => format!("{} {{key}}", text("scheme")),
                };
                Some(("Authorization".to_owned(), format))
            }
            _ => None,
        };
        self.auth = self.auth.take().or(form.filter(|(header, _)| !header.is_empty()));
    }

    /// Takes the parameters with the ends of a window.
    fn ends_of(&mut self, parameters: &[Described]) {
        let names: Vec<String> = parameters.iter().map(|parameter| parameter.name.clone()).collect();
        let pairs = vocabulary::ends_among(Some(&names)).into_iter();
        let mut pairs = pairs.filter_map(|(since, until)| {
            let parameter = parameters.iter().find(|parameter| parameter.name == since)?;
            Some((since, until, parameter.instants()?))
        });
        self.described_ends = self.described_ends.take().or(pairs.next());
    }

    fn take(&mut self, parameter: &Described) {
        let Described { name, .. } = parameter;
        let is_end = self.described_ends.as_ref().is_some_and(|(since, until, _)| name == since || name == until);
        match name.as_str() {
            AID | OFFSET => {}
            SIZE => {
                self.most.extend(parameter.most.map(|most| (name.clone(), most)));
                self.least.extend(parameter.least.filter(|least| *least > 1).map(|least| (name.clone(), least)));
                if parameter.words.len() > 1 {
                    self.complete.push((name.clone(), parameter.words.clone()));
                }
            }
            DURATION | SORT | TIMEZONE => {
                if parameter.words.len() > 1 && !parameter.is_open {
                    self.complete.push((name.clone(), parameter.words.clone()));
                }
                let open = parameter.words.iter().filter(|_| parameter.is_open);
                let shown =
                    open.chain(&parameter.shown).filter(|word| !parameter.words.contains(word) || parameter.is_open);
                let known: Vec<String> = self.values(name);
                self.given.extend(shown.filter(|word| !known.contains(word)).map(|word| pair(name, word)));
            }
            _ if is_end => {}
            _ => {
                let likely = vocabulary::FLAG_WORDS.iter().any(|word| plain(name).contains(word));
                let values = parameter.words.iter().filter(|_| likely).cloned();
                let on = parameter.is_switch.then(|| "true".to_owned());
                self.flags.extend(on.into_iter().chain(values).map(|value| pair(name, value)));
                self.several = self.several.take().or_else(|| parameter.several.clone());
            }
        }
    }
}

/// A parameter, as the document describes it.
struct Described {
    name: String,
    /// Values of an enumeration.
    words: Vec<String>,
    /// Set if there are other values besides.
    is_open: bool,
    /// The default, and examples.
    shown: Vec<String>,
    /// Description of the parameter and of its schema.
    text: String,
    format: Option<String>,
    least: Option<u64>,
    most: Option<u64>,
    /// Set if it is a boolean.
    is_switch: bool,
    /// Form of several values.
    several: Option<Several>,
}

impl Described {
    /// Reads a parameter of the query; `None` for others.
    fn of(parameter: &Value, document: &Document) -> Option<Self> {
        /// Values of relative windows that are compared with a pattern.
        const PERIODS: [&str; 8] = ["60d", "48h", "3w", "P60D", "PT48H", "60 days", "60days", "60D"];
        let name = parameter.get("name")?.as_str()?.to_owned();
        if parameter.get("in")?.as_str()? != "query" {
            return None;
        }
        let mut schemas = Vec::new();
        if let Some(schema) = parameter.get("schema") {
            document.leaves(schema, &mut schemas, 0);
        }
        let number = |key: &str| schemas.iter().find_map(|schema| schema.get(key)?.as_u64());
        let each = |key: &str| schemas.iter().filter_map(|schema| schema.get(key)).collect::<Vec<&Value>>();
        let items = |values: Vec<&Value>| -> Vec<String> {
            let inner = values.into_iter().flat_map(|value| value.as_array().into_iter().flatten());
            inner.filter_map(written).collect()
        };
        let words = each_once(items(each("enum")).into_iter().chain(each("const").into_iter().filter_map(written)));
        let texts = parameter.get("description").into_iter().chain(each("description"));
        let text = texts.filter_map(Value::as_str).collect::<Vec<_>>().join(". ");
        let examples_of = parameter.get("examples").and_then(Value::as_object).into_iter().flatten();
        let of_parameter =
            parameter.get("example").into_iter().chain(examples_of.filter_map(|(_, one)| one.get("value")));
        let of_schemas = each("default").into_iter().chain(each("example"));
        let shown = of_parameter.chain(of_schemas).filter_map(written).chain(items(each("examples")));
        let told = [examples(&text), values(&text)].concat();
        // A word of a description is a value if a service could mean it: one word with a capital, a digit or a mark.
        let told =
            told.into_iter().filter(|word| !word.contains(' ') && word.contains(|c: char| !c.is_ascii_lowercase()));
        let patterns: Vec<Regex> =
            each("pattern").into_iter().filter_map(|pattern| Regex::new(pattern.as_str()?).ok()).collect();
        let matching = PERIODS
            .into_iter()
            .filter(|period| name == DURATION && patterns.iter().any(|pattern| pattern.is_match(period)));
        let shown = each_once(shown.chain(told).chain(matching.map(str::to_owned)));
        let (style, explode) = (parameter.get("style").and_then(Value::as_str), parameter.get("explode"));
        let explode = explode.and_then(Value::as_bool).unwrap_or(matches!(style, None | Some("form")));
        let is_array = schemas.iter().any(|schema| is(schema, "array")) && name != AID;
        let several = is_array.then_some(match (style, explode) {
            (None | Some("form"), true) => Several::Repeated,
            (Some("pipeDelimited"), false) => Several::Separated("|".to_owned()),
            (Some("spaceDelimited"), false) => Several::Separated(" ".to_owned()),
            _ => Several::Separated(",".to_owned()),
        });
        Some(Self {
            is_open: words.is_empty() || !patterns.is_empty() || schemas.iter().any(|schema| is_free(schema)),
            words,
            shown,
            text,
            format: each("format").into_iter().find_map(|format| Some(format.as_str()?.to_owned())),
            least: number("minimum"),
            most: number("maximum"),
            is_switch: schemas.iter().any(|schema| is(schema, "boolean")),
            several,
            name,
        })
    }

    /// The format of instants that the parameter takes, if it takes any.
    fn instants(&self) -> Option<&'static str> {
        let named = match self.format.as_deref() {
            Some("date") => Some("date"),
            Some("date-time") => Some("rfc3339"),
            _ => None,
        };
        let shown = || self.shown.iter().find_map(|value| shape_of_instant(value));
        named.or_else(shown).or_else(|| format_named(&self.text))
    }
}

/// True if a schema is of a type, among others.
fn is(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == kind,
        Some(Value::Array(several)) => several.iter().any(|one| one == kind),
        _ => false,
    }
}

/// True if a schema takes any text.
fn is_free(schema: &Value) -> bool {
    is(schema, "string") && schema.get("enum").is_none() && schema.get("const").is_none()
}

/// A value as a parameter has it.
fn written(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A document, as JSON.
struct Document(Value);

impl Document {
    /// The path of the search, and what is below it.
    fn search(&self) -> Option<(&str, &Value)> {
        let paths = self.0.get("paths")?.as_object()?;
        let paths = paths.iter().map(|(path, item)| (path.trim_end_matches('/'), self.resolved(item)));
        paths.into_iter().find(|(path, item)| path.ends_with("/search") && item.get("get").is_some())
    }

    /// The address of the first server, with the defaults of its variables.
    fn server(&self) -> Option<String> {
        let server = self.0.pointer("/servers/0")?;
        let variables = server.get("variables").and_then(Value::as_object).into_iter().flatten();
        let url = server.get("url")?.as_str()?.to_owned();
        Some(variables.fold(url, |url, (name, variable)| {
            let default = variable.get("default").and_then(Value::as_str).unwrap_or_default();
            url.replace(&format!("{{{name}}}"), default)
        }))
    }

    /// The part of the document to which a reference points, or the value itself.
    fn resolved<'v>(&'v self, value: &'v Value) -> &'v Value {
        let pointer = value.get("$ref").and_then(Value::as_str).and_then(|at| at.strip_prefix('#'));
        pointer.and_then(|pointer| self.0.pointer(pointer)).unwrap_or(value)
    }

    /// The schemas that a value may have, those of the items of an array included.
    fn leaves<'v>(&'v self, schema: &'v Value, found: &mut Vec<&'v Value>, depth: usize) {
        /// Schemas in schemas that are followed: they may contain themselves.
        const DEEPEST: usize = 8;
        let schema = self.resolved(schema);
        if depth < DEEPEST {
            let several =
                ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
            several.chain(schema.get("items")).for_each(|inner| self.leaves(inner, found, depth + 1));
        }
        found.push(schema);
    }
}

/// A value of YAML as JSON: names of members that are numbers or words become text.
fn json(value: yaml_serde::Value) -> Value {
    match value {
        yaml_serde::Value::Mapping(members) => {
            let name = |name: &yaml_serde::Value| match name {
                yaml_serde::Value::String(name) => name.clone(),
                other => json(other.clone()).to_string(),
            };
            Value::Object(members.into_iter().map(|(key, value)| (name(&key), json(value))).collect())
        }
        yaml_serde::Value::Sequence(items) => Value::Array(items.into_iter().map(json).collect()),
        yaml_serde::Value::Tagged(tagged) => json(tagged.value),
        scalar => serde_json::to_value(scalar).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(text: &str) -> Facts {
        let mut facts = Facts::default();
        facts.openapi(text).expect("facts");
        facts
    }

    #[test]
    fn the_description_of_the_simulator_is_read() {
        let facts = facts(include_str!("../../crates/simulator/src/openapi.yaml"));
        assert_eq!(facts.auth, Some(("Authorization".to_owned(), "Bearer {key}".to_owned())));
        assert_eq!(facts.base_url(), Some("http://127.0.0.1:8080/v4"));
        assert_eq!((facts.most(SIZE), facts.all(SORT).len()), (Some(100), 6));
        let periods = facts.values(DURATION);
        assert!(periods.contains(&"7d".to_owned()) && periods.contains(&"48h".to_owned()), "{periods:?}");
        assert!(facts.described.contains(&"sentiment".to_owned()), "{:?}", facts.described);
    }

    const ODD: &str = r##"
openapi: 3.1.0
info: { title: x, version: 4 }
servers: [{ url: "https://{place}.example.com/api", variables: { place: { default: eu } } }]
security: [{ token: [] }]
paths:
  /v4/search:
    parameters: [{ $ref: "#/components/parameters/lang" }]
    get:
      parameters:
        - { name: duration, in: query, schema: { oneOf: [{ const: LAST_WEEK }, { const: LAST_MONTH }] } }
        - { name: publishedFrom, in: query, schema: { type: string, format: date } }
        - { name: publishedTo, in: query, schema: { type: string, format: date } }
        - { name: withDocs, in: query, schema: { type: [boolean, "null"] } }
        - { name: dataSize, in: query, schema: { enum: [10, 25] } }
        - { name: timezone, in: query, description: "Offset from UTC, such as +02:00.", schema: { type: string } }
        - { broken: true }
      responses: { 200: { description: 7 } }
components:
  parameters:
    lang: { name: lang, in: query, explode: false, schema: { type: array, items: { type: string, exclusiveMinimum: true } } }
  securitySchemes:
    other: { type: apiKey, in: query, name: key }
    token: { type: apiKey, in: header, name: Authorization, description: "Send Authorization: Token token=YOUR_KEY" }
"##;

    #[test]
    fn a_document_says_names_values_and_formats() {
        let facts = facts(ODD);
        assert_eq!(facts.auth, Some(("Authorization".to_owned(), "Token token={key}".to_owned())));
        assert_eq!(facts.base_url(), Some("https://eu.example.com/api/v4"));
        assert_eq!(facts.all(DURATION), ["LAST_WEEK", "LAST_MONTH"]);
        assert_eq!(facts.ends(), Some(("publishedFrom".to_owned(), "publishedTo".to_owned(), "date")));
        assert_eq!(facts.flags, [("withDocs".to_owned(), "true".to_owned())]);
        assert_eq!((facts.sizes(), facts.values(TIMEZONE)), (vec![10, 25], vec!["+02:00".to_owned()]));
        assert_eq!(facts.several, Some(Several::Separated(",".to_owned())));
        assert!(facts.others().is_empty(), "{:?}", facts.others());
        // The same in JSON.
        let value = json(yaml_serde::from_str(ODD).expect("a value"));
        assert_eq!(format!("{facts:?}"), format!("{:?}", self::facts(&value.to_string())));
    }

    #[test]
    fn what_is_no_description_of_a_search_is_refused() {
        for (text, what) in [
            ("swagger: '2.0'", "Swagger 2.0"),
            ("openapi: 3.0.0\npaths: { /list: { get: {} } }", "no GET of a path that ends with /search"),
            ("a: [", "invalid OpenAPI document"),
            ("just words", "no GET"),
        ] {
            let error = Facts::default().openapi(text).expect_err(text);
            assert!(error.to_string().contains(what), "{error}");
        }
    }
}
