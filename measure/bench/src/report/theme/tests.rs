use super::*;

#[test]
fn every_colour_used_has_a_value_in_both_themes() {
    for sheet in [PAGE, CHART] {
        for part in sheet.split("var(--").skip(1) {
            let (name, _) = part.split_once(')').unwrap();
            assert!(COLOURS.iter().any(|(known, ..)| *known == name), "no colour --{name}");
        }
    }
}

#[test]
fn every_colour_is_used() {
    for (name, ..) in COLOURS {
        let used = format!("var(--{name})");
        assert!(PAGE.contains(&used) || CHART.contains(&used), "nobody uses --{name}");
    }
}

#[test]
fn text_and_lines_stand_out_from_the_paper() {
    for (name, light, dark) in COLOURS {
        let least = match *name {
            "paper" | "panel" | "warn-panel" | "rule" | "grid" => continue,
            "neutral" | "other" => 3.0,
            _ => 4.5,
        };
        let (_, paper, night) = COLOURS[0];
        assert!(contrast(light, paper) >= least, "--{name} on light: {}", contrast(light, paper));
        assert!(contrast(dark, night) >= least, "--{name} on dark: {}", contrast(dark, night));
    }
}

#[test]
fn a_chart_that_stands_alone_has_no_variables() {
    let mut chart = Markup::new();
    chart_style(&mut chart);
    let style = chart.into_string();
    assert!(!style.contains("var("));
    assert!(style.contains("prefers-color-scheme"));
}

/// WCAG's ratio of relative luminances.
fn contrast(a: &str, b: &str) -> f64 {
    let a = luminance(a);
    let b = luminance(b);
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn luminance(colour: &str) -> f64 {
    let channel = |at: usize| {
        let byte = u8::from_str_radix(&colour[at..at + 2], 16).unwrap();
        let value = f64::from(byte) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
}
