"""What lies behind the pages: the guard, the child processes, rulesheets, matches and drafts. It draws nothing."""
