//! Comparisons of runs: how figures differ, and whether chance alone explains the differences.
//!
//! ```text
//! runs --> groups of repeats --> differs (are they comparable?)
//!                           \--> blocks --> chance (standard errors) --> parts: a table of figures for each phase
//!                                                  \--> text, Markdown, JSON, a page; limits of `--fail_on`
//! ```

mod blocks;
mod cells;
mod chance;
mod choice;
mod differs;
mod json;
mod markdown;
mod matrix;
mod page;
mod text;

use polygraph_stats::BinSet;

use crate::figures::{Figure, bins_of};
use crate::names::UnknownFigure;
use crate::run_dir::{Run, WholeRun};
use crate::verdict::VerdictOutcome;
use blocks::PhasesOfRun;
use chance::{Between, Draws, REPEATS, ResampledFigure, difference, mean, values};

pub use cells::in_words;
pub use chance::EstimatedDifference;
pub(crate) use chance::RUNS_MAX;
pub use choice::{Better, better, usual};
pub use differs::{DifferenceSeverity, RunDifference};
pub use json::json;
pub use markdown::markdown;
pub use page::page;
pub use text::{preface, text};

/// Default confidence of all intervals together.
const CONFIDENCE: f64 = 0.95;
/// Default for the relative difference below which figures count as equal.
const DELTA: f64 = 0.01;

/// One side of a comparison: a run, or repeats of a run.
#[derive(Debug)]
pub struct RunGroup {
    /// Name of the group.
    pub name: String,
    /// Runs of the group; never empty.
    pub runs: Vec<WholeRun>,
}

/// Options of a comparison.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    /// Phases, each compared separately; `all` for all phases that every run has; empty for the phases of the headline
    /// figures.
    pub phases: Vec<String>,
    /// Figures as in `lx`; empty for the default ones.
    pub objects: Vec<String>,
    /// Relative differences below this count as no difference in tables (0.01 is one percent).
    pub delta: f64,
    /// Confidence that all intervals contain the true differences (0 to 1).
    pub confidence: f64,
    /// Rows that conditions are about: their intervals have this confidence together, whatever else is shown.
    pub asked: Vec<AskedRow>,
}

/// A row of a comparison that a condition is about.
#[derive(Clone, Debug)]
pub struct AskedRow {
    /// The figure.
    pub figure: &'static Figure,
    /// The phase; `None` for each of them.
    pub phase: Option<String>,
}

impl AskedRow {
    fn is(&self, figure: &Figure, phase: &str) -> bool {
        self.figure.is_same_as(figure) && self.phase.as_deref().is_none_or(|name| name == phase)
    }
}

impl CompareOptions {
    /// The confidence of each of so many intervals with which all of them together have the confidence of the options (Bonferroni).
    pub fn confidence_of_each(&self, intervals: usize) -> f64 {
        1.0 - (1.0 - self.confidence) / intervals.max(1) as f64
    }
}

impl Default for CompareOptions {
    fn default() -> CompareOptions {
        CompareOptions {
            phases: Vec::new(),
            objects: Vec::new(),
            delta: DELTA,
            confidence: CONFIDENCE,
            asked: Vec::new(),
        }
    }
}

/// Why runs cannot be compared.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// Fewer than two groups.
    #[error("a comparison needs at least two runs")]
    TooFew,
    /// Two groups have the same name.
    #[error("two of the runs have the name `{0}`: name them, for example old=runs/a new=runs/b")]
    SameName(String),
    /// No figure has this name.
    #[error(transparent)]
    NoSuchFigure(#[from] UnknownFigure),
    /// A run has not measured this phase.
    #[error("run `{run}` has no statistics of phase `{phase}`; it has: {}", measured.join(", "))]
    NoSuchPhase {
        /// The run.
        run: String,
        /// The phase.
        phase: String,
        /// Phases of the run.
        measured: Vec<String>,
    },
    /// A figure needs bins that were not read.
    #[error("the histogram of figure {figure} was not read from run `{run}`")]
    BinsNotRead {
        /// The run.
        run: String,
        /// The figure.
        figure: &'static str,
    },
    /// Nothing was measured in a run.
    #[error("nothing was measured in run `{0}`")]
    NothingMeasured(String),
}

/// The significance of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeJudgement {
    /// Chance explains it, or it is too small to matter.
    Noise,
    /// A difference for the better.
    Better,
    /// A difference for the worse.
    Worse,
    /// A higher value of a figure that has no better direction.
    Higher,
    /// A lower value of a figure that has no better direction.
    Lower,
    /// Unknown: the figure is undefined on one side, or the phase is too short.
    Unknown,
}

impl ChangeJudgement {
    /// A word for tables.
    pub fn word(self) -> &'static str {
        match self {
            ChangeJudgement::Noise => "noise",
            ChangeJudgement::Better => "better",
            ChangeJudgement::Worse => "worse",
            ChangeJudgement::Higher => "higher",
            ChangeJudgement::Lower => "lower",
            ChangeJudgement::Unknown => "unknown",
        }
    }

    /// Whether the judgement is a significant difference.
    pub fn differs(self) -> bool {
        !matches!(self, ChangeJudgement::Noise | ChangeJudgement::Unknown)
    }
}

/// The difference of a figure between a group and the first group.
#[derive(Clone, Debug)]
pub struct FigureChange {
    /// The difference; `None` if the figure is undefined in one of them.
    pub difference: Option<EstimatedDifference>,
    /// Half of the width of its confidence interval; `None` if it is not known.
    pub plus_minus: Option<f64>,
    /// The difference in percent of the first group's value; `None` if that is 0 or not known.
    pub percent: Option<f64>,
    /// The significance of the difference.
    pub judgement: ChangeJudgement,
}

/// A figure of all groups.
#[derive(Clone, Debug)]
pub struct ComparedFigure {
    /// The figure.
    pub figure: &'static Figure,
    /// Whether more or less of the figure is better.
    pub better: Better,
    /// Value in each group: the mean of its runs.
    pub values: Vec<Option<f64>>,
    /// Differences of all other groups from the first group.
    pub changes: Vec<FigureChange>,
    /// The group with the best value, and all groups that do not differ significantly from it. Empty if no group is
    /// better than another.
    pub best: Vec<usize>,
}

/// The figures of some phases.
#[derive(Clone, Debug)]
pub struct ComparedPhases {
    /// The phases, joined with `|`.
    pub phase: String,
    /// Length of the phases in each group, in seconds: the mean of its runs.
    pub seconds: Vec<f64>,
    /// Number of blocks of time from which random variation was estimated.
    pub blocks: usize,
    /// The figures, except those that are undefined in every group.
    pub rows: Vec<ComparedFigure>,
}

/// The result of a comparison.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// The groups that were compared.
    pub groups: &'a [RunGroup],
    /// The options of the comparison.
    pub options: CompareOptions,
    /// Differences between the runs other than figures, the most severe first.
    pub differs: Vec<RunDifference>,
    /// One part for each selected phase.
    pub parts: Vec<ComparedPhases>,
    /// Confidence of each single interval, which gives all intervals together the confidence of the options.
    pub single_confidence: f64,
    /// The same for the rows that conditions are about.
    pub asked_confidence: f64,
}

impl Comparison<'_> {
    /// Whether the runs should not be compared.
    pub fn refused(&self) -> bool {
        self.differs.iter().any(|differs| differs.weight == DifferenceSeverity::Refuse)
    }

    /// Groups in which the device failed although it did not fail in the first group: their names, and the verdict of the first
    /// failed run. No figure of a failed run says that it got better.
    pub fn newly_failed(&self) -> Vec<(&str, String)> {
        fn failed(group: &RunGroup) -> Option<String> {
            let verdicts = group.runs.iter().map(|run| &run.facts.verdict);
            let failed = verdicts.into_iter().find(|verdict| verdict.outcome == VerdictOutcome::Failed)?;
            let why = failed.findings.first().map_or("", |finding| &finding.text);
            Some(format!("{}: {why}", failed.word()))
        }
        let Some((first, others)) = self.groups.split_first() else { return Vec::new() };
        match failed(first) {
            Some(_) => Vec::new(),
            None => others.iter().filter_map(|group| Some((group.name.as_str(), failed(group)?))).collect(),
        }
    }

    /// Significant changes with their rows.
    pub fn found(&self) -> impl Iterator<Item = (&ComparedPhases, &ComparedFigure, usize, &FigureChange)> {
        self.parts.iter().flat_map(|part| {
            part.rows.iter().flat_map(move |row| {
                let changes = row.changes.iter().enumerate();
                changes
                    .filter(|(_, change)| change.judgement.differs())
                    .map(move |(i, c)| (part, row, i + 1, c))
            })
        })
    }

    /// The statistical method, in words.
    pub fn method(&self) -> String {
        let blocks: Vec<String> = self.parts.iter().map(|part| part.blocks.to_string()).collect();
        let bootstrap = format!(
            "from a block bootstrap, which cuts each phase into {} blocks of time and makes the same draws for all runs. They \
             are larger if neighbouring blocks resemble each other or repeats of a run differ more.",
            blocks.join(", ")
        );
        let many = |group: &RunGroup| group.runs.len() >= REPEATS;
        let repeated = self.groups.iter().filter(|group| many(group)).count();
        let source = match repeated {
            _ if repeated == self.groups.len() => "from the variance between the runs of a group.".to_owned(),
            0 | 1 => bootstrap,
            _ => format!(
                "from the variance between runs where both groups have {REPEATS} runs or more, and otherwise {bootstrap}"
            ),
        };
        let asked = match self.options.asked.is_empty() {
            true => String::new(),
            false => format!(
                ", or {:.2} % for the rows of conditions, which count by themselves",
                100.0 * self.asked_confidence
            ),
        };
        format!(
            "Standard errors come {source} Intervals follow Student's distribution, with {} % confidence for all of them \
             together ({:.2} % each{asked}). Relative differences below {} % count as none.",
            100.0 * self.options.confidence,
            100.0 * self.single_confidence,
            100.0 * self.options.delta
        )
    }
}

/// The histograms whose bins runs must have for a comparison of these figures, named as in [`CompareOptions::objects`].
///
/// # Errors
/// If a figure does not exist.
pub fn needed_bins(objects: &[String]) -> Result<BinSet, CompareError> {
    // The page always shows percentiles of response times.
    Ok(BinSet::RESPONSE_TIMES | bins_of(choice::choose(objects)?))
}

/// Compares groups of runs with the first of them.
///
/// # Errors
/// If there are fewer than two groups, or an option names something that does not exist. Runs that should not be compared are not
/// an error; see [`Comparison::refused`].
pub fn compare(groups: &[RunGroup], options: CompareOptions) -> Result<Comparison<'_>, CompareError> {
    if groups.len() < 2 {
        return Err(CompareError::TooFew);
    }
    for (i, group) in groups.iter().enumerate() {
        if groups[..i].iter().any(|other| other.name == group.name) {
            return Err(CompareError::SameName(group.name.clone()));
        }
    }
    let figures = choice::choose(&options.objects)?;
    for run in groups.iter().flat_map(|group| &group.runs) {
        if let Some(figure) = figures.iter().find(|figure| !run.bins.contains(figure.bins)) {
            return Err(CompareError::BinsNotRead { run: run.name(), figure: &figure.name });
        }
    }
    let phases = phases(groups, &options.phases)?;
    let measured: Vec<MeasuredPhases> =
        phases.iter().map(|names| MeasuredPhases::new(groups, names, &figures)).collect();
    let is_asked = |part: &MeasuredPhases, index: usize| {
        options.asked.iter().any(|row| row.is(figures[index], &part.phase))
    };
    let rows = |asked: bool| -> usize {
        let of_part =
            |part: &MeasuredPhases| part.defined().filter(|row| is_asked(part, *row) == asked).count();
        measured.iter().map(of_part).sum()
    };
    let others = groups.len() - 1;
    let single_confidence = options.confidence_of_each(rows(false) * others);
    let asked_confidence = options.confidence_of_each(rows(true) * others);
    let judge = |part: &MeasuredPhases| {
        let confidence =
            |index: usize| if is_asked(part, index) { asked_confidence } else { single_confidence };
        part.judge(&figures, groups, confidence, options.delta)
    };
    let parts = measured.iter().map(judge).collect();
    Ok(Comparison {
        groups,
        differs: all_differs(groups),
        parts,
        single_confidence,
        asked_confidence,
        options,
    })
}

/// The phases of each part, by run: usually the same for all, but the primary phases may have other names in each.
type PhaseNames = Vec<Vec<Vec<String>>>;

fn phases(groups: &[RunGroup], wanted: &[String]) -> Result<Vec<PhaseNames>, CompareError> {
    let everywhere = |pick: &dyn Fn(&Run) -> Result<Vec<String>, CompareError>| {
        groups
            .iter()
            .map(|group| group.runs.iter().map(|run| pick(run)).collect())
            .collect::<Result<PhaseNames, _>>()
    };
    if wanted.is_empty() {
        let headline = |run: &Run| match &run.facts.headline {
            Some(headline) => Ok(headline.phase.split('|').map(str::to_owned).collect()),
            None => Err(CompareError::NothingMeasured(run.name())),
        };
        return Ok(vec![everywhere(&headline)?]);
    }
    let measured = |run: &Run| -> Vec<String> {
        let phases = run.facts.main_side().phases.iter().filter(|phase| phase.scope.is_some());
        phases.map(|phase| phase.name.clone()).collect()
    };
    let all = wanted.iter().any(|name| name == "all");
    let wanted: Vec<String> = if all {
        let common =
            |name: &String| groups.iter().flat_map(|g| &g.runs).all(|run| measured(run).contains(name));
        measured(&groups[0].runs[0]).into_iter().filter(common).collect()
    } else {
        wanted.to_vec()
    };
    wanted
        .iter()
        .map(|phase| {
            everywhere(&|run: &Run| {
                let measured = measured(run);
                if measured.contains(phase) {
                    return Ok(vec![phase.clone()]);
                }
                Err(CompareError::NoSuchPhase { run: run.name(), phase: phase.clone(), measured })
            })
        })
        .collect()
}

/// Values of all figures in one part.
struct MeasuredPhases {
    phase: String,
    seconds: Vec<f64>,
    blocks: usize,
    /// By figure, then by group, then by run.
    values: Vec<Vec<Vec<ResampledFigure>>>,
}

impl MeasuredPhases {
    fn new(groups: &[RunGroup], names: &PhaseNames, figures: &[&Figure]) -> MeasuredPhases {
        let cut = |group: usize, run: usize| PhasesOfRun::new(&groups[group].runs[run], &names[group][run]);
        let each = || {
            groups.iter().enumerate().flat_map(|(g, group)| (0..group.runs.len()).map(move |run| (g, run)))
        };
        // All runs need the same blocks, because they share the draws.
        let blocks = each().map(|(group, run)| cut(group, run).blocks()).min().unwrap_or(0);
        let draws = Draws::new(blocks);
        let mut all: Vec<Vec<Vec<ResampledFigure>>> = vec![vec![Vec::new(); groups.len()]; figures.len()];
        let mut seconds = vec![0.0; groups.len()];
        for (group, run) in each() {
            let cut = cut(group, run);
            seconds[group] += cut.scope().map_or(0.0, |s| s.seconds) / groups[group].runs.len() as f64;
            let of_run = values(cut, blocks, &draws, figures);
            of_run.into_iter().zip(&mut all).for_each(|(value, figure)| figure[group].push(value));
        }
        MeasuredPhases { phase: names[0][0].join("|"), seconds, blocks, values: all }
    }

    /// Figures that have a value in at least one group.
    fn defined(&self) -> impl Iterator<Item = usize> {
        let values = self.values.iter().enumerate();
        values.filter(|(_, groups)| groups.iter().any(|group| mean(group).is_some())).map(|(index, _)| index)
    }

    fn judge(
        &self,
        figures: &[&'static Figure],
        groups: &[RunGroup],
        confidence: impl Fn(usize) -> f64,
        delta: f64,
    ) -> ComparedPhases {
        let usable: Vec<bool> = groups
            .iter()
            .map(|group| group.runs.iter().all(|run| run.facts.verdict.outcome != VerdictOutcome::Invalid))
            .collect();
        let rows = self.defined().map(|index| {
            let (figure, values) = (figures[index], &self.values[index]);
            let better = better(&figure.name);
            let between = Between::new(values.iter().map(Vec::as_slice));
            let change = |from: usize, to: usize| {
                let difference = difference(&values[from], &values[to], between);
                FigureChange::new(difference, mean(&values[from]), better, confidence(index), delta)
            };
            ComparedFigure {
                figure,
                better,
                values: values.iter().map(|group| mean(group)).collect(),
                changes: (1..values.len()).map(|to| change(0, to)).collect(),
                best: best(values, better, &usable, change),
            }
        });
        ComparedPhases {
            phase: self.phase.clone(),
            seconds: self.seconds.clone(),
            blocks: self.blocks,
            rows: rows.collect(),
        }
    }
}

/// The best group and all groups that do not differ significantly from it; none if no group is worse.
fn best(
    values: &[Vec<ResampledFigure>],
    better: Better,
    usable: &[bool],
    change: impl Fn(usize, usize) -> FigureChange,
) -> Vec<usize> {
    let candidates: Vec<(usize, f64)> = (0..values.len())
        .filter(|&group| usable[group])
        .filter_map(|group| Some((group, mean(&values[group])?)))
        .collect();
    let first = candidates.iter().copied().reduce(|a, b| if better.prefers(b.1, a.1) { b } else { a });
    let Some((first, _)) = first.filter(|_| better != Better::Neither) else { return Vec::new() };
    let as_good: Vec<usize> = candidates
        .iter()
        .map(|(group, _)| *group)
        .filter(|&group| group == first || !change(first, group).judgement.differs())
        .collect();
    if as_good.len() == candidates.len() { Vec::new() } else { as_good }
}

impl FigureChange {
    fn new(
        difference: Option<EstimatedDifference>,
        from: Option<f64>,
        better: Better,
        confidence: f64,
        delta: f64,
    ) -> FigureChange {
        let (Some(difference), Some(from)) = (difference, from) else {
            return FigureChange {
                difference: None,
                plus_minus: None,
                percent: None,
                judgement: ChangeJudgement::Unknown,
            };
        };
        let by = difference.by;
        let plus_minus = difference.plus_minus(confidence);
        let to = from + by;
        let small = by.abs() < delta * from.abs().min(to.abs());
        let judgement = match plus_minus {
            None if by != 0.0 && !small => ChangeJudgement::Unknown,
            None => ChangeJudgement::Noise,
            Some(plus_minus) if by.abs() <= plus_minus || small => ChangeJudgement::Noise,
            Some(_) if better.prefers(to, from) => ChangeJudgement::Better,
            Some(_) if better.prefers(from, to) => ChangeJudgement::Worse,
            Some(_) if by > 0.0 => ChangeJudgement::Higher,
            Some(_) => ChangeJudgement::Lower,
        };
        let percent = (from != 0.0).then(|| 100.0 * by / from.abs());
        FigureChange { difference: Some(difference), plus_minus, percent, judgement }
    }
}

fn all_differs(groups: &[RunGroup]) -> Vec<RunDifference> {
    let reference = &groups[0].runs[0];
    let mut all = Vec::new();
    for (g, group) in groups.iter().enumerate() {
        for (r, run) in group.runs.iter().enumerate() {
            let name = if group.runs.len() > 1 {
                format!("{}, {}", group.name, run.name())
            } else {
                group.name.clone()
            };
            all.extend(differs::unusable(run, &name));
            if (g, r) != (0, 0) {
                all.extend(differs::differ(reference, run, &name));
            }
        }
    }
    all.sort_by_key(|differs| differs.weight);
    all
}

#[cfg(test)]
mod tests;
