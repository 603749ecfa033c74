"""What counts of a text: its words in one spelling, apart from what others put around it (labels, tags, links).

`normal(text)` and `normal_post(title, text)` are where everything in this folder begins. Words are lower case; each
Chinese or Japanese sign is a word of its own; numbers stay whole. Nothing here knows of other posts.

There are two steps: `trimmed_post` cuts at both ends with a few patterns, then `spelled` finds the words. The indexes
take the second step for many texts at once (`spelling.py`), by the same character classes.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from unicodedata import normalize


class Normal(NamedTuple):
    """A text as it is compared.

    `core` is its words with one space between them. The first `head` of them are the title's, if there is more than a
    title; the last `tail` of them are tags or stand behind a dash, and may be missing elsewhere. `labels` (BREAKING,
    快讯, a publisher's name) are not in it and mean nothing. `mentions` are whom it speaks to. `cut` says that the
    text ends in dots: it goes on elsewhere; `torn` that they follow a letter: the last word may go on as well.
    """

    core: str
    head: int = 0
    tail: int = 0
    labels: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    cut: bool = False
    torn: bool = False

    @property
    def words(self) -> list[str]:
        return self.core.split()


class Trimmed(NamedTuple):
    """A text in lower case whose ends are known, but not yet its words."""

    head: str
    body: str
    tail: str
    labels: tuple[str, ...]
    mentions: tuple[str, ...]
    cut: bool
    torn: bool


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What stands before a text, with a colon, a dash or brackets, and says nothing of its own. Lower case, words by "_".
LABELS = frozenset(
    label.replace("_", " ")
    for label in words(
        "breaking breaking_news breakingnews just_in justin watch watch_live live live_now live_updates update updated"
        " updates alert news_alert exclusive video photo photos pictures in_pictures read read_more must_read"
        " must_watch listen developing developing_story new news newsflash flash urgent icymi opinion analysis report"
        " confirmed happening_now now top_story trending hot thread headline headlines latest official rumor"
        " rumour update_1 update_2 update_3 update_4 update_5 update_6 corrected correction refile"
        " 快讯 最新 突发 速报 重磅 独家 热点 关注 视频 图集 直播 滚动 更新 转发 微博 热搜 热议 头条 要闻 速看 提醒 组图"
        " 刚刚 最新消息 突发新闻 最新进展 实时 快报 新闻 重磅消息 号外 爆料 现场 话题 紧急 官宣 资讯 早报 晚报 快訊"
        " 突發 獨家 最新消息 即時 轉發 速報 号外 動画 写真"
    )
)

# Who says it: what stands behind a headline after a dash or a bar, or in brackets with "source". Words that publishers'
# names are made of, and names that are made of nothing else.
PUBLISHER_WORDS = words(
    "news times post daily herald tribune journal gazette chronicle observer telegraph guardian independent standard"
    " mirror express star sun globe examiner inquirer courier dispatch bulletin press wire newswire weekly magazine"
    " review today tonight online tv radio fm network media report reports blog com net org"
    " reuters ap afp upi bbc cnn nbc cbs abc pbs npr msnbc cnbc fox bloomberg forbes fortune politico axios vox vice"
    " buzzfeed huffpost huffington yahoo msn aol techcrunch wired verge engadget mashable cnet zdnet gizmodo slate"
    " salon atlantic economist newsweek newyorker variety billboard espn wsj nyt nytimes ft marketwatch barrons"
    " tass xinhua kyodo dpa efe ansa aljazeera jazeera dw rfi sky itv euronews"
)
PUBLISHER_ENDINGS = (
    "新闻",
    "新聞",
    "新闻网",
    "网",
    "網",
    "报",
    "報",
    "日报",
    "晚报",
    "社",
    "电视台",
    "客户端",
    "频道",
    "卫视",
    "在线",
    "周刊",
    "杂志",
    "财经",
    "微博",
    "头条",
    "传媒",
)

# Words that may come or go without changing what a text says. No negation, no direction, no quantity is among them.
FUNCTION_WORDS = words(
    "a an the and of in on at to for with by from as is are was were be been that this it its i we our my your his her"
    " their so just s t re ve ll amp w"
)
FUNCTION_SIGNS = words("了 的 吧 啊 呢 啦 呀 哦 嘛 哈 就")

# Words that any two headlines may share. Rarer ones weigh little by themselves once enough posts have been seen.
COMMON = words(
    " a about after again against all also am amid among an and any are around as at away back be became because been"
    " before behind being between both but by came can come could day days did do does doesnt doing done dont down"
    " during each even ever every few first for from get gets getting give go goes going gone got had has have having"
    " he her here him himself his how i if im in into is isnt it its itself just keep last less let like look made"
    " make makes making many may me might more most much must my near never new next no not now of off on once one"
    " only onto or other our out over own per put said same saw say saying says see she should since so some still"
    " such take takes than that the their them then there these they thing things this those though three through to"
    " today told tomorrow tonight too took two under until up upon us use used very via vs want wants was wasnt way we"
    " week well went were what when where which while who whom whose why will with within without wont would year"
    " years yes yet yesterday you your monday tuesday wednesday thursday friday saturday sunday amp rt january"
    " february march april june july august september october november december jan feb mar apr jun jul aug sep sept"
    " oct nov dec"
    # German, Dutch, Swedish, Danish, Norwegian
    " der das den dem des ein eine einen einem einer eines und oder nicht auch ist sind wird werden wurde wurden hat"
    " haben im am zum zur bei beim nach von vom vor aus auf mit für über unter gegen durch ohne bis als wie wenn dass"
    " sich er sie wir ihr sein seine ihre noch nur schon jetzt mehr sehr kein keine het een van voor niet maar ook"
    " zijn wordt worden naar bij uit dat dit deze aan om te meer geen nog wel och att det som på är av för inte ett"
    " till har var ska blir efter vid mot sig han hon af til ikke og ikkje fra"
    # Spanish, Portuguese, Italian, French, Catalan, Romanian
    " el la los las lo un una unos unas de del al en y o que se su sus por para con como más pero no es fue ser está"
    " han ha hay este esta estos estas ese esa sobre entre desde hasta tras ya muy le les nos también cuando donde um"
    " uma do da dos das em na nas ao aos à às e ou não mais mas pelo pela com sem seu sua seus suas é foi são ele ela"
    " isso após até já também quando il gli i uno di dello della dei degli delle nel nella nei nelle dal dalla dai sul"
    " sulla che è sono stato non più anche ma fra tra si suo alla allo agli alle dopo ancora l du des au aux et où ne"
    " pas est sont été elle ils elles ce cet cette ces sa ses leur leurs qui dans avec sans sous vers chez plus après"
    " avant d n s c qu j je nous vous tout tous fait els amb per és dels pels și nu din cu mai pe unei unui sunt"
    # Polish, Czech, Slovak, Croatian, Hungarian, Finnish, Turkish
    " w z na do nie się jest są i o od po za dla że jak ale już przez przed pod nad oraz czy co to ten ta tym tej ma"
    " jego jej ich był była było być może także tylko ze ve se je jsou není byl byla bylo aby jako podle už také při"
    " pro sa su nije što ili kod iz sve bio bila biti koji koja koje az és hogy nem egy meg is már csak volt ja ei oli"
    " että hän ovat myös kun mutta bir bu da de için ile çok daha gibi olarak olan değil ne en kadar sonra önce ise"
    " oldu"
    # Russian, Ukrainian, Greek
    " и в во не на с со что как по из за от к о у для до это его ее её их он она они был была было были быть или но а"
    " же бы также при под после только еще ещё уже все всё і й та що з зі із від про як це його її їх або але під"
    " після також ще вже був була було ο η το οι τα του της των τον την τους τις και να με για από στο στη στην στον"
    " στα σε που δεν θα είναι ότι ως κατά μετά"
    # Arabic, Persian, Urdu, Hebrew, Hindi, Bengali
    " في من على إلى عن مع أن إن لا ما هذا هذه ذلك التي الذي بعد قبل كان كانت و أو ثم قد لم لن بين حتى عند هو هي كل به"
    " از در که را با این آن برای است شد می تا یک بر هم نیز شده خود کرد بود کا کی کے کو سے میں ہے ہیں کیا نے پر اور یہ"
    " وہ بھی ہو گیا گئی گئے تھا تھی تھے نہیں ایک ہی کر کرنے ہوا ہوئی تو جو של את על עם לא זה זו הוא היא הם גם כי אל או"
    " כל אחרי לפני יש אין का की के को से में है हैं था थी थे ने पर और यह वह भी हो गया गई नहीं एक ही कर लिए तो जो इस उस"
    " ও এই একটি থেকে করে না"
    # Indonesian, Malay, Vietnamese, Filipino, Swahili
    " yang dan di ke dari untuk dengan pada ini itu tidak akan ada adalah juga dalam oleh sudah bisa saat telah và của"
    " là có cho không được trong với các một những đã này khi người ở ra vào ang ng mga sa ay na at ito hindi ya wa"
    " kwa katika ni hii"
)

# Words that posts of many kinds are made of, in English. Several of them, without a rarer one, make no story.
EVERYDAY = words(
    " able accept according action add address admit agree aim air allow almost already always amazing announce"
    " announced announcement annual another answer app appear area arrive article ask attack attend author award"
    " awesome bad ban based beat beautiful become begin behind best better big bill birthday black blog board body"
    " book boss break bring brings build building business buy call called car card care case cause celebrate center"
    " central centre champion chance change check chief child children choose city claim class clear close club coach"
    " coming comment community company concern congratulation congrat continue conversation cost council country"
    " couple course court create crew crisis crowd cut daily date dead deal death debut decide decision defend delay"
    " demand detail die died different director discuss doctor draw dream drop early easy edition election email end"
    " energy enjoy entry episode event everyone everything exclusive expect expected express extra eye face fail fall"
    " family fan fans fast favourite favorite fear feature feel fight film final finally find fire follow food force"
    " forward four five six seven eight nine ten found free friend full fun fund future game girl glad goal gold good"
    " government great group grow guest guide half hand happen happened happy hard head health hear heart help high"
    " history hit hold holiday home honor honour hope host hot hour house huge human idea important include industry"
    " info information inside interest interview issue item job join joined key kid kill killed know lack large late"
    " later latest launch law lead leader learn leave left life light line link list listen live local long lose loss"
    " lost lot love low main major man market match maybe mayor mean meet meeting member men message million minister"
    " minute miss moment money month morning move movie music name nation national need news night notice number offer"
    " office officer official old online open opens order part party pass past pay people person photo pic picture"
    " plan play player pleased pleasure please point police policy poll post power president press price pride problem"
    " project proud public question quick race raise rate reach read reader ready real reason recap recent record"
    " recovery release released remember report reporter resident rest result return reveal review right rise road"
    " role rule run sale school score season second secret sell send senior serious serve service set share short show"
    " side sign small social special speech speed speedy spend sport staff stage stand star start state statement"
    " station stay stop story street strong student submitted success suffer summer support sure surprise survey"
    " system talk talking team test thank thanks thought time tip title together top topic total town trial trip"
    " trouble true try turn update urge victory video view visit visiting voice vote wait walk war warn watch week"
    " weekend welcome white whole win winner wins winter wish wishing woman women won wonderful word work worker"
    " working world worry write wrong young"
)

# What people write on holidays and anniversaries: many do on the same day, and each speaks for itself.
OCCASIONS = words(
    " anniversary anniversaries bless blessed blessing celebrating celebration cheer christmas commemorate"
    " commemorating dad dads diwali easter eid fallen father fathers grateful gratitude greeting halloween hanukkah"
    " happiness hashanah honored honoring joy joyful joyous juneteenth kippur kwanzaa legacy loved memorial merry mlk"
    " mom moms mother mothers neverforget passover prayer prayers prosperous ramadan reflect remembered remembering"
    " remembrance rosh roshhashanah sacrifice sacrificed saluting tet thankful thanksgiving tribute valentine veteran"
    " veterans xmas yom"
)

# What greetings, answers, series, service messages and release notes are made of, in English: without another word, two
# that are the same do not speak of the same thing.
CHATTER = words(
    " agreed bless bug bugs bye changelog chapter cheers christmas correct degraded digest disruption discussion easter"
    " eid episode exactly fix fixed fixes goodbye halloween hanukkah hello hey hi hotfix improvement improvements"
    " incident indeed intro introducing investigating lol maintenance merry minor monitoring monthly motivation newbie"
    " newsletter noel nope ok okay omg outage part patch prayers ramadan resolved roundup scheduled sorry status test"
    " testing thanksgiving thread tune tuned untitled upgrade valentine version weekly wow xmas yeah yep"
)

# Words that turn a meaning round, or count. A letter more or less in one of them is never a slip of the finger.
TURNING_WORDS = words(
    "not no nor never none cant cannot wont dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt shouldnt"
    " wouldnt couldnt mustnt without neither nobody nothing nowhere want wants"
    " million millions billion billions trillion trillions hundred thousand"
    " two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen"
    " nineteen twenty thirty forty fifty sixty seventy eighty ninety first second third fourth fifth sixth seventh"
    " eighth ninth tenth once twice"
    " monday tuesday wednesday thursday friday saturday sunday january february march april june july august september"
    " october november december spring summer autumn winter"
    " male female males females north south east west northern southern eastern western"
    " import imports export exports inflow outflow inbound outbound internal external inside outside before after"
    " above below over under more less fewer lower higher upper rise rises rose fall falls fell gain gains lose loses"
    " lost loss win wins won"
    " iran iraq austria australia slovakia slovenia niger nigeria latvia lithuania dominica gambia zambia guinea guyana"
    " mali malta malawi korea"
    " moral amoral typical atypical legal illegal employer employee trainer trainee payer payee latter former later"
    " accept except affect effect casual causal marital martial united untied"
)

# Words that cannot both be true of one event: of each question, the answers. Two texts that are the same but for an
# answer, a number or a negation tell of two events.
OPPOSITES = tuple(
    tuple(map(words, question.split("/")))
    for question in (
        "up rise rises rose risen rising gain gains gained climb climbs climbed jump jumps jumped surge surges surged"
        " soar soars soared higher increase increases increased grow grows grew growth win wins won beat beats"
        " 涨 升 增 胜 赢 高"
        "/down fall falls fell fallen falling lose loses lost drop drops dropped plunge plunges plunged slump slumps"
        " slumped sink sinks sank lower decrease decreases decreased shrink shrinks shrank decline declines declined"
        " 跌 降 减 负 败 输 低",
        "approve approves approved accept accepts accepted allow allows allowed confirm confirms confirmed"
        " support supports"
        "/reject rejects rejected block blocks blocked ban bans banned deny denies denied oppose opposes",
        "open opens opened reopen reopens reopened start starts started begin begins began 开"
        "/close closes closed shut shuts end ends ended stop stops stopped 关 闭 停",
        "buy buys bought 买/sell sells sold 卖",
        "import imports 进 入/export exports 出 退",
        "inflow inbound internal inside 内/outflow outbound external outside 外",
        "before 前 早/after 后 晚",
        "above over more 上 多/below under less fewer 下 少",
        "male males man men boy boys 男/female females woman women girl girls 女",
        "north northern 北/south southern 南/east eastern 东/west western 西",
        "million millions 万/billion billions 亿/trillion trillions/thousand 千/hundred 百",
        "one 一/two 二 两/three 三/four 四/five 五/six 六/seven 七/eight 八/nine 九/ten 十"
        "/eleven/twelve/twenty/thirty/forty/fifty",
        "first/second/third/fourth/fifth/sixth/seventh/eighth/ninth/tenth",
        "monday/tuesday/wednesday/thursday/friday/saturday/sunday",
        "january/february/march/april/june/july/august/september/october/november/december",
        "spring 春/summer 夏/autumn 秋/winter 冬",
        "legal/illegal",
        "guilty/innocent acquitted",
        "alive 生/dead 死",
        "left 左/right 右",
        "large larger big bigger 大/small smaller 小",
        "best better 好/worst worse 坏",
        "strong stronger 强/weak weaker 弱",
        "fast faster 快/slow slower 慢",
        "long longer 长/short shorter 短",
        "hot 热/cold 冷",
    )
)
NEGATIONS = words(
    "not no nor never none cant cannot wont dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt shouldnt"
    " wouldnt couldnt mustnt without neither nobody nothing 不 没 未 无 非 否 勿 莫"
)

# Scripts that are written without spaces: Han, Hiragana, Katakana.
CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Marks that Python does not count as letters and without which words of these scripts would be others.
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0962\u0963\u0981-\u0983\u09bc-\u09cd"
    "\u0a01-\u0a03\u0a3c-\u0a4d\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b57\u0bbe-\u0bcd\u0c00-\u0c04\u0c3e-\u0c56"
    "\u0c81-\u0c83\u0cbc-\u0cd6\u0d00-\u0d03\u0d3b-\u0d4d\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd"
    "\u0f71-\u0f84\u102b-\u103e\u17b4-\u17d3\u1dc0-\u1dff"
)
CURRENCY = "$€£¥₿"
LETTERS = rf"(?:[^\W\d_{CJK}]|[{_MARKS}])"
_WORD = re.compile(
    rf"(?:(?<!\S)-)?[{CURRENCY}]?\d+(?:[.,:/]\d+)*(?:%|(?:[^\W_{CJK}]+|[{_MARKS}]+)*)"
    rf"|(?:[^\W\d_{CJK}]+|[{_MARKS}]+)(?:[^\W_{CJK}]+|[{_MARKS}]+)*"
    rf"|[{CJK}]"
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d\d\d(?!\d))")

_LINK = re.compile(r"https?:[!-~]*")
_BARE_LINK = re.compile(r"(?:www\.|\bpic\.twitter\.com/|\bt\.co/|\bt\.cn/)[!-~]*")
_EMOTE = re.compile(rf"\[(?=[^\[\]]*[{CJK}])[^\[\]\s\d]{{1,8}}\]")
_WHOLE_TOPIC = re.compile(rf"[\W_]*#([^#]*[{CJK}][^#]*)#[\W_]*")

_RELAY = re.compile(
    r"[\W_]{0,8}(?:(?:转发微博|轉發微博|转发|轉發|repost)[\s:。.,!]*)?"
    r"(?:(?:rt|mt|repost)\s+@\w+\s*[:\s]\s*|//\s*@[^:\s]{1,30}\s*:\s*|回复\s*@[^:\s]{1,30}\s*:\s*)"
)
_MENTIONS = re.compile(r"[^\w@]{0,8}@\w+(?:[\s,:]+\.?@\w+)*[\s,:]+")
_NAME = re.compile(r"@\w+")
# A label stands in brackets, between number signs, or before a colon, a bar, a dash or an exclamation mark.
_LABEL = re.compile(
    r"[^\w【\[(#]{0,12}(?:[【\[(#]\s*([^\W_][^【】\[\]()#:]{0,24}?)\s*[】\])#]"
    r"|([^\W_]+(?: [^\W_]+){0,2})\s*(?=[:|!–—-]))"
    r"[\s:|!–—-]*"
)
_TAGS = re.compile(r"(?:[\s,.]*#[^\s#]+#?)+[^\w#]*$")
_SOURCE = re.compile(
    r"\s*(?:\((?:来源|來源|图源|source|via|from)\s*:?\s*([^()]{1,30})\)"
    r"|(?:\b(?:via|h/t)\s+@|来源:|\bsource:\s*)(\S{2,24}))[\s.。]*$"
)
_IN_BRACKETS = re.compile(r"\s*\(([^()]{2,30})\)[\s.。]*$")
_SUFFIX = re.compile(r"(?:\s[-–—|·•]+\s+|\s*[|_]\s*)([^|_–—·•:\d,;?!\"]{2,32})$")
_DASH = re.compile("[–—·•]")
_CUT = re.compile(r"(\w?)\s*[\[(]?\.\.+[\])]?\s*(?:\(?(?:read|learn|see)?\s*more\)?)?\W*$")
_MOST_ROUNDS = 4
# Nobody writes more; what is longer is told by its beginning.
MOST_CHARACTERS = 200_000


def normal(text: str) -> Normal:
    """The text as it is compared. Its core is empty if there is nothing to compare: only links or emoji."""
    return normal_post(text, "")


def normal_post(title: str, text: str) -> Normal:
    """Title and text as one. A title that only repeats the beginning of the text is left out."""
    post = trimmed_post(title, text)
    parts = [spelled(part) for part in (post.head, post.body, post.tail)]
    head, _, tail = (part.count(" ") + 1 if part else 0 for part in parts)
    core = " ".join(filter(None, parts))
    return Normal(core, head, tail, post.labels, post.mentions, post.cut, post.torn)


def spelled(text: str) -> str:
    """The words of a trimmed text with one space between them."""
    core = " ".join(_WORD.findall(text))
    return _THOUSANDS.sub("", core) if "," in core else core


def trimmed_post(title: str, text: str) -> Trimmed:
    """A post in lower case, with what stands around it set aside."""
    if not text:
        return _trimmed(title)
    if not title:
        return _trimmed(text)
    body, head = _trimmed(text), _trimmed(title)
    if not body.body or not head.body:
        return body if body.body else head
    if body.body.startswith(head.body):
        if head.cut:
            return body
        at = len(head.body)
        return body._replace(head=body.body[:at], body=body.body[at:])
    return body._replace(head=f"{head.body} {head.tail}", labels=head.labels)


def _trimmed(text: str) -> Trimmed:
    text = _plain(text[:MOST_CHARACTERS])
    text, labels, mentions = _without_beginning(text)
    text, tail, more_labels, tear = _without_end(text)
    return Trimmed("", text, tail, (*labels, *more_labels), mentions, tear is not None, bool(tear))


def _plain(text: str) -> str:
    """One spelling of each character; no links, no apostrophes, no drawn faces."""
    if not text.isascii():
        text = normalize("NFKC", text).replace("’", "").replace("‘", "")
    text = text.lower().replace("'", "")
    if "http" in text:
        text = _LINK.sub(" ", text)
    if "www." in text or "t.c" in text or "pic." in text:
        text = _BARE_LINK.sub(" ", text)
    if "[" in text:
        text = _EMOTE.sub(" ", text)
    if "#" in text and len(text) < 200 and (topic := _WHOLE_TOPIC.fullmatch(text)):
        text = topic[1]
    return text


def _without_beginning(text: str) -> tuple[str, list[str], tuple[str, ...]]:
    """The text without who passed it on, whom it speaks to and what the newsroom shouted before it."""
    labels: list[str] = []
    mentions: tuple[str, ...] = ()
    for _ in range(_MOST_ROUNDS):
        before = len(text)
        if "@" in text:
            if relay := _RELAY.match(text):
                text = text[relay.end() :]
                labels.append("rt")
            elif addressed := _MENTIONS.match(text):
                mentions += tuple(sorted(_NAME.findall(addressed[0])))
                text = text[addressed.end() :]
        if (label := _LABEL.match(text)) and (found := (label[1] or label[2])) in LABELS:
            labels.append(found)
            text = text[label.end() :]
        if len(text) == before:
            break
    return text, labels, mentions


def _without_end(text: str) -> tuple[str, str, list[str], str | None]:
    """The text, its tail, publishers' names; the letter before the dots at its end, or None if it is not cut."""
    labels: list[str] = []
    tail = ""
    tear: str | None = None
    for _ in range(_MOST_ROUNDS):
        text = text.rstrip()
        before = len(text)
        end = text[-48:]
        if ".." in end and tear is None and not tail and (dots := _CUT.search(text, max(0, before - 40))):
            tear = dots[1]
            text = text[: dots.end(1)]
        if "#" in end and (tags := _TAGS.search(text, max(0, before - 300))):
            tail = f"{tags[0]} {tail}"
            text = text[: tags.start()]
        if source := _publisher(text, end):
            start, name = source
            if is_publisher(name):
                labels.append(name)
            else:
                tail = f"{text[start:]} {tail}"
            text = text[:start]
        if len(text) == before:
            break
    return text, tail, labels, tear


def _publisher(text: str, end: str) -> tuple[int, str] | None:
    """Where a name begins that stands behind the text, and the name."""
    start = max(0, len(text) - 48)
    if ("@" in end or ")" in end or ":" in end) and (source := _SOURCE.search(text, start)):
        return source.start(), (source[1] or source[2]).strip()
    if end.endswith(")") and (source := _IN_BRACKETS.search(text, start)) and is_publisher(source[1]):
        return source.start(), source[1]
    if "|" in end or "_" in end or "- " in end or (not end.isascii() and _DASH.search(end)):
        suffix = _SUFFIX.search(text, start)
        if suffix and suffix.start() > 0 and len(suffix[1].split()) <= 4 and (end.isascii() or len(suffix[1]) <= 24):
            return suffix.start(), suffix[1].strip()
    return None


def is_publisher(name: str) -> bool:
    """Whether a name at the end of a headline is one that publishers have, rather than words of the headline."""
    words = name.replace(".", " ").replace("@", " ").split()
    return any(word in PUBLISHER_WORDS for word in words) or name.endswith(PUBLISHER_ENDINGS)
