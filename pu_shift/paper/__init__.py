"""The paper's experiments: settings, trials, tables and the comparison with the printed numbers."""
