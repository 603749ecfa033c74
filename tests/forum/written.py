"""The same board and the same thread in the markup of each forum software, written for these tests.

The board lists a pinned thread, 11 "Rules of the board", and 12 "Which fan is quiet?". Thread 12 has two posts: 501 by
alder, with a picture, a script and a signature, and 502 by birch, which quotes it where the software can say so.
"""

# ruff: noqa: E501 - markup is easier to compare on one line
from __future__ import annotations

from typing import NamedTuple

SITE = "https://forum.example"
SAID = 'Which fan is <b onclick="evil()">quiet</b>?<script>evil()</script><img src="/fan.png" alt="a fan">'
ANSWER = 'The <a href="javascript:evil()">slow</a> one.'


class Written(NamedTuple):
    list_url: str
    list_page: str
    thread_url: str
    thread_page: str
    next_list: str
    answers: bool = True


def _page(head: str, body: str, html: str = "", attributes: str = "") -> str:
    return f"<!DOCTYPE html><html lang=en {html}><head><title>Fans</title>{head}</head><body {attributes}>{body}</body></html>"


def _xenforo(id: int, title: str, pinned: str) -> str:
    return (
        f'<div class="structItem structItem--thread js-threadListItem-{id}">{pinned}<div class="structItem-title">'
        f'<a class="labelLink" href="/?prefix">News</a><a href="/threads/a-title.{id}/unread">{title}</a></div>'
        '<div class="structItem-cell--meta"><dl><dt>Replies</dt><dd>1</dd></dl></div>'
        '<time class="structItem-latestDate u-dt" datetime="2024-03-05T13:00:00+0000">A moment ago</time></div>'
    )


def _xenforo_post(id: int, author: str, at: str, said: str, quote: str = "") -> str:
    return (
        f'<article class="message message--post js-post" data-author="{author}" data-content="post-{id}" id="js-post-{id}">'
        f'<h4 class="message-name">{author}</h4><ul class="message-attribution-main"><time class="u-dt"'
        f' datetime="{at}">Mar 5</time></ul><article class="message-body"><div class="bbWrapper">{quote}{said}</div></article>'
        '<aside class="message-signature">buy my fans</aside></article>'
    )


def _phpbb(id: int, title: str, kind: str) -> str:
    return (
        f'<li class="row bg1 {kind}"><dl><dt><a href="./viewtopic.php?f=2&amp;t={id}&amp;sid=abc" class="topictitle">{title}</a>'
        f'</dt><dd class="posts">1 Replies</dd><dd class="views">93</dd><dd class="lastpost"><a'
        f' href="./viewtopic.php?p=502&amp;sid=abc#p502">last</a></dd></dl></li>'
    )


def _phpbb_post(id: int, author: str, at: str, said: str, quote: str = "") -> str:
    return (
        f'<div id="p{id}" class="post has-profile bg2"><div class="postbody"><p class="author">Post by <strong><a'
        f' class="username">{author}</a></strong> » <time datetime="{at}">Tue Mar 05, 2024</time></p>'
        f'<div class="content">{quote}{said}</div><div class="signature">buy my fans</div></div></div>'
    )


def _discuz(id: int, title: str, kind: str) -> str:
    return (
        f'<tbody id="{kind}_{id}"><tr><th><a href="forum.php?mod=viewthread&amp;tid={id}&amp;extra=page%3D1"'
        f' class="s xst">{title}</a></th><td class="by"><cite>alder</cite><em><span>2024-3-5</span></em></td>'
        '<td class="num"><a>1</a><em>93</em></td><td class="by"><cite>birch</cite><em><a><span title="2024-3-5 21:00">'
        "半小时前</span></a></em></td></tr></tbody>"
    )


def _discuz_post(id: int, author: str, at: str, said: str, quote: str = "") -> str:
    return (
        f'<div id="post_{id}"><table id="pid{id}" class="plhin"><tr><td class="pls"><div class="authi"><a class="xw1">{author}'
        f'</a></div></td><td><em id="authorposton{id}">发表于 {at}</em><table><tr><td class="t_f" id="postmessage_{id}">'
        f'<i class="pstatus">本帖最后由 x 编辑</i>{quote}{said}</td></tr></table><div class="sign">buy my fans</div></td></tr></table></div>'
    )


def _vbulletin(id: int, title: str, sticky: str) -> str:
    return (
        f'<tr><td id="td_threadtitle_{id}">{sticky}<a href="showthread.php?t={id}" id="thread_title_{id}">{title}</a></td>'
        '<td><a href="showthread.php?p=502#post502">last</a></td><td><a href="misc.php?do=whoposted&amp;t=1">1</a></td></tr>'
    )


def _vbulletin_post(id: int, author: str, at: str, said: str, quote: str = "") -> str:
    return (
        f'<table id="post{id}"><tr><td class="thead">{at}</td></tr><tr><td><a class="bigusername">{author}</a></td></tr><tr><td>'
        f'<div id="post_message_{id}">{quote}{said}</div></td></tr></table>'
    )


def _invision(id: int, title: str, pinned: str) -> str:
    return (
        f'<li class="ipsDataItem" data-rowid="{id}"><h4 class="ipsDataItem_title">{pinned}<a href="/topic/{id}-a-title/">{title}'
        '</a></h4><ul class="ipsDataItem_stats"><li><span class="ipsDataItem_stats_number">1</span></li></ul>'
        '<ul class="ipsDataItem_lastPoster"><time datetime="2024-03-05T13:00:00Z">1 hour ago</time></ul></li>'
    )


def _invision_post(id: int, author: str, at: str, said: str, quote: str = "") -> str:
    return (
        f'<article id="elComment_{id}" class="ipsComment"><aside><h3 class="cAuthorPane_author">{author}</h3></aside>'
        f'<div data-commentid="{id}"><p class="ipsType_reset"><time datetime="{at}">Mar 5</time></p>'
        f'<div data-role="commentContent">{quote}{said}</div><div data-role="memberSignature">buy my fans</div></div></article>'
    )


def _nodebb(id: int, title: str, pinned: str) -> str:
    return (
        f'<li component="category/topic" class="{pinned}" data-tid="{id}"><h3 component="topic/header"><a href="/topic/{id}/a">'
        f'{title}</a></h3><div class="stats-postcount"><span class="human-readable-number" title="2">2</span></div>'
        '<div class="teaser"><span class="timeago" title="2024-03-05T13:00:00.000Z"></span></div></li>'
    )


def _nodebb_post(id: int, author: str, at: str, said: str, quote: str = "") -> str:
    return (
        f'<li component="post" data-pid="{id}" data-username="{author}" data-timestamp="{at}" {quote}>'
        f'<div component="post/content">{said}</div><div component="post/signature">buy my fans</div></li>'
    )


def _smf(id: int, title: str, sticky: str) -> str:
    return (
        f'<tr class="{sticky}"><td class="subject"><span id="msg_{id}0"><a href="index.php?topic={id}.0">{title}</a></span></td>'
        '<td class="stats">1 Replies<br>93 Views</td><td class="lastpost"><a href="index.php?topic=1.msg502#msg502">x</a></td></tr>'
    )


def _smf_post(id: int, author: str, at: str, said: str, quote: str = "") -> str:
    return (
        f'<div class="post_wrapper"><div class="poster"><h4><a>{author}</a></h4></div><div class="keyinfo"><div class="smalltext">'
        f'« Reply #1 on: {at} »</div></div><div class="post"><div class="inner" id="msg_{id}">{quote}{said}</div></div>'
        '<div class="signature">buy my fans</div></div>'
    )


def _mybb(id: int, title: str, sticky: str) -> str:
    return (
        f'<tr class="inline_row"><td class="{sticky}"><span id="tid_{id}"><a href="showthread.php?tid={id}">{title}</a></span></td>'
        '<td><a href="misc.php?action=whoposted">1</a></td><td class="lastpost"><span title="03-05-2024">Today</span></td></tr>'
    )


def _mybb_post(id: int, author: str, at: str, said: str, quote: str = "") -> str:
    return (
        f'<div class="post" id="post_{id}"><div class="post_author"><div class="author_information"><strong>{author}</strong></div>'
        f'</div><span class="post_date">{at}</span><div class="post_body" id="pid_{id}">{quote}{said}</div>'
        '<div class="signature">buy my fans</div></div>'
    )


def _fluxbb(id: int, title: str, sticky: str) -> str:
    return (
        f'<tr class="{sticky}"><td class="tcl"><a href="viewtopic.php?id={id}">{title}</a></td><td class="tc2">1</td>'
        '<td class="tc3">93</td><td class="tcr"><a href="viewtopic.php?pid=502#p502">x</a></td></tr>'
    )


def _fluxbb_post(id: int, author: str, at: str, said: str, quote: str = "") -> str:
    return (
        f'<div id="p{id}" class="blockpost"><h2><span>#1 <a href="viewtopic.php?pid={id}#p{id}">{at}</a></span></h2>'
        f'<div class="postleft"><dl><dt><strong>{author}</strong></dt></dl></div><div class="postmsg">{quote}{said}'
        '<div class="postsignature">buy my fans</div></div></div>'
    )


def _vanilla(id: int, title: str, pinned: str) -> str:
    return (
        f'<li id="Discussion_{id}" class="Item {pinned} ItemDiscussion"><div class="Title"><a href="/discussion/{id}/a">{title}</a>'
        '</div><span class="CommentCount"><span class="Number">1</span></span><span class="LastCommentDate"><time'
        ' datetime="2024-03-05T13:00:00+00:00">1:00PM</time></span></li>'
    )


def _vanilla_post(id: int, author: str, at: str, said: str, quote: str = "") -> str:
    return (
        f'<li class="Item ItemComment" id="Comment_{id}"><span class="Author"><a class="Username">{author}</a></span>'
        f'<time datetime="{at}">March 5</time><div class="Message">{quote}{said}<div class="Signature">buy my fans</div></div></li>'
    )


def _bbpress(id: int, title: str, sticky: str) -> str:
    return (
        f'<ul class="topic {sticky}"><li><a class="bbp-topic-permalink" href="/topic/{id}/">{title}</a></li>'
        '<li class="bbp-topic-reply-count">1</li><li class="bbp-topic-freshness"><a title="March 5, 2024 at 1:00 pm">x</a></li></ul>'
    )


def _bbpress_post(id: int, author: str, at: str, said: str, quote: str = "") -> str:
    return (
        f'<div class="post-{id} reply"><div class="bbp-reply-header"><span class="bbp-reply-post-date">{at}</span></div>'
        f'<span class="bbp-author-name">{author}</span><div class="bbp-reply-content">{quote}{said}</div></div>'
    )


def _stackexchange(id: int, title: str) -> str:
    return (
        f'<div class="s-post-summary" data-post-id="{id}"><div class="s-post-summary--stats-item" title="1 answer">'
        f'<span class="s-post-summary--stats-item-number">1</span></div><h3 class="s-post-summary--content-title"><a'
        f' href="/questions/{id}/a-title">{title}</a></h3></div>'
    )


def _stackexchange_post(kind: str, id: int, author: str, at: str, said: str) -> str:
    return (
        f'<div {kind}="{id}" class="{"question" if "question" in kind else "answer"}"><div class="js-post-body">{said}</div>'
        f'<div class="post-signature"><span class="relativetime" title="{at}">Mar 5</span><div class="user-details"><a>{author}</a>'
        "</div></div></div>"
    )


def _discourse(id: int, title: str, pinned: str) -> str:
    return (
        f'<tr class="topic-list-item {pinned}"><td><a class="title raw-topic-link" href="/t/a-title/{id}">{title}</a></td>'
        '<td class="replies"><span class="posts">1</span></td><td>March 5, 2024</td></tr>'
    )


def _discourse_post(id: int, author: str, at: str, said: str) -> str:
    return (
        f'<div id="post_{id}" class="topic-body crawler-post"><span class="creator"><span itemprop="name">{author}</span></span>'
        f'<time class="post-time" datetime="{at}">March 5</time><div class="post" itemprop="text">{said}</div></div>'
    )


def _v2ex(id: int, title: str, style: str) -> str:
    return (
        f'<div class="cell item" style="{style}"><span class="item_title"><a class="topic-link" href="/t/{id}#reply1">{title}</a></span>'
        '<span class="topic_info"><strong><a href="/member/alder">alder</a></strong> 10 小时前 <strong><a href="/member/birch">'
        'birch</a></strong></span><a class="count_livid" href="/t/1#reply1">1</a></div>'
    )


_FLARUM_POST = "<article data-id='{}'><div class=PostUser><h3 class=PostUser-name>{}</h3></div><time datetime={}></time><div class=Post-body>{}</div></article>"
_ISO = ("2024-03-05T12:30:00+00:00", "2024-03-05T13:00:00+00:00")
_WORDS = ("March 05, 2024, 12:30:00 pm", "March 05, 2024, 01:00:00 pm")
_DASHES = ("03-05-2024, 12:30 PM", "03-05-2024, 01:00 PM")
_PLAIN = ("2024-03-05 12:30:00", "2024-03-05 13:00:00")
_EAST = ("2024-3-5 20:30", "2024-3-5 21:00")
_RULES, _FAN = "Rules of the board", "Which fan is quiet?"

WRITTEN = {
    "xenforo": Written(
        f"{SITE}/forums/fans.2/",
        _page(
            "",
            _xenforo(11, _RULES, '<i class="structItem-status structItem-status--sticky"></i>')
            + _xenforo(12, _FAN, "")
            + '<a class="pageNav-jump pageNav-jump--next" href="/forums/fans.2/page-2">Next</a>',
            "id=XF",
        ),
        f"{SITE}/threads/a-title.12/",
        _page(
            "",
            f'<h1 class="p-title-value">{_FAN}</h1>'
            + _xenforo_post(501, "alder", _ISO[0], SAID)
            + _xenforo_post(
                502,
                "birch",
                _ISO[1],
                ANSWER,
                '<blockquote class="bbCodeBlock--quote" data-source="post: 501">q</blockquote>',
            ),
            "id=XF",
        ),
        f"{SITE}/forums/fans.2/page-2",
    ),
    "phpbb": Written(
        f"{SITE}/viewforum.php?f=2",
        _page(
            "",
            f'<ul class="topiclist topics">{_phpbb(11, _RULES, "sticky")}{_phpbb(12, _FAN, "")}</ul><div class="pagination"><ul>'
            '<li class="arrow next"><a rel="next" href="./viewforum.php?f=2&amp;sid=abc&amp;start=25">Next</a></li></ul></div>',
            attributes='id="phpbb" class="section-viewforum"',
        ),
        f"{SITE}/viewtopic.php?t=12",
        _page(
            "",
            f'<h2 class="topic-title"><a>{_FAN}</a></h2>'
            + _phpbb_post(501, "alder", _ISO[0], SAID)
            + _phpbb_post(
                502,
                "birch",
                _ISO[1],
                ANSWER,
                '<blockquote><cite><a href="./viewtopic.php?p=501#p501">↑</a></cite>q</blockquote>',
            ),
            attributes='id="phpbb"',
        ),
        f"{SITE}/viewforum.php?f=2&start=25",
    ),
    "discuz": Written(
        f"{SITE}/forum.php?mod=forumdisplay&fid=2",
        _page(
            '<meta name="generator" content="Discuz! X3.4">',
            f"<table>{_discuz(11, _RULES, 'stickthread')}{_discuz(12, _FAN, 'normalthread')}</table>"
            '<a class="nxt" href="forum.php?mod=forumdisplay&amp;fid=2&amp;page=2">下一页</a>',
        ),
        f"{SITE}/thread-12-1-1.html",
        _page(
            '<meta name="generator" content="Discuz! X3.4">',
            f'<span id="thread_subject">{_FAN}</span><div id="postlist">'
            + _discuz_post(501, "alder", _EAST[0], SAID)
            + _discuz_post(
                502,
                "birch",
                _EAST[1],
                ANSWER,
                '<blockquote><a href="forum.php?goto=findpost&amp;pid=501&amp;ptid=12">q</a></blockquote>',
            )
            + "</div>",
        ),
        f"{SITE}/forum.php?mod=forumdisplay&fid=2&page=2",
    ),
    "vbulletin": Written(
        f"{SITE}/forumdisplay.php?f=2",
        _page(
            '<meta name="generator" content="vBulletin 3.8.7">',
            f"<table>{_vbulletin(11, _RULES, '<img src=sticky.gif>')}{_vbulletin(12, _FAN, '')}</table>"
            '<a rel="next" href="forumdisplay.php?f=2&amp;page=2">&gt;</a>',
        ),
        f"{SITE}/showthread.php?t=12",
        _page(
            '<meta name="generator" content="vBulletin 3.8.7">',
            f"<td class=navbar><strong>{_FAN}</strong></td><h1>{_FAN}</h1>"
            + _vbulletin_post(501, "alder", _DASHES[0], SAID)
            + _vbulletin_post(
                502, "birch", _DASHES[1], ANSWER, '<a href="showthread.php?p=501#post501" rel="nofollow">q</a>'
            ),
        ),
        f"{SITE}/forumdisplay.php?f=2&page=2",
    ),
    "invision": Written(
        f"{SITE}/forum/2-fans/",
        _page(
            '<link rel="next" href="/forum/2-fans/page/2/">',
            f"<ol>{_invision(11, _RULES, '<i class=fa-thumb-tack></i>')}{_invision(12, _FAN, '')}</ol>",
            attributes='class="ipsApp"',
        ),
        f"{SITE}/topic/12-a-title/",
        _page(
            "",
            f'<h1 class="ipsType_pageTitle">{_FAN}</h1>'
            + _invision_post(501, "alder", _ISO[0], SAID)
            + _invision_post(
                502, "birch", _ISO[1], ANSWER, '<blockquote data-ipsquote-contentcommentid="501">q</blockquote>'
            ),
            attributes='class="ipsApp"',
        ),
        f"{SITE}/forum/2-fans/page/2/",
    ),
    "nodebb": Written(
        f"{SITE}/category/2/fans",
        _page(
            '<link rel="next" href="?page=2">',
            f"<ul>{_nodebb(11, _RULES, 'pinned')}{_nodebb(12, _FAN, '')}</ul>",
        ),
        f"{SITE}/topic/12/a",
        _page(
            "",
            f'<h1><span component="topic/title">{_FAN}</span></h1><ul>'
            + _nodebb_post(501, "alder", "1709641800000", SAID)
            + _nodebb_post(502, "birch", "1709643600000", ANSWER, 'data-to-pid="501"')
            + "</ul>",
        ),
        f"{SITE}/category/2/fans?page=2",
    ),
    "smf": Written(
        f"{SITE}/index.php?board=2.0",
        _page(
            "",
            f'<div id="messageindex"><table>{_smf(11, _RULES, "stickybg")}{_smf(12, _FAN, "")}</table></div>'
            '<div class="pagelinks"><strong>1</strong> <a class="navPages" href="index.php?board=2.20">2</a></div>',
        ),
        f"{SITE}/index.php?topic=12.0",
        _page(
            "",
            f'<div id="forumposts"><h3 class="catbg"><a>{_FAN}</a></h3>'
            + _smf_post(501, "alder", _WORDS[0], SAID)
            + _smf_post(
                502,
                "birch",
                _WORDS[1],
                ANSWER,
                '<div class="quoteheader"><a href="index.php?topic=12.msg501#msg501">q</a></div>',
            )
            + "</div>",
        ),
        f"{SITE}/index.php?board=2.20",
    ),
    "mybb": Written(
        f"{SITE}/forumdisplay.php?fid=2",
        _page(
            "",
            f"<table>{_mybb(11, _RULES, 'forumdisplay_sticky')}{_mybb(12, _FAN, '')}</table>"
            '<a class="pagination_next" href="forumdisplay.php?fid=2&amp;page=2">Next</a>',
        ),
        f"{SITE}/showthread.php?tid=12",
        _page(
            "",
            f'<div class="thead"><strong>{_FAN}</strong></div><div id="posts">'
            + _mybb_post(501, "alder", _DASHES[0], SAID)
            + _mybb_post(
                502,
                "birch",
                _DASHES[1],
                ANSWER,
                '<blockquote><cite><a class="quick_jump" href="showthread.php?pid=501#pid501">q</a></cite></blockquote>',
            )
            + "</div>",
        ),
        f"{SITE}/forumdisplay.php?fid=2&page=2",
    ),
    "fluxbb": Written(
        f"{SITE}/viewforum.php?id=2",
        _page(
            "",
            f'<div id="punviewforum" class="pun"><div id="vf"><table><tbody>{_fluxbb(11, _RULES, "isticky")}{_fluxbb(12, _FAN, "")}'
            '</tbody></table></div><a rel="next" href="viewforum.php?id=2&amp;p=2">Next</a></div>',
        ),
        f"{SITE}/viewtopic.php?id=12",
        _page(
            "",
            f'<div id="punviewtopic" class="pun"><ul class="crumbs"><li><a>Index</a></li><li><a>{_FAN}</a></li></ul>'
            + _fluxbb_post(501, "alder", _PLAIN[0], SAID)
            + _fluxbb_post(502, "birch", _PLAIN[1], ANSWER)
            + "</div>",
        ),
        f"{SITE}/viewforum.php?id=2&p=2",
        answers=False,
    ),
    "vanilla": Written(
        f"{SITE}/categories/fans",
        _page(
            "",
            f'<ul>{_vanilla(11, _RULES, "Announcement")}{_vanilla(12, _FAN, "")}</ul><a class="Next" href="/categories/fans/p2">»</a>',
        ),
        f"{SITE}/discussion/12/a",
        _page(
            "",
            f"<h1>{_FAN}</h1><ul class=MessageList>"
            + _vanilla_post(501, "alder", _ISO[0], SAID)
            + _vanilla_post(502, "birch", _ISO[1], ANSWER)
            + "</ul>",
        ),
        f"{SITE}/categories/fans/p2",
        answers=False,
    ),
    "bbpress": Written(
        f"{SITE}/forums/forum/fans/",
        _page(
            "",
            f'<div id="bbpress-forums">{_bbpress(11, _RULES, "sticky")}{_bbpress(12, _FAN, "")}'
            '<a class="next page-numbers" href="/forums/forum/fans/page/2/">→</a></div>',
        ),
        f"{SITE}/topic/12/",
        _page(
            "",
            f'<h1 class="entry-title">{_FAN}</h1><div id="bbpress-forums">'
            + _bbpress_post(501, "alder", "March 5, 2024 at 12:30 pm", SAID)
            + _bbpress_post(502, "birch", "March 5, 2024 at 1:00 pm", ANSWER)
            + "</div>",
        ),
        f"{SITE}/forums/forum/fans/page/2/",
        answers=False,
    ),
    "stackexchange": Written(
        f"{SITE}/questions/tagged/fans",
        _page(
            "",
            _stackexchange(11, _RULES)
            + _stackexchange(12, _FAN)
            + '<a rel="next" href="/questions/tagged/fans?page=2">n</a>',
        ),
        f"{SITE}/questions/12/a-title",
        _page(
            "",
            f'<div id="question-header"><h1>{_FAN}</h1></div>'
            + _stackexchange_post('id="question" data-questionid', 501, "alder", "2024-03-05 12:30:00Z", SAID)
            + _stackexchange_post("data-answerid", 502, "birch", "2024-03-05 13:00:00Z", ANSWER),
            attributes="class=question-page",
        ),
        f"{SITE}/questions/tagged/fans?page=2",
        answers=False,
    ),
    "discourse": Written(
        f"{SITE}/c/fans/2",
        _page(
            '<meta name="generator" content="Discourse 3.4.0"><link rel="next" href="/c/fans/2?page=1">',
            f"<table>{_discourse(11, _RULES, 'pinned')}{_discourse(12, _FAN, '')}</table>",
        ),
        f"{SITE}/t/a-title/12",
        _page(
            '<meta name="generator" content="Discourse 3.4.0">',
            f"<div id=topic-title><h1>{_FAN}</h1></div>"
            + _discourse_post(501, "alder", _ISO[0], SAID)
            + _discourse_post(502, "birch", _ISO[1], ANSWER),
        ),
        f"{SITE}/c/fans/2?page=1",
        answers=False,
    ),
    "v2ex": Written(
        f"{SITE}/go/fans",
        _page(
            "",
            f'<div id="Main">{_v2ex(11, _RULES, "background: url(corner_star.png)")}{_v2ex(12, _FAN, "")}'
            '<a class="page_current" href="?p=1">1</a> <a class="page_normal" href="?p=2">2</a></div>',
        ),
        f"{SITE}/t/12",
        _page(
            "",
            f'<div id="Main"><div class="box" id="topic_501"><div class="header"><h1>{_FAN}</h1><small class="gray"><a'
            f' href="/member/alder">alder</a> · <span title="2024-03-05 20:30:00 +08:00">10 小时前</span></small></div>'
            f'<div class="cell"><div class="topic_content">{SAID}</div></div></div><div class="box"><div class="cell" id="r_502">'
            '<strong><a href="/member/birch">birch</a></strong> <span class="ago" title="2024-03-05 21:00:00 +08:00">9 小时前</span>'
            f'<div class="reply_content">{ANSWER}</div></div></div></div>',
        ),
        f"{SITE}/go/fans?p=2",
        answers=False,
    ),
    "flarum": Written(
        f"{SITE}/t/fans",
        _page(
            "",
            '<noscript id="flarum-content"><ul><li><a href="/d/11-rules">Rules of the board</a></li><li><a href="/d/12-fan">Which'
            ' fan is quiet?</a></li></ul><a rel="next" href="/t/fans?page=2">Next</a></noscript>',
        ),
        f"{SITE}/d/12-fan",
        _page(
            "",
            f'<noscript id="flarum-content"><h1>{_FAN}</h1>'
            + _FLARUM_POST.format(501, "alder", _ISO[0], SAID)
            + _FLARUM_POST.format(502, "birch", _ISO[1], ANSWER)
            + "</noscript>",
        ),
        f"{SITE}/t/fans?page=2",
        answers=False,
    ),
}
# Software whose pages do not say what is pinned.
NO_PINS = {"stackexchange", "flarum"}
