use super::*;

#[test]
fn schemes_that_stand_for_a_whole_connection_are_known() {
    for value in
        ["NTLM TlRMTVNT", "negotiate", "Kerberos x", "Basic realm=\"a\", NTLM", "Basic x,Negotiate"]
    {
        assert!(binds_connection(value.as_bytes()), "{value}");
    }
    for value in ["", "Basic TlRMTQ==", "Bearer ntlm", "Digest a=b, c=negotiate", "NTLMv9"] {
        assert!(!binds_connection(value.as_bytes()), "{value}");
    }
}
