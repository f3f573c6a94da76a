//! Kinds of requests and the preferences of robots (`docs/reference/models.md`, "Request kinds and methods").

use crate::popularity::PopModel;
use crate::ranges::RangeRule;
use crate::selector::Selector;

/// The kind of a request, in addition to its object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum RequestKind {
    /// The object, unconditionally. Only these requests contribute to hit ratios.
    #[default]
    Basic,
    /// The object if modified since just before its last modification: a full reply.
    Ims200,
    /// The object if modified since just after its last modification: not modified.
    Ims304,
    /// End-to-end reload, past all caches.
    Reload,
    /// Parts of the object.
    Range,
    /// An upload (with PUT) instead of a download.
    Upload,
}

impl RequestKind {
    /// All kinds.
    pub const ALL: [RequestKind; 6] = [
        RequestKind::Basic,
        RequestKind::Ims200,
        RequestKind::Ims304,
        RequestKind::Reload,
        RequestKind::Range,
        RequestKind::Upload,
    ];

    /// The name of the kind in the language.
    pub fn word(self) -> &'static str {
        match self {
            RequestKind::Basic => "Basic",
            RequestKind::Ims200 => "Ims200",
            RequestKind::Ims304 => "Ims304",
            RequestKind::Reload => "Reload",
            RequestKind::Range => "Range",
            RequestKind::Upload => "Upload",
        }
    }

    /// The kind with this name in the language.
    pub fn from_word(word: &str) -> Option<RequestKind> {
        RequestKind::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// True if a reply gives a cache the whole object.
    pub fn fills(self) -> bool {
        matches!(self, RequestKind::Basic | RequestKind::Ims200 | RequestKind::Reload)
    }
}

/// The request methods of robots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Method {
    /// `GET`, the default.
    #[default]
    Get,
    /// `HEAD`: the head of the reply only.
    Head,
    /// `POST` with a body.
    Post,
    /// `PUT` with a body.
    Put,
}

impl Method {
    /// All methods.
    pub const ALL: [Method; 4] = [Method::Get, Method::Head, Method::Post, Method::Put];

    /// The method as written in requests and in the language.
    pub fn word(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
        }
    }

    /// The method with this name.
    pub fn from_word(word: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.word() == word)
    }

    /// True if requests carry a body.
    pub fn has_body(self) -> bool {
        matches!(self, Method::Post | Method::Put)
    }
}

/// The settings that determine which object a robot requests, and how.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Behavior {
    /// Share of requests for known objects (0 to 1).
    pub recurrence: f64,
    /// How a known object is chosen.
    pub popularity: PopModel,
    /// Kinds of requests; if empty, all are basic.
    pub kinds: Selector<RequestKind>,
    /// Methods; if empty, all are GET.
    pub methods: Selector<Method>,
    /// Ranges of range requests.
    pub ranges: Selector<RangeRule>,
}

/// Parts of a [`Behavior`] that a content type replaces for requests to it.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct BehaviorChange {
    /// Replaces the recurrence.
    pub recurrence: Option<f64>,
    /// Replaces the popularity model.
    pub popularity: Option<PopModel>,
    /// Replaces the kinds, unless empty.
    pub kinds: Selector<RequestKind>,
    /// Replaces the methods, unless empty.
    pub methods: Selector<Method>,
    /// Replaces the ranges, unless empty.
    pub ranges: Selector<RangeRule>,
}

impl Behavior {
    /// This behaviour with the changes of a content type.
    #[must_use]
    pub fn with(&self, change: &BehaviorChange) -> Behavior {
        let or =
            |new: &Selector<_>, old: &Selector<_>| if new.is_empty() { old.clone() } else { new.clone() };
        Behavior {
            recurrence: change.recurrence.unwrap_or(self.recurrence),
            popularity: change.popularity.clone().unwrap_or_else(|| self.popularity.clone()),
            kinds: or(&change.kinds, &self.kinds),
            methods: if change.methods.is_empty() { self.methods.clone() } else { change.methods.clone() },
            ranges: if change.ranges.is_empty() { self.ranges.clone() } else { change.ranges.clone() },
        }
    }
}
