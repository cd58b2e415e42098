//! What one transaction costs the server, by its processor time at rates it holds: the figure that stays right when the client
//! is too weak to find the server's limit.

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Microseconds of the server's processor time, per second.
    pub cpu_us: f64,
    /// Transactions with a full handshake, per second.
    pub full: f64,
    /// Transactions with a resumed one, per second.
    pub resumed: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// A transaction with a full handshake, in microseconds; absent if the steps do not tell.
    pub full_us: Option<f64>,
    /// One with a resumed handshake.
    pub resumed_us: Option<f64>,
}

impl Costs {
    /// Fits cpu = full × full_us + resumed × resumed_us to the observations by least squares. A deviation weighs by the root of
    /// the time it is a deviation of, as counts of independent events deviate, so the busiest steps say most.
    ///
    /// There is no term for a server at rest: it would take up what each transaction costs more at low rates, when nothing is
    /// shared with the one before, and then the slope that is left is less than any transaction costs.
    ///
    /// Steps of several numbers of transactions per session are needed to tell the two kinds apart. `None` if nothing can be told.
    pub fn of(observations: &[Observation]) -> Option<Self> {
        let used: Vec<_> = observations.iter().filter(|seen| seen.is_usable()).collect();
        let is_there = |kind: fn(&Observation) -> f64| used.iter().any(|seen| kind(seen) > 0.0);
        let kinds = [is_there(|seen| seen.full), is_there(|seen| seen.resumed)];
        let rows: Vec<_> = used.iter().map(|seen| seen.weighed()).collect();
        let [full, resumed] = fit(&rows, kinds)?;
        let if_told = |told: bool, cost: f64| (told && cost > 0.0).then_some(cost);
        Some(Self { full_us: if_told(kinds[0], full), resumed_us: if_told(kinds[1], resumed) })
    }
}

impl Observation {
    fn is_usable(&self) -> bool {
        self.cpu_us > 0.0 && self.cpu_us.is_finite() && self.full + self.resumed > 0.0
    }

    fn weighed(&self) -> Row {
        let root = self.cpu_us.sqrt();
        Row { columns: [self.full / root, self.resumed / root], value: root }
    }
}

/// An equation columns · x = value.
struct Row {
    columns: [f64; COLUMNS],
    value: f64,
}

/// Least squares over the columns in use; the others are zero. `None` if the rows do not determine x.
fn fit(rows: &[Row], in_use: [bool; COLUMNS]) -> Option<[f64; COLUMNS]> {
    let columns: Vec<usize> = (0..COLUMNS).filter(|column| in_use[*column]).collect();
    if columns.is_empty() || rows.len() < columns.len() {
        return None;
    }
    let scale =
        |column: usize| rows.iter().map(|row| row.columns[column].powi(2)).sum::<f64>().sqrt();
    let scales: Vec<f64> = columns.iter().map(|column| scale(*column)).collect();
    // The normal equations, with columns of length one so that a pivot says how far they are from dependent.
    let mut equations: Vec<Vec<f64>> = Vec::with_capacity(columns.len());
    for (i, a) in columns.iter().zip(&scales) {
        let mut equation: Vec<f64> = Vec::with_capacity(columns.len() + 1);
        for (j, b) in columns.iter().zip(&scales) {
            equation.push(
                rows.iter().map(|row| row.columns[*i] * row.columns[*j]).sum::<f64>() / (a * b),
            );
        }
        equation.push(rows.iter().map(|row| row.columns[*i] * row.value).sum::<f64>() / a);
        equations.push(equation);
    }
    let solution = solve(equations)?;
    let mut x = [0.0; COLUMNS];
    for ((column, value), scale) in columns.iter().zip(solution).zip(&scales) {
        x[*column] = value / scale;
    }
    x.iter().all(|value| value.is_finite()).then_some(x)
}

/// Gaussian elimination. The matrix is symmetric and positive, so its pivots are where they should be.
fn solve(mut equations: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let size = equations.len();
    for pivot in 0..size {
        let row = equations.get(pivot)?.clone();
        let value = *row.get(pivot)?;
        if value.is_nan() || value <= DEPENDENT {
            return None;
        }
        let others = equations.iter_mut().enumerate().filter(|(index, _)| *index != pivot);
        for (_, other) in others {
            let factor = *other.get(pivot)? / value;
            for (cell, of_pivot) in other.iter_mut().zip(&row) {
                *cell -= factor * of_pivot;
            }
        }
    }
    let value = |(index, row): (usize, &Vec<f64>)| Some(row.last()? / row.get(index)?);
    equations.iter().enumerate().map(value).collect()
}

/// Full, resumed.
const COLUMNS: usize = 2;

/// Below this, what is left of a column of length one after the others are taken out is noise.
const DEPENDENT: f64 = 1e-4;

#[cfg(test)]
mod tests;
