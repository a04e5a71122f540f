"""Man pages say what --help says: man.py SURVEY REPORT PREDICT KIT PAGE..."""
import pathlib
import re
import subprocess
import sys

survey, report, predict, kit = sys.argv[1:5]
pages = {pathlib.Path(path).name: pathlib.Path(path).read_text(encoding="utf-8") for path in sys.argv[5:]}


def told(*command):
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return done.stdout.decode()


def flags_of_help(text):
    """--flag -> (letter, argument)"""
    flag = r"(?:-([a-z]), )?(--[a-z0-9-]+)(?: ([A-Z][A-Za-z.\[\],]*))?(?=,? |$)"
    rows = re.findall(r"^ +" + flag, text, re.M)
    return {flag: (letter, argument) for letter, flag, argument in rows}


def flags_of_page(text):
    """The same from what stands behind each .TP."""
    found = {}
    for line in re.findall(r"^\.TP\n(?:\.B[IR]? |\\fB)(.*)$", text, re.M):
        plain = re.sub(r"\\f[A-Z]|[\"]|, ", " ", line.replace("\\-", "-"))
        flag = re.search(r"--[a-z0-9-]+", plain)
        if not flag:
            continue
        letter = re.search(r"(?<!\S)-([a-z])(?!\S)", plain)
        words = re.sub(r"^--[a-z0-9-]+ *", "", plain[flag.start():].strip()).strip()
        found[flag.group()] = (letter.group(1) if letter else "", words)
    return found


def compare(what, helped, paged):
    assert helped, f"{what}: no flags in --help"
    for flag, (letter, argument) in helped.items():
        assert flag in paged, f"{what}: {flag} is not in the man page"
        assert paged[flag] == (letter, argument), f"{what}: {flag}: {paged[flag]} in the man page, {(letter, argument)} in --help"
    assert set(paged) <= set(helped), f"{what}: only in the man page: {set(paged) - set(helped)}"


survey_help, report_help, predict_help, kit_help = (told(program, "--help") for program in (survey, report, predict, kit))
compare("gpumemtopo-survey", flags_of_help(survey_help), flags_of_page(pages["gpumemtopo-survey.1"]))
compare("gpumemtopo-predict", flags_of_help(predict_help), flags_of_page(pages["gpumemtopo-predict.1"]))
compare("gpumemtopo-kit", flags_of_help(kit_help), flags_of_page(pages["gpumemtopo-kit.1"]))
sections = dict(re.findall(r"^\.SS (\w+) ?[^\n]*\n(.*?)(?=^\.S[SH] )", pages["gpumemtopo-report.1"], re.M | re.S))
commands = re.findall(r"^  ([a-z]+) ([A-Z\[][^\n]*?)  ", report_help, re.M)
assert len(commands) >= 5 and [c for c, _ in commands] == list(sections), (commands, list(sections))
for command, arguments in commands:
    helped = flags_of_help(told(report, command, "--help"))
    helped.pop("--help")
    if helped:
        compare(command, helped, flags_of_page(sections[command]))
    else:
        assert not flags_of_page(sections[command]), command
for name, text in ("survey", survey_help), ("report", report_help), ("predict", predict_help), ("kit", kit_help):
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80, f"{name}: --help is wider than 80 columns"
    codes = set(re.findall(r"^\.B (\d)$", pages[f"gpumemtopo-{name}.1"], re.M))
    assert codes == set(re.findall(r"\b(\d) [a-z]", text[text.index("Exit codes"):])), f"{name}: exit codes differ"
