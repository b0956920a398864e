//! The figures of a run: a Markdown table, the same as JSON lines, and charts.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::plot::{Chart, Row, shown};

/// One measured figure beside its floor and its aim.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// What was measured, in a few words.
    pub(crate) name: String,
    /// The unit of all three values.
    pub(crate) unit: &'static str,
    /// What was measured.
    pub(crate) value: f64,
    /// What the machine itself does, in the same run.
    pub(crate) floor: Option<f64>,
    /// What the design asks for.
    pub(crate) aim: Option<f64>,
    /// Larger is better, as for throughput; everything else counts downwards.
    pub(crate) larger_is_better: bool,
}

impl Figure {
    /// A figure that should be small.
    pub(crate) fn new(name: impl Into<String>, unit: &'static str, value: f64) -> Self {
        Self {
            name: name.into(),
            unit,
            value,
            floor: None,
            aim: None,
            larger_is_better: false,
        }
    }

    pub(crate) fn floor(mut self, floor: f64) -> Self {
        self.floor = Some(floor);
        self
    }

    pub(crate) fn aim(mut self, aim: f64) -> Self {
        self.aim = Some(aim);
        self
    }

    pub(crate) fn larger_is_better(mut self) -> Self {
        self.larger_is_better = true;
        self
    }

    /// Whether the aim is met, or 1.3 × the floor where that is what the machine allows.
    fn verdict(&self) -> &'static str {
        const OF_FLOOR: f64 = 1.3;
        let Some(aim) = self.aim else { return "" };
        let met = if self.larger_is_better {
            self.value >= aim
        } else {
            self.value <= aim
        };
        let at_floor = self
            .floor
            .is_some_and(|floor| self.value <= OF_FLOOR * floor);
        match (met, at_floor && !self.larger_is_better) {
            (true, _) => "met",
            (false, true) => "at the floor",
            (false, false) => "missed",
        }
    }
}

/// The figures of one part of a run, with a heading.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// The heading, which also names the chart.
    pub(crate) title: &'static str,
    /// The chart's file name without its ending.
    pub(crate) file: &'static str,
    /// What was measured.
    pub(crate) figures: Vec<Figure>,
}

/// Writes `results.md`, `results.jsonl` and a chart for each unit of each section.
pub(crate) fn write(directory: &Path, intro: &str, sections: &[Section]) -> anyhow::Result<()> {
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let mut markdown = format!("# Results\n\n{intro}\n");
    let mut lines = String::new();
    for section in sections {
        let _infallible = write!(
            markdown,
            "\n## {}\n\n| measure | value | floor | × floor | aim | |\n|---|---|---|---|---|---|\n",
            section.title
        );
        for figure in &section.figures {
            markdown.push_str(&table_row(figure));
            lines.push_str(&json_line(section, figure));
        }
        for chart in charts(section) {
            let name = format!("{}-{}.svg", section.file, slug(chart.unit));
            fs::write(directory.join(&name), chart.svg())?;
            let _infallible = write!(markdown, "\n![{}]({name})\n", section.title);
        }
    }
    fs::write(directory.join("results.md"), markdown)?;
    fs::write(directory.join("results.jsonl"), lines)?;
    Ok(())
}

fn table_row(figure: &Figure) -> String {
    let unit = figure.unit;
    let with_unit = |value: Option<f64>| {
        value.map_or_else(String::new, |value| format!("{} {unit}", shown(value)))
    };
    let ratio = figure
        .floor
        .filter(|floor| *floor > 0.0)
        .map(|floor| figure.value / floor);
    format!(
        "| {} | {} | {} | {} | {} | {} |\n",
        figure.name,
        with_unit(Some(figure.value)),
        with_unit(figure.floor),
        ratio.map(shown).unwrap_or_default(),
        with_unit(figure.aim),
        figure.verdict()
    )
}

fn json_line(section: &Section, figure: &Figure) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "null".to_owned(), |v| v.to_string());
    format!(
        "{{\"section\":{:?},\"name\":{:?},\"unit\":{:?},\"value\":{},\"floor\":{},\"aim\":{}}}\n",
        section.file,
        figure.name,
        figure.unit,
        figure.value,
        number(figure.floor),
        number(figure.aim)
    )
}

/// Values of different units don't share an axis.
fn charts(section: &Section) -> Vec<Chart> {
    let mut charts: Vec<Chart> = Vec::new();
    for figure in &section.figures {
        let row = Row {
            label: figure.name.clone(),
            values: vec![Some(figure.value), figure.floor, figure.aim],
        };
        match charts.iter_mut().find(|chart| chart.unit == figure.unit) {
            Some(chart) => chart.rows.push(row),
            None => charts.push(Chart {
                title: format!("{} ({})", section.title, figure.unit),
                unit: figure.unit,
                series: vec!["measured", "floor", "aim"],
                rows: vec![row],
            }),
        }
    }
    charts
}

fn slug(unit: &str) -> String {
    let plain = unit.replace('µ', "u").replace('%', "percent");
    plain
        .chars()
        .map(|char| {
            if char.is_ascii_alphanumeric() {
                char
            } else {
                '-'
            }
        })
        .collect()
}
