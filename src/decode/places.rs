//! Pointers of the values in a JSON text, without building the document.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Calls `found` with the JSON pointer (RFC 6901) of each value that is not an object. Arrays count as one value. For
/// invalid JSON, the values up to the error are reported.
pub(super) fn each(text: &str, mut found: impl FnMut(&str)) {
    let mut json = serde_json::Deserializer::from_str(text);
    // Invalid JSON was rejected before.
    let _ = Places { at: &mut String::new(), found: &mut found }.deserialize(&mut json);
}

struct Places<'p, F> {
    at: &'p mut String,
    found: &'p mut F,
}

impl<'de, F: FnMut(&str)> DeserializeSeed<'de> for Places<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: FnMut(&str)> Visitor<'de> for Places<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key::<String>()? {
            let length = self.at.len();
            self.at.push('/');
            self.at.push_str(&name.replace('~', "~0").replace('/', "~1"));
            members.next_value_seed(Places { at: self.at, found: self.found })?;
            self.at.truncate(length);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        (self.found)(self.at);
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        (self.found)(self.at);
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        (self.found)(self.at);
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        (self.found)(self.at);
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        (self.found)(self.at);
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        (self.found)(self.at);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        (self.found)(self.at);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_below_objects_are_found_once_each() {
        let mut found = Vec::new();
        each(r#"{"a":1,"b":{"c/d":[{"x":1}],"e~":null,"f":{}},"g":"s"}"#, |at| found.push(at.to_owned()));
        assert_eq!(found, ["/a", "/b/c~1d", "/b/e~0", "/g"]);
    }
}
