"""From machine code to `Game` and `Position`: the engines, and the pipeline that makes an engine from a rulesheet."""
