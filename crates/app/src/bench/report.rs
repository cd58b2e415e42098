//! `kettle bench report`: pages and charts from results files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kettle_bench::report;
use kettle_bench::results::read::{self, Results};

use crate::cli::bench::ReportArguments;
use crate::output::{fail, print_line};

/// Makes the page, and the charts if they are asked for.
pub(crate) fn report(arguments: &ReportArguments) -> ExitCode {
    match make(arguments) {
        Ok(page) => {
            print_line(page.display());
            ExitCode::SUCCESS
        }
        Err(message) => fail(message),
    }
}

fn make(arguments: &ReportArguments) -> Result<PathBuf, String> {
    let all = arguments.files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
    if let Some(folder) = &arguments.charts {
        write_charts(folder, &all)?;
    }
    let first = arguments.files.first().map_or(Path::new("."), PathBuf::as_path);
    page_beside(first, &all, arguments.output.as_deref())
}

/// Reads a results file; the error names it.
pub(crate) fn read(path: &Path) -> Result<Results, String> {
    read::read(path).map_err(|error| {
        let (path, text) = (path.display().to_string(), error.to_string());
        if text.starts_with(&path) { text } else { format!("{path}: {text}") }
    })
}

/// Writes the page, beside this results file unless it is to be elsewhere, and returns where.
pub(crate) fn page_beside(
    results: &Path,
    all: &[Results],
    elsewhere: Option<&Path>,
) -> Result<PathBuf, String> {
    let page = elsewhere.map_or_else(|| results.with_file_name("report.html"), Path::to_owned);
    write(&page, &report::page(all, &report::Options::default()))?;
    Ok(page)
}

fn write_charts(folder: &Path, all: &[Results]) -> Result<(), String> {
    let made = std::fs::create_dir_all(folder);
    made.map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    for (name, svg) in report::charts(all) {
        write(&folder.join(format!("{name}.svg")), &svg)?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
