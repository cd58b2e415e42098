# A machine of its own, as far as applications see: a network with nothing but loopback, and folders of Debian's places that
# are lost at the end. Called by `unshare --net --mount --pid --fork --kill-child`; the first argument is a folder for that, the
# second one has what was installed, the rest is what runs there.
set -eu
work=$1
parts=$2
shift 2
ip link set lo up
mkdir -p "$work"
for place in /srv /etc/nginx /var/log/nginx /var/lib/nginx /var/lib/kettle /etc/wordpress /var/lib/wordpress; do
    mkdir -p "$place"
    copy=$work$place
    mkdir -p "$copy"
    case $place in
    /etc/*|/var/lib/wordpress) cp -a "$place/." "$copy" ;;
    esac
    mount --bind "$copy" "$place"
done
mount -t tmpfs none /run
mkdir /run/php /run/kettle /run/lock
chown www-data: /run/php /var/lib/kettle
# Users other than root may look there, too.
for part in "$parts"/*; do
    mkdir -p "/run/parts/$(basename "$part")"
    mount --bind "$(readlink -f "$part")" "/run/parts/$(basename "$part")"
done
echo '127.0.0.1 localhost registry.example.org git.example.org lab.example.org shop.example.org www.shop.example.org live.example.org blog.example.org' >"$work/hosts"
mount --bind "$work/hosts" /etc/hosts
mount -t proc proc /proc
exec "$@"
