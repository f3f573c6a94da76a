//! Header lines that identify a robot: credentials and cookies.

use std::cell::RefMut;

use polygraph_link::Link;
use polygraph_traffic::rng::mix;
use polygraph_traffic::{Draw, Random};
use polygraph_wire::uri;

use crate::exchange::reply::ReplyMeta;
use crate::group::RobotGroup;
use crate::request::Request;
use crate::request::auth::{AuthAnswers, AuthSource, RobotCredentials};
use crate::request::cookies::CookieJar;

impl<L: Link> RobotGroup<L> {
    /// Appends header lines with credentials and cookies. Foreign servers get neither. Returns the challenges that the lines
    /// answer.
    pub(super) fn write_identity(&self, robot: usize, request: &Request, out: &mut Vec<u8>) -> AuthAnswers {
        let cx = self.context.of(robot);
        let profile = cx.profile();
        let mut answers = AuthAnswers::default();
        if !profile.credentials.is_empty() {
            let url = cx.url(request);
            // The proxy does not see requests in its tunnels.
            let tunneled = request.foreign.is_none() && cx.settings.field.servers[request.server].tls;
            let via_proxy = !profile.proxies.is_empty() && !tunneled;
            let path = uri::split(url.as_bytes()).and_then(|parts| std::str::from_utf8(parts.path).ok());
            let target = if via_proxy { &url } else { path.unwrap_or("/") };
            let mut credentials = self.credentials(robot);
            if request.foreign.is_none() {
                let origin = AuthSource::Origin(request.server);
                answers.origin = credentials.write(origin, request.method.word(), target, out);
            }
            if via_proxy {
                answers.proxy = credentials.write(AuthSource::Proxy, request.method.word(), target, out);
            }
        }
        if request.foreign.is_some() {
            return answers;
        }
        if let Some(cookies) = self.robot(robot).rare.as_mut().and_then(|rare| rare.cookies.as_mut()) {
            cookies.write(request.server, cx.unix_seconds(), out, &cx.recorder);
        }
        answers
    }

    /// Keeps the cookies of a reply, if the robot keeps cookies.
    pub(super) fn keep_cookies(&self, robot: usize, request: &Request, reply: &ReplyMeta) {
        let Some(rare) = reply.rare.as_deref().filter(|rare| !rare.cookies.is_empty()) else { return };
        if request.foreign.is_some() {
            return;
        }
        let cx = self.context.of(robot);
        let mut choices = cx.settings.seed.stream("cookies", cx.number() as u64);
        if !choices.event(cx.profile().cookie_sender) {
            return;
        }
        let room = cx.profile().cookies_keep.sample(&mut choices).ceil().clamp(0.0, 1000.0) as usize;
        let mut state = self.rare(robot);
        let jar = state.cookies.get_or_insert_with(|| CookieJar::new(room));
        jar.store(request.server, &rare.cookies, cx.unix_seconds(), &cx.recorder);
    }

    /// The robot's credentials. The robot takes them from the list when it first needs them.
    pub(super) fn credentials(&self, robot: usize) -> RefMut<'_, RobotCredentials> {
        if self.rare(robot).credentials.is_none() {
            self.rare(robot).credentials = Some(Box::default());
            self.renew_credentials(robot);
        }
        RefMut::map(self.rare(robot), |rare| &mut **rare.credentials.get_or_insert_default())
    }

    /// Takes the robot's next credentials (`docs/reference/models.md`, "Authentication").
    pub(crate) fn renew_credentials(&self, robot: usize) {
        let cx = self.context.of(robot);
        let mut state = self.rare(robot);
        let taken = state.credentials.as_ref().map_or(0, |credentials| credentials.renewals);
        let Some(at) = cx.prepared().credentials.pick(cx.number(), taken) else { return };
        // The robot takes its first credentials when a reply demands them, so its own stream must not depend on that.
        let mut rng = Draw::new(cx.settings.seed.derive("credentials", cx.number() as u64) ^ mix(taken));
        let credentials = state.credentials.get_or_insert_default();
        credentials.renew(&cx.profile().credentials[at], rng.event(cx.profile().auth_error));
    }

    /// Whether the robot's password is wrong on purpose.
    pub(super) fn has_wrong_password(&self, robot: usize) -> bool {
        !self.context.of(robot).profile().credentials.is_empty() && self.credentials(robot).spoiled
    }
}
