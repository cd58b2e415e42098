//! The looks of a subject in every chart: a colour for its program, a dash and a marker for where it encrypts.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// The class that sets its colour.
    pub colour: &'static str,
    /// The class that sets its dash and weight.
    pub stroke: &'static str,
    pub marker: Marker,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// In the server's process.
    Circle,
    /// In the kernel, from buffers.
    Square,
    /// In the kernel, from the page cache or the backend's socket.
    Triangle,
    /// Not encrypted.
    Diamond,
    /// A line that needs none.
    None,
}

impl Style {
    /// The look of a subject by its name, `kettle auto` or `hitch`.
    pub fn of(subject: &str) -> Self {
        let (program, rest) = subject.split_once(' ').unwrap_or((subject, ""));
        let colour = match program {
            "kettle" => "c-kettle",
            "nginx" => "c-nginx",
            "haproxy" => "c-haproxy",
            "hitch" => "c-hitch",
            "stunnel" => "c-stunnel",
            _ => "c-other",
        };
        let path = ["terminator ", "proxy "].iter().find_map(|role| rest.strip_prefix(role));
        let (stroke, marker) = match path.unwrap_or(rest) {
            "auto" => ("p-auto", Marker::Circle),
            "kernel-write" => ("p-write", Marker::Square),
            "kernel-sendfile" | "kernel-splice" => ("p-sendfile", Marker::Triangle),
            "plain" => ("p-plain", Marker::Diamond),
            _ => ("p-user", Marker::Circle),
        };
        Self { colour, stroke, marker }
    }

    /// The style of what is neither good nor bad: what was asked for.
    pub const ASKED: Style = Style { colour: "c-neutral", stroke: "p-write", marker: Marker::None };

    pub const FAILED: Style = Style { colour: "c-bad", stroke: "p-user", marker: Marker::None };

    pub fn unmarked(self) -> Self {
        Self { marker: Marker::None, ..self }
    }
}

/// The program of a subject: the first word of its name.
pub fn program(subject: &str) -> &str {
    subject.split(' ').next().unwrap_or(subject)
}

/// Returns the part of a subject's name has after the program, or the program if that is all.
pub fn way(subject: &str) -> &str {
    subject.split_once(' ').map_or(subject, |(_, rest)| rest)
}
