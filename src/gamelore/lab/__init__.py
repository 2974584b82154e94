"""Experiments: settings, trials, results, the judgement of claims, figures and reports."""
