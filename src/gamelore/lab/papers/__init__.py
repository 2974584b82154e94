"""The reproductions of two papers. Each has a plan, measures, a report page and claims."""
