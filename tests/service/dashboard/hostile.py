"""Texts that strangers may choose: ids of items, queries, groups. None of them may do anything on a page."""

HOSTILE = [
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "'><svg/onload=window.hacked=1>",
    "</title></textarea></script><script>window.hacked = 1</script>",
    "javascript:window.hacked=1",
    '" autofocus onfocus="window.hacked = 1" x="',
    "{{7*7}} ${7*7} <%= 7*7 %>",
    "&lt;b&gt; &amp;#60; %3Cscript%3E",
    "\u202eright to left\u2066",
    "line\nbreak\ttab\x0b\x1b[31m",
    "<base href=https://example.org/><style>*{display:none}</style>",
    "W" * 512,
]
