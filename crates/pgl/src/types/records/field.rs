//! The Rust types of the fields in the table, and the conversion of values to them.

use std::marker::PhantomData;
use std::sync::Arc;

use polygraph_addr::{Addr, AddrRange};
use rustc_hash::FxHashMap;

use crate::types::{
    Base, Content, MimeHeader, MultiRange, Rec, RequestRange, SingleRange, SslWrap, StatsSample, Ty,
};
use crate::value::{
    CloneOrder, Distr, Domain, PopDistr, Qualifier, Re, Record, Shape, Value, exact, flat, flatten,
};

/// A type that a field can have.
pub trait FieldType: Sized {
    /// The type in the language.
    const TY: Ty;
    /// True if an undefined value is meaningful.
    const OPTIONAL: bool = false;
    /// Converts a value of that type. Any other value (after an error) becomes a harmless default.
    fn from_value(value: &Value, cx: &mut Converter) -> Self;
}

/// A duration or a point in time, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

impl Time {
    /// The time in seconds.
    pub fn secs(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(pub i64);

/// Events per second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Rate(pub f64);

/// Bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Bandwidth(pub f64);

/// Index of a content type in a workload. The number appears in URLs, so all processes of a test must use the
/// same program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentId(pub u32);

/// Index of TLS settings in a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SslWrapId(pub u32);

/// Index of a phase script in a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScriptId(pub u32);

/// A visible name: an address, possibly dynamic.
#[derive(Debug, Clone, PartialEq)]
pub struct VisibleName {
    /// The address; the mask of a dynamic name starts with a dot.
    pub addr: Addr,
    /// The share of new objects that get a new host name, for a dynamic name.
    pub new_prob: Option<f64>,
}

/// The addresses of agents in the order in which agents are numbered (`docs/reference/language.md`, "Cloning and order").
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentAddrs(pub Vec<Addr>);

/// For each machine of a side, the cores that its workers run on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CoreLists(pub Vec<Vec<i32>>);

/// Extra headers: one, or a group that is included or left out as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct HeaderRule {
    /// Probability (0..1) of inclusion.
    pub prob: f64,
    /// The headers. With more than one, each has its own probability in addition.
    pub what: HeaderChoice,
}

/// What a [`HeaderRule`] includes.
#[derive(Debug, Clone, PartialEq)]
pub enum HeaderChoice {
    /// One header.
    One(MimeHeader),
    /// Several rules.
    Group(Vec<HeaderRule>),
}

/// Types that distributions draw.
pub trait DrawnType {
    /// The domain of such distributions.
    const DOMAIN: Domain;
}
impl DrawnType for i32 {
    const DOMAIN: Domain = Domain::Int;
}
impl DrawnType for f64 {
    const DOMAIN: Domain = Domain::Float;
}
impl DrawnType for Time {
    const DOMAIN: Domain = Domain::Time;
}
impl DrawnType for Size {
    const DOMAIN: Domain = Domain::Size;
}

/// A distribution of `T`: parameters are plain numbers, seconds for times and bytes for sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution<T> {
    /// The form of the distribution.
    pub shape: Shape,
    /// The base of drawn expiration times.
    pub qualifier: Option<Qualifier>,
    drawn: PhantomData<T>,
}

impl<T: DrawnType> Distribution<T> {
    /// A distribution of this form.
    pub fn new(shape: Shape) -> Self {
        Self { shape, qualifier: None, drawn: PhantomData }
    }

    /// The mean of the drawn values, if it is defined.
    pub fn mean(&self) -> Option<f64> {
        Distr { domain: T::DOMAIN, shape: self.shape.clone(), qualifier: None }.mean()
    }
}

/// Marks selectors whose probabilities follow the nesting of the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tree;

/// Marks selectors that are uniform over all items if no probability is given anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flat;

/// How a selector computes probabilities.
pub trait Weighting {
    /// True for [`Flat`].
    const FLAT: bool;
}
impl Weighting for Tree {
    const FLAT: bool = false;
}
impl Weighting for Flat {
    const FLAT: bool = true;
}

/// Items with their probabilities, which add up to 1. Empty if nothing was set.
#[derive(Debug, Clone, PartialEq)]
pub struct Selector<T, M = Tree> {
    /// The items.
    pub items: Vec<(T, f64)>,
    /// Some of the probabilities are written out; otherwise all follow from the number of items.
    pub weighted: bool,
    method: PhantomData<M>,
}

impl<T, M> Selector<T, M> {
    /// A selector of these items.
    fn new(items: Vec<(T, f64)>, weighted: bool) -> Self {
        Self { items, weighted, method: PhantomData }
    }

    /// True if nothing was set.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The items without their probabilities.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.items.iter().map(|(value, _)| value)
    }
}

impl<T, M> Default for Selector<T, M> {
    fn default() -> Self {
        Self::new(Vec::new(), false)
    }
}

impl<M> Selector<String, M> {
    /// The probability of a word; 0 if it is not listed.
    pub fn prob(&self, word: &str) -> f64 {
        self.items.iter().filter(|(known, _)| known == word).fold(0.0, |sum, (_, prob)| sum + prob)
    }
}

/// Converts values to the types of a workload, and numbers content types and TLS settings.
pub struct Converter {
    budget: u64,
    exceeded: bool,
    contents: Vec<Option<Content>>,
    content_records: Vec<Arc<Record>>,
    content_ids: FxHashMap<String, ContentId>,
    wraps: Vec<Option<SslWrap>>,
    wrap_records: Vec<Arc<Record>>,
    wrap_ids: FxHashMap<String, SslWrapId>,
    // The same record often occurs again, and its address is quicker to compare than its text. Keeping the
    // record keeps the address valid.
    seen: FxHashMap<usize, (Arc<Record>, u32)>,
}

impl Converter {
    /// A new converter; at most `budget` items of arrays and ranges will be written out.
    pub fn new(budget: u64) -> Self {
        Self {
            budget,
            exceeded: false,
            contents: Vec::new(),
            content_records: Vec::new(),
            content_ids: FxHashMap::default(),
            wraps: Vec::new(),
            wrap_records: Vec::new(),
            wrap_ids: FxHashMap::default(),
            seen: FxHashMap::default(),
        }
    }

    /// True if items were left out because there are too many.
    pub fn exceeded(&self) -> bool {
        self.exceeded
    }

    /// Reserves budget for the items of a value.
    fn take(&mut self, value: &Value) -> bool {
        let fits = value.len() <= self.budget;
        self.budget -= if fits { value.len() } else { 0 };
        self.exceeded |= !fits;
        fits
    }

    /// The number of a content type; equal values have the same one.
    pub fn content(&mut self, record: &Arc<Record>) -> ContentId {
        let address = Arc::as_ptr(record) as usize;
        if let Some((_, id)) = self.seen.get(&address) {
            return ContentId(*id);
        }
        let text = exact(&Value::Record(record.clone()));
        if let Some(id) = self.content_ids.get(&text) {
            return *id;
        }
        // The number is assigned before embedded types are converted, so a container precedes its contents.
        let id = ContentId(self.contents.len() as u32);
        self.contents.push(None);
        self.content_records.push(record.clone());
        self.content_ids.insert(text, id);
        self.seen.insert(address, (record.clone(), id.0));
        let content = Content::from_record(record, self);
        self.contents[id.0 as usize] = Some(content);
        id
    }

    /// The number of TLS settings; equal values have the same one.
    pub fn ssl_wrap(&mut self, record: &Arc<Record>) -> SslWrapId {
        let text = exact(&Value::Record(record.clone()));
        if let Some(id) = self.wrap_ids.get(&text) {
            return *id;
        }
        let id = SslWrapId(self.wraps.len() as u32);
        self.wrap_ids.insert(text, id);
        self.wrap_records.push(record.clone());
        let wrap = SslWrap::from_record(record, self);
        self.wraps.push(Some(wrap));
        id
    }

    /// All content types and TLS settings, each with its record.
    #[expect(clippy::type_complexity, reason = "taken apart at once by the one caller")]
    pub fn finish(self) -> (Vec<(Content, Arc<Record>)>, Vec<(SslWrap, Arc<Record>)>) {
        let contents = self.contents.into_iter().zip(self.content_records);
        let wraps = self.wraps.into_iter().zip(self.wrap_records);
        (
            contents.filter_map(|(content, record)| Some((content?, record))).collect(),
            wraps.filter_map(|(wrap, record)| Some((wrap?, record))).collect(),
        )
    }
}

macro_rules! scalar {
    ($ty:ty, $base:expr, $pattern:pat => $value:expr, else $other:expr) => {
        impl FieldType for $ty {
            const TY: Ty = Ty::one($base);
            fn from_value(value: &Value, _: &mut Converter) -> Self {
                match value {
                    $pattern => $value,
                    _ => $other,
                }
            }
        }
        impl FieldType for Option<$ty> {
            const TY: Ty = Ty::one($base);
            const OPTIONAL: bool = true;
            fn from_value(value: &Value, _: &mut Converter) -> Self {
                match value {
                    $pattern => Some($value),
                    _ => None,
                }
            }
        }
    };
}

scalar!(bool, Base::Bool, Value::Bool(value) => *value, else false);
scalar!(i32, Base::Int, Value::Int(value) => *value, else 0);
scalar!(f64, Base::Float, Value::Float(value) => *value, else 0.0);
scalar!(String, Base::Str, Value::Str(text) => text.to_string(), else String::new());
scalar!(Time, Base::Time, Value::Time(us) => Time(*us), else Time(0));
scalar!(Size, Base::Size, Value::Size(bytes) => Size(*bytes), else Size(0));
scalar!(Rate, Base::Rate, Value::Rate(rate) => Rate(*rate), else Rate(0.0));
scalar!(Bandwidth, Base::Bwidth, Value::Bwidth(rate) => Bandwidth(*rate), else Bandwidth(0.0));
scalar!(u64, Base::UniqId, Value::UniqId(id) => *id, else 0);
scalar!(PopDistr, Base::PopDistr, Value::PopDistr(distr) => *distr, else PopDistr::Unif);
scalar!(ScriptId, Base::Code, Value::Code(number) => ScriptId(*number), else ScriptId(0));

impl FieldType for Option<Addr> {
    const TY: Ty = Ty::one(Base::Addr);
    const OPTIONAL: bool = true;
    fn from_value(value: &Value, _: &mut Converter) -> Self {
        name(value).map(|name| name.addr)
    }
}

impl FieldType for Option<Arc<Re>> {
    const TY: Ty = Ty::one(Base::Re);
    const OPTIONAL: bool = true;
    fn from_value(value: &Value, _: &mut Converter) -> Self {
        match value {
            Value::Re(re) => Some(re.clone()),
            _ => None,
        }
    }
}

impl<T: DrawnType> FieldType for Option<Distribution<T>> {
    const TY: Ty = Ty::one(Base::Distr(T::DOMAIN));
    const OPTIONAL: bool = true;
    fn from_value(value: &Value, _: &mut Converter) -> Self {
        distribution(value).filter(|distr| distr.shape != Shape::None)
    }
}

fn distribution<T>(value: &Value) -> Option<Distribution<T>> {
    match value {
        Value::Distr(distr) => {
            Some(Distribution { shape: distr.shape.clone(), qualifier: distr.qualifier, drawn: PhantomData })
        }
        _ => None,
    }
}

fn name(value: &Value) -> Option<VisibleName> {
    match value {
        Value::Addr(addr) => Some(VisibleName { addr: (**addr).clone(), new_prob: None }),
        Value::DynName(addr, prob) => Some(VisibleName { addr: (**addr).clone(), new_prob: Some(*prob) }),
        _ => None,
    }
}

fn list<T>(
    value: &Value,
    order: CloneOrder,
    cx: &mut Converter,
    mut item: impl FnMut(&mut Converter, Value) -> Option<T>,
) -> Vec<T> {
    let mut all = Vec::new();
    if value.is_container() && cx.take(value) {
        flatten(value, order, &mut |value, _| all.extend(item(cx, value)));
    }
    all
}

impl FieldType for AgentAddrs {
    const TY: Ty = Ty::array_of(Base::Addr);
    const OPTIONAL: bool = true;
    fn from_value(value: &Value, cx: &mut Converter) -> Self {
        AgentAddrs(list(value, CloneOrder::Agents, cx, |_, value| name(&value).map(|name| name.addr)))
    }
}

impl FieldType for Vec<Addr> {
    const TY: Ty = Ty::array_of(Base::Addr);
    const OPTIONAL: bool = true;
    fn from_value(value: &Value, cx: &mut Converter) -> Self {
        list(value, CloneOrder::Position, cx, |_, value| name(&value).map(|name| name.addr))
    }
}

impl FieldType for Option<Vec<Addr>> {
    const TY: Ty = Ty::array_of(Base::Addr);
    const OPTIONAL: bool = true;
    fn from_value(value: &Value, cx: &mut Converter) -> Self {
        (*value != Value::Undef).then(|| Vec::from_value(value, cx))
    }
}

impl FieldType for Vec<AddrRange> {
    const TY: Ty = Ty::array_of(Base::Addr);
    const OPTIONAL: bool = true;
    fn from_value(value: &Value, cx: &mut Converter) -> Self {
        if cx.take(value) { ranges(value) } else { Vec::new() }
    }
}

/// The ranges in an address array, unexpanded where possible.
pub(crate) fn ranges(value: &Value) -> Vec<AddrRange> {
    match value {
        Value::Addr(addr) | Value::DynName(addr, _) => vec![AddrRange::from((**addr).clone())],
        Value::AddrRange(range) => vec![(**range).clone()],
        Value::Array(array) if array.repeat() == 1 => {
            array.items().iter().flat_map(|item| ranges(&item.value)).collect()
        }
        Value::Array(_) => {
            let all = flat(value, CloneOrder::Position);
            all.iter().filter_map(|(value, _)| name(value)).map(|name| AddrRange::from(name.addr)).collect()
        }
        _ => Vec::new(),
    }
}

impl FieldType for Vec<VisibleName> {
    const TY: Ty = Ty::array_of(Base::Addr);
    const OPTIONAL: bool = true;
    fn from_value(value: &Value, cx: &mut Converter) -> Self {
        list(value, CloneOrder::Position, cx, |_, value| name(&value))
    }
}

impl FieldType for Vec<String> {
    const TY: Ty = Ty::array_of(Base::Str);
    const OPTIONAL: bool = true;
    fn from_value(value: &Value, cx: &mut Converter) -> Self {
        list(value, CloneOrder::Position, cx, |_, value| match value {
            Value::Str(text) => Some(text.to_string()),
            _ => None,
        })
    }
}

impl FieldType for Vec<StatsSample> {
    const TY: Ty = Ty::array_of(Base::Record(Rec::StatsSample));
    const OPTIONAL: bool = true;
    fn from_value(value: &Value, cx: &mut Converter) -> Self {
        list(value, CloneOrder::Position, cx, |cx, value| match value {
            Value::Record(record) => Some(StatsSample::from_record(&record, cx)),
            _ => None,
        })
    }
}

impl FieldType for CoreLists {
    const TY: Ty = Ty::array_of(Base::Int);
    const OPTIONAL: bool = true;
    fn from_value(value: &Value, cx: &mut Converter) -> Self {
        let int = |_: &mut Converter, value: Value| match value {
            Value::Int(value) => Some(value),
            _ => None,
        };
        let Value::Array(array) = value else { return Self::default() };
        let lists = (0..array.repeat()).flat_map(|_| array.items()).map(|item| match &item.value {
            Value::Int(core) => vec![*core],
            nested => list(nested, CloneOrder::Position, cx, int),
        });
        CoreLists(lists.collect())
    }
}

impl FieldType for Vec<HeaderRule> {
    const TY: Ty = Ty::array_of(Base::Record(Rec::MimeHeader));
    const OPTIONAL: bool = true;
    fn from_value(value: &Value, cx: &mut Converter) -> Self {
        let Value::Array(array) = value else { return Vec::new() };
        let mut rules = Vec::new();
        for item in (0..array.repeat()).flat_map(|_| array.items()) {
            let what = match &item.value {
                Value::Record(record) => HeaderChoice::One(MimeHeader::from_record(record, cx)),
                nested => HeaderChoice::Group(Vec::from_value(nested, cx)),
            };
            rules.push(HeaderRule { prob: item.prob.unwrap_or(1.0).clamp(0.0, 1.0), what });
        }
        rules
    }
}

/// The largest number of words in a selector of words.
pub(crate) const MAX_WORDS: usize = 1000;

/// Items of selectors.
pub trait Choice: Sized {
    /// The type of the items.
    const BASE: Base;
    /// True if repeated items are one item with the sum of their probabilities.
    const MERGE: bool = false;
    /// Converts one item.
    fn choice(value: &Value, cx: &mut Converter) -> Option<Self>;
}

impl Choice for String {
    const BASE: Base = Base::Str;
    const MERGE: bool = true;
    fn choice(value: &Value, _: &mut Converter) -> Option<Self> {
        match value {
            Value::Str(text) => Some(text.to_string()),
            _ => None,
        }
    }
}

impl Choice for VisibleName {
    const BASE: Base = Base::Addr;
    fn choice(value: &Value, _: &mut Converter) -> Option<Self> {
        name(value)
    }
}

impl Choice for Size {
    const BASE: Base = Base::Size;
    fn choice(value: &Value, _: &mut Converter) -> Option<Self> {
        match value {
            Value::Size(bytes) => Some(Size(*bytes)),
            _ => None,
        }
    }
}

impl Choice for Distribution<Time> {
    const BASE: Base = Base::Distr(Domain::Time);
    fn choice(value: &Value, _: &mut Converter) -> Option<Self> {
        distribution(value)
    }
}

impl Choice for ContentId {
    const BASE: Base = Base::Record(Rec::Content);
    fn choice(value: &Value, cx: &mut Converter) -> Option<Self> {
        match value {
            Value::Record(record) => Some(cx.content(record)),
            _ => None,
        }
    }
}

impl Choice for SslWrapId {
    const BASE: Base = Base::Record(Rec::SslWrap);
    fn choice(value: &Value, cx: &mut Converter) -> Option<Self> {
        match value {
            Value::Record(record) => Some(cx.ssl_wrap(record)),
            _ => None,
        }
    }
}

impl Choice for RequestRange {
    const BASE: Base = Base::AnyRange;
    fn choice(value: &Value, cx: &mut Converter) -> Option<Self> {
        match value {
            Value::Record(record) if record.rec == Rec::SingleRange => {
                Some(RequestRange::Single(SingleRange::from_record(record, cx)))
            }
            Value::Record(record) => Some(RequestRange::Multi(MultiRange::from_record(record, cx))),
            _ => None,
        }
    }
}

impl<T: Choice + PartialEq, M: Weighting> FieldType for Selector<T, M> {
    const TY: Ty = Ty::array_of(T::BASE);
    fn from_value(value: &Value, cx: &mut Converter) -> Self {
        if !value.is_container() || !cx.take(value) {
            return Self::default();
        }
        let all = flat(value, CloneOrder::Position);
        let weighted = matches!(value, Value::Array(array) if array.any_prob());
        let uniform = M::FLAT && !weighted;
        let each = 1.0 / all.len() as f64;
        // Selectors of words have a few items; longer ones are refused when the words are checked.
        let merge = T::MERGE && all.len() <= MAX_WORDS;
        let mut items: Vec<(T, f64)> = Vec::with_capacity(all.len());
        for (value, prob) in all {
            let Some(choice) = T::choice(&value, cx) else { continue };
            let prob = if uniform { each } else { prob };
            match items.iter_mut().find(|(known, _)| merge && *known == choice) {
                Some((_, sum)) => *sum += prob,
                None => items.push((choice, prob)),
            }
        }
        // A selector whose probabilities are all zero counts as undefined.
        if items.iter().all(|(_, prob)| *prob <= 0.0) {
            return Self::default();
        }
        Self::new(items, weighted)
    }
}
