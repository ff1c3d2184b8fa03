"""Edge: touches sockets and memory. WHERE large values are: with the tool that said them, until somebody needs them.

What the thesis proposes is done here. Pure modules: `words` (the messages), `cutting` (what of a value goes by
reference), `registry` (who still refers to what, at the bus), `routes` (which way a value can be had), `threshold`
(from which size on it pays) and `tokens` (who may have it). The edge: `member` (one tool, or the bus), `exchange` (the
values and links of a process), `keeping` (what a member has for others), `fetching` and `serving` (a value on its way),
`transfer` (how it goes over a connection), `turnstile` (how many of them at a time), `arrivals` (messages that wait for
values) and `workers`.
"""
