#!/bin/sh
# Makes the files of a release in dist/ (docs/releasing.md). `make dist` runs it after a build, with the Makefile's variables:
# CARGO, TARGET (the target directory), FEATURES, PROFILE, DIST_TARGETS, CYCLONEDX and SOURCE_DATE_EPOCH. RUSTC may name another compiler.
#
# Whatever cannot be made on this machine is named at the end, with what it lacks.
set -eu
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
work=$TARGET/packages
skipped=$(mktemp)
trap 'rm -f "$skipped"' EXIT
rm -rf dist "$work"
mkdir -p dist "$work"

skip() {
    echo "$1" >>"$skipped"
}

# The times in archives are those of the last commit (SOURCE_DATE_EPOCH), so that equal sources make equal archives.
pack() { # ARCHIVE DIRECTORY NAME
    tar --create --directory "$2" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner "$3" |
        gzip -9n >"$1"
}

# The source, for Homebrew, Arch and everybody else.
if git rev-parse --verify --quiet HEAD >/dev/null; then
    git archive --format=tar --prefix="polygraph-$version/" HEAD | gzip -9n >"dist/polygraph-$version.tar.gz"
    digest=$(sha256sum "dist/polygraph-$version.tar.gz" | cut -d ' ' -f 1)
    for recipe in homebrew/polygraph.rb aur/PKGBUILD; do
        sed -e "s/@VERSION@/$version/g" -e "s/@SHA256@/$digest/g" "deploy/$recipe" >"dist/$(basename "$recipe")"
    done
else
    skip "source archive, Homebrew formula and PKGBUILD: this directory is not a clone"
fi

# A complete installation, from which the packages are made.
make --no-print-directory install install-services DESTDIR="$work/root" PREFIX=/usr CARGO="$CARGO" PROFILE="$PROFILE" >/dev/null

# Archives with a static program, one for each target.
has_std() { # TARGET
    ls "$("${RUSTC:-rustc}" --print target-libdir --target "$1")"/libstd-*.rlib >/dev/null 2>&1
}
archive() { # TARGET NAME
    name=polygraph-$version-$2
    make --no-print-directory static STATIC_TARGET="$1" CARGO="$CARGO" PROFILE="$PROFILE"
    mkdir -p "$work/$name"
    cp -a "$work/root/usr/bin" "$work/root/usr/share" "$work/root/usr/lib" "$work/$name/"
    cp "$TARGET/static/$1/polygraph" "$work/$name/bin/polygraph"
    cp LICENSE README.md CHANGELOG.md "$work/$name/"
    pack "dist/$name.tar.gz" "$work" "$name"
}
for target in $DIST_TARGETS; do
    arch=${target%%-*}
    gnu=$arch-unknown-linux-gnu
    if has_std "$target"; then
        archive "$target" "$target"
    elif [ "$target" != "$gnu" ] && has_std "$gnu"; then
        skip "archive for $target: there is no Rust standard library for it (rustup target add $target); $gnu is linked statically instead"
        archive "$gnu" "$gnu-static"
    else
        skip "archive for $target: there is no Rust standard library for it (rustup target add $target)"
    fi
done

# Debian's package.
if command -v dpkg-deb >/dev/null; then
    sh deploy/debian/package.sh "$work/root" "$work/deb" "$version" dist
else
    skip "Debian package: there is no dpkg-deb"
fi

# The list of everything that is in the program (CycloneDX).
if [ -n "$CYCLONEDX" ]; then
    "$CYCLONEDX" cyclonedx --manifest-path crates/cli/Cargo.toml --features "$FEATURES" --format json --spec-version 1.5 \
        --override-filename sbom >/dev/null
    mv crates/cli/sbom.json "dist/polygraph-$version.cdx.json"
    find crates -name sbom.json -delete
else
    skip "list of components: without cargo-cyclonedx"
fi

(cd dist && sha256sum -- * >SHA256SUMS)
ls -l dist
if [ -s "$skipped" ]; then
    echo "not made:"
    sed 's/^/  /' "$skipped"
fi
