use super::*;

#[test]
fn a_module_counts_only_where_its_file_is() {
    let folder = tempfile::tempdir().unwrap();
    let said = format!(
        "nginx version: nginx/1.22.1\nconfigure arguments: --modules-path={} --with-stream=dynamic\n",
        folder.path().display()
    );
    assert_eq!(NginxStream::of(&said, true), NginxStream::Absent);
    let module = folder.path().join(MODULE);
    std::fs::write(&module, "").unwrap();
    assert_eq!(NginxStream::of(&said, true), NginxStream::Module(module));
    assert_eq!(NginxStream::of(&said, false), NginxStream::Absent);
}

#[test]
fn a_module_that_is_built_in_needs_no_file() {
    let said =
        "configure arguments: --modules-path=/nowhere --with-stream --with-stream_ssl_module";
    assert_eq!(NginxStream::of(said, false), NginxStream::BuiltIn);
    let without = "configure arguments: --with-stream_ssl_module --with-http_ssl_module";
    assert_eq!(NginxStream::of(without, true), NginxStream::Absent);
}
