use super::*;

fn machine() -> Machine {
    Machine { kernel: "6.18".to_owned(), cpus: 2, ..Machine::default() }
}

fn request(names: &[&str]) -> Request {
    Request {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        options: Options::default(),
        results: PathBuf::new(),
        resumes: false,
        kettle: "0.1.0".to_owned(),
        commit: None,
        command: Vec::new(),
        folder: None,
    }
}

fn earlier() -> Results {
    let mut results = Results::default();
    results.keep(Line::Run(this_run(&request(&[]), machine()))).unwrap();
    results
}

fn names(request: &Request, earlier: &Results) -> Vec<&'static str> {
    scenarios(request, earlier).unwrap().iter().map(|scenario| scenario.name).collect()
}

#[test]
fn scenarios_are_made_once_each_in_their_own_order() {
    let asked = request(&["ciphers", "nginx-1g", "ciphers"]);
    assert_eq!(names(&asked, &Results::default()), ["nginx-1g", "ciphers"]);
    assert_eq!(names(&request(&["all"]), &Results::default()).len(), SCENARIOS.len());
}

#[test]
fn an_unknown_name_is_answered_with_the_known_ones() {
    let error = scenarios(&request(&["nginx1g"]), &Results::default()).err().unwrap().to_string();
    assert!(error.contains("nginx-1g"), "{error}");
}

#[test]
fn going_on_needs_no_names() {
    let mut results = earlier();
    let line = ScenarioLine { name: "ciphers".to_owned(), rules: Vec::new() };
    results.keep(Line::Scenario(line)).unwrap();
    assert_eq!(names(&request(&[]), &results), ["ciphers"]);
}

#[test]
fn the_same_machine_and_kettle_may_go_on() {
    assert_eq!(may_go_on(&earlier(), &machine(), &request(&[])), Ok(()));
    let busier = Machine { load_average: 9.0, ..machine() };
    assert_eq!(may_go_on(&earlier(), &busier, &request(&[])), Ok(()));
}

#[test]
fn another_machine_or_kettle_may_not_go_on() {
    let kernel = Machine { kernel: "6.19".to_owned(), ..machine() };
    let refused = may_go_on(&earlier(), &kernel, &request(&[])).unwrap_err();
    assert!(refused.contains("6.19") && refused.contains("kettle bench diff"), "{refused}");
    let cpus = Machine { cpus: 4, ..machine() };
    assert!(may_go_on(&earlier(), &cpus, &request(&[])).is_err());
    let newer = Request { kettle: "0.2.0".to_owned(), ..request(&[]) };
    assert!(may_go_on(&earlier(), &machine(), &newer).is_err());
    let other = Request { commit: Some("abc".to_owned()), ..request(&[]) };
    assert!(may_go_on(&earlier(), &machine(), &other).is_err());
}
