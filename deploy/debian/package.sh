#!/bin/sh
# Makes the Debian package of an installation in ROOT (`make install install-services DESTDIR=ROOT PREFIX=/usr`).
#
#     sh deploy/debian/package.sh ROOT WORK VERSION DESTINATION
#
# dpkg-deb is enough for one program without a build of its own; dpkg-shlibdeps finds the libraries that it needs.
set -eu
root=$1
work=$2
version=$3
destination=$4
here=$(dirname "$0")
arch=$(dpkg --print-architecture)
epoch=${SOURCE_DATE_EPOCH:-$(date +%s)}

rm -rf "$work"
mkdir -p "$work/DEBIAN"
cp -a "$root/." "$work/"
umask 022

# Policy: pages and changelogs are compressed, the licence is in copyright.
find "$work/usr/share/man" -name '*.1' -exec gzip -9n {} +
doc=$work/usr/share/doc/polygraph
install -d "$doc/examples"
install -m 644 "$here/copyright" "$doc/copyright"
gzip -9nc "$here/../../CHANGELOG.md" >"$doc/changelog.gz"
printf 'polygraph (%s-1) unstable; urgency=medium\n\n  * Release %s; /usr/share/doc/polygraph/changelog.gz says what is new.\n\n -- %s  %s\n' \
    "$version" "$version" "$(cat "$here/maintainer")" "$(date --utc --rfc-email --date="@$epoch")" | gzip -9nc >"$doc/changelog.Debian.gz"
for directory in workloads devices bakeoffs labs; do
    cp -R "$here/../../$directory" "$doc/examples/"
done
install -m 644 "$here/../../monitoring/grafana.json" "$doc/examples/grafana.json"
rm -f "$doc/examples/devices/install.sh"
install -D -m 644 "$here/lintian-overrides" "$work/usr/share/lintian/overrides/polygraph"
# `lib` is where units of packages are.
if [ -d "$work/usr/lib/systemd" ]; then
    mkdir -p "$work/lib"
    mv "$work/usr/lib/systemd" "$work/lib/systemd"
    rmdir --ignore-fail-on-non-empty "$work/usr/lib"
fi
chmod -R u+rwX,go+rX,go-w "$work"

libraries=$(mktemp -d)
mkdir -p "$libraries/debian"
printf 'Source: polygraph\n' >"$libraries/debian/control"
program=$(realpath "$work/usr/bin/polygraph")
depends=$(cd "$libraries" && dpkg-shlibdeps -O "$program" 2>/dev/null | sed -n 's/^shlibs:Depends=//p') || depends=
rm -rf "$libraries"

size=$(du -sk --exclude=DEBIAN "$work" | cut -f 1)
sed -e "s/@VERSION@/$version-1/" -e "s/@ARCH@/$arch/" -e "s/@SIZE@/$size/" -e "s/@DEPENDS@/${depends:-libc6}/" \
    -e "s/@MAINTAINER@/$(cat "$here/maintainer")/" "$here/control" >"$work/DEBIAN/control"
find "$work/etc" -type f -printf '/etc/%P\n' | sort >"$work/DEBIAN/conffiles"
for script in postinst prerm postrm; do
    install -m 755 "$here/$script" "$work/DEBIAN/$script"
done
(cd "$work" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum) >"$work/DEBIAN/md5sums"
chmod 644 "$work/DEBIAN/md5sums" "$work/DEBIAN/conffiles" "$work/DEBIAN/control"
dpkg-deb --root-owner-group -Zxz --build "$work" "$destination/polygraph_$version-1_$arch.deb"
