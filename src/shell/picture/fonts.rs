//! Fonts of pictures: the widths of letters, and drawing them in a PNG.
//!
//! The program has a built-in font, so that a picture is the same on each machine, and Latin, Greek and Cyrillic letters can
//! be drawn on a machine without fonts. Fonts of the system are read only if a picture needs letters that the built-in font
//! lacks.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::{Database, FaceInfo, ID, Stretch, Style};
use resvg::usvg::{Font, FontFamily, FontResolver, Group, Node, Options, Tree};
use ttf_parser::{Face, RasterImageFormat};

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

/// True for characters that join letters or choose their forms. They have no glyph.
fn joins(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{fe00}'..='\u{fe0f}')
}

/// True if a font draws a letter: as an outline, in colours, or as a PNG bitmap, which is what most emoji fonts have. Those fonts
/// also have digits and signs, as parts of emoji, which are too wide for texts: letters of the program's own font are not taken
/// from them.
fn draws(face: &Face<'_>, c: char) -> bool {
    let Some(glyph) = face.glyph_index(c) else { return false };
    let bitmap = face.glyph_raster_image(glyph, u16::MAX);
    let colored = bitmap.is_some_and(|image| matches!(image.format, RasterImageFormat::PNG))
        || face.is_color_glyph(glyph)
        || face.glyph_svg_image(glyph).is_some();
    if colored { !is_own(c) } else { face.glyph_bounding_box(glyph).is_some() }
}

/// Beginning of the name of a font in a picture that is being drawn; its place in [`Faces`] follows.
const CHOSEN: &str = "chosen-";

/// Fonts, the plainest first, each with the letters of the picture that it draws.
struct Faces(Vec<(ID, HashSet<char>)>);

impl Faces {
    fn of(fonts: &Database, picture: &str) -> Self {
        let letters: HashSet<char> = picture.chars().filter(|c| !c.is_control() && !c.is_whitespace()).collect();
        let rank = |face: &&FaceInfo| {
            let name = face.families.first().map_or("", |(name, _)| name.as_str());
            let plain = face.style == Style::Normal && face.stretch == Stretch::Normal;
            (face.weight.0.abs_diff(400), !plain, name.contains("Serif") || name.contains("Mono"))
        };
        let mut faces: Vec<&FaceInfo> = fonts.faces().collect();
        faces.sort_by_key(rank);
        let drawn = |data: &[u8], at: u32| -> HashSet<char> {
            let Ok(face) = Face::parse(data, at) else { return HashSet::new() };
            letters.iter().copied().filter(|c| draws(&face, *c)).collect()
        };
        let of = |face: &FaceInfo| (face.id, fonts.with_face_data(face.id, drawn).unwrap_or_default());
        Self(faces.into_iter().map(of).collect())
    }

    /// The place of the first font that draws all of these letters.
    fn with(&self, letters: &[char]) -> Option<usize> {
        self.0.iter().position(|(_, drawn)| letters.iter().all(|c| drawn.contains(c)))
    }

    /// The picture, in which texts with letters that the program's own font lacks name their fonts.
    fn named_in(&self, picture: &str) -> String {
        picture.split_inclusive('\n').map(|line| self.named_in_line(line).unwrap_or_else(|| line.to_owned())).collect()
    }

    /// A text has one font if any font has all of its letters, so that they join. Otherwise each run of letters has its own: to
    /// find another font for a text, the text crate needs one with as many glyphs.
    fn named_in_line(&self, line: &str) -> Option<String> {
        let (attributes, rest) = line.strip_prefix("<text")?.split_once('>')?;
        let (text, end) = rest.split_once("</text>")?;
        let is_letter = |c: &char| !c.is_control() && !c.is_whitespace() && !joins(*c);
        let letters: Vec<char> = text.chars().filter(is_letter).collect();
        if letters.iter().all(|c| is_own(*c)) {
            return None;
        }
        if let Some(place) = self.with(&letters) {
            return Some(format!("<text font-family=\"{CHOSEN}{place}\"{attributes}>{text}</text>{end}"));
        }
        let mut runs: Vec<(Option<usize>, String)> = vec![(None, String::new())];
        for c in text.chars() {
            let Some((font, run)) = runs.last_mut() else { continue };
            let stays = !is_letter(&c) || font.is_some_and(|place| !is_own(c) && self.0[place].1.contains(&c));
            let wanted = if stays {
                *font
            } else if is_own(c) {
                None
            } else {
                self.with(&[c])
            };
            match wanted == *font {
                true => run.push(c),
                false => runs.push((wanted, c.to_string())),
            }
        }
        let run = |(font, text): (Option<usize>, String)| match font {
            Some(place) => format!("<tspan font-family=\"{CHOSEN}{place}\">{text}</tspan>"),
            None => text,
        };
        let runs: String = runs.into_iter().map(run).collect();
        Some(format!("<text{attributes}>{runs}</text>{end}"))
    }

    /// Finds fonts by the names that [`named_in`](Self::named_in) has given them, and fonts of further letters.
    fn resolver(self) -> FontResolver<'static> {
        let faces = Arc::new(self.0);
        let known = Arc::clone(&faces);
        let usual = FontResolver::default_font_selector();
        let place = |family: &FontFamily| match family {
            FontFamily::Named(name) => name.strip_prefix(CHOSEN)?.parse::<usize>().ok(),
            _ => None,
        };
        let select_font = Box::new(move |font: &Font, fonts: &mut Arc<Database>| {
            let chosen = font.families().iter().find_map(place).and_then(|place| known.get(place));
            chosen.map(|(id, _)| *id).or_else(|| usual(font, fonts))
        });
        // The default takes any font that has a letter, such as a bold one with serifs.
        let select_fallback = Box::new(move |c: char, excluded: &[ID], _: &mut Arc<Database>| {
            let usable = |(id, drawn): &&(ID, HashSet<char>)| drawn.contains(&c) && !excluded.contains(id);
            faces.iter().find(usable).map(|(id, _)| *id)
        });
        FontResolver { select_font, select_fallback }
    }
}

/// The first letter of a picture that is drawn as a box, because no font has it.
fn undrawn(group: &Group) -> Option<char> {
    group.children().iter().find_map(|node| match node {
        Node::Group(group) => undrawn(group),
        Node::Text(text) => {
            let glyphs = text.layouted().iter().flat_map(|span| &span.positioned_glyphs);
            glyphs.filter(|glyph| glyph.id.0 == 0).find_map(|glyph| glyph.text.chars().find(|c| !joins(*c)))
        }
        Node::Path(_) | Node::Image(_) => None,
    })
}

/// Draws a picture, enlarged by a factor. Returns it with the first letter that is not drawn.
///
/// # Errors
/// One line, if the picture is too large or cannot be read.
pub(super) fn png(svg: &str, factor: f32) -> Result<(Vec<u8>, Option<char>), String> {
    let mut fonts = Database::new();
    fonts.load_font_data(ROBOTO.to_vec());
    if is_foreign(svg) {
        fonts.load_system_fonts();
    }
    draw(svg, factor, fonts)
}

/// True if a picture has letters that the program's own font lacks.
fn is_foreign(svg: &str) -> bool {
    svg.chars().any(|c| !c.is_ascii() && !is_own(c) && !joins(c))
}

/// As [`png`], with these fonts.
fn draw(svg: &str, factor: f32, mut fonts: Database) -> Result<(Vec<u8>, Option<char>), String> {
    fonts.set_sans_serif_family(FAMILY);
    let faces = Faces::of(&fonts, svg);
    let svg = if is_foreign(svg) { Cow::Owned(faces.named_in(svg)) } else { Cow::Borrowed(svg) };
    let (fontdb, font_resolver) = (Arc::new(fonts), faces.resolver());
    let options = Options { font_family: FAMILY.to_owned(), fontdb, font_resolver, ..Options::default() };
    let tree = Tree::from_str(&svg, &options).map_err(|error| error.to_string())?;
    let size = tree.size().to_int_size().scale_by(factor).ok_or("the picture is too large")?;
    let mut pixels = Pixmap::new(size.width(), size.height()).ok_or("the picture is too large")?;
    resvg::render(&tree, Transform::from_scale(factor, factor), &mut pixels.as_mut());
    Ok((pixels.encode_png().map_err(|error| error.to_string())?, undrawn(tree.root())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made for this test: a red square of 20 pixels as the bitmap (CBDT) of `2` and of U+1F600.
    const BITMAPS: &[u8] = include_bytes!("Bitmaps.ttf");

    #[test]
    fn emoji_are_bitmaps_and_digits_beside_them_are_letters() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60\" height=\"30\">\n\
                   <text x=\"5\" y=\"22\" font-size=\"20\">2 \u{1f600}</text>\n</svg>";
        let mut fonts = Database::new();
        fonts.load_font_data(ROBOTO.to_vec());
        assert_eq!(draw(svg, 1.0, fonts.clone()).expect("a picture").1, Some('\u{1f600}'));
        fonts.load_font_data(BITMAPS.to_vec());
        let (png, missing) = draw(svg, 1.0, fonts).expect("a picture");
        let pixels = Pixmap::decode_png(&png).expect("a PNG");
        let is_red = |x: u32| {
            let mut column = (0..30).filter_map(|y| pixels.pixel(x, y));
            column.any(|pixel| pixel.red() > 200 && pixel.green() < 20)
        };
        // The digit ends at 16, and the space at 21.
        assert_eq!((missing, is_red(10), is_red(30)), (None, false, true));
    }

    #[test]
    fn letters_are_measured_by_the_own_font() {
        assert!(width("iii", 12.0) < width("WWW", 12.0));
        assert_eq!(width("日本", 12.0), 24.0);
        assert!(is_own('é') && is_own('Ω') && is_own('ж') && !is_own('日'));
    }

    #[test]
    fn a_text_has_one_font_if_one_has_all_of_its_letters_and_else_one_for_each_run() {
        let mut fonts = Database::new();
        (0..3).for_each(|_| fonts.load_font_data(ROBOTO.to_vec()));
        let sets = ["ab", "日本", "한글ab"].map(|letters| letters.chars().collect::<HashSet<char>>());
        let faces = Faces(fonts.faces().map(|face| face.id).zip(sets).collect());
        let named = |text: &str| faces.named_in(&format!("<rect/>\n<text x=\"1\">{text}</text>\n"));
        let text = |attributes: &str, text: &str| format!("<rect/>\n<text{attributes} x=\"1\">{text}</text>\n");
        assert_eq!(named("b &amp; a"), text("", "b &amp; a"));
        assert_eq!(named("a한 b"), text(" font-family=\"chosen-2\"", "a한 b"));
        let (cjk, hangul) = ("<tspan font-family=\"chosen-1\">", "<tspan font-family=\"chosen-2\">");
        assert_eq!(named("a 日本 b한"), text("", &format!("a {cjk}日本 </tspan>b{hangul}한</tspan>")));
        assert_eq!(named("日\u{378}"), text("", &format!("{cjk}日</tspan>\u{378}")));
    }

    #[test]
    fn the_first_letter_that_no_font_has_is_told() {
        let picture = |text: &str| {
            format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"90\" height=\"30\">\n<text y=\"20\">{text}</text>\n</svg>"
            )
        };
        let missing = |text: &str| png(&picture(text), 1.0).expect("a picture").1;
        assert_eq!(missing("Ωж é"), None);
        // No letter has these numbers.
        assert_eq!(missing("a\u{378}\u{379}"), Some('\u{378}'));
    }
}
