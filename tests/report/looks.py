"""How a page must look, whatever is on it: nothing active, nothing too wide, upon each other or pale."""
import html.parser
import re


class Reader(html.parser.HTMLParser):
    """Text, and what could load or run something."""

    def __init__(self, text):
        super().__init__()
        self.text, self.active, self.tags, self.inside = [], [], set(), None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.inside = tag
        for name, value in attrs:
            if name.startswith("on") or name in ("src", "srcset", "style", "action", "data"):
                self.active.append((tag, name, value))
            if name == "href" and not re.fullmatch(r"#[a-z]+\d*", value or ""):
                self.active.append((tag, name, value))
        if tag in ("link", "iframe", "object", "embed", "img", "base", "form", "image", "use"):
            self.active.append((tag, "", ""))

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside not in ("script", "style"):
            self.text.append(data)


def overlapping(chromium):
    """Pairs of texts in one drawing that lie upon each other, and texts that leave their drawing."""
    return chromium.run("""(() => {
      const found = [];
      for (const svg of document.querySelectorAll("svg")) {
        if (!svg.getClientRects().length) continue;
        const frame = svg.getBoundingClientRect();
        const boxes = Array.from(svg.querySelectorAll("text"), (t) => [t.getBoundingClientRect(), t.textContent]);
        boxes.forEach(([a, what], i) => {
          if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 1 || a.bottom > frame.bottom + 1)
            found.push("leaves: " + what);
          for (const [b, other] of boxes.slice(i + 1))
            if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3)
              found.push(what + " / " + other);
        });
        const rects = Array.from(svg.querySelectorAll("rect.memory"), (r) => r.getBoundingClientRect());
        for (const [a, what] of svg.classList.contains("topo") ? boxes : [])
          for (const r of rects)
            if (a.left > r.left && a.left < r.right && a.top > r.top && a.top < r.bottom && a.right > r.right + 1)
              found.push("leaves its box: " + what);
      }
      return found;
    })()""")


def low_contrast(chromium):
    """Texts whose contrast to what lies behind them is below 4.5 to 1 (WCAG AA)."""
    return chromium.run("""(() => {
      const light = (c) => { const v = c.map((x) => { x /= 255; return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4 });
        return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2] };
      const parse = (s) => { const m = s.match(/[\\d.]+/g).map(Number); return m.length > 3 && m[3] === 0 ? null : m.slice(0, 3) };
      const found = new Set();
      for (const e of document.querySelectorAll("h1,h2,h3,p,b,code,td,th,summary,li,span,i,a,button")) {
        const own = Array.from(e.childNodes).some((n) => n.nodeType === 3 && n.data.trim());
        if (!own || !e.getClientRects().length) continue;
        let behind = null;
        for (let at = e; at && !behind; at = at.parentElement) behind = parse(getComputedStyle(at).backgroundColor);
        const a = light(parse(getComputedStyle(e).color)), b = light(behind || [255, 255, 255]);
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) found.add(e.tagName + "." + e.className + " " + ratio.toFixed(2));
      }
      return Array.from(found);
    })()""")


def check_looks(chromium, shots, page):
    """All unfolded: nothing too wide, upon each other or pale; a picture of each."""
    chromium.run("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    for name, width, scheme, media in (("light", 1280, "light", "screen"), ("dark", 1280, "dark", "screen"),
                                       ("narrow", 390, "light", "screen"), ("print", 794, "light", "print")):
        chromium.view(width, 1000, scheme, media)
        wide = chromium.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{page}, {name}: {wide} px too wide"
        overlaps, pale = overlapping(chromium), low_contrast(chromium)
        assert not overlaps and not pale, f"{page}, {name}: {overlaps[:5]} {pale[:5]}"
        chromium.picture(shots / f"{page}-{name}.png", whole=True)
    chromium.view(1280, 1000)
