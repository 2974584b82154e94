"""The web page: play, watch learning, browse knowledge, write rulesheets, and play over the network, in a browser."""
