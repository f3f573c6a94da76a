//! How robots request objects: settings of robots, and of contents that replace them.

use crate::codes::Code;
use crate::eval::UsedRecord;
use crate::source::Span;
use crate::types::{ClientBehavior, Content, ContentId, PopModel, RequestRange, Robot, Selector, Server};
use crate::value::Record;
use crate::workload::{Checks, RecordContext, VisibleServers, Workload, set_field, set_field_to};

pub(super) const REQ_TYPES: &[&str] = &["Basic", "Ims200", "Ims304", "Reload", "Range", "Upload"];
pub(super) const REQ_METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT"];

/// A content with its own client behaviour.
pub struct BehavingContent<'a> {
    id: ContentId,
    kind: &'a str,
    behavior: &'a ClientBehavior,
    place: RecordContext<'a>,
}

impl<'a> BehavingContent<'a> {
    /// The behaviour of a content, if it has one; `around` is a position near the content.
    pub fn of(id: ContentId, content: &'a Content, record: &'a Record, around: Option<Span>) -> Option<Self> {
        let place = RecordContext { record, around, used: None }.part("client_behavior")?;
        let kind = content.kind.as_deref().unwrap_or("some-content");
        Some(Self { id, kind, behavior: content.client_behavior.as_deref()?, place })
    }
}

/// The client behaviours of the contents that a robot requests.
pub struct RequestedContents<'a> {
    contents: Vec<&'a BehavingContent<'a>>,
    /// False if an error hides further contents.
    complete: bool,
}

impl<'a> RequestedContents<'a> {
    /// The contents that the servers of the robot's origins offer directly. Embedded objects are requested with
    /// basic GET requests.
    pub fn by(
        robot: &Robot,
        used: &UsedRecord,
        special: &'a [BehavingContent<'a>],
        visible: &VisibleServers,
        workload: &Workload,
    ) -> Self {
        if special.is_empty() {
            return Self { contents: Vec::new(), complete: true };
        }
        let servers: Vec<&Server> = visible.servers_of(robot).map(|at| &workload.servers[at]).collect();
        let met = |special: &&BehavingContent<'_>| {
            servers.iter().any(|server| direct(server).values().any(|content| *content == special.id))
        };
        let contents: Vec<&BehavingContent<'_>> = special.iter().filter(met).collect();
        let complete = visible.complete
            && !used.record.is_bad("origins")
            && !contents.iter().any(|special| special.place.record.has_bad());
        Self { contents, complete }
    }
}

/// The contents that robots request directly.
pub fn direct(server: &Server) -> &Selector<ContentId> {
    if server.direct_access.is_empty() { &server.contents } else { &server.direct_access }
}

/// Checks the behaviour of a content.
pub fn of_content(special: &BehavingContent<'_>, checks: &mut Checks<'_>) {
    let ClientBehavior { req_types, req_methods, ranges, recurrence, pop_model } = special.behavior;
    checks.share(special.place, "recurrence", recurrence.unwrap_or(0.0));
    checks.behavior(special.place, req_types, req_methods, ranges, pop_model.as_deref());
}

/// Checks the behaviour of a robot, alone and together with the contents that it requests.
pub fn of_robot(robot: &Robot, used: &UsedRecord, met: &RequestedContents<'_>, checks: &mut Checks<'_>) {
    let model = robot.agent.pop_model.as_deref();
    checks.share(used, "recurrence", robot.recurrence);
    checks.behavior(used, &robot.req_types, &robot.req_methods, &robot.ranges, model);
    if robot.recurrence > 0.0 && model.is_none() {
        let text = "the robot requests objects again, but it has no popularity model to choose them";
        checks.choose_popularity(Code::RobotIncomplete, used, "recurrence", text, "remove `recurrence`");
    }
    let again = |special: &&&BehavingContent<'_>| {
        special.behavior.recurrence.is_some_and(|share| share > 0.0) && special.behavior.pop_model.is_none()
    };
    for special in met.contents.iter().filter(again).filter(|_| model.is_none()) {
        let text = format!(
            "objects of \"{}\" are requested again, but neither the content nor the robot has a popularity model to choose them",
            special.kind
        );
        let otherwise = "remove `recurrence`";
        checks.choose_popularity(Code::ContentIncomplete, special.place, "recurrence", &text, otherwise);
    }
    companions(robot, used, met, checks);
}

/// What certain requests need.
struct Companion {
    /// The requests, in words.
    what: &'static str,
    /// The field of a robot with what they need.
    field: &'static str,
    /// Types and methods that make such requests.
    types: &'static [&'static str],
    methods: &'static [&'static str],
    /// A field that makes robots send some, with an example of its value.
    example: (&'static str, &'static str),
}

const COMPANIONS: [Companion; 3] = [
    Companion {
        what: "POST requests",
        field: "post_contents",
        types: &[],
        methods: &["POST"],
        example: ("req_methods", "[ \"GET\", \"POST\": 5% ]"),
    },
    Companion {
        what: "uploads",
        field: "upload_contents",
        types: &["Upload"],
        methods: &["PUT"],
        example: ("req_methods", "[ \"GET\", \"PUT\": 5% ]"),
    },
    Companion {
        what: "range requests",
        field: "ranges",
        types: &["Range"],
        methods: &[],
        example: ("req_types", "[ \"Basic\", \"Range\": 5% ]"),
    },
];

impl Companion {
    /// The field that causes such requests.
    fn cause(&self, types: &Selector<String>, methods: &Selector<String>) -> Option<&'static str> {
        let listed =
            |selector: &Selector<String>, words: &[&str]| words.iter().any(|word| selector.prob(word) > 0.0);
        if listed(methods, self.methods) {
            Some("req_methods")
        } else {
            listed(types, self.types).then_some("req_types")
        }
    }
}

/// Checks that requests with bodies have contents for them, and range requests have ranges, and the reverse.
fn companions(robot: &Robot, used: &UsedRecord, met: &RequestedContents<'_>, checks: &mut Checks<'_>) {
    let has = [!robot.post_contents.is_empty(), !robot.upload_contents.is_empty(), !robot.ranges.is_empty()];
    for (companion, has) in COMPANIONS.iter().zip(has) {
        let Companion { what, field, .. } = companion;
        let own = companion.cause(&robot.req_types, &robot.req_methods);
        let mut others = met.contents.iter().filter_map(|special| {
            Some((special, companion.cause(&special.behavior.req_types, &special.behavior.req_methods)?))
        });
        if has {
            if own.is_none() && others.next().is_none() && met.complete {
                let text = format!("`{field}` is set, but there are no {what}");
                let (wanted, example) = companion.example;
                let help = set_field_to(used, wanted, Some(example));
                checks.missing_with(Code::RobotConflict, used, field, wanted, &text, help);
            }
        } else if let Some(cause) = own {
            let text = format!("{what} need `{field}`");
            checks.missing(Code::RobotIncomplete, used, cause, field, &text);
        } else if let Some((special, cause)) =
            others.find(|(special, _)| *field != "ranges" || special.behavior.ranges.is_empty())
            && !used.record.is_bad(field)
        {
            let text = format!("{what} for \"{}\" need `{field}`, but the robot has none", special.kind);
            let finding = checks.at(Code::RobotIncomplete, special.place, cause, text);
            checks.push(finding.also(used.span, "the robot is used here").help(set_field(used, field)));
        }
    }
}

impl Checks<'_> {
    /// Checks the settings that robots and contents share.
    fn behavior<'p>(
        &mut self,
        place: impl Into<RecordContext<'p>>,
        types: &Selector<String>,
        methods: &Selector<String>,
        ranges: &Selector<RequestRange>,
        model: Option<&PopModel>,
    ) {
        let place = place.into();
        self.words(place, "req_types", types, REQ_TYPES);
        self.words(place, "req_methods", methods, REQ_METHODS);
        for text in ranges.values().filter_map(bad_range) {
            if !place.record.is_bad("ranges") {
                let finding = self.at(Code::BadPart, place, "ranges", text);
                self.push(finding);
            }
        }
        if model.is_some_and(|model| model.pop_distr.is_none()) {
            let text = "the popularity model has no distribution";
            let otherwise = "remove the other settings of the model";
            self.choose_popularity(Code::RobotIncomplete, place, "pop_model", text, otherwise);
        }
    }
}

fn bad_range(range: &RequestRange) -> Option<&'static str> {
    match range {
        RequestRange::Single(range) => {
            let first = (range.first_byte_pos_absolute.is_some(), range.first_byte_pos_relative.is_some());
            let last = (range.last_byte_pos_absolute.is_some(), range.last_byte_pos_relative.is_some());
            let suffix = (range.suffix_length_absolute.is_some(), range.suffix_length_relative.is_some());
            let any = |pair: (bool, bool)| pair.0 || pair.1;
            if [first, last, suffix].contains(&(true, true)) {
                Some("a range has an absolute or a relative bound, not both")
            } else if any(suffix) && (any(first) || any(last)) {
                Some("a range has a start or a suffix length, not both")
            } else if any(last) && !any(first) {
                Some("a range with a last byte needs a first byte")
            } else if !any(first) && !any(suffix) {
                Some("a range needs a start or a suffix length")
            } else {
                None
            }
        }
        RequestRange::Multi(range) => {
            let lengths = (range.range_length_absolute.is_some(), range.range_length_relative.is_some());
            if range.first_range_start_absolute.is_some() && range.first_range_start_relative.is_some() {
                Some("the start of the first range is absolute or relative, not both")
            } else if lengths.0 == lengths.1 {
                Some("a MultiRange needs range_length_absolute or range_length_relative, and not both")
            } else if range.range_count.is_none() {
                Some("a MultiRange needs a range_count")
            } else {
                None
            }
        }
    }
}
