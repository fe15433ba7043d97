//! A pseudo-terminal that runs the program, with an emulated screen.

use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use vt100::{Parser, Screen};

use crate::support::LONGEST;

pub(crate) struct Terminal {
    keys: Box<dyn Write + Send>,
    parser: Arc<Mutex<Parser>>,
    /// The screen that the last wait has returned, with wrapped lines joined.
    seen: String,
    child: Box<dyn Child + Send + Sync>,
    /// Ends once the program has ended and all that it printed was read.
    reader: JoinHandle<()>,
    /// Stops the reader on drop.
    master: Box<dyn MasterPty + Send>,
}

/// The program's invocation.
pub(crate) struct Start<'s> {
    /// Lines and columns.
    pub(crate) size: (u16, u16),
    pub(crate) arguments: &'s [&'s str],
    pub(crate) environment: &'s [(&'s str, &'s str)],
    /// The state folder.
    pub(crate) state: &'s Path,
}

impl Terminal {
    pub(crate) fn start(start: &Start<'_>) -> Self {
        let (rows, cols) = start.size;
        let pair = native_pty_system().openpty(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_savedsearch"));
        command.args(start.arguments);
        command.env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        command.env("PAGER", "cat");
        command.env("XDG_STATE_HOME", start.state);
        start.environment.iter().for_each(|(name, value)| command.env(name, value));
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let parser = Arc::new(Mutex::new(Parser::new(lines(rows), lines(cols), 0)));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let shown = Arc::clone(&parser);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            // Reading ends with the terminal, possibly with an error.
            while let Ok(read @ 1..) = reader.read(&mut bytes) {
                process(&mut shown.lock().unwrap(), &bytes[..read]);
            }
        });
        let keys = pair.master.take_writer().unwrap();
        Self { keys, parser, seen: String::new(), child, reader, master: pair.master }
    }

    /// Types keys.
    pub(crate) fn keys(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Types a line at the prompt of a cleared screen, and returns the screen once `expected` and a new prompt are
    /// visible.
    pub(crate) fn line(&mut self, text: &str, expected: &str) -> String {
        self.clear();
        self.enter(text, expected)
    }

    /// Completes the current line, and returns the screen once `expected` and a new prompt are visible.
    pub(crate) fn enter(&mut self, text: &str, expected: &str) -> String {
        self.keys(&format!("{text}\r"));
        self.prompt(expected)
    }

    /// Returns the screen once `expected` is visible with a complete prompt below it.
    pub(crate) fn prompt(&mut self, expected: &str) -> String {
        self.wait_for(expected, |screen| {
            let text = text_of(screen);
            let after = text.rfind(expected).map(|at| &text[at + expected.len()..]);
            after.is_some_and(|after| after.contains('\n')) && is_at_prompt(screen, &text)
        })
    }

    /// Returns the screen once it shows `expected`.
    pub(crate) fn sees(&mut self, expected: &str) -> String {
        // Input may wrap to the next line.
        self.wait(expected, |screen| screen.replace('\n', "").contains(expected))
    }

    /// Returns the screen once `there` is true for it; `expected` describes it in a failure.
    pub(crate) fn wait(&mut self, expected: &str, there: impl Fn(&str) -> bool) -> String {
        self.wait_for(expected, |screen| there(&text_of(screen)))
    }

    fn wait_for(&mut self, expected: &str, there: impl Fn(&Screen) -> bool) -> String {
        let begun = Instant::now();
        loop {
            // Before the screen is read: nothing follows then.
            let is_over = self.reader.is_finished();
            let text = {
                let parser = self.parser.lock().unwrap();
                let screen = parser.screen();
                if there(screen) {
                    self.seen = unwrapped(screen);
                    return text_of(screen);
                }
                text_of(screen)
            };
            let ended = self.child.try_wait().unwrap();
            assert!(begun.elapsed() < LONGEST && !is_over, "no `{expected}` ({ended:?}) in\n{text}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The visible text.
    pub(crate) fn screen(&self) -> String {
        self.with_screen(text_of)
    }

    /// The last statement and its output, on the screen that the last wait has returned: the editor may be painting its line
    /// again by now.
    pub(crate) fn shown(&self) -> String {
        let screen = &self.seen;
        let mut prompts = screen.rmatch_indices("savedsearch>").map(|(at, _)| at);
        let (end, begin) = (prompts.next().unwrap_or(screen.len()), prompts.next().unwrap_or_default());
        screen[begin..end].trim_end().to_owned()
    }

    /// The last statement and its output, without times.
    pub(crate) fn last(&self) -> String {
        without_times(&self.shown())
    }

    /// Reads the screen.
    pub(crate) fn with_screen<T>(&self, read: impl FnOnce(&Screen) -> T) -> T {
        read(self.parser.lock().unwrap().screen())
    }

    /// True if any cell is coloured.
    pub(crate) fn is_colored(&self) -> bool {
        let parser = self.parser.lock().unwrap();
        let (rows, cols) = parser.screen().size();
        let colored =
            |row, col| parser.screen().cell(row, col).is_some_and(|cell| cell.fgcolor() != vt100::Color::Default);
        (0..rows.get()).any(|row| (0..cols.get()).any(|col| colored(row, col)))
    }

    /// Clears the screen.
    pub(crate) fn clear(&mut self) {
        self.keys("\x0c");
        self.wait_for("a clear screen", |screen| {
            let text = text_of(screen);
            text.lines().count() == 1 && is_at_prompt(screen, &text)
        });
    }

    /// Sends the program a signal.
    pub(crate) fn signal(&self, name: &str) {
        let process = self.child.process_id().unwrap().to_string();
        assert!(Command::new("kill").args(["-s", name, &process]).status().unwrap().success());
    }

    /// Types a line at a prompt that does not show it.
    pub(crate) fn secret(&mut self, prompt: &str, text: &str) {
        self.sees(prompt);
        let begun = Instant::now();
        while self.echoes() {
            assert!(begun.elapsed() < LONGEST, "it shows what is typed:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(10));
        }
        self.keys(&format!("{text}\r"));
    }

    /// True if the terminal shows the keys that are typed.
    fn echoes(&self) -> bool {
        /// The flag of Linux and macOS.
        const ECHO: u64 = 0o10;
        self.master.get_termios().is_some_and(|modes| u64::from(modes.local_flags.bits()) & ECHO != 0)
    }

    /// Waits for the program to end and for the screen to show all that it printed, and returns its exit status.
    pub(crate) fn status(&mut self) -> u32 {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap().filter(|_| self.reader.is_finished()) {
                return status.exit_code();
            }
            assert!(begun.elapsed() < LONGEST, "it goes on:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Shows what was printed, byte by byte: the parser drops the space of `é │` if it gets the letter in two parts.
fn process(parser: &mut Parser, bytes: &[u8]) {
    bytes.iter().for_each(|byte| parser.process(&[*byte]));
}

/// The visible text of a screen.
fn text_of(screen: &Screen) -> String {
    let rows: Vec<String> = screen.rows(0, u16::MAX).map(|row| row.trim_end().to_owned()).collect();
    rows.join("\n").trim_end().to_owned()
}

/// The visible text of a screen with wrapped lines joined.
fn unwrapped(screen: &Screen) -> String {
    let mut text = String::new();
    for (at, row) in (0..).zip(screen.rows(0, u16::MAX)) {
        if screen.row_wrapped(at) {
            text.push_str(&row);
        } else {
            text.push_str(row.trim_end());
            text.push('\n');
        }
    }
    text.trim_end().to_owned()
}

/// True if a screen with this text ends with a prompt, and the cursor is behind it: the editor has painted all of it, and waits.
fn is_at_prompt(screen: &Screen, text: &str) -> bool {
    let (row, col) = screen.cursor_position();
    let last = text.lines().last().unwrap_or_default();
    last.ends_with('>') && usize::from(row) + 1 == text.lines().count() && usize::from(col) == last.chars().count() + 1
}

fn lines(number: u16) -> NonZero<u16> {
    NonZero::new(number).unwrap()
}

/// Replaces every duration with `TIME`.
pub(crate) fn without_times(text: &str) -> String {
    let is_time = |part: &str| {
        let number = part.trim_end().strip_suffix(" ms").or_else(|| part.trim_end().strip_suffix(" s"));
        number.is_some_and(|number| number.parse::<f64>().is_ok())
    };
    let line = |line: &str| {
        line.split(" · ").map(|part| if is_time(part) { "TIME" } else { part }).collect::<Vec<_>>().join(" · ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_screen_does_not_depend_on_the_parts_in_which_it_was_read() {
    let text = "é │ ع ع · │ 日本";
    for at in 0..=text.len() {
        let mut parser = Parser::new(lines(1), lines(40), 0);
        let (first, second) = text.as_bytes().split_at(at);
        process(&mut parser, first);
        process(&mut parser, second);
        assert_eq!(text_of(parser.screen()), text, "divided at {at}");
    }
}
