use super::*;

fn chart(series: Vec<Series>) -> Chart {
    let base = Chart::new("c", "A <title>", "ms").about("about & more").x_axis(XAxis::Nines).log();
    Chart { marks: vec![1.0], series, ..base }
}

fn line(name: &str, values: [f64; 4]) -> Series {
    Series::line(name, values.into_iter().enumerate().map(|(i, y)| (i as f64, Some(y))).collect())
}

/// Where a label is written: the x and y attributes of the text element that it ends.
fn place(svg: &str, label: &str) -> (f64, f64) {
    let text = &svg[..svg.find(&format!(">{label}<")).unwrap_or_else(|| panic!("{label} in {svg}"))];
    let number = |name: &str| -> f64 {
        let at = text.rfind(&format!(" {name}=\"")).unwrap() + name.len() + 3;
        text[at..].split('"').next().unwrap().parse().unwrap()
    };
    (number("x"), number("y"))
}

#[test]
fn drawings_take_colours_and_labels_of_the_page() {
    let drawn =
        chart(vec![line("a", [1.0, 5.0, 7.0, 90.0]), line("b", [0.0, 2.0, 3.0, 4.0])]).draw().unwrap();
    for wanted in
        ["var(--line-0)", "var(--line-1)", "var(--grid)", "var(--muted)", ">99 %<", "A &lt;title&gt;"]
    {
        assert!(drawn.svg.contains(wanted), "{wanted} is missing in {}", drawn.svg);
    }
    let upper = drawn.svg.to_uppercase();
    assert!(!upper.contains("#01FE") && !upper.contains("#02FE") && !drawn.svg.contains('\u{e000}'));
    assert_eq!(drawn.rows[2], ["99.000", "7.00", "3.00"]);
}

#[test]
fn decades_are_labelled_from_the_bottom_up_and_from_left_to_right() {
    let svg = chart(vec![line("a", [0.02, 0.3, 40.0, 500.0])]).draw().unwrap().svg;
    let heights = ["0.01", "0.1", "1", "10", "100", "1k"].map(|label| place(&svg, label).1);
    assert!(heights.is_sorted_by(|a, b| a > b), "{heights:?}");

    let ranks = Series::line("a", vec![(1.0, Some(3.0)), (30.0, Some(2.0)), (200_000.0, Some(1.0))]);
    let svg = Chart::new("c", "t", "y").x_axis(XAxis::Log("rank".into())).with(ranks).draw().unwrap().svg;
    let places = ["1", "10", "100", "1k", "10k", "100k", "1M"].map(|label| place(&svg, label).0);
    // The outermost ones are moved into the picture.
    let steps: Vec<f64> = places[1..6].windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(steps.iter().all(|step| (step - steps[0]).abs() < 1.5) && places.is_sorted(), "{places:?}");
}

/// Small and odd steps: the drawing library alone writes 0.1, 0.2, 0.2, 0.3, 0.4 and 1.2k.
#[test]
fn no_two_labels_of_an_axis_are_equal() {
    for (max, wanted) in
        [(0.38, ["0.4", "0.32", "0.24", "0.16", "0.08"]), (1200.0, ["1,250", "1,000", "750", "500", "250"])]
    {
        let svg = Chart::new("c", "t", "y").with(line("a", [0.0, max, max, max])).draw().unwrap().svg;
        let heights = wanted.map(|label| place(&svg, label).1);
        assert!(heights.is_sorted_by(|a, b| a < b), "{heights:?}");
        let bars = Bars {
            id: "b".into(),
            title: "t".into(),
            about: "a".into(),
            of: "device".into(),
            y_title: "ms".into(),
            categories: vec!["squid".into()],
            groups: vec![("mean".into(), vec![Some(max)]), ("least".into(), vec![Some(max / 1000.0)])],
        };
        let svg = bars.draw().unwrap().svg;
        wanted.iter().for_each(|label| assert!(svg.contains(&format!(">{label}<")), "{label}: {svg}"));
        let number = if max > 1.0 { ">1.2<" } else { ">0.38<" };
        assert!(svg.contains(number), "a bar has its number: {svg}");
    }
}

#[test]
fn marked_lines_show_what_was_measured() {
    let points = vec![(1.0, Some(2.0)), (2.0, Some(3.0)), (4.0, Some(3.5))];
    let drawn = Chart::new("c", "t", "y").with(Series::marked("a", points)).draw().unwrap();
    assert_eq!(drawn.svg.matches("<circle").count(), 3, "{}", drawn.svg);
    assert!(drawn.legend[0].dash.is_some() && drawn.svg.contains("<path"), "and a line: {}", drawn.svg);
}

#[test]
fn nothing_to_show_is_no_figure() {
    assert!(chart(vec![Series::line("a", vec![(0.0, None), (1.0, None)])]).draw().is_none());
    assert!(chart(vec![line("a", [0.0; 4])]).draw().is_none(), "log of zero");
    let infinite =
        Series::line("a", vec![(0.0, Some(f64::INFINITY)), (1.0, Some(f64::NAN)), (2.0, Some(1.0))]);
    assert!(chart(vec![infinite]).draw().is_none());
}

#[test]
fn points_and_lines_with_x_values_of_their_own_share_a_figure() {
    let drawn = Chart::new("c", "t", "ms")
        .x_axis(XAxis::Linear("replies/s".into()))
        .with(Series::points("windows", [(3.0, 5.0), (1.0, 2.0), (3.0, 6.0)]))
        .with(Series::line("knee", vec![(0.0, Some(1.0)), (4.0, Some(4.0))]))
        .draw()
        .unwrap();
    assert_eq!(drawn.svg.matches("<circle").count(), 3, "{}", drawn.svg);
    assert_eq!(drawn.columns, ["", "replies/s", "ms"]);
    assert_eq!(
        (drawn.rows.len(), &drawn.rows[2]),
        (5, &["windows", "3.00", "6.00"].map(String::from).to_vec())
    );
    let data = drawn.data.unwrap();
    assert_eq!((&data["series"][0]["shape"], &data["series"][1]["x"][1]), (&"points".into(), &4.into()));
}

#[test]
fn data_of_figures_cannot_leave_their_script_element() {
    let drawn = chart(vec![line("</script><b>", [1.0, 2.0, 3.0, 4.0])]).draw().unwrap();
    let data = drawn.data.unwrap();
    let text = data::script_data([("c", &data)].into_iter());
    assert!(!text.contains('<'), "{text}");
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(all["charts"]["c"]["series"][0]["name"], "</script><b>");
    for (value, text) in
        [(0.0, "0"), (1234567.0, "1234567"), (0.000123456, "0.00012346"), (12.3456789, "12.346")]
    {
        assert_eq!(data::short(value).to_string(), text);
    }
}

#[test]
fn lists_of_x_values_stand_once_in_a_page() {
    let data =
        |name: &str| chart(vec![line(name, [1.0; 4]), line("b", [2.0; 4])]).draw().unwrap().data.unwrap();
    let (first, second) = (data("a"), data("c"));
    let other =
        Chart::new("d", "t", "y").with(Series::points("p", [(7.0, 1.0)])).draw().unwrap().data.unwrap();
    let text = data::script_data([("one", &first), ("two", &second), ("three", &other)].into_iter());
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(all["x"], serde_json::json!([[0, 1, 2, 3], [7]]));
    let x = |chart: &str, series: usize| all["charts"][chart]["series"][series]["x"].clone();
    assert_eq!(
        [x("one", 0), x("one", 1), x("two", 1), x("three", 0)],
        [0, 0, 0, 1].map(serde_json::Value::from)
    );
}

/// The script puts its overlay where the static drawing has its plot.
#[test]
fn the_script_knows_where_the_plot_is() {
    let drawn = Chart::new("c", "t", "y").with(line("a", [0.0, 10.0, 25.0, 12.0])).draw().unwrap();
    let data = drawn.data.unwrap();
    assert_eq!((&data["xr"], &data["yr"]), (&serde_json::json!([0, 3]), &serde_json::json!([0, 30])));
    let frame: Vec<f64> = data["frame"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    let [left, top, right, bottom] = frame[..] else { panic!("{frame:?}") };
    // The line starts at the lower left corner and reaches 25 of 30 at two thirds of the width.
    let start = format!("d=\"M{left} {bottom}");
    assert!(drawn.svg.contains(&start), "{start} in {}", drawn.svg);
    assert!(place(&drawn.svg, "30").1 - top < 6.0 && place(&drawn.svg, "3").0 == right, "{}", drawn.svg);
    assert_eq!(place(&drawn.svg, "0").1, bottom + 4.0, "{}", drawn.svg);
}

#[test]
fn labels_stay_within_the_picture() {
    let values = (0..4).map(|i| (f64::from(i), Some(1.0))).collect();
    let svg =
        Chart::new("c", "t", "y").x_axis(XAxis::Nines).with(Series::line("a", values)).draw().unwrap().svg;
    let label = &svg[..svg.find(">99.9 %<").unwrap()];
    assert!(label[label.rfind("<text").unwrap()..].contains("x=\"900\" text-anchor=\"end\""), "{svg}");
}

#[test]
fn heat_maps_fill_the_frame() {
    let map = |columns: Vec<Vec<u64>>| HeatMap {
        id: "h".into(),
        title: "t".into(),
        about: "a".into(),
        x_axis: XAxis::Seconds,
        y_title: "ms".into(),
        starts: (0..columns.len()).map(|i| i as f64 * 10.0).collect(),
        width: 10.0,
        edges: vec![0.1, 1.0, 10.0, 100.0, 1000.0],
        columns,
        marks: vec![10.0],
    };
    let drawn = map(vec![vec![0, 1, 99, 0], vec![0, 50, 50, 0]]).draw().unwrap();
    // Four cells of three shades; bins without any value are not shown.
    assert_eq!(drawn.svg.matches("fill=\"var(--line-0)\"").count(), 2, "{}", drawn.svg);
    assert_eq!(drawn.svg.matches('z').count() - drawn.svg.matches("size").count(), 4);
    let (_, bottom) = place(&drawn.svg, "1");
    let (_, top) = place(&drawn.svg, "100");
    let path = &drawn.svg[..drawn.svg.find("fill=\"var(--line-0)\"").unwrap()];
    let path = &path[path.rfind("d=\"M").unwrap()..];
    let low: f64 = path.split([' ', 'H']).nth(1).unwrap().parse().unwrap();
    assert!((low - bottom).abs() < 8.0 && low > top, "{low} is between {bottom} and {top}");
    assert_eq!(drawn.columns, ["s", "% to 10.0 ms", "% to 100 ms"]);
    assert_eq!(drawn.rows[0], ["0.00", "1.00", "99.00"]);
    assert!(map(vec![vec![1, 0, 0, 0], vec![0; 4]]).draw().is_none(), "one column is no map");
}

#[test]
fn bars_have_a_table_too() {
    let bars = Bars {
        id: "b".into(),
        title: "t".into(),
        about: "a".into(),
        of: "device".into(),
        y_title: "%".into(),
        categories: vec!["squid".into(), "nginx".into()],
        groups: vec![("DHR".into(), vec![Some(50.0), None]), ("BHR".into(), vec![Some(40.0), Some(30.0)])],
    };
    let drawn = bars.clone().draw().unwrap();
    assert_eq!(drawn.rows, [["squid", "50.0", "40.0"], ["nginx", "–", "30.0"]]);
    assert!(drawn.svg.contains("var(--line-1)") && drawn.svg.contains(">nginx<"));
    assert!(Bars { groups: vec![("DHR".into(), vec![None, Some(0.0)])], ..bars }.draw().is_none());
}
