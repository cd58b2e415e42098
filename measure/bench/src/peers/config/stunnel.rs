//! The words of stunnel.conf.

use kettle_loadgen::offer::ResumeBy;

use super::{ConfigInput, SESSIONS_MAX, Words, resume_by};

pub(super) fn words(input: &ConfigInput<'_>) -> Words {
    let sessions = match resume_by(input.setup) {
        ResumeBy::Nothing => "sessionResume = no".to_owned(),
        ResumeBy::SessionId => format!("sessionCacheSize = {SESSIONS_MAX}\noptions = NO_TICKET"),
        // Tickets need no memory of sessions.
        ResumeBy::Ticket | ResumeBy::EarlyData => "sessionCacheSize = 1".to_owned(),
    };
    vec![("SESSIONS", sessions)]
}
