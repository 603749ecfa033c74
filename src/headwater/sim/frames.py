"""Events that could happen, each told in several ways. Places, names and numbers are filled in by chance.

A telling is a title and a text. All tellings of a frame are about the same event: they share its names and numbers and
little else, as reports of different people do.
"""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """One way to tell of an event, with gaps for its names and numbers."""

    title: str
    text: str


class Frame(NamedTuple):
    """A kind of event: what fills its gaps, and how it is told in English and in Chinese."""

    gaps: dict[str, tuple[str, ...]]
    english: tuple[Words, ...]
    chinese: tuple[Words, ...]


_PLACES = (
    "Varnholm",
    "Castrava",
    "Port Ellery",
    "Ostrey",
    "Lindmoor",
    "Kesselbruck",
    "Tamsin Bay",
    "Norrvik",
    "Havelock",
    "Brannock",
    "Ferrow",
    "Silverton",
    "Ardglen",
    "Morwick",
)
_PEOPLE = ("Ingrid Falk", "Tomas Berrow", "Adaeze Nwosu", "Mei Lindqvist", "Rafael Ostrander", "Yusuf Harlan")
_FIRMS = (
    "Brightwater Foods",
    "Calder Motors",
    "Helixon",
    "Northgate Rail",
    "Ostrava Cable",
    "Pellico Air",
    "Quillon",
    "Redfern & Sons",
    "Sable Energy",
    "Tarrant Steel",
    "Umbra Glass",
    "Vantor",
    "Westmark",
    "Yarrow Mills",
)
_AMOUNTS = ("12", "17", "23", "38", "41", "56", "64", "79", "19", "27", "33", "47", "52", "68")
_ZH_PLACES = (
    "临江",
    "青屿",
    "白河",
    "北渡",
    "云岭",
    "东濑",
    "望海",
    "石桥",
    "松溪",
    "南浦",
    "金汀",
    "丹崖",
    "平湖口",
    "柳塘",
)
_ZH_FIRMS = ("澄川食品", "远帆汽车", "恒岳科技", "北辰铁路", "海脉电缆", "云程航空")
_ZH_PEOPLE = ("林若舟", "陈望川", "沈知远", "赵临溪", "周清野", "许沐白")

FRAMES: tuple[Frame, ...] = (
    Frame(
        {"place": _PLACES, "number": _AMOUNTS, "who": _PEOPLE, "zplace": _ZH_PLACES},
        (
            Words(
                "Ferry with {number} aboard runs aground off {place}",
                "A passenger ferry carrying {number} people struck a sandbank outside {place} before dawn. All"
                " passengers were taken off by lifeboat, said harbour master {who}.",
            ),
            Words(
                "{place}: all {number} rescued after ferry hits sandbank",
                "Lifeboats brought {number} passengers ashore at {place} this morning after their ferry ran aground."
                " Harbour master {who} praised the crews and said the cause was not known yet.",
            ),
            Words(
                "Lifeboats empty stranded {place} ferry",
                "Everyone is off the ferry that ran aground near {place}, harbour master {who} says: {number} people,"
                " no serious injuries. The ship will be refloated at high tide.",
            ),
            Words(
                "Stranded on the {place} ferry: passengers tell of a night on the sandbank",
                '"We heard a scrape, then nothing moved." The {number} passengers of the {place} ferry were brought to'
                " land by lifeboat; harbour master {who} promised an inquiry.",
            ),
            Words(
                "Inquiry promised after {place} ferry grounding",
                "Harbour master {who} announced an inquiry into why a ferry with {number} passengers left the channel"
                " at {place} and struck a sandbank.",
            ),
        ),
        (
            Words(
                "{zplace}渡轮搁浅 {number}名乘客全部获救",
                "一艘载有{number}人的渡轮今天凌晨在{zplace}港外触沙搁浅，救生艇将全部乘客安全送上岸，搁浅原因仍在调查。",
            ),
            Words(
                "{zplace}港外渡轮触沙，{number}人平安上岸",
                "{zplace}港务部门表示，凌晨搁浅的渡轮上{number}名乘客均已由救生艇接走，无人重伤，船只将在涨潮后脱浅。",
            ),
        ),
    ),
    Frame(
        {"firm": _FIRMS, "number": _AMOUNTS, "who": _PEOPLE, "zfirm": _ZH_FIRMS},
        (
            Words(
                "{firm} to cut {number},000 jobs as orders fall",
                "{firm} said it would cut {number},000 jobs by the end of next year. Chief executive {who} blamed"
                " falling orders and high energy prices.",
            ),
            Words(
                "{firm} announces {number},000 layoffs",
                "Some {number},000 people will lose their work at {firm}, chief executive {who} told staff in a letter."
                " Unions called the step panic.",
            ),
            Words(
                "Unions furious as {firm} sheds {number},000 staff",
                "Unions at {firm} threatened strikes after chief executive {who} announced that {number},000 jobs are"
                " to go. Talks begin on Monday.",
            ),
            Words(
                "Letter to staff: {firm} boss {who} explains {number},000 job cuts",
                "In a letter to employees, {who} says {firm} has no choice but to part with {number},000 people: orders"
                " have halved and energy costs have doubled.",
            ),
            Words(
                "Shares of {firm} rise after job cuts",
                "Investors welcomed the plan of {firm} to shed {number},000 posts; the shares rose six per cent after"
                " chief executive {who} presented it.",
            ),
        ),
        (
            Words(
                "{zfirm}宣布裁员{number}000人 称订单下滑",
                "{zfirm}表示将在明年底前裁减{number}000个岗位，公司把原因归于订单下滑和能源价格上涨，工会批评此举过于仓促。",
            ),
            Words(
                "订单减半 {zfirm}将裁掉{number}000个岗位",
                "{zfirm}管理层在致员工信中说明裁减{number}000个岗位的计划，工会表示周一开始谈判，不排除罢工。",
            ),
        ),
    ),
    Frame(
        {"place": _PLACES, "number": _AMOUNTS, "who": _PEOPLE, "zplace": _ZH_PLACES},
        (
            Words(
                "{place} votes to ban cars from its old town",
                "The council of {place} decided by {number} votes to close the old town to cars from spring. Mayor"
                " {who} spoke of a day that children will thank us for.",
            ),
            Words(
                "No more cars in {place}'s old town from spring",
                "After a debate of nine hours the council of {place} voted, {number} members in favour, to keep cars"
                " out of the old town. Mayor {who} had staked her office on it.",
            ),
            Words(
                "Shopkeepers fight {place} car ban",
                "Shopkeepers in {place} want to take the ban on cars in the old town to court. The council had passed"
                " it with {number} votes; Mayor {who} is unmoved.",
            ),
            Words(
                "How {place} got rid of the car",
                "It took {number} votes and nine hours of debate: Mayor {who} has won her fight for an old town of"
                " {place} without cars.",
            ),
        ),
        (
            Words(
                "{zplace}市议会通过老城禁车令",
                "{zplace}市议会以{number}票赞成通过决议，从明年春天起老城区禁止汽车通行，部分店主表示将提起诉讼。",
            ),
            Words(
                "明春起汽车不得驶入{zplace}老城",
                "经过九小时辩论，{zplace}市议会{number}名议员投票支持老城禁车，市长称这是留给孩子们的一天。",
            ),
        ),
    ),
    Frame(
        {"firm": _FIRMS, "number": _AMOUNTS, "place": _PLACES, "zfirm": _ZH_FIRMS},
        (
            Words(
                "{firm} recalls {number},000 kettles after fires in {place}",
                "{firm} is calling back {number},000 electric kettles because their bases can catch fire. Three fires"
                " in {place} were traced to the model.",
            ),
            Words(
                "Stop using this kettle: {firm} recall covers {number},000",
                "Customers should unplug the kettle at once, says {firm}, which recalls {number},000 of them following"
                " three fires in {place}.",
            ),
            Words(
                "Three fires in {place}, {number},000 kettles recalled",
                "After three kitchen fires in {place}, {firm} takes {number},000 kettles off the market. The maker pays"
                " the price back without a receipt.",
            ),
            Words(
                "Consumer office criticises {firm} over late kettle recall",
                "The consumer office says {firm} knew of the fires in {place} for weeks before it recalled {number},000"
                " kettles.",
            ),
        ),
        (
            Words(
                "{zfirm}召回{number}000台电热水壶 曾引发三起火灾",
                "{zfirm}宣布召回{number}000台电热水壶，因底座存在起火风险，消费者应立即停止使用并可凭实物全额退款。",
            ),
            Words(
                "电热水壶底座可能起火，{zfirm}紧急召回{number}000台",
                "在三起厨房火灾之后，{zfirm}决定将{number}000台电热水壶撤出市场，消费者部门批评召回过迟。",
            ),
        ),
    ),
    Frame(
        {"who": _PEOPLE, "place": _PLACES, "number": _AMOUNTS, "zwho": _ZH_PEOPLE},
        (
            Words(
                "{who} wins {place} marathon at the age of {number}",
                "{who}, {number}, won the marathon of {place} on Sunday, ahead of a field of professionals half as old."
                " It was a first start in a race of that length.",
            ),
            Words(
                "Newcomer aged {number} beats the professionals in {place}",
                "Nobody knew the name before Sunday: {who}, {number}, left the favourites behind in the last kilometre"
                " of the {place} marathon.",
            ),
            Words(
                '"I just kept running": {place} marathon winner {who}',
                "The surprise winner of the {place} marathon, {who}, {number}, had entered for a bet and means to go"
                " back to work on Tuesday.",
            ),
        ),
        (
            Words(
                "{number}岁业余选手{zwho}夺得马拉松冠军",
                "首次参加全程马拉松的{zwho}今年{number}岁，在最后一公里甩开职业选手夺冠，赛后说自己只是一直在跑。",
            ),
            Words(
                "马拉松爆冷：{zwho}，{number}岁，第一次参赛就夺冠",
                "因为一个赌约报名的{zwho}跑赢了比自己年轻一半的职业选手，{number}岁的冠军说周二照常上班。",
            ),
        ),
    ),
    Frame(
        {"place": _PLACES, "number": _AMOUNTS, "firm": _FIRMS, "zplace": _ZH_PLACES},
        (
            Words(
                "Power cut leaves {number},000 homes in {place} dark",
                "A fault in a substation left {number},000 households in {place} without electricity on Thursday"
                " evening. {firm}, which runs the grid, expects repairs to take until noon.",
            ),
            Words(
                "{place} blackout: {number},000 homes wait for power",
                "Candles and torches in {place}: {number},000 homes have had no power since a substation failed. Grid"
                " company {firm} apologised.",
            ),
            Words(
                "What we know about the {place} blackout",
                "A substation of {firm} failed at dusk; {number},000 homes in {place} lost power; hospitals run on"
                " their generators.",
            ),
            Words(
                "Lights back on in {place} after substation fault",
                "By midday most of the {number},000 homes in {place} that lost power had it back, said {firm}. An"
                " inquiry is to find out why the substation failed.",
            ),
        ),
        (
            Words(
                "{zplace}大面积停电 {number}000户受影响",
                "一座变电站故障导致{zplace}{number}000户居民周四晚间停电，电网公司预计抢修到次日中午，医院启用备用发电机。",
            ),
            Words(
                "变电站故障，{zplace}{number}000户陷入黑暗",
                "周四傍晚{zplace}一座变电站突发故障，{number}000户停电，电网公司致歉并称正在全力抢修。",
            ),
        ),
    ),
    Frame(
        {"who": _PEOPLE, "firm": _FIRMS, "number": _AMOUNTS, "zfirm": _ZH_FIRMS},
        (
            Words(
                "{firm} shows battery that charges in {number} seconds",
                "Researchers of {firm} led by {who} presented a battery cell that is full after {number} seconds. It"
                " holds a tenth of what usual cells hold.",
            ),
            Words(
                "Full in {number} seconds: the battery of {who}",
                "The cell that {who} built at {firm} charges in {number} seconds and survives ten thousand rounds. Its"
                " weakness is how little it stores.",
            ),
            Words(
                "Why {firm}'s {number}-second battery won't be in your phone soon",
                "It charges in {number} seconds, but stores a tenth of a phone's cell: {who} of {firm} warns against"
                " great hopes.",
            ),
        ),
        (
            Words(
                "{zfirm}发布新型电池 {number}秒即可充满",
                "{zfirm}研究团队展示了一种{number}秒充满的电芯，循环寿命达一万次，但容量只有普通电芯的十分之一。",
            ),
            Words(
                "{number}秒充满电：{zfirm}的新电芯意味着什么",
                "{zfirm}的新电芯{number}秒即可充满，研究人员提醒其容量很小，短期内不会用在手机上。",
            ),
        ),
    ),
    Frame(
        {"place": _PLACES, "who": _PEOPLE, "number": _AMOUNTS, "zplace": _ZH_PLACES},
        (
            Words(
                "Roman mosaic found under {place} car park",
                "Workers laying pipes in {place} found a Roman mosaic of {number} square metres. Archaeologist {who}"
                " calls it the best preserved of the region.",
            ),
            Words(
                "{number} square metres of Rome beneath a car park in {place}",
                "It shows dolphins and a ship: the mosaic discovered under a car park in {place}. {who}, who leads the"
                " dig, wants it to stay where it is.",
            ),
            Words(
                "Car park or mosaic? {place} has to choose",
                "Since pipe layers came upon a Roman floor of {number} square metres, {place} argues whether its car"
                " park may return. Archaeologist {who} hopes not.",
            ),
        ),
        (
            Words(
                "{zplace}停车场下发现{number}平方米古代马赛克地面",
                "{zplace}施工人员铺设管道时发现一处{number}平方米的古代马赛克地面，画面为海豚与船只，考古人员希望原址保护。",
            ),
            Words(
                "{zplace}管道施工挖出{number}平方米古地面",
                "考古人员称{zplace}停车场下发现的{number}平方米马赛克地面是当地保存最好的一处，市民争论停车场是否恢复。",
            ),
        ),
    ),
    Frame(
        {"place": _PLACES, "number": _AMOUNTS, "who": _PEOPLE, "zplace": _ZH_PLACES},
        (
            Words(
                "Wolf seen in {place} for the first time in {number} years",
                "A camera in the woods above {place} has filmed a wolf, the first in {number} years. Ranger {who} asks"
                " walkers to keep dogs on a lead.",
            ),
            Words(
                "The wolf is back in {place}",
                "For {number} years nobody had seen one: now a wildlife camera near {place} shows a young male wolf,"
                " ranger {who} confirms.",
            ),
            Words(
                "Farmers near {place} worried after wolf sighting",
                "Sheep farmers around {place} demand fences since ranger {who} published pictures of a wolf, {number}"
                " years after the last one.",
            ),
        ),
        (
            Words(
                "{zplace}山区时隔{number}年再现野狼",
                "{zplace}山区的红外相机拍到一只年轻公狼，这是当地{number}年来首次，护林员提醒登山者牵好犬只。",
            ),
            Words(
                "{number}年来第一次：{zplace}拍到野狼",
                "护林员证实，{zplace}附近的相机记录到一只野狼的身影，距上次目击已有{number}年，牧民要求加装围栏。",
            ),
        ),
    ),
    Frame(
        {"who": _PEOPLE, "number": _AMOUNTS, "place": _PLACES, "zwho": _ZH_PEOPLE},
        (
            Words(
                "Library book returned to {place} after {number} years",
                "An atlas borrowed from the library of {place} came back by post, {number} years late. Librarian {who}"
                " waived the fine.",
            ),
            Words(
                "{number} years overdue: {place} library gets its atlas back",
                "No letter, no sender, only the atlas: after {number} years the library of {place} has its book again,"
                " and librarian {who} has a mystery.",
            ),
            Words(
                "Who sent the atlas? {place} looks for an honest borrower",
                "Librarian {who} would like to thank whoever returned an atlas to {place} that had been missing for"
                " {number} years.",
            ),
        ),
        (
            Words(
                "借走{number}年的地图册被寄回图书馆",
                "一本逾期{number}年的地图册日前被匿名寄回，馆员{zwho}表示免除罚款，只想当面道谢。",
            ),
            Words(
                "逾期{number}年，图书馆收到匿名归还的地图册",
                "包裹里没有信也没有署名，只有一本{number}年前借出的地图册，馆员{zwho}正在寻找归还者。",
            ),
        ),
    ),
    Frame(
        {"firm": _FIRMS, "number": _AMOUNTS, "who": _PEOPLE, "zfirm": _ZH_FIRMS},
        (
            Words(
                "Data of {number} million customers stolen from {firm}",
                "Attackers copied names and addresses of {number} million customers of {firm}. Payment data are safe,"
                " says security chief {who}.",
            ),
            Words(
                "{firm} admits breach: {number} million records copied",
                "{firm} has told {number} million customers that strangers had access to their data for three weeks."
                " Security chief {who} resigned.",
            ),
            Words(
                "What customers of {firm} should do after the breach",
                "Change the password, beware of strange calls: what follows from the theft of {number} million records"
                " at {firm}, whose security chief {who} has gone.",
            ),
        ),
        (
            Words(
                "{zfirm}遭入侵 {number}00万客户资料外泄",
                "{zfirm}承认系统遭到入侵，{number}00万客户的姓名和地址被复制，支付信息未受影响，公司建议尽快更换密码。",
            ),
            Words(
                "{number}00万客户受影响：{zfirm}数据泄露始末",
                "入侵者在{zfirm}系统内停留约三周，{number}00万客户的姓名与地址外泄，安全负责人已辞职。",
            ),
        ),
    ),
    Frame(
        {"place": _PLACES, "number": _AMOUNTS, "who": _PEOPLE, "zplace": _ZH_PLACES},
        (
            Words(
                "Bridge in {place} closed over cracks",
                "Engineers found {number} cracks in the river bridge of {place}; it is closed to all traffic at once,"
                " said road engineer {who}.",
            ),
            Words(
                "{number} cracks: {place} loses its bridge for months",
                "The river bridge of {place} will stay closed until summer. Road engineer {who} spoke of {number}"
                " cracks in the main girders.",
            ),
            Words(
                "Commuters stranded as {place} shuts its river bridge",
                "Detours of an hour around {place}: since {number} cracks were found the bridge is shut, and nobody,"
                " says engineer {who}, may cross on foot either.",
            ),
        ),
        (
            Words(
                "{zplace}跨河大桥发现{number}处裂缝 即日起封闭",
                "检测人员在{zplace}跨河大桥主梁上发现{number}处裂缝，大桥即日起全面封闭，预计夏天前无法恢复通行。",
            ),
            Words(
                "主梁现{number}处裂缝，{zplace}大桥禁止通行",
                "{zplace}跨河大桥因{number}处裂缝停用，车辆需绕行一小时，行人也不得通过。",
            ),
        ),
    ),
    Frame(
        {"who": _PEOPLE, "place": _PLACES, "number": _AMOUNTS, "zplace": _ZH_PLACES},
        (
            Words(
                "Teachers in {place} strike for {number} per cent",
                "Schools in {place} stay closed on Wednesday: teachers want {number} per cent more pay. Union leader"
                " {who} expects nine in ten to join.",
            ),
            Words(
                "{place} schools closed as teachers walk out",
                "Parents in {place} have to look after their children themselves. The teachers' union under {who}"
                " demands {number} per cent; the town offers three.",
            ),
            Words(
                '"Three per cent is an insult": teachers\' strike in {place}',
                "Union leader {who} rejects the offer of {place} and sticks to {number} per cent for its teachers. No"
                " new talks are planned.",
            ),
        ),
        (
            Words(
                "{zplace}教师罢课 要求加薪{number}%",
                "{zplace}各校周三停课，教师工会要求加薪{number}%，市政府只愿给出3%，双方尚未安排新一轮谈判。",
            ),
            Words(
                "加薪{number}%还是3%：{zplace}教师周三罢课",
                "{zplace}教师工会预计九成教师参加周三的罢课，坚持{number}%的加薪要求，家长需自行照看孩子。",
            ),
        ),
    ),
    Frame(
        {"place": _PLACES, "number": _AMOUNTS, "firm": _FIRMS, "zplace": _ZH_PLACES},
        (
            Words(
                "{firm} opens sleeper train from {place} after {number} years",
                "Night trains run from {place} again, {number} years after the last one left. {firm} says the first"
                " month is sold out.",
            ),
            Words(
                "All aboard: the night train leaves {place} again",
                "With a brass band {firm} brought back the sleeper from {place}, which had been cancelled {number}"
                " years ago.",
            ),
            Words(
                "First month of {place} night train sold out",
                "Demand for the sleeper of {firm} exceeds all hopes. {place} had been without a night train for"
                " {number} years.",
            ),
        ),
        (
            Words(
                "停运{number}年后 {zplace}夜行列车恢复开行",
                "时隔{number}年，{zplace}始发的卧铺夜车重新上线，首月车票已经售罄，首班车发车时乐队到场送行。",
            ),
            Words(
                "{zplace}夜车回来了：{number}年后的第一班",
                "停运{number}年的{zplace}卧铺列车恢复运行，旅客热情超出预期，首月一票难求。",
            ),
        ),
    ),
)

CHATTER: tuple[Words, ...] = (
    Words("What are you reading this week?", "I am half way through a book about lighthouses and cannot put it down."),
    Words("My radio finally works", "Three evenings, two wrong screws, one cup of coffee over the plan. Worth it."),
    Words("Is there a good bicycle shop around here?", "The one by the station has closed. Any hints are welcome."),
    Words("Photo of the day: gull on a bollard", "Taken at six this morning, nobody around but one very loud bird."),
    Words("Unpopular opinion about fountain pens", "The old nibs were better, and my spreadsheet proves it."),
    Words("Sourdough: how wet is too wet?", "Mine runs off the table. The recipe says eighty per cent water."),
    Words("Tomatoes at last", "Planted in March, first red one today. Never again from seed, see you next year."),
    Words("Chess endings for beginners", "Rook and pawn against rook. I lose it every single time, what am I missing?"),
    Words(
        "Lost: one grey glove, left hand", "Probably on the tram towards the harbour. It has a small hole at the thumb."
    ),
    Words(
        "Which sail for light winds?", "The old genoa is more patch than cloth. Small boat, small budget, large lake."
    ),
    Words("Rain again", "Day eleven. The cat has stopped going out and now judges me for the weather."),
    Words(
        "Thank you, stranger on platform four", "You ran after me with my umbrella. I hope your train was late, too."
    ),
    Words("入门钢笔怎么选", "预算不高，写字够用就行，想听听大家的经验。"),
    Words("周末去看日出的路线", "听说山顶小路封了，还有别的地方可以上去吗？"),
    Words("阳台番茄终于红了", "三月种下，今天第一颗熟了，味道居然不错。"),
    Words("求推荐安静的自习地点", "图书馆人太多，希望有插座，最好能续水。"),
)
