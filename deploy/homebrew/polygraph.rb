# Homebrew on Linux. A release puts its version and the digest of the source archive here (docs/releasing.md), and copies the file to the
# tap; the program needs Linux.
class Polygraph < Formula
  desc "Benchmark for HTTP proxies, caches and load balancers"
  homepage "https://github.com/OWNER/polygraph"
  url "https://github.com/OWNER/polygraph/releases/download/v@VERSION@/polygraph-@VERSION@.tar.gz"
  sha256 "@SHA256@"
  license "Apache-2.0"

  depends_on "rust" => :build
  depends_on :linux

  def install
    system "make", "install", "PREFIX=#{prefix}"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/polygraph --version")
    system bin/"polygraph", "check", "simple", "--no_simulation"
  end
end
