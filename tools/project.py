"""Licence and addresses of the project. LICENSE has the licence: its first line names it, its third line is the
copyright. packaging/addresses.conf has the addresses. FILES repeat them, because their readers read nothing else;
`tools/release project` writes them there, and the test package_recipes compares them."""
import pathlib
import re

NOWHERE = "https://gpumemtopo.invalid"  # where a format demands an address and there is none


def read(root):
    """Names and texts: licence, copyright, text (of the whole licence), home, issues, security."""
    text = pathlib.Path(root, "LICENSE").read_text(encoding="utf-8")
    match = re.match(r"SPDX-License-Identifier: (\S+)\n\nCopyright \(c\) ([^\n]+)\n", text)
    if not match:
        raise SystemExit("LICENSE does not begin with SPDX-License-Identifier and Copyright")
    addresses = pathlib.Path(root, "packaging/addresses.conf").read_text(encoding="utf-8")
    found = dict(re.findall(r"^(home|issues|security):[ \t]*(.*?)[ \t]*$", addresses, re.M))
    return {"licence": match[1], "copyright": match[2], "text": text.split("\n", 2)[2], **found}


def _line(text, begin, value, after):
    """The text with the line `begin + value` behind the line that begins with `after`; without it if there is no value."""
    lines = [line for line in text.split("\n") if not line.startswith(begin)]
    at = next(i for i, line in enumerate(lines) if line.startswith(after)) + 1
    return "\n".join(lines[:at] + ([begin + value] if value else []) + lines[at:])


def _section(text, heading, body, before):
    """The text with this section of a Markdown file in front of the heading `before`; without it if it has no body."""
    text = re.sub(rf"^## {re.escape(heading)}\n.*?(?=^## |\Z)", "", text, flags=re.M | re.S)
    at = text.index(f"## {before}\n")
    return text[:at] + (f"## {heading}\n\n{body}\n\n" if body else "") + text[at:]


def _readme(text, about):
    lines = [f"gpumemtopo is free software under the licence {about['licence']}: see [LICENSE](LICENSE)."]
    for name, words in (("home", "Home"), ("issues", "Questions and faults"), ("security", "Faults of security")):
        if about[name]:
            lines.append(f"{words}: <{about[name]}>.")
    return _section(text, "Licence", "\n".join(lines), "State")


def _security(text, about):
    body = about["security"] and f"Write to <{about['security']}> before you publish it."
    return _section(text, "You have found a fault", body, "Who runs what")


def _debian_copyright(_, about):
    licence = "\n".join(f" {line}" if line else " ." for line in about["text"].strip().split("\n"))
    home = f"Source: {about['home']}\n" if about["home"] else ""
    return (f"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: gpumemtopo\n{home}\n"
            f"Files: *\nCopyright: {about['copyright']}\nLicense: {about['licence']}\n{licence}\n")


def _spec(text, about):
    text = _line(text, "License:        ", about["licence"], "Summary:")
    return _line(text, "URL:            ", about["home"], "License:")


def _control(text, about):
    return _line(text, "Homepage: ", about["home"], "Rules-Requires-Root:")


def _spack(text, about):
    text = _line(text, "    license(", f'"{about["licence"]}")', "    manual_download")
    return _line(text, "    homepage = ", about["home"] and f'"{about["home"]}"', "    manual_download")


def _easybuild(text, about):
    return _line(text, "homepage = ", f"'{about['home'] or NOWHERE}'", "versionsuffix")


# file (a pattern), its text and what is known about the project -> its text with that
FILES = {
    "README.md": _readme,
    "docs/SECURITY.md": _security,
    "debian/copyright": _debian_copyright,
    "debian/control": _control,
    "packaging/gpumemtopo.spec": _spec,
    "packaging/spack/spack_repo/gpumemtopo/packages/gpumemtopo/package.py": _spack,
    "packaging/easybuild/gpumemtopo-*.eb": _easybuild,
}


def write(root, only_compare=False):
    """Returns the names of the files that were, or are, different."""
    about, differing = read(root), []
    for pattern, fill in FILES.items():
        path = next(pathlib.Path(root).glob(pattern))
        text = path.read_text(encoding="utf-8")
        filled = fill(text, about)
        if filled != text:
            differing.append(str(path.relative_to(root)))
            if not only_compare:
                path.write_text(filled, encoding="utf-8")
    return differing
