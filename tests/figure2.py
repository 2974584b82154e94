"""The twelve features of tic-tac-toe, as readings.md (B&S 1) lists them."""

TWELVE = (
    "L",
    "L,{D}",
    "L,{W}",
    "L,{n}",
    "L,{n,W}",
    "L,{n},{n,W}",
    "{D}",
    "{D},{W}",
    "{n},{n,W}",
    "{W}",
    "{n,W}",
    "{n,W},{W}",
)
