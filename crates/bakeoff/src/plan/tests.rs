use super::*;

fn parse(text: &str) -> Result<BakeoffPlan, String> {
    BakeoffPlan::parse(text, "plan.toml", Path::new("")).map_err(|e| e.to_string())
}

const SMALL: &str = "title='t'\nrates=[10, 50]\n[[device]]\nname='a'\ndevice='squid'\n";

#[test]
fn what_is_left_out_is_as_in_1999() {
    let plan = parse(SMALL).unwrap();
    assert_eq!(plan.rules, BakeoffRules::default());
    assert_eq!((plan.workload.duration_s, plan.workload.cool_s), (3600.0, 60.0));
    assert_eq!((plan.checks.no_proxy_s, plan.checks.network_s), (Some(3600.0), Some(300.0)));
    let device = &plan.devices[0];
    assert_eq!((device.title.as_str(), device.claimed, plan.top_rate()), ("a", 50.0, 50.0));
    assert_eq!(plan.deviations(), Vec::<String>::new());
}

#[test]
fn everything_can_be_said() {
    let plan = parse(
        "title='t'\nrates=[10, 50]\n\
         [workload]\nduration='2min'\ncool='none'\n",
    );
    assert!(plan.unwrap_err().contains("[workload], cool"), "none is no time");
    let plan = parse(
        "title='t'\nrates=[10, 50]\n\
         [workload]\nduration='2min'\ncool='5s'\noptions={xact_think='norm:1s,500ms', robots=2}\n\
         [rules]\nlaunch_window='5s'\nidle_gap='0'\nmax_errors='1%'\nfill_limit='10min'\nrepeats=2\nattempts=4\nreport='last'\n\
         [checks]\nno_proxy='30s'\nnetwork='none'\n\
         [[device]]\nname='a'\ntitle='A'\nvendor='V'\ndevice='squid'\noptions={mem='8MB', workers=2}\nclaimed=60\nfacts={os='Debian'}\n\
         prices=[{part='box', price=10.5}, {part='hub', quantity=2, price=3, network=true}]\n\
         [[device]]\nname='b'\nsurrogate='h:1'\nsize='1GB'\nrates=[5]\nraise_to=9\n",
    )
    .unwrap();
    assert_eq!(plan.workload.options["robots"], "2");
    assert_eq!((plan.rules.repeats, plan.rules.attempts, plan.rules.report), (2, 4, ReportedRun::Last));
    assert_eq!(plan.checks, BenchChecks { no_proxy_s: Some(30.0), network_s: None });
    let [a, b] = &plan.devices[..] else { panic!() };
    let DeviceLocation::Device { options, .. } = &a.target else { panic!() };
    assert_eq!((options["mem"].as_str(), options["workers"].as_str()), ("8MB", "2"));
    assert_eq!((a.claimed, a.prices[1].quantity, a.prices[1].network), (60.0, 2, true));
    assert_eq!(b.raise, Some(Raise { claimed: 9.0, rates: vec![9.0] }));
    assert_eq!(plan.top_rate(), 50.0);
    assert_eq!(plan.deviations().len(), 7, "{:?}", plan.deviations());
}

#[test]
fn a_fleet_can_run_robots_and_servers() {
    let plan = |fleet: &str, rest: &str| {
        parse(&format!("title='t'\nrates=[10]\n[checks]\nnetwork='none'\n[fleet]\n{fleet}\n{rest}"))
    };
    const PLACES: &str = "url='ssh:bench.toml'\nrobots=['10.1.0.1-4']\nservers=['10.1.0.11:80']";
    const BOX: &str = "[[device]]\nname='box'\nproxy='10.0.0.1:3128'\nsize='1GB'\n";
    let good =
        plan(&format!("{PLACES}\noptions={{ start_in='20s', anonymous=true, clock_limit='none' }}"), BOX)
            .unwrap();
    let fleet = good.workload.fleet.unwrap();
    assert_eq!(fleet.options, ["--anonymous", "--clock_limit", "none", "--start_in", "20s"]);
    for (fleet, rest, part) in [
        ("url='x'".to_owned(), BOX.to_owned(), "[fleet], robots: missing"),
        (PLACES.replace(":80", ""), BOX.to_owned(), "has no port: write for example 10.1.0.11:80"),
        (format!("{PLACES}\noptions={{ label='x' }}"), BOX.to_owned(), "options.label: cannot be set here"),
        (PLACES.to_owned(), "[[device]]\nname='a'\ndevice='squid'\n".to_owned(), "hosts of their own"),
        (
            PLACES.to_owned(),
            format!("[workload]\noptions={{ dhr='50%' }}\n{BOX}"),
            "the option dhr in [workload]",
        ),
    ] {
        let error = plan(&fleet, &rest).unwrap_err();
        assert!(error.contains(part), "{part}: {error}");
    }
    let measured = parse(&format!("title='t'\nrates=[10]\n[fleet]\n{PLACES}\n{BOX}")).unwrap_err();
    assert!(measured.contains("[checks], network"), "{measured}");
}

#[test]
fn wrong_plans_say_where_and_what_to_do() {
    let device = |text: &str| format!("title='t'\nrates=[10, 50]\n[[device]]\nname='a'\n{text}\n");
    let with = |section: &str| {
        format!("title='t'\nrates=[10, 50]\n{section}\n[[device]]\nname='a'\ndevice='squid'\n")
    };
    for (text, parts) in [
        ("rates=[1]".to_owned(), ["line 1", "missing field `title`"]),
        ("title='t'\nrates=[1]\nspeed=1".into(), ["line 3", "unknown field `speed`"]),
        ("title='t'\nrates=[1,".into(), ["line 2", "array"]),
        ("title='t'\nrates=[1]".into(), ["plan", "[[device]]"]),
        (device("device='squid'\nproxy='h:1'"), ["device `a`", "exactly one of device"]),
        (device(""), ["device `a`", "exactly one of device"]),
        (device("proxy='h:1'"), ["device `a`, size", "20GB"]),
        (device("proxy='h:1'\nsize='big'"), ["device `a`, size", "`big` is not a size"]),
        (device("proxy='h:1'\nsize='1GB'\noptions={mem='1GB'}"), ["device `a`, options", "started here"]),
        (device("device='squid'\noptions={mem=[1]}"), ["options.mem", "a text or a number"]),
        (device("device='squid'\nrates=[]"), ["device `a`, rates", "missing"]),
        (device("device='squid'\nrates=[10, 10]"), ["rates", "twice"]),
        (device("device='squid'\nrates=[0]"), ["rates", "more than 0"]),
        (device("device='squid'\nrates=[inf]"), ["rates", "not a rate"]),
        (
            device("device='squid'\nclaimed=40"),
            ["rates", "raise the claim, or move this rate to raise_rates"],
        ),
        (device("device='squid'\nraise_to=50"), ["raise_to", "does not raise the claim"]),
        (device("device='squid'\nclaimed=60\nraise_to=70"), ["raise_to", "add this rate to rates"]),
        (device("device='squid'\nraise_rates=[70]"), ["raise_rates", "raise_to"]),
        (device("device='squid'\nraise_to=70\nraise_rates=[80]"), ["raise_rates", "80 is not above"]),
        (device("device='squid'\nprices=[{part='x', price=-1}]"), ["prices[1]", "at least 0"]),
        (device("device='squid'\n[[device]]\nname='a'\ndevice='squid'"), ["device `a`, name", "two devices"]),
        (SMALL.replace("name='a'", "name='a b'"), ["device `a b`, name", "directory"]),
        (with("[workload]\nduration='long'"), ["[workload], duration", "`long` is not a time"]),
        (with("[workload]\nduration='0'"), ["[workload], duration", "a positive time"]),
        (with("[workload]\noptions={goal='1hr'}"), ["options.goal", "xact_think"]),
        (with("[workload]\nconfig='x.pg'"), ["[workload], rate", "name the setting"]),
        (with("[workload]\nrate='R'"), ["[workload], rate", "only with config"]),
        (with("[workload]\nconfig='x.pg'\nrate='R'"), ["[workload], duration", "missing"]),
        (with("[workload]\nduration='30s'"), ["[rules], launch_window", "shorter than the runs"]),
        (with("[rules]\nmax_errors='many'"), ["[rules], max_errors", "not a share"]),
        (with("[rules]\nrepeats=0"), ["[rules], repeats", "from 1 to 20"]),
        (with("[rules]\nrepeats=3\nattempts=2"), ["[rules], attempts", "from 3"]),
        (with("[rules]\nreport='best'"), ["line 4", "unknown variant `best`"]),
        (with("[checks]\nno_proxy='0'"), ["[checks], no_proxy", "a positive time"]),
    ] {
        let error = parse(&text).expect_err(&text);
        assert!(error.starts_with("plan.toml"), "{error}");
        for part in parts {
            assert!(error.contains(part), "`{part}` is not in: {error}\n{text}");
        }
    }
}

#[test]
fn surrogates_and_workload_files_do_not_go_together() {
    let text = "title='t'\nrates=[1]\n[workload]\nconfig='x.pg'\nrate='R'\nduration='1min'\n\
        [[device]]\nname='a'\nsurrogate='h:1'\nsize='1MB'\n";
    let error = parse(text).unwrap_err();
    assert!(error.contains("device `a`, surrogate") && error.contains("leave config out"), "{error}");
}

#[test]
fn a_configuration_is_what_results_depend_on() {
    let base = parse(SMALL).unwrap();
    let configuration = |text: &str| {
        let plan = parse(text).unwrap();
        plan.devices[0].configuration(&plan)
    };
    let same = base.devices[0].configuration(&base);
    for (text, equal) in [
        (SMALL.replace("rates=[10, 50]", "rates=[10, 40, 50]"), true),
        (format!("{SMALL}prices=[{{part='x', price=1}}]\n"), true),
        (format!("{SMALL}options={{mem='1GB'}}\n"), false),
        (SMALL.replace("[[device]]", "[workload]\nduration='2hr'\n[[device]]"), false),
        (SMALL.replace("squid", "trafficserver"), false),
    ] {
        assert_eq!(configuration(&text) == same, equal, "{text}");
    }
}

#[test]
fn files_of_comments_must_be_there() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("p.toml");
    std::fs::write(&path, format!("{SMALL}comments='mine.txt'\n")).unwrap();
    let error = BakeoffPlan::read(&path).unwrap_err().to_string();
    assert!(
        error.contains("device `a`, comments: there is no file") && error.contains("mine.txt"),
        "{error}"
    );
    std::fs::write(place.path().join("mine.txt"), "fine").unwrap();
    assert!(BakeoffPlan::read(&path).unwrap().devices[0].comments.as_ref().unwrap().is_file());
    assert!(
        BakeoffPlan::read(&place.path().join("none"))
            .unwrap_err()
            .to_string()
            .contains("cannot read the plan")
    );
}

#[test]
fn rates_as_given_or_mixed() {
    let rates = |text: &str| parse(text).unwrap().devices[0].rates.clone();
    let text = SMALL.replace("[10, 50]", "[50, 10, 30, 20]");
    assert_eq!(rates(&text), [50.0, 10.0, 30.0, 20.0]);
    assert_eq!(rates(&format!("order='mixed'\n{text}")), [10.0, 50.0, 20.0, 30.0]);
    assert!(parse(&format!("order='random'\n{text}")).unwrap_err().contains("unknown variant `random`"));
}

#[test]
fn times_and_rates_have_bounds() {
    let wrong = |text: String, words: &str| {
        let error = parse(&text).unwrap_err();
        assert!(error.contains(words), "{text}: {error}");
    };
    let days = "at most 30 days";
    for field in ["duration", "cool"] {
        wrong(SMALL.replace("[[device]]", &format!("[workload]\n{field}='1000000hr'\n[[device]]")), days);
    }
    for field in ["launch_window", "idle_gap", "fill_limit"] {
        wrong(SMALL.replace("[[device]]", &format!("[rules]\n{field}='1000000hr'\n[[device]]")), days);
    }
    for rates in ["[1e8]", "[0]", "[-5]", "[nan]", "[inf]"] {
        wrong(SMALL.replace("[10, 50]", rates), "is not a rate");
    }
    wrong(format!("{SMALL}raise_to=1e9\n"), "at most 10000000");
    wrong(SMALL.replace("[10, 50]", "[10, 50, 10]"), "10 is listed twice");
    let many: Vec<String> = (1..=100_001).map(|rate| rate.to_string()).collect();
    wrong(SMALL.replace("[10, 50]", &format!("[{}]", many.join(","))), "at most 100000");
}

#[test]
fn files_that_are_no_plans_are_not_read_to_their_end() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("p.toml");
    std::fs::File::create(&path).unwrap().set_len(raw::MAX_FILE + 1).unwrap();
    let error = BakeoffPlan::read(&path).unwrap_err().to_string();
    assert!(
        error.contains("cannot read the plan") && error.contains("bytes, which is too large for a plan"),
        "{error}"
    );
    let error = BakeoffPlan::read(std::path::Path::new("/dev/zero")).unwrap_err().to_string();
    assert!(error.contains("not a plain file"), "{error}");
}
