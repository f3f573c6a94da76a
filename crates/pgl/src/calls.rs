//! The table of built-in functions and procedures. Checks, hover texts and the reference page are generated
//! from it.

use crate::types::{Base, Rec, Ty};
use crate::value::Domain;

/// Where a call is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallContext {
    /// The call is allowed everywhere.
    Both,
    /// Outside of phase scripts.
    Static,
    /// In phase scripts.
    Script,
    /// In `every` blocks of phase scripts.
    Every,
}

/// What an argument must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Param {
    /// Any defined value.
    Any,
    /// An int or float.
    Number,
    /// An int, float or string.
    NumberOrText,
    /// An int.
    Int,
    /// A string.
    Str,
    /// A value of an ordered type.
    Comparable,
    /// An int, float, time or size: a type that distributions draw.
    Drawn,
    /// An array or range.
    Container,
    /// An address, or a string that is a name.
    Addr,
    /// An address scheme.
    Scheme,
    /// A record of this type.
    Record(Rec),
    /// A time.
    Time,
    /// A record that `use()` accepts.
    Usable,
    /// A record that `schedule()` accepts.
    Schedulable,
}

/// What a call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallResult {
    /// No value: the call is a procedure.
    Nothing,
    /// A value of this type.
    One(Base),
    /// An array of this type.
    Many(Base),
    /// A distribution of the type of the first argument.
    DistrOfFirst,
    /// A distribution whose type a file determines.
    SomeDistr,
    /// The type of the first argument (for `min` and `max`: one of them).
    First,
}

macro_rules! calls {
    ($($id:ident $name:literal $place:ident [$($param:expr),*] $rest:expr, $yields:expr, $form:literal $doc:literal)*) => {
        /// The built-in calls.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Builtin { $(#[doc = $doc] $id,)* }

        /// All calls in the order of the table.
        pub const CALLS: &[CallDef] = &[$(CallDef {
            call: Builtin::$id,
            name: $name,
            place: CallContext::$place,
            params: &[$($param),*],
            rest: $rest,
            yields: $yields,
            form: $form,
            doc: $doc,
        }),*];
    };
}

/// A built-in function or procedure.
#[derive(Debug)]
pub struct CallDef {
    /// The call.
    pub call: Builtin,
    /// Name of the call.
    pub name: &'static str,
    /// Where the call is allowed.
    pub place: CallContext,
    /// The arguments listed one by one.
    pub params: &'static [Param],
    /// Further arguments.
    pub rest: RestArgs,
    /// The type of the result.
    pub yields: CallResult,
    /// The call as written in programs.
    pub form: &'static str,
    /// What the call does.
    pub doc: &'static str,
}

/// Arguments after those listed one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestArgs {
    /// No further arguments.
    None,
    /// Any number of arguments like the last one listed.
    Many,
    /// At most one more of this kind.
    Maybe(Param),
}

use Base as B;
use CallResult as Y;
use Param as P;

calls! {
    Int "int" Both [P::NumberOrText] RestArgs::None, Y::One(B::Int), "int(x)" "Truncates a float towards zero, or reads an \
        integer from a string."
    Float "float" Both [P::NumberOrText] RestArgs::None, Y::One(B::Float), "float(x)" "Converts an int to a float, or reads a \
        float from a string."
    Undef "undef" Both [] RestArgs::None, Y::One(B::Undef), "undef()" "No value; allowed only as a whole right-hand side. \
        Marks parameters that the user must set."
    Count "count" Both [P::Container] RestArgs::None, Y::One(B::Int), "count(array)" "Number of items of an array or range, nested ones included."
    Min "min" Both [P::Comparable] RestArgs::Many, Y::First, "min(a, ...)" "The smallest argument."
    Max "max" Both [P::Comparable] RestArgs::Many, Y::First, "max(a, ...)" "The greatest argument."
    Const "const" Both [P::Drawn] RestArgs::None, Y::DistrOfFirst, "const(value)" "Distribution: always the same value."
    Unif "unif" Both [P::Drawn, P::Drawn] RestArgs::None, Y::DistrOfFirst, "unif(low, high)" "Distribution: uniform from low to below high."
    Exp "exp" Both [P::Drawn] RestArgs::None, Y::DistrOfFirst, "exp(mean)" "Distribution: exponential."
    Norm "norm" Both [P::Drawn, P::Drawn] RestArgs::None, Y::DistrOfFirst, "norm(mean, deviation)" "Distribution: normal."
    Logn "logn" Both [P::Drawn, P::Drawn] RestArgs::None, Y::DistrOfFirst, "logn(mean, deviation)" "Distribution: log-normal with this actual mean and deviation."
    Zipf "zipf" Both [P::Drawn] RestArgs::None, Y::DistrOfFirst, "zipf(n)" "Distribution: values 1 to n, k with a probability proportional to ln((k+1)/k)."
    Seq "seq" Both [P::Drawn] RestArgs::None, Y::DistrOfFirst, "seq(first)" "Distribution: first, first+1, and so on."
    Table "table" Both [P::Str] RestArgs::Maybe(P::Str), Y::SomeDistr, "table(file) or table(file, \"type\")" "Distribution \
        defined by a file of bins. If a type is given, the file must have this type."
    PopUnif "popUnif" Both [] RestArgs::None, Y::One(B::PopDistr), "popUnif()" "Popularity: all known objects are equally popular."
    PopZipf "popZipf" Both [P::Number] RestArgs::None, Y::One(B::PopDistr), "popZipf(skew)" "Popularity: recent objects are popular; skew 1 is classic."
    RobotAddrs "robotAddrs" Both [P::Scheme, P::Record(Rec::Bench)] RestArgs::None, Y::Many(B::Addr), "robotAddrs(scheme, bench)" "Addresses of robots, computed by an address scheme."
    ServerAddrs "serverAddrs" Both [P::Scheme, P::Record(Rec::Bench)] RestArgs::None, Y::Many(B::Addr), "serverAddrs(scheme, bench)" "Addresses of servers, computed by an address scheme."
    ProxyAddrs "proxyAddrs" Both [P::Scheme, P::Record(Rec::Bench)] RestArgs::None, Y::Many(B::Addr), "proxyAddrs(scheme, bench)" "Addresses of proxies, computed by an address scheme."
    ClientHostCount "clientHostCount" Both [P::Record(Rec::Bench)] RestArgs::None, Y::One(B::Int), "clientHostCount(bench)" "Number of client machines: peak_req_rate / client_side.max_host_load, rounded up."
    IpsToNames "ipsToNames" Both [P::Container, P::Str] RestArgs::None, Y::Many(B::Addr), "ipsToNames(addresses, template)" "Names for IPs. A plain template is the domain of generated names; `${dashed_ip}`, `${worker}` and `${port}` are replaced (write `:${port}` at the end to keep the port)."
    ZoneDomains "zoneDomains" Both [P::Str, P::Container] RestArgs::None, Y::Many(B::Addr), "zoneDomains(file, addresses)" "For each IP the name of a matching A or AAAA record of a zone file."
    TracedHosts "tracedHosts" Both [P::Str] RestArgs::None, Y::Many(B::Addr), "tracedHosts(file)" "The distinct hosts of the URLs in a trace, without ports; IPs first."
    DynamicName "dynamicName" Both [P::Addr, P::Number] RestArgs::None, Y::One(B::DynName), "dynamicName(address, probability)" "A \
        name that stands for ever more host names: this share of new objects gets a new host name."
    Dynamize "dynamize" Both [P::Container, P::Number] RestArgs::None, Y::Many(B::DynName), "dynamize(array, probability)" "dynamicName() of every element; probabilities are kept."
    SetAddrPort "setAddrPort" Both [P::Container, P::Int] RestArgs::None, Y::Many(B::Addr), "setAddrPort(array, port)" "A flattened copy with another port; a negative one removes it. Probabilities are kept."
    Select "select" Both [P::Container, P::Int] RestArgs::None, Y::First, "select(array, n)" "n random items; no item is \
        repeated before all were used. Repeatable: depends on the global seed."
    Credentials "credentials" Both [P::Int, P::Str] RestArgs::None, Y::Many(B::Str), "credentials(n, space)" "n reproducible \
        pairs `user:password`, which depend on the global seed. They differ from those of Polygraph 4, whose random numbers \
        are not reproduced, so accounts made for Polygraph 4 do not work. `polygraph accounts` prints them as htpasswd or \
        LDIF."
    AnyOf "anyOf" Both [P::Container] RestArgs::None, Y::One(B::Re), "anyOf(array)" "A regular expression that matches if any of these does."
    UniqId "uniqId" Both [] RestArgs::None, Y::One(B::UniqId), "uniqId()" "A fresh identifier, different in each process."
    System "system" Both [P::Str] RestArgs::None, Y::One(B::Str), "system(command)" "The output of a shell command; needs --allow_exec."
    Worker "Worker" Both [] RestArgs::None, Y::One(B::Int), "Worker()" "The number of this worker process."

    Use "use" Static [P::Usable] RestArgs::Many, Y::Nothing, "use(x, ...)" "Makes agents, maps, benches and the like part of the test."
    Schedule "schedule" Static [P::Schedulable] RestArgs::Many, Y::Nothing, "schedule(x, ...)" "Appends phases and samples to the schedule."
    WorkingSetLength "working_set_length" Static [P::Time] RestArgs::None, Y::Nothing, "working_set_length(time)" "Freezes the working set after this time."
    WorkingSetCap "working_set_cap" Static [P::Int] RestArgs::None, Y::Nothing, "working_set_cap(count)" "Freezes the working set after this many fill objects of a process."
    Compat "compat" Static [P::Str] RestArgs::None, Y::Nothing, "compat(version)" "Robots choose objects by the rules of \
        another version: \"4.9\" for comparison with results of the original, \"none\" for the rules of this program. The \
        option `--compat` takes precedence."
    NoteSubstitutes "note_substitutes" Static [P::Container] RestArgs::Many, Y::Nothing, "note_substitutes(addresses, ...)" "Each argument is a group of interchangeable addresses."
    Print "print" Both [P::Any] RestArgs::Many, Y::Nothing, "print(x, ...)" "Prints its arguments on one line."

    CurrentSample "currentSample" Every [] RestArgs::None, Y::One(B::Record(Rec::StatSample)), "currentSample()" "Statistics since the last reset of this watchdog."
    CurrentPhase "currentPhase" Script [] RestArgs::None, Y::One(B::Record(Rec::StatSample)), "currentPhase()" "Statistics of the phase so far."
    CurrentLoadFactor "currentLoadFactor" Script [] RestArgs::None, Y::One(B::Float), "currentLoadFactor()" "The current load factor."
    CurrentPopulusFactor "currentPopulusFactor" Script [] RestArgs::None, Y::One(B::Float), "currentPopulusFactor()" "The current populus factor."
    ChangeLoadFactorBy "changeLoadFactorBy" Script [P::Number] RestArgs::None, Y::Nothing, "changeLoadFactorBy(delta)" "Multiplies the load factor by 1 + delta, within 0..1."
    ChangePopulusFactorBy "changePopulusFactorBy" Script [P::Number] RestArgs::None, Y::Nothing, "changePopulusFactorBy(delta)" "Multiplies the populus factor by 1 + delta, within 0..1."
    SetLoadFactorTo "setLoadFactorTo" Script [P::Number] RestArgs::None, Y::Nothing, "setLoadFactorTo(factor)" "Sets the load factor, within 0..1."
    SetPopulusFactorTo "setPopulusFactorTo" Script [P::Number] RestArgs::None, Y::Nothing, "setPopulusFactorTo(factor)" "Sets the populus factor, within 0..1."
    SetSamplingGoalTo "setSamplingGoalTo" Every [P::Record(Rec::Goal)] RestArgs::None, Y::Nothing, "setSamplingGoalTo(goal)" "Sets a new goal for this watchdog."
    ReachedPositiveGoal "reachedPositiveGoal" Script [] RestArgs::Maybe(P::Str), Y::Nothing, "reachedPositiveGoal([reason])" "Ends the phase as if its positive goal were met."
    PrintV "printV" Script [P::Int, P::Any] RestArgs::Many, Y::Nothing, "printV(level, x, ...)" "Prints its arguments if the \
        verbosity of the console is at least this level."
}

impl Builtin {
    /// The description of this call.
    pub fn def(self) -> &'static CallDef {
        &CALLS[self as usize]
    }
}

/// The call with this name.
pub fn find(name: &str) -> Option<&'static CallDef> {
    CALLS.iter().find(|def| def.name == name)
}

/// Advice about a call that older programs use.
pub fn replacement(name: &str) -> Option<&'static str> {
    Some(match name {
        "worker" => "use Worker()",
        "hostedUrls" => "use tracedHosts()",
        "pmUnif" => "use popUnif()",
        "pmZipf" => "use popZipf()",
        "currentTime" | "execute" | "place" => "this call was removed from the language",
        _ => return None,
    })
}

impl CallDef {
    /// What the argument with this index must be; `None` if there is no such argument.
    pub fn param(&self, index: usize) -> Option<Param> {
        match (self.params.get(index), self.rest) {
            (Some(param), _) => Some(*param),
            (None, RestArgs::Many) => self.params.last().copied(),
            (None, RestArgs::Maybe(param)) if index == self.params.len() => Some(param),
            _ => None,
        }
    }

    /// True for functions.
    pub fn is_function(&self) -> bool {
        self.yields != CallResult::Nothing
    }

    /// The type of the result for arguments of these types.
    pub fn result(&self, args: &[Ty]) -> Ty {
        let first = args.first().copied().unwrap_or(Ty::UNKNOWN);
        match self.yields {
            CallResult::Nothing => Ty::one(Base::Undef),
            CallResult::One(base) => Ty::one(base),
            CallResult::Many(base) => Ty::array_of(base),
            CallResult::First if self.call == Builtin::Select => Ty::array_of(Base::Unknown),
            CallResult::First if args.iter().all(|ty| *ty == first) => first,
            // Either the int or the float may be returned.
            CallResult::First => Ty::UNKNOWN,
            CallResult::SomeDistr => Ty::UNKNOWN,
            CallResult::DistrOfFirst => match first.base {
                Base::Int => Ty::one(Base::Distr(Domain::Int)),
                Base::Float => Ty::one(Base::Distr(Domain::Float)),
                Base::Time => Ty::one(Base::Distr(Domain::Time)),
                Base::Size => Ty::one(Base::Distr(Domain::Size)),
                _ => Ty::UNKNOWN,
            },
        }
    }
}

impl Param {
    /// True if a value of this type is accepted; an unknown type is.
    pub fn accepts(self, ty: Ty) -> bool {
        let one = |bases: &[Base]| !ty.array && bases.contains(&ty.base);
        if ty.is_unknown() {
            return true;
        }
        match self {
            Param::Any => !matches!(ty.base, Base::Undef | Base::Qualifier),
            Param::Number => one(&[Base::Int, Base::Float]),
            Param::NumberOrText => one(&[Base::Int, Base::Float, Base::Str]),
            Param::Int => one(&[Base::Int]),
            Param::Str => one(&[Base::Str]),
            Param::Comparable => {
                one(&[Base::Int, Base::Float, Base::Time, Base::Size, Base::Rate, Base::Bwidth])
            }
            Param::Drawn => one(&[Base::Int, Base::Float, Base::Time, Base::Size]),
            Param::Container => ty.array || one(&[Base::AddrRange, Base::StrRange]),
            Param::Addr => one(&[Base::Addr, Base::DynName]),
            Param::Scheme => {
                one(&[Rec::PolyMix3As, Rec::PolyMix4As, Rec::WebAxe4As, Rec::SrvLb4As, Rec::SpreadAs]
                    .map(Base::Record))
            }
            Param::Record(rec) => one(&[Base::Record(rec)]),
            // The int 0 means no time.
            Param::Time => one(&[Base::Time, Base::Int]),
            Param::Usable => one(&[
                Rec::Robot,
                Rec::Server,
                Rec::Proxy,
                Rec::AddrMap,
                Rec::Bench,
                Rec::MembershipMap,
                Rec::NetPipe,
                Rec::SslWrap,
            ]
            .map(Base::Record)),
            Param::Schedulable => one(&[Rec::Phase, Rec::StatsSample].map(Base::Record)),
        }
    }

    /// What the parameter accepts, in words.
    pub fn wanted(self) -> &'static str {
        match self {
            Param::Any => "a defined value",
            Param::Number => "a number",
            Param::NumberOrText => "a number or string",
            Param::Int => "an int",
            Param::Str => "a string",
            Param::Comparable => "a number, time, size, rate or bandwidth",
            Param::Drawn => "an int, float, time or size",
            Param::Container => "an array or range",
            Param::Addr => "an address",
            Param::Scheme => "an address scheme (PolyMix3As, PolyMix4As, WebAxe4As, SrvLb4As or SpreadAs)",
            Param::Record(Rec::Bench) => "a Bench",
            Param::Record(Rec::Goal) => "a Goal",
            Param::Record(_) => "a record",
            Param::Time => "a time",
            Param::Usable => "a Robot, Server, Proxy, AddrMap, Bench, MembershipMap, NetPipe or SslWrap",
            Param::Schedulable => "a Phase or StatsSample",
        }
    }
}
