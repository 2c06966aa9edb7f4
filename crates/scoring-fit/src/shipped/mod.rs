//! Making the weights that ship with the engine, from public data sets, and measuring them.

mod calibration;
mod data_set;
mod fitter;
mod measure;
mod report;
mod table;

use std::collections::BTreeMap;
use std::path::Path;

use assay_scoring::weights_file::Manifest;
use assay_scoring::{FeatureReader, Scorer};

use self::data_set::DataSet;
use self::fitter::{Fitter, Part};
use self::measure::Measured;
pub(crate) use self::table::Table;
use crate::rounding::rounded;
use crate::write::weights_text;
use crate::{FitError, Fitted};

/// Fits the shipped weights to the data sets of `data/shipped.json` in `folder`: on their `train` parts, in the same
/// order every time, so that the same data give the same bytes.
///
/// # Errors
/// When a data set is missing or faulty, or does not fit the table of rules.
pub fn fit_shipped(folder: &Path) -> Result<Fitted, FitError> {
    let reader = FeatureReader::builtin()?;
    let fitter = Fitter::new(&reader, Table::builtin()?)?;
    let rules = &fitter.table.data;
    let sets: Vec<DataSet> =
        rules.iter().map(|rules| DataSet::read(folder, rules, &reader)).collect::<Result<_, _>>()?;
    let train: Vec<Part<'_>> = sets.iter().map(Part::train).collect();
    // Calibrated on conversations that the weights in question had not seen.
    let crossed = fitter.cross_fit(&train)?;
    let mut file = fitter.file(fitter.models(&train));
    file.agreement = calibration::agreement(&sets, &crossed, &fitter.table.parameters.calibration);
    file.resolution = Some(calibration::thresholds(&crossed));
    let scorer = Scorer::fitted(&weights_text(&file)?)?;
    let measured = Measured::of(&fitter, &sets, &scorer)?;
    file.manifest = Manifest {
        about:
            "Fitted by `make weights` on human ratings of public helpdesk and task dialogues: bounded least \
                squares and monotone boosting. Only coefficients were kept."
                .to_owned(),
        data: sets.iter().map(|set| set.entry.clone()).collect(),
        parameters: fitter.table.parameters.named(),
        figures: figures(&measured),
    };
    Ok(Fitted { text: weights_text(&file)?, report: report::render(&measured, &fitter, &file) })
}

fn figures(measured: &Measured<'_>) -> BTreeMap<String, f64> {
    let mut figures = BTreeMap::new();
    for row in &measured.rows {
        let name = format!("{}, {}", row.data, row.dimension.name());
        let mut put = |kind: &str, value: f64| {
            figures.insert(format!("{name}: rho {kind}"), rounded(value));
        };
        put("kept back", row.kept_back.engine.rho);
        put("within the set, 5 folds", row.within.engine.rho);
        if let Some(unseen) = row.unseen {
            put("set left out", unseen.engine.rho);
        }
    }
    figures
}
