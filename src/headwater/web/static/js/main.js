// Makes the pages quicker. Everything works without it: each module takes over forms that are there already.
import { keepTimesRight } from "./times.js";
import { keepLive } from "./live.js";
import { takeOverPosts } from "./posts.js";
import { takeOverSources } from "./sources.js";
import { watchFleet } from "./fleet.js";
import { listenForKeys } from "./keys.js";

document.documentElement.classList.add("has-script");
document.cookie = `headwater_zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}; path=/; max-age=31536000; samesite=lax`;
keepTimesRight();
takeOverPosts();
takeOverSources();
listenForKeys();
keepLive();
watchFleet();
