//! `kettle bench report`: pages and charts from results files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::cli::ReportArguments;
use crate::command::output::{print_line, warn};
use crate::report;
use crate::results::read::{self, Results};

/// Makes the page, and the charts if they are asked for.
pub(crate) fn report(arguments: &ReportArguments) -> Result<ExitCode, String> {
    let all = arguments.files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
    if let Some(folder) = &arguments.charts {
        write_charts(folder, &all)?;
    }
    if let Some(name) = &arguments.card {
        write_card(name, &all)?;
    }
    let first = arguments.files.first().map_or(Path::new("."), PathBuf::as_path);
    let page = arguments.output.clone().unwrap_or_else(|| page_path(first));
    let charts_folder = arguments.charts.as_deref().and_then(|folder| link_to(folder, &page));
    write(&page, &report::page(&all, charts_folder))?;
    print_line(page.display());
    Ok(ExitCode::SUCCESS)
}

/// Returns the name by which the page names the folder of charts, if that lies beside it or below: such links still hold when
/// both are moved.
fn link_to<'f>(folder: &'f Path, page: &Path) -> Option<&'f str> {
    folder.strip_prefix(page.parent()?).ok()?.to_str()
}

/// Reads a results file, and says so if its end is missing.
pub(crate) fn read(path: &Path) -> Result<Results, String> {
    let results = read::read(path)?;
    if results.cut_off {
        let path = path.display();
        warn(format_args!(
            "{path}: its last line was cut off and is left out; --resume measures it again"
        ));
    }
    Ok(results)
}

/// Writes the page beside its results file and returns where.
pub(crate) fn page_beside(results: &Path, all: &[Results]) -> Result<PathBuf, String> {
    let page = page_path(results);
    write(&page, &report::page(all, None))?;
    Ok(page)
}

fn page_path(results: &Path) -> PathBuf {
    results.with_file_name("report.html")
}

fn write_charts(folder: &Path, all: &[Results]) -> Result<(), String> {
    let made = std::fs::create_dir_all(folder);
    made.map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    for (name, svg) in report::charts(all) {
        write(&folder.join(format!("{name}.svg")), &svg)?;
    }
    Ok(())
}

fn write_card(name: &Path, all: &[Results]) -> Result<(), String> {
    let card = report::card(all).ok_or(
        "no answer to show: these results have no times of kettle beside another server\n  help: measure one, as by `kettle bench run \
         web-sizes --servers kettle,nginx`",
    )?;
    for (ending, text) in [("svg", &card.svg), ("md", &card.markdown)] {
        let mut path = name.as_os_str().to_owned();
        path.push(format!(".{ending}"));
        write(Path::new(&path), text)?;
        print_line(Path::new(&path).display());
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
