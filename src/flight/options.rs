//! Messages about the options of a session, which the Flight library lacks (Arrow Flight RPC, Flight.proto).

use std::collections::HashMap;

use prost::Message;

/// Options to set, by name.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SetSessionOptionsRequest {
    #[prost(map = "string, message", tag = "1")]
    pub(super) session_options: HashMap<String, SessionOptionValue>,
}

/// Options that could not be set, by name.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SetSessionOptionsResult {
    #[prost(map = "string, message", tag = "1")]
    pub(super) errors: HashMap<String, OptionError>,
}

/// Why an option could not be set.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct OptionError {
    #[prost(enumeration = "OptionErrorValue", tag = "1")]
    pub(super) value: i32,
}

/// The reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum OptionErrorValue {
    Unspecified = 0,
    InvalidName = 1,
    InvalidValue = 2,
    Error = 3,
}

/// A question without content.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct GetSessionOptionsRequest {}

/// All options, by name.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GetSessionOptionsResult {
    #[prost(map = "string, message", tag = "1")]
    pub(super) session_options: HashMap<String, SessionOptionValue>,
}

/// What came of closing a session.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct CloseSessionResult {
    #[prost(enumeration = "CloseSessionStatus", tag = "1")]
    pub(super) status: i32,
}

/// Whether a session is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum CloseSessionStatus {
    Unspecified = 0,
    Closed = 1,
    Closing = 2,
    NotCloseable = 3,
}

/// The value of an option; none unsets it.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SessionOptionValue {
    #[prost(oneof = "OptionValue", tags = "1, 2, 3, 4, 5")]
    pub(super) option_value: Option<OptionValue>,
}

/// A value by its type.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum OptionValue {
    #[prost(string, tag = "1")]
    String(String),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(sfixed64, tag = "3")]
    Int64(i64),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(message, tag = "5")]
    StringList(StringList),
}

/// Several texts.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StringList {
    #[prost(string, repeated, tag = "1")]
    pub(super) values: Vec<String>,
}

impl SessionOptionValue {
    /// A text.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { option_value: Some(OptionValue::String(text.into())) }
    }

    /// The value as SET takes it; `None` for a list and for none.
    pub(super) fn as_setting(&self) -> Option<String> {
        match self.option_value.as_ref()? {
            OptionValue::String(text) => Some(text.clone()),
            OptionValue::Bool(switch) => Some(switch.to_string()),
            OptionValue::Int64(number) => Some(number.to_string()),
            OptionValue::Double(number) => Some(number.to_string()),
            OptionValue::StringList(_) => None,
        }
    }
}
