"""Cleans much random HTML: does the quick cleaner ever differ from nh3, or return anything unsafe?

    python bench/fuzz_tidy.py --inputs 1000000 --seed 1

An input is a handful of tags, attributes, references and texts that lie close to what the quick cleaner knows, because
there it could be wrong: elements in places where a parser moves them, closed late or never, references half written,
addresses that look alike. Every fourth has a few characters changed at random. The same seed makes the same inputs.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Iterator

from headwater.text import cleaned_by_parser, printable
from headwater.text.allowed import DROPPED_WHOLE, KEPT, KEPT_ATTRIBUTES, names
from headwater.text.tidy import tidied
from unsafe import unsafe_in

BASE = "https://a.example/posts/1"


def _parts(text: str) -> tuple[str, ...]:
    return tuple(text.split(" | "))


LIKELY = tuple(
    re.findall(
        r"\w+",
        "p p p p div div ul ol li li li a a b i em strong code pre h2 h3 blockquote br br img table tr td td th tbody"
        " thead span font dl dt dd figure figcaption section article sup",
    )
)
STRANGE = names(
    "area audio base body button custom dir DIV embed fieldset form frame hgroup html image input label link listing"
    " menu meta nobr object option P param picture plaintext rb rtc search select source track video"
)
ELEMENTS = (*LIKELY, *LIKELY, *sorted(KEPT | DROPPED_WHOLE | STRANGE))
ATTRIBUTES = tuple(
    sorted(
        names("allowfullscreen class data-x HREF id onclick rel srcset style target Title xlink:href").union(
            *KEPT_ATTRIBUTES.values()
        )
    )
)
# Of each list the first twelve are what most documents have.
VALUES = _parts(
    " | x | a b | 1 | 100% | q&amp;a | a&b=1&c=2 | ?a=1&copy=2 | &lt;b&gt; | a\xa0b | &quot; | it's"
    " | &notit; | a>b | a<b | é | 中文 | 😀 | &#39;&#x27; | &#128; | &#0; | &#xD800; | &hosted_id=1 | &amp | &not_x"
    " | \r\n | \x00 | a`b | a=b | / | // | &"
)
ADDRESSES = _parts(
    "https://a.example/ | http://b.example/x?y=1&amp;z=2#w | https://A.Example"
    " | https://a.b-c.example/x?y=1&z=2 | /rooted"
    " | relative.html | ?query | #note:1 | ./x | ../x | mailto:a@b.example | //c.example/x"
    " | https://a.example:8080/ | https://1.2.3.4/ | https://1.2.3/ | http://0x7f.1/ | https://a.1/ | https://a.0x1/"
    " | https://a.b1/ | https://a.example./ | https://a..example/ | https://xn--a.example/ | https://a--b.example/"
    " | https://-a.example/ | https://é.example/ | https://a_b.example/ | https:// | https:///x"
    " | https://user@a.example/"
    " | https://a.example\\x | https://a.e/%zz | https://a.example/\n | https://a.exam\tple/"
    " |  https://a.example/ | https:/a.e"
    " | http:a.example | ht&#116;ps://a.example/ | mailto: | javascript:alert(1) | JavaScript:alert(1)"
    " | java\tscript:alert(1)"
    " | &#106;avascript:alert(1) | vbscript:x | data:text/html,x | blob:x | tel:1 | xmpp:a | magnet:?x"
    " | ftp://a.example/"
    " | ftp: | gemini:x | irc://a/ | a:b | 1:2 | "
)
TEXTS = (
    " ",
    *_parts(
        "\n | \n\n | text | two words | a & b | AT&T | &amp; | &lt; | &nbsp; | \xa0 | &#8217;"
        " | &gt; | &copy; | &copy | &copyx | &notin; | &not | &unknown; | &#x2019; | &#8217 | &#38; | &#60;"
        " | &#150; | &#10;"
        " | &#13; | &NewLine; | &Tab; | &ThickSpace; | &#1114112; | &#xFFFE; | &#0000000065; | & | &; | &#"
        " | &#x; | &ampx;"
        " | &lang; | < | <  | <3 | > | \" | ' | é | 中文 | 😀 | \u202e | \x85 | \t | \x0c | \r | \x00 | ]]> | </"
    ),
)
ODDITIES = _parts(
    "<!-- note --> | <!----> | <!--> | <!---> | <!-- a -- b --> | <!-- a --!> | <!-- <b> --> | <!-- | <!-- x --"
    " | <![CDATA[x]]> | <!doctype html> | <?php x ?> | </> | </ p> | <script>x</script> | <script>a < b</script>"
    " | <script>x</SCRIPT>y<script>z</script> | <style>x</sTyle>y</style> | <script><!-- x</script>"
    " | <script></scriptx></script> | <style>p{}</style> | <style></p></style>"
    " | <style></style >"
    " | <iframe></iframe> | <iframe><p></iframe> | <svg><p>x</svg> | <math><mi>x</math> | <title>x</title>"
    " | <textarea>\nx"
)


def main() -> None:
    asked = _arguments()
    answered = different = unsafe = 0
    for html in fragments(random.Random(asked.seed), asked.inputs):
        clean = tidied(html, BASE)
        if clean is None:
            continue
        answered += 1
        if clean != printable(cleaned_by_parser(html, BASE)):
            different += 1
            print(f"different: {html!r}")
        if found := unsafe_in(clean):
            unsafe += 1
            print(f"unsafe, {found}: {html!r}")
    print(f"{asked.inputs:,} fragments, seed {asked.seed}; {answered:,} cleaned without a parser")
    print(f"different from nh3: {different}; unsafe: {unsafe}")
    sys.exit(1 if different or unsafe else 0)


def fragments(rng: random.Random, count: int) -> Iterator[str]:
    for number in range(count):
        html = "".join(_pieces(rng, rng.choice((3, 6, 12, 25))))
        yield _damaged(rng, html) if number % 4 == 0 else html


def _pieces(rng: random.Random, count: int) -> Iterator[str]:
    """Yields a row of tags and texts, mostly closed in order."""
    manners = rng.random()
    is_wild, is_tame = manners < 0.2, manners > 0.5
    open_elements: list[str] = []
    for _ in range(count):
        choice = rng.random()
        if choice < 0.4:
            name = rng.choice(ELEMENTS if not is_tame and rng.random() < 0.15 else LIKELY)
            yield f"<{name}{_attributes(rng, name, is_wild)}>"
            if name not in ("br", "img"):
                open_elements.append(name)
        elif choice < 0.62 and open_elements:
            yield f"</{open_elements.pop()}>"
        elif choice < 0.65 and not is_tame:
            yield f"</{rng.choice(ELEMENTS)}>"
        elif choice < 0.68 and not is_tame:
            yield rng.choice(ODDITIES)
        else:
            yield rng.choice(TEXTS if is_wild or rng.random() < 0.1 else TEXTS[:12])
    if is_tame or rng.random() < 0.7:
        yield from (f"</{name}>" for name in reversed(open_elements))


def _attributes(rng: random.Random, name: str, is_wild: bool) -> str:
    if name not in ("a", "img") and rng.random() < 0.6:
        return ""
    ending = rng.choice(("", " ", "/", " /")) if is_wild or name in ("br", "img") else ""
    return "".join(_attribute(rng, name, is_wild) for _ in range(rng.choice((1, 1, 2, 3)))) + ending


def _attribute(rng: random.Random, name: str, is_wild: bool) -> str:
    attribute = {"a": "href", "img": "src"}.get(name, "") if rng.random() < 0.5 else ""
    attribute = attribute or rng.choice(ATTRIBUTES)
    values = ADDRESSES if attribute in ("href", "src") else VALUES
    value = rng.choice(values if is_wild or rng.random() < 0.2 else values[:12])
    if not is_wild and rng.random() < 0.9:
        return f' {attribute}="{value}"'
    return rng.choice((" ", "  ", "\n", "", "/", "\t")) + rng.choice(
        (
            f'{attribute}="{value}"',
            f"{attribute}='{value}'",
            f"{attribute}={value}",
            attribute,
            f'{attribute} = "{value}"',
        )
    )


def _damaged(rng: random.Random, html: str) -> str:
    for _ in range(rng.choice((1, 1, 2, 4))):
        if html:
            place = rng.randrange(len(html))
            html = (
                html[:place]
                + rng.choice(("", "<", ">", '"', "'", "&", ";", "/", " ", "\n", "a", "-"))
                + html[place + 1 :]
            )
    return html


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
