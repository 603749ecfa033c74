"""FluxBB and PunBB."""

from __future__ import annotations

from headwater.sources.forums.profile import Profile

FLUXBB = Profile(
    name="fluxbb",
    signs=".blockpost .postmsg, #punviewtopic, #punviewforum, .pun #vf",
    thread="#vf tbody tr, #punviewforum tbody tr",
    thread_link=".tcl a",
    thread_id="?id={number} | &id={number} | topic/{number}",
    replies="td.tc2",
    last="td.tcr a@href",
    pinned="tr.isticky",
    boards="#punindex h3 a, #idx1 h3 a",
    title=".crumbs li:last-child a | h1",
    post=".blockpost",
    author=".postleft dt strong | .postleft dt",
    date="h2 a:last-child | h2",
    content=".postmsg",
    dropped=".postsignature, .postedit",
    next_page="a[rel='next']@href",
)
