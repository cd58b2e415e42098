# Runs in the guest of `cargo xtask measure work`, where a nanosecond of processor time is an instruction and QEMU's plugin counts
# the work within each window (window.c). It prints what the guest is, `MACHINE name value`, and for each server, size and number
# of requests on one connection:
#   WORK server size round requests window nanoseconds pages moved
# the window's number, the clock of the server's processes over it, the pages allocated in it, and the connections that moved into the
# kernel; with KETTLE_COUNT_CALLS=1 instead the system calls by name:
#   CALLS server size requests call count
set -eu
cd /kettle/measure
mkdir -p /run/nginx /run/kettle /run/measure/cache
# Made here, where chance is the same in each run. A signature's length depends on it.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE \
    -keyout /run/measure/key.pem -out /run/measure/certificate.pem 2>/dev/null
cat site/* >/dev/null
# A store's own file system, since tmpfs, which all else is on that can be written to, does not say what is in memory.
case $KETTLE_SERVERS in
*-cached-*) cp store.ext4 /run/measure/ && mount -o loop /run/measure/store.ext4 /run/measure/cache ;;
esac
# So have files that are not remembered.
case $KETTLE_SERVERS in
*-cold-*)
    mkdir -p /run/measure/site
    cp site.ext4 /run/measure/ && mount -o ro,loop /run/measure/site.ext4 /run/measure/site
    ;;
esac
modprobe tls
windows=0

describe() {
    echo "MACHINE kernel $(uname -r)"
    awk -F': ' '
        /^model name/ { print "MACHINE processor", $2 }
        /^cpu family/ { family = $2 } /^model\t/ { model = $2 } /^stepping/ { stepping = $2 }
        /^flags/ { flags = $2 }
        END { print "MACHINE model", family "/" model "/" stepping; print "MACHINE flags", flags }' /proc/cpuinfo
    awk '$1 == "MemTotal:" { print "MACHINE memory", $2 * 1024 }' /proc/meminfo
    for vulnerability in /sys/devices/system/cpu/vulnerabilities/*; do
        echo "MACHINE mitigation ${vulnerability##*/} $(cat "$vulnerability")"
    done
    dmesg | grep -o 'heap alloc:[a-z]*' | sed 's/heap alloc:/MACHINE init-on-alloc /'
    ! command -v nginx >/dev/null || nginx -v 2>&1 | sed 's/^nginx version: /MACHINE nginx /'
    ! command -v openssl >/dev/null || echo "MACHINE openssl $(openssl version)"
    curl --version | sed -n '1s/^/MACHINE curl /p'
    /lib64/ld-linux-x86-64.so.2 --version | sed -n '1s/^/MACHINE libc /p'
}

# Known work, to check the plugin by.
calibrate() {
    for turns in 10 20; do
        ./window --known $turns >/dev/null
        windows=$((windows + 1))
        echo "KNOWN $turns $windows"
    done
}

ran() {
    sum=0
    for task in /proc/"$1"/task/*/schedstat; do
        read -r nanoseconds rest <"$task"
        sum=$((sum + nanoseconds))
    done
    echo $sum
}

moved() {
    awk '$1 == "TlsTxSw" { print $2 }' /proc/net/tls_stat
}

# Fetches the file $2 times over one connection, or sends it, by way of the command $3... if there is one, and checks what came.
fetch() {
    size=$1 files=$2
    shift 2
    case $server in
    *-to-backend) words="--upload-file site/$size --header Expect:" counted=size_upload ;;
    *-at-once) words="--parallel --parallel-max 100" counted=size_download ;;
    *) words= counted=size_download ;;
    esac
    case $server in *-http2-*) version=2 ;; *) version=1.1 ;; esac
    # To a store, what stands behind `?` would be another object each time, and each would be older than `revalidate`.
    case $server in *-cached-*) turn='#' ;; *) turn='?' ;; esac
    "$@" curl --silent --show-error --fail --insecure --tlsv1.3 --curves X25519 \
        --tls13-ciphers TLS_AES_128_GCM_SHA256 --output /dev/null $words \
        --write-out '%{http_code} %{'$counted'} %{num_connects} %{http_version}\n' \
        "https://127.0.0.1:8443/$size$turn[1-$files]" >/run/fetched
    awk -v files="$files" -v bytes=$((size * 1024)) -v version=$version '
        $1 == 200 && $2 == bytes && $4 == version { right++ }
        NF == 4 { connections += $3 }
        END { exit !(right == files && connections == 1) }' /run/fetched
}

# What is counted finds all it asks for where it is to be: what a store keeps is kept, and then remembered.
warm() {
    case $server in
    *-cached-*) fetch "$1" "$2" && fetch "$1" "$2" ;;
    *) fetch "$1" 2 ;;
    esac
}

count_work() {
    for plan in $KETTLE_PLANS; do
        IFS=: read -r size few many <<END
$plan
END
        case $server:$size in *-proxy-*:1) ;; *-proxy-*) continue ;; esac
        warm "$size" "$many"
        round=0
        while [ $round -lt "$KETTLE_ROUNDS" ]; do
            for requests in "$few" "$many"; do
                before=$(ran "$2") moved_before=$(moved)
                fetch "$size" "$requests" ./window
                windows=$((windows + 1))
                after=$(ran "$2") moved_after=$(moved) pages=$(awk 'NF == 1' /run/fetched)
                echo "WORK $1 $size $round $requests $windows $((after - before)) $pages $((moved_after - moved_before))"
            done
            round=$((round + 1))
        done
    done
}

count_calls() {
    for plan in $KETTLE_PLANS; do
        IFS=: read -r size few many <<END
$plan
END
        case $server:$size in *-proxy-*:1) ;; *-proxy-*) continue ;; esac
        warm "$size" "$many"
        for requests in "$few" "$many"; do
            strace -c -f -U calls,name -o /run/calls -p "$2" 2>/run/strace &
            tracer=$!
            until grep -q attached /run/strace; do sleep 0.1; done
            fetch "$size" "$requests"
            sleep 0.3
            kill -INT $tracer
            wait $tracer || true
            awk -v begin="CALLS $1 $size $requests" '
                $1 ~ /^[0-9]+$/ && $2 != "total" { print begin, $2, $1 }' /run/calls
        done
    done
}

describe
./backend &
[ "${KETTLE_COUNT_CALLS:-0}" = 1 ] || calibrate
for server in $KETTLE_SERVERS; do
    case $server in
    kettle-*)
        /kettle/kettle run --config $server.toml >/run/$server.log 2>&1 &
        first=$!
        ;;
    nginx-*)
        nginx -p /run/nginx -c /kettle/measure/$server.conf -e error.log >/run/$server.log 2>&1 &
        first=$!
        ;;
    esac
    tries=0
    until fetch 1 1 2>/dev/null; do
        tries=$((tries + 1))
        if [ $tries -gt 100 ]; then
            cat /run/$server.log
            exit 1
        fi
        sleep 0.1
    done
    worker=$(cat /proc/$first/task/$first/children)
    worker=${worker% }
    if [ "${KETTLE_COUNT_CALLS:-0}" = 1 ]; then
        count_calls "$server" "${worker:-$first}"
    else
        count_work "$server" "${worker:-$first}"
    fi
    kill $first
    wait $first || true
done
