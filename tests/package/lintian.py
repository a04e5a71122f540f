"""lintian has nothing to say about the Debian packages: lintian.py SOURCE_ROOT FOLDER"""
import sys

import made

made.skip_without("dh", "dpkg-buildpackage", "lintian")
packages = made.get(sys.argv[1], sys.argv[2])
changes = next(packages.unpacked.glob("*.changes"))
# The version of the policy is that of Debian 12; another lintian knows another one.
said = made.run("lintian", "--allow-root", "--display-info", "--pedantic", "--tag-display-limit", "0", "--suppress-tags",
                "out-of-date-standards-version,newer-standards-version", changes, code=(0, 1, 2))
assert not said.strip(), said
