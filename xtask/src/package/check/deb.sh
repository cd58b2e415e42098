# The Debian package on a bare system: install, serve as the unit does, upgrade, remove, purge. $1 is the system's root.
root=$1
say() { echo "deb: $*"; }
fail() { echo "deb: $*" >&2; exit 1; }
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
ip link set lo up
inside() { chroot "$root" env DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
files() { inside find / -xdev \( -path /proc -o -path /dev -o -path /tmp -o -path /run -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/log \
    -o -path /var/cache \) -prune -o -print | sort; }
files >"$root/tmp/before"

say install
inside sh -c 'apt-get -qq --no-install-recommends install -y /tmp/kettle_*.deb /tmp/kettle-bench_*.deb' >"$root/tmp/log" 2>&1 ||
    { cat "$root/tmp/log"; fail "apt-get install failed"; }
grep -q 'enable --now kettle' "$root/tmp/log" || fail "the postinst says nothing"
inside dpkg --verify kettle kettle-bench
inside kettle --version | grep -q '^rustls'
inside kettle bench --help >/dev/null

say "serve: the unit's command, as its user, with one edited file"
mkdir -p "$root/srv/www"
echo 'a page of our own' >"$root/srv/www/index.html"
sed -i 's|^root = .*|root = "/srv/www"|; s|"localhost"|"localhost", "example.test"|' "$root/etc/kettle/kettle.toml"
inside kettle check /etc/kettle/kettle.toml
unit() { sed -n "s/^$1=//p" "$root/usr/lib/systemd/system/kettle.service"; }
serve() {
    inside setpriv --reuid kettle --regid kettle --init-groups --inh-caps +net_bind_service --ambient-caps +net_bind_service \
        $(unit ExecStart) >"$root/tmp/serving" 2>&1 &
    server=$!
}
reload() { inside setpriv --reuid kettle --regid kettle --init-groups $(unit ExecReload); }
stop() {
    inside kettle ctl stop >/dev/null
    wait $server || { cat "$root/tmp/serving"; fail "the server ended badly"; }
}
serve
fetch() { inside curl --silent --insecure --retry 20 --retry-connrefused --retry-delay 1 --max-time 20 "$@"; }
[ "$(fetch https://localhost/)" = 'a page of our own' ] || { cat "$root/tmp/serving"; fail "no page"; }
reload
fetch http://127.0.0.1:9443/metrics | grep -q '^kettle_'
inside kettle ctl status >/dev/null
rotated=$(sed -n '/postrotate/,/endscript/{//!p}' "$root/etc/logrotate.d/kettle")
mv "$root/var/log/kettle/access.log" "$root/var/log/kettle/access.log.1"
inside setpriv --reuid kettle --regid kettle --init-groups sh -ec "$rotated"
[ -f "$root/var/log/kettle/access.log" ] || fail "a rotated log is not opened anew"
stop

say "serve: what was made of an nginx.conf, as docs/migrating.md has it"
mv "$root/etc/kettle/kettle.toml" "$root/tmp/packaged.toml"
cat >"$root/tmp/nginx.conf" <<'END'
user www-data;
events { }
http {
    access_log /var/log/nginx/access.log;
    server {
        listen 80;
        server_name localhost;
        root /srv/www;
        location /.well-known/acme-challenge/ { root /srv/acme; }
    }
}
END
mkdir "$root/srv/acme"
# As nginx's package has it.
inside install -d -o www-data -g adm /var/log/nginx
inside kettle import nginx /tmp/nginx.conf >"$root/etc/kettle/kettle.toml"
sed -i '/^user = /d; s|"/var/log/nginx/|"/var/log/kettle/|' "$root/etc/kettle/kettle.toml"
inside kettle check /etc/kettle/kettle.toml >/dev/null
serve
[ "$(fetch --location http://localhost/)" = 'a page of our own' ] || { cat "$root/tmp/serving"; fail "no page"; }
# certbot makes this folder when it needs it.
mkdir -p "$root/srv/acme/.well-known/acme-challenge"
echo proof >"$root/srv/acme/.well-known/acme-challenge/token"
[ "$(fetch --location http://localhost/.well-known/acme-challenge/token)" = proof ] || fail "no proof for authorities"
reload
stop
if [ -x "$root/tmp/pebble" ]; then
    say "serve: a site that is trusted, by eight lines, and renewed"
    certify() {
        name=$1; shift
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$name" \
            -keyout "$root/tmp/$name.key" -out "$root/tmp/$name.pem" "$@" 2>"$root/tmp/log" || { cat "$root/tmp/log"; fail "no certificate"; }
    }
    certify authority
    certify 127.0.0.1 -CA "$root/tmp/authority.pem" -CAkey "$root/tmp/authority.key" \
        -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=CA:FALSE
    cat >"$root/tmp/pebble.json" <<'END'
{"pebble": {"listenAddress": "127.0.0.1:14000", "managementListenAddress": "127.0.0.1:15000",
 "certificate": "/tmp/127.0.0.1.pem", "privateKey": "/tmp/127.0.0.1.key", "tlsPort": 443, "httpPort": 80, "keyAlgorithm": "ecdsa",
 "retryAfter": {"authz": 1, "order": 1}, "profiles": {"default": {"description": "short", "validityPeriod": 36}}}}
END
    cp "$root/tmp/authority.pem" "$root/etc/kettle/pebble.pem"
    cat >"$root/etc/kettle/kettle.toml" <<'END'
acme = [{ name = "pebble", directory = "https://127.0.0.1:14000/dir", roots = "/etc/kettle/pebble.pem", accept_terms = true }]
[[listener]]
address = "0.0.0.0:443"
[[site]]
names = ["example.test"]
acme = {}
[[site.route]]
root = "/srv/www"
END
    inside /tmp/pebble-challtestsrv -dnsserver 127.0.0.1:15053 -management 127.0.0.1:15001 -defaultIPv4 127.0.0.1 -defaultIPv6 '' \
        -doh '' -http01 '' -https01 '' -tlsalpn01 '' >"$root/tmp/names" 2>&1 &
    names=$!
    inside env PEBBLE_VA_NOSLEEP=1 /tmp/pebble -strict -dnsserver 127.0.0.1:15053 -config /tmp/pebble.json >"$root/tmp/pebble.log" 2>&1 &
    authority=$!
    fetch --cacert /tmp/authority.pem --output /tmp/root.pem https://127.0.0.1:15000/roots/0
    inside kettle check /etc/kettle/kettle.toml
    serve
    within() {
        deadline=$(($(date +%s) + $1)); shift
        until "$@"; do [ "$(date +%s)" -lt $deadline ] || { cat "$root/tmp/serving"; return 1; }; done
    }
    trusted() { [ "$(inside curl --silent --max-time 20 --cacert /tmp/root.pem --resolve example.test:443:127.0.0.1 https://example.test/)" = 'a page of our own' ]; }
    current() { readlink "$root/var/lib/kettle/acme/certificates/example.test/current"; }
    within 60 trusted || fail "no certificate comes"
    first=$(current)
    renewed() { trusted || fail "a handshake failed before the renewal"; [ "$(current)" != "$first" ]; }
    within 60 renewed || fail "no renewal comes"
    trusted || fail "the renewed certificate is not trusted"
    grep 'certificate of example.test is there' "$root/tmp/serving"
    # Outside systemd the eight lines have no control socket.
    kill "$(tr -d ' ' <"$root/proc/$server/task/$server/children")"
    wait $server || { cat "$root/tmp/serving"; fail "the server ended badly"; }
    kill $authority $names
    rm "$root/etc/kettle/pebble.pem"
fi

mv "$root/tmp/packaged.toml" "$root/etc/kettle/kettle.toml"

say "serve: the longer example, adapted"
inside sh -c 'sed "s|/srv/example.org|/srv/www|; s|^user = .*||; s|^access = .*|access = \"off\"|" \
    /usr/share/doc/kettle/examples/kettle.example.toml >/tmp/example.toml
    kettle check /tmp/example.toml' >"$root/tmp/log" 2>&1 && fail "the example's certificate is there"
grep -q letsencrypt "$root/tmp/log" || { cat "$root/tmp/log"; fail "the check of the example finds something else"; }

say "upgrade keeps the edited file"
mkdir "$root/tmp/next"
inside dpkg-deb -R "$(cd "$root" && ls tmp/kettle_*.deb | sed 's|^|/|')" /tmp/next
sed -i 's/^Version: .*/Version: 9.9.9-1/' "$root/tmp/next/DEBIAN/control"
echo '# A new default.' >>"$root/tmp/next/etc/kettle/kettle.toml"
inside dpkg-deb -Znone --build /tmp/next /tmp/next.deb >/dev/null
inside dpkg --force-confdef --force-depends -i /tmp/next.deb >"$root/tmp/log" 2>&1 || { cat "$root/tmp/log"; fail "upgrade failed"; }
grep -q example.test "$root/etc/kettle/kettle.toml" || fail "the edited file is gone"
[ -f "$root/etc/kettle/kettle.toml.dpkg-dist" ] || fail "the new default is not beside it"

say "remove keeps configuration and state, purge does not"
inside dpkg -r kettle-bench kettle >/dev/null 2>&1
[ ! -e "$root/usr/bin/kettle" ] || fail "the program is still there"
[ -f "$root/etc/kettle/kettle.toml" ] && [ -d "$root/var/lib/kettle" ] || fail "remove took too much"
inside dpkg -P kettle kettle-bench >/dev/null 2>&1
files >"$root/tmp/after"
rm -rf "$root/srv/www" "$root/srv/acme"
left=$(files | diff "$root/tmp/before" - || true)
# The account stays (packaging/deb/postrm), and with it the copies that the account files have.
left=$(echo "$left" | grep '^[<>]' | grep -v -e '/etc/\(passwd\|group\|shadow\|gshadow\)-$' -e '/etc/\.pwd\.lock$' || true)
[ -z "$left" ] || fail "purge leaves $left"
for folder in /var/log/kettle /var/lib/kettle /var/cache/kettle /run/kettle; do
    [ ! -e "$root$folder" ] || fail "purge leaves $folder"
done
