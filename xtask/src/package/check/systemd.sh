# The Debian package under a real systemd, in the guest of package/systemd.rs: what the unit promises, its limits, an upgrade, a purge; and
# kettle in Debian's unit of hitch. Runs as root once the system is up; the package lies in /srv/check.
say() { echo "systemd: $*"; }
fail() {
    echo "systemd: $*"
    systemctl --no-pager --lines=0 status kettle hitch || true
    journalctl --no-pager --boot --unit kettle --unit hitch | tail -n 40
    exit 1
}
# Waits for what the words say, with a deadline.
within() {
    tries=$(($1 * 5))
    shift
    until "$@"; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || return 1
        sleep 0.2
    done
}
of() { systemctl show "$1" --property "$2" --value; }
fetch() { curl --silent --insecure --max-time 30 "$@"; }
page() { [ "$(fetch https://localhost/)" = 'a page of our own' ]; }
# A certificate of its own for every call, as root's alone.
renew() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$1" -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE \
        -keyout /etc/kettle/next.key -out /etc/kettle/next.pem 2>/dev/null
    chmod 600 /etc/kettle/next.key
    mv /etc/kettle/next.key /etc/kettle/site.key
    mv /etc/kettle/next.pem /etc/kettle/site.pem
}
shows() { fetch --verbose -o /dev/null "https://localhost:${2:-443}/" 2>&1 | grep -q "subject: CN=$1\$"; }

say "install: nothing starts, the unit is sound"
dpkg -i /srv/check/kettle_*.deb >/tmp/log 2>&1 || { cat /tmp/log; fail "dpkg failed"; }
[ "$(of kettle ActiveState) $(of kettle UnitFileState)" = 'inactive disabled' ] || fail "an installed kettle starts"
said=$(systemd-analyze verify --man=no kettle.service 2>&1) && [ -z "$said" ] || fail "systemd-analyze verify: $said"
said=$(systemd-analyze --no-pager --threshold=20 security kettle.service) || fail "is too exposed: $said"
say "$(echo "$said" | tail -n 1 | tr -cd ' -~')"
systemctl restart systemd-modules-load
lsmod | grep -q '^tls ' || fail "modules-load.d loads nothing"
rmmod tls

say "start: as packaged, with nothing edited"
systemctl enable --now kettle 2>/dev/null || fail "does not start"
lsmod | grep -q '^tls ' || fail "ExecStartPre loads nothing"
fetch https://localhost/ | grep -q 'kettle is serving' || fail "no page"
pid=$(of kettle MainPID)
# 0400 is CAP_NET_BIND_SERVICE; 2 is a filter of system calls.
id=$(id -u kettle)
for line in "Uid: $id $id $id $id" 'CapEff: 0000000000000400' 'CapBnd: 0000000000000400' 'NoNewPrivs: 1' 'Seccomp: 2'; do
    tr '\t' ' ' <"/proc/$pid/status" | grep -qx "$line" || fail "its process has not: $line"
done

say "serve: one edited file, HTTP/1.1 and HTTP/2, the kernel's path"
mkdir /srv/www
echo 'a page of our own' >/srv/www/index.html
head -c 4000000 /dev/urandom >/srv/www/large
renew first
chgrp kettle /etc/kettle/site.key
chmod 640 /etc/kettle/site.key
sed -i 's|^root = .*|root = "/srv/www"|
s|^self_signed = true|[[site.certificate]]\nchain = "/etc/kettle/site.pem"\nkey = "/etc/kettle/site.key"|' /etc/kettle/kettle.toml
systemctl restart kettle || fail "does not start with the edited file"
for version in 1.1 2; do
    said=$(fetch --http$version -o /tmp/page -w '%{http_version} %{http_code}' https://localhost/)
    [ "$said" = "$version 200" ] && grep -q 'of our own' /tmp/page || fail "HTTP/$version gets: $said"
done
counted() { sed -n 's/^TlsTxSw[[:space:]]*//p' /proc/net/tls_stat; }
before=$(counted)
fetch --http1.1 -o /tmp/large https://localhost/large
cmp /tmp/large /srv/www/large || fail "a large file arrives changed"
[ "$(counted)" -gt "$before" ] || fail "the kernel sends nothing: $(cat /proc/net/tls_stat)"

say "doctor: in the unit's sandbox as outside of it"
sed 's|^ExecStart=.*|ExecStart=/bin/sh -c "exec /usr/bin/kettle doctor --json >/var/lib/kettle/doctor.json"|
s|^Type=.*|Type=oneshot|; /^Restart/d; /^ExecReload/d; /^RuntimeDirectory/d' /usr/lib/systemd/system/kettle.service >/run/systemd/system/kettle-doctor.service
systemctl daemon-reload
systemctl start kettle-doctor || { journalctl --no-pager -u kettle-doctor; fail "the doctor finds no kernel TLS in the sandbox"; }
kettle doctor --json >/tmp/doctor.json || fail "the doctor finds no kernel TLS outside the sandbox"
states() { grep -e '"check":' -e '"state":' $1; }
states /tmp/doctor.json >/tmp/states
states /var/lib/kettle/doctor.json | diff /tmp/states - || fail "the doctor finds other things in the sandbox"

say "reload: a renewed certificate; one that its user may not read changes nothing"
shows first || fail "another certificate than it was given"
renew second
if systemctl reload kettle 2>/tmp/log; then fail "a reload without the key succeeds"; fi
journalctl --no-pager --unit kettle | grep -q '/etc/kettle/site.key' || fail "a refused reload does not name the key"
page && shows first || fail "a refused reload changes something"
chgrp kettle /etc/kettle/site.key
chmod 640 /etc/kettle/site.key
systemctl reload kettle || fail "a reload with the key fails"
shows second || fail "a reload keeps the old certificate"

say "cache: a backend's response is kept where the unit lets kettle write"
cat >>/etc/kettle/kettle.toml <<'END'
[[site.route]]
prefix = "/metrics"
backend = "itself"
[site.route.cache]
store = "pages"
default = "1h"
[[cache]]
name = "pages"
directory = "/var/cache/kettle"
size = "64 MiB"
[[backend]]
name = "itself"
[[backend.server]]
address = "127.0.0.1:9443"
END
systemctl restart kettle || fail "does not start with a cache"
is_kept() { fetch -o /tmp/kept -D - https://localhost/metrics | grep -qi '^cache-status: kettle; hit'; }
within 20 is_kept || fail "nothing is kept: $(fetch --head https://localhost/metrics)"
grep -q '^kettle_' /tmp/kept && [ -n "$(ls -A /var/cache/kettle)" ] || fail "what is kept is not there"

say "log: written, rotated by logrotate, opened anew"
log=/var/log/kettle/access.log
within 10 grep -q /large $log || fail "nothing of it in the access log"
logrotate --force /etc/logrotate.d/kettle || fail "logrotate fails"
[ -s $log.1 ] || fail "logrotate moved nothing"
fetch -o /dev/null https://localhost/after-rotation
within 10 grep -q after-rotation $log || fail "nothing in the new access log"

say "killed: systemd starts it again"
pid=$(of kettle MainPID)
systemctl kill --kill-whom=main --signal=KILL kettle
is_another() { new=$(of kettle MainPID); [ "$new" != 0 ] && [ "$new" != "$pid" ] && [ "$(of kettle ActiveState)" = active ]; }
within 30 is_another || fail "killed, and not started again"
page || fail "no page after a kill"

say "stop: with a download under way that takes longer"
# More than lies in sockets, so that the server has to wait for its end.
truncate -s 200M /srv/www/slow
fetch --max-time 120 --limit-rate 10k -o /tmp/part https://localhost/slow &
within 20 [ -s /tmp/part ] || fail "no download"
systemctl stop kettle
# With a kill at TimeoutStopSec it would be `timeout`.
[ "$(of kettle Result)" = success ] || fail "stops badly: $(of kettle Result)"
# It would read on for minutes what lies in its socket.
kill $! 2>/dev/null || true
wait || true

say "mistakes: a start says them, and where"
cp /etc/kettle/kettle.toml /tmp/good.toml
echo 'nonsense = true' >>/etc/kettle/kettle.toml
if systemctl start kettle 2>/tmp/log; then fail "starts with a mistake"; fi
journalctl --no-pager --unit kettle | grep -q 'nonsense' || fail "a mistake is not named"
systemctl stop kettle
systemctl reset-failed kettle
cp /tmp/good.toml /etc/kettle/kettle.toml

say "keys that stay root's: LoadCredential, and a restart for a renewed one"
renew third
mkdir -p /etc/systemd/system/kettle.service.d
cat >/etc/systemd/system/kettle.service.d/keys.conf <<'END'
[Service]
LoadCredential=site.pem:/etc/kettle/site.pem
LoadCredential=site.key:/etc/kettle/site.key
END
sed -i 's|"/etc/kettle/site|"/run/credentials/kettle.service/site|' /etc/kettle/kettle.toml
systemctl daemon-reload
systemctl start kettle || fail "does not start with credentials"
shows third || fail "another certificate than its credential"
renew fourth
systemctl restart kettle
shows fourth || fail "a restart keeps the old credential"

say "hitch: Debian's unit with one line changed"
cat /etc/kettle/site.key /etc/kettle/site.pem >/etc/hitch/site.pem
chmod 600 /etc/hitch/site.pem
cat >/etc/hitch/hitch.conf <<'END'
frontend = { host = "*" port = "8443" }
backend = "[127.0.0.1]:9443"
pem-file = "/etc/hitch/site.pem"
END
is_scraped() { fetch https://localhost:8443/metrics | grep -q '^kettle_'; }
systemctl start hitch
within 10 is_scraped || fail "hitch itself does not serve"
mkdir -p /etc/systemd/system/hitch.service.d
sed -n '/^```ini$/,/^```$/{//!p}' /srv/check/migrating.md >/etc/systemd/system/hitch.service.d/override.conf
systemctl daemon-reload
systemctl restart hitch
within 10 is_scraped || fail "kettle does not serve in hitch's place"
[ "$(readlink "/proc/$(of hitch MainPID)/exe")" = /usr/bin/kettle ] || fail "this is not kettle"
shows fourth 8443 || fail "another certificate than hitch's"
renew fifth
cat /etc/kettle/site.key /etc/kettle/site.pem >/etc/hitch/next.pem
chmod 600 /etc/hitch/next.pem
mv /etc/hitch/next.pem /etc/hitch/site.pem
systemctl reload hitch || fail "hitch's unit does not reload"
within 20 shows fifth 8443 || fail "a reload of hitch's unit keeps the old certificate"
systemctl stop hitch
[ "$(of hitch Result)" = success ] || fail "hitch's unit stops badly: $(of hitch Result)"

say "upgrade: a running kettle becomes the new one"
pid=$(of kettle MainPID)
dpkg-deb -R /srv/check/kettle_*.deb /tmp/next
sed -i 's/^Version: .*/Version: 9.9.9-1/' /tmp/next/DEBIAN/control
dpkg-deb -Znone --build /tmp/next /tmp/next.deb >/dev/null
dpkg --force-confdef -i /tmp/next.deb >/tmp/log 2>&1 || { cat /tmp/log; fail "the upgrade fails"; }
within 20 is_another || fail "the old kettle still runs"
page || fail "no page after the upgrade"

say "purge: nothing of it runs or is left"
dpkg -P kettle >/tmp/log 2>&1 || { cat /tmp/log; fail "the purge fails"; }
[ "$(of kettle LoadState)" = not-found ] || [ "$(of kettle ActiveState)" = inactive ] || fail "the unit is still there"
if pidof kettle; then fail "a kettle still runs"; fi
for left in /var/log/kettle /var/lib/kettle /var/cache/kettle /run/kettle /etc/systemd/system/multi-user.target.wants/kettle.service; do
    [ ! -e $left ] && [ ! -L $left ] || fail "purge leaves $left"
done
failed=$(systemctl --failed --plain --no-legend)
[ -z "$failed" ] || fail "units failed: $failed"
