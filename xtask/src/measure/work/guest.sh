# Runs in the guest of `cargo xtask measure work`, where a nanosecond of processor time is an instruction. For each server and
# each size it prints the clock of the server's processes over two numbers of requests on one connection:
#   WORK server file requests nanoseconds connections-moved-into-the-kernel
# and with KETTLE_COUNT_CALLS=1 the system calls of one more request instead:
#   CALLS server file requests call count
set -eu
cd /kettle/measure
site=/tmp/site
mkdir -p $site /run/nginx /run/kettle
for size in 1 4 16 64 256 1024 10240; do
    head -c $((size * 1024)) /dev/urandom >$site/$size
done
cat $site/* >/dev/null
modprobe tls

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

fetch() {
    curl --silent --show-error --fail --insecure --tlsv1.3 --curves X25519 \
        --tls13-ciphers TLS_AES_128_GCM_SHA256 --output /dev/null \
        --write-out '%{http_code} %{size_download} %{num_connects}\n' \
        "https://127.0.0.1:8443/$1?[1-$2]" >/run/fetched
    awk -v files="$2" -v bytes=$(($1 * 1024)) '
        $1 == 200 && $2 == bytes { right++ }
        { connections += $3 }
        END { exit !(right == files && connections == 1) }' /run/fetched
}

count_work() {
    for plan in $KETTLE_PLANS; do
        IFS=: read -r file few many <<END
$plan
END
        fetch "$file" 2
        for requests in "$few" "$many"; do
            # The end of the connection before is not part of this one.
            sleep 0.3
            before=$(ran "$2") moved_before=$(moved)
            fetch "$file" "$requests"
            sleep 0.3
            after=$(ran "$2") moved_after=$(moved)
            echo "WORK $1 $file $requests $((after - before)) $((moved_after - moved_before))"
        done
    done
}

count_calls() {
    for plan in $KETTLE_PLANS; do
        IFS=: read -r file few many <<END
$plan
END
        fetch "$file" 2
        for requests in "$few" "$many"; do
            strace -c -f -U calls,name -o /run/calls -p "$2" 2>/run/strace &
            tracer=$!
            until grep -q attached /run/strace; do sleep 0.1; done
            fetch "$file" "$requests"
            sleep 0.3
            kill -INT $tracer
            wait $tracer || true
            awk -v begin="CALLS $1 $file $requests" '
                $1 ~ /^[0-9]+$/ && $2 != "total" { print begin, $2, $1 }' /run/calls
        done
    done
}

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
