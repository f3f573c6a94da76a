//! Workloads that ask much of a device, and several processes that were not started to fit each other.

use std::time::Duration;

use rustix::process::Signal;

use crate::authentication::squid_with_users;
use crate::peers::wait_for_listener;
use crate::sandbox::{Running, Sandbox, free_port};

use super::bench::SHORT;
use super::{Deed, Device, Got, Row, Want};

/// A workload with one server, whose port is `PORT`.
pub fn workload(server: &str, robot: &str, phases: &str) -> String {
    format!(
        "Content C = {{ kind = \"c\"; size = exp(2KB); cachable = 0%; }};
        Server S = {{ kind = \"S\"; contents = [ C ]; direct_access = contents; addresses = [ '127.0.0.1:PORT' ]; {server} }};
        Robot R = {{ kind = \"R\"; origins = S.addresses; addresses = [ '127.0.0.1' ** 5 ]; req_rate = 30/sec; {robot} }};
        {phases}
        use(S, R);\n"
    )
}

pub const MEASURE: &str =
    "Phase meas = { name = \"meas\"; goal.duration = 3sec; primary = true; }; schedule(meas);";

/// A run of a workload file, with the device that `words` name.
pub fn run(sandbox: &Sandbox, text: &str, words: &str) -> Got {
    sandbox.write("test.pg", &text.replace("PORT", &free_port().to_string()));
    let done =
        sandbox.polygraph(&format!("run --config test.pg --preflight no --predict no --loops 1 {words}"));
    Got::of_run(sandbox, &done)
}

/// A run through the built-in proxy.
fn proxied(sandbox: &Sandbox, text: &str) -> Got {
    let mut proxy = sandbox.start("proxy --port 0 --loops 1");
    run(sandbox, text, &format!("--proxy 127.0.0.1:{}", proxy.port("proxy at")))
}

/// A run through Squid, which demands credentials by this scheme.
pub fn proxied_by_squid_with_users(sandbox: &Sandbox, scheme: &str, robot: &str) -> Got {
    let (_squid, port) = squid_with_users(sandbox, scheme);
    run(sandbox, &workload("", robot, MEASURE), &format!("--proxy 127.0.0.1:{port}"))
}

/// Credentials that servers refuse.
pub fn credentials() -> Vec<Row> {
    const SERVER: &str = "auth_schemes = [ \"basic\" ];";
    const JOE: &str = "credentials = [ \"joe:secret\" ];";
    let joe = || workload(SERVER, JOE, MEASURE);
    let errors = Want::failed("errors", "the device answered with errors");
    let altered = |name, make: fn(&str) -> String| {
        Row::new("a run", name, errors, move |sandbox| {
            let device = Device::start(Deed::Rewrite(make));
            run(sandbox, &joe(), &format!("--proxy 127.0.0.1:{}", device.port()))
        })
    };
    vec![
        Row::new(
            "two commands",
            "client and server have different `credentials`",
            Want::invalid("test", "errors").code(0),
            move |sandbox| {
                let text = joe().replace("PORT", &free_port().to_string());
                sandbox.write("server.pg", &text);
                sandbox.write("client.pg", &text.replace("joe:secret", "joe:other"));
                let mut server = sandbox.start("server --config server.pg --log srv.log --loops 1");
                server.wait_for("listening at");
                let mut proxy = sandbox.start("proxy --port 0 --loops 1");
                let done = sandbox.polygraph(&format!(
                    "client --config client.pg --proxy 127.0.0.1:{} --log clt.log --loops 1 --preflight no",
                    proxy.port("proxy at")
                ));
                server.stop();
                Got::of_logs(sandbox, "clt.log srv.log", &done)
            },
        ),
        Row::new(
            "a run",
            "robots spoil all passwords (`auth_error`)",
            Want::invalid("test", "unverified"),
            |sandbox| proxied(sandbox, &workload(SERVER, &format!("{JOE} auth_error = 100%;"), MEASURE)),
        ),
        // As curl and browsers do, robots make the best of what the helper says.
        Row::new("a run", "Squid demands NTLM with `ntlm_fake_auth`", Want::VALID, |sandbox| {
            proxied_by_squid_with_users(sandbox, "ntlm", &format!("{JOE} pconn_use_lmt = const(20);"))
        }),
        altered("the device removes the credentials of robots", |head| {
            let kept = head.lines().filter(|line| !line.starts_with("Authorization"));
            kept.collect::<Vec<_>>().join("\r\n") + "\r\n"
        }),
        altered("the device spoils the credentials of robots", |head| {
            head.replace("Authorization: Basic ", "Authorization: Basic ZXZl")
        }),
    ]
}

/// A run through nginx as a surrogate whose hits do not show how old they are.
fn hiding(sandbox: &Sandbox, text: &str) -> Got {
    let [port, origin] = [free_port(), free_port()];
    let place = sandbox.path().display();
    sandbox.write(
        "nginx.conf",
        &format!(
            "daemon off; pid {place}/pid; error_log stderr; events {{}}
            http {{
              access_log off; proxy_temp_path {place}/t; client_body_temp_path {place}/b; proxy_cache_path {place}/cache keys_zone=z:1m;
              server {{ listen 127.0.0.1:{port}; location / {{
                proxy_pass http://127.0.0.1:{origin}; proxy_set_header Host $http_host; proxy_cache z;
                proxy_hide_header Expires; proxy_hide_header Last-Modified;
              }} }}
            }}"
        ),
    );
    let _nginx = sandbox.start_program("nginx", &format!("-e stderr -c {place}/nginx.conf"));
    wait_for_listener(port);
    run(sandbox, &text.replace("PORT", &origin.to_string()), &format!("--surrogate 127.0.0.1:{port}"))
}

/// Devices that change what they pass on, or how often, and robots that find it out.
pub fn altered() -> Vec<Row> {
    let through = |deed: Deed, workload: fn() -> String| {
        move |sandbox: &Sandbox| {
            let device = Device::start(deed);
            run(sandbox, &workload(), &format!("--proxy 127.0.0.1:{}", device.port()))
        }
    };
    let cached = || {
        let text = workload("", "recurrence = 50%; pop_model.pop_distr = popUnif();", MEASURE);
        let life =
            "obj_life_cycle = { length = const(7day); with_lmt = 100%; expires = [ nmt + const(0sec) ]; };";
        text.replace("cachable = 0%;", &format!("cachable = 80%; {life}"))
    };
    let heads = || workload("", "req_methods = [ \"HEAD\": 20%, \"GET\" ];", MEASURE);
    vec![
        Row::new(
            "a run",
            "the device sends every request to the servers twice",
            Want::VALID.warning("surplus"),
            through(Deed::AskAgain(2), cached),
        ),
        Row::new(
            "a run",
            "the device opens connections to servers that it does not use",
            Want::VALID.warning("unused connections"),
            through(Deed::Leak, cached),
        ),
        Row::new("a run", "robots send HEAD requests", Want::VALID, move |sandbox| {
            proxied(sandbox, &heads())
        }),
        Row::new(
            "a run",
            "the device announces another length in replies to HEAD",
            Want::failed("correctness", "the device sent broken messages"),
            through(
                Deed::Relay(|reply, _| match reply.body.is_empty() {
                    true => reply.with("Content-Length", Some("7777777")).bytes(),
                    false => reply.bytes(),
                }),
                heads,
            ),
        ),
        Row::new(
            "a run",
            "the device replaces `Expires`",
            Want::VALID.warning("freshness"),
            through(
                Deed::Relay(|reply, _| reply.with("Expires", Some("Fri, 01 Jan 2100 00:00:00 GMT")).bytes()),
                cached,
            ),
        ),
        Row::new(
            "a run",
            "the device adds `max-age` to `Cache-Control`",
            Want::VALID.warning("freshness"),
            through(
                Deed::Relay(|reply, _| match reply.head.contains("Cache-Control: public") {
                    true => reply.with("Cache-Control", Some("public, max-age=86400")).bytes(),
                    false => reply.bytes(),
                }),
                cached,
            ),
        ),
        Row::new(
            "a run",
            "nginx hides `Expires` and `Last-Modified`",
            Want::VALID.warning("freshness"),
            move |sandbox| hiding(sandbox, &cached()),
        ),
        Row::new(
            "a run",
            "the device removes `Cache-Control`",
            Want::VALID.warning("storable"),
            through(Deed::Relay(|reply, _| reply.with("Cache-Control", None).bytes()), cached),
        ),
    ]
}

/// Phases that end before it is known whether a device keeps up.
pub fn short() -> Vec<Row> {
    vec![
        Row::new(
            "a run",
            "robots offer three times as much as the device answers, for a short time",
            Want::failed("unfinished", "the device did not sustain the load"),
            |sandbox| {
                let device = Device::start(Deed::Queue(Duration::from_millis(20)));
                let words = SHORT.replace("--goal 2.5s", "--goal 4s");
                let done = sandbox.polygraph(&format!("run --proxy 127.0.0.1:{} {words}", device.port()));
                Got::of_run(sandbox, &done)
            },
        ),
        Row::new(
            "a run",
            "robots offer a third more than the device answers, for 8 s",
            Want::failed("unfinished", "the device did not sustain the load"),
            |sandbox| {
                let device = Device::start(Deed::Queue(Duration::from_millis(8)));
                let words = SHORT.replace("--goal 2.5s", "--goal 8s");
                let done = sandbox.polygraph(&format!("run --proxy 127.0.0.1:{} {words}", device.port()));
                Got::of_run(sandbox, &done)
            },
        ),
        Row::new(
            "a run",
            "servers think for most of the time that is measured",
            Want::invalid("test", "unfinished"),
            |sandbox| proxied(sandbox, &workload("xact_think = const(2sec);", "", MEASURE)),
        ),
        Row::new(
            "a run",
            "transactions take most of the time that is measured, after a warm-up",
            Want::invalid("test", "short"),
            |sandbox| {
                let phases = "Phase warm = { name = \"warm\"; goal.duration = 5sec; };".to_owned()
                    + &MEASURE.replace("schedule(meas)", "schedule(warm, meas)");
                proxied(sandbox, &workload("xact_think = const(2sec);", "", &phases))
            },
        ),
    ]
}

/// SOCKS proxies that do not serve everybody.
pub fn socks() -> Vec<Row> {
    vec![Row::new(
        "a run",
        "the SOCKS proxy demands a password of robots without `credentials`",
        Want::invalid("test", "errors"),
        |sandbox| {
            let port = free_port();
            let options = format!("-i 127.0.0.1 -p {port} -u joe -P secret");
            let _proxy = sandbox.start_program("microsocks", &options);
            wait_for_listener(port);
            run(sandbox, &workload("", "", MEASURE), &format!("--socks_proxy 127.0.0.1:{port}"))
        },
    )]
}

/// Servers outside of the test that fail.
pub fn foreign() -> Vec<Row> {
    let visiting = |share: u32, deed: Deed, seconds: u32| {
        move |sandbox: &Sandbox| {
            let elsewhere = Device::start(deed);
            sandbox.write("trace.urls", &format!("http://127.0.0.1:{}/\n", elsewhere.port()));
            let robot =
                format!("interests = [ \"foreign\": {share}%, \"public\" ]; foreign_trace = \"trace.urls\";");
            proxied(sandbox, &workload("", &robot, &MEASURE.replace("3sec", &format!("{seconds}sec"))))
        }
    };
    const SORRY: Deed =
        Deed::Say(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let group = "robots visit a server outside of the test, which";
    vec![
        Row::new(
            group,
            "answers with 503",
            Want::invalid("foreign server", "foreign"),
            visiting(50, SORRY, 3),
        ),
        Row::new(
            group,
            "answers with 503; few requests are for it",
            Want::VALID.warning("foreign"),
            visiting(2, SORRY, 6),
        ),
        Row::new(
            group,
            "never answers",
            Want::invalid("foreign server", "following").or("growing"),
            visiting(50, Deed::SayAndHold(b""), 14),
        ),
    ]
}

/// Two kinds of robots, of which one has no limits.
pub fn mixed() -> Vec<Row> {
    let mixed = |server: &str, first: &str| {
        let text = workload(server, first, MEASURE);
        let second = "Robot R2 = { kind = \"R2\"; origins = S.addresses; addresses = [ '127.0.0.1' ** 5 ]; req_rate = 5/sec; };";
        text.replace("use(S, R);", &format!("{second} use(S, R, R2);"))
    };
    let connections = mixed("xact_think = const(500msec);", "open_conn_lmt = 2; wait_xact_lmt = 2;");
    let lifetime = mixed("xact_think = norm(600msec, 100msec);", "xact_lifetime = const(400msec);");
    let want = Want::invalid("test", "errors");
    let group = "a run: one of two kinds of robots";
    vec![
        Row::new(group, "has fewer connections than think times need", want, move |sandbox| {
            proxied(sandbox, &connections)
        }),
        Row::new(group, "gives up before servers have ended thinking", want, move |sandbox| {
            proxied(sandbox, &lifetime)
        }),
    ]
}

/// Workloads that a healthy device serves, or that no device could serve.
pub fn workloads() -> Vec<Row> {
    let digest = workload(
        "auth_schemes = [ \"digest\" ];",
        "credentials = [ \"joe:secret\", \"ann:other\" ];",
        MEASURE,
    );
    let sessions = workload(
        "",
        "session = { busy_period.duration = 1sec; idle_period_duration = const(500msec); };",
        MEASURE,
    );
    let crowded = workload(
        "xact_think = const(300msec);",
        "open_conn_lmt = 2; wait_xact_lmt = 1000;",
        "Phase meas = { name = \"meas\"; goal.duration = 13sec; primary = true; }; schedule(meas);",
    );
    let filled = workload(
        "",
        "",
        "Phase fill = { name = \"fill\"; goal.duration = 2sec; }; Phase meas = { name = \"meas\"; goal.duration = 3sec; \
         primary = true; }; schedule(fill, meas);",
    );
    let uploads = workload("", "req_methods = [ \"PUT\": 20%, \"GET\" ]; upload_contents = [ C ];", MEASURE);
    let posted = uploads.replace("PUT", "POST").replace("upload_c", "post_c");
    let answered = uploads.replace("cachable = 0%", "cachable = 100%");
    let (created, refused) = (uploads.clone(), uploads.clone());
    let few_uploads = uploads.replace("20%", "2%").replace("3sec", "8sec");
    vec![
        Row::new("a run", "servers demand Digest behind a proxy", Want::VALID, move |sandbox| {
            proxied(sandbox, &digest)
        }),
        Row::new("a run", "robots rest between sessions", Want::VALID, move |sandbox| {
            run(sandbox, &sessions, "--no_proxy")
        }),
        Row::new(
            "a run",
            "robots wait for connections that thinking servers occupy",
            Want::invalid("test", "following"),
            move |sandbox| proxied(sandbox, &crowded),
        ),
        Row::new(
            "a run",
            "the device answers with 503 while its cache is filled",
            Want::VALID.warning("errors"),
            move |sandbox| {
                let device = Device::start(Deed::Relay(|reply, number| match number {
                    0..200 => reply.status("503 Service Unavailable").bytes(),
                    _ => reply.bytes(),
                }));
                run(sandbox, &filled, &format!("--proxy 127.0.0.1:{}", device.port()))
            },
        ),
        Row::new(
            "a run",
            "the device turns uploads into GET",
            Want::failed("uploads", "the device altered requests"),
            move |sandbox| {
                let device = Device::start(Deed::Rewrite(|head| {
                    let kept = head
                        .lines()
                        .filter(|line| !line.starts_with("Content-") && !line.starts_with("X-Upload"));
                    kept.collect::<Vec<_>>().join("\r\n").replace("PUT http", "GET http") + "\r\n\r\n"
                }));
                run(sandbox, &uploads, &format!("--proxy 127.0.0.1:{}", device.port()))
            },
        ),
        Row::new(
            "a run",
            "the device makes PUT of POST",
            Want::failed("uploads", "the device altered requests"),
            move |sandbox| {
                let device = Device::start(Deed::Rewrite(|head| head.replacen("POST ", "PUT ", 1)));
                run(sandbox, &posted, &format!("--proxy 127.0.0.1:{}", device.port()))
            },
        ),
        Row::new(
            "a run",
            "the device answers uploads with its copies of the objects",
            Want::failed("uploads", "the device answered uploads itself"),
            move |sandbox| {
                let device = Device::start(Deed::AnswerUploadsFromCopies);
                run(sandbox, &answered, &format!("--proxy 127.0.0.1:{}", device.port()))
            },
        ),
        Row::new(
            "a run",
            "the device answers uploads with 201",
            Want::failed("errors", "the device answered with errors"),
            move |sandbox| {
                let device = Device::start(Deed::AnswerUploads("201 Created"));
                run(sandbox, &created, &format!("--proxy 127.0.0.1:{}", device.port()))
            },
        ),
        Row::new(
            "a run",
            "the device answers uploads with 417, although nobody expects anything",
            Want::failed("errors", "the device answered with errors"),
            move |sandbox| {
                let device = Device::start(Deed::AnswerUploads("417 Expectation Failed"));
                run(sandbox, &refused, &format!("--proxy 127.0.0.1:{}", device.port()))
            },
        ),
        Row::new(
            "a run",
            "the device refuses uploads, which are few",
            Want::failed("kinds", "the device did not serve all kinds of requests"),
            move |sandbox| {
                let device = Device::start(Deed::Rewrite(|head| {
                    let kept = head.lines().filter(|line| !line.starts_with("Content-"));
                    kept.collect::<Vec<_>>().join("\r\n").replace("PUT http", "DELETE http") + "\r\n\r\n"
                }));
                run(sandbox, &few_uploads, &format!("--proxy 127.0.0.1:{}", device.port()))
            },
        ),
        Row::new(
            "a run",
            "the device answers 300 requests and then none",
            Want::failed("unanswered", "the device did not answer all requests"),
            |sandbox| {
                let device = Device::start(Deed::FallSilent(300));
                let words = SHORT.replace("--goal 2.5s", "--goal 6s");
                let done = sandbox.polygraph(&format!("run --proxy 127.0.0.1:{} {words}", device.port()));
                Got::of_run(sandbox, &done)
            },
        ),
        Row::new(
            "a run",
            "the device never answers one of 50 requests",
            Want::VALID.warning("unanswered"),
            |sandbox| {
                let device = Device::start(Deed::Ignore(50));
                let words = SHORT.replace("--goal 2.5s", "--goal 8s");
                let done = sandbox.polygraph(&format!("run --proxy 127.0.0.1:{} {words}", device.port()));
                Got::of_run(sandbox, &done)
            },
        ),
        Row::new("a run", "the device stands still for 3.5 s", Want::VALID.warning("pause"), |sandbox| {
            // Robots send 150 requests a second; all of these are answered at the same time.
            let device = Device::start(Deed::Relay(|reply, number| {
                if (450..975).contains(&number) {
                    std::thread::sleep((975 - number as u32) * Duration::from_secs(1) / 150);
                }
                reply.bytes()
            }));
            let words = SHORT.replace("--goal 2.5s", "--goal 10s");
            let done = sandbox.polygraph(&format!("run --proxy 127.0.0.1:{} {words}", device.port()));
            Got::of_run(sandbox, &done)
        }),
        Row::new(
            "a run",
            "nothing listens at the SOCKS proxy's address",
            Want::failed("errors", "the device was unreachable"),
            |sandbox| {
                let done = sandbox.polygraph(&format!("run --socks_proxy 127.0.0.1:{} {SHORT}", free_port()));
                Got::of_run(sandbox, &done)
            },
        ),
    ]
}

/// Servers with these options, and clients one after the other with theirs, in which `ORIGIN`, `OTHER` and `PROXY` stand for ports: of the
/// servers, of nobody, and of a healthy proxy.
fn together(sandbox: &Sandbox, server: &str, clients: [&str; 2], at_once: bool) -> Got {
    let mut servers = sandbox.start(&format!("server --loops 1 --log srv.log {server}"));
    let origin = servers.port("listening at");
    let mut proxy = sandbox.start("proxy --port 0 --loops 1");
    let (proxy, other) = (proxy.port("proxy at"), free_port());
    let words = |number: usize, words: &str| {
        let words = words.replace("ORIGIN", &format!("127.0.0.1:{origin}"));
        let words = words.replace("OTHER", &format!("127.0.0.1:{other}"));
        let words = words.replace("PROXY", &format!("127.0.0.1:{proxy}"));
        format!(
            "client --req_rate 100/sec --robots 10 --rep_sz exp:2KB --preflight no --loops 1 --cool_phase none \
             --log clt{number}.log {words} {}",
            if words.contains("--goal") { "" } else { "--goal 3s" }
        )
    };
    let mut first = Some(sandbox.start(&words(1, clients[0])));
    if !at_once {
        first.take().map(Running::finish);
    }
    let done = sandbox.polygraph(&words(2, clients[1]));
    first.map(Running::finish);
    servers.stop();
    Got::of_logs(sandbox, "clt1.log clt2.log srv.log", &done)
}

/// Processes that were not started to fit each other.
pub fn processes() -> Vec<Row> {
    let group = "two clients";
    let server = "--listen 127.0.0.1:0 --rep_sz exp:2KB";
    vec![
        Row::new(
            group,
            "one has the wrong port of the servers (`--origin`)",
            Want::invalid("test", "elsewhere").code(0),
            move |sandbox| {
                let clients = ["--origin ORIGIN --proxy PROXY", "--origin OTHER --proxy PROXY"];
                together(sandbox, server, clients, true)
            },
        ),
        Row::new(group, "one has no proxy", Want::invalid("test", "mixed").code(0), move |sandbox| {
            together(sandbox, server, ["--origin ORIGIN --proxy PROXY", "--origin ORIGIN"], true)
        }),
        Row::new(
            group,
            "one has a shorter `--goal`",
            Want::invalid("test", "mixed").code(0),
            move |sandbox| {
                let clients = ["--origin ORIGIN --proxy PROXY", "--origin ORIGIN --proxy PROXY --goal 6s"];
                together(sandbox, server, clients, true)
            },
        ),
        Row::new(
            group,
            "one after the other, as if they were one run",
            Want::invalid("test", "mixed").code(0),
            move |sandbox| together(sandbox, server, ["--origin ORIGIN --proxy PROXY"; 2], false),
        ),
        Row::new(
            "two commands",
            "the client is killed before its first request",
            Want::invalid("client", "interrupted").code(super::KILLED),
            |sandbox| {
                sandbox
                    .write("test.pg", &workload("", "", MEASURE).replace("PORT", &free_port().to_string()));
                let mut server = sandbox.start("server --config test.pg --log srv.log --loops 1");
                server.wait_for("listening at");
                let client = sandbox.start(
                    "client --config test.pg --start_at 2099-01-01T00:00:00Z --preflight no --log clt.log --loops 1",
                );
                sandbox.wait_for_file("clt.log");
                client.signal(Signal::KILL);
                let done = client.finish();
                server.stop();
                Got::of_logs(sandbox, "clt.log srv.log", &done)
            },
        ),
        Row::new(
            "two commands",
            "one of two servers of the workload was not started",
            Want::invalid("test", "one side").code(0),
            |sandbox| {
                let (here, missing) = (free_port(), free_port());
                let both = format!("'127.0.0.1:{here}', '127.0.0.1:{missing}'");
                sandbox.write("test.pg", &workload("", "", MEASURE).replace("'127.0.0.1:PORT'", &both));
                let mut server = sandbox.start(&format!(
                    "server --config test.pg --only_addrs 127.0.0.1:{here} --log srv.log --loops 1"
                ));
                server.wait_for("listening at");
                let mut proxy = sandbox.start("proxy --port 0 --loops 1");
                let done = sandbox.polygraph(&format!(
                    "client --config test.pg --proxy 127.0.0.1:{} --log clt.log --loops 1 --preflight no",
                    proxy.port("proxy at")
                ));
                server.stop();
                Got::of_logs(sandbox, "clt.log srv.log", &done)
            },
        ),
    ]
}
