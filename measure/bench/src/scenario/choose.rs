//! Which subjects a comparison is made of: those it usually has, as far as the user did not ask for others.

use super::error::BenchError;
use super::options::Options;
use crate::peers::subject::{Program, Role, Subject, SubjectPath};
use crate::results::distinct;
use crate::word::Word;

/// Those of `usual`, or what was asked for of all there are. A choice the user left open keeps the values it has in `usual`.
pub fn subjects(usual: &[Subject], options: &Options) -> Result<Vec<Subject>, BenchError> {
    let is_wanted = |subject: &Subject| {
        is_in(&options.servers, usual, subject, |it| it.program)
            && is_in(&options.paths, usual, subject, |it| it.path)
            && is_in(&options.roles, usual, subject, |it| it.role)
    };
    let asked = options.servers.is_some() || options.paths.is_some() || options.roles.is_some();
    let chosen: Vec<Subject> = match asked {
        true => usual
            .iter()
            .copied()
            // The usual ones keep their order; the rest of those asked for follows.
            .chain(all().filter(|it| !usual.contains(it)))
            .filter(|it| is_wanted(it))
            .collect(),
        false => usual.to_vec(),
    };
    let chosen = by_own_nginx(chosen, options);
    if chosen.is_empty() {
        let usual: Vec<_> = usual.iter().map(Subject::to_string).collect();
        return Err(BenchError::Refused(format!(
            "no server does what --servers, --paths and --roles ask for together; usual here: {}",
            usual.join(", ")
        )));
    }
    Ok(chosen)
}

/// An nginx.conf of the operator's own has one path, and kettle with it the one that it chooses, unless another is asked for.
fn by_own_nginx(chosen: Vec<Subject>, options: &Options) -> Vec<Subject> {
    let Some(own) = &options.own_nginx else { return chosen };
    distinct(chosen.into_iter().map(|subject| match subject.program {
        Program::Nginx => Subject { path: own.path, ..subject },
        Program::Kettle if options.paths.is_none() => {
            Subject { path: SubjectPath::Auto, ..subject }
        }
        _ => subject,
    }))
}

fn is_in<T: PartialEq>(
    asked: &Option<Vec<T>>,
    usual: &[Subject],
    subject: &Subject,
    of: impl Fn(&Subject) -> T,
) -> bool {
    match asked {
        Some(asked) => asked.contains(&of(subject)),
        None => usual.iter().any(|it| of(it) == of(subject)),
    }
}

pub const fn files(program: Program, path: SubjectPath) -> Subject {
    Subject { program, path, role: Role::Files }
}

/// A subject that ends TLS before a backend.
pub const fn terminator(program: Program) -> Subject {
    Subject { program, path: SubjectPath::User, role: Role::Terminator }
}

/// A subject that passes a backend's responses on.
pub const fn proxy(program: Program, path: SubjectPath) -> Subject {
    Subject { program, path, role: Role::Proxy }
}

/// A subject that keeps a backend's responses.
pub const fn cache(program: Program, path: SubjectPath) -> Subject {
    Subject { program, path, role: Role::Cache }
}

/// Everything a server could do at all. The things that one cannot do here, its own part of [`crate::peers`] knows.
fn all() -> impl Iterator<Item = Subject> {
    let of_program = |program: Program| {
        let of_path = move |path: SubjectPath| {
            let roles = Role::ALL.iter().map(|(role, _)| *role);
            roles.map(move |role| Subject { program, path, role })
        };
        SubjectPath::ALL.iter().flat_map(move |(path, _)| of_path(*path))
    };
    Program::ALL.iter().flat_map(move |(program, _)| of_program(*program)).filter(is_possible)
}

fn is_possible(subject: &Subject) -> bool {
    let Subject { program, path, role } = subject;
    match role {
        Role::Proxy => match program {
            Program::Kettle => {
                matches!(path, SubjectPath::User | SubjectPath::KernelWrite | SubjectPath::Auto)
            }
            Program::Nginx | Program::Haproxy => *path == SubjectPath::User,
            Program::Hitch | Program::Stunnel => false,
        },
        Role::Terminator => match program {
            Program::Kettle => {
                matches!(path, SubjectPath::User | SubjectPath::KernelSplice | SubjectPath::Auto)
            }
            _ => *path == SubjectPath::User,
        },
        // Behind hitch it is Varnish that keeps.
        Role::Cache if *program == Program::Hitch => *path == SubjectPath::User,
        Role::Cache if !matches!(program, Program::Kettle | Program::Nginx) => false,
        Role::Files | Role::Cache => match program {
            Program::Kettle if *path == SubjectPath::Plain => *role == Role::Files,
            Program::Kettle => *path != SubjectPath::KernelSplice,
            Program::Nginx => !matches!(path, SubjectPath::Auto | SubjectPath::KernelSplice),
            Program::Haproxy => matches!(path, SubjectPath::User | SubjectPath::Plain),
            Program::Hitch | Program::Stunnel => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::options::OwnNginx;

    const USUAL: &[Subject] = &[
        files(Program::Nginx, SubjectPath::User),
        files(Program::Nginx, SubjectPath::KernelSendfile),
        files(Program::Kettle, SubjectPath::User),
        files(Program::Kettle, SubjectPath::KernelSendfile),
        files(Program::Kettle, SubjectPath::Auto),
    ];

    fn names(options: &Options) -> Vec<String> {
        subjects(USUAL, options).unwrap().iter().map(Subject::to_string).collect()
    }

    #[test]
    fn without_a_wish_the_usual_ones_are_taken() {
        assert_eq!(subjects(USUAL, &Options::default()).unwrap(), USUAL);
    }

    #[test]
    fn a_server_alone_is_taken_with_its_usual_paths() {
        let options = Options { servers: Some(vec![Program::Kettle]), ..Options::default() };
        assert_eq!(names(&options), ["kettle user", "kettle kernel-sendfile", "kettle auto"]);
    }

    #[test]
    fn what_is_not_usual_can_be_asked_for() {
        let options = Options { paths: Some(vec![SubjectPath::Plain]), ..Options::default() };
        assert_eq!(names(&options), ["kettle plain", "nginx plain"]);
        let options = Options {
            servers: Some(vec![Program::Haproxy, Program::Kettle]),
            paths: Some(vec![SubjectPath::User]),
            ..Options::default()
        };
        assert_eq!(names(&options), ["kettle user", "haproxy user"]);
        let options = Options {
            servers: Some(vec![Program::Hitch]),
            roles: Some(vec![Role::Terminator]),
            ..Options::default()
        };
        assert_eq!(names(&options), ["hitch"]);
        let options = Options {
            servers: Some(vec![Program::Kettle]),
            paths: Some(vec![
                SubjectPath::User,
                SubjectPath::KernelSplice,
                SubjectPath::KernelSendfile,
            ]),
            roles: Some(vec![Role::Terminator]),
            ..Options::default()
        };
        assert_eq!(names(&options), ["kettle terminator user", "kettle terminator kernel-splice"]);
    }

    #[test]
    fn an_nginx_conf_decides_the_paths_of_both() {
        let own = OwnNginx { file: "nginx.conf".into(), path: SubjectPath::KernelWrite };
        let mut options = Options { own_nginx: Some(own), ..Options::default() };
        assert_eq!(names(&options), ["nginx kernel-write", "kettle auto"]);
        options.paths = Some(vec![SubjectPath::User, SubjectPath::KernelSendfile]);
        let both = ["nginx kernel-write", "kettle user", "kettle kernel-sendfile"];
        assert_eq!(names(&options), both);
    }

    #[test]
    fn nothing_left_is_an_error_that_names_the_usual_ones() {
        let options = Options { servers: Some(vec![Program::Hitch]), ..Options::default() };
        let error = subjects(USUAL, &options).unwrap_err().to_string();
        assert!(error.contains("kettle auto"), "{error}");
    }
}
