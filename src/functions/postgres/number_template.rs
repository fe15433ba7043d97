//! Templates of numbers, such as `'FM999,999,990.00'`.
//!
//! A number has a position for its sign before its first digit, and a blank for each `9` without a digit. `FM` removes both.
//! Source: PostgreSQL documentation, "Data Type Formatting Functions".

use crate::error::{Error, ErrorKind};

/// A part of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A digit; `true` for one that is always there.
    Digit(bool),
    Point,
    Group,
    /// A sign next to the digits.
    Sign,
    /// A minus or a blank.
    Minus,
    /// A plus or a minus.
    Either,
    /// Angle brackets around what is negative.
    Brackets,
    Literal(char),
}

/// A template that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NumberTemplate {
    parts: Vec<Part>,
    /// Without blanks.
    fill: bool,
    /// Digits before and after the point.
    whole: usize,
    scale: usize,
}

/// A number in decimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Digits {
    negative: bool,
    whole: String,
    fraction: String,
}

impl Digits {
    /// Reads a number in Rust's notation; `None` for any other text.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let known = whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
        let whole = whole.trim_start_matches('0');
        known.then(|| Self {
            negative,
            whole: if whole.is_empty() { "0".to_owned() } else { whole.to_owned() },
            fraction: fraction.to_owned(),
        })
    }

    /// The same with this many digits after the point, half away from zero.
    fn rounded(&self, scale: usize) -> Self {
        let mut digits: Vec<u8> = self.whole.bytes().chain(self.fraction.bytes()).collect();
        let kept = self.whole.len() + scale;
        let up = digits.get(kept).is_some_and(|next| *next >= b'5');
        digits.resize(kept, b'0');
        if up {
            let mut at = kept;
            loop {
                match at.checked_sub(1) {
                    Some(before) if digits[before] == b'9' => {
                        digits[before] = b'0';
                        at = before;
                    }
                    Some(before) => {
                        digits[before] += 1;
                        break;
                    }
                    None => {
                        digits.insert(0, b'1');
                        break;
                    }
                }
            }
        }
        let fraction = digits.split_off(digits.len() - scale);
        let text = |digits: Vec<u8>| digits.into_iter().map(char::from).collect::<String>();
        let zero = digits.iter().chain(&fraction).all(|digit| *digit == b'0');
        Self { negative: self.negative && !zero, whole: text(digits), fraction: text(fraction) }
    }
}

impl NumberTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] naming the pattern that has no counterpart.
    pub(super) fn read(template: &str) -> Result<Self, Error> {
        let (mut parts, mut fill) = (Vec::new(), false);
        let mut rest = template;
        while let Some(next) = rest.chars().next() {
            let starts = |word: &str| rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
            let unknown = ["EEEE", "TH", "RN", "PL", "V", "L", "#"].into_iter().find(|word| starts(word));
            if let Some(word) = unknown {
                let line = format!("to_char: `{word}` is not supported in a template of numbers");
                return Err(Error::new(ErrorKind::Unsupported, line).advice("put text in double quotes"));
            }
            let words =
                [("FM", None), ("MI", Some(Part::Minus)), ("SG", Some(Part::Either)), ("PR", Some(Part::Brackets))];
            if let Some((word, part)) = words.into_iter().find(|(word, _)| starts(word)) {
                fill |= part.is_none();
                parts.extend(part);
                rest = &rest[word.len()..];
                continue;
            }
            if let Some((quoted, after)) = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
                parts.extend(quoted.chars().map(Part::Literal));
                rest = after;
                continue;
            }
            parts.push(match next {
                '9' => Part::Digit(false),
                '0' => Part::Digit(true),
                '.' | 'D' | 'd' => Part::Point,
                ',' | 'G' | 'g' => Part::Group,
                'S' | 's' => Part::Sign,
                other => Part::Literal(other),
            });
            rest = &rest[next.len_utf8()..];
        }
        let point = parts.iter().position(|part| *part == Part::Point).unwrap_or(parts.len());
        let digits = |parts: &[Part]| parts.iter().filter(|part| matches!(part, Part::Digit(_))).count();
        let (whole, scale) = (digits(&parts[..point]), digits(&parts[point..]));
        Ok(Self { parts, fill, whole, scale })
    }

    /// The number of digits after the point.
    pub(super) fn scale(&self) -> usize {
        self.scale
    }

    /// True for a sign before the first digit.
    fn has_sign_first(&self) -> bool {
        let first_digit = self.parts.iter().position(|part| matches!(part, Part::Digit(_)));
        let sign_at = self.parts.iter().position(|part| *part == Part::Sign);
        sign_at.zip(first_digit).is_some_and(|(sign, digit)| sign < digit)
    }

    /// The sign or blank before the first digit.
    fn lead(&self, negative: bool) -> &'static str {
        let blank = if self.fill { "" } else { " " };
        let mut parts = self.parts.iter();
        match parts.find(|part| matches!(part, Part::Sign | Part::Minus | Part::Either | Part::Brackets)) {
            None if negative => "-",
            None => blank,
            Some(Part::Sign) if self.has_sign_first() => match negative {
                true => "-",
                false => "+",
            },
            Some(Part::Brackets) if negative => "<",
            Some(Part::Brackets) => blank,
            Some(_) => "",
        }
    }

    /// Number of digits of a fraction that are shown. With FM, zeros at the end are dropped if the template has no zero there.
    fn shown(&self, fraction: &str, point: usize) -> usize {
        let mut shown = fraction.len();
        if self.fill {
            let digits = self.parts[point..].iter().filter(|part| matches!(part, Part::Digit(_)));
            let kept = digits.enumerate().filter(|(_, part)| **part == Part::Digit(true)).map(|(at, _)| at + 1).max();
            while shown > kept.unwrap_or(0) && fraction.as_bytes()[shown - 1] == b'0' {
                shown -= 1;
            }
        }
        shown
    }

    /// The number in this form; `#` for digits that do not fit.
    pub(super) fn text(&self, number: &Digits) -> String {
        let Digits { negative, whole, fraction } = number.rounded(self.scale);
        let zero = whole == "0" && fraction.bytes().all(|digit| digit == b'0');
        let beyond = whole.len() > self.whole;
        let missing = self.whole.saturating_sub(whole.len());
        let point = self.parts.iter().position(|part| *part == Part::Point).unwrap_or(self.parts.len());
        let padded = self.parts[..point].iter().position(|part| *part == Part::Digit(true));
        let sign_first = self.has_sign_first();
        let blank = if self.fill { "" } else { " " };
        let lead = self.lead(negative);
        let shown = self.shown(&fraction, point);
        let (mut text, mut started, mut place, mut decimal) = (String::new(), false, 0, 0);
        let begin = |text: &mut String, started: &mut bool| {
            if !*started {
                text.push_str(lead);
                *started = true;
            }
        };
        for (at, part) in self.parts.iter().enumerate() {
            match part {
                Part::Digit(_) if beyond => {
                    begin(&mut text, &mut started);
                    text.push('#');
                }
                Part::Digit(always) if at < point => {
                    if place < missing {
                        if padded.is_some_and(|padded| at >= padded) {
                            begin(&mut text, &mut started);
                            text.push('0');
                        } else {
                            text.push_str(blank);
                        }
                    } else if whole == "0" && !always && padded.is_none() && self.scale > 0 && !(self.fill && zero) {
                        text.push_str(blank);
                    } else {
                        begin(&mut text, &mut started);
                        text.push_str(&whole[place - missing..=place - missing]);
                    }
                    place += 1;
                }
                Part::Digit(_) => {
                    if decimal < shown {
                        text.push_str(&fraction[decimal..=decimal]);
                    }
                    decimal += 1;
                }
                Part::Point if self.scale > 0 || beyond => {
                    begin(&mut text, &mut started);
                    text.push('.');
                }
                Part::Point => {}
                Part::Group => text.push_str(if started { "," } else { blank }),
                Part::Sign if sign_first => {}
                Part::Sign | Part::Either => text.push(if negative { '-' } else { '+' }),
                Part::Minus => text.push_str(if negative { "-" } else { blank }),
                Part::Brackets => text.push_str(if negative { ">" } else { blank }),
                Part::Literal(literal) => text.push(*literal),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    /// Each was printed by PostgreSQL 15.
    #[test]
    fn numbers_are_written_as_postgres_writes_them() {
        let cases = [
            ("-1", "99.", " -1"),
            ("-0.5", "$999", "$  -1"),
            ("-1234567.891", "0999", "-####"),
            ("0.999", "FM$999.99", "$1."),
            ("0.5", "S999", "  +1"),
            ("0", "FM9,999,990.00", "0.00"),
            ("0.999", "99,99", "     1"),
            ("12.345", "000.0", " 012.3"),
            ("-1", "999D99", "  -1.00"),
            ("1", "SG999", "+  1"),
            ("-0.001", "9 9", "   0"),
            ("0.999", "9 9", "   1"),
            ("99999", "9.9", " #.#"),
            ("1", "FM999", "1"),
            ("-1", "9 9", "  -1"),
            ("-0.001", "999MI", "  0 "),
            ("-1234567.891", "FM999MI", "###-"),
            ("0", "000.0", " 000.0"),
            ("0.5", "000.0", " 000.5"),
            ("1", "FM9,999,990.00", "1.00"),
            ("-1234567.891", "999D99", "-###.##"),
            ("0.999", "9G999", "     1"),
            ("1234.5", "999", " ###"),
            ("0", "MI999", "   0"),
            ("-0.001", "999S", "  0+"),
            ("-0.001", "S999", "  +0"),
            ("-0.001", "000.0", " 000.0"),
            ("99999", "MI999", " ###"),
            ("99999", "99.", " ##."),
            ("-0.5", "9 9", "  -1"),
            ("-0.001", "FM999MI", "0"),
            ("1234.5", "FM999", "###"),
            ("-1234567.891", "999S", "###-"),
            ("0.999", "MI999", "   1"),
            ("99999", "FM999MI", "###"),
            ("1", "FM999MI", "1"),
            ("-1234567.891", "000.0", "-###.#"),
            ("99999", "999", " ###"),
            ("0.999", "$999", "$   1"),
            ("-1", "999S", "  1-"),
            ("-1", "999", "  -1"),
            ("-1234567.891", "999MI", "###-"),
            ("99999", "9,999.99", " #,###.##"),
            ("12.345", ".99", " .##"),
            ("-1", "FM999PR", "<1>"),
            ("0.5", "999S", "  1+"),
            ("-0.001", "0999", " 0000"),
            ("1", "9 9", "   1"),
        ];
        each(cases, |(number, template, expected)| {
            let template_read = NumberTemplate::read(template).expect(template);
            let digits = Digits::read(number).expect(number);
            assert_eq!(template_read.text(&digits), expected, "{number} as {template}");
        });
        NumberTemplate::read("9.99EEEE").expect_err("an exponent");
    }
}
