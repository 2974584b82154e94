"""The child processes of the web page: what they answer about rules, knowledge, runs and matches."""
