/* The page of an execution that goes on, kept up to date: asks again, ever less often while nothing changes, and
   stops at its end. Without this file the page is what it was when it was opened. */
"use strict";

(function () {
    const SHORTEST = 1000;
    const LONGEST = 30000;
    const MARK = "[data-durable-live]";
    let pause = SHORTEST;

    function holdsSomething(root) {
        const focus = document.activeElement;
        return root.contains(focus) && focus.matches("input, textarea, select");
    }

    function keepOpen(from, to) {
        const shown = to.querySelectorAll("details");
        from.querySelectorAll("details").forEach(function (one, number) {
            if (one.open && shown[number]) {
                shown[number].open = true;
            }
        });
    }

    async function look() {
        const root = document.querySelector(MARK);
        if (!root) {
            return;
        }
        if (!document.hidden && !holdsSomething(root)) {
            try {
                const answer = await fetch(window.location.href, { credentials: "same-origin", redirect: "error" });
                if (answer.ok) {
                    show(root, new DOMParser().parseFromString(await answer.text(), "text/html"));
                } else if (answer.status < 500) {
                    return; // signed out, or no longer allowed
                }
            } catch (error) {
                pause = LONGEST; // the server is away, or the session has ended
            }
        }
        pause = Math.min(pause * 1.5, LONGEST);
        window.setTimeout(look, pause);
    }

    function show(root, page) {
        const fresh = page.querySelector("#content-main");
        if (!fresh) {
            return;
        }
        if (fresh.dataset.durableLive !== root.dataset.durableLive) {
            pause = SHORTEST;
        }
        keepOpen(root, fresh);
        root.replaceWith(document.adoptNode(fresh));
    }

    window.setTimeout(look, pause);
    document.addEventListener("visibilitychange", function () {
        if (!document.hidden) {
            pause = SHORTEST;
        }
    });
})();
