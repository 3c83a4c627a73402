//! Aligned columns.

use crate::paint::Paint;

/// Rows of cells under a header, printed with as much space as the widest cell needs.
#[derive(Debug)]
pub(crate) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub(crate) fn new(header: impl IntoIterator<Item = &'static str>) -> Self {
        Self { header: header.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row. Cells may hold colours; line breaks must be escaped before.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table without the columns in which no row has anything.
    pub(crate) fn without_empty(self) -> Self {
        let is_used = |column: &usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(*column));
            cells.any(|cell| !cell.is_empty())
        };
        let used: Vec<usize> = (0..self.header.len()).filter(is_used).collect();
        let header = used.iter().filter_map(|at| self.header.get(*at).copied()).collect();
        let cells =
            |row: &Vec<String>| used.iter().filter_map(|at| row.get(*at).cloned()).collect();
        let rows = self.rows.iter().map(cells).collect();
        Self { header, rows }
    }

    /// The text; nothing when there is no row.
    pub(crate) fn text(&self, paint: Paint) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let widths: Vec<usize> =
            self.header.iter().enumerate().map(|(i, h)| self.width(i, h)).collect();
        let header = self.header.iter().map(|cell| paint.dim(cell)).collect::<Vec<_>>();
        let mut text = line(&header, &widths);
        for row in &self.rows {
            text.push_str(&line(row, &widths));
        }
        text
    }

    fn width(&self, column: usize, header: &str) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| width(cell)).chain([width(header)]).max().unwrap_or(0)
    }
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, column) in cells.iter().zip(widths) {
        let space = column.saturating_sub(width(cell)) + 2;
        line.push_str(cell);
        line.push_str(&" ".repeat(space));
    }
    format!("{}\n", line.trim_end())
}

/// A text without colours, cut to so many columns of a terminal.
pub(crate) fn clip(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut cut = String::new();
    for sign in text.chars() {
        if width(&cut) + width(&sign.to_string()) >= columns {
            break;
        }
        cut.push(sign);
    }
    cut.push('…');
    cut
}

/// How many columns of a terminal a text takes; escape sequences take none.
pub(crate) fn width(text: &str) -> usize {
    let mut total = 0;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            chars.by_ref().find(|c| c.is_ascii_alphabetic());
            continue;
        }
        total += match u32::from(c) {
            0x300..=0x36f | 0x200b..=0x200d | 0xfe00..=0xfe0f => 0,
            0x1100..=0x115f
            | 0x2e80..=0xa4cf
            | 0xac00..=0xd7a3
            | 0xf900..=0xfaff
            | 0xfe30..=0xfe6f
            | 0xff00..=0xff60
            | 0x1f300..=0x1faff
            | 0x20000..=0x3fffd => 2,
            _ => 1,
        };
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_is_in_them() {
        let mut table = Table::new(["RUN", "STATUS", "NOTE"]);
        table.row(["a".to_owned(), Paint::new(true).red("failed"), "x".to_owned()]);
        table.row(["訂單-1".to_owned(), "queued".to_owned(), String::new()]);
        let text = table.text(Paint::new(false));
        assert_eq!(
            text,
            "RUN     STATUS  NOTE\na       \u{1b}[31mfailed\u{1b}[0m  x\n訂單-1  queued\n"
        );
    }

    #[test]
    fn columns_without_anything_are_left_out() {
        let mut table = Table::new(["RUN", "DUE", "NOTE"]);
        table.row(["a".to_owned(), String::new(), "x".to_owned()]);
        assert_eq!(table.without_empty().text(Paint::new(false)), "RUN  NOTE\na    x\n");
    }

    #[test]
    fn a_cut_text_fits() {
        for (text, columns, expect) in [
            ("refund", 6, "refund"),
            ("refund", 5, "refu…"),
            ("訂單訂單", 5, "訂單…"),
            ("ab", 1, "…"),
        ] {
            assert_eq!(clip(text, columns), expect, "{text} in {columns}");
        }
    }

    #[test]
    fn no_rows_are_no_text() {
        assert_eq!(Table::new(["RUN"]).text(Paint::new(true)), "");
    }
}
