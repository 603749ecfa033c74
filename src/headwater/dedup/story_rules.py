"""What is asked of a post to join a story, and what of it is read: its title and the beginning of its text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from unicodedata import normalize

from headwater.dedup.normal import trimmed_post, words

# Of a text, so many characters are read: who did what stands at the beginning.
LEAD = 600
# So many of a title: it may be all that a post has.
LONGEST_TITLE = 4096
MOST_TERMS = 64
TITLE_WEIGHT = 1.0
LEAD_WEIGHT = 0.6
# How much of a coincidence a shared term excludes: a pair of signs is often half a name.
WORD_EVIDENCE = 1.0
PAIR_EVIDENCE = 0.5
EVERYDAY_EVIDENCE = 0.875
# A number or a year says little without a word.
NUMBER_EVIDENCE = 0.0
# A long run of letters in a script without spaces is a whole phrase.
PHRASE_EVIDENCE = 2.0
PHRASE_LETTERS = 8

_LINK = re.compile(r"https?:\S+|www\.\S+")


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

# By these words the language of a post is known: a story is told in one. Where none of these is written, or as many of
# two languages, nobody knows. Scripts other than the Latin one need none: they share no words with it.
LANGUAGES = (
    " the and of to for is are was were with at by from as after over will has have be it that his her their who how"
    " what says not this into about in on an so do no me he she we you your my out up off if or but us all now can"
    " die",
    " el la los las de del en con por para que una un al su sus más está fue tras y lo le como se desde hasta pero ser",
    " do da de dos das em na nas ao aos com por para que uma um não mais é foi são pelo pela após até se como"
    " no os as sem",
    " le les des du de et une un au aux dans pour sur avec est sont par pas qui que plus après ce cette ses en il la",
    " der die das den dem des ein eine einen und ist sind wird im am zum zur bei nach von vom vor aus auf mit für über"
    " nicht auch sich er sie wie",
    " il lo gli di del della dei delle nel nella che è sono non più per con una un alla dopo anche ha si da la le",
    " het een van voor niet met zijn wordt naar bij uit dat op te aan om is de en ook maar",
    " je na za se ki ne bo iz po ob pri tudi kot že še da od ali ter pa",
    " w z na do nie się jest są od po za dla że jak przez przed oraz ale już",
    " och att det som på är av för inte ett till har med den en efter vid mot om",
    " ve bir bu için ile çok daha olarak olan sonra",
    " yang dan di ke dari untuk dengan pada ini itu tidak akan",
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


# What makes the odds that a post and a story tell of one event: a constant, and what is added for each of these: the
# logarithms of the odds of their likeness, of the shared words, of the story's posts, of the post's terms, of posts
# times words, of how many other posts have the second rarest word that is shared; and which share of the posts that
# have the shared words are the story's. `bench/train_verifier.py` finds them.
ODDS = (-2.0449, 1.4024, 0.9328, 0.7489, 0.2567, -0.6062, -0.196, 2.1956)
# The same for posts of many terms (title and lead) that are words; between few and many terms, in between. There were
# no long posts in signs to find them with.
LONG_ODDS = (-3.3773, 2.3128, 1.0397, 0.7768, 0.2607, -0.8836, 0.0067, 2.7078)
LOGS = len(ODDS) - 1
# What makes the odds that two stories are one: a constant, the logarithms of the larger's and the smaller's posts, the
# odds that the last bridge belongs to the second, and the logarithm of the sum of these probabilities over all bridges.
MEETING_ODDS = (0.0422, 0.4998, -0.8945, 0.6149, 0.7901)


class StoryRules(NamedTuple):
    """What is asked of a post: a likeness, and that it belongs to the story with at least the probability `threshold`.

    `short` and `long` are the likeness asked of posts with few and with many terms, `signs` of those with many pairs of
    signs: one word of Chinese is several pairs, and likeness is spread over them.
    """

    threshold: float
    window: float
    short: float = 0.12
    long: float = 0.18
    signs: float = 0.16
    odds: tuple[float, ...] = ODDS
    long_odds: tuple[float, ...] = LONG_ODDS
    # Of stories that are nearly as alike as the most alike one, the most probable is chosen. Nearly is by this factor,
    # and the closer to 1 the more alike that one is: between two texts of one pattern, the word that differs decides.
    nearly: float = 0.3
    # For a second story, which a post may be a bridge to, nearly is by this factor.
    nearly_second: float = 0.0
    # A post that belongs to a second story with this probability is a bridge. Two stories become one if that is this
    # probable.
    bridge: float = 0.1
    meeting: float = 0.75
    meeting_odds: tuple[float, ...] = MEETING_ODDS
    few_terms: float = 8.0
    many_terms: float = 16.0
    most_posts: int = 1000
    least_evidence: float = 1.5
    # The same while few posts were seen, and of posts in signs: half a pair is no half of a word.
    least_at_first: float = 2.0
    # To this evidence, an everyday word adds so much, and 1 over so many for each post of the story, up to 1.
    everyday: float = 0.4
    everyday_posts: float = 60.0
    # While few posts were seen, a shared word that stands behind another adds this much: the two may be one name.
    side_by_side: float = 0.4
    # A word of more stories than this share of all, but at least and at most so many, adds nothing to it.
    everyday_share: float = 0.15
    least_everyday: float = 10.0
    most_everyday: float = 100.0
    # How many entries of posting lists are read for a post, those of the rarest terms first: at least, for each of its
    # terms, and at most of one term.
    least_entries: int = 480
    entries_per_term: int = 24
    most_entries_per_term: int = 144
    # Embeddings add so much to a likeness, times by how much the meaning is closer than that of any two posts, but only
    # for stories whose words reach this share of what is asked.
    meaning: float = 0.1
    usual_closeness: float = 0.5
    least_share: float = 0.4
    # Before anything was seen, each term is thought to be one of so many.
    background: float = 10000.0


def parts_of(posts: Iterable[tuple[str, str]]) -> list[str]:
    """For each title and text what is read of them, without labels, publishers and links, in lower case."""
    return [part for title, text in posts for part in (_title(title), _lead(text) if text else "")]


def _title(title: str) -> str:
    trimmed = trimmed_post(title, "")
    return f"{trimmed.body[:LONGEST_TITLE]} {trimmed.tail[:LEAD]}" if trimmed.tail else trimmed.body[:LONGEST_TITLE]


def _lead(text: str) -> str:
    text = text[:LEAD]
    if not text.isascii():
        text = normalize("NFKC", text)
    text = text.lower()
    return _LINK.sub(" ", text) if "http" in text or "www." in text else text
