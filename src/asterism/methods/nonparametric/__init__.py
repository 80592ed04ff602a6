"""Methods under a Dirichlet process: the number of clusters is part of the model."""
