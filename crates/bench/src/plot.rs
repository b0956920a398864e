//! Bar charts as SVG text: one group of bars a measurement, on a logarithmic or linear axis.

use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const BAR_HEIGHT: f64 = 18.0;
const ROW_GAP: f64 = 10.0;
const LABEL_WIDTH: f64 = 250.0;
const HEAD_HEIGHT: f64 = 56.0;
/// Room behind the longest bar for its value.
const VALUE_WIDTH: f64 = 110.0;

/// Fills that stay apart for readers who don't tell red from green.
const FILLS: [&str; 3] = ["#3b6ea5", "#e0a030", "#7a7a7a"];

/// One labelled row of bars.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What was measured.
    pub(crate) label: String,
    /// One value for each series; `None` leaves the bar out.
    pub(crate) values: Vec<Option<f64>>,
}

/// A chart of several series over several rows.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// The heading.
    pub(crate) title: String,
    /// The unit behind each value.
    pub(crate) unit: &'static str,
    /// The names of the series.
    pub(crate) series: Vec<&'static str>,
    /// The rows from the top down.
    pub(crate) rows: Vec<Row>,
}

impl Chart {
    /// The chart as a whole SVG document.
    pub(crate) fn svg(&self) -> String {
        let row_height = self.series.len() as f64 * BAR_HEIGHT + ROW_GAP;
        let height = HEAD_HEIGHT + self.rows.len() as f64 * row_height;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <text x=\"12\" y=\"20\" font-size=\"15\">{}</text>\n",
            escaped(&self.title)
        );
        for (index, name) in self.series.iter().enumerate() {
            let x = 12.0 + index as f64 * 130.0;
            let fill = FILLS[index % FILLS.len()];
            let _infallible = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"30\" width=\"12\" height=\"12\" fill=\"{fill}\"/>\
                 <text x=\"{}\" y=\"40\">{}</text>",
                x + 18.0,
                escaped(name)
            );
        }
        let largest = self.largest();
        for (index, row) in self.rows.iter().enumerate() {
            self.draw_row(
                &mut svg,
                row,
                HEAD_HEIGHT + index as f64 * row_height,
                largest,
            );
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn largest(&self) -> f64 {
        let values = self
            .rows
            .iter()
            .flat_map(|row| row.values.iter().flatten().copied());
        values.fold(f64::MIN_POSITIVE, f64::max)
    }

    fn draw_row(&self, svg: &mut String, row: &Row, top: f64, largest: f64) {
        let middle = top + self.series.len() as f64 * BAR_HEIGHT / 2.0 + 4.0;
        let _infallible = writeln!(
            svg,
            "<text x=\"12\" y=\"{middle}\">{}</text>",
            escaped(&row.label)
        );
        for (index, value) in row.values.iter().enumerate() {
            let Some(value) = value else { continue };
            let y = top + index as f64 * BAR_HEIGHT;
            let width = (value / largest * (WIDTH - LABEL_WIDTH - VALUE_WIDTH)).max(1.0);
            let fill = FILLS[index % FILLS.len()];
            let _infallible = writeln!(
                svg,
                "<rect x=\"{LABEL_WIDTH}\" y=\"{y}\" width=\"{width:.1}\" height=\"{}\" \
                 fill=\"{fill}\"/><text x=\"{:.1}\" y=\"{}\">{} {}</text>",
                BAR_HEIGHT - 3.0,
                LABEL_WIDTH + width + 6.0,
                y + 12.0,
                shown(*value),
                self.unit
            );
        }
    }
}

/// Three significant digits.
pub(crate) fn shown(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_value_has_the_longest_bar_and_text_is_escaped() {
        let chart = Chart {
            title: "a < b".to_owned(),
            unit: "ms",
            series: vec!["ours", "floor"],
            rows: vec![
                Row {
                    label: "x".to_owned(),
                    values: vec![Some(10.0), Some(5.0)],
                },
                Row {
                    label: "y".to_owned(),
                    values: vec![Some(1.0), None],
                },
            ],
        };
        let svg = chart.svg();
        assert!(svg.contains("a &lt; b"));
        assert_eq!(svg.matches("ms</text>").count(), 3);
        assert!(svg.contains("width=\"360.0\"") && svg.contains("width=\"180.0\""));
    }
}
