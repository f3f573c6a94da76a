//! The table of record types: the one place that describes the fields of the language.
//!
//! `record_table! { with }` hands the table to the macro `with`.

macro_rules! record_table {
    ($with:ident) => {
        $with! {
        /// The fields that Robot, Server and Proxy share. Sticky settings are drawn once per agent, at the start.
        Agent {
            /// Addresses of agents: one agent per address. Server: `IP:port`, unique in the test. Robot: an IP without port, repeats allowed. `use()` skips an agent object without addresses.
            addresses: AgentAddrs,
            /// TLS settings, a sticky selection; undefined: no TLS. Robot: the robot can use TLS. Server: the server accepts TLS only. Proxy: robots must use TLS to the proxy.
            ssl_wraps: Selector<SslWrapId, Tree>,
            /// Options of the sockets (not implemented).
            socket: Option<Box<Socket>>,
            /// A label for logs and messages.
            kind: Option<String>,
            /// Forces the agent id, which all agents of the object then share (not implemented); undefined: a fresh id per agent.
            world: Option<u64>,
            /// Selector of `"1.0"`, `"1.1"`, `"2"` and `"3"`. Robot: sticky, the version that the robot speaks; for HTTP/2 without TLS and for HTTP/3, the peer must expect it (prior knowledge). Server: the versions that it accepts. A server with `"2"` accepts HTTP/2 on all connections, one with nothing else accepts only that; the version of its HTTP/1 replies is sticky. One with `"3"` accepts HTTP/3 on the same address and port over UDP. `"3"` needs `ssl_wraps`.
            http_versions: Selector<String, Tree> = Default::Strs(&["1.1"]),
            /// Largest number of HTTP/2 or HTTP/3 streams at the same time on a connection. Robot: the peer may allow fewer; if all are in use, the robot opens another connection. Server: the number that it announces. Undefined: 100.
            h2_streams: Option<i32>,
            /// HTTP/2 or HTTP/3 flow-control window of each stream and of each connection, for what the agent receives. Undefined: 1 MB.
            h2_window: Option<Size>,
            /// Time limit per transaction. Robot: includes name resolution and waiting for a connection. Server: includes think time. Undefined: no limit.
            xact_lifetime: Option<Distribution<Time>>,
            /// Server: think time, the delay before a request is handled. Robot: not supported.
            xact_think: Option<Distribution<Time>>,
            /// Largest number of transactions per connection: drawn per connection, truncated, at least 1. Undefined: no persistent connections.
            pconn_use_lmt: Option<Distribution<i32>> = Default::ConstInt(1),
            /// Time after which an idle connection is closed; undefined: the other side closes it.
            idle_pconn_tout: Option<Time>,
            /// Robot: how to choose the object of a repeated request (required if recurrence is positive). Server: how to choose the targets of 302 replies.
            pop_model: Option<Box<PopModel>>,
            /// Probability (0..1) of aborting a transaction inside a body, at a uniformly distributed position.
            abort_prob: f64 = Default::Float(0.0),
            /// Sticky probability (0..1) of using cookies; undefined: 1 for robots and for servers that set cookies.
            cookie_sender: Option<f64>,
            /// HTTP status codes that are part of the custom statistics: `"all"`, or an optional sign and `NNN`, `NNx` or `Nxx`. More specific entries take precedence, then later ones. If all entries are negative, `"all"` is implied.
            custom_stats_scope: Vec<String>,
            /// Extra headers of every message sent, before the generated ones. Each header, or nested array as a whole, is included with its probability; always if it has none.
            http_headers: Vec<HeaderRule>,
        }

        /// Options of an agent's sockets (not implemented).
        Socket {
            /// If true, the system may delay small packets (Nagle's algorithm).
            nagle: bool = Default::Bool(false),
            /// How long closing a socket waits for unsent data; undefined: the system's default.
            linger_tout: Option<Time>,
        }

        /// A client. With `req_rate` or `req_inter_arrival`, requests start at scheduled times, independent of replies. With neither, each transaction starts when the one before it ends. With `req_rate = 0/sec`, the robot starts no requests.
        Robot with agent: Agent {
            /// Mean rate of requests per robot (Poisson stream).
            req_rate: Option<Rate>,
            /// Distribution of the times between requests; excludes req_rate.
            req_inter_arrival: Option<Distribution<Time>>,
            /// Visible names or IPs of servers, with ports; a flat selector without repeats. Each must be in an AddrMap or be a server address.
            origins: Selector<VisibleName, Flat>,
            /// Probability (0..1) that a request is for an object that was requested before.
            recurrence: f64 = Default::Float(0.0),
            /// Probability (0..1) of requesting each embedded object that is found.
            embed_recur: f64 = Default::Float(0.0),
            /// Selector of `"public"`, `"private"` (treated as public) and `"foreign"`; undefined: public only.
            interests: Selector<String, Tree>,
            /// File with foreign URLs; required if and only if interests include `"foreign"`. All robots with the same file share its URLs. `Ims200`, `Ims304` and `Range` requests for these URLs are `Basic`, because they need information that only the owner of an object has.
            foreign_trace: Option<String>,
            /// Selector of `Basic`, `Ims200`, `Ims304`, `Reload`, `Range` and `Upload`; drawn with the phase's special_msg_factor as probability, otherwise Basic.
            req_types: Selector<String, Tree> = Default::Strs(&["Basic"]),
            /// Selector of `GET`, `HEAD`, `POST` and `PUT`; drawn with the phase's special_msg_factor as probability, otherwise GET. `Upload` implies PUT.
            req_methods: Selector<String, Tree> = Default::Strs(&["GET"]),
            /// Bodies of POST requests; required if and only if POST can occur.
            post_contents: Selector<ContentId, Tree>,
            /// Bodies of PUT requests; required if and only if PUT or Upload can occur.
            upload_contents: Selector<ContentId, Tree>,
            /// Old name of upload_contents.
            put_contents: Selector<ContentId, Tree>,
            /// Selector of SingleRange and MultiRange; required if and only if `Range` can occur.
            ranges: Selector<RequestRange, Tree>,
            /// Probability (0..1) of sending an earlier request body again.
            req_body_recurrence: f64 = Default::Float(0.0),
            /// Probability (0..1) of `Expect: 100-continue`. After 3 seconds without 100 (continue), the body is sent anyway.
            req_body_pause_prob: Option<f64>,
            /// Requests with bodies of at least this size have `Expect: 100-continue`; excludes req_body_pause_prob.
            req_body_pause_start: Option<Size>,
            /// Largest number of open connections per robot; undefined: no limit.
            open_conn_lmt: Option<i32>,
            /// Largest number of transactions that wait for a connection; undefined: no limit. A transaction beyond the limit fails.
            wait_xact_lmt: Option<i32>,
            /// Requests in flight per connection, drawn per connection, at least 1; HTTP/1 only.
            pipeline_depth: Option<Distribution<f64>> = Default::ConstFloat(1.0),
            /// Probability (0..1) of reusing an idle connection to a substitute address; requires note_substitutes().
            minimize_new_conn: f64 = Default::Float(0.0),
            /// Number of entries in a private cache for embedded objects, at most 21845. The cache is emptied at the end of a session.
            private_cache_cap: i32 = Default::Int(0),
            /// Whether every request has a new URL.
            unique_urls: bool = Default::Bool(false),
            /// Whether the robot sends requests over HTTP/3 to where replies announce it (`Alt-Svc`), as long as that is fresh. Needs `ssl_wraps`, and no proxies.
            follow_alt_svc: bool = Default::Bool(false),
            /// HTTP proxies; sticky, spread evenly over robots.
            http_proxies: Vec<Addr>,
            /// Proxies for ftp:// URLs (not implemented).
            ftp_proxies: Option<Vec<Addr>>,
            /// Old name of http_proxies.
            proxies: Vec<Addr>,
            /// SOCKS5 proxies.
            socks_proxies: Vec<Addr>,
            /// Sticky probability (0..1) of using a SOCKS proxy; undefined: 1 if there are any.
            socks_prob: Option<f64>,
            /// Share (0..1) of the robots with a SOCKS proxy that use the HTTP proxy through it.
            socks_chaining_prob: f64 = Default::Float(0.0),
            /// Whether SOCKS proxies get the names of servers and proxies, and resolve them; otherwise robots resolve names.
            socks_names: bool = Default::Bool(false),
            /// Sticky probability (0..1) of passive FTP (not implemented).
            passive_ftp: f64 = Default::Float(1.0),
            /// How names are resolved; required if an origin is a name that no AddrMap of the test has.
            dns_resolver: Option<Box<DnsResolver>>,
            /// `user:password` items; `user:` means an empty password; `${worker}` is replaced when it is used (`${target_ip}` is not implemented). At the start of each session a robot takes the next item of a shuffled cycle. `polygraph accounts FILE` lists them for the device, as htpasswd or LDIF.
            credentials: Vec<String>,
            /// Probability (0..1) of sending a wrong password.
            auth_error: f64 = Default::Float(0.0),
            /// Share of Negotiate challenges answered with SPNEGO; undefined: all.
            spnego_auth_ratio: Option<f64>,
            /// Answer `Negotiate` with tickets of Kerberos instead of NTLM. The users are those of credentials.
            kerberos_wrap: Option<Box<KerberosWrap>> = Default::Undef,
            /// Access decisions that the robot expects (not implemented).
            acl: Option<Box<Acl>>,
            /// Alternating busy and idle periods.
            session: Option<Box<Session>>,
            /// Number of cookies kept per server; drawn once per robot, rounded up.
            cookies_keep_lmt: Option<Distribution<f64>> = Default::ConstFloat(4.0),
            /// Entries of the Accept-Encoding header; one that starts with `gzip` or `*` enables decoding.
            accept_content_encodings: Vec<String>,
            /// Tags with the attributes that contain links to embedded objects.
            container_tags: Vec<String> = Default::Strs(&["<embed src>"]),
            /// Replies whose Server header starts with this text (`"*"`: any) are also scanned for URLs in scripts, and all URLs are requested.
            raw_uri_thrower: Option<String>,
            /// ICP port (not implemented).
            icp_port: Option<i32>,
            /// HTTP address of an ICP peer (not implemented).
            peer_http: Option<Addr>,
            /// ICP address of an ICP peer (not implemented).
            peer_icp: Option<Addr>,
        }

        /// An origin server.
        Server with agent: Agent {
            /// All content types with their shares of all requests.
            contents: Selector<ContentId, Tree>,
            /// Types that robots request directly, not as embedded objects; undefined: all. Probabilities given here apply; otherwise those in contents.
            direct_access: Selector<ContentId, Tree>,
            /// Selector of `Basic` and `302 Found` (requires pop_model); drawn with the phase's special_msg_factor as probability, otherwise Basic.
            rep_types: Selector<String, Tree> = Default::Strs(&["Basic"]),
            /// Selector of `HTTP` and `FTP` (FTP is not implemented).
            protocol: Selector<String, Tree> = Default::Strs(&["HTTP"]),
            /// Accepted connections per readiness event (not implemented); -1: no limit.
            accept_lmt: i32 = Default::Int(-1),
            /// Probability (0..1) that a reply sets cookies.
            cookie_set_prob: f64 = Default::Float(0.0),
            /// Number of cookies in such a reply; required if and only if cookie_set_prob is positive.
            cookie_set_count: Option<Distribution<f64>>,
            /// Size of each cookie; required if and only if cookie_set_prob is positive.
            cookie_value_size: Option<Distribution<Size>>,
            /// Probability (0..1) of answering `Expect: 100-continue` with 100 (continue) instead of 417.
            req_body_allowed: f64 = Default::Float(1.0),
            /// Schemes of authentication that the server offers, in this order: `basic`, `digest`, `digest-sha256`, `ntlm`, `negotiate`; empty: it demands none. The credentials of all robots have access.
            auth_schemes: Vec<String>,
            /// File with the keys of the server's service in Kerberos (a keytab). With it, `negotiate` of auth_schemes accepts tickets of Kerberos besides NTLM.
            keytab: Option<String>,
            /// For how long the server says in its replies that it speaks HTTP/3 at the same port (`Alt-Svc`), in whole seconds; needs `"3"` in `http_versions`. Undefined: it does not say so.
            alt_svc: Option<Time>,
        }

        /// A proxy in the test: its addresses and TLS settings.
        Proxy with agent: Agent {
        }

        /// A content type. Two values are the same type if and only if all their fields are equal.
        Content {
            /// A label for logs and messages.
            kind: Option<String> = Default::Str("some-content"),
            /// Size of replies; required unless there is a content_db or document_root.
            size: Option<Distribution<Size>>,
            /// Share (0..1) of cachable objects.
            cachable: f64 = Default::Float(0.0),
            /// Media type, and extensions and prefixes of URLs.
            mime: Option<Box<Mime>>,
            /// Modification and expiration of objects.
            obj_life_cycle: Option<Box<ObjLifeCycle>>,
            /// Types of embedded objects, a flat selector; requires embedded_obj_cnt and is required by it. The contents of the server must include these types.
            may_contain: Selector<ContentId, Flat>,
            /// Number of embedded objects per container; draws are truncated.
            embedded_obj_cnt: Option<Distribution<i32>>,
            /// Share (0..1) of replies with a Content-MD5 header.
            checksum: f64 = Default::Float(0.0),
            /// Share (0..1) of objects with unique bodies, while all others have the same body; undefined: the generator decides.
            unique: Option<f64>,
            /// `random_text` or `random_data`.
            generator: Option<String> = Default::Str("random_text"),
            /// File with a content database; excludes document_root.
            content_db: Option<String>,
            /// Directory tree that is loaded into memory; its paths become URLs.
            document_root: Option<String>,
            /// Database of texts to inject; requires inject_gap and infect_prob.
            inject_db: Option<String>,
            /// What is injected: `db_text` or `request_uri`; undefined: db_text if there is an inject_db.
            inject_object: Option<String>,
            /// Share (0..1) of injected objects; required by the other inject fields.
            infect_prob: Option<f64>,
            /// Distance between injections; only with inject_db.
            inject_gap: Option<Distribution<Size>>,
            /// Selector of `identity` and `gzip`. Bodies of requests are compressed if there is only `gzip`.
            encodings: Selector<String, Tree> = Default::Strs(&["identity"]),
            /// Extra headers of messages that carry this content; see http_headers.
            mime_headers: Vec<HeaderRule>,
            /// Overrides for robots that request this content.
            client_behavior: Option<Box<ClientBehavior>>,
            /// Without effect.
            choice_space: Option<i32>,
        }

        /// Media type, and extensions and prefixes of the URLs of a content.
        Mime {
            /// Value of Content-Type; undefined: no such header.
            type_: Option<String>,
            /// Extensions of URLs, a flat selector.
            extensions: Selector<String, Flat>,
            /// Prefixes of URL paths, a flat selector.
            prefixes: Selector<String, Flat>,
        }

        /// A header of a message, normally written `'Name: value'`.
        MimeHeader {
            /// Name of the header.
            name: Option<String>,
            /// Value of the header.
            value: Option<String>,
        }

        /// When objects change and expire.
        ObjLifeCycle {
            /// Time between modifications; undefined: no Last-Modified and Expires headers at all.
            length: Option<Distribution<Time>>,
            /// Jitter of modification times as a fraction of the cycle (0..1).
            variance: f64 = Default::Float(0.0),
            /// Share (0..1) of objects that show Last-Modified.
            with_lmt: f64 = Default::Float(0.0),
            /// Expiration times, each with a base: `lmt + d`, `now + d`, `nmt + d`; a flat selector.
            expires: Selector<Distribution<Time>, Flat>,
            /// Without effect: objects are created at a random point of their first cycle.
            birthday: Option<Distribution<Time>>,
        }

        /// How a repeated request chooses among the known objects.
        PopModel {
            /// popUnif() or popZipf(skew); required if any field of the model is set.
            pop_distr: Option<crate::value::PopDistr>,
            /// Size of the hot set relative to the working set (0..1).
            hot_set_frac: f64 = Default::Float(1.0),
            /// Share (0..1) of requests to the hot set.
            hot_set_prob: f64 = Default::Float(0.0),
            /// Probability (0..1) of choosing the smallest of nine neighbours, which lowers the byte hit ratio.
            bhr_discrimination: f64 = Default::Float(0.0),
        }

        /// Settings that replace those of a robot for requests for one content. A Robot can be assigned to it.
        ClientBehavior {
            /// Replaces the robot's req_types.
            req_types: Selector<String, Tree>,
            /// Replaces the robot's req_methods.
            req_methods: Selector<String, Tree>,
            /// Replaces the robot's ranges.
            ranges: Selector<RequestRange, Tree>,
            /// Replaces the robot's recurrence.
            recurrence: Option<f64>,
            /// Replaces the robot's pop_model.
            pop_model: Option<Box<PopModel>>,
        }

        /// A request for one byte range: a start with an optional end, or a suffix. Positions and lengths are absolute or relative to the size of the entity.
        SingleRange {
            /// First byte.
            first_byte_pos_absolute: Option<Size>,
            /// First byte as a fraction of the entity.
            first_byte_pos_relative: Option<f64>,
            /// Last byte; requires a start.
            last_byte_pos_absolute: Option<Size>,
            /// Last byte as a fraction of the entity; requires a start.
            last_byte_pos_relative: Option<f64>,
            /// Number of bytes at the end, instead of a start.
            suffix_length_absolute: Option<Size>,
            /// Bytes at the end as a fraction of the entity, instead of a start.
            suffix_length_relative: Option<f64>,
        }

        /// A request for several byte ranges.
        MultiRange {
            /// Start of the first range; undefined: it follows a gap.
            first_range_start_absolute: Option<Distribution<Size>>,
            /// Start of the first range as a fraction of the entity.
            first_range_start_relative: Option<Distribution<f64>>,
            /// Length of each range; gaps are exponential with the same mean.
            range_length_absolute: Option<Distribution<Size>>,
            /// Length of each range as a fraction of the entity.
            range_length_relative: Option<Distribution<f64>>,
            /// Number of ranges; required.
            range_count: Option<Distribution<i32>>,
        }

        /// Alternating busy and idle periods of a robot. The fields busy_period and idle_period_duration require each other.
        Session {
            /// Goal that ends the busy period; errors are ignored.
            busy_period: Option<Box<Goal>>,
            /// Length of the idle period.
            idle_period_duration: Option<Distribution<Time>>,
            /// Rate of events that report that the session continues (not implemented).
            heartbeat_notif_rate: Option<Rate>,
        }

        /// Name resolution.
        DnsResolver {
            /// Name servers, tried in order; port 53 unless given.
            servers: Vec<Addr>,
            /// Time limit per query and server; undefined: 5 seconds. The xact_lifetime of a robot includes name resolution.
            timeout: Option<Time>,
            /// `A` or `AAAA`.
            query_type: Option<String> = Default::Str("A"),
            /// Cache of answers.
            cache: Option<Box<DnsCache>>,
        }

        /// A cache of name server answers.
        DnsCache {
            /// Number of entries; 0 or undefined: no cache.
            capacity: Option<i32>,
            /// Robots that name the same group share one cache.
            sharing_group: Option<String>,
        }

        /// Kerberos settings of a robot.
        KerberosWrap {
            /// The realm of users and services, usually in capital letters; required.
            realm: Option<String>,
            /// Key distribution centres over UDP and, for what does not fit a datagram, TCP; excludes servers_tcp and servers_udp.
            servers: Vec<Addr>,
            /// Key distribution centres over TCP; asked in their order after those over UDP. The default port is 88.
            servers_tcp: Vec<Addr>,
            /// Key distribution centres over UDP.
            servers_udp: Vec<Addr>,
            /// Time limit for each message to a server; undefined: 5 seconds.
            timeout: Option<Time>,
            /// Principal of the proxies; undefined: `HTTP/` and the host of the robot's proxy as the workload or the command line names it.
            service: Option<String>,
        }

        /// Access decisions that a robot expects of a proxy (not implemented: a robot with an Acl is refused).
        Acl {
            /// Requests that must be allowed.
            allow: Option<Arc<crate::value::Re>>,
            /// Requests that must be denied.
            deny: Option<Arc<crate::value::Re>>,
            /// Requests that must be rewritten.
            rewrite: Option<Arc<crate::value::Re>>,
            /// Probability (0..1) of checking replies of servers in the test.
            check_domestic: f64 = Default::Float(1.0),
            /// Probability (0..1) of checking replies of foreign servers.
            check_foreign: f64 = Default::Float(1.0),
        }

        /// Users and the groups that they belong to (not implemented: `use()` of one is refused).
        MembershipMap {
            /// Names of groups.
            group_space: Vec<String>,
            /// Names of members.
            member_space: Vec<String>,
            /// Groups per member; required.
            groups_per_member: Option<Distribution<i32>>,
        }

        /// TLS settings.
        SslWrap {
            /// Selector of `TLSv1.2`, `TLSv1.3`, and `any` for both; sticky.
            protocols: Selector<String, Tree> = Default::Strs(&["any"]),
            /// Cipher suites in order of preference: names of IANA or OpenSSL that are separated by colons, or `ALL`. A flat selector of such lists; sticky.
            ciphers: Selector<String, Flat> = Default::Strs(&["ALL"]),
            /// Groups for the key exchange in order of preference, for example `x25519`, `secp256r1` or `X25519MLKEM768`; empty: those of the library.
            groups: Vec<String>,
            /// Application protocols that are offered or accepted, in order of preference (ALPN), for example `http/1.1`; empty: those of `http_versions` if HTTP/2 is among them, otherwise none. `h2` follows from `http_versions` alone.
            alpn: Vec<String>,
            /// File with certificates of authorities, in PEM. Robots check peers against them. A server signs generated certificates with the first one, whose private key must be in the file, and checks client certificates against them.
            root_certificate: Option<String>,
            /// Files with certificate chain and private key, in PEM, assigned to agents in turn, sticky; excludes generate_certificates. Robot: client certificates. Server: the certificates of servers.
            certificates: Vec<String>,
            /// Whether certificates are generated; undefined: servers without `certificates` generate them, one for each name that a client asks for. Robots cannot generate them.
            generate_certificates: Option<bool>,
            /// Server: what is wrong with generated certificates on purpose, to see whether the device refuses them: `expired`, `not_yet_valid`, `wrong_name`, `unknown_authority` or `self_signed`. Robots then expect a refusal. Undefined: nothing.
            certificate_fault: Option<String>,
            /// Selector of the sizes of generated RSA keys: 2048, 3072 or 4096 bits; sticky.
            rsa_key_sizes: Selector<Size, Tree> = Default::Sizes(&[256]),
            /// Selector of the kinds of generated keys: `RSA` (of a size in `rsa_key_sizes`), `RSA-2048`, `RSA-3072`, `RSA-4096`, `ECDSA-P256` and `Ed25519`; sticky.
            key_types: Selector<String, Tree> = Default::Strs(&["RSA"]),
            /// File with settings of certificate requests.
            ssl_config_file: Option<String>,
            /// Agents of a group share generated authorities and keys; a name that starts with `/` is the prefix of files that keep them for later runs.
            sharing_group: Option<String>,
            /// Robot: probability (0..1) of trying to resume a session.
            session_resumption: f64 = Default::Float(0.0),
            /// Number of sessions kept per agent; 0: none. Undefined: robots have no limit, and servers keep none but issue tickets, which all servers of the test accept.
            session_cache: Option<i32>,
            /// Robot: whether first requests of resumed sessions are sent before the handshake is complete (0-RTT). Server: whether such requests are accepted; needs `session_cache`.
            early_data: bool = Default::Bool(false),
            /// Robot: whether certificates are checked; undefined: if there is a root_certificate. Server: whether clients need a certificate.
            verify_peer_certificate: Option<bool>,
            /// Compression does not exist any more; only 0 is possible.
            compression: Option<f64>,
        }

        /// Visible names and the IPs behind them. With one name and several addresses, each request goes to a random address, so the servers must have the same contents unless a device routes requests. Otherwise there must be at least as many names as addresses: name i maps to address i modulo their count.
        AddrMap {
            /// Visible names or IPs; may be dynamic.
            names: Vec<VisibleName>,
            /// IPs behind them.
            addresses: Vec<Addr>,
            /// Zone, for the generation of name server files; `"."` is the root.
            zone: Option<String>,
        }

        /// The bench: its machines, their capacities, and the total load.
        Bench {
            /// Total request rate that the device under test sees at its peak.
            peak_req_rate: Option<Rate>,
            /// The machines that run robots.
            client_side: Option<Box<BenchSide>>,
            /// The machines that run servers.
            server_side: Option<Box<BenchSide>>,
            /// The machines under test.
            proxy_side: Option<Box<BenchSide>>,
        }

        /// One side of a bench.
        BenchSide {
            /// Real addresses of the machines; an address that is listed k times runs k worker processes.
            hosts: Vec<Addr>,
            /// Capacity of one machine.
            max_host_load: Option<Rate>,
            /// Capacity of one agent.
            max_agent_load: Option<Rate>,
            /// Pool of agent addresses, for address schemes of generation 4 and SpreadAs.
            addr_space: Vec<polygraph_addr::AddrRange>,
            /// Old form of addr_space, for PolyMix3As: the first two octets, the port, the interface and the subnet.
            addr_mask: Option<Addr>,
            /// Explicit list of addresses for the creation of aliases; undefined: those of the agents.
            addresses: AgentAddrs,
            /// One list of cores per element of hosts, as nested arrays.
            cpu_cores: CoreLists,
        }

        /// Address scheme of generation 3: whole third octets per machine.
        PolyMix3As {
            /// A label.
            kind: Option<String> = Default::Str("PolyMix-3"),
        }

        /// Address scheme of generation 4: servers in a separate address space.
        PolyMix4As {
            /// A label.
            kind: Option<String> = Default::Str("PolyMix-4"),
            /// Agents that share one address; required, positive.
            agents_per_addr: Option<i32>,
        }

        /// Address scheme of generation 4: servers are the real server machines.
        WebAxe4As {
            /// A label.
            kind: Option<String> = Default::Str("WebAxe-4"),
            /// Agents that share one address; required, positive.
            agents_per_addr: Option<i32>,
        }

        /// Address scheme of generation 4 for server load balancers; as WebAxe4As, without proxies.
        SrvLb4As {
            /// A label.
            kind: Option<String> = Default::Str("SrvLb-4"),
            /// Agents that share one address; required, positive.
            agents_per_addr: Option<i32>,
        }

        /// Address scheme that spreads agents evenly over all configured machines.
        SpreadAs {
            /// A label.
            kind: Option<String> = Default::Str("Spread"),
            /// Agents that share one address; required, positive.
            agents_per_addr: Option<i32>,
        }

        /// A goal. With several fields, the first one reached counts.
        Goal {
            /// Positive: time.
            duration: Option<Time>,
            /// Positive: finished transactions.
            xactions: Option<i32>,
            /// Positive: bytes of cachable misses.
            fill_size: Option<Size>,
            /// Negative: a value below 1 is a ratio of errors, checked after 1000 transactions; from 1 on it is a number of errors. 100% therefore means one error.
            errors: Option<f64>,
        }

        /// A phase of the schedule. A factor without a start value starts where the previous phase ended (at 1 in the first phase); a factor without an end value ends at its start value.
        Phase {
            /// Name of the phase.
            name: Option<String>,
            /// Goal that ends the phase; empty: the phase does not end.
            goal: Option<Box<Goal>>,
            /// Share (0..1) of robots that are active at the start.
            populus_factor_beg: Option<f64>,
            /// Share (0..1) of robots that are active at the end.
            populus_factor_end: Option<f64>,
            /// Factor (0..1) of every robot's request rate at the start.
            load_factor_beg: Option<f64>,
            /// Factor (0..1) of every robot's request rate at the end.
            load_factor_end: Option<f64>,
            /// Factor (0..1) of every robot's recurrence at the start.
            recur_factor_beg: Option<f64>,
            /// Factor (0..1) of every robot's recurrence at the end.
            recur_factor_end: Option<f64>,
            /// Factor (0..1) of the shares of special requests and replies at the start.
            special_msg_factor_beg: Option<f64>,
            /// Factor (0..1) of the shares of special requests and replies at the end.
            special_msg_factor_end: Option<f64>,
            /// Whether statistics of the phase are logged.
            log_stats: bool = Default::Bool(true),
            /// Whether reports take their main results from this phase.
            primary: bool = Default::Bool(false),
            /// Whether processes wait for each other at the end of the phase.
            synchronize: bool = Default::Bool(true),
            /// Whether the phase also waits until the working set is frozen.
            wait_wss_freeze: bool = Default::Bool(false),
            /// Controller that adjusts the load to keep the response time in a window; empty: off.
            rptmstat: Option<Box<Rptmstat>>,
            /// Samples of single transactions.
            stats_samples: Vec<StatsSample>,
            /// Code that clients run at the start of the phase.
            script: Option<ScriptId>,
        }

        /// A sample of single transactions.
        StatsSample {
            /// Name of the sample; undefined in a phase: the name of the phase.
            name: Option<String>,
            /// Time from the start of the test or phase to the sample; undefined in a phase: the middle of the phase.
            start: Option<Time>,
            /// Number of transactions.
            capacity: Option<i32>,
        }

        /// A controller that adjusts the load factor to keep the mean response time in a window.
        Rptmstat {
            /// Length of each sample.
            sample_dur: Option<Time>,
            /// Relative change of the load per step; not 0.
            load_delta: Option<f64>,
            /// Lower bound of the mean response time.
            rptm_min: Option<Time>,
            /// Upper bound of the mean response time.
            rptm_max: Option<Time>,
        }

        /// A cache; without effect.
        Cache {
            /// Size of the cache.
            capacity: Option<Size>,
            /// ICP port of the cache.
            icp_port: Option<i32>,
        }

        /// A network pipe; accepted by `use()`, without effect.
        NetPipe {
            /// Addresses that the pipe applies to.
            addresses: Vec<Addr>,
            /// TLS settings.
            ssl_wraps: Selector<SslWrapId, Tree>,
            /// A label.
            kind: Option<String>,
            /// Delay of each packet.
            packet_delay: Option<Distribution<Time>>,
            /// Largest bandwidth.
            bandwidth: Option<Bandwidth>,
            /// Share (0..1) of lost packets.
            packet_loss: Option<f64>,
            /// Length of the queue in packets.
            queue_packet_size: Option<i32>,
            /// Length of the queue in bytes.
            queue_byte_size: Option<Size>,
            /// Direction; undefined: both.
            outgoing: Option<bool>,
        }

        /// Statistics for phase scripts. currentSample() and currentPhase() return them; members such as `s.rep.rptm.mean` have the values.
        StatSample {
        }

        /// The code of an `every` statement; it cannot be used in declarations.
        EveryCode {
        }
            }
    };
}
