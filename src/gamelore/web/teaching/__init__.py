"""The pages that teach: Watch learning, and the tour."""
