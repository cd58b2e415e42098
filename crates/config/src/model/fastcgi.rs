//! `[site.route.fastcgi]`: programs that an application runs for a route.

use crate::setting::{FieldTemplate, flag, optional, parameters, rules, settings, text, texts};

settings! {
    /// The programs of a route whose backend speaks FastCGI. With `root` of the route they are files below it: each is
    /// looked for and opened as any other file is, before the application is asked to run it.
    /// Without `root` and `script` the application itself knows what to do with a path.
    pub struct FastCgi {
        /// With `root` of the route: the ends of the names of files that are programs. They are run and never sent, whatever the
        /// application says. One with these letters in another case (`.PHP`), a copy (`.php~`, `.php.bak`) and a
        /// compressed one (`.php.gz`) is neither: it gets 404. No route of any site sends such a file, wherever it lies;
        /// [what counts](fastcgi.md#what-is-never-sent) is said there. All other files are sent.
        pub extensions: Vec<String> = texts(&rules::PROGRAM_ENDING, &[".php"]),
        /// With `root` of the route: the program that answers for what is not found, and for folders without an index file.
        /// A file of its name answers for the folder that it is in, before `index` of the route.
        pub index: Option<String> = optional(text(&rules::PROGRAM_FILE, "/index.php"), "404"),
        /// Asks the application for a program that is not there, too, as nginx does: PHP-FPM answers `File not found.` It is asked
        /// where the folder is there, so that no file on the way to it is taken for the program.
        pub ask_missing: bool = flag(false),
        /// The folder `root` of the route, as the application sees it.
        pub root: Option<String> = optional(text(&rules::APPLICATION_PATH, "/app"), "`root` of the route"),
        /// Takes paths that go on behind a program: `/index.php/a` is for `/index.php`, which is told `/a` as `PATH_INFO`. The
        /// first program from the left that is there decides. Without `root` of the route, `SCRIPT_NAME` is its `prefix`, and
        /// `PATH_INFO` the rest of the path.
        pub path_info: bool = flag(false),
        /// The program that answers whatever the path is, as the application sees it. Beside `root` of the route it answers for what
        /// is not found, and for folders without an index file.
        pub script: Option<String> = optional(
            text(&rules::APPLICATION_PATH, "/usr/lib/git-core/git-http-backend"), "none"),
        /// Parameters that programs are told besides, or in place of what they are told otherwise; `[]` takes it away. Words
        /// are those of `request_headers`, and `{1}` and `{name}` groups of the route's `regex`. A parameter whose words are
        /// empty is sent as an empty text. A name that begins with `HTTP_` takes the place of the client's header of that name.
        pub params: Vec<(String, Vec<FieldTemplate>)> = parameters(),
    }
}
