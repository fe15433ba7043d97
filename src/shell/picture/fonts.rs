//! Fonts of pictures: the widths of letters, and drawing them in a PNG.
//!
//! The program has a built-in font, so that a picture is the same on each machine, and Latin, Greek and Cyrillic letters can
//! be drawn on a machine without fonts. Fonts of the system are read only if a picture needs letters that the built-in font
//! lacks.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::{Database, FaceInfo, ID, Stretch, Style};
use resvg::usvg::{FontResolver, Options, Tree};
use ttf_parser::Face;

/// Roboto 2.137, Apache License 2.0, Copyright 2011 Google Inc.
const ROBOTO: &[u8] = include_bytes!("Roboto.ttf");
const FAMILY: &str = "Roboto";

static FACE: LazyLock<Option<Face<'static>>> = LazyLock::new(|| Face::parse(ROBOTO, 0).ok());

/// Width of a text in pixels. Letters of other fonts are taken to be as wide as they are high.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let Some(face) = FACE.as_ref() else { return text.chars().count() as f64 * size * 0.6 };
    let advance = |c: char| face.glyph_index(c).and_then(|glyph| face.glyph_hor_advance(glyph));
    let units = f64::from(face.units_per_em());
    text.chars().map(|c| advance(c).map_or(size, |advance| f64::from(advance) / units * size)).sum()
}

/// True if the program's own font has a letter, or if it is not drawn.
fn is_own(c: char) -> bool {
    c.is_control() || c.is_whitespace() || FACE.as_ref().is_some_and(|face| face.glyph_index(c).is_some())
}

/// True if a font has a letter.
fn has_letter(fonts: &Database, font: ID, c: char) -> bool {
    let has = |data: &[u8], at| Face::parse(data, at).is_ok_and(|face| face.glyph_index(c).is_some());
    fonts.with_face_data(font, has) == Some(true)
}

/// Draws a picture, enlarged by a factor. Returns it with the first letter that no font has.
///
/// # Errors
/// One line, if the picture is too large or cannot be read.
pub(super) fn png(svg: &str, factor: f32) -> Result<(Vec<u8>, Option<char>), String> {
    let foreign: Vec<char> = svg.chars().filter(|c| !c.is_ascii() && !is_own(*c)).collect();
    let mut fonts = Database::new();
    fonts.load_font_data(ROBOTO.to_vec());
    if !foreign.is_empty() {
        fonts.load_system_fonts();
    }
    fonts.set_sans_serif_family(FAMILY);
    let has = |c: char| {
        // Marks that join or choose forms have no glyph.
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{fe00}'..='\u{fe0f}')
            || fonts.faces().any(|face| has_letter(&fonts, face.id, c))
    };
    let missing = foreign.into_iter().find(|c| !has(*c));
    // The default takes any font that has a letter, such as a bold one with serifs.
    let select_fallback = Box::new(|c: char, excluded: &[ID], fonts: &mut Arc<Database>| {
        let fonts: &Database = fonts;
        let rank = |face: &&FaceInfo| {
            let name = face.families.first().map_or("", |(name, _)| name.as_str());
            let plain = face.style == Style::Normal && face.stretch == Stretch::Normal;
            (face.weight.0.abs_diff(400), !plain, name.contains("Serif") || name.contains("Mono"))
        };
        let usable = |face: &&FaceInfo| !excluded.contains(&face.id) && has_letter(fonts, face.id, c);
        fonts.faces().filter(usable).min_by_key(rank).map(|face| face.id)
    });
    let font_resolver = FontResolver { select_font: FontResolver::default_font_selector(), select_fallback };
    let fontdb = Arc::new(fonts);
    let options = Options { font_family: FAMILY.to_owned(), fontdb, font_resolver, ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| error.to_string())?;
    let size = tree.size().to_int_size().scale_by(factor).ok_or("the picture is too large")?;
    let mut pixels = Pixmap::new(size.width(), size.height()).ok_or("the picture is too large")?;
    resvg::render(&tree, Transform::from_scale(factor, factor), &mut pixels.as_mut());
    Ok((pixels.encode_png().map_err(|error| error.to_string())?, missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_measured_by_the_own_font() {
        assert!(width("iii", 12.0) < width("WWW", 12.0));
        assert_eq!(width("日本", 12.0), 24.0);
        assert!(is_own('é') && is_own('Ω') && is_own('ж') && !is_own('日'));
    }
}
