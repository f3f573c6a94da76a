#!/bin/sh
# Installs Debian's packages of the devices that are missing, the browser that the tests of reports need, the tools that the tests of the network need, SOCKS proxies, and a KDC. Debian starts a service with its package and at every
# boot; the ports belong to the benchmark, so the services of packages that this script installs stay off.
# Packages that are there already, and their services, are left alone.
set -eu

programs='curl:curl openssl:openssl hitch:hitch caddy:caddy nghttp2-client:h2load trafficserver:traffic_server varnish:varnishd nginx:nginx haproxy:haproxy chromium:chromium iproute2:tc iptables:iptables nftables:nft ethtool:ethtool iputils-ping:ping iperf3:iperf3 tmux:tmux nats-server:nats-server openssh-server:sshd dante-server:danted microsocks:microsocks krb5-kdc:krb5kdc krb5-admin-server:kadmin.local krb5-user:kinit faketime:faketime'
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

missing=
for pair in $programs; do
    command -v "${pair#*:}" >/dev/null || missing="$missing ${pair%%:*}"
done
# A library has no program; it belongs to the Python of the system.
/usr/bin/python3 -I -c 'import prometheus_client' 2>/dev/null || missing="$missing python3-prometheus-client"
# Interception of TLS needs a Squid with OpenSSL; this package takes the place of `squid`.
squid -v 2>/dev/null | grep -q with-openssl || missing="$missing squid-openssl"
[ -n "$missing" ] || exit 0

command -v apt-get >/dev/null || { echo "install these, the tests need them:$missing" >&2; exit 1; }
root=
[ "$(id -u)" = 0 ] || root=sudo

# Asked by maintainer scripts before they start anything: 101 forbids it.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap '$root rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | $root tee "$policy" >/dev/null
    $root chmod 755 "$policy"
fi

$root apt-get update -q
# Hosts install updates after a boot by themselves; that takes a lock.
$root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -q -y --no-install-recommends $missing </dev/null

for package in $missing; do
    units=$(dpkg -L "$package" | sed -n 's|.*/systemd/system/\([^/]*\.service\)$|\1|p')
    for unit in $units; do
        if command -v systemctl >/dev/null; then $root systemctl disable "$unit" >/dev/null 2>&1 || true; fi
        if command -v update-rc.d >/dev/null; then $root update-rc.d "${unit%.service}" disable >/dev/null 2>&1 || true; fi
    done
done
