#!/bin/sh
# Does with the packages in dist/ what users do: installs the Debian package in a clean root without Rust, runs tests, reads a page,
# completes words, removes it; runs the static program alone in an empty root, and the image for containers if there is buildah. Needs
# root, mmdebstrap and lintian. It takes some minutes.
#
# Variables: SUITE (bookworm), MIRROR (as /etc/apt has it), ROOT (a directory to keep the root in).
set -eu
suite=${SUITE:-bookworm}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
deb=$(ls dist/polygraph_"$version"-1_*.deb)
scratch=$(mktemp -d)
root=${ROOT:-$scratch/debian}
finish() {
    umount "$scratch/empty/proc" "$root/proc" 2>/dev/null || true
    rm -rf "$scratch"
}
trap finish EXIT
step() {
    printf '\n== %s\n' "$*"
}

step 'checksums'
(cd dist && sha256sum --check --quiet SHA256SUMS)

step 'lintian'
lintian --fail-on error,warning --info "$deb"

step "a clean root of $suite"
if [ ! -e "$root/usr/bin/dpkg" ]; then
    mmdebstrap --quiet --variant=apt --include=man-db,bash-completion,squid,iproute2,ca-certificates "$suite" "$root" ${MIRROR:+"$MIRROR"}
fi
# Programs in the root see its processes and nothing of those outside.
inside() {
    unshare --mount --pid --fork --net sh -c '
        root=$1; shift
        mount -t proc proc "$root/proc" && mount --bind /dev "$root/dev" &&
            mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm" && ip link set lo up
        exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LANG=C.UTF-8 "$@"' sh "$root" "$@"
}
files() {
    (cd "$root" && find . -xdev \( -path ./proc -o -path ./dev -o -path ./root -o -path ./tmp -o -path ./var/log -o -path ./var/cache \
        -o -path './var/lib/dpkg' -o -path ./var/lib/apt -o -path ./run \) -prune -o -print | sort)
}
files >"$scratch/before"

step 'install'
cp "$deb" "$root/tmp/polygraph.deb"
inside dpkg --install /tmp/polygraph.deb
inside sh -c '! command -v cargo && polygraph --version && polyclt --help >/dev/null'

step 'polygraph try'
inside sh -c 'cd /root && polygraph try --quiet'

step 'polygraph run --device squid'
inside sh -c 'cd /root && polygraph run --quiet --device squid --req_rate 100/sec --goal 20s --xact_think none --predict no'

step 'man pages of all names'
for name in polygraph polygraph-run polygraph-net-wan $(inside polygraph installed-names); do
    lines=$(inside sh -c "MANPAGER=cat man --warnings $name 2>&1 | wc -l")
    [ "$lines" -gt 20 ] || { echo "man $name has $lines lines"; exit 1; }
done
inside sh -c 'MANPAGER=cat man polyclt | head -n 12'

step 'completion in bash'
complete() { # WORDS EXPECTED
    found=$(inside bash -c '
        source /usr/share/bash-completion/bash_completion
        COMP_WORDS=($1) COMP_LINE=$1 COMP_POINT=${#1}
        case $1 in *" ") COMP_WORDS+=("") ;; esac
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _completion_loader "${COMP_WORDS[0]}"
        function=$(complete -p "${COMP_WORDS[0]}" | sed "s/.* -F \([^ ]*\).*/\1/")
        "$function" "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf "%s\n" "${COMPREPLY[@]}"' bash "$1")
    echo "$found" | grep -qx -- "$2" || { echo "completing '$1' gives: $found"; exit 1; }
    echo "$1 -> $2"
}
complete 'polygraph bak' 'bakeoff'
complete 'polygraph run --device_' '--device_opt'
complete 'polygraph net wan --del' '--delay'
complete 'polyclt --req_' '--req_rate'

step 'remove'
inside dpkg --purge polygraph
rm "$root/tmp/polygraph.deb"
files >"$scratch/after"
if ! diff "$scratch/before" "$scratch/after"; then
    echo 'files are left'
    exit 1
fi
echo 'nothing is left'

step 'the static program alone in an empty root'
archive=$(ls dist/polygraph-"$version"-"$(uname -m)"-*.tar.gz 2>/dev/null | head -n 1)
if [ -n "$archive" ]; then
    mkdir -p "$scratch/empty"
    tar --extract --file "$archive" --directory "$scratch" --wildcards '*/bin/polygraph'
    mv "$scratch"/polygraph-*/bin/polygraph "$scratch/empty/polygraph"
    # Nothing else is there: no shell, no library, no /proc, no /dev.
    unshare --net sh -c 'ip link set lo up && cd "$1" && exec chroot . /polygraph try --quiet' sh "$scratch/empty"
    ls "$scratch/empty"
else
    echo "there is no archive for $(uname -m)"
    exit 1
fi

step 'the image'
sh deploy/image-root.sh "$scratch/empty/polygraph" "$scratch/image"
unshare --net sh -c '
    ip link set lo up && cd "$1/work"
    exec chroot --userspec=65532:65532 "$1" /usr/bin/polygraph try --quiet --runs /work/runs' sh "$scratch/image"

if command -v buildah >/dev/null; then
    step 'the image, made and started by buildah'
    # Without what the run above has left.
    sh deploy/image-root.sh "$scratch/empty/polygraph" "$scratch/new-image"
    # A store of its own; `vfs` and `chroot` work without support of the kernel.
    image() {
        command=$1
        shift
        buildah --root "$scratch/store" --runroot "$scratch/store-run" --storage-driver vfs "$command" "$@"
    }
    container=$(image from scratch)
    image copy --quiet "$container" "$scratch/new-image" /
    image config --user 65532:65532 --workingdir /work --entrypoint '["/usr/bin/polygraph"]' "$container"
    image commit --quiet --rm "$container" polygraph
    container=$(image from --pull-never localhost/polygraph)
    # Its loopback interface is up: it is that of the network namespace around it.
    unshare --net sh -c 'ip link set lo up && exec "$@"' sh \
        buildah --root "$scratch/store" --runroot "$scratch/store-run" --storage-driver vfs \
        run --isolation chroot --network host "$container" -- /usr/bin/polygraph try --quiet
    image rm "$container" >/dev/null
else
    echo 'there is no buildah: the image was checked as a directory only'
fi
echo
echo 'all packages work'
