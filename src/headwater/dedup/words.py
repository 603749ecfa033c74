"""Word lists: what newsrooms put around a text, what carries no meaning of its own, what turns a meaning round."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What stands before a text, with a colon, a dash or brackets, and says nothing of its own. Lower case, words by "_".
LABELS = frozenset(
    label.replace("_", " ")
    for label in _words(
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
PUBLISHER_WORDS = _words(
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
FUNCTION_WORDS = _words(
    "a an the and of in on at to for with by from as is are was were be been that this it its i we our my your his her"
    " their so just s t re ve ll amp w"
)
FUNCTION_SIGNS = _words("了 的 吧 啊 呢 啦 呀 哦 嘛 哈 就")

# Words that turn a meaning round, or count. A letter more or less in one of them is never a slip of the finger.
TURNING_WORDS = _words(
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
