"""Which story each remembered post is in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.dedup.compiled import compiled
from headwater.dedup.stories_notes import NONE
from headwater.dedup.stories_places import EMPTY, grown, has_room, slot_of, slots_for


class StoriesOfPosts:
    """The number of each post's story; posts are in the order in which they came."""

    def __init__(self) -> None:
        self._count = 0
        self._posts = np.zeros(0, np.int64)
        self._stories = np.zeros(0, np.int32)
        self._slots = slots_for(self._posts, 0, 0)

    def __len__(self) -> int:
        return int(np.count_nonzero(self.numbers() != NONE))

    @property
    def room_taken(self) -> int:
        """How many posts there is a row for, forgotten ones as well."""
        return self._count

    def __contains__(self, post: int) -> bool:
        return self.get(post) is not None

    def get(self, post: int) -> int | None:
        return next(iter(self.of([post]).values()), None)

    def of(self, posts: Sequence[int]) -> dict[int, int]:
        """The stories of those posts that are remembered."""
        numbers = np.empty(len(posts), np.int32)
        look_up(self._slots, self._posts, self._stories, np.array(posts, np.int64), numbers)
        return {post: number for post, number in zip(posts, numbers.tolist(), strict=True) if number != NONE}

    def put(self, posts: NDArray[np.int64], stories: NDArray[np.int32]) -> None:
        """Remembers posts that are not known."""
        wanted = self._count + len(posts)
        if wanted > len(self._posts):
            size = wanted + wanted // 4
            self._posts, self._stories = grown(self._posts, size), grown(self._stories, size)
        if not has_room(self._slots, wanted):
            self._slots = slots_for(self._posts, self._count, wanted)
        self._count = put(self._slots, self._posts, self._stories, self._count, posts, stories)

    def forget(self, post: int) -> None:
        place = self._slots[slot_of(self._slots, self._posts, post)]
        if place != EMPTY:
            self._stories[place] = NONE

    def first_of(self, story: int) -> int:
        """The post of a story that came first, or NONE. It looks at all posts."""
        places = np.flatnonzero(self._stories[: self._count] == story)
        return int(self._posts[places[0]]) if len(places) else NONE

    def numbers(self) -> NDArray[np.int32]:
        """The story's number for each post, NONE for those that were forgotten."""
        return self._stories[: self._count]

    def keep(self, chosen: NDArray[np.bool_]) -> None:
        """Forgets all posts but those that are chosen."""
        self._posts, self._stories = self._posts[: self._count][chosen], self._stories[: self._count][chosen]
        self._count = len(self._posts)
        self._slots = slots_for(self._posts, self._count, self._count)


@compiled
def look_up(slots: Any, posts: Any, stories: Any, asked: Any, numbers: Any) -> None:
    for index in range(len(asked)):
        place = slots[slot_of(slots, posts, asked[index])]
        numbers[index] = NONE if place == EMPTY else stories[place]


@compiled
def put(slots: Any, posts: Any, stories: Any, count: int, new_posts: Any, new_stories: Any) -> int:
    """Puts posts behind the `count` that there are. Returns how many there are then."""
    for index in range(len(new_posts)):
        slot = slot_of(slots, posts, new_posts[index])
        if slots[slot] == EMPTY:
            slots[slot] = count
            posts[count] = new_posts[index]
            stories[count] = new_stories[index]
            count += 1
        else:
            # It was forgotten, and comes again.
            stories[slots[slot]] = new_stories[index]
    return count
