"""An agent's work in the log: tools that ran, guards that spoke up, skills that were learned."""
