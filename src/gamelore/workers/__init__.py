"""Workers that do the jobs of experiments: processes of this machine, or of the machines of a Ray cluster."""
