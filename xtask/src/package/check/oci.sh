# The container image without a container engine: its layers in a folder, its command as its user. $1 holds the image, $2 is the user.
image=$1 user=$2
fail() { echo "oci: $*" >&2; exit 1; }
blob() { echo "$image/blobs/sha256/${1#sha256:}"; }
read_json() { python3 -c 'import json, sys; print(eval("json.load(open(sys.argv[1]))" + sys.argv[2]))' "$1" "$2"; }
for file in "$image"/blobs/sha256/*; do
    [ "$(sha256sum <"$file" | cut -d' ' -f1)" = "${file##*/}" ] || fail "$file is not what its name says"
done
manifest=$(blob "$(read_json "$image/index.json" '["manifests"][0]["digest"]')")
config=$(blob "$(read_json "$manifest" '["config"]["digest"]')")
root=$image/root
mkdir "$root"
for layer in 0 1; do
    packed=$(blob "$(read_json "$manifest" "['layers'][$layer]['digest']")")
    [ "sha256:$(zcat "$packed" | sha256sum | cut -d' ' -f1)" = "$(read_json "$config" "['rootfs']['diff_ids'][$layer]")" ] ||
        fail "layer $layer is not the one the configuration names"
    tar -C "$root" -xzf "$packed"
done
[ "$(read_json "$config" '["config"]["User"]')" = "$user:$user" ] || fail "runs as somebody else"
words() { read_json "$config" "['config']$1" | tr -d "[],'"; }
mkdir -p "$root/proc" "$root/dev"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
ip link set lo up
inside() { chroot --userspec="$user:$user" "$root" "$@"; }
(exec chroot --userspec="$user:$user" "$root" $(words '["Entrypoint"]') $(words '["Cmd"]') >"$image/serving" 2>&1) &
server=$!
curl --silent --insecure --retry 20 --retry-connrefused --retry-delay 1 --max-time 20 https://127.0.0.1:8443/ |
    grep -q 'kettle is serving' || { cat "$image/serving"; fail "no page"; }
inside $(words '["Healthcheck"]["Test"][1:]') >/dev/null || fail "not healthy"
# Exits with 1 where the kernel has no TLS, and has its say all the same.
inside /usr/bin/kettle doctor --json >"$image/doctor.json" || true
python3 -m json.tool "$image/doctor.json" >/dev/null || fail "the doctor does not answer"
[ "$(stat -c %u "$root/var/lib/kettle")" = "$user" ] || fail "the state is somebody else's"
kill -TERM $server
wait $server || { cat "$image/serving"; fail "the server ended badly"; }
if inside $(words '["Healthcheck"]["Test"][1:]') >/dev/null 2>&1; then fail "healthy without a server"; fi
