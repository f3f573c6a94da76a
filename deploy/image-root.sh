#!/bin/sh
# Makes the root of the container image in DIRECTORY: a static program, its names, an ordinary user, and a directory that
# users may write to. There is no shell and no C library. `make image` and the Containerfile use it.
#
#     sh deploy/image-root.sh PROGRAM DIRECTORY
set -eu
program=$1
root=$2
user=65532

install -d -m 755 "$root" "$root/usr/bin" "$root/etc" "$root/usr/share/doc/polygraph"
# Results are written to `work`, by whatever user the container runs as; tools for images do not keep owners.
install -d -m 1777 "$root/tmp" "$root/work"
install -m 755 "$program" "$root/usr/bin/polygraph"
for name in $("$root/usr/bin/polygraph" installed-names); do
    ln -sf polygraph "$root/usr/bin/$name"
done
printf 'root:x:0:0:root:/root:/sbin/nologin\npolygraph:x:%s:%s:polygraph:/work:/sbin/nologin\n' $user $user >"$root/etc/passwd"
printf 'root:x:0:\npolygraph:x:%s:\n' $user >"$root/etc/group"
printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
install -m 644 "$(dirname "$0")/../LICENSE" "$root/usr/share/doc/polygraph/LICENSE"
